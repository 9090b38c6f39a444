/*
 * policy.h - what the vault may ask of the kernel once its workspace is open. Data for
 * tools/gen-filters.c, like that of os/policy.h's other users.
 *
 * It mounts, so the filter cannot make it harmless; it takes away what has nothing to do with
 * files: no program is started, no process but itself is touched, no socket is made, no namespace
 * entered.
 */
#pragma once

#include <linux/fs.h>
#include <signal.h>
#include <sys/prctl.h>

#include "os/policy.h"

enum policy_vault_args_id {
	VAULT_ARGS_IOCTL,
	VAULT_ARGS_COUNT,
};

/* clang-format off */
static const struct policy_group policy_vault[] = {
	{ ALLOW, "names",
	  "openat openat2 close close_range newfstatat fstat statx statfs fstatfs getdents64 readlinkat mkdirat "
	  "unlinkat renameat renameat2 linkat symlinkat mknodat faccessat faccessat2" },
	{ ALLOW, "contents",
	  "read write readv writev pread64 pwrite64 preadv pwritev lseek ftruncate fallocate fsync "
	  "fdatasync syncfs sync_file_range" },
	{ ALLOW, "attributes",
	  "fchmod fchmodat fchown fchownat utimensat fgetxattr fsetxattr flistxattr fremovexattr" },
	{ ALLOW, "the workspace, and layers of it",
	  "mount umount2 open_tree move_mount mount_setattr fspick fsconfig fsopen fsmount" },
	{ ALLOW, "an id of the workspace", "setfsuid setfsgid" },
	{ BY_ARGS(VAULT_ARGS_IOCTL), "room goes back to the host", "ioctl" },
	{ ALLOW, "locks and leases", "fcntl" },
	{ ALLOW, "packets", "recvmsg sendmsg accept4 getsockopt" },
	{ ALLOW, "waiting",
	  "epoll_wait epoll_pwait epoll_ctl timerfd_settime clock_nanosleep nanosleep restart_syscall" },
	{ ALLOW, "memory of its own", "brk mmap munmap mremap mprotect madvise" },
	{ ALLOW, "itself, and an end",
	  "getpid gettid getuid geteuid getgid getegid clock_gettime gettimeofday getrandom futex "
	  "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack tgkill exit exit_group" },
};

static const struct policy_args policy_vault_args[] = {
	[VAULT_ARGS_IOCTL] = { 1, LOW32, {
		{ (uint32_t)FITRIM, ALLOW },
	}, DENY },
};
/* clang-format on */

_Static_assert(sizeof(policy_vault_args) / sizeof(policy_vault_args[0]) == VAULT_ARGS_COUNT,
               "a switch is missing");
