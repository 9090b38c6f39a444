#include "os/fault.h"

#ifdef CAISSON_TEST

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TRACE_MAX 4096

/* One page set for all processes of a launch; `name` is a literal, at one address in all. */
static struct fault {
	atomic_long calls;
	struct {
		uint64_t ns;
		pid_t pid;
		const char *name;
	} trace[TRACE_MAX];
} * shared;

static long fail_at, kill_at;
static int fail_errno = EIO;
static const char *count_file, *trace_file;
static pid_t first_pid;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void write_trace(int fd, long calls)
{
	for (long i = 0; i < calls && i < TRACE_MAX; i++)
		dprintf(fd, "%8.1f %d %s\n",
		        (double)(shared->trace[i].ns - shared->trace[0].ns) / 1000,
		        shared->trace[i].pid, shared->trace[i].name);
}

static void write_files(void)
{
	long calls = atomic_load(&shared->calls);
	const char *names[] = { count_file, trace_file };

	if (getpid() != first_pid)
		return;
	for (size_t i = 0; i < COUNT(names); i++) {
		int fd =
		    names[i] ? open(names[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

		if (fd < 0)
			continue;
		if (i == 0)
			dprintf(fd, "%ld\n", calls);
		else
			write_trace(fd, calls);
		close(fd);
	}
}

void fault_init(void)
{
	const char *fail = getenv("CAISSON_FAIL_AT");
	const char *kill_text = getenv("CAISSON_KILL_AT");

	shared =
	    mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		abort();
	if (fail) {
		char *end;

		fail_at = strtol(fail, &end, 10);
		if (*end == ':')
			fail_errno = (int)strtol(end + 1, NULL, 10);
	}
	if (kill_text)
		kill_at = strtol(kill_text, NULL, 10);
	first_pid = getpid();
	count_file = getenv("CAISSON_FAULT_COUNT");
	trace_file = getenv("CAISSON_TRACE");
	atexit(write_files);
}

int fault_hit(const char *name)
{
	if (!shared)
		return 0;
	long n = atomic_fetch_add(&shared->calls, 1) + 1;

	if (trace_file && n <= TRACE_MAX) {
		shared->trace[n - 1].name = name;
		shared->trace[n - 1].pid = getpid();
		shared->trace[n - 1].ns = now_ns();
	}

	if (n == kill_at) {
		kill(getpid(), SIGKILL);
		_exit(137); /* pid 1 of a namespace does not die by its own hand */
	}
	return n == fail_at ? -fail_errno : 0;
}

bool fault_layer_off(const char *layer)
{
	const char *off = getenv("CAISSON_LAYER_OFF");

	return off && strcmp(off, layer) == 0;
}

#endif
