#include "core/link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/enforced.h"
#include "core/gate.h"
#include "core/notes.h"
#include "core/process.h"
#include "core/shells.h"
#include "core/tripped.h"
#include "core/workspace.h"
#include "os/net.h"
#include "os/pulse.h"
#include "os/sock.h"

struct link_waiting {
	struct link_waiting *next;
	struct link_fds fds; /* duplicates */
	size_t n;
	unsigned char bytes[]; /* head and data */
};

void link_init(struct link *l, struct sbx *s)
{
	*l = (struct link){ .watch = { .fd = -1 }, .sandbox = s };
	l->last = &l->first;
}

/* ---- out ----------------------------------------------------------------------------- */

static void want(struct link *l, uint32_t events)
{
	(void)loop_change(l->sandbox->core->loop, &l->watch, events);
}

static bool try_send(struct link *l, const void *bytes, size_t n, const struct link_fds *fds)
{
	int r = os_send(l->watch.fd, bytes, n, fds->fd, fds->n);

	return r != -EAGAIN && r != -ENOBUFS; /* any other failure: its end of the socket tells */
}

static void drop_first(struct link *l)
{
	struct link_waiting *w = l->first;

	l->first = w->next;
	if (!l->first)
		l->last = &l->first;
	l->n_waiting--;
	for (size_t i = 0; i < w->fds.n; i++)
		fd_close(&w->fds.fd[i]);
	free(w);
}

static void flush(struct link *l)
{
	while (l->first) {
		if (!try_send(l, l->first->bytes, l->first->n, &l->first->fds))
			return;
		drop_first(l);
	}
	want(l, EPOLLIN);
}

static int enqueue(struct link *l, const void *bytes, size_t n, const struct link_fds *fds)
{
	if (l->n_waiting >= LINK_WAITING_MAX)
		return -ENOBUFS;
	struct link_waiting *w = mem_alloc(sizeof *w + n);
	w->n = n;
	memcpy(w->bytes, bytes, n);
	for (size_t i = 0; i < fds->n; i++)
		w->fds.fd[i] = fcntl(fds->fd[i], F_DUPFD_CLOEXEC, 3);
	w->fds.n = fds->n;
	*l->last = w;
	l->last = &w->next;
	l->n_waiting++;
	if (!l->is_expected)
		want(l, EPOLLIN | EPOLLOUT);
	return 0;
}

int link_send_fds(struct link *l, struct channel_head head, const void *bytes, struct link_fds fds)
{
	static unsigned char packet[sizeof(struct channel_packet)];
	size_t n = sizeof head + head.len;

	if (l->watch.fd < 0 && !l->is_expected)
		return -ENOTCONN;
	if (head.len > CHANNEL_DATA_MAX)
		return -EMSGSIZE;
	memcpy(packet, &head, sizeof head);
	if (head.len > 0)
		memcpy(packet + sizeof head, bytes, head.len);
	if (!l->first && !l->is_expected && try_send(l, packet, n, &fds))
		return 0;
	return enqueue(l, packet, n, &fds);
}

int link_send(struct link *l, enum channel_type type, uint32_t num, const void *bytes, size_t n)
{
	struct channel_head head = { .type = type, .len = (uint32_t)n, .num = num };

	return link_send_fds(l, head, bytes, (struct link_fds){ .n = 0 });
}

int link_hold(struct link *l, uint32_t lease_ms)
{
	return link_send(l, CH_HOLD, 0, &lease_ms, sizeof lease_ms);
}

/* ---- in ------------------------------------------------------------------------------ */

static void take_end(struct px *p, const struct channel_packet *m)
{
	static struct channel_end end;

	if (p && channel_end_read(&end, m->data, m->head.len))
		px_on_end(p, &end);
}

static void take_fail(struct sbx *s, struct px *p, const struct channel_packet *m)
{
	struct err e = { 0 };

	if (m->head.len != sizeof e)
		return;
	memcpy(&e, m->data, sizeof e);
	e.msg[sizeof e.msg - 1] = '\0';
	if (e.kind > ERR_INTERNAL)
		e.kind = ERR_INTERNAL;
	if (!px_is_of_program(&e))
		enforced_advise(s->core, &e, m->head.num == 0);
	if (m->head.num == 0)
		sbx_on_fail(s, &e);
	else if (p)
		px_on_fail(p, &e);
}

static void take_done(struct sbx *s, const struct channel_packet *m)
{
	struct channel_done d;

	if (m->head.len != sizeof d)
		return;
	memcpy(&d, m->data, sizeof d);
	if (d.type == CH_STOP)
		sbx_on_stopped(s);
	else if (d.type == CH_FREEZE || d.type == CH_THAW)
		sbx_on_frozen(s, d.type == CH_FREEZE, (int)d.error);
	else if (d.type == CH_HOLD && s->hold == SBX_HOLD_ASKED)
		wsx_on_frozen(s, (int)d.error);
}

static void take_started(struct px *p, const struct channel_packet *m)
{
	struct channel_started started;

	if (!p || m->head.len < sizeof started)
		return;
	memcpy(&started, m->data, sizeof started);
	if (started.pid > 0)
		px_on_started(p);
}

/* After a SYNC: what its row does not say of it. */
static void take_proc(struct px *p, const struct channel_packet *m)
{
	struct channel_proc proc;

	if (p && m->head.len == sizeof proc) {
		memcpy(&proc, m->data, sizeof proc);
		p->is_tty = proc.flags & EXEC_TTY;
		p->has_stdin = proc.flags & EXEC_STDIN;
	}
	take_started(p, m);
}

static void take_ran(struct px *p, const struct channel_packet *m)
{
	struct channel_ran ran;

	if (m->head.len != sizeof ran)
		return;
	memcpy(&ran, m->data, sizeof ran);
	ran.text[sizeof ran.text - 1] = '\0';
	note_ran(p, &ran);
}

static void take_masked(struct px *p, const struct channel_packet *m)
{
	struct channel_masked masked;

	if (m->head.len != sizeof masked)
		return;
	memcpy(&masked, m->data, sizeof masked);
	masked.name[sizeof masked.name - 1] = '\0';
	note_masked(p, &masked);
}

static void take_ready(struct link *l, const struct channel_packet *m)
{
	if (m->head.len != sizeof l->ready)
		return;
	memcpy(&l->ready, m->data, sizeof l->ready);
	l->is_ready = true;
	sbx_on_ready(l->sandbox);
}

static void take_gone(struct sbx *s, const struct channel_packet *m)
{
	struct channel_gone gone = { .state = RUN_LOST };

	if (m->head.len == sizeof gone)
		memcpy(&gone, m->data, sizeof gone);
	gone.reason[sizeof gone.reason - 1] = '\0';
	sbx_on_end(s, gone.state == RUN_EXPIRED, gone.reason);
}

/* NULL: it is about none, or none of ours. */
static struct px *process_of(struct sbx *s, uint32_t num)
{
	struct px *p = num ? px_by_num(s, num) : NULL;

	if (p)
		p->is_known = true;
	if (num > s->next_num) /* used by a daemon before us, and on no record */
		s->next_num = num;
	return p;
}

static void take_grew(struct px *p, const struct channel_packet *m)
{
	(void)m;
	px_on_grew(p);
}

static void take_took(struct px *p, const struct channel_packet *m)
{
	px_on_took(p, m->data, m->head.len);
}

static void take_waiting(struct px *p, const struct channel_packet *m)
{
	(void)m;
	px_on_waiting(p);
}

static void (*const of_process[CH_TYPES])(struct px *p, const struct channel_packet *m) = {
	[CH_RAN] = take_ran,   [CH_MASKED] = take_masked,   [CH_GREW] = take_grew,
	[CH_TOOK] = take_took, [CH_WAITING] = take_waiting,
};

static void take(struct link *l, const struct channel_packet *m)
{
	struct sbx *s = l->sandbox;
	struct px *p = process_of(s, m->head.num);

	switch ((enum channel_type)m->head.type) {
	case CH_READY:
		take_ready(l, m);
		break;
	case CH_STARTED:
		take_started(p, m);
		break;
	case CH_PROC:
		take_proc(p, m);
		break;
	case CH_RAN:
	case CH_MASKED:
	case CH_GREW:
	case CH_TOOK:
	case CH_WAITING:
		if (p)
			of_process[m->head.type](p, m);
		break;
	case CH_EXIT:
		take_end(p, m);
		break;
	case CH_FAIL:
		take_fail(s, p, m);
		break;
	case CH_SYNCED:
		sbx_on_settled(s);
		break;
	case CH_DONE:
		take_done(s, m);
		break;
	case CH_END:
		take_gone(s, m);
		break;
	case CH_PROVED:
		sbx_on_proved(s, m->data, m->head.len);
		break;
	case CH_SHELL:
		shells_on_state(s, m->head.num, m->data, m->head.len);
		break;
	case CH_USAGE:
		sbx_on_usage(s, m->data, m->head.len);
		break;
	/* clang-format off */
	case CH_GATELESS: gate_on_less(s); break;
	case CH_RULED: gate_on_ruled(s, m->data, m->head.len); break;
	case CH_NET: gate_on_net(s, m->head.num, m->data, m->head.len); break;
	case CH_ASK: gate_on_ask(s, m->data, m->head.len); break;
	case CH_UNASK: gate_on_unask(s, m->data, m->head.len); break;
	case CH_TRIP: tripped_on(s, m->head.num, m->data, m->head.len); break;
	case CH_UNTRIP: tripped_over(s, m->data, m->head.len); break;
	case CH_GO: case CH_EXEC: case CH_TREE: case CH_IN: case CH_EOF: case CH_SIGNAL:
	case CH_RESIZE: case CH_KILL: case CH_ACK: case CH_WATCH: case CH_FORGET: case CH_STOP:
	case CH_FREEZE: case CH_THAW: case CH_HOLD: case CH_RELEASE: case CH_SYNC: case CH_EXTEND: case CH_CLOSE: case CH_DROP:
	case CH_GATE: case CH_RULES: case CH_NET_ACK: case CH_ANSWER: case CH_TRIP_ANSWER:
	case CH_TYPES:
		/* clang-format on */
		break; /* not a monitor's to say */
	}
}

static void ready(struct watch *w, uint32_t events)
{
	static struct channel_packet m;
	struct link *l = (struct link *)w;

	if (events & EPOLLOUT)
		flush(l);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	int n = os_recv_some(w->fd, &m, sizeof m);

	if (n == -ECONNRESET) /* it left a word of ours unread; its own are still there */
		n = os_recv_some(w->fd, &m, sizeof m);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		sbx_on_lost(l->sandbox);
		return;
	}
	sbx_heard(l->sandbox);
	if ((size_t)n >= sizeof m.head && m.head.len == (size_t)n - sizeof m.head)
		take(l, &m);
}

void link_expect(struct link *l)
{
	l->is_expected = true;
}

int link_open(struct link *l, int *fd)
{
	if (!l->is_expected)
		link_close(l);
	l->is_expected = false;
	l->watch = (struct watch){ .fd = *fd, .ready = ready };
	(void)fcntl(*fd, F_SETFL, O_NONBLOCK);
	(void)os_refuse_fds(*fd);
	int r = loop_add(l->sandbox->core->loop, &l->watch, EPOLLIN);
	if (r < 0) {
		l->watch.fd = -1;
		link_close(l);
		return r;
	}
	*fd = -1;
	if (l->first)
		flush(l);
	return 0;
}

/* By the folder's descriptor: the name has no room in sun_path, and nothing else can be meant. */
static int dial(int dir_fd, const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", dir_fd, name) >=
	    (int)sizeof a.sun_path)
		return -ENAMETOOLONG;
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		return -errno;
	return fd_take(&fd);
}

int link_connect(struct link *l, int dir_fd, const char *name)
{
	AUTO(fd_close) int fd = dial(dir_fd, name);

	return fd < 0 ? fd : link_open(l, &fd);
}

void link_refuse(int fd)
{
	struct channel_head head = { .type = CH_CLOSE };

	(void)os_send(fd, &head, sizeof head, NULL, 0); /* or it is dead already */
}

void link_dismiss(int dir_fd, const char *name)
{
	AUTO(fd_close) int fd = dial(dir_fd, name);

	if (fd >= 0)
		link_refuse(fd);
}

void link_close(struct link *l)
{
	if (l->watch.fd >= 0)
		loop_remove(l->sandbox->core->loop, &l->watch);
	fd_close(&l->watch.fd);
	while (l->first)
		drop_first(l);
	l->is_ready = l->is_expected = false;
}
