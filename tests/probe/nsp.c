/*
 * nsp.c - NSP: namespaces and what they hide.
 */
#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* Arguments: name=inode of the host's namespaces. Open when ours is the same one. */
static int nsp_01(void)
{
	for (int i = 0; arg(i); i++) {
		char name[32], path[64], link[64] = "";
		const char *inode = strchr(arg(i), '=');

		if (!inode)
			return -1;
		snprintf(name, sizeof name, "%.*s", (int)(inode - arg(i)), arg(i));
		snprintf(path, sizeof path, "/proc/self/ns/%s", name);
		if (readlink(path, link, sizeof link - 1) < 0) {
			report(name, errno, true, "%s", path);
			continue;
		}
		const char *ours = strchr(link, '[');

		report(name, 0,
		       !ours || strtoul(ours + 1, NULL, 10) == strtoul(inode + 1, NULL, 10), "%s",
		       link);
	}
	return 0;
}

/* How many processes in /proc have this name. */
static int count_named(const char *comm)
{
	DIR *d = opendir("/proc");
	int count = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		char path[300], name[64];

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
		if (slurp(path, name, sizeof name) <= 0)
			continue;
		name[strcspn(name, "\n")] = '\0';
		count += strcmp(name, comm) == 0;
	}
	if (d)
		closedir(d);
	return count;
}

/* Arguments: the canary's host pid and name. */
static int nsp_02(void)
{
	const char *comm = arg(1) ? arg(1) : "sbx-canary";
	int seen = count_named(comm);

	report("listed", 0, seen > 0, "%d processes named %s", seen, comm);
	attempt("kill-canary", kill((pid_t)arg_number(0, 0), 0), NULL);
	int fd = (int)syscall(SYS_pidfd_open, arg_number(0, 0), 0);

	attempt("pidfd-canary", fd, NULL);
	return 0;
}

static pid_t victim;

static long try_kill(void)
{
	return kill(victim, 0);
}

static long try_pidfd_signal(void)
{
	int fd = (int)syscall(SYS_pidfd_open, victim, 0);

	return fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
}

/* Both set what is already there. */
static long try_affinity(void)
{
	cpu_set_t set;

	if (sched_getaffinity(victim, sizeof set, &set) < 0)
		return -1;
	return sched_setaffinity(victim, sizeof set, &set);
}

static long try_prlimit(void)
{
	struct rlimit r;

	if (prlimit(victim, RLIMIT_NOFILE, NULL, &r) < 0)
		return -1;
	return prlimit(victim, RLIMIT_NOFILE, &r, NULL);
}

static long try_setpriority(void)
{
	return setpriority(PRIO_PROCESS, (id_t)victim, getpriority(PRIO_PROCESS, (id_t)victim));
}

/* Arguments: pids; or "-" and a token: then the host sends them when it has found us by it. */
static int nsp_04(void)
{
	static const struct try ways[] = {
		{ "kill", try_kill, { 0 } },         { "pidfd", try_pidfd_signal, { 0 } },
		{ "affinity", try_affinity, { 0 } }, { "prlimit", try_prlimit, { 0 } },
		{ "nice", try_setpriority, { 0 } },
	};
	char line[256] = "";

	bool ask = arg(0) && strcmp(arg(0), "-") == 0;

	if (ask) {
		puts("{\"id\":\"hold\"}");
		fflush(stdout);
		if (!fgets(line, sizeof line, stdin))
			return -1;
	}
	for (int i = 0; !ask && arg(i); i++)
		snprintf(line + strlen(line), sizeof line - strlen(line), "%s ", arg(i));
	char *at = line;

	for (long pid = strtol(at, &at, 10); pid > 0; pid = strtol(at, &at, 10)) {
		victim = (pid_t)pid;
		attempt_all(ways, COUNT(ways));
	}
	return 0;
}

/* Arguments: the key and the name that the host made its objects with. */
static int nsp_05(void)
{
	key_t key = (key_t)arg_number(0, 1);
	char path[256];

	attempt("shm", shmget(key, 0, 0), NULL);
	attempt("sem", semget(key, 0, 0), NULL);
	attempt("msg", msgget(key, 0), NULL);
	snprintf(path, sizeof path, "/%s", arg(1) ? arg(1) : "none");
	attempt("mqueue", mq_open(path, O_RDONLY), NULL);
	snprintf(path, sizeof path, "/dev/shm/%s", arg(1) ? arg(1) : "none");
	attempt("dev-shm", open(path, O_RDONLY | O_CLOEXEC), NULL);
	return 0;
}

static long connect_unix(const char *name, bool abstract)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path + abstract, sizeof a.sun_path - 1, "%s", name);
	long r =
	    connect(fd, (struct sockaddr *)&a,
	            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name)));
	int err = errno;

	close(fd);
	errno = err;
	return r;
}

static int walk_sockets(const char *root)
{
	char *roots[] = { (char *)(uintptr_t)root, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	int count = 0;
	char first[256] = "";

	for (FTSENT *e; fts && (e = fts_read(fts));) {
		if (e->fts_info == FTS_D &&
		    (strcmp(e->fts_path, "/proc") == 0 || e->fts_level > 12))
			fts_set(fts, e, FTS_SKIP);
		if (e->fts_info != FTS_DEFAULT || !S_ISSOCK(e->fts_statp->st_mode) ||
		    strcmp(e->fts_path, "/run/caisson/self.sock") == 0)
			continue;
		if (count++ == 0)
			snprintf(first, sizeof first, "%s", e->fts_path);
	}
	if (fts)
		fts_close(fts);
	report("sockets-found", 0, count > 0, "%d below %s: %s", count, root, first);
	return 0;
}

/* Arguments: where to look, a unix socket and an abstract name of the host. */
static int nsp_07(void)
{
	static const char *const known[] = {
		"/var/run/docker.sock",    "/run/containerd/containerd.sock",
		"/run/podman/podman.sock", "/run/dbus/system_bus_socket",
		"/run/systemd/private",    "/run/snapd.socket",
		"/tmp/.X11-unix/X0",       "/var/run/nscd/socket",
		"/run/crio/crio.sock",
	};
	int reached = 0;

	walk_sockets(arg(0) ? arg(0) : "/");
	for (size_t i = 0; i < COUNT(known); i++)
		reached += connect_unix(known[i], false) == 0;
	report("known-names", reached ? 0 : ENOENT, reached > 0, "%d of %zu", reached,
	       COUNT(known));
	attempt("canary-socket", connect_unix(arg(1) ? arg(1) : "/none", false), NULL);
	attempt("canary-abstract", connect_unix(arg(2) ? arg(2) : "none", true), NULL);
	return 0;
}

static long try_sethostname(void)
{
	struct utsname u;

	uname(&u);
	return sethostname(u.nodename, strlen(u.nodename));
}

static long try_setdomainname(void)
{
	struct utsname u;

	uname(&u);
	return setdomainname(u.domainname, strlen(u.domainname));
}

static long try_proc_hostname(void)
{
	return open_for_write("/proc/sys/kernel/hostname");
}

static long try_proc_domainname(void)
{
	return open_for_write("/proc/sys/kernel/domainname");
}

static int nsp_09(void)
{
	static const struct try tries[] = {
		{ "sethostname", try_sethostname, { 0 } },
		{ "setdomainname", try_setdomainname, { 0 } },
		{ "proc-hostname", try_proc_hostname, { 0 } },
		{ "proc-domainname", try_proc_domainname, { 0 } },
	};

	return attempt_all(tries, COUNT(tries));
}

/* What a neighbour plants and what NSP-10 looks for is the same list. Argument 0: a token. */
#define NEIGHBOUR_PORT 47011
#define NEIGHBOUR_KEY 0x0ca15503

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
		                     .sin_port = htons(NEIGHBOUR_PORT),
		                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int plant(void)
{
	struct sockaddr_in in = loopback();
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *token = arg(0) ? arg(0) : "none";
	char path[128];
	int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);

	prctl(PR_SET_NAME, "sbx-neighbour");
	snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "%s", token);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(token));
	bool ok = bind(tcp, (struct sockaddr *)&in, sizeof in) == 0 && listen(tcp, 4) == 0 &&
	          bind(local, (struct sockaddr *)&un, len) == 0 && listen(local, 4) == 0;
	int shm = shmget(NEIGHBOUR_KEY, 4096, IPC_CREAT | 0666);
	static const char *const dirs[] = { "/tmp", "/dev/shm", "/var/tmp", "/run" };

	for (size_t i = 0; i < COUNT(dirs); i++) {
		snprintf(path, sizeof path, "%s/%s", dirs[i], token);
		(void)!open(path, O_CREAT | O_WRONLY, 0666); /* not every root has all of them */
	}
	report("planted", ok ? 0 : errno, ok, "%d", shm);
	puts("{\"id\":\"hold\"}");
	fflush(stdout);
	wait_for_host();
	for (size_t i = 0; i < COUNT(dirs); i++) {
		snprintf(path, sizeof path, "%s/%s", dirs[i], token);
		(void)unlink(path);
	}
	shmctl(shm, IPC_RMID, NULL);
	return 0;
}

static int nsp_10(void)
{
	struct sockaddr_in in = loopback();
	const char *token = arg(0) ? arg(0) : "none";
	int seen = count_named("sbx-neighbour"), files = 0, tcp = socket(AF_INET, SOCK_STREAM, 0);
	static const char *const dirs[] = { "/tmp", "/dev/shm", "/var/tmp", "/run" };
	char path[128];

	report("process", 0, seen > 0, "%d listed", seen);
	attempt("tcp", connect(tcp, (struct sockaddr *)&in, sizeof in), NULL);
	attempt("abstract", connect_unix(token, true), NULL);
	attempt("shm", shmget(NEIGHBOUR_KEY, 0, 0), NULL);
	for (size_t i = 0; i < COUNT(dirs); i++) {
		snprintf(path, sizeof path, "%s/%s", dirs[i], token);
		files += access(path, F_OK) == 0;
	}
	report("files", files ? 0 : ENOENT, files > 0, "%d", files);
	attempt("kill", kill((pid_t)arg_number(1, 0), 0), NULL);
	return 0;
}

/* The processes that NSP-11 leaves behind; argument 0 is a token for the host to find them by. */
static void survivor(int kind)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (kind != 0)
		setsid();
	if (kind == 2)
		prctl(PR_SET_NAME, "kworker/0:1");
	if (kind == 3)
		raise(SIGSTOP);
	for (;;)
		sleep(60);
}

static int nsp_11(void)
{
	for (int kind = 0; kind < 4; kind++) {
		pid_t pid = fork();

		if (pid == 0) {
			/* The middle one ends: the survivor has no parent left. */
			if (kind != 0 && fork() > 0)
				_exit(0);
			survivor(kind);
		}
		if (pid > 0 && kind != 0)
			waitpid(pid, NULL, 0);
	}
	puts("{\"id\":\"hold\"}");
	fflush(stdout);
	survivor(0);
	return 0;
}

static int count_zombies(void)
{
	DIR *d = opendir("/proc");
	int count = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		char path[300], stat[512];

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
		const char *name_end =
		    slurp(path, stat, sizeof stat) > 0 ? strrchr(stat, ')') : NULL;

		count += name_end && name_end[1] == ' ' && name_end[2] == 'Z';
	}
	if (d)
		closedir(d);
	return count;
}

/* Arguments: how many orphans; "adopt" makes us the reaper that does not reap (the control). */
static int nsp_12(void)
{
	long n = arg_number(0, 200), refused = 0;

	if (arg(1) && strcmp(arg(1), "adopt") == 0)
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(fork() < 0 ? 1 : 0);
		int status = 0;

		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0) {
			refused++;
			usleep(1000);
		}
	}
	int zombies = count_zombies();

	for (int i = 0; i < 30 && zombies > n / 10; i++) { /* who reaps may be busy */
		usleep(100000);
		zombies = count_zombies();
	}

	report("zombies", 0, zombies > n / 10, "%d zombies, %ld forks refused", zombies, refused);
	return 0;
}

/* Argument: a file that appears on the host, in a mount made while we wait. */
static int nsp_14(void)
{
	char info[65536];

	puts("{\"id\":\"hold\"}");
	fflush(stdout);
	wait_for_host();
	attempt("host-mount-appears", access(arg(0) ? arg(0) : "/none", F_OK), NULL);
	slurp("/proc/self/mountinfo", info, sizeof info);
	const char *tie = strstr(info, " shared:");

	if (!tie)
		tie = strstr(info, " master:");
	report("propagation", 0, tie != NULL, "%.40s", tie ? tie : " ");
	return 0;
}

/* Argument: a process whose namespaces would be worth entering. */
static int nsp_16(void)
{
	const char *pid = arg(0) ? arg(0) : "1";
	static const char *const kinds[] = { "user", "mnt", "pid",    "net",
		                             "ipc",  "uts", "cgroup", "time" };

	for (size_t i = 0; i < COUNT(kinds); i++) {
		char path[64], op[32], text[32] = "";

		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
		snprintf(op, sizeof op, "max-%s", kinds[i]);
		if (slurp(path, text, sizeof text) < 0)
			report(op, errno, false, "%s", path);
		else
			report(op, 0, strtol(text, NULL, 10) > 0, "%.*s", (int)strcspn(text, "\n"),
			       text);
		snprintf(path, sizeof path, "/proc/%s/ns/%s", pid, kinds[i]);
		snprintf(op, sizeof op, "open-%s", kinds[i]);
		attempt(op, open(path, O_RDONLY | O_CLOEXEC), NULL);
	}
	attempt("netns-dir", open("/run/netns", O_RDONLY | O_DIRECTORY | O_CLOEXEC), NULL);
	return 0;
}

const struct row nsp_rows[] = {
	{ "NSP-01", nsp_01 },
	{ "NSP-02", nsp_02 },
	{ "NSP-04", nsp_04 },
	{ "NSP-05", nsp_05 },
	{ "NSP-07", nsp_07 },
	{ "NSP-09", nsp_09 },
	{ "NSP-10", nsp_10 },
	{ "NSP-11", nsp_11 },
	{ "NSP-12", nsp_12 },
	{ "NSP-14", nsp_14 },
	{ "NSP-16", nsp_16 },
	{ "plant", plant },
	{ 0 },
};
