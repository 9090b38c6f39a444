#include "fuzz_http.h"

/* A response as it stands, to each of the requests that it could answer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int n = expect_message(HTTP_ASKED_BODY, (const char *)data, size);

	expect(expect_message(HTTP_ASKED_HEAD, (const char *)data, size) == n);
	expect(expect_message(HTTP_ASKED_CONNECT, (const char *)data, size) == n);
	return 0;
}
