/*
 * hostname.h - one strict reading of the names of hosts, for all who get one: rules, DNS, SNI,
 * Host.
 *
 * A name has a length and no terminator: a NUL inside is a byte like another, and refused. Letters,
 * digits, `-` and `_` in labels of 1 to 63 bytes that neither begin nor end with `-`; 253 bytes in
 * all; lower case; one trailing dot is dropped. International names only as A-labels (xn--). What
 * some C library takes for an address is never a name: the last label of every such spelling is a
 * number (decimal, octal or hexadecimal).
 */
#pragma once

#include "wire/gate.h"
#include "wire/span.h"

/* True when the bytes are a name; `out` is then its canonical form, else it is not touched. */
bool hostname_read(const void *bytes, size_t n, char out[GATE_NAME_SIZE]);

/* True for an address in any spelling: what inet_aton() takes (127.1, 0x7f.1, 017700000001, with a
 * trailing dot too), IPv6 with or without brackets. No name is a literal. */
bool hostname_is_literal(const void *bytes, size_t n);

/* A name, and perhaps a port: "example.org", "example.org:8443". */
bool hostname_is_place(const char *text);

/* One label of a name: canonical already, without a dot. */
bool hostname_is_label(const char *label, size_t n);
/* A last label that makes the whole an address. */
bool hostname_is_number(const char *label, size_t n);

/* What a client says it talks to: SNI, Host or :authority. */
enum said_kind {
	SAID_NOTHING,
	SAID_NAME,
	SAID_ADDRESS, /* a literal: for whoever was dialled by its address, that is as good as
	                 nothing */
	SAID_BAD,
};

struct said {
	enum said_kind kind;
	char name[GATE_NAME_SIZE]; /* SAID_NAME: canonical */
	uint16_t port;             /* of a Host; 0: none was given */
};

struct said said_sni(const void *bytes, size_t n); /* n 0: there was no SNI */
/* As http_head has it, already without the port; port 0: none was given. */
struct said said_host(struct span host, uint16_t port);
