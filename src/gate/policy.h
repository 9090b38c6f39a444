/*
 * policy.h - what the gate may ask of the kernel. Data for tools/gen-filters.c, like that of
 * os/policy.h's other user, the engine.
 *
 * The master's program is loaded at its start, a child's own on top of it: a child can do what both
 * allow. So a child starts no process and no program, changes nothing about itself, makes no socket
 * but those of TCP and DNS, and never binds or listens: its listeners were made inside the sandbox.
 */
#pragma once

#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "os/policy.h"

enum policy_gate_args_id {
	GATE_ARGS_CLONE,
	GATE_ARGS_SOCKET,
	GATE_ARGS_SOCKETPAIR,
	GATE_ARGS_SOCKET_MASTER,
	GATE_ARGS_SOCKET_NETLINK,
	GATE_ARGS_SOCKET_INET,
	GATE_ARGS_SETSOCKOPT,
	GATE_ARGS_SETSOCKOPT_SOCKET,
	GATE_ARGS_SETSOCKOPT_TCP,
	GATE_ARGS_PRCTL,
	GATE_ARGS_COUNT,
};

/* clang-format off */

#define POLICY_GATE_BOTH                                                                           \
	{ ALLOW, "bytes and descriptors",                                                          \
	  "read write readv writev pread64 lseek close close_range fcntl fstat newfstatat statx "  \
	  "pipe2 splice" },                                                                        \
	{ ALLOW, "the table of names gets its size", "ftruncate" },                                \
	{ ALLOW, "the few files that Landlock leaves",                                             \
	  "openat readlink readlinkat access faccessat faccessat2" },                              \
	{ ALLOW, "waiting",                                                                        \
	  "epoll_create1 epoll_ctl epoll_wait epoll_pwait poll timerfd_create timerfd_settime "    \
	  "setitimer" },                                                                           \
	{ ALLOW, "sockets once they exist",                                                        \
	  "connect accept4 shutdown getsockname getpeername getsockopt sendto recvfrom sendmsg "   \
	  "recvmsg" },                                                                             \
	{ ALLOW, "memory of its own",                                                              \
	  "brk mmap munmap mremap mprotect madvise mlock" },                                       \
	{ ALLOW, "itself: identity, clocks, locks of libraries, an end",                           \
	  "getpid gettid getuid geteuid getgid getegid uname sysinfo clock_gettime gettimeofday "  \
	  "clock_getres getrandom futex rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack tgkill " \
	  "restart_syscall exit exit_group" },                                                     \
	{ BY_ARGS(GATE_ARGS_SETSOCKOPT), "what is named here", "setsockopt" }

static const struct policy_group policy_gate_master[] = {
	POLICY_GATE_BOTH,
	{ BY_ARGS(GATE_ARGS_SOCKET_MASTER), "which addresses this host has", "socket" },
	{ ALLOW, "the same", "bind" },
	{ BY_ARGS(GATE_ARGS_SOCKETPAIR), "of its children", "socketpair" },
	{ BY_ARGS(GATE_ARGS_CLONE), "children, no namespaces, no threads", "clone" },
	{ BY_ARGS(GATE_ARGS_PRCTL), "a child that ends with its master", "prctl" },
	{ ALLOW, "what a child does to itself before it serves",
	  "dup3 getppid prlimit64 set_robust_list rseq set_tid_address seccomp "
	  "landlock_create_ruleset landlock_add_rule landlock_restrict_self" },
};

static const struct policy_group policy_gate_child[] = {
	POLICY_GATE_BOTH,
	{ BY_ARGS(GATE_ARGS_SOCKET), "TCP and UDP", "socket" },
	{ BY_ARGS(GATE_ARGS_SOCKETPAIR), "streams to the package cache", "socketpair" },
};

static const struct policy_args policy_gate_args[] = {
	/* fork() of the C library and nothing else. */
	[GATE_ARGS_CLONE] = { 0, LOW32 & ~(uint32_t)(CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID), {
		{ SIGCHLD, ALLOW },
	}, DENY },
	[GATE_ARGS_SOCKET] = { 0, LOW32, {
		{ AF_INET, BY_ARGS(GATE_ARGS_SOCKET_INET) },
		{ AF_INET6, BY_ARGS(GATE_ARGS_SOCKET_INET) },
	}, FAIL(EAFNOSUPPORT) },
	[GATE_ARGS_SOCKETPAIR] = { 0, LOW32, {
		{ AF_UNIX, ALLOW },
	}, FAIL(EAFNOSUPPORT) },
	[GATE_ARGS_SOCKET_MASTER] = { 0, LOW32, {
		{ AF_INET, BY_ARGS(GATE_ARGS_SOCKET_INET) },
		{ AF_INET6, BY_ARGS(GATE_ARGS_SOCKET_INET) },
		{ AF_NETLINK, BY_ARGS(GATE_ARGS_SOCKET_NETLINK) },
	}, FAIL(EAFNOSUPPORT) },
	[GATE_ARGS_SOCKET_NETLINK] = { 2, LOW32, {
		{ NETLINK_ROUTE, ALLOW },
	}, FAIL(EAFNOSUPPORT) },
	[GATE_ARGS_SOCKET_INET] = { 1, SOCK_KIND, {
		{ SOCK_STREAM, ALLOW },
		{ SOCK_DGRAM, ALLOW },
	}, FAIL(EPROTONOSUPPORT) },
	[GATE_ARGS_SETSOCKOPT] = { 1, LOW32, {
		{ SOL_SOCKET, BY_ARGS(GATE_ARGS_SETSOCKOPT_SOCKET) },
		{ IPPROTO_TCP, BY_ARGS(GATE_ARGS_SETSOCKOPT_TCP) },
	}, DENY },
	[GATE_ARGS_SETSOCKOPT_SOCKET] = { 2, LOW32, {
		{ SO_LINGER, ALLOW },
		{ SO_KEEPALIVE, ALLOW },
		{ SO_RCVBUF, ALLOW },
		{ SO_SNDBUF, ALLOW },
	}, DENY },
	[GATE_ARGS_SETSOCKOPT_TCP] = { 2, LOW32, {
		{ TCP_NODELAY, ALLOW },
		{ TCP_KEEPIDLE, ALLOW },
		{ TCP_KEEPINTVL, ALLOW },
		{ TCP_KEEPCNT, ALLOW },
	}, DENY },
	[GATE_ARGS_PRCTL] = { 0, LOW32, {
		{ PR_SET_PDEATHSIG, ALLOW },
		{ PR_SET_NAME, ALLOW },
	}, DENY },
};
/* clang-format on */

_Static_assert(sizeof(policy_gate_args) / sizeof(policy_gate_args[0]) == GATE_ARGS_COUNT,
               "a switch is missing");
