/*
 * policy.h - what the writer of the ledger may ask of the kernel. Data for tools/gen-filters.c.
 *
 * Files of its own folder, packets of sockets that it is given, time. It starts nothing, makes no
 * socket, and removes only what it has said to remove.
 */
#pragma once

#include "os/policy.h"

/* clang-format off */
static const struct policy_group policy_ledger[] = {
	{ ALLOW, "names", "openat close fstat newfstatat statx getdents64 renameat unlinkat" },
	{ ALLOW, "contents",
	  "read write writev pread64 pwrite64 pwritev lseek ftruncate fdatasync" },
	{ ALLOW, "the lock, and flags of sockets", "fcntl" },
	{ ALLOW, "packets", "recvmsg sendmsg" },
	{ ALLOW, "waiting",
	  "epoll_create1 epoll_ctl epoll_wait epoll_pwait timerfd_create timerfd_settime "
	  "clock_nanosleep nanosleep restart_syscall" },
	{ ALLOW, "memory of its own", "brk mmap munmap mremap mprotect madvise" },
	{ ALLOW, "itself, and an end",
	  "getpid gettid getuid geteuid getgid getegid clock_gettime gettimeofday getrandom futex "
	  "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack tgkill exit exit_group" },
};
/* clang-format on */
