/*
 * pump.c - poll(2) and not the loop of io/: standard input may be a plain file, which epoll
 * refuses and which is always ready.
 */
#include "cli/pump.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/terminal.h"

struct state {
	struct pump *p;
	int signal_fd;
	bool stdin_open, is_done, is_ending;
};

static void tell_signal(struct state *s, int sig)
{
	s->p->driver->signal(s->p->session, sig);
}

static void tell_size(struct state *s)
{
	uint16_t rows, cols;

	if (s->p->is_tty && terminal_size(&rows, &cols))
		s->p->driver->resize(s->p->session, rows, cols);
}

static void read_stdin(struct state *s)
{
	static unsigned char bytes[DRIVER_INPUT_MAX];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	s->stdin_open = n > 0;
	s->p->driver->input(s->p->session, bytes, n > 0 ? (size_t)n : 0);
}

/* The job is stopped from outside (a shell's Ctrl-Z without our pty, or kill -TSTP). */
static void stop_job(struct state *s)
{
	if (!s->p->is_tty)
		tell_signal(s, SIGSTOP);
	terminal_restore();
	raise(SIGSTOP);
	if (s->p->is_tty) {
		terminal_raw();
		tell_size(s);
	} else {
		tell_signal(s, SIGCONT);
	}
}

static void read_signal(struct state *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
		return;
	switch (info.ssi_signo) {
	case SIGWINCH:
		tell_size(s);
		break;
	case SIGTSTP:
		stop_job(s);
		break;
	case SIGTERM:
	case SIGHUP:
		s->is_ending = true;
		s->p->driver->kill(s->p->session);
		break;
	default:
		tell_signal(s, (int)info.ssi_signo);
		break;
	}
}

/* Waits for room, and hears signals meanwhile: whoever does not read shall not hold us. */
static bool await_room(struct state *s, int fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLOUT },
		                { .fd = s->signal_fd, .events = POLLIN } };

	if (poll(fds, COUNT(fds), s->is_ending ? 0 : -1) < 0)
		return false;
	if (fds[1].revents)
		read_signal(s);
	return fds[0].revents != 0;
}

static void write_output(struct state *s, int fd, const struct run_event *event)
{
	const unsigned char *p = event->bytes;
	size_t n = event->n;

	if (s->p->kept) {
		keep_add(&s->p->kept[fd == STDERR_FILENO], p, n);
		return;
	}
	while (n > 0 && !s->p->is_pipe_closed) {
		if (!await_room(s, fd)) {
			if (s->is_ending)
				return; /* nobody takes it, and nobody waits for that any more */
			continue;
		}
		/* A pipe that has room has it for this much. */
		ssize_t w = write(fd, p, n < PIPE_BUF ? n : PIPE_BUF);
		if (w < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (w < 0) {
			s->p->write_errno = errno;
			s->p->is_pipe_closed = true;
			s->p->driver->kill(s->p->session);
			return;
		}
		p += w;
		n -= (size_t)w;
	}
}

/* All that there is now; signals are heard between two of them. */
static int read_events(struct state *s, struct err *e)
{
	struct run_event event = { 0 };
	int r = s->p->driver->next(s->p->session, &event, e);

	if (r <= 0)
		return r;
	switch (event.kind) {
	case RUN_OUT:
		write_output(s, STDOUT_FILENO, &event);
		break;
	case RUN_ERR:
		write_output(s, STDERR_FILENO, &event);
		break;
	case RUN_STARTED:
		break;
	case RUN_ENDED:
		s->p->end = *event.end;
		s->is_done = true;
		break;
	}
	return 1;
}

static int open_signals(struct state *s, struct err *e)
{
	static const int passed[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
		                      SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT(passed); i++) {
		struct sigaction now;

		/* What the caller ignores (nohup) stays ignored. */
		if (sigaction(passed[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(&set, passed[i]);
	}
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	return s->signal_fd < 0 ? err_sys(e, errno, "signalfd") : 0;
}

/* Waits only when the session has nothing more to say. */
static int turn(struct state *s, struct err *e)
{
	int r = read_events(s, e);

	if (r < 0 || s->is_done)
		return r < 0 ? -1 : 0;
	bool can_type = s->stdin_open && s->p->session->has_room;
	struct pollfd fds[] = {
		{ .fd = s->p->session->poll_fd, .events = POLLIN },
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = can_type ? STDIN_FILENO : -1, .events = POLLIN },
	};

	if (poll(fds, COUNT(fds), r > 0 ? 0 : -1) < 0)
		return errno == EINTR ? 0 : err_sys(e, errno, "poll");
	if (fds[1].revents & POLLIN)
		read_signal(s);
	if (fds[2].revents)
		read_stdin(s);
	return 0;
}

int pump_run(struct pump *p, struct err *e)
{
	struct state s = { .p = p, .signal_fd = -1, .stdin_open = p->has_stdin };

	if (open_signals(&s, e) < 0)
		return -1;
	AUTO(fd_close) int owned = s.signal_fd;
	if (p->is_tty && isatty(STDIN_FILENO))
		terminal_raw();
	if (p->is_tty && !p->has_stdin)
		p->driver->input(p->session, NULL, 0); /* nobody will type */
	int r = 0;
	while (!s.is_done && r == 0)
		r = turn(&s, e);
	terminal_restore();
	return r;
}
