/* A sealed value: nothing that was not sealed to the key opens, and what was comes back. */
#include "wire/base64.h"
#include "wire/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLAIN_MAX = 4096 };

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[SEAL_KEY_BYTES] = { 7, 7, 7 };
	static uint8_t public[SEAL_KEY_BYTES], plain[PLAIN_MAX + SEAL_OVERHEAD];
	AUTO(str_done) struct str sealed = { .max = 2ul * PLAIN_MAX };
	AUTO(str_done) struct str bytes = { .max = 2ul * PLAIN_MAX };
	const struct seal_frame frame = { span_of("fuzz"), span_of("aad") };
	struct span in = { (const char *)data, size };
	struct err e = { 0 };

	if (size > PLAIN_MAX)
		return 0;
	(void)!base64_decode(in.at, in.len, &bytes); /* as it arrives; what it is, is shown below */
	expect(seal_open(key, &frame, in, plain, &e) < 0);
	expect(seal_public(key, public, &e) == 0);
	expect(seal_close(public, &frame, in, &sealed, &e) == 0);
	expect(sealed.len == size + SEAL_OVERHEAD);
	expect(seal_open(key, &frame, (struct span){ sealed.data, sealed.len }, plain, &e) ==
	       (int)size);
	expect(size == 0 || memcmp(plain, data, size) == 0);
	if (size > 0) { /* one bit, anywhere */
		((uint8_t *)sealed.data)[data[0] % sealed.len] ^=
		    (uint8_t)(1u << data[size - 1] % 8);
		expect(seal_open(key, &frame, (struct span){ sealed.data, sealed.len }, plain, &e) <
		       0);
	}
	return 0;
}
