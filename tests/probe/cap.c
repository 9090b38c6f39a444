/*
 * cap.c - CAP: privileges and identity.
 */
#include "probe.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <spawn.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const mask_names[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

/* Open when a mask holds a capability beyond the documented ones. */
static void report_masks(const char *who, const char *path, unsigned long documented)
{
	char status[4096], op[64];

	if (slurp(path, status, sizeof status) < 0) {
		report(who, errno, false, "%s", path);
		return;
	}
	for (size_t i = 0; i < COUNT(mask_names); i++) {
		const char *at = strstr(status, mask_names[i]);
		unsigned long mask = at ? strtoul(at + 7, NULL, 16) : ~0ul;

		snprintf(op, sizeof op, "%s-%s", who, mask_names[i]);
		report(op, 0, (mask & ~documented) != 0, "%016lx", mask);
	}
}

static int cap_01(void)
{
	unsigned long documented = arg(0) ? strtoul(arg(0), NULL, 16) : 0;
	char hex[32];

	snprintf(hex, sizeof hex, "%lx", documented);
	if (arg(1)) {
		report_masks("execed", "/proc/self/status", documented);
		return 0;
	}
	report_masks("self", "/proc/self/status", documented);
	report_masks("init", "/proc/1/status", documented);
	int code = run_self("/proc/self/exe", (const char *[]){ "CAP-01", hex, "execed", NULL });

	report("exec", 0, code == 0, "masks after exec: %s", code == 0 ? "not empty" : "empty");
	return code < 0 || code > 1 ? -1 : 0;
}

/* Run as a set-id copy of ourselves: exit 0 when that changed who we are. */
static int cap_02_child(void)
{
	return geteuid() != (uid_t)arg_number(1, -1) || getegid() != (gid_t)arg_number(2, -1);
}

static void report_mounts_without_nosuid(void)
{
	char line[2048], first[512] = "";
	FILE *f = fopen("/proc/self/mountinfo", "re");
	int count = 0;

	while (f && fgets(line, sizeof line, f)) {
		char at[512] = "", flags[512] = "";

		if (sscanf(line, "%*s %*s %*s %*s %511s %511s", at, flags) != 2 ||
		    strstr(flags, "nosuid"))
			continue;
		if (count++ == 0)
			snprintf(first, sizeof first, "%s", at);
	}
	if (f)
		fclose(f);
	report("mounts-without-nosuid", 0, count > 0, "%d %s", count, first);
}

static int cap_02(void)
{
	char uid[16], gid[16], op[64];

	if (arg(0) && strcmp(arg(0), "child") == 0)
		_exit(cap_02_child() ? 0 : 1);
	snprintf(uid, sizeof uid, "%u", geteuid());
	snprintf(gid, sizeof gid, "%u", getegid());
	for (int i = 0; arg(i); i++) {
		int code = run_self(arg(i), (const char *[]){ "CAP-02", "child", uid, gid, NULL });

		snprintf(op, sizeof op, "set-id-copy-%d", i);
		report(op, code == 127 ? ENOENT : code == 126 ? EPERM : 0, code == 0, "%s", arg(i));
	}
	report("no-new-privs", 0, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1, " ");
	report_mounts_without_nosuid();
	return 0;
}

/* An id that is not ours: 0 for an ordinary user, 1 for root. */
static unsigned int other_id(void)
{
	return getuid() == 0 ? 1 : 0;
}

static long try_setuid(void)
{
	return setuid(other_id());
}

static long try_setresuid(void)
{
	return setresuid(other_id(), other_id(), other_id());
}

static long try_setgid(void)
{
	return setgid(other_id());
}

static long try_setfsuid(void)
{
	setfsuid(other_id());
	errno = EPERM;
	return setfsuid((uid_t)-1) == (int)other_id() ? 0 : -1;
}

static long try_setgroups_root(void)
{
	return setgroups(1, (gid_t[]){ other_id() });
}

static long try_setgroups_host(void)
{
	return setgroups(4, (gid_t[]){ 4, 6, 24, 27 });
}

static long try_capset(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1u << CAP_SYS_ADMIN,
		                                    .permitted = 1u << CAP_SYS_ADMIN } };

	return syscall(SYS_capset, &head, data);
}

static int cap_04(void)
{
	static const struct try tries[] = {
		{ "setuid", try_setuid, { 0 } },
		{ "setresuid", try_setresuid, { 0 } },
		{ "setgid", try_setgid, { 0 } },
		{ "setfsuid", try_setfsuid, { 0 } },
		{ "setgroups-root", try_setgroups_root, { 0 } },
		{ "setgroups-host", try_setgroups_host, { 0 } },
		{ "capset", try_capset, { 0 } },
	};

	return attempt_all(tries, COUNT(tries));
}

static int cap_05(void)
{
	gid_t groups[64];
	int n = getgroups(COUNT(groups), groups), foreign = 0;

	for (int i = 0; i < n; i++)
		foreign += groups[i] != getgid();
	report("supplementary-groups", 0, foreign > 0, "%d groups, %d not our own", n, foreign);
	return n < 0 ? -1 : 0;
}

static long try_securebits(void)
{
	return prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
}

static long try_keepcaps(void)
{
	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
}

static long try_ambient(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	/* Ambient needs inheritable first. */
	if (syscall(SYS_capget, &head, data) < 0)
		return -1;
	data[0].inheritable = data[0].permitted;
	(void)syscall(SYS_capset, &head, data);
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
}

static long try_set_mm(void)
{
	return prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0);
}

static long try_drop_nnp(void)
{
	errno = EINVAL;
	(void)prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? -1 : 0;
}

static int cap_09(void)
{
	static const struct try tries[] = {
		{ "set-securebits", try_securebits, { 0 } },
		{ "set-keepcaps", try_keepcaps, { 0 } },
		{ "raise-ambient", try_ambient, { 0 } },
		{ "set-mm", try_set_mm, { EINVAL } },
		{ "drop-no-new-privs", try_drop_nnp, { 0 } },
	};

	attempt_all(tries, COUNT(tries));
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	report_masks("after", "/proc/self/status", arg(0) ? strtoul(arg(0), NULL, 16) : 0);
	int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

	report("securebits-unlocked", 0, (bits & SECBIT_NOROOT_LOCKED) == 0, "%#x", bits);
	return 0;
}

/* The two denied calls of CAP-12: one that the filter stops, one that the path rules stop. */
static long denied_by_filter(void)
{
	return unshare(CLONE_NEWUTS);
}

static long denied_by_paths(void)
{
	int fd = open(arg(0), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	close(fd);
	return unlink(arg(0));
}

struct creation {
	const char *name;
	pid_t (*make)(int (*fn)(void *), void *stack_end);
};

static pid_t make_fork(int (*fn)(void *), void *stack_end)
{
	(void)stack_end;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn(NULL));
	return pid;
}

static pid_t make_vfork(int (*fn)(void *), void *stack_end)
{
	return clone(fn, stack_end, CLONE_VFORK | CLONE_VM | SIGCHLD, NULL);
}

static pid_t make_shared_memory(int (*fn)(void *), void *stack_end)
{
	return clone(fn, stack_end, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
}

static pid_t make_thread(int (*fn)(void *), void *stack_end)
{
	(void)stack_end;
	int (*volatile entry)(void *) = fn;
	pid_t pid = fork();

	if (pid == 0) {
		/* A thread that outlives its leader carries the exit code: enough to ask from it.
		 */
		char *stack =
		    mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		            CLONE_SYSVSEM;

		if (stack == MAP_FAILED || clone(entry, stack + 65536, flags, NULL) < 0)
			_exit(2);
		for (;;)
			pause();
	}
	return pid;
}

static pid_t make_spawn(int (*fn)(void *), void *stack_end)
{
	(void)fn;
	(void)stack_end;
	char *argv[] = { (char *)(uintptr_t) "probe", (char *)(uintptr_t) "cap-12-child",
		         (char *)(uintptr_t)arg(0), NULL };
	pid_t pid = -1;

	return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) == 0 ? pid : -1;
}

/* Exit code: bit 0 the filter's call worked, bit 1 the path rules' call worked, bit 6 we ran. */
static int try_both(void *unused)
{
	(void)unused;
	int code = 0x40 | (denied_by_filter() >= 0 ? 1 : 0) | (denied_by_paths() >= 0 ? 2 : 0);

	syscall(SYS_exit_group, code);
	return code;
}

static int cap_12_child(void)
{
	try_both(NULL);
	return 0;
}

static int cap_12(void)
{
	static const struct creation ways[] = {
		{ "fork", make_fork },
		{ "vfork", make_vfork },
		{ "clone-vm", make_shared_memory },
		{ "thread", make_thread },
		{ "posix-spawn", make_spawn },
	};
	static char stack[65536] __attribute__((aligned(16)));

	for (size_t i = 0; i < COUNT(ways); i++) {
		int status = 0;
		pid_t pid = ways[i].make(try_both, stack + sizeof stack);

		if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ||
		    !(WEXITSTATUS(status) & 0x40))
			return -1;
		char op[32];

		snprintf(op, sizeof op, "%s-filter", ways[i].name);
		report(op, 0, (WEXITSTATUS(status) & 1) != 0, " ");
		snprintf(op, sizeof op, "%s-paths", ways[i].name);
		report(op, 0, (WEXITSTATUS(status) & 2) != 0, " ");
	}
	return 0;
}

const struct row cap_rows[] = {
	{ "CAP-01", cap_01 },
	{ "CAP-02", cap_02 },
	{ "CAP-04", cap_04 },
	{ "CAP-05", cap_05 },
	{ "CAP-09", cap_09 },
	{ "CAP-12", cap_12 },
	{ "cap-12-child", cap_12_child },
	{ 0 },
};
