/*
 * live.c - poll(2) and not the loop of io/: standard input may be a plain file, which epoll
 * refuses and which is always ready.
 */
#include "cli/live.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/escape.h"
#include "cli/terminal.h"

#define INPUT_BYTES (32u << 10)
#define LEAVE_KEY 0x1d /* Ctrl-], as in telnet */
#define STATUS_OURS 125
#define STATUS_PIPE 141

struct state {
	struct live *l;
	struct remote remote;
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

static void tell_size(struct state *s)
{
	uint16_t rows, cols;

	if (s->l->is_tty && terminal_size(&rows, &cols))
		remote_resize(&s->remote, rows, cols);
}

/* The job is stopped from outside (a shell's Ctrl-Z without our pty, or kill -TSTP). */
static void stop_job(struct state *s)
{
	if (!s->l->is_tty)
		remote_signal(&s->remote, SIGSTOP);
	terminal_restore();
	raise(SIGSTOP);
	if (s->l->is_tty) {
		terminal_raw();
		tell_size(s);
	} else {
		remote_signal(&s->remote, SIGCONT);
	}
}

static void leave(struct state *s)
{
	s->l->is_left = s->is_done = s->is_ending = true;
}

static void end_process(struct state *s)
{
	if (s->l->is_guest) {
		leave(s);
		return;
	}
	s->is_ending = true;
	remote_send(&s->remote, STREAM_KILL, NULL, 0);
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
		end_process(s);
		break;
	default:
		remote_signal(&s->remote, (int)info.ssi_signo);
		break;
	}
}

/* ---- input and output ---------------------------------------------------------------- */

static void read_stdin(struct state *s)
{
	char buf[INPUT_BYTES];
	ssize_t n = read(STDIN_FILENO, buf, sizeof buf);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0 && s->l->is_guest && s->l->is_tty && memchr(buf, LEAVE_KEY, (size_t)n)) {
		leave(s);
		return;
	}
	s->is_stdin_open = n > 0;
	remote_send(&s->remote, n > 0 ? STREAM_IN : STREAM_EOF, buf, n > 0 ? (size_t)n : 0);
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
	while (n > 0 && !s->l->is_pipe_closed) {
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
			s->l->write_errno = errno;
			s->l->is_pipe_closed = true;
			end_process(s);
			return;
		}
		p += w;
		n -= (size_t)w;
	}
}

static void keep_process(struct state *s, json_t *process)
{
	json_decref(s->l->process);
	s->l->process = process;
}

/* Whoever attaches learns only now whether there is a terminal at the other end. */
static void begin(struct state *s, json_t *first)
{
	struct live *l = s->l;
	json_t *process = json_object_get(first, "process");

	keep_process(s, json_incref(process));
	if (l->is_guest)
		l->is_tty = json_is_true(json_object_get(process, "tty"));
	if (l->is_guest && l->is_tty && l->has_stdin && isatty(STDIN_FILENO)) {
		fprintf(stderr, "caisson: Ctrl-] leaves\n");
		terminal_raw();
		tell_size(s);
	}
	json_decref(first);
}

static int take_event(struct state *s, struct remote_event *v, struct err *e)
{
	int r = 0;

	switch (v->type) {
	case STREAM_STARTED:
		begin(s, v->object);
		break;
	case STREAM_OUT:
		write_output(s, STDOUT_FILENO, v->bytes, v->len);
		break;
	case STREAM_ERR:
		write_output(s, STDERR_FILENO, v->bytes, v->len);
		break;
	case STREAM_LOST:
		fprintf(stderr, "caisson: %.*s bytes of output were not kept\n",
		        (int)(v->len < 20 ? v->len : 20), (const char *)v->bytes);
		break;
	case STREAM_END:
		keep_process(s, v->object);
		s->is_done = true;
		break;
	case STREAM_FAIL:
		r = client_problem(v->object, e);
		json_decref(v->object);
		break;
	case STREAM_IN:
	case STREAM_EOF:
	case STREAM_SIGNAL:
	case STREAM_RESIZE:
	case STREAM_KILL:
		break; /* ours to say */
	}
	return r;
}

static int take_events(struct state *s, struct err *e)
{
	struct remote_event v;
	int r;

	while (!s->is_done && (r = remote_next(&s->remote, &v, e)) != 0)
		if (r < 0 || take_event(s, &v, e) < 0)
			return -1;
	return 0;
}

/* ---- the loop ------------------------------------------------------------------------ */

static int turn(struct state *s, struct err *e)
{
	bool is_waiting = remote_is_waiting(&s->remote);
	struct pollfd fds[] = {
		{ .fd = remote_fd(&s->remote),
		  .events = (short)(POLLIN | (is_waiting ? POLLOUT : 0)) },
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->is_stdin_open && !is_waiting ? STDIN_FILENO : -1, .events = POLLIN },
	};

	if (poll(fds, COUNT(fds), -1) < 0)
		return errno == EINTR ? 0 : err_sys(e, errno, "poll");
	if (fds[0].revents & POLLOUT)
		remote_flush(&s->remote);
	if (fds[0].revents & (POLLIN | POLLHUP | POLLERR) &&
	    (remote_fill(&s->remote, e) < 0 || take_events(s, e) < 0))
		return -1;
	if (fds[1].revents & POLLIN)
		read_signal(s);
	if (fds[2].revents)
		read_stdin(s);
	return 0;
}

int live_run(struct live *l, struct err *e)
{
	struct state s = { .l = l, .signal_fd = -1, .is_stdin_open = l->has_stdin };

	if (remote_open(&s.remote, l->client, &l->ask, e) < 0)
		return -1;
	int r = open_signals(&s, e);
	AUTO(fd_close) int owned = s.signal_fd;
	if (r == 0 && l->is_tty && isatty(STDIN_FILENO))
		terminal_raw();
	if (r == 0)
		r = take_events(&s, e); /* what came with the head */
	while (!s.is_done && r == 0)
		r = turn(&s, e);
	terminal_restore();
	remote_done(&s.remote);
	return r;
}

void live_done(struct live *l)
{
	json_decref(l->process);
	l->process = NULL;
}

/* ---- what is left to say ------------------------------------------------------------- */

void live_explain(const json_t *process)
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

int live_report(const struct live *l)
{
	if (!l->is_pipe_closed)
		live_explain(l->process);
	if (l->write_errno && l->write_errno != EPIPE) {
		fprintf(stderr, "caisson: write the output: %s\n", strerror(l->write_errno));
		return STATUS_OURS;
	}
	return l->is_pipe_closed ? STATUS_PIPE : remote_exit_status(l->process);
}
