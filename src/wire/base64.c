#include "wire/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t n, struct str *out)
{
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

/* -1: not a digit. */
static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* Four digits, the last `pads` of them padding. Returns -1 or 24 bits. */
static int32_t decode_four(const char *four, size_t pads)
{
	int32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		int digit = i < 4 - pads ? digit_value(four[i]) : 0;

		if (digit < 0)
			return -1;
		v = v << 6 | digit;
	}
	return v & ((1 << 8 * pads) - 1) ? -1 : v;
}

static size_t count_pads(const char *text, size_t n)
{
	if (n == 0 || text[n - 1] != '=')
		return 0;
	return text[n - 2] == '=' ? 2 : 1;
}

bool base64_decode(const char *text, size_t n, struct str *out)
{
	size_t from = out->len;
	size_t pads = n % 4 == 0 ? count_pads(text, n) : 0;

	if (n % 4 != 0 || out->overflow)
		return false;
	if (n / 4 * 3 - pads > out->max - from) {
		out->overflow = true;
		return false;
	}
	for (size_t i = 0; i < n; i += 4) {
		size_t here = i + 4 == n ? pads : 0;
		int32_t v = decode_four(text + i, here);
		char bytes[3] = { (char)(v >> 16), (char)(v >> 8), (char)v };

		if (v < 0) {
			out->len = from;
			if (out->data)
				out->data[from] = '\0';
			return false;
		}
		str_addn(out, bytes, 3 - here);
	}
	return true;
}
