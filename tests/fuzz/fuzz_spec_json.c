#include "fuzz_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	spec_init(&s);
	int r = spec_json(&s, (const char *)data, size, &e);

	expect_spec(&s, r, &e);
	return 0;
}
