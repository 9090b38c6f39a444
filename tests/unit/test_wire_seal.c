#include "wire/seal.h"

#include "test.h"

static size_t unhex(const char *text, uint8_t *out)
{
	size_t n = 0;
	unsigned int byte;

	for (; sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
		out[n] = (uint8_t)byte;
	return n;
}

/* RFC 9180, A.2.1, sequence number 0. */
TEST(opens_what_the_rfc_sealed)
{
	static const char enc_and_text[] =
	    "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a"
	    "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1"
	    "b51a28";
	uint8_t key[64], public[SEAL_KEY_BYTES], expected[64], sealed[256], plain[256];
	struct seal_frame frame = { span_of("Ode on a Grecian Urn"), span_of("Count-0") };
	struct err e = { 0 };

	unhex("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb", key);
	unhex("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a", expected);
	CHECK(seal_public(key, public, &e) == 0);
	CHECK(memcmp(public, expected, sizeof public) == 0);
	size_t n = unhex(enc_and_text, sealed);
	int r = seal_open(key, &frame, (struct span){ (const char *)sealed, n }, plain, &e);

	CHECK_INT(r, 29);
	CHECK(memcmp(plain, "Beauty is truth, truth beauty", 29) == 0);
}

struct sealed {
	uint8_t key[SEAL_KEY_BYTES], public[SEAL_KEY_BYTES];
	struct str text;
};

static struct sealed sealed_with(const char *plain, const struct seal_frame *frame)
{
	struct sealed s = { .key = { 1, 2, 3 }, .text = { .max = 1 << 16 } };
	struct err e = { 0 };

	CHECK(seal_public(s.key, s.public, &e) == 0);
	CHECK(seal_close(s.public, frame, span_of(plain), &s.text, &e) == 0);
	return s;
}

static struct span span_of_str(const struct str *s)
{
	return (struct span){ str_text(s), s->len };
}

TEST(comes_back_and_never_looks_the_same)
{
	static const char *const plains[] = { "", "x", "a value of some length, such as a token" };
	struct seal_frame frame = { span_of("test"), span_of("aad") };

	for (size_t i = 0; i < COUNT(plains); i++) {
		struct sealed a = sealed_with(plains[i], &frame),
			      b = sealed_with(plains[i], &frame);
		uint8_t plain[64];
		struct err e = { 0 };
		int n = seal_open(a.key, &frame, span_of_str(&a.text), plain, &e);

		CHECK_INT(n, (int)strlen(plains[i]));
		CHECK(memcmp(plain, plains[i], (size_t)n) == 0);
		CHECK_INT((int)(a.text.len - strlen(plains[i])), SEAL_OVERHEAD);
		CHECK(memcmp(a.text.data, b.text.data, a.text.len) != 0);
		CHECK(!memmem(a.text.data, a.text.len, "a value of", 10));
		str_done(&a.text);
		str_done(&b.text);
	}
}

TEST(whatever_was_changed_does_not_open)
{
	static const char value[] = "canary-value";
	struct seal_frame frame = { span_of("test"), span_of("aad") };
	struct seal_frame others[] = { { span_of("tesT"), span_of("aad") },
		                       { span_of("test"), span_of("aaD") },
		                       { span_of("test"), span_of("") } };
	struct sealed s = sealed_with(value, &frame);
	uint8_t plain[64], other_key[SEAL_KEY_BYTES] = { 9 };
	struct err e = { 0 };

	for (size_t i = 0; i < s.text.len; i++) {
		s.text.data[i] ^= 4;
		CHECK(seal_open(s.key, &frame, span_of_str(&s.text), plain, &e) < 0);
		CHECK(!memmem(plain, sizeof value - 1, value, sizeof value - 1));
		s.text.data[i] ^= 4;
	}
	for (size_t i = 0; i < s.text.len; i++)
		CHECK(seal_open(s.key, &frame, (struct span){ s.text.data, i }, plain, &e) < 0);
	for (size_t i = 0; i < COUNT(others); i++)
		CHECK(seal_open(s.key, &others[i], span_of_str(&s.text), plain, &e) < 0);
	CHECK(seal_open(other_key, &frame, span_of_str(&s.text), plain, &e) < 0);
	CHECK(seal_open(s.key, &frame, span_of_str(&s.text), plain, &e) > 0);
	str_done(&s.text);
}

/* Such a key would make everybody's message readable. */
TEST(a_public_key_of_small_order_is_refused)
{
	static const uint8_t zeros[SEAL_KEY_BYTES];
	AUTO(str_done) struct str out = { .max = 1 << 10 };
	struct seal_frame frame = { span_of("test"), span_of("") };
	struct err e = { 0 };

	CHECK(seal_close(zeros, &frame, span_of("x"), &out, &e) < 0);
	CHECK_INT((int)out.len, 0);
}
