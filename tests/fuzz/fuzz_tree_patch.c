#include "tree/fail.h"
#include "tree/patchtext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (8u << 20)

static void apply(struct span text, const struct hunks *hunks)
{
	AUTO(str_done) struct str out = { .max = OUT_MAX };
	struct hunk_result result = { 0 };
	struct err e = { 0 };

	if (hunks_apply(text, hunks, &out, &result, &e) < 0 &&
	    (!e.msg[0] || fail_code(&e) == TREE_BACKEND_ERROR))
		abort();
}

/* A text, a NUL, a patch for it: taken or refused with a reason, as a patch of its own and as the
 * hunks of one file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
	struct span text = { (const char *)data, nul ? (size_t)(nul - data) : size };
	struct span patch = { (const char *)data, size };
	AUTO(patch_done) struct patch p = { 0 };
	AUTO(hunks_done) struct hunks hunks = { 0 };
	struct err e = { 0 };

	if (nul)
		patch = span_after(patch, text.len + 1);
	if (patch_parse(&p, patch, &e) < 0 && (!e.msg[0] || fail_code(&e) == TREE_BACKEND_ERROR))
		abort();
	for (size_t i = 0; i < p.files.len; i++)
		apply(text, &p.files.at[i].hunks);
	if (patch_parse_hunks(&hunks, patch, &e) == 0)
		apply(text, &hunks);
	return 0;
}
