/*
 * fds.c - FDS: what a process inherits without asking.
 */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define FD_LAST 4096

static const char *kind_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "none";
	switch (st.st_mode & S_IFMT) {
	case S_IFIFO:
		return "pipe";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return isatty(fd) ? "tty" : "char";
	case S_IFDIR:
		return "directory";
	default:
		return "file";
	}
}

/* Nothing is opened to look: the first thing that the program does is to ask each number. */
static int fds_01(void)
{
	int extra = 0;
	char found[512] = "";

	for (int fd = 3; fd <= FD_LAST; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		extra++;
		snprintf(found + strlen(found), sizeof found - strlen(found), "%d:%s ", fd,
		         kind_of(fd));
	}
	report("beyond-stderr", extra ? 0 : EBADF, extra > 0, "%s", found);
	for (int fd = 0; fd <= 2; fd++) {
		char op[16];

		snprintf(op, sizeof op, "fd-%d", fd);
		const char *kind = kind_of(fd);

		report(op, 0, strcmp(kind, "directory") == 0 || strcmp(kind, "socket") == 0, "%s",
		       kind);
	}
	return 0;
}

/* Arguments: the names that may be there. */
static bool known_name(const char *variable)
{
	for (int i = 1; arg(i); i++) {
		size_t n = strlen(arg(i));

		if (strncmp(variable, arg(i), n) == 0 && variable[n] == '=')
			return true;
	}
	return false;
}

/* Argument 0: the canary text that the host put into its environment. */
static int fds_05(void)
{
	char bytes[65536], strange[512] = "";
	int canaries = 0;
	const char *canary = arg(0) ? arg(0) : "none";

	for (char **v = environ; *v; v++) {
		canaries += strstr(*v, canary) != NULL;
		if (!known_name(*v))
			snprintf(strange + strlen(strange), sizeof strange - strlen(strange),
			         "%.*s ", (int)strcspn(*v, "="), *v);
	}
	report("canary-in-environ", 0, canaries > 0, "%d", canaries);
	report("unlisted-names", 0, strange[0] != '\0', "%s", strange);
	/* Past the end of our own strings the kernel put the program's name. */
	long n = slurp("/proc/self/environ", bytes, sizeof bytes);

	report("canary-in-proc", 0, n > 0 && memmem(bytes, (size_t)n, canary, strlen(canary)),
	       "%ld", n);
	n = slurp("/proc/1/environ", bytes, sizeof bytes);
	report("environ-of-init", n < 0 ? errno : 0,
	       n > 0 && memmem(bytes, (size_t)n, canary, strlen(canary)), "%ld", n);
	return 0;
}

static const struct {
	const char *name;
	int id;
} limits[] = {
	{ "core", RLIMIT_CORE },     { "cpu", RLIMIT_CPU },       { "data", RLIMIT_DATA },
	{ "fsize", RLIMIT_FSIZE },   { "locks", RLIMIT_LOCKS },   { "msgqueue", RLIMIT_MSGQUEUE },
	{ "nice", RLIMIT_NICE },     { "nofile", RLIMIT_NOFILE }, { "rss", RLIMIT_RSS },
	{ "rtprio", RLIMIT_RTPRIO }, { "rttime", RLIMIT_RTTIME }, { "stack", RLIMIT_STACK },
	{ "as", RLIMIT_AS },         { "nproc", RLIMIT_NPROC },
};

static void print_status_lines(void)
{
	static const char *const keys[] = { "SigBlk:",     "SigIgn:",  "SigPnd:",      "ShdPnd:",
		                            "NoNewPrivs:", "Seccomp:", "THP_enabled:", "Groups:" };
	char status[4096];

	slurp("/proc/self/status", status, sizeof status);
	for (size_t i = 0; i < COUNT(keys); i++) {
		const char *at = strstr(status, keys[i]);

		if (at)
			printf("%.*s\n", (int)strcspn(at, "\n"), at);
	}
}

/* A verb: the state that exec keeps, one line each, for the golden comparison. */
static int state(void)
{
	struct itimerval timer;
	mode_t mask = umask(0);
	char text[64] = "";
	cpu_set_t cpus;

	printf("umask %04o\n", mask);
	for (size_t i = 0; i < COUNT(limits); i++) {
		struct rlimit r;

		getrlimit((__rlimit_resource_t)limits[i].id, &r);
		printf("limit %s %lld %lld\n", limits[i].name, (long long)r.rlim_cur,
		       (long long)r.rlim_max);
	}
	getitimer(ITIMER_REAL, &timer);
	sched_getaffinity(0, sizeof cpus, &cpus);
	printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
	printf("ioprio %ld\n", syscall(SYS_ioprio_get, 1, 0));
	printf("timer %s\n", timer.it_value.tv_sec || timer.it_value.tv_usec ? "armed" : "none");
	printf("all-cpus %s\n", CPU_COUNT(&cpus) == sysconf(_SC_NPROCESSORS_CONF) ? "yes" : "no");
	slurp("/proc/self/oom_score_adj", text, sizeof text);
	printf("oom_score_adj %ld\n", strtol(text, NULL, 10));
	printf("scheduler %d\n", sched_getscheduler(0));
	printf("personality %#x\n", (unsigned int)personality(0xffffffff));
	printf("timerslack %d\n", prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
	printf("pdeathsig %s\n", prctl(PR_GET_PDEATHSIG, &(int){ 0 }) == 0 ? "readable" : "no");
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	printf("session-leader %s\n", getsid(0) == getpid() ? "yes" : "no");
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);

	printf("controlling-tty %s\n", tty < 0 ? "no" : "yes");
	print_status_lines();
	return 0;
}

/* Argument: the description of the canary key in the session keyring of whoever started us. */
static int fds_07(void)
{
	char keys[65536];
	long n = slurp("/proc/keys", keys, sizeof keys);

	report("proc-keys", n < 0 ? errno : 0, n > 0 && arg(0) && strstr(keys, arg(0)), "%ld bytes",
	       n);
	attempt("search-session",
	        syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
	                arg(0) ? arg(0) : "none", 0),
	        NULL);
	return 0;
}

const struct row fds_rows[] = {
	{ "FDS-01", fds_01 }, { "FDS-04", fds_01 }, { "FDS-05", fds_05 },
	{ "FDS-07", fds_07 }, { "state", state },   { 0 },
};
