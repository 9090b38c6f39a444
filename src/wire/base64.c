#include "wire/base64.h"

void base64_encode(const void *bytes, size_t n, struct str *out)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
		             (left > 2 ? p[i + 2] : 0);
		char four[4] = { digits[v >> 18], digits[v >> 12 & 63], '=', '=' };

		if (left > 1)
			four[2] = digits[v >> 6 & 63];
		if (left > 2)
			four[3] = digits[v & 63];
		str_addn(out, four, sizeof four);
	}
}
