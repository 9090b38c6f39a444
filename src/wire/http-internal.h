/*
 * http-internal.h - which bytes may stand where in a head, and digits.
 */
#pragma once

#include "wire/http.h"

enum {
	C_TOKEN = 1,  /* RFC 9110, 5.6.2 */
	C_VALUE = 2,  /* RFC 9110, 5.5: visible, white space, and bytes from 0x80 */
	C_TARGET = 4, /* RFC 3986, 2: no quotes, no fragment */
	C_NAME = 8,   /* of a host */
};

extern const uint8_t http_classes[256];

static inline bool http_is(char c, int class)
{
	return http_classes[(unsigned char)c] & class;
}

/* The number that a hexadecimal digit stands for, or -1. */
static inline int http_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline bool http_all(struct span s, int class)
{
	size_t i = 0;

	while (i < s.len && http_is(s.at[i], class))
		i++;
	return i == s.len;
}
