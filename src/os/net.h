/*
 * net.h - stream sockets of a server. Value or -errno; nothing here blocks.
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/base.h"

union os_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

union os_address os_loopback(bool is_v6, uint16_t port);
/* Listens; an IPv6 address takes no IPv4. What is accepted does not delay small packets, and
 * notices a host that vanished. */
int os_listen_tcp(const union os_address *a);
int os_port(int fd); /* that it is bound to */
int os_accept(int fd);
int os_accept_from(int fd, union os_address *peer);
/* A connection that is begun: the socket; it is writable when it is there, or SO_ERROR says why
 * not. Small packets are not delayed, and a host that vanished is noticed. */
int os_connect_tcp(const union os_address *a);
int os_peer_cred(int fd, struct ucred *out); /* AF_UNIX */
/* What there is now, bytes only: of any peer. -EBADMSG when descriptors came along; the kernel has
 * closed them, and nobody of ours sends any where this is used (os/pulse.h). */
int os_recv_some(int fd, void *buf, size_t size);
int os_peek(int fd, void *buf, size_t size); /* the bytes stay where they are */
/* At most `n` bytes from or to a pipe without a copy; `to` or `from` is one. 0 at the end. */
int os_splice(int from, int to, size_t n);
int os_sendv(int fd, struct iovec *iov, size_t n); /* no SIGPIPE */
int os_unsent(int fd);                             /* bytes that the peer has not taken */
int os_shut_write(int fd);
/* Addresses of this host's interfaces; how many, at most `max`. */
int os_own_addresses(union os_address *out, size_t max);
/* A socket that tells when an address comes or goes; -errno. It does not block. */
int os_address_events(void) MUST_USE;
/* All of them once more, as if they came. 0 or -errno. */
int os_address_list(int fd);
typedef void os_address_fn(void *arg, const union os_address *a, bool is_there);
/* One batch of what it tells: 0 or -errno; -ENOBUFS: some were lost. */
int os_address_next(int fd, os_address_fn *fn, void *arg);
int os_reset_on_close(int fd); /* TCP: what was not sent is dropped, and the peer is told so */
