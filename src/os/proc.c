#include "os/proc.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/ret.h"

int os_clone(struct clone_opts o)
{
	union {
		struct clone_args args;
		char marked[CLONE_MARK];
	} u = { .marked = { 0 } };

	u.args = (struct clone_args){
		.flags = o.flags | (o.pidfd ? CLONE_PIDFD : 0) |
		         (o.cgroup_fd > 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uint64_t)(uintptr_t)o.pidfd,
		/* With CLONE_PARENT the kernel takes the signal of the caller's parent. */
		.exit_signal = o.flags & CLONE_PARENT ? 0 : SIGCHLD,
		.cgroup = o.cgroup_fd > 0 ? (uint64_t)o.cgroup_fd : 0,
	};

	OS_FAULT("clone3");
	return os_ret(syscall(SYS_clone3, &u, o.is_marked ? sizeof u : sizeof u.args));
}

void os_cpus_all(cpu_set_t *all)
{
	if (sched_getaffinity(0, sizeof *all, all) < 0)
		CPU_ZERO(all);
}

void os_cpus_stay(const cpu_set_t *all)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET((size_t)sched_getcpu(), &here);
	if (CPU_COUNT(all) > 1)
		(void)sched_setaffinity(0, sizeof here, &here);
}

void os_cpus_leave(const cpu_set_t *all, pid_t child)
{
	cpu_set_t others = *all;

	CPU_CLR((size_t)sched_getcpu(), &others);
	if (CPU_COUNT(&others) > 0)
		(void)sched_setaffinity(child, sizeof others, &others);
}

void os_cpus_take(const cpu_set_t *all)
{
	if (CPU_COUNT(all) > 1)
		(void)sched_setaffinity(0, sizeof *all, all);
}

int os_pidfd_open(pid_t pid)
{
	OS_FAULT("pidfd_open");
	return os_ret(syscall(SYS_pidfd_open, pid, 0));
}

int os_pidfd_signal(int pidfd, int sig)
{
	OS_FAULT("pidfd_send_signal");
	return os_ret(syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

int os_kill(pid_t pid, int sig)
{
	OS_FAULT("kill");
	return os_ret(kill(pid, sig));
}

int os_setns(int pidfd, int flags)
{
	OS_FAULT("setns");
	return os_ret(setns(pidfd, flags));
}

int os_unshare(int flags)
{
	OS_FAULT("unshare");
	return os_ret(unshare(flags));
}

int os_setsid(void)
{
	OS_FAULT("setsid");
	return os_ret(setsid());
}

static int wait_for(pid_t pid, int *status, int flags, struct rusage *usage)
{
	for (;;) {
		pid_t r = wait4(pid, status, flags | __WALL, usage);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

/* Not failed by fault.h: a parent that cannot wait has no answer to give. */
int os_wait(pid_t pid, int *status, struct rusage *usage)
{
	return wait_for(pid, status, 0, usage);
}

int os_try_wait(pid_t pid, int *status, struct rusage *usage)
{
	return wait_for(pid, status, WNOHANG, usage);
}

int os_trace_stop(pid_t tid)
{
	int status = 0;

	OS_FAULT("ptrace");
	int r = os_ret(ptrace(PTRACE_SEIZE, tid, NULL, NULL));
	if (r >= 0)
		r = os_ret(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL));
	if (r >= 0)
		do
			r = os_ret(waitpid(tid, &status, __WALL));
		while (r == -EINTR);
	return r < 0 ? r : WIFSTOPPED(status) ? 0 : -ESRCH;
}

int os_set_ids(uid_t uid, gid_t gid)
{
	OS_FAULT("setresuid");
	if (setresgid(gid, gid, gid) < 0)
		return -errno;
	return os_ret(setresuid(uid, uid, uid));
}

int os_set_ids_but_saved(uid_t uid, gid_t gid)
{
	OS_FAULT("setresuid");
	if (setresgid(gid, gid, gid) < 0)
		return -errno;
	return os_ret(setresuid(uid, uid, (uid_t)-1));
}

int os_set_fsids(uid_t uid, gid_t gid)
{
	OS_FAULT("setfsuid");
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	/* Neither says whether it worked: an id that nobody has asks for the one in use. */
	bool is_set = (gid_t)setfsgid((gid_t)-1) == gid && (uid_t)setfsuid((uid_t)-1) == uid;

	return is_set ? 0 : -EPERM;
}

int os_drop_groups(void)
{
	OS_FAULT("setgroups");
	return os_ret(syscall(SYS_setgroups, 0, NULL));
}

int os_set_hostname(const char *name)
{
	OS_FAULT("sethostname");
	return os_ret(sethostname(name, strlen(name)));
}

int os_prctl(int option, unsigned long arg)
{
	OS_FAULT("prctl");
	return os_ret(prctl(option, arg, 0, 0, 0));
}

int os_prctl_get(int option)
{
	return os_ret(prctl(option, 0, 0, 0, 0));
}

int os_setrlimit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now, want = { .rlim_cur = soft, .rlim_max = hard };

	OS_FAULT("prlimit64");
	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return -errno;
	/* Without CAP_SYS_RESOURCE a hard limit only goes down; a lower one is as strict. */
	if (want.rlim_max > now.rlim_max)
		want.rlim_max = now.rlim_max;
	if (want.rlim_cur > want.rlim_max)
		want.rlim_cur = want.rlim_max;
	return os_ret(setrlimit((__rlimit_resource_t)resource, &want));
}

int os_execveat(int fd, const char *path, char *const argv[], char *const env[], int flags)
{
	OS_FAULT("execveat");
	return os_ret(syscall(SYS_execveat, fd, path, argv, env, flags));
}

int os_new_session_keyring(void)
{
	OS_FAULT("keyctl");
	return os_ret(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
}

/* Not by signal(): the C library keeps 32 and 33 to itself, and a caller may ignore them. KILL and
 * STOP cannot be changed, by nobody. */
int os_reset_signals(void)
{
	static const struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} fresh = { .handler = SIG_DFL }; /* the kernel's own layout */
	sigset_t none;

	OS_FAULT("sigprocmask");
	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, &fresh, NULL, sizeof fresh.mask);
	sigemptyset(&none);
	return os_ret(sigprocmask(SIG_SETMASK, &none, NULL));
}

int os_share_zeros(size_t n, void **out)
{
	OS_FAULT("mmap");
	*out = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return *out == MAP_FAILED ? -errno : 0;
}

static void signal_shrug(int sig)
{
	(void)sig;
}

int os_shrug_signals(void)
{
	static const int left[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,  SIGILL,  SIGFPE, SIGABRT,
		                    SIGTRAP, SIGSYS,  SIGCHLD, SIGPIPE, SIGALRM, SIGTERM };
	const struct sigaction shrug = { .sa_handler = signal_shrug, .sa_flags = SA_RESTART };

	OS_FAULT("sigaction");
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		bool is_left = sig > SIGSYS && sig < SIGRTMIN; /* the C library's own */

		for (size_t i = 0; i < COUNT(left) && !is_left; i++)
			is_left = sig == left[i];
		if (!is_left && sigaction(sig, &shrug, NULL) < 0)
			return -errno;
	}
	return 0;
}

/* Every limit but those that a plan has (NOFILE, NPROC) and CORE, which the launch sets: none is
 * the caller's. Hard limits that are lower already stay. */
int os_reset_limits(void)
{
	static const struct {
		int resource;
		uint64_t soft, hard;
	} fresh[] = {
		{ RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY },
		{ RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY },
		{ RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY },
		{ RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY },
		{ RLIMIT_LOCKS, RLIM_INFINITY, RLIM_INFINITY },
		{ RLIMIT_RSS, RLIM_INFINITY, RLIM_INFINITY },
		{ RLIMIT_STACK, 8u << 20, RLIM_INFINITY },
		/* No class before all others, no nice below 0 (20 minus the limit): both pass by
		 * the processor share of the sandbox. */
		{ RLIMIT_RTPRIO, 0, 0 },
		{ RLIMIT_RTTIME, 1000000, 1000000 },
		{ RLIMIT_NICE, 20, 20 },
		/* Memory of the kernel, or that it cannot take back: the kernel's own defaults. */
		{ RLIMIT_MEMLOCK, 8u << 20, 8u << 20 },
		{ RLIMIT_MSGQUEUE, 819200, 819200 },
		{ RLIMIT_SIGPENDING, 16384, 16384 },
	};

	for (size_t i = 0; i < COUNT(fresh); i++) {
		int r = os_setrlimit(fresh[i].resource, fresh[i].soft, fresh[i].hard);

		if (r < 0)
			return r;
	}
	return 0;
}

int os_reset_schedule(void)
{
	struct sched_param zero = { 0 };

	(void)sched_setscheduler(0, SCHED_OTHER, &zero);
	(void)setpriority(PRIO_PROCESS, 0, 0);
	(void)syscall(SYS_ioprio_set, 1, 0, 0);
	return 0;
}
