#include "wire/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUF_SIZE = 4096, ENCODED_MAX = 3 * BUF_SIZE };

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* Encoding what was decoded and decoding that changes nothing. */
static void expect_text(enum url_part part, struct span in)
{
	AUTO(str_done) struct str encoded = { .max = ENCODED_MAX };
	char text[BUF_SIZE];
	char again[BUF_SIZE];
	struct err e = { 0 };
	int n = url_decode(part, in, text, sizeof text, &e);

	if (n < 0) {
		expect(e.kind == ERR_INVALID || (e.kind == ERR_LIMIT && in.len >= sizeof text));
		return;
	}
	expect((size_t)n <= in.len && strlen(text) == (size_t)n);
	url_encode(text, (size_t)n, &encoded);
	struct span back = { encoded.data, encoded.len };

	expect(url_decode(part, back, again, sizeof again, &e) == n);
	expect(strcmp(text, again) == 0);
}

/* Segments and slashes are all of the path. */
static void expect_path(struct span path)
{
	struct span rest = path;
	struct span segment;
	size_t len = 0;

	while (url_segment(&rest, &segment)) {
		expect(segment.len == 0 || !memchr(segment.at, '/', segment.len));
		len += 1 + segment.len;
		expect_text(URL_SEGMENT, segment);
	}
	expect(len == path.len);
}

static void expect_query(struct span query)
{
	char text[BUF_SIZE];
	struct url_param param;
	struct err e = { 0 };
	struct span rest = query;
	int r = 1;

	while (r > 0) {
		size_t before = rest.len;

		r = url_param(&rest, (struct url_buf){ text, sizeof text }, &param, &e);
		if (r <= 0)
			break;
		expect(rest.len < before && param.name_len > 0);
		expect(strlen(param.name) == param.name_len);
		expect(strlen(param.value) == param.value_len);
		expect(param.has_value || param.value_len == 0);
	}
	expect(r < 0 || rest.len == 0);
}

/* A target; and its bytes as one text, in both parts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span all = { (const char *)data, size };
	struct err e = { 0 };
	struct url u;

	expect_text(URL_SEGMENT, all);
	expect_text(URL_QUERY, all);
	expect_query(all);
	if (url_split(all, &u, &e) < 0)
		return 0;
	expect(u.path.len + u.has_query + u.query.len == size);
	expect_path(u.path);
	expect_query(u.query);
	return 0;
}
