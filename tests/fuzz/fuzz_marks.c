#include "wire/marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const values[] = { "aaaaaaab", "hunter2-hunter3", "aHVudGVyMi1odW50ZXIz",
	                              "hunter2-h" };

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static struct marker *marker(void)
{
	static const uint8_t key[MARKS_KEY] = { 1, 1, 2, 3, 5 };
	static struct marker *made;
	static struct marks m;

	if (made)
		return made;
	marks_begin(&m, key);
	for (size_t i = 0; i < COUNT(values); i++)
		expect(marks_add(&m, "one", span_of(values[i])));
	return made = marker_new(&m);
}

static void run(const uint8_t *text, size_t n, size_t piece, struct str *out)
{
	struct masking x = { 0 };

	for (size_t at = 0; at < n; at += piece) {
		size_t some = n - at < piece ? n - at : piece;

		masking_feed(&x, marker(), (struct span){ (const char *)text + at, some }, out);
		/* All but what may be the beginning of one has gone on. */
		expect(out->len + x.held.len - x.passed == at + some);
	}
	masking_flush(&x, marker(), out);
	masking_done(&x);
}

/* However it is cut, the same bytes come out, as many as went in, and no value among them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(str_done) struct str whole = { .max = 1u << 20 };
	AUTO(str_done) struct str cut = { .max = 1u << 20 };

	if (size < 2 || size > 1u << 16)
		return 0;
	run(data + 1, size - 1, size - 1, &whole);
	run(data + 1, size - 1, (size_t)data[0] % 40 + 1, &cut);
	expect(whole.len == size - 1 && cut.len == size - 1);
	for (size_t i = 0; i < whole.len; i++)
		expect(whole.data[i] == '*' || whole.data[i] == (char)data[i + 1]);
	for (size_t i = 0; i < COUNT(values); i++)
		expect(!memmem(whole.data, whole.len, values[i], strlen(values[i])) &&
		       !memmem(cut.data, cut.len, values[i], strlen(values[i])));
	return 0;
}
