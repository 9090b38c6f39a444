/*
 * proxy.h - asks a company's proxy for a connection: HTTP CONNECT, or SOCKS5 (RFC 1928) without
 * credentials, with the name in it so that the proxy resolves.
 *
 * Not a byte behind the proxy's answer is taken: what follows is the server's.
 */
#pragma once

#include "io/loop.h"
#include "spec/rules.h"

#define PROXY_ANSWER_MAX 4096

struct proxy {
	struct watch watch; /* fd -1: it does nothing */
	struct loop *loop;
	bool is_socks;
	const char *name; /* NULL: the address */
	struct rules_addr to;
	void (*done)(void *owner, int fd); /* once; -1: the proxy refused. The socket is then the
	                                      owner's */
	void *owner;
	int step;
	uint8_t out[2 * GATE_NAME_SIZE + 64]; /* what is being said */
	size_t out_len, out_sent;
};

void proxy_start(struct proxy *p, int fd); /* takes the connected socket */
void proxy_stop(struct proxy *p);          /* closes it */
