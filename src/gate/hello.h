/*
 * hello.h - what a TLS client says first: whom it means, and which protocols it speaks.
 *
 * OpenSSL reads the hostile bytes, from memory: nothing is taken from a socket.
 */
#pragma once

#include "wire/hostname.h"

#define HELLO_BYTES_MAX                                                                            \
	(20u << 10) /* a record has 16 KiB; with post-quantum keys a hello has two */

enum hello_result { HELLO_OK, HELLO_MORE, HELLO_BAD };

struct hello {
	struct said sni;
	char alpn[GATE_ALPN_SIZE]; /* the first protocols that fit, with commas */
	bool has_http1;            /* offers http/1.1, or no protocol at all */
};

enum hello_result hello_read(const uint8_t *bytes, size_t n, struct hello *out);
