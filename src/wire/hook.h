/*
 * hook.h - what the daemon and the sender of webhooks (caisson-hook) say to each other.
 *
 * One message is one packet of a SOCK_SEQPACKET socket. The daemon says what is to be sent, the
 * sender how that ended; after a new connection the daemon says again what has no end yet.
 */
#pragma once

#include "base/base.h"

#define HOOK_ID_SIZE 64
#define HOOK_BODY_MAX (48u << 10)

enum hook_type { HOOK_SEND = 1, HOOK_END };

struct hook_send {
	uint32_t type, zero;
	uint64_t num;
	char id[HOOK_ID_SIZE]; /* the same when it is sent again: [A-Za-z0-9_.] */
	char body[];           /* JSON, with its NUL as the last byte of the packet */
};

struct hook_end {
	uint32_t type;
	uint32_t is_given_up;
	uint64_t num;
	uint32_t status; /* of the receiver; 0: it did not answer */
	uint32_t tries;
};

union hook_packet {
	struct hook_send send;
	char bytes[sizeof(struct hook_send) + HOOK_BODY_MAX];
};

bool hook_send_check(const struct hook_send *s, size_t n);
bool hook_end_check(const struct hook_end *e, size_t n);
