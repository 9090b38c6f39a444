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
int os_recv_some(int fd, void *buf, size_t size);
int os_peek(int fd, void *buf, size_t size); /* the bytes stay where they are */
/* At most `n` bytes from or to a pipe without a copy; `to` or `from` is one. 0 at the end. */
int os_splice(int from, int to, size_t n);
int os_sendv(int fd, struct iovec *iov, size_t n); /* no SIGPIPE */
int os_unsent(int fd);                             /* bytes that the peer has not taken */
int os_shut_write(int fd);
/* Addresses of this host's interfaces; how many, at most `max`. */
int os_own_addresses(union os_address *out, size_t max);
int os_reset_on_close(int fd); /* TCP: what was not sent is dropped, and the peer is told so */
