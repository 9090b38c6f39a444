/*
 * streams.c - bytes between a process, its log and the client.
 *
 * Output goes to the log as it comes; with a window it is not read while the client is too far
 * behind, so that the command stops at its own pipe. Past the output limit bytes are read and
 * dropped: the command ends by itself, and nobody's disk grows. Input waits in one bounded buffer
 * until the command takes it; the client is told how much it took.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/file.h"

/* What one command can leave in its pipes at its end, in pieces of the buffer below: the kernel's
 * own ceiling is 1 MiB each. */
#define READS_MAX 17

static unsigned char buffer[LOG_FRAME_DATA_MAX]; /* of whoever reads just now */

/* ---- output ------------------------------------------------------------------------ */

/* How many of n new bytes may pass: all before the limit, none after it. */
static size_t allowed(struct proc *p, size_t n)
{
	uint64_t limit = p->command.output_max ? p->command.output_max : UINT64_MAX;
	uint64_t before = p->streams[0].bytes + p->streams[1].bytes - n;
	size_t room = before >= limit ? 0 : limit - before < n ? (size_t)(limit - before) : n;

	p->end.dropped_bytes += n - room;
	return room;
}

/* Where to begin for the last bytes of the log: a frame that is 64 KiB back or more. */
static void mark_tail(struct proc *p)
{
	if (p->log.at - p->tail.to < LOG_TAIL_STEP)
		return;
	p->tail.from = p->tail.to;
	p->tail.to = p->log.at;
}

void streams_keep(struct stream *s, const void *bytes, size_t n)
{
	struct proc *p = s->proc;

	log_add(&p->log, s->which, timer_now_ms() - p->started_ms, bytes, n);
	mark_tail(p);
	p->due_grew = true;
}

/* One read, one frame. Returns false when there is nothing more now. */
static bool pump(struct stream *s)
{
	struct proc *p = s->proc;
	struct monitor *m = p->monitor;
	ssize_t n = read(s->watch.fd, buffer, sizeof buffer);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) { /* the end; a pty whose last user is gone says EIO */
		loop_remove(&m->loop, &s->watch);
		fd_close(&s->watch.fd);
		return false;
	}
	s->bytes += (uint64_t)n;
	clock_active(m);
	size_t room = allowed(p, (size_t)n);
	if (room > 0)
		masks_pass(s, buffer, room);
	return true;
}

static bool is_ahead(const struct proc *p)
{
	return p->command.window && p->log.at > p->acked &&
	       p->log.at - p->acked > p->command.window;
}

/* Not watched at all while it pauses: the end of a pipe is told whether it is asked for or not. */
static void watch_output(struct proc *p)
{
	bool on = !is_ahead(p);

	for (size_t i = 0; i < COUNT(p->streams); i++) {
		struct stream *s = &p->streams[i];

		if (s->watch.fd < 0 || s->is_watched == on)
			continue;
		s->is_watched = on;
		if (on)
			monitor_watch(p->monitor, &s->watch, EPOLLIN);
		else
			loop_remove(&p->monitor->loop, &s->watch);
	}
}

static void output_ready(struct watch *w, uint32_t events)
{
	struct stream *s = (struct stream *)(void *)w;
	struct proc *p = s->proc;

	(void)events;
	(void)pump(s);
	watch_output(p);
	talk_proc(p);
	if (streams_ended(p))
		procs_drained(p);
	else if (p->has_exited && !p->is_over && !p->is_resting)
		timer_set(&p->monitor->timers, &p->drain, 50);
}

bool streams_ended(const struct proc *p)
{
	return p->streams[0].watch.fd < 0 && p->streams[1].watch.fd < 0;
}

void streams_read(struct proc *p)
{
	for (size_t i = 0; i < COUNT(p->streams); i++)
		for (int reads = 0; reads < READS_MAX && p->streams[i].watch.fd >= 0; reads++)
			if (!pump(&p->streams[i]))
				break;
	watch_output(p);
}

void streams_drain(struct proc *p)
{
	for (size_t i = 0; i < COUNT(p->streams); i++)
		while (p->streams[i].watch.fd >= 0 && pump(&p->streams[i]))
			;
}

void streams_ack(struct proc *p, uint64_t position)
{
	if (position > p->acked)
		p->acked = position;
	p->is_rung = false;
	p->due_grew = p->log_fd >= 0 && p->log.at > position;
	watch_output(p);
	talk_proc(p);
}

/* ---- input ------------------------------------------------------------------------- */

static void close_input(struct proc *p)
{
	loop_remove(&p->monitor->loop, &p->input);
	fd_close(&p->input.fd);
	p->took += p->in_len - p->in_at; /* dropped: the client need not wait for it */
	p->in_len = p->in_at = 0;
	p->due_took = true;
	freep(&p->in);
}

static void take_some(struct proc *p)
{
	ssize_t n = write(p->input.fd, p->in + p->in_at, p->in_len - p->in_at);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		close_input(p);
		return;
	}
	if (n <= 0)
		return;
	p->in_at += (size_t)n;
	p->took += (uint64_t)n;
	p->due_took = true;
	if (p->in_at < p->in_len)
		return;
	p->in_len = p->in_at = 0;
	if (p->in_eof)
		close_input(p);
	else
		loop_remove(&p->monitor->loop, &p->input);
}

static void input_ready(struct watch *w, uint32_t events)
{
	struct proc *p = OWNER_OF(w, struct proc, input);

	if (events & EPOLLERR) /* nobody reads it any more */
		close_input(p);
	else
		take_some(p);
	talk_proc(p);
}

/* Input may come before the terminal does. */
static bool is_pty_due(const struct proc *p)
{
	return p->command.is_tty && !p->has_pty;
}

/* A client that sends more than it was told there is room for loses the rest. */
void streams_input(struct proc *p, const void *bytes, size_t n)
{
	bool was_empty = p->in_len == 0;
	bool is_open = p->input.fd >= 0 || is_pty_due(p);

	clock_active(p->monitor);
	if (!p->in && is_open)
		p->in = mem_alloc(CHANNEL_INPUT_MAX);
	if (p->in && p->in_at > 0 && p->in_len + n > CHANNEL_INPUT_MAX) {
		memmove(p->in, p->in + p->in_at, p->in_len - p->in_at);
		p->in_len -= p->in_at;
		p->in_at = 0;
	}
	size_t room = !p->in || !is_open || p->in_eof ? 0 : CHANNEL_INPUT_MAX - p->in_len;
	size_t taken = n < room ? n : room;
	if (taken > 0)
		memcpy(p->in + p->in_len, bytes, taken);
	p->in_len += taken;
	p->took += n - taken;
	p->due_took |= taken < n;
	if (was_empty && p->in_len > 0 && p->input.fd >= 0)
		monitor_watch(p->monitor, &p->input, EPOLLOUT);
	talk_proc(p);
}

/* A terminal ends by its end-of-file character, everything else by being closed. */
void streams_input_end(struct proc *p)
{
	static const char eof = 4;

	if (p->command.is_tty) {
		p->took_own++; /* the client did not send it, and does not count it */
		streams_input(p, &eof, 1);
		return;
	}
	if (p->input.fd < 0)
		return;
	p->in_eof = true;
	if (p->in_len == 0)
		close_input(p);
	talk_proc(p);
}

void streams_resize(struct proc *p, const struct channel_size *size)
{
	struct winsize ws = { .ws_row = size->rows, .ws_col = size->cols };

	if (p->command.is_tty && p->input.fd >= 0)
		(void)ioctl(p->input.fd, TIOCSWINSZ,
		            &ws); /* the kernel tells the foreground group */
}

/* ---- making ------------------------------------------------------------------------ */

static int nonblocking(int fd, struct err *e)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0
	           ? err_sys(e, errno, "set a descriptor non-blocking")
	           : 0;
}

static int open_output(struct stream *s, int *child_fd, struct err *e)
{
	int fds[2];
	int r = os_pipe(fds, 0);

	if (r < 0)
		return err_sys(e, -r, "pipe");
	s->watch.fd = fds[0];
	*child_fd = fds[1];
	return nonblocking(fds[0], e);
}

/* Another descriptor of the same pipe, by its name in /proc. */
static int open_again(int pipe_fd, int flags, struct err *e)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", pipe_fd);
	int fd = os_openat(AT_FDCWD, path, flags | O_NONBLOCK, 0);
	return fd < 0 ? err_sys(e, -fd, "open a pipe again") : fd;
}

int streams_renew(struct proc *p, struct err *e)
{
	p->in_eof = false;
	watch_output(p); /* no window is full yet */
	if (!p->command.has_stdin)
		return 0;
	p->input.fd = open_again(p->pipe_fd, O_WRONLY, e);
	return p->input.fd < 0 ? -1 : 0;
}

/* One pipe serves all commands of a shell: it ends when nobody has it open for writing, and can
 * be opened again. */
static int open_shell_input(struct proc *p, struct payload_io *io, struct err *e)
{
	int fds[2];
	int r = os_pipe(fds, 0);

	if (r < 0)
		return err_sys(e, -r, "pipe");
	AUTO(fd_close) int writer = fds[1];
	io->stdin_fd = fds[0];
	p->pipe_fd = open_again(fds[0], O_RDONLY, e);
	return p->pipe_fd < 0 ? -1 : streams_renew(p, e);
}

static int open_input(struct proc *p, struct payload_io *io, struct err *e)
{
	int fds[2];

	if (p->command.is_shell)
		return open_shell_input(p, io, e);
	if (!p->command.has_stdin || p->command.is_tty) {
		io->stdin_fd = os_openat(AT_FDCWD, "/dev/null", O_RDONLY, 0);
		return io->stdin_fd < 0 ? err_sys(e, -io->stdin_fd, "open /dev/null") : 0;
	}
	int r = os_pipe(fds, 0);
	if (r < 0)
		return err_sys(e, -r, "pipe");
	io->stdin_fd = fds[0];
	p->input.fd = fds[1];
	return nonblocking(fds[1], e);
}

/* A worker speaks over its socket. */
static int no_output(struct payload_io *io, struct err *e)
{
	io->stdout_fd = os_openat(AT_FDCWD, "/dev/null", O_WRONLY, 0);
	io->stderr_fd = io->stdout_fd < 0 ? -1 : fcntl(io->stdout_fd, F_DUPFD_CLOEXEC, 0);
	return io->stderr_fd < 0 ? err_new(e, ERR_INTERNAL, "open /dev/null") : 0;
}

/* Pipes for the command; the pty comes from inside. The child's ends are in `io`. */
int streams_open(struct proc *p, struct payload_io *io, struct err *e)
{
	p->input = (struct watch){ .fd = -1, .ready = input_ready };
	for (size_t i = 0; i < COUNT(p->streams); i++)
		p->streams[i] = (struct stream){ .watch = { .fd = -1, .ready = output_ready },
			                         .proc = p,
			                         .which = i == 0 ? LOG_OUT : LOG_ERR };
	if (open_input(p, io, e) < 0)
		return -1;
	if (p->log_fd < 0)
		return no_output(io, e);
	if (p->command.is_tty)
		return 0;
	if (open_output(&p->streams[0], &io->stdout_fd, e) < 0)
		return -1;
	if (p->command.is_merged) {
		io->stderr_fd = fcntl(io->stdout_fd, F_DUPFD_CLOEXEC, 0);
		if (io->stderr_fd < 0)
			return err_sys(e, errno, "dup");
	} else if (open_output(&p->streams[1], &io->stderr_fd, e) < 0) {
		return -1;
	}
	watch_output(p);
	return 0;
}

int streams_take_pty(struct proc *p, struct err *e)
{
	p->has_pty = true;
	p->streams[0].watch.fd = fd_take(&p->spawn.pty_fd);
	p->input.fd = fcntl(p->streams[0].watch.fd, F_DUPFD_CLOEXEC, 0); /* epoll takes one once */
	if (p->input.fd < 0)
		return err_sys(e, errno, "dup");
	if (nonblocking(p->input.fd, e) < 0)
		return -1;
	watch_output(p);
	if (p->in_len > 0) /* what came before there was a terminal */
		monitor_watch(p->monitor, &p->input, EPOLLOUT);
	return 0;
}

void streams_rest(struct proc *p)
{
	if (p->input.fd >= 0)
		close_input(p);
	for (int reads = 0; reads < READS_MAX && p->pipe_fd >= 0; reads++)
		if (read(p->pipe_fd, buffer, sizeof buffer) <= 0)
			break; /* what it left is not for the next one */
}

void streams_close(struct proc *p)
{
	masks_end(p);
	for (size_t i = 0; i < COUNT(p->streams); i++) {
		if (p->streams[i].watch.fd >= 0)
			loop_remove(&p->monitor->loop, &p->streams[i].watch);
		fd_close(&p->streams[i].watch.fd);
	}
	if (p->input.fd >= 0)
		loop_remove(&p->monitor->loop, &p->input);
	fd_close(&p->input.fd);
	fd_close(&p->pipe_fd);
	freep(&p->in);
}
