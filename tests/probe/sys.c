/*
 * sys.c - SYS: the system calls that hostile code reaches for. The census is in census.c.
 *
 * Every control is harmless: wrong magic numbers, files that do not exist, values that are
 * already set. The permission check comes before those are looked at.
 */
#include "probe.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NONE "/nonexistent-caisson-probe"
#define AT(text) ((uintptr_t)(text))
#define NR_OPEN_TREE_ATTR 467 /* since Linux 6.15; the compiler's headers may be older */
#define BAD_FD ((uintptr_t)-1)

static long try_mount(void)
{
	return mount("caisson", "/tmp", "tmpfs", 0, NULL);
}

static long try_bind(void)
{
	return mount("/", "/mnt", NULL, MS_BIND, NULL);
}

static int sys_03(void)
{
	static struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY };
	static const struct try old[] = {
		{ "mount", try_mount, { 0 } },
		{ "mount-bind", try_bind, { 0 } },
	};
	static const struct raw raw[] = {
		{ "umount2", SYS_umount2, { AT(NONE), 0 }, { ENOENT } },
		{ "pivot_root", SYS_pivot_root, { AT(NONE), AT(NONE) }, { ENOENT } },
		{ "chroot", SYS_chroot, { AT("/") }, { 0 } },
		{ "open_tree",
		  SYS_open_tree,
		  { (uintptr_t)AT_FDCWD, AT("/"), OPEN_TREE_CLONE },
		  { 0 } },
		{ "fsopen", SYS_fsopen, { AT("tmpfs"), 0 }, { 0 } },
		{ "fsconfig", SYS_fsconfig, { BAD_FD, FSCONFIG_CMD_CREATE }, { EINVAL, EBADF } },
		{ "fsmount", SYS_fsmount, { BAD_FD, 0, 0 }, { EBADF } },
		{ "fspick", SYS_fspick, { (uintptr_t)AT_FDCWD, AT(NONE), 0 }, { ENOENT } },
		{ "move_mount",
		  SYS_move_mount,
		  { (uintptr_t)AT_FDCWD, AT(NONE), (uintptr_t)AT_FDCWD, AT(NONE), 0 },
		  { ENOENT } },
		{ "mount_setattr",
		  SYS_mount_setattr,
		  { (uintptr_t)AT_FDCWD, AT(NONE), 0, AT(&ro), sizeof ro },
		  { ENOENT } },
		{ "open_tree_attr",
		  NR_OPEN_TREE_ATTR,
		  { (uintptr_t)AT_FDCWD, AT("/"), OPEN_TREE_CLONE, AT(&ro), sizeof ro },
		  { 0 } },
	};

	attempt_all(old, COUNT(old));
	return attempt_raw(raw, COUNT(raw));
}

static const struct {
	const char *name;
	unsigned int flag;
} spaces[] = {
	{ "user", CLONE_NEWUSER },
	{ "mnt", CLONE_NEWNS },
	{ "pid", CLONE_NEWPID },
	{ "net", CLONE_NEWNET },
	{ "ipc", CLONE_NEWIPC },
	{ "uts", CLONE_NEWUTS },
	{ "cgroup", CLONE_NEWCGROUP },
	{ "time", CLONE_NEWTIME },
	{ "all",
	  CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS },
};
static unsigned int space_flag;
static const char *space_name;

static long try_unshare(void)
{
	return syscall(SYS_unshare, space_flag);
}

static long reap_clone(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid;
}

static long try_clone(void)
{
	return reap_clone(syscall(SYS_clone, space_flag | SIGCHLD, 0, 0, 0, 0));
}

static long try_clone3(void)
{
	struct clone_args a = { .flags = space_flag, .exit_signal = SIGCHLD };

	return reap_clone(syscall(SYS_clone3, &a, sizeof a));
}

/* As the process that bears commands says it (os/proc.h, CLONE_MARK). */
static long try_clone3_marked(void)
{
	union {
		struct clone_args a;
		char bytes[128];
	} u = { .a = { .flags = space_flag, .exit_signal = SIGCHLD } };

	return reap_clone(syscall(SYS_clone3, &u, sizeof u));
}

/* Into a namespace that we are in already: EINVAL for user and for time comes after the check. */
static long try_setns(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/ns/%s", space_name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : setns(fd, 0);
}

static long try_setns_named(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/ns/%s", space_name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : setns(fd, (int)space_flag);
}

static int sys_04(void)
{
	static const struct try ways[] = {
		{ "unshare", try_unshare, { 0 } },
		{ "clone", try_clone, { 0 } },
		{ "clone3", try_clone3, { 0 } },
		{ "clone3-marked", try_clone3_marked, { 0 } },
		{ "setns-named", try_setns_named, { EINVAL, EUSERS } },
		{ "setns", try_setns, { EINVAL, EUSERS } },
	};

	for (size_t i = 0; i < COUNT(spaces); i++) {
		for (size_t w = 0; w < COUNT(ways); w++) {
			struct try t = ways[w];
			char op[32];

			/* clone(2) has the exit signal where NEWTIME is; "all" is no file. */
			if ((t.fn == try_clone && spaces[i].flag == CLONE_NEWTIME) ||
			    ((t.fn == try_setns || t.fn == try_setns_named) &&
			     strcmp(spaces[i].name, "all") == 0))
				continue;
			space_flag = spaces[i].flag;
			space_name = spaces[i].name;
			snprintf(op, sizeof op, "%s-%s", ways[w].op, spaces[i].name);
			t.op = op;
			attempt_forked(&t);
		}
	}
	return 0;
}

static int sys_05(void)
{
	static union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};
	static struct bpf_insn answer_zero[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	static union bpf_attr program = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		                          .insns = AT(answer_zero),
		                          .insn_cnt = COUNT(answer_zero),
		                          .license = AT("GPL") };
	static union bpf_attr none;
	static const struct raw raw[] = {
		{ "map-create", SYS_bpf, { BPF_MAP_CREATE, AT(&map), sizeof map }, { 0 } },
		{ "prog-load", SYS_bpf, { BPF_PROG_LOAD, AT(&program), sizeof program }, { 0 } },
		{ "obj-get", SYS_bpf, { BPF_OBJ_GET, AT(&none), sizeof none }, { EFAULT, ENOENT } },
		{ "btf-load", SYS_bpf, { BPF_BTF_LOAD, AT(&none), sizeof none }, { EINVAL } },
		{ "prog-next-id",
		  SYS_bpf,
		  { BPF_PROG_GET_NEXT_ID, AT(&none), sizeof none },
		  { ENOENT } },
	};

	return attempt_raw(raw, COUNT(raw));
}

static int sys_06(void)
{
	static struct io_uring_params params;
	static const struct raw raw[] = {
		{ "io_uring_setup", SYS_io_uring_setup, { 1, AT(&params) }, { 0 } },
		{ "io_uring_enter", SYS_io_uring_enter, { BAD_FD, 0, 0, 0, 0, 0 }, { EBADF } },
		{ "io_uring_register",
		  SYS_io_uring_register,
		  { BAD_FD, 0, 0, 0 },
		  { EBADF, EINVAL } },
	};

	return attempt_raw(raw, COUNT(raw));
}

static long try_dev_userfaultfd(void)
{
	return open_for_write("/dev/userfaultfd");
}

static int sys_07(void)
{
	static const struct raw raw[] = {
		{ "userfaultfd", SYS_userfaultfd, { O_CLOEXEC }, { 0 } }
	};
	static const struct try dev = { "dev-userfaultfd", try_dev_userfaultfd, { 0 } };

	attempt_raw(raw, COUNT(raw));
	attempt_forked(&dev);
	return 0;
}

static int sys_08(void)
{
	static struct perf_event_attr clock = { .type = PERF_TYPE_SOFTWARE,
		                                .size = sizeof clock,
		                                .config = PERF_COUNT_SW_CPU_CLOCK };
	static const struct raw raw[] = {
		{ "self", SYS_perf_event_open, { AT(&clock), 0, BAD_FD, BAD_FD, 0 }, { 0 } },
		{ "whole-cpu", SYS_perf_event_open, { AT(&clock), BAD_FD, 0, BAD_FD, 0 }, { 0 } },
	};

	return attempt_raw(raw, COUNT(raw));
}

/* The host put a key with this description into the session keyring that we inherit. */
static long try_canary_key(void)
{
	char value[64];
	long id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
	                  arg(0) ? arg(0) : "none", 0);

	return id < 0 ? id : syscall(SYS_keyctl, KEYCTL_READ, id, value, sizeof value);
}

static int sys_09(void)
{
	static const struct raw raw[] = {
		{ "add_key",
		  SYS_add_key,
		  { AT("user"), AT("caisson-probe-own"), AT("x"), 1,
		    (uintptr_t)KEY_SPEC_PROCESS_KEYRING },
		  { 0 } },
		{ "request_key", SYS_request_key, { AT("user"), AT(NONE), 0, 0 }, { ENOKEY } },
		{ "session-id",
		  SYS_keyctl,
		  { KEYCTL_GET_KEYRING_ID, (uintptr_t)KEY_SPEC_SESSION_KEYRING, 0 },
		  { 0 } },
		{ "user-keyring",
		  SYS_keyctl,
		  { KEYCTL_GET_KEYRING_ID, (uintptr_t)KEY_SPEC_USER_KEYRING, 1 },
		  { 0 } },
	};
	static const struct try canary = { "read-canary-key", try_canary_key, { 0 } };

	attempt_raw(raw, COUNT(raw));
	attempt_forked(&canary);
	return 0;
}

static long target;

/* Let go again: a tracer that just ends would leave its victim stopped. */
static long try_attach(void)
{
	if (ptrace(PTRACE_ATTACH, (pid_t)target, NULL, NULL) < 0)
		return -1;
	waitpid((pid_t)target, NULL, __WALL);
	return ptrace(PTRACE_DETACH, (pid_t)target, NULL, NULL);
}

static long try_seize(void)
{
	return ptrace(PTRACE_SEIZE, (pid_t)target, NULL, NULL);
}

/* Arguments: pids. In the sandbox: init, our parent, host pids of canary and of a neighbour. */
static int sys_10(void)
{
	char attach[32], seize[32];

	for (int i = 0; arg(i); i++) {
		target = arg_number(i, 0);
		snprintf(attach, sizeof attach, "attach-%d", i);
		snprintf(seize, sizeof seize, "seize-%d", i);
		attempt_forked(&(struct try){ .op = seize, .fn = try_seize });
		attempt_forked(&(struct try){ .op = attach, .fn = try_attach });
	}
	return 0;
}

static long vm_access(long nr)
{
	char seen[sizeof memory_canary];
	struct iovec here = { seen, sizeof seen }, there = { memory_canary, sizeof memory_canary };

	memcpy(seen, memory_canary, sizeof seen);
	return syscall(nr, target, &here, 1, &there, 1, 0);
}

static long try_vm_read(void)
{
	return vm_access(SYS_process_vm_readv);
}

static long try_vm_write(void)
{
	return vm_access(SYS_process_vm_writev);
}

static long try_getfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, target, 0);

	if (fd < 0 && errno != ESRCH)
		return -1;
	return syscall(SYS_pidfd_getfd, fd < 0 ? 0 : fd, 0, 0);
}

static long try_kcmp(void)
{
	return syscall(SYS_kcmp, target, target, KCMP_FILE, 0, 0);
}

static long try_proc_mem(void)
{
	char path[64], seen[sizeof memory_canary];

	snprintf(path, sizeof path, "/proc/%ld/mem", target);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : pread(fd, seen, sizeof seen, (off_t)(uintptr_t)memory_canary);
}

static int sys_11(void)
{
	static const struct try ways[] = {
		{ "vm-readv", try_vm_read, { 0 } },  { "vm-writev", try_vm_write, { 0 } },
		{ "pidfd-getfd", try_getfd, { 0 } }, { "kcmp", try_kcmp, { 0 } },
		{ "proc-mem", try_proc_mem, { 0 } },
	};

	for (int i = 0; arg(i); i++) {
		target = arg_number(i, 0);
		for (size_t w = 0; w < COUNT(ways); w++) {
			struct try t = ways[w];
			char op[32];

			snprintf(op, sizeof op, "%s-%d", t.op, i);
			t.op = op;
			attempt_forked(&t);
		}
	}
	return 0;
}

static int sys_13(void)
{
	static char text[64];
	static const struct raw raw[] = {
		{ "init_module", SYS_init_module, { 0, 0, AT("") }, { ENOEXEC, EFAULT } },
		{ "finit_module", SYS_finit_module, { BAD_FD, AT(""), 0 }, { EBADF } },
		{ "delete_module", SYS_delete_module, { AT(NONE), O_NONBLOCK }, { ENOENT } },
		{ "kexec_load", SYS_kexec_load, { 0, 17, 0, 0 }, { EINVAL } },
		{ "kexec_file_load",
		  SYS_kexec_file_load,
		  { BAD_FD, BAD_FD, 0, 0, 0 },
		  { EBADF, EINVAL } },
		{ "reboot",
		  SYS_reboot,
		  { 1, 2, 3, 0 },
		  { EINVAL } }, /* wrong magic: does nothing */
		{ "swapon", SYS_swapon, { AT(NONE), 0 }, { ENOENT } },
		{ "swapoff", SYS_swapoff, { AT(NONE) }, { ENOENT, EINVAL } },
		{ "acct", SYS_acct, { AT(NONE) }, { ENOENT } },
		{ "quotactl",
		  SYS_quotactl,
		  { QCMD(Q_GETFMT, USRQUOTA), AT(NONE), 0, AT(text) },
		  { ENOENT } },
		{ "quotactl_fd",
		  SYS_quotactl_fd,
		  { BAD_FD, QCMD(Q_GETFMT, USRQUOTA), 0, AT(text) },
		  { EBADF } },
		{ "iopl", SYS_iopl, { 3 }, { 0 } },
		{ "ioperm", SYS_ioperm, { 0x80, 1, 1 }, { 0 } },
		{ "nfsservctl", SYS_nfsservctl, { 0, 0, 0 }, { 0 } },
		{ "lookup_dcookie", SYS_lookup_dcookie, { 0, 0, 0 }, { EINVAL } },
		{ "syslog-size", SYS_syslog, { 10, 0, 0 }, { 0 } },
		{ "syslog-read-all", SYS_syslog, { 3, AT(text), sizeof text }, { 0 } },
	};

	return attempt_raw(raw, COUNT(raw));
}

static int sys_17(void)
{
	for (int bit = 0; bit < 32; bit++) {
		char op[32];
		struct raw one = { .op = op, .nr = SYS_personality, .args = { 1u << bit } };

		snprintf(op, sizeof op, "%#x", 1u << bit);
		attempt_raw(&one, 1);
	}
	return 0;
}

/* Each sets what is already there. */
static long try_clock_settime(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return syscall(SYS_clock_settime, CLOCK_REALTIME, &now);
}

static long try_settimeofday(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return syscall(SYS_settimeofday, &now, NULL);
}

static long set_same_tick(long nr, long first)
{
	struct timex t = { .modes = ADJ_TICK, .tick = 1000000 / sysconf(_SC_CLK_TCK) };

	return nr == SYS_adjtimex ? syscall(nr, &t) : syscall(nr, first, &t);
}

static long try_adjtimex(void)
{
	return set_same_tick(SYS_adjtimex, 0);
}

static long try_clock_adjtime(void)
{
	return set_same_tick(SYS_clock_adjtime, CLOCK_REALTIME);
}

static int sys_18(void)
{
	static const struct try tries[] = {
		{ "clock_settime", try_clock_settime, { 0 } },
		{ "settimeofday", try_settimeofday, { 0 } },
		{ "adjtimex", try_adjtimex, { 0 } },
		{ "clock_adjtime", try_clock_adjtime, { 0 } },
	};

	return attempt_all(tries, COUNT(tries));
}

static int sys_21(void)
{
	static char page[4096] __attribute__((aligned(4096)));
	static struct iovec iov = { page, sizeof page };
	static const struct raw raw[] = {
		{ "fanotify_init", SYS_fanotify_init, { 0, 0 }, { 0 } },
		{ "move_pages", SYS_move_pages, { 0, 0, 0, 0, 0, 0 }, { 0 } },
		{ "mbind", SYS_mbind, { AT(page), sizeof page, 0, 0, 0, 0 }, { 0 } },
		{ "migrate_pages", SYS_migrate_pages, { 0, 0, 0, 0 }, { EINVAL } },
		{ "set_mempolicy", SYS_set_mempolicy, { 0, 0, 0 }, { 0 } },
		{ "set_mempolicy_home_node",
		  SYS_set_mempolicy_home_node,
		  { AT(page), 0, 0, 0 },
		  { 0 } },
		{ "process_madvise",
		  SYS_process_madvise,
		  { BAD_FD, AT(&iov), 1, 0, 0 },
		  { EBADF } },
		{ "memfd_secret", SYS_memfd_secret, { 0 }, { 0 } },
		{ "vmsplice", SYS_vmsplice, { BAD_FD, AT(&iov), 1, 0 }, { EBADF } },
		{ "modify_ldt", SYS_modify_ldt, { 0, AT(page), sizeof page }, { 0 } },
		{ "uselib", SYS_uselib, { AT(NONE) }, { ENOENT } },
		{ "open_by_handle_at",
		  SYS_open_by_handle_at,
		  { (uintptr_t)AT_FDCWD, 0, 0 },
		  { EFAULT } },
		{ "userfaultfd", SYS_userfaultfd, { O_CLOEXEC }, { 0 } },
	};

	return attempt_raw(raw, COUNT(raw));
}

static long load_filter(bool is_by_prctl)
{
	struct sock_filter allow[] = { { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW } };
	struct sock_fprog program = { .len = COUNT(allow), .filter = allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return is_by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
	                   : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* In a child that ends: the number that it could load of n, half of them by each call. */
static long load_in_child(long n)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		long done = 0;

		while (done < n && load_filter(done % 2) == 0)
			done++;
		_exit((int)done);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : -1;
}

/* A child loads n and goes on as its own child, again and again: it is never where it was seen.
 * How many it and another could load together, of whom each wants n. */
static long load_beside_hopper(long n)
{
	struct hopper {
		volatile long loaded;
		volatile bool is_over;
	} *h = mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long most = 0;
	pid_t pid = h == MAP_FAILED ? -1 : fork();

	if (pid == 0) {
		while (h->loaded < n && load_filter(false) == 0)
			h->loaded++;
		while (!h->is_over)
			if (fork() > 0)
				_exit(0);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		return -1;
	for (int i = 0; i < 5; i++) {
		usleep(300000);
		long now = load_in_child(n);

		most = now > most ? now : most;
	}
	h->is_over = true;
	return h->loaded + most;
}

/* Arguments: loads (few: kernels exist that stop when many are freed at once), how many may live.
 * The children that ended make room, so the last gets as many as the first. */
static int sys_30(void)
{
	long n = arg_number(0, 12), most = arg_number(1, 8);
	long first = load_in_child(n), second = 0;

	report("bomb", ENOMEM, first > most, "%ld of %ld", first, n);
	usleep(300000); /* a census is not taken more often than that */
	second = load_in_child(most / 2);
	report("use-after-end", second == most / 2 ? 0 : ENOMEM, second == most / 2, "%ld of %ld",
	       second, most / 2);
	report("use-question", 0,
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) < 0 && errno == EFAULT, " ");
	usleep(300000);
	second = load_beside_hopper(most);
	report("hop", ENOMEM, second > most, "%ld of %ld", second, 2 * most);
	return 0;
}

const struct row sys_rows[] = {
	{ "SYS-03", sys_03 }, { "SYS-04", sys_04 }, { "SYS-05", sys_05 },
	{ "SYS-06", sys_06 }, { "SYS-07", sys_07 }, { "SYS-08", sys_08 },
	{ "SYS-09", sys_09 }, { "SYS-10", sys_10 }, { "SYS-11", sys_11 },
	{ "SYS-13", sys_13 }, { "SYS-17", sys_17 }, { "SYS-18", sys_18 },
	{ "SYS-21", sys_21 }, { "SYS-30", sys_30 }, { 0 },
};
