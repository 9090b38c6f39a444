#include "base/hex.h"

int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void hex_print(const uint8_t *bytes, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * n] = '\0';
}

bool hex_read(const char *text, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(text[2 * i]);
		int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return text[2 * n] == '\0';
}
