/*
 * lingering.h - a descriptor whose close sleeps: a TCP socket with SO_LINGER and more in its buffer
 * than its peer ever takes. Sent along and closed here, its last reference is in the message: the
 * process in whose context the kernel drops the message sleeps for `seconds`.
 */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include "base/fd.h"
#include "os/sock.h"
#include "test.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum { LINGER_S = 4, LINGER_MS = LINGER_S * 1000, LINGER_SOON_MS = 1000 };

static int linger_peers[16]; /* of the sockets: open, and read by nobody */
static size_t linger_n;

static inline uint64_t linger_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline int linger_make(void)
{
	static const char zeros[1 << 16];
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger on = { .l_onoff = 1, .l_linger = LINGER_S };
	socklen_t n = sizeof a;
	AUTO(fd_close) int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(bind(door, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_INT(listen(door, 1), 0);
	CHECK_INT(getsockname(door, (struct sockaddr *)&a, &n), 0);
	CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	CHECK(linger_n < COUNT(linger_peers));
	linger_peers[linger_n] = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	CHECK(linger_peers[linger_n++] >= 0);
	while (send(fd, zeros, sizeof zeros, MSG_DONTWAIT) > 0)
		continue;
	CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof on), 0);
	return fd;
}

/* 1: sent along with `bytes`, 0: this kernel refuses it for the receiver's sake. */
static inline bool linger_send(int to, const void *bytes, size_t n)
{
	int fd = linger_make();
	int r = os_send(to, bytes, n, &fd, 1);

	if (r == -EPERM) { /* its close is our own affair then */
		const struct linger off = { 0 };

		CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof off), 0);
	} else {
		CHECK_INT(r, (long long)n);
	}
	fd_close(&fd);
	return r >= 0;
}

/* As on a kernel before 6.16: the receiver takes what comes. */
static inline void linger_allow(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof on);
}
