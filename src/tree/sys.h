/*
 * sys.h - the kernel calls that only the tree worker makes. Value or -errno; O_CLOEXEC always.
 */
#pragma once

#include <poll.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/base.h"
#include "os/net.h"
#include "os/node.h"

int sys_fstat(int fd, struct stat *st);

/* Interrupted calls are made again. */
ssize_t sys_pread(int fd, void *buf, size_t n, uint64_t at);
ssize_t sys_write(int fd, const void *buf, size_t n);
ssize_t sys_copy_range(int from_fd, int to_fd, size_t n); /* from and to where the files stand */

int sys_set_nonblocking(int fd);
/* Never waits: -EAGAIN. */
int sys_send_now(int fd, const void *bytes, size_t n);
int sys_recv_now(int fd, void *buf, size_t size);
/* Waits until one of them is ready, or for `wait_ms` (-1: for ever); `fd` for writing or reading,
 * `socket_fd` always for reading. Returns the bits below, 0 when the time is over. */
enum { SYS_FD_READY = 1, SYS_SOCKET_READY = 2 };
int sys_wait(int fd, short events, int socket_fd, int wait_ms);

int sys_poll(struct pollfd *fds, size_t n, int wait_ms); /* interrupted: nothing is ready */

/* A TCP socket that does not block, and whose connection is on its way. */
int sys_connect(const union os_address *a);
int sys_socket_error(int fd); /* of that connection: 0 or -errno */

int sys_inotify_init(void);
int sys_inotify_add_here(int fd, uint32_t mask); /* watches the current directory */
int sys_inotify_remove(int fd, int watch);

uint64_t sys_now_ms(void);
uint64_t sys_random(void);
