/*
 * proctcp.h - one line of /proc/net/tcp or /proc/net/tcp6 (proc(5)).
 */
#pragma once

#include "wire/span.h"

#define PROCTCP_LISTEN 0x0a /* TCP_LISTEN of the kernel */

struct proctcp {
	uint8_t address[16]; /* local; of IPv4 the first four */
	bool is_v6;
	uint16_t port;
	unsigned int state;
};

/* False for the line of titles, and for anything else that the kernel does not write. */
bool proctcp_line(struct span line, struct proctcp *out);
