/*
 * capture.h - sockets that stand for addresses which are not theirs: whom a captured connection
 * was meant for, which address a datagram was sent to. Value or -errno; nothing here blocks.
 */
#pragma once

#include "os/net.h"

/* SOCK_STREAM, which listens, or SOCK_DGRAM; for what nf_tables gives to it (`tproxy`), whatever
 * the address. Needs CAP_NET_ADMIN in its network. */
int os_capture(const union os_address *a, int type);

int os_deaf(void); /* in the place of one: nobody can reach it */

/* Where the client of an accepted connection wanted to go: with `tproxy` the socket's own end. */
int os_original_dst(int fd, union os_address *out);

struct os_datagram {
	union os_address from; /* who asked */
	union os_address to;   /* the address that was asked; the port is the socket's */
};

/* Length of the datagram, cut to `size`. */
int os_recv_datagram(int fd, void *buf, size_t size, struct os_datagram *out);
/* Back to where it came from, from the address that was asked. */
int os_answer_datagram(int fd, const void *bytes, size_t n, const struct os_datagram *d);
