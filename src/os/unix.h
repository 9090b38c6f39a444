/*
 * unix.h - listening AF_UNIX sockets, who is at the other end, shared locks. Value or -errno.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

#define OS_GROUPS_MAX 1024

struct os_peer {
	uid_t uid;
	gid_t gid;
	gid_t groups[OS_GROUPS_MAX];
	size_t n_groups;
};

/* A socket bound to dirfd/name, with this mode whatever the umask; it listens. */
int os_listen_at(int dirfd, const char *name, int type, mode_t mode);
/* Connects, or -ECONNREFUSED when nobody listens there. Not blocking. */
int os_connect_at(int dirfd, const char *name, int type);
/* Connects and hangs up: 0 when somebody listens there, -ECONNREFUSED when nobody does. */
int os_knock_at(int dirfd, const char *name, int type);
int os_socket_option(int fd, int option); /* an int of SOL_SOCKET */
/* Who connected; -E2BIG with more groups than there is room for. */
int os_peer(int fd, struct os_peer *out);
/* The file that the socket is bound to, as O_PATH; accepted ones have their listener's. Needs
 * CAP_NET_ADMIN. */
int os_bound_file(int fd);
int os_set_groups(const gid_t *groups, size_t n);
/* One datagram to $NOTIFY_SOCKET's address; a leading @ is the abstract namespace. */
int os_notify(const char *address, const char *text);

int os_lock_shared(int fd, off_t byte); /* open-file lock; waits while another excludes it */
/* The whole file, for this process: a child does not have it, not even until it closes the file.
 * Gone when the process closes any descriptor of it. -EAGAIN when another has it. */
int os_lock_process(int fd);
