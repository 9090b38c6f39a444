/*
 * A chunked body through the gate: the first byte says how it arrives. However that is, the same
 * comes out, and what comes out is read by the strictest reader as the same.
 */
#include "gate/webhead.h"

enum { OUT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* Feeds `step` bytes at a time; the result of the last call. */
static int relay(const char *in, size_t n, size_t step, struct str *payload, struct str *out)
{
	static const struct http_head chunked = { .body = HTTP_CHUNKED };
	AUTO(str_done) struct str trailers = { .max = HTTP_TRAILERS_MAX + 1 };
	struct http_body b;
	struct http_piece piece;
	struct err e;
	int r = HTTP_BODY_MORE;

	http_body_init(&b, &chunked, UINT64_MAX);
	b.trailers = &trailers;
	b.skips_extensions = true;
	while (r == HTTP_BODY_MORE && n > 0) {
		size_t len = n < step ? n : step;

		r = http_body_feed(&b, in, len, &piece);
		expect(piece.consumed <= len);
		str_addn(payload, piece.data.at, piece.data.len);
		http_print_chunk(out, piece.data.at, piece.data.len);
		in += piece.consumed;
		n -= piece.consumed;
	}
	if (r == HTTP_BODY_DONE && webhead_last_chunk(&trailers, NULL, out, &e) < 0)
		r = HTTP_E_TRAILER;
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(str_done)
	struct str all = { .max = OUT_MAX }, parts = { .max = OUT_MAX }, again = { .max = OUT_MAX },
		   out = { .max = OUT_MAX }, out2 = { .max = OUT_MAX }, out3 = { .max = OUT_MAX };

	if (size < 2 || size > 65536)
		return 0;
	const char *in = (const char *)data + 1;
	int r = relay(in, size - 1, size, &all, &out);

	expect(relay(in, size - 1, data[0] % 16 + 1, &parts, &out2) == r);
	expect(strcmp(str_text(&all), str_text(&parts)) == 0 && all.len == parts.len);
	if (r != HTTP_BODY_DONE)
		return 0;
	expect(relay(str_text(&out), out.len, out.len, &again, &out3) == HTTP_BODY_DONE);
	expect(again.len == all.len && memcmp(str_text(&again), str_text(&all), all.len) == 0);
	expect(out3.len == out.len && memcmp(str_text(&out3), str_text(&out), out.len) == 0);
	return 0;
}
