/*
 * The body of a push, and of a request that is signed in chunks: the first byte says how it
 * arrives. However that is, the same is decided and the same comes out.
 */
#include "gate/gitreq.h"
#include "gate/sigv4.h"

enum { OUT_MAX = 1 << 20, IN_MAX = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static bool push(const struct bind *b, struct span in, size_t step, struct str *out)
{
	struct gitpush p = { 0 };
	bool may = true;

	gitpush_begin(&p, b);
	while (may && in.len > 0) {
		size_t n = in.len < step ? in.len : step;

		may = gitpush_feed(&p, (struct span){ in.at, n }, out);
		expect(p.is_judged || out->len == 0);
		in = span_after(in, n);
	}
	may = may && gitpush_end(&p);
	gitpush_done(&p);
	return may;
}

static int chunks(struct span in, size_t step, struct str *out)
{
	size_t all = 0;
	struct sigv4 s = { .is_on = true,
		           .payload = SIGV4_CHUNKS,
		           .value = span_of("KEYID0EXAMPLE:secret-key-of-some-length"),
		           .all = &all };
	int r = 0;

	while (r == 0 && in.len > 0) {
		size_t n = in.len < step ? in.len : step;

		r = sigv4_feed(&s, (struct span){ in.at, n }, out);
		in = span_after(in, n);
	}
	r = r == 0 ? sigv4_end(&s, out, out) : r;
	sigv4_done(&s);
	expect(all == 0);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char text[] = "{\"hosts\":[\"a.test\"],\"git\":[\"a/b\"],"
				   "\"push\":[\"refs/heads/agent/*\",\"refs/heads/x\"]}";
	AUTO(bind_done) struct bind b = { 0 };
	AUTO(str_done) struct str out = { .max = OUT_MAX };
	AUTO(str_done) struct str parts = { .max = OUT_MAX };
	struct err e;

	if (size < 2 || size > IN_MAX || bind_read(&b, text, sizeof text - 1, &e) < 0)
		return 0;
	struct span in = { (const char *)data + 1, size - 1 };
	size_t step = data[0] % 16 + 1ul;

	if (push(&b, in, in.len, &out)) {
		/* Nothing is added, and nothing is for another ref. */
		expect(push(&b, in, step, &parts) && out.len == in.len);
		expect(memcmp(out.data, in.at, in.len) == 0 && parts.len == in.len);
	} else {
		expect(!push(&b, in, step, &parts));
	}
	str_clear(&out);
	str_clear(&parts);
	int r = chunks(in, in.len, &out);

	expect((chunks(in, step, &parts) == 0) == (r == 0));
	expect(r != 0 || (out.len == in.len && parts.len == out.len &&
	                  memcmp(out.data, parts.data, out.len) == 0));
	return 0;
}
