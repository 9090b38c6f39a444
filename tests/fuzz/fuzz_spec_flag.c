#include "fuzz_spec.h"

/* Words, each up to a NUL: a flag, its value, a flag, its value. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(spec_done) struct spec s;
	AUTO(freep) char *text = mem_alloc(size + 2); /* both words of the last pair end */
	struct err e = { 0 };
	int r = 0;

	if (size > 0)
		memcpy(text, data, size);
	spec_init(&s);
	for (const char *p = text; r == 0 && p < text + size;) {
		const char *flag = p;
		const char *value = flag + strlen(flag) + 1;

		if (value > text + size)
			value = text + size;
		r = spec_flag(&s, flag, value, &e);
		p = value + strlen(value) + 1;
	}
	expect_spec(&s, r, &e);
	return 0;
}
