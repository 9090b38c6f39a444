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
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/terminal.h"

struct state {
	struct pump *p;
	int signal_fd;
	struct channel_packet in, out; /* from the monitor; to it, while it has no room */
	bool is_waiting;               /* `out` could not be sent yet */
	bool stdin_open, is_done, is_ending;
};

static void send_out(struct state *s)
{
	size_t n = sizeof s->out.head + s->out.head.len;
	ssize_t r = send(s->p->channel_fd, &s->out, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	s->is_waiting = r < 0 && errno == EAGAIN;
}

/* Small messages; room for them is waited for. */
static void tell(struct state *s, enum channel_type type, const void *bytes, size_t n)
{
	struct channel_packet p; /* not cleared: most messages are much shorter */

	p.head = (struct channel_head){ .type = type, .len = (uint32_t)n };
	if (n > 0)
		memcpy(p.data, bytes, n);
	(void)send(s->p->channel_fd, &p, sizeof p.head + n, MSG_NOSIGNAL);
}

static void tell_signal(struct state *s, int32_t sig)
{
	tell(s, CH_SIGNAL, &sig, sizeof sig);
}

static void tell_size(struct state *s)
{
	uint16_t size[2];

	if (s->p->is_tty && terminal_size(&size[0], &size[1]))
		tell(s, CH_RESIZE, size, sizeof size);
}

static void read_stdin(struct state *s)
{
	ssize_t n = read(STDIN_FILENO, s->out.data, sizeof s->out.data);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	s->out.head =
	    (struct channel_head){ .type = n > 0 ? CH_IN : CH_EOF, .len = n > 0 ? (uint32_t)n : 0 };
	s->stdin_open = n > 0;
	send_out(s);
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
		tell(s, CH_KILL, NULL, 0); /* everything inside: TERM, and after a while KILL */
		break;
	default:
		tell_signal(s, (int32_t)info.ssi_signo);
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

static void write_output(struct state *s, int fd)
{
	const unsigned char *p = s->in.data;
	size_t n = s->in.head.len;

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
			tell(s, CH_KILL, NULL, 0);
			return;
		}
		p += w;
		n -= (size_t)w;
	}
}

static int read_channel(struct state *s, struct err *e)
{
	ssize_t n = recv(s->p->channel_fd, &s->in, sizeof s->in, 0);

	/* A monitor that ended without reading all we sent: what it sent is still there. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(s->p->channel_fd, &s->in, sizeof s->in, 0);

	if (n < 0 && errno == EINTR)
		return 0;
	if (n < (ssize_t)sizeof s->in.head || s->in.head.len != (size_t)n - sizeof s->in.head)
		return err_new(e, ERR_INTERNAL, "lost: the monitor of the sandbox died");
	switch ((enum channel_type)s->in.head.type) {
	case CH_OUT:
		write_output(s, STDOUT_FILENO);
		break;
	case CH_ERR:
		write_output(s, STDERR_FILENO);
		break;
	case CH_FAIL:
		memcpy(e, s->in.data, sizeof *e < s->in.head.len ? sizeof *e : s->in.head.len);
		e->msg[sizeof e->msg - 1] = '\0';
		return -1;
	case CH_END:
		if (s->in.head.len != sizeof s->p->end)
			return err_new(e, ERR_INTERNAL, "lost: the monitor's report is malformed");
		memcpy(&s->p->end, s->in.data, sizeof s->p->end);
		s->is_done = true;
		break;
	case CH_EBB:
		if (s->p->ebb)
			s->p->ebb(s->p->session);
		break;
	case CH_STARTED:
	case CH_IN:
	case CH_EOF:
	case CH_SIGNAL:
	case CH_RESIZE:
	case CH_KILL:
	case CH_GO:
	case CH_TYPES:
		break;
	}
	return 0;
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

static int turn(struct state *s, struct err *e)
{
	struct pollfd fds[] = {
		{ .fd = s->p->channel_fd,
		  .events = (short)(POLLIN | (s->is_waiting ? POLLOUT : 0)) },
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->stdin_open && !s->is_waiting ? STDIN_FILENO : -1, .events = POLLIN },
	};

	if (poll(fds, COUNT(fds), -1) < 0)
		return errno == EINTR ? 0 : err_sys(e, errno, "poll");
	if (fds[0].revents & POLLOUT)
		send_out(s);
	if (fds[0].revents & (POLLIN | POLLHUP | POLLERR) && read_channel(s, e) < 0)
		return -1;
	if (fds[1].revents & POLLIN)
		read_signal(s);
	if (fds[2].revents)
		read_stdin(s);
	return 0;
}

int pump_run(struct pump *p, struct err *e)
{
	static struct state s; /* 64 KiB of packets */

	s = (struct state){ .p = p, .signal_fd = -1, .stdin_open = p->has_stdin };
	if (open_signals(&s, e) < 0)
		return -1;
	AUTO(fd_close) int owned = s.signal_fd;
	if (p->is_tty && isatty(STDIN_FILENO))
		terminal_raw();
	if (p->is_tty && !p->has_stdin)
		tell(&s, CH_EOF, NULL, 0); /* nobody will type */
	int r = 0;
	while (!s.is_done && r == 0)
		r = turn(&s, e);
	terminal_restore();
	return r;
}
