/*
 * policy.h - what code inside the walls may ask of the kernel.
 *
 * Pure data. tools/gen-filters.c compiles it into filters.h while we build; nothing reads it
 * at run time, and a launch only hands the finished programs to the kernel.
 *
 * 1. A number that no row names fails with ENOSYS: a kernel younger than this table opens
 *    nothing, and programs take the fallback that they have for older kernels.
 * 2. A comparison is of the low 32 bits of an argument, because that is all that the kernel looks
 *    at for these calls. A pointer is compared with NULL by both halves, with HIGH().
 * 3. Only the native ABI exists; a call by any other (i386, x32) kills the process.
 * 4. tests/unit/golden-syscalls.inc repeats the verdict of every number, so that opening one
 *    takes two edits.
 */
#pragma once

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/policy.h"
#include "os/proc.h"

enum policy_args_id {
	ARGS_CLONE,
	ARGS_FCNTL,
	ARGS_CLONE3,
	ARGS_SETNS,
	ARGS_SOCKET,
	ARGS_SOCKET_NETLINK,
	ARGS_SOCKET_INET,
	ARGS_SOCKET_STREAM,
	ARGS_SOCKET_DGRAM,
	ARGS_SOCKETPAIR,
	ARGS_SETSOCKOPT,
	ARGS_SETSOCKOPT_SOCKET,
	ARGS_SETSOCKOPT_IP,
	ARGS_SETSOCKOPT_IPV6,
	ARGS_SETSOCKOPT_TCP,
	ARGS_SENDTO,
	ARGS_SENDMSG,
	ARGS_IOCTL,
	ARGS_IOCTL_CONSOLE,
	ARGS_IOCTL_LINK,
	ARGS_MKNOD,
	ARGS_MKNODAT,
	ARGS_PERSONALITY,
	ARGS_PRCTL,
	ARGS_PRCTL_SECCOMP,
	ARGS_SECCOMP,
	ARGS_SCHEDULER,
	ARGS_SETRLIMIT,
	ARGS_PRLIMIT,
	ARGS_PRLIMIT_CORE,
	ARGS_PRLIMIT_CORE_HIGH,
	ARGS_PRLIMIT_CORE_SET,
	ARGS_PRLIMIT_CORE_SET_HIGH,
	ARGS_INIT_WRITE,
	ARGS_COUNT,
};

/* clang-format off */

/* Everything that the user starts, in every profile. */
static const struct policy_group policy_default[] = {
	{ ALLOW, "bytes of open files",
	  "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek "
	  "sendfile copy_file_range splice tee fadvise64 readahead fallocate ftruncate flock "
	  "fsync fdatasync sync syncfs sync_file_range" },
	{ ALLOW, "descriptors",
	  "open openat openat2 creat close close_range dup dup2 dup3 pipe pipe2 memfd_create" },
	{ ALLOW, "names and what stat tells",
	  "stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 "
	  "readlink readlinkat getdents getdents64 getcwd chdir fchdir umask mkdir mkdirat "
	  "rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat "
	  "truncate utime utimes futimesat utimensat" },
	{ ALLOW, "owners and modes: the file's owner and the capabilities decide",
	  "chmod fchmod fchmodat fchmodat2@452 chown fchown lchown fchownat" },
	{ ALLOW, "extended attributes",
	  "setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr "
	  "flistxattr removexattr lremovexattr fremovexattr setxattrat@463 getxattrat@464 "
	  "listxattrat@465 removexattrat@466" },
	{ ALLOW, "watching files: editors, build tools, test runners",
	  "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch" },
	{ ALLOW, "waiting for descriptors",
	  "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait "
	  "epoll_pwait epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create "
	  "timerfd_settime timerfd_gettime" },
	{ ALLOW, "memory of the caller's own",
	  "brk mmap munmap mremap mprotect madvise msync mincore mlock mlock2 munlock mlockall "
	  "munlockall pkey_alloc pkey_free pkey_mprotect membarrier mseal@462 "
	  "map_shadow_stack@453 get_mempolicy" },
	{ ALLOW, "processes and threads",
	  "fork vfork exit exit_group wait4 waitid set_tid_address set_robust_list "
	  "get_robust_list futex rseq arch_prctl getpid getppid gettid setpgid getpgid "
	  "getpgrp setsid getsid restart_syscall" },
	{ ALLOW, "signals; the pid namespace bounds whom they reach",
	  "kill tkill tgkill pidfd_open pidfd_send_signal rt_sigaction rt_sigprocmask "
	  "rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo "
	  "rt_sigsuspend sigaltstack pause" },
	{ ALLOW, "ids: all lie in the user namespace, and changing them takes capabilities in it",
	  "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid "
	  "setregid setresuid setresgid setfsuid setfsgid setgroups capget capset" },
	{ ALLOW, "scheduling: a process only steps back, os_reset_limits() bounds priorities",
	  "sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam "
	  "sched_getscheduler sched_getattr sched_get_priority_max sched_get_priority_min "
	  "sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set getcpu" },
	{ ALLOW, "limits and accounts of the caller's own",
	  "getrlimit getrusage times sysinfo uname" },
	{ ALLOW, "reading clocks, sleeping, timers",
	  "time gettimeofday clock_gettime clock_getres nanosleep clock_nanosleep alarm "
	  "getitimer setitimer timer_create timer_settime timer_gettime timer_getoverrun "
	  "timer_delete" },
	{ ALLOW, "random bytes",
	  "getrandom" },
	{ ALLOW, "sockets once they exist; the network namespace bounds whom they reach",
	  "connect bind listen accept accept4 shutdown getsockname getpeername getsockopt "
	  "recvfrom recvmsg recvmmsg" },
	{ ALLOW, "System V and POSIX queues, semaphores, shared memory; the ipc namespace is ours",
	  "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl "
	  "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr" },
	{ ALLOW, "debuggers; the pid namespace bounds whom they reach, and init is not dumpable",
	  "ptrace" },
	{ ALLOW, "walls that the payload builds for itself only take away",
	  "landlock_create_ruleset landlock_add_rule landlock_restrict_self" },

	{ NOTIFY, "program starts are told to the monitor, which lets them go on",
	  "execve execveat" },

	{ BY_ARGS(ARGS_CLONE), "threads and children, no namespaces", "clone" },
	{ BY_ARGS(ARGS_FCNTL), "not what makes others wait or tells of them", "fcntl" },
	{ BY_ARGS(ARGS_SOCKET), "four families", "socket" },
	{ BY_ARGS(ARGS_SOCKETPAIR), "one family", "socketpair" },
	{ BY_ARGS(ARGS_SETSOCKOPT), "not what redirects traffic or loads code", "setsockopt" },
	{ BY_ARGS(ARGS_SENDTO), "without flags that few programs and many exploits use",
	  "sendto sendmmsg" },
	{ BY_ARGS(ARGS_SENDMSG), "the same", "sendmsg" },
	{ BY_ARGS(ARGS_SECCOMP), "the monitor counts filters", "seccomp" },
	{ BY_ARGS(ARGS_PRCTL), "the same; not what binds threads to a core", "prctl" },
	{ BY_ARGS(ARGS_SCHEDULER), "no class that comes before all others", "sched_setscheduler" },
	{ BY_ARGS(ARGS_SETRLIMIT), "not whether a crash is dumped", "setrlimit" },
	{ BY_ARGS(ARGS_PRLIMIT), "the same; asking is fine", "prlimit64" },
	{ BY_ARGS(ARGS_IOCTL), "not what types into a terminal, drives a console or loads modules",
	  "ioctl" },
	{ BY_ARGS(ARGS_MKNOD), "no devices", "mknod" },
	{ BY_ARGS(ARGS_MKNODAT), "no devices", "mknodat" },
	{ BY_ARGS(ARGS_PERSONALITY), "not what weakens the address space", "personality" },

	{ DENY, "mounts, by the old calls and by the new",
	  "mount umount2 pivot_root chroot open_tree open_tree_attr@467 move_mount fsopen "
	  "fsconfig fsmount fspick mount_setattr statmount@457 listmount@458" },
	{ DENY, "namespaces",
	  "unshare" },
	{ BY_ARGS(ARGS_SETNS), "the same", "setns" },
	{ DENY, "code in the kernel, and kernels",
	  "bpf init_module finit_module delete_module kexec_load kexec_file_load" },
	{ DENY, "the machine: power, swap, accounts, quotas, ports, log, names, terminals",
	  "reboot swapon swapoff acct quotactl quotactl_fd iopl ioperm syslog sethostname "
	  "setdomainname vhangup nfsservctl lookup_dcookie" },
	{ DENY, "setting clocks; whether adjtimex sets or reads stands behind a pointer",
	  "settimeofday clock_settime clock_adjtime adjtimex" },
	{ DENY, "keyrings are not bound to one sandbox",
	  "add_key request_key keyctl" },
	{ DENY, "files by handle go around the mount tree",
	  "name_to_handle_at open_by_handle_at" },
	{ DENY, "memory and descriptors of another process; debuggers fall back to ptrace",
	  "process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp" },
	{ DENY, "placement of memory on the machine's nodes",
	  "mbind move_pages migrate_pages set_mempolicy set_mempolicy_home_node" },
	{ DENY, "rarely needed, often the way in",
	  "userfaultfd perf_event_open fanotify_init fanotify_mark vmsplice memfd_secret "
	  "modify_ldt uselib" },

	{ BY_ARGS(ARGS_CLONE3), "its flags stand behind a pointer; libraries then use clone",
	  "clone3" },
	{ ABSENT, "its class stands behind a pointer; programs then use sched_setscheduler",
	  "sched_setattr" },
	{ ABSENT, "does the work of other calls where no filter sees it; libraries then use epoll",
	  "io_uring_setup io_uring_enter io_uring_register" },
};

/* Pid 1 of the sandbox: starts, reaps, ends. Loaded just before its own program is executed. */
static const struct policy_group policy_init[] = {
	{ ALLOW, "the start of a static program",
	  "execve execveat brk mmap munmap mprotect arch_prctl set_tid_address set_robust_list "
	  "rseq prlimit64 readlink readlinkat getrandom fstat newfstatat" },
	{ ALLOW, "reaping",
	  "wait4 waitid rt_sigaction rt_sigprocmask rt_sigtimedwait rt_sigreturn pause "
	  "restart_syscall getpid prctl close close_range exit exit_group" },
	{ BY_ARGS(ARGS_INIT_WRITE), "a last word on stderr", "write" },
};

/* Younger than the headers of some compilers. */
#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#define SO_ATTACH_REUSEPORT_EBPF 52
#endif
#ifndef TCP_AO_ADD_KEY
#define TCP_AO_ADD_KEY 38 /* Linux 6.7 */
#define TCP_AO_DEL_KEY 39
#define TCP_AO_INFO 40
#endif
#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

#define NEW_NAMESPACE                                                                              \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET) /* CLONE_NEWTIME is part of the exit signal here */

static const struct policy_args policy_args[] = {
	/* The flags are the first argument on x86-64 and arm64. */
	[ARGS_CLONE] = { 0, NEW_NAMESPACE, {
		{ 0, ALLOW },
	}, DENY },

	/* A lease makes whoever opens the file wait, a notice tells of him. As on a file system that
	 * has neither, fcntl(2). */
	[ARGS_FCNTL] = { 1, LOW32, {
		{ F_SETLEASE, FAIL(EINVAL) },
		{ F_NOTIFY, FAIL(EINVAL) },
	}, ALLOW },

	/* The nursery bears commands by the one, and they enter their cgroup's namespace by the other,
	 * before they execute: monitor/nests.c knows them, and refuses everybody else as below. */
	[ARGS_CLONE3] = { 1, LOW32, {
		{ CLONE_MARK, ASK },
	}, ABSENT },
	[ARGS_SETNS] = { 1, LOW32, {
		{ CLONE_NEWCGROUP, ASK },
	}, DENY },

	[ARGS_SOCKET] = { 0, LOW32, {
		{ AF_UNIX, ALLOW },
		{ AF_NETLINK, BY_ARGS(ARGS_SOCKET_NETLINK) },
		{ AF_INET, BY_ARGS(ARGS_SOCKET_INET) },
		{ AF_INET6, BY_ARGS(ARGS_SOCKET_INET) },
	}, FAIL(EAFNOSUPPORT) },
	[ARGS_SOCKET_NETLINK] = { 2, LOW32, {
		{ NETLINK_ROUTE, ALLOW },
	}, FAIL(EAFNOSUPPORT) },
	[ARGS_SOCKET_INET] = { 1, SOCK_KIND, {
		{ SOCK_STREAM, BY_ARGS(ARGS_SOCKET_STREAM) },
		{ SOCK_DGRAM, BY_ARGS(ARGS_SOCKET_DGRAM) },
		{ SOCK_RAW, DENY },
		{ SOCK_PACKET, DENY }, /* the kernel reads it as AF_PACKET */
	}, FAIL(EPROTONOSUPPORT) },
	[ARGS_SOCKET_STREAM] = { 2, LOW32, {
		{ 0, ALLOW },
		{ IPPROTO_TCP, ALLOW },
	}, FAIL(EPROTONOSUPPORT) },
	[ARGS_SOCKET_DGRAM] = { 2, LOW32, {
		{ 0, ALLOW },
		{ IPPROTO_UDP, ALLOW },
		{ IPPROTO_ICMP, DENY },
		{ IPPROTO_ICMPV6, DENY },
	}, FAIL(EPROTONOSUPPORT) },
	[ARGS_SOCKETPAIR] = { 0, LOW32, {
		{ AF_UNIX, ALLOW },
	}, FAIL(EAFNOSUPPORT) },

	[ARGS_SETSOCKOPT] = { 1, LOW32, {
		{ SOL_SOCKET, BY_ARGS(ARGS_SETSOCKOPT_SOCKET) },
		{ IPPROTO_IP, BY_ARGS(ARGS_SETSOCKOPT_IP) },
		{ IPPROTO_IPV6, BY_ARGS(ARGS_SETSOCKOPT_IPV6) },
		{ IPPROTO_TCP, BY_ARGS(ARGS_SETSOCKOPT_TCP) },
	}, ALLOW },
	[ARGS_SETSOCKOPT_SOCKET] = { 2, LOW32, {
		{ SO_MARK, DENY },
		{ SO_BINDTODEVICE, DENY },
		{ SO_BINDTOIFINDEX, DENY },
		/* Programs of code inside that the kernel translates: their memory is one budget for
		 * the host, net.core.bpf_jit_limit, and freeing many at once stops some kernels. */
		{ SO_ATTACH_FILTER, DENY },
		{ SO_ATTACH_BPF, DENY },
		{ SO_ATTACH_REUSEPORT_CBPF, DENY },
		{ SO_ATTACH_REUSEPORT_EBPF, DENY },
		/* A socket that lingers makes every process that closes its last descriptor wait, the
		 * monitor and the kernel's own collector included. It is not set, and programs that
		 * ask for it go on: their sockets close in the background, as all others do. */
		{ SO_LINGER, FAIL(0) },
		{ SO_ZEROCOPY, FAIL(EOPNOTSUPP) },
	}, ALLOW },
	[ARGS_SETSOCKOPT_IP] = { 2, LOW32, {
		{ IP_TRANSPARENT, DENY },
	}, ALLOW },
	[ARGS_SETSOCKOPT_IPV6] = { 2, LOW32, {
		{ IPV6_TRANSPARENT, DENY },
	}, ALLOW },
	[ARGS_SETSOCKOPT_TCP] = { 2, LOW32, {
		{ TCP_ULP, DENY }, /* kernel TLS */
		/* Signed segments load the algorithm that the caller names. */
		{ TCP_MD5SIG, DENY },
		{ TCP_MD5SIG_EXT, DENY },
		{ TCP_AO_ADD_KEY, DENY },
		{ TCP_AO_DEL_KEY, DENY },
		{ TCP_AO_INFO, DENY },
	}, ALLOW },

	/* What a kernel without urgent data on unix sockets says. */
	[ARGS_SENDTO] = { 3, MSG_OOB | MSG_ZEROCOPY, {
		{ 0, ALLOW },
	}, FAIL(EOPNOTSUPP) },
	[ARGS_SENDMSG] = { 2, MSG_OOB | MSG_ZEROCOPY, {
		{ 0, ALLOW },
	}, FAIL(EOPNOTSUPP) },

	[ARGS_IOCTL] = { 1, LOW32, {
		{ TIOCSTI, DENY },
		{ TIOCLINUX, DENY },
		{ TIOCCONS, DENY },
		{ TIOCSETD, DENY }, /* line disciplines load modules */
	}, BY_ARGS(ARGS_IOCTL_CONSOLE) },
	[ARGS_IOCTL_CONSOLE] = { 1, LOW32 & ~0xffu, {
		{ 0x4b00, DENY }, /* KD*, linux/kd.h */
		{ 0x5600, DENY }, /* VT_*, linux/vt.h */
	}, BY_ARGS(ARGS_IOCTL_LINK) },
	/* The kernel asks for the module first and looks at the caller's rights afterwards. Two numbers
	 * each. */
	[ARGS_IOCTL_LINK] = { 1, LOW32 & ~1u, {
		{ SIOCGIFBR, DENY },   /* and SIOCSIFBR: bridge */
		{ SIOCADDDLCI, DENY }, /* and SIOCDELDLCI: dlci, until Linux 5.13 */
		{ SIOCGIFVLAN, DENY }, /* and SIOCSIFVLAN: 8021q */
		{ SIOCBRADDBR, DENY }, /* and SIOCBRDELBR: bridge */
		{ SIOCBRADDIF, DENY }, /* and SIOCBRDELIF: the same */
	}, ALLOW },

	[ARGS_MKNOD] = { 1, S_IFMT, {
		{ 0, ALLOW }, /* the same as S_IFREG */
		{ S_IFREG, ALLOW },
		{ S_IFIFO, ALLOW },
		{ S_IFSOCK, ALLOW },
	}, DENY },
	[ARGS_MKNODAT] = { 2, S_IFMT, {
		{ 0, ALLOW },
		{ S_IFREG, ALLOW },
		{ S_IFIFO, ALLOW },
		{ S_IFSOCK, ALLOW },
	}, DENY },

	[ARGS_PERSONALITY] = { 0, LOW32, {
		{ PER_LINUX, ALLOW },
		{ PER_LINUX32, ALLOW },
		{ UNAME26, ALLOW },
		{ UNAME26 | PER_LINUX32, ALLOW },
		{ ADDR_NO_RANDOMIZE, ALLOW }, /* gdb */
		{ UINT32_MAX, ALLOW },        /* asks for the present one */
	}, DENY },

	[ARGS_PRCTL] = { 0, LOW32, {
		{ PR_SET_SECCOMP, BY_ARGS(ARGS_PRCTL_SECCOMP) },
		{ PR_SCHED_CORE, FAIL(EINVAL) }, /* what a kernel without it says */
	}, ALLOW },
	[ARGS_PRCTL_SECCOMP] = { 1, LOW32, {
		{ SECCOMP_MODE_FILTER, NOTIFY },
	}, ALLOW },
	[ARGS_SECCOMP] = { 0, LOW32, {
		{ SECCOMP_SET_MODE_FILTER, NOTIFY },
	}, ALLOW },
	[ARGS_SCHEDULER] = { 1, LOW32 & ~(uint32_t)SCHED_RESET_ON_FORK, {
		{ SCHED_NORMAL, ALLOW },
		{ SCHED_BATCH, ALLOW },
		{ SCHED_IDLE, ALLOW },
	}, DENY },

	/* A core limit of 1 is what keeps the kernel from starting a core_pattern that is a program;
	 * with 0 it starts that (core(5)). Programs with secrets set 0 and give up if they cannot, so
	 * they are told that they could. */
	[ARGS_SETRLIMIT] = { 0, LOW32, {
		{ RLIMIT_CORE, FAIL(0) },
	}, ALLOW },
	[ARGS_PRLIMIT] = { 1, LOW32, {
		{ RLIMIT_CORE, BY_ARGS(ARGS_PRLIMIT_CORE) },
	}, ALLOW },
	[ARGS_PRLIMIT_CORE] = { 2, LOW32, {
		{ 0, BY_ARGS(ARGS_PRLIMIT_CORE_HIGH) },
	}, BY_ARGS(ARGS_PRLIMIT_CORE_SET) },
	[ARGS_PRLIMIT_CORE_HIGH] = { HIGH(2), LOW32, {
		{ 0, ALLOW }, /* no new limit: the caller asks for the present one */
	}, BY_ARGS(ARGS_PRLIMIT_CORE_SET) },
	[ARGS_PRLIMIT_CORE_SET] = { 3, LOW32, {
		{ 0, BY_ARGS(ARGS_PRLIMIT_CORE_SET_HIGH) },
	}, DENY }, /* the old limit, which the caller asks for too, would not be written */
	[ARGS_PRLIMIT_CORE_SET_HIGH] = { HIGH(3), LOW32, {
		{ 0, FAIL(0) },
	}, DENY },

	[ARGS_INIT_WRITE] = { 0, LOW32, {
		{ STDERR_FILENO, ALLOW },
	}, DENY },
};
/* clang-format on */

_Static_assert(sizeof(policy_args) / sizeof(policy_args[0]) == ARGS_COUNT, "a switch is missing");
