#include "os/fault.h"

#ifdef CAISSON_TEST

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static struct fault {
	atomic_long calls;
} * shared;

static long fail_at, kill_at;
static int fail_errno = EIO;
static const char *count_file;
static pid_t first_pid;

static void write_count(void)
{
	if (!count_file || getpid() != first_pid)
		return;
	int fd = open(count_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	dprintf(fd, "%ld\n", atomic_load(&shared->calls));
	close(fd);
}

void fault_init(void)
{
	const char *fail = getenv("CAISSON_FAIL_AT");
	const char *kill_text = getenv("CAISSON_KILL_AT");

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
	if (count_file)
		atexit(write_count);
}

int fault_hit(const char *name)
{
	(void)name;
	if (!shared)
		return 0;
	long n = atomic_fetch_add(&shared->calls, 1) + 1;

	if (n == kill_at)
		kill(getpid(), SIGKILL);
	return n == fail_at ? -fail_errno : 0;
}

bool fault_layer_off(const char *layer)
{
	const char *off = getenv("CAISSON_LAYER_OFF");

	return off && strcmp(off, layer) == 0;
}

#endif
