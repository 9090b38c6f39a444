/* Any bytes as a form, in pieces of any size: what comes out does not depend on the pieces, and one
 * that is whole has an end for each part. */
#include "wire/multipart.h"

#include <stdlib.h>

#include "base/str.h"
#include "wire/connect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each part has one end, and nothing is between two. */
static void note(const struct multipart_event *ev, int *open, struct str *out)
{
	static const int opens[] = {
		[MULTIPART_PART] = 1, [MULTIPART_DATA] = 0, [MULTIPART_END] = -1
	};

	*open += opens[ev->type];
	if (*open < 0 || *open > 1)
		abort();
	if (ev->type == MULTIPART_DATA)
		str_addn(out, ev->data.at, ev->data.len);
	else
		str_addf(out, "<%d%s>", (int)ev->type, ev->type == MULTIPART_PART ? ev->name : "");
}

static int run(const char *bytes, size_t n, size_t step, struct str *out)
{
	struct multipart m;
	struct multipart_event ev;
	size_t have = 0, at = 0;
	int r = 0, open = 0;

	if (!multipart_init(&m, span_of("multipart/form-data; boundary=xx")))
		abort();
	do {
		have = n - have < step ? n : have + step;
		struct span in = { bytes + at, have - at };

		while ((r = multipart_next(&m, &in, have == n, &ev)) > 0)
			note(&ev, &open, out);
		at = (size_t)(in.at - bytes);
	} while (r == 0 && have < n);
	if (r == 0 && open != 0)
		abort();
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(str_done) struct str whole = { .max = 1 << 20 }, pieces = { .max = 1 << 20 };
	struct span message;
	const char *bytes = (const char *)data;

	(void)connect_message((struct span){ bytes, size }, &message);
	int a = run(bytes, size, size + 1, &whole), b = run(bytes, size, 3, &pieces);

	if (a != b || (a == 0 && strcmp(str_text(&whole), str_text(&pieces)) != 0))
		abort();
	return 0;
}
