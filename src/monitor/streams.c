/*
 * streams.c - bytes between the command and the client.
 *
 * Output is read only when the last packet is on its way: a client that does not read stops
 * the command at its own pipe, and no byte is kept here. Input waits in one buffer until the
 * command takes it. Past the output limit bytes are read and dropped, so that the command ends
 * by itself and nobody's memory or disk grows.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/file.h"
#include "os/sock.h"

/* A watch that cannot be changed would leave somebody waiting for ever. */
static void want(struct monitor *m, struct watch *w, uint32_t events)
{
	if (loop_change(&m->loop, w, events) == 0)
		return;
	m->cause = RUN_LOST;
	snprintf(m->reason, sizeof m->reason, "the monitor cannot watch its descriptors");
	monitor_finish(m);
}

/* Input waits: no further message. A packet waits: tell when there is room. */
static void watch_control(struct monitor *m)
{
	want(m, &m->control, (m->input_len ? 0 : EPOLLIN) | (m->is_blocked ? EPOLLOUT : 0));
}

static void want_output(struct monitor *m, bool on)
{
	for (size_t i = 0; i < COUNT(m->streams); i++)
		if (m->streams[i].watch.fd >= 0)
			want(m, &m->streams[i].watch, on ? EPOLLIN : 0);
}

static void send_packet(struct monitor *m)
{
	size_t n = sizeof m->packet.head + m->packet.head.len;
	ssize_t r = send(m->control.fd, &m->packet, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	m->is_blocked = r < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM);
	/* Any other failure is a client that went away: its end of the socket says so too. */
}

static void block(struct monitor *m)
{
	want_output(m, false);
	watch_control(m);
}

void streams_unblock(struct monitor *m)
{
	if (!m->is_blocked)
		return;
	send_packet(m);
	if (m->is_blocked)
		return;
	watch_control(m);
	want_output(m, true);
}

/* For messages that must arrive: waits for room. Only when nothing inside runs any more, or
 * before anything does. */
void channel_send(struct monitor *m, enum channel_type type, const void *bytes, size_t n)
{
	struct channel_packet p; /* not cleared: most messages are much shorter */

	p.head = (struct channel_head){ .type = type, .len = (uint32_t)n };
	if (n > 0)
		memcpy(p.data, bytes, n);
	(void)fcntl(m->control.fd, F_SETFL, 0);
	if (m->is_blocked)
		(void)os_send(m->control.fd, &m->packet, sizeof m->packet.head + m->packet.head.len,
		              NULL, 0);
	m->is_blocked = false;
	(void)os_send(m->control.fd, &p, sizeof p.head + n, NULL, 0);
}

/* How many of n new bytes may pass: all before the limit, none after it. */
static size_t allowed(struct monitor *m, size_t n)
{
	const struct plan *p = m->box->plan;
	uint64_t limit = p->named[LIMIT_OUTPUT] ? p->limits[LIMIT_OUTPUT] : UINT64_MAX;
	uint64_t before = m->streams[0].bytes + m->streams[1].bytes - n;
	size_t room = before >= limit ? 0 : limit - before < n ? (size_t)(limit - before) : n;

	m->end.dropped_bytes += n - room;
	return room;
}

/* One read, one packet. Returns false when there is nothing more now. */
static bool pump(struct stream *s)
{
	struct monitor *m = s->monitor;
	ssize_t n = read(s->watch.fd, m->packet.data, sizeof m->packet.data);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) { /* the end; a pty whose last user is gone says EIO */
		loop_remove(&m->loop, &s->watch);
		fd_close(&s->watch.fd);
		return false;
	}
	s->bytes += (uint64_t)n;
	clock_active(m);
	size_t room = allowed(m, (size_t)n);
	if (room > 0) {
		m->packet.head = (struct channel_head){ .type = s->type, .len = (uint32_t)room };
		send_packet(m);
	}
	return true;
}

static void output_ready(struct watch *w, uint32_t events)
{
	struct stream *s = (struct stream *)(void *)w;
	struct monitor *m = s->monitor;

	(void)events;
	if (m->is_blocked)
		return;
	if (pump(s) && m->is_blocked)
		block(m);
	if (m->has_exited) {
		if (streams_ended(m))
			monitor_drained(m);
		else
			clock_set(m, AT_DRAIN, 50);
	}
}

bool streams_ended(const struct monitor *m)
{
	return m->streams[0].watch.fd < 0 && m->streams[1].watch.fd < 0;
}

void streams_read(struct monitor *m)
{
	for (size_t i = 0; i < COUNT(m->streams); i++)
		while (m->streams[i].watch.fd >= 0 && !m->is_blocked && pump(&m->streams[i]))
			;
	if (m->is_blocked)
		block(m);
}

void streams_drain(struct monitor *m)
{
	(void)fcntl(m->control.fd, F_SETFL, 0);
	for (size_t i = 0; i < COUNT(m->streams); i++) {
		struct stream *s = &m->streams[i];

		if (m->is_blocked)
			(void)os_send(m->control.fd, &m->packet,
			              sizeof m->packet.head + m->packet.head.len, NULL, 0);
		m->is_blocked = false;
		while (s->watch.fd >= 0 && pump(s)) {
			if (m->is_blocked) /* MSG_DONTWAIT: now wait for room */
				(void)os_send(m->control.fd, &m->packet,
				              sizeof m->packet.head + m->packet.head.len, NULL, 0);
			m->is_blocked = false;
		}
	}
}

static void close_input(struct monitor *m)
{
	loop_remove(&m->loop, &m->input);
	fd_close(&m->input.fd);
	m->input_len = m->input_at = 0;
	watch_control(m); /* what could not be written does not hold the client up */
}

static void input_ready(struct watch *w, uint32_t events)
{
	struct monitor *m = MONITOR_OF(w, input);

	if (events & EPOLLERR) { /* nobody reads it any more */
		close_input(m);
		return;
	}
	ssize_t n = write(w->fd, m->input_buf + m->input_at, m->input_len - m->input_at);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		close_input(m);
		return;
	}
	if (n > 0)
		m->input_at += (size_t)n;
	if (m->input_at < m->input_len)
		return;
	m->input_len = m->input_at = 0;
	want(m, &m->input, 0);
	watch_control(m); /* ready for the next message */
	if (m->input_eof)
		close_input(m);
}

static void take_input(struct monitor *m, const struct channel_packet *p)
{
	if (m->input.fd < 0)
		return;
	clock_active(m);
	memcpy(m->input_buf, p->data, p->head.len);
	m->input_len = p->head.len;
	m->input_at = 0;
	/* One message at a time: the client waits in its socket until this one is written. */
	watch_control(m);
	want(m, &m->input, EPOLLOUT);
}

/* A terminal ends by its end-of-file character, everything else by being closed. */
static void end_input(struct monitor *m)
{
	static const struct channel_packet eof = { .head = { .type = CH_IN, .len = 1 },
		                                   .data = { 4 } };

	if (m->input.fd < 0)
		return;
	if (m->command.pty_fd >= 0) {
		take_input(m, &eof);
		return;
	}
	m->input_eof = true;
	if (m->input_len == 0)
		close_input(m);
}

static void resize(struct monitor *m, const struct channel_packet *p)
{
	uint16_t size[2];

	if (m->command.pty_fd < 0 || p->head.len != sizeof size)
		return;
	memcpy(size, p->data, sizeof size);
	struct winsize ws = { .ws_row = size[0], .ws_col = size[1] };
	(void)ioctl(m->command.pty_fd, TIOCSWINSZ, &ws); /* the kernel tells the foreground group */
}

static void pass_signal(struct monitor *m, const struct channel_packet *p)
{
	int32_t sig;

	if (p->head.len != sizeof sig || m->has_exited)
		return;
	memcpy(&sig, p->data, sizeof sig);
	if (sig > 0 && sig < NSIG)
		(void)kill(-m->command.pid, sig); /* its own session: the group is its pid */
}

void streams_client(struct monitor *m, const struct channel_packet *p)
{
	switch ((enum channel_type)p->head.type) {
	case CH_IN:
		take_input(m, p);
		break;
	case CH_EOF:
		end_input(m);
		break;
	case CH_SIGNAL:
		pass_signal(m, p);
		break;
	case CH_RESIZE:
		resize(m, p);
		break;
	case CH_KILL:
		monitor_stop(m, RUN_KILLED, "ended by the client");
		break;
	case CH_STARTED:
	case CH_OUT:
	case CH_ERR:
	case CH_EBB:
	case CH_FAIL:
	case CH_END:
	case CH_GO:
	case CH_TYPES:
		break; /* not a client's to say */
	}
}

/* Pipes for the command; the pty comes from inside. The child's ends are in `io`. */
int streams_open(struct monitor *m, struct payload_io *io, struct err *e)
{
	int *child_fds[] = { &io->stdout_fd, &io->stderr_fd };
	int fds[2];
	int r;

	m->input = (struct watch){ .fd = -1, .ready = input_ready };
	for (size_t i = 0; i < 2; i++) {
		m->streams[i] = (struct stream){ .watch = { .fd = -1, .ready = output_ready },
			                         .monitor = m,
			                         .type = i == 0 ? CH_OUT : CH_ERR };
		if (m->box->plan->is_tty)
			continue;
		r = os_pipe(fds, 0);
		if (r < 0)
			return err_sys(e, -r, "pipe");
		m->streams[i].watch.fd = fds[0];
		*child_fds[i] = fds[1];
	}
	if (m->box->plan->has_stdin && !m->box->plan->is_tty) {
		r = os_pipe(fds, 0);
		if (r < 0)
			return err_sys(e, -r, "pipe");
		io->stdin_fd = fds[0];
		m->input.fd = fds[1];
	} else {
		io->stdin_fd = os_openat(AT_FDCWD, "/dev/null", O_RDONLY, 0);
		if (io->stdin_fd < 0)
			return err_sys(e, -io->stdin_fd, "open /dev/null");
	}
	return 0;
}

static int watch_nonblocking(struct monitor *m, struct watch *w, uint32_t events, struct err *e)
{
	if (fcntl(w->fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, errno, "set a descriptor non-blocking");
	int r = loop_add(&m->loop, w, events);
	return r < 0 ? err_sys(e, -r, "watch a stream") : 0;
}

int streams_watch(struct monitor *m, struct err *e)
{
	if (m->command.pty_fd >= 0) {
		m->streams[0].watch.fd = m->command.pty_fd;
		m->input.fd = dup(m->command.pty_fd); /* epoll takes a descriptor once */
		if (m->input.fd < 0)
			return err_sys(e, errno, "dup");
	}
	for (size_t i = 0; i < COUNT(m->streams); i++)
		if (m->streams[i].watch.fd >= 0 &&
		    watch_nonblocking(m, &m->streams[i].watch, EPOLLIN, e) < 0)
			return -1;
	if (m->input.fd >= 0 && watch_nonblocking(m, &m->input, 0, e) < 0)
		return -1;
	return 0;
}
