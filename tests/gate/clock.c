/*
 * clock.c - the wall clock of caisson-gate-clock, which is caisson-gate with these in front of the
 * libc's (ld --wrap): so many seconds are added as the file says that $GATE_CLOCK names. All other
 * clocks are true. The file is mapped before the gate gives up its rights.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* NOLINTBEGIN(bugprone-reserved-identifier): names of the linker's */
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
time_t __wrap_time(time_t *out);
int __wrap_gettimeofday(struct timeval *t, void *zone);
/* NOLINTEND(bugprone-reserved-identifier) */

static const volatile int64_t *jump;

__attribute__((constructor)) static void find(void)
{
	const char *path = getenv("GATE_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *jump, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		_exit(3);
	jump = at;
	close(fd);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	int r = __real_clock_gettime(id, t);

	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += *jump;
	return r;
}

time_t __wrap_time(time_t *out)
{
	struct timespec t = { 0 };

	__wrap_clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

int __wrap_gettimeofday(struct timeval *t, void *zone)
{
	struct timespec now = { 0 };

	(void)zone;
	__wrap_clock_gettime(CLOCK_REALTIME, &now);
	*t = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}
