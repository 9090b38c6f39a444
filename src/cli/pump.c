/*
 * pump.c - poll(2) and not the loop of io/: standard input may be a plain file, which epoll
 * refuses and which is always ready.
 */
#include "cli/pump.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/remote.h"
#include "cli/terminal.h"
#include "wire/escape.h"

#define LEAVE_KEY 0x1d /* Ctrl-], as in telnet */
#define STATUS_OURS 125
#define STATUS_PIPE 141

struct state {
	struct pump *p;
	int signal_fd;
	bool is_stdin_open, is_done;
	bool is_ending; /* the process was told to end: nobody waits for a slow reader */
};

/* ---- signals ------------------------------------------------------------------------- */

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

static void leave(struct state *s)
{
	s->p->is_left = s->is_done = s->is_ending = true;
}

static void end_process(struct state *s)
{
	if (s->p->is_guest) {
		leave(s);
		return;
	}
	s->is_ending = true;
	s->p->driver->kill(s->p->session);
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
		if (s->p->is_proxy)
			tell_signal(s, (int)info.ssi_signo);
		else
			end_process(s);
		break;
	default:
		tell_signal(s, (int)info.ssi_signo);
		break;
	}
}

/* ---- input and output ---------------------------------------------------------------- */

static void read_stdin(struct state *s)
{
	char buf[DRIVER_INPUT_MAX];
	ssize_t n = read(STDIN_FILENO, buf, sizeof buf);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0 && s->p->is_guest && s->p->is_tty && memchr(buf, LEAVE_KEY, (size_t)n)) {
		leave(s);
		return;
	}
	s->is_stdin_open = n > 0;
	s->p->driver->input(s->p->session, buf, n > 0 ? (size_t)n : 0);
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

static void write_output(struct state *s, int fd, const unsigned char *p, size_t n)
{
	while (n > 0 && !s->p->is_pipe_closed && !s->p->is_quiet) {
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
			end_process(s);
			return;
		}
		p += w;
		n -= (size_t)w;
	}
}

static void keep(json_t **at, json_t *object)
{
	json_decref(*at);
	*at = object;
}

/* Whoever attaches learns only now whether there is a terminal at the other end. */
static void begin(struct state *s, json_t *hello)
{
	struct pump *p = s->p;
	json_t *process = json_object_get(hello, "process");

	keep(&p->hello, hello);
	keep(&p->process, json_incref(process));
	if (p->is_guest)
		p->is_tty = json_is_true(json_object_get(process, "tty"));
	if (p->is_guest && p->is_tty && p->has_stdin && isatty(STDIN_FILENO)) {
		fprintf(stderr, "caisson: Ctrl-] leaves\n");
		terminal_raw();
		tell_size(s);
	}
}

static void take_event(struct state *s, const struct run_event *v)
{
	switch (v->kind) {
	case RUN_STARTED:
		begin(s, v->object);
		break;
	case RUN_OUT:
		write_output(s, STDOUT_FILENO, v->bytes, v->n);
		break;
	case RUN_NOTE:
	case RUN_ERR:
		write_output(s, STDERR_FILENO, v->bytes, v->n);
		break;
	case RUN_DROPPED:
		fprintf(stderr, "caisson: %.*s bytes of output were not kept\n",
		        (int)(v->n < 20 ? v->n : 20), (const char *)v->bytes);
		break;
	case RUN_ENDED:
		keep(&s->p->process, v->object);
		s->is_done = true;
		break;
	}
}

/* ---- the loop ------------------------------------------------------------------------ */

/* Waits only when the session has nothing more to say; signals are heard between two events. */
static int turn(struct state *s, struct err *e)
{
	const struct run_session *session = s->p->session;
	struct run_event event = { 0 };
	int r = s->p->driver->next(s->p->session, &event, e);

	if (r < 0)
		return -1;
	if (r > 0)
		take_event(s, &event);
	if (s->is_done)
		return 0;
	struct pollfd fds[] = {
		{ .fd = session->poll_fd, .events = session->poll_events },
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->is_stdin_open && session->has_room ? STDIN_FILENO : -1,
		  .events = POLLIN },
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
	struct state s = { .p = p, .signal_fd = -1, .is_stdin_open = p->has_stdin };

	if (open_signals(&s, e) < 0)
		return -1;
	AUTO(fd_close) int owned = s.signal_fd;

	(void)owned; /* only closed */
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

void pump_done(struct pump *p)
{
	keep(&p->hello, NULL);
	keep(&p->process, NULL);
}

/* ---- what is left to say ------------------------------------------------------------- */

void pump_explain(const json_t *process)
{
	const char *reason = json_string_value(json_object_get(process, "reason"));
	const char *state = json_string_value(json_object_get(process, "state"));
	const json_t *bytes = json_object_get(process, "bytes");
	json_int_t dropped = json_integer_value(json_object_get(bytes, "dropped"));
	const json_t *shell = json_object_get(process, "shell");
	const char *why = json_string_value(json_object_get(shell, "reason"));

	if (why)
		fprintf(stderr, "caisson: the shell was started anew: %s\n", escape_brief(why));
	if (reason && strncmp(reason, "execute: ", 9) == 0)
		fprintf(stderr, "caisson: %s\n", escape_brief(reason));
	else if (reason)
		fprintf(stderr, "caisson: %s: %s\n", state ? state : "ended", escape_brief(reason));
	else if (!state || strcmp(state, "lost") == 0)
		fprintf(stderr, "caisson: lost: nobody knows how it ended\n");
	if (dropped > 0)
		fprintf(stderr, "caisson: output limit reached: %lld bytes dropped\n",
		        (long long)dropped);
}

int pump_report(const struct pump *p)
{
	if (!p->is_pipe_closed)
		pump_explain(p->process);
	if (p->write_errno && p->write_errno != EPIPE) {
		fprintf(stderr, "caisson: write the output: %s\n", strerror(p->write_errno));
		return STATUS_OURS;
	}
	return p->is_pipe_closed ? STATUS_PIPE : remote_exit_status(p->process);
}
