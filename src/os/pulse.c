#include "os/pulse.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "os/ret.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* linux/include/uapi/asm-generic/socket.h, since 6.16 */
#endif

static void pulse_beat(int sig)
{
	(void)sig;
}

int os_pulse_init(void)
{
	struct sigaction beat = { .sa_handler = pulse_beat, .sa_flags = SA_RESTART };
	sigset_t set;

	OS_FAULT("sigaction");
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	return os_ret(sigaction(SIGALRM, &beat, NULL));
}

static void pulse_set(long ms)
{
	const struct itimerval t = { .it_interval.tv_usec = ms * 1000,
		                     .it_value.tv_usec = ms * 1000 };

	(void)setitimer(ITIMER_REAL, &t, NULL); /* fails for a bad pointer or value only */
}

void os_pulse_on(void)
{
	pulse_set(OS_PULSE_MS);
}

void os_pulse_off(void)
{
	pulse_set(0);
}

static int64_t poll_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int os_poll(struct pollfd *fds, size_t n, int ms)
{
	const int64_t until = poll_now_ms() + ms;

	OS_FAULT("poll");
	for (int64_t left = ms;; left = until - poll_now_ms()) {
		int r = poll(fds, n, ms < 0 ? -1 : left > 0 ? (int)left : 0);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

bool os_refuse_fds(int fd)
{
	const int off = 0;

	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) == 0;
}
