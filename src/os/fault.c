#include "os/fault.h"

#ifdef CAISSON_TEST

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TRACE_MAX 4096

/* One page set for all processes of a launch; tests/fault/launch.py reads it too. */
static struct fault {
	atomic_long calls;
	struct {
		uint64_t ns;
		int32_t pid;
		char name[28];
	} trace[TRACE_MAX];
	atomic_bool is_stopped;
} * shared;

static long fail_at, kill_at;
static char fail_name[32]; /* instead of a number: every call of that name */
static int fail_errno;
static const char *count_file, *trace_file, *map_file, *faults_file, *stop_at;
static char faults[512]; /* of the file: takes the place of the environment */
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

/* The value of CAISSON_name, "" without one. */
static void find_value(const char *name, char *out, size_t size)
{
	char key[32];
	size_t len = (size_t)snprintf(key, sizeof key, "\n%s=", name);
	const char *line = strstr(faults, key), *value = line ? line + len : NULL;

	if (!value && !faults[0]) {
		snprintf(key, sizeof key, "CAISSON_%s", name);
		value = getenv(key);
	}
	snprintf(out, size, "%.*s", value ? (int)strcspn(value, "\n") : 0, value ? value : "");
}

static void read_numbers(void)
{
	char text[64], *end;

	find_value("FAIL_AT", text, sizeof text);
	fail_at = strtol(text, &end, 10);
	end += fail_at == 0 ? strcspn(end, ":") : 0;
	snprintf(fail_name, sizeof fail_name, "%.*s", fail_at == 0 ? (int)(end - text) : 0, text);
	fail_errno = *end == ':' ? (int)strtol(end + 1, NULL, 10) : EIO;
	find_value("KILL_AT", text, sizeof text);
	kill_at = strtol(text, NULL, 10);
}

/* Without the wrappers of os/, which count. */
void fault_begin(void)
{
	int fd = faults_file ? open(faults_file, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? -1 : read(fd, faults + 1, sizeof faults - 2);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return;
	faults[0] = '\n';
	faults[1 + n] = '\0';
	read_numbers();
	atomic_store(&shared->calls, 0);
}

static void *map_shared(void)
{
	int flags = MAP_SHARED | (map_file ? 0 : MAP_ANONYMOUS);
	int fd = map_file ? open(map_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (map_file && (fd < 0 || ftruncate(fd, sizeof *shared) < 0))
		abort();
	void *at = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return at;
}

void fault_init(void)
{
	map_file = getenv("CAISSON_FAULT_MAP");
	faults_file = getenv("CAISSON_FAULTS");
	stop_at = getenv("CAISSON_STOP_AT");
	count_file = getenv("CAISSON_FAULT_COUNT");
	trace_file = getenv("CAISSON_TRACE");
	shared = map_shared();
	if (shared == MAP_FAILED)
		abort();
	read_numbers();
	first_pid = getpid();
	atexit(write_files);
}

/* As a call that the kernel does not let end. Pid 1 of a namespace cannot stop itself. */
static void stop_here(void)
{
	for (;;)
		pause();
}

int fault_hit(const char *name)
{
	if (!shared)
		return 0;
	long n = atomic_fetch_add(&shared->calls, 1) + 1;

	if ((trace_file || map_file) && n <= TRACE_MAX) {
		snprintf(shared->trace[n - 1].name, sizeof shared->trace[0].name, "%s", name);
		shared->trace[n - 1].pid = getpid();
		shared->trace[n - 1].ns = now_ns();
	}

	if (n == kill_at) {
		kill(getpid(), SIGKILL);
		_exit(137); /* pid 1 of a namespace does not die by its own hand */
	}
	if (stop_at && strcmp(name, stop_at) == 0 && !atomic_exchange(&shared->is_stopped, true))
		stop_here();
	return n == fail_at || strcmp(name, fail_name) == 0 ? -fail_errno : 0;
}

bool fault_layer_off(const char *layer)
{
	char text[256];
	size_t len = strlen(layer);

	find_value("LAYER_OFF", text, sizeof text);
	for (const char *off = text; *off; off += strcspn(off, ","), off += *off == ',')
		if (strncmp(off, layer, len) == 0 && (off[len] == ',' || off[len] == '\0'))
			return true;
	return false;
}

long fault_number(const char *variable, long otherwise)
{
	const char *text = getenv(variable);

	return text ? strtol(text, NULL, 10) : otherwise;
}

#endif
