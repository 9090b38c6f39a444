/*
 * address.h - where the daemon is: $CAISSON_SOCKET, $CAISSON_HOST, else the caller's own.
 */
#pragma once

#include <sys/un.h>

#include "base/err.h"
#include "base/limits.h"

struct address {
	bool is_tcp;
	bool is_named; /* somebody said it: then it is never started on demand */
	char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of the socket */
	char host[NAME_TEXT_MAX];                             /* TCP: host:port as it was said */
	const char *token;                                    /* TCP, or NULL */
	/* Of the caller's own daemon. */
	char run_dir[PATH_TEXT_MAX], state_dir[PATH_TEXT_MAX];
};

int address_find(struct address *a, struct err *e) MUST_USE;
/* A connected socket, which blocks; -1 with e->sys as connect(2) says it. */
int address_connect(const struct address *a, struct err *e) MUST_USE;
