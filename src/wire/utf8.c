#include "wire/utf8.h"

#define UTF8_MAX 4 /* bytes of one code point */

/* RFC 3629, 4: what may follow a first byte. */
static const struct {
	uint8_t from, to, left, low, high;
} firsts[] = {
	{ 0x00, 0x7f, 0, 0x80, 0xbf }, { 0xc2, 0xdf, 1, 0x80, 0xbf }, { 0xe0, 0xe0, 2, 0xa0, 0xbf },
	{ 0xe1, 0xec, 2, 0x80, 0xbf }, { 0xed, 0xed, 2, 0x80, 0x9f }, { 0xee, 0xef, 2, 0x80, 0xbf },
	{ 0xf0, 0xf0, 3, 0x90, 0xbf }, { 0xf1, 0xf3, 3, 0x80, 0xbf }, { 0xf4, 0xf4, 3, 0x80, 0x8f },
};

static bool begin(struct utf8 *u, uint8_t c)
{
	for (size_t i = 0; i < COUNT(firsts); i++) {
		if (c < firsts[i].from || c > firsts[i].to)
			continue;
		*u = (struct utf8){ firsts[i].left, firsts[i].low, firsts[i].high };
		return true;
	}
	return false;
}

bool utf8_feed(struct utf8 *u, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++) {
		if (u->left == 0) {
			if (!begin(u, p[i]))
				return false;
			continue;
		}
		if (p[i] < u->low || p[i] > u->high)
			return false;
		*u = (struct utf8){ (uint8_t)(u->left - 1), 0x80, 0xbf };
	}
	return true;
}

size_t utf8_open_end(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 1; i < UTF8_MAX && i <= n; i++) {
		struct utf8 u = { 0 };

		if ((p[n - i] & 0xc0) == 0x80)
			continue;
		return utf8_feed(&u, p + n - i, i) && !utf8_is_whole(&u) ? i : 0;
	}
	return 0;
}
