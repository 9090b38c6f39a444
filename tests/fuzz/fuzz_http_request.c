#include "fuzz_http.h"

/* A request as it stands. What a server takes, a proxy takes too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int n = expect_message(FUZZ_SERVER, (const char *)data, size);

	expect(expect_message(FUZZ_PROXY, (const char *)data, size) == n || n < 0);
	return 0;
}
