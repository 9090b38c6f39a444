/*
 * cgr.c - CGR: bombs, small ones. The host looks at the counters while they go off.
 */
#include "probe.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Argument: how many children. They stay until we end. */
static int cgr_01(void)
{
	long n = arg_number(0, 100), made = 0;
	pid_t parent = getpid();

	for (; made < n; made++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (getppid() == parent) /* it may have ended before the prctl */
				pause();
			_exit(0);
		}
	}
	report("fork", made < n ? errno : 0, made == n, "%ld of %ld", made, n);
	return 0;
}

static void *sleep_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int cgr_02(void)
{
	static const struct {
		const char *op;
		size_t stack_bytes;
	} kinds[] = { { "threads", 64 << 10 }, { "huge-stacks", 256 << 20 } };
	long n = arg_number(0, 100);

	for (size_t k = 0; k < COUNT(kinds); k++) {
		pthread_attr_t attr;
		long made = 0;
		int err = 0;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, kinds[k].stack_bytes);
		for (pthread_t t; made < n && err == 0;) {
			err = pthread_create(&t, &attr, sleep_for_ever, NULL);
			made += err == 0;
		}
		report(kinds[k].op, err, made == n, "%ld of %ld", made, n);
	}
	return 0;
}

/* Argument 0: MiB, argument 1: anon, mlock or cow. Ends here alive, or not at all. */
static int cgr_03(void)
{
	size_t bytes = (size_t)arg_number(0, 8) << 20;
	const char *how = arg(1) ? arg(1) : "anon";
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	if (strcmp(how, "mlock") == 0)
		(void)mlock(p, bytes);
	/* For cow each side stays below the limit alone and passes it together. */
	bool cow = strcmp(how, "cow") == 0;

	memset(p, 1, cow ? bytes / 2 : bytes);
	pid_t pid = cow ? fork() : -1;

	if (cow)
		memset(p, 2, bytes / 2);
	if (pid == 0)
		_exit(0);
	int status = 0;

	if (pid > 0)
		waitpid(pid, &status, 0);
	report(how, 0, status == 0, "%zu MiB touched", bytes >> 20);
	return 0;
}

static void fill_bytes(const char *dir, long mib)
{
	char path[512], op[600];

	snprintf(path, sizeof path, "%s/caisson-fill", dir);
	snprintf(op, sizeof op, "bytes:%s", dir);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	long done = fd >= 0 ? fill_file(fd, mib) : 0;

	report(op, done < mib ? errno : 0, done == mib, "%ld of %ld MiB", done, mib);
	if (fd >= 0)
		close(fd);
	(void)unlink(path);
}

static void fill_inodes(const char *dir, long n)
{
	char path[512], op[600];
	long done = 0;
	int err = 0;

	snprintf(op, sizeof op, "inodes:%s", dir);
	for (; done < n && err == 0; done++) {
		snprintf(path, sizeof path, "%s/caisson-inode-%ld", dir, done);
		int fd = open(path, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0600);

		err = fd < 0 ? errno : 0;
		if (fd >= 0)
			close(fd);
	}
	report(op, err, err == 0, "%ld of %ld", done, n);
	for (; done >= 0; done--) {
		snprintf(path, sizeof path, "%s/caisson-inode-%ld", dir, done);
		(void)unlink(path);
	}
}

/* Arguments: MiB, inodes, folders. */
static int cgr_05(void)
{
	for (int i = 2; arg(i); i++) {
		fill_bytes(arg(i), arg_number(0, 8));
		fill_inodes(arg(i), arg_number(1, 100));
	}
	return 0;
}

static void spin_ms(long ms)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

static long try_fifo(void)
{
	return sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
}

/* Arguments: ms to spin on every CPU, percent of one CPU that would be too much. */
static int cgr_07(void)
{
	static const struct try fifo = { "sched-fifo", try_fifo, { 0 } };
	long ms = arg_number(0, 300), cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct rusage u;

	attempt_forked(&fifo);
	for (long i = 0; i < cpus; i++) {
		if (fork() == 0) {
			spin_ms(ms);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		continue;
	getrusage(RUSAGE_CHILDREN, &u);
	long used = u.ru_utime.tv_sec * 1000 + u.ru_utime.tv_usec / 1000 +
	            u.ru_stime.tv_sec * 1000 + u.ru_stime.tv_usec / 1000;

	report("cpu-share", 0, used * 100 / ms > arg_number(1, 100), "%ld ms of %ld", used, ms);
	return 0;
}

/* Arguments: folders where a cgroup file system may be. Makes and removes one empty group. */
static int cgr_11(void)
{
	static const char *const files[] = {
		"cgroup.procs", "tasks",         "memory.limit_in_bytes", "memory.max",
		"pids.max",     "freezer.state", "cgroup.kill",           "cgroup.subtree_control"
	};
	char path[512];

	for (int i = 0; arg(i); i++) {
		int opened = 0, err = ENOENT;

		for (size_t f = 0; f < COUNT(files); f++) {
			snprintf(path, sizeof path, "%s/%s", arg(i), files[f]);
			if (open_for_write(path) == 0)
				opened++;
			else if (errno != ENOENT)
				err = errno;
		}
		report(arg(i), opened ? 0 : err, opened > 0, "%d files open", opened);
		snprintf(path, sizeof path, "%s/caisson-probe-mkdir", arg(i));
		long r = mkdir(path, 0700);
		char op[600];

		snprintf(op, sizeof op, "mkdir:%s", arg(i));
		attempt(op, r, NULL);
		if (r == 0)
			(void)rmdir(path);
	}
	return 0;
}

static long try_nice(void)
{
	return setpriority(PRIO_PROCESS, 0, -5);
}

static long try_ioprio_rt(void)
{
	return syscall(SYS_ioprio_set, 1, 0, 1 << 13);
}

static long try_mlock_much(void)
{
	size_t bytes = 256 << 20;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -1 : mlock2(p, bytes, MLOCK_ONFAULT);
}

static long try_hugetlb(void)
{
	void *p = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	return p == MAP_FAILED ? -1 : 0;
}

static long try_oom_adj(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : write(fd, "-1000", 5);
}

static long try_raise_limit(void)
{
	struct rlimit r;

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_max++;
	return setrlimit(RLIMIT_NOFILE, &r);
}

static long try_deadline(void)
{
	return sched_setscheduler(0, SCHED_RR, &(struct sched_param){ .sched_priority = 1 });
}

static int cgr_13(void)
{
	static const struct try tries[] = {
		{ "nice", try_nice, { 0 } },
		{ "ioprio-rt", try_ioprio_rt, { 0 } },
		{ "mlock-256m", try_mlock_much, { 0 } },
		{ "hugetlb", try_hugetlb, { 0 } },
		{ "oom-score", try_oom_adj, { 0 } },
		{ "raise-limit", try_raise_limit, { 0 } },
		{ "sched-rr", try_deadline, { 0 } },
	};

	return attempt_all(tries, COUNT(tries));
}

static long try_fifo_by_attr(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48, .policy = SCHED_FIFO, .priority = 1 };

	return syscall(SYS_sched_setattr, 0, &attr, 0);
}

static long try_nice_lowest(void)
{
	return setpriority(PRIO_PROCESS, 0, -20);
}

static long try_core_sharing(void)
{
	return prctl(62, 1, 0, 0, 0); /* PR_SCHED_CORE, PR_SCHED_CORE_CREATE, linux/prctl.h */
}

/* By whom RLIMIT_RTPRIO and RLIMIT_NICE let: audio services, and users in their groups. */
static int cgr_15(void)
{
	static const struct try tries[] = {
		{ "sched-fifo", try_fifo, { 0 } },
		{ "sched-rr", try_deadline, { 0 } },
		{ "sched-fifo-by-attr", try_fifo_by_attr, { 0 } },
		{ "nice-lowest", try_nice_lowest, { 0 } },
		{ "core-sharing", try_core_sharing, { 0 } },
	};

	return attempt_all(tries, COUNT(tries));
}

/* Open: a limit that can be raised above what the row allows, or that has no end. */
static int cgr_18(void)
{
	static const struct {
		const char *op;
		__rlimit_resource_t of;
		rlim_t most;
	} bounded[] = {
		{ "rtprio", RLIMIT_RTPRIO, 0 },          { "nice", RLIMIT_NICE, 20 },
		{ "rttime", RLIMIT_RTTIME, 1000000 },    { "memlock", RLIMIT_MEMLOCK, 8 << 20 },
		{ "msgqueue", RLIMIT_MSGQUEUE, 819200 }, { "sigpending", RLIMIT_SIGPENDING, 16384 },
	};

	for (size_t i = 0; i < COUNT(bounded); i++) {
		struct rlimit is = { 0 };

		if (getrlimit(bounded[i].of, &is) < 0)
			return -1;
		report(bounded[i].op, 0, is.rlim_max > bounded[i].most, "%llu",
		       (unsigned long long)is.rlim_max);
	}
	return 0;
}

/* Arguments: a folder, MiB that must not fit. A sparse file is fine: it takes no blocks. */
static int cgr_14(void)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof path, "%s/caisson-sparse", arg(0) ? arg(0) : "/tmp");
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	long r = ftruncate(fd, (off_t)0x7fffffffffffffff);

	report("truncate-8-eib", r < 0 ? errno : 0, fstat(fd, &st) < 0 || st.st_blocks > 64,
	       "%ld blocks", (long)st.st_blocks);
	(void)ftruncate(fd, 0);
	attempt("fallocate", fallocate(fd, 0, 0, (off_t)arg_number(1, 8) << 20), NULL);
	close(fd);
	(void)unlink(path);
	return 0;
}

/* A verb: MiB to stdout, in pieces of the given size. */
static int flood(void)
{
	static char block[65536];
	size_t piece = (size_t)arg_number(1, sizeof block);
	long bytes = arg_number(0, 1) << 20;

	memset(block, 'x', sizeof block);
	for (ssize_t n; bytes > 0; bytes -= n) {
		n = write(1, block, piece);
		if (n <= 0)
			return 0;
	}
	return 0;
}

/* A verb: fsync storm for some ms in a folder. */
static int fsync_storm(void)
{
	static char block[4096];
	char path[512];
	struct timespec start, now;

	snprintf(path, sizeof path, "%s/caisson-storm", arg(0) ? arg(0) : "/tmp");
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		if (fd < 0 || pwrite(fd, block, sizeof block, 0) < 0 || fsync(fd) < 0)
			return -1;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 < arg_number(1, 1000));
	return 0;
}

const struct row cgr_rows[] = {
	{ "CGR-01", cgr_01 },
	{ "CGR-02", cgr_02 },
	{ "CGR-03", cgr_03 },
	{ "CGR-05", cgr_05 },
	{ "CGR-07", cgr_07 },
	{ "CGR-11", cgr_11 },
	{ "CGR-13", cgr_13 },
	{ "CGR-14", cgr_14 },
	{ "CGR-15", cgr_15 },
	{ "CGR-18", cgr_18 },
	{ "flood", flood },
	{ "fsync-storm", fsync_storm },
	{ 0 },
};
