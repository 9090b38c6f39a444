/*
 * talk.c - the monitor and its client.
 *
 * Nothing waits in a queue: what is to be said is derived from what is known, when there is room
 * in the socket. A client that went away, or reads slowly, costs nothing; the next one asks.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/extent.h"
#include "os/pulse.h"
#include "os/sock.h"

#define FORGET_MS 5
#define LOGS_KEPT 32 /* of ended processes, open for self.sock */

/* ---- saying ------------------------------------------------------------------------ */

static void watch_control(struct monitor *m)
{
	uint32_t events = EPOLLIN | (m->is_blocked ? EPOLLOUT : 0);

	if (loop_change(&m->loop, &m->control, events) < 0)
		monitor_finish(m); /* somebody would wait for ever */
}

/* False: no room, or nobody there. */
static bool say(struct monitor *m, struct channel_head head, const void *bytes)
{
	struct iovec iov[] = { { &head, sizeof head }, { (void *)(uintptr_t)bytes, head.len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = head.len ? 2 : 1 };

	if (m->is_blocked || m->control.fd < 0)
		return false;
	if (sendmsg(m->control.fd, &msg, MSG_NOSIGNAL | (m->is_ending ? 0 : MSG_DONTWAIT)) >= 0)
		return true;
	if (m->is_ending || (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM))
		return false; /* a client that went away: its end of the socket says so too */
	m->is_blocked = true;
	watch_control(m);
	return false;
}

static bool say_of(struct proc *p, enum channel_type type, const void *bytes, size_t n)
{
	return say(p->monitor, (struct channel_head){ type, (uint32_t)n, p->num, 0 }, bytes);
}

static bool say_plain(struct monitor *m, enum channel_type type, const void *bytes, size_t n)
{
	return say(m, (struct channel_head){ type, (uint32_t)n, 0, 0 }, bytes);
}

bool talk_shell(struct monitor *m, uint32_t num, const struct channel_shell *s, const char *text)
{
	static unsigned char bytes[CHANNEL_DATA_MAX];

	memcpy(bytes, s, sizeof *s);
	memcpy(bytes + sizeof *s, text, s->text_len);
	return say(m, (struct channel_head){ CH_SHELL, (uint32_t)sizeof *s + s->text_len, num, 0 },
	           bytes);
}

bool talk_about(struct monitor *m, enum channel_type type, uint32_t num, const void *bytes,
                size_t n)
{
	return say(m, (struct channel_head){ type, (uint32_t)n, num, 0 }, bytes);
}

void talk_proc(struct proc *p)
{
	const struct channel_started started = { .pid = p->is_running ? p->spawn.pid : 0,
		                                 .unix_ms = p->started_unix_ms };
	const struct channel_proc proc = { .started = started,
		                           .position = p->log_fd < 0 ? 0 : p->log.at,
		                           .flags = (p->command.is_tty ? EXEC_TTY : 0u) |
		                                    (p->command.has_stdin ? EXEC_STDIN : 0u) };
	uint64_t took = p->took > p->took_own ? p->took - p->took_own : 0;

	if (p->due_proved) {
		const uint32_t walls = p->monitor->proved;

		p->due_proved = !say_of(p, CH_PROVED, &walls, sizeof walls);
	}
	if (p->due_proc)
		p->due_proc = !say_of(p, CH_PROC, &proc, sizeof proc);
	if (p->due_started)
		p->due_started = !say_of(p, CH_STARTED, &started, sizeof started);
	if (p->due_grew && !p->is_rung) {
		p->is_rung = say_of(p, CH_GREW, &p->log.at, sizeof p->log.at);
		p->due_grew = !p->is_rung;
	}
	if (p->due_masked)
		p->due_masked = !say_of(p, CH_MASKED, &p->masked, sizeof p->masked);
	if (p->due_took)
		p->due_took = !say_of(p, CH_TOOK, &took, sizeof took);
	if (p->due_waiting)
		p->due_waiting = !say_of(p, CH_WAITING, NULL, 0);
}

static bool say_ended(struct monitor *m, struct ended *x)
{
	const struct channel_head masked = { CH_MASKED, sizeof x->masked, x->num, 0 };
	const struct channel_head end = { CH_EXIT, sizeof x->end, x->num, 0 };
	const struct channel_head fail = { CH_FAIL, sizeof x->fail, x->num, 0 };

	if (x->due_masked && !say(m, masked, &x->masked))
		return false;
	x->due_masked = false;
	return x->is_failed ? say(m, fail, &x->fail) : say(m, end, x->end);
}

static void say_ready(struct monitor *m)
{
	const struct channel_ready ready = {
		.init_pid = m->init.pid,
		.can_freeze = cgroup_can_freeze(&m->box->cgroup),
		.has_leaves = cgroup_has_leaves(&m->box->cgroup),
		.is_frozen = m->is_paused && m->is_frozen,
		.has_net = m->gate != NULL,
	};

	m->due_ready = !say_plain(m, CH_READY, &ready, sizeof ready);
}

static void say_answers(struct monitor *m)
{
	struct channel_usage usage;

	for (uint32_t type = 0; type < CH_TYPES; type++) {
		const struct channel_done done = { type, (uint32_t)(m->due_done[type] - 1) };

		if (m->due_done[type] && say_plain(m, CH_DONE, &done, sizeof done))
			m->due_done[type] = 0;
	}
	if (m->due_synced)
		m->due_synced = !say_plain(m, CH_SYNCED, NULL, 0);
	if (m->due_usage && !m->is_blocked) {
		report_usage(m, &usage);
		m->due_usage = !say_plain(m, CH_USAGE, &usage, sizeof usage);
	}
}

void talk_flush(struct monitor *m)
{
	if (m->due_ready)
		say_ready(m);
	shells_tell(m, false);
	for (struct proc *p = m->procs; p; p = p->next)
		if (!p->is_over)
			talk_proc(p);
	for (size_t i = 0; i < m->ended.len; i++)
		if (!m->ended.at[i].is_told)
			m->ended.at[i].is_told = say_ended(m, &m->ended.at[i]);
	for (struct proc *p = m->procs; p; p = p->next)
		if (p->is_over)
			talk_proc(p); /* what its tree still writes */
	gatekeep_tell(m);
	trips_tell(m);
	if (!m->is_blocked)
		say_answers(m);
}

void talk_done(struct monitor *m, enum channel_type asked, int error)
{
	m->due_done[asked] = error + 1;
	talk_flush(m);
}

/* From now on saying waits for room: nothing inside runs any more, and what is said is the last. A
 * daemon that does not take it will ask the logs. The pulse would make each wait begin anew; an
 * exit closes without lingering (inet_release() looks at PF_EXITING). */
void talk_last(struct monitor *m)
{
	static const struct timeval patience = { .tv_sec = 2 };

	os_pulse_off();
	m->is_ending = true;
	m->is_blocked = false;
	if (m->control.fd < 0)
		return;
	(void)fcntl(m->control.fd, F_SETFL, 0);
	if (m->box->is_kept)
		(void)setsockopt(m->control.fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
		                 sizeof patience);
	talk_flush(m);
}

void talk_await_forget(struct monitor *m)
{
	struct pollfd client = { .fd = m->control.fd, .events = POLLIN };
	char byte;

	/* Whatever it says: it has had its turn. What is not read would take our last word back. */
	if (os_poll(&client, 1, FORGET_MS) > 0)
		while (recv(client.fd, &byte, sizeof byte, MSG_DONTWAIT) > 0)
			;
}

void talk_say(struct monitor *m, enum channel_type type, const void *bytes, size_t n)
{
	(void)say_plain(m, type, bytes, n);
}

/* ---- ends that are remembered ------------------------------------------------------ */

static void ended_drop(struct monitor *m, size_t i)
{
	fd_close(&m->ended.at[i].log_fd);
	m->ended.len--;
	memmove(&m->ended.at[i], &m->ended.at[i + 1], (m->ended.len - i) * sizeof m->ended.at[0]);
}

static struct ended *ended_add(struct monitor *m, uint32_t num)
{
	if (m->ended.len == ENDED_MAX)
		ended_drop(m, 0);
	if (m->ended.len >= LOGS_KEPT)
		fd_close(&m->ended.at[m->ended.len - LOGS_KEPT].log_fd);
	vec_push(&m->ended, (struct ended){ .num = num, .log_fd = -1 });
	return &m->ended.at[m->ended.len - 1];
}

void talk_exit(struct proc *p)
{
	struct monitor *m = p->monitor;

	if (!m->box->is_kept) { /* no other client will ever ask */
		talk_proc(p);
		(void)say_of(p, CH_EXIT, &p->end, channel_end_size(&p->end));
		return;
	}
	struct ended *x = ended_add(m, p->num);
	memcpy(x->end, &p->end, sizeof x->end);
	x->tail = (struct log_tail){ p->tail.from, p->log.at };
	if (m->self && p->log_fd >= 0)
		x->log_fd = fcntl(p->log_fd, F_DUPFD_CLOEXEC, 0); /* without: self.sock has less */
	shells_tell(m, false);
	talk_proc(p); /* the last doorbell is before the end */
	x->due_masked = p->due_masked;
	x->masked = p->masked;
	x->is_told = !x->due_masked && say_of(p, CH_EXIT, &p->end, channel_end_size(&p->end));
}

void talk_fail(struct monitor *m, uint32_t num, const struct err *e)
{
	struct ended *x = ended_add(m, num);

	x->is_failed = true;
	x->fail = *e;
	x->is_told = say_ended(m, x);
}

/* ---- hearing ----------------------------------------------------------------------- */

static void hear_eof(struct proc *p, const struct message *msg)
{
	(void)msg;
	streams_input_end(p);
}

static void hear_in(struct proc *p, const struct message *msg)
{
	streams_input(p, msg->packet.data, msg->packet.head.len);
}

static void hear_signal(struct proc *p, const struct message *msg)
{
	struct channel_signal s;

	memcpy(&s, msg->packet.data, sizeof s);
	if (s.sig > 0 && s.sig < NSIG && s.scope <= SCOPE_TREE)
		procs_signal(p, s.sig, (enum channel_scope)s.scope);
}

static void hear_resize(struct proc *p, const struct message *msg)
{
	struct channel_size size;

	memcpy(&size, msg->packet.data, sizeof size);
	streams_resize(p, &size);
}

static void hear_kill(struct proc *p, const struct message *msg)
{
	(void)msg;
	procs_stop(p, RUN_KILLED, "ended by the client");
}

static void hear_ack(struct proc *p, const struct message *msg)
{
	uint64_t position;

	memcpy(&position, msg->packet.data, sizeof position);
	streams_ack(p, position);
}

static void hear_watch(struct proc *p, const struct message *msg)
{
	uint32_t on;

	memcpy(&on, msg->packet.data, sizeof on);
	waiting_watch(p, on != 0);
}

static void hear_forget(struct monitor *m, const struct message *msg)
{
	for (size_t i = 0; i < m->ended.len; i++) {
		if (m->ended.at[i].num != msg->packet.head.num)
			continue;
		/* The last ones stay for self.sock. */
		m->ended.at[i].is_told = true;
		if (m->ended.at[i].log_fd < 0)
			ended_drop(m, i);
		else
			m->ended.at[i].is_forgotten = true;
		return;
	}
}

static void hear_stop(struct monitor *m, const struct message *msg)
{
	(void)msg;
	m->is_stopping = true;
	monitor_stop(m, RUN_KILLED, "the sandbox was stopped");
}

static void hear_close(struct monitor *m, const struct message *msg)
{
	(void)msg;
	m->cause = RUN_KILLED;
	snprintf(m->reason, sizeof m->reason, "the sandbox was closed");
	monitor_finish(m);
}

static void hear_freeze(struct monitor *m, const struct message *msg)
{
	freeze_set(m, msg->packet.head.type == CH_FREEZE);
}

static void hear_hold(struct monitor *m, const struct message *msg)
{
	uint32_t lease_ms;

	memcpy(&lease_ms, msg->packet.data, sizeof lease_ms);
	freeze_hold(m, lease_ms);
}

static void hear_release(struct monitor *m, const struct message *msg)
{
	(void)msg;
	freeze_release(m);
}

static void hear_usage(struct monitor *m, const struct message *msg)
{
	(void)msg;
	m->due_usage = true;
	talk_flush(m);
}

static void hear_sync(struct monitor *m, const struct message *msg)
{
	(void)msg;
	for (struct proc *p = m->procs; p; p = p->next) {
		p->due_proc = !p->is_over;
		p->due_started = false; /* the same news */
	}
	for (size_t i = 0; i < m->ended.len; i++)
		m->ended.at[i].is_told = m->ended.at[i].is_forgotten;
	shells_tell(m, true);
	gatekeep_sync(m);
	m->due_synced = true;
	talk_flush(m);
}

static void hear_extend(struct monitor *m, const struct message *msg)
{
	uint64_t wall_ms;

	memcpy(&wall_ms, msg->packet.data, sizeof wall_ms);
	clock_extend(m, wall_ms);
}

/* The text of a long command comes in a file: read at once, it is freed when the child has it. */
static int read_text(struct command *c, const struct message *msg, bool is_in_file, char **owned,
                     struct err *e)
{
	const struct channel_head *head = &msg->packet.head;
	const size_t at = sizeof(struct channel_exec);

	if (!is_in_file) {
		c->text = (char *)(uintptr_t)msg->packet.data + at;
		return c->text_len == head->len - at
		           ? 0
		           : err_new(e, ERR_INVALID, "the command is malformed");
	}
	if (c->text_len > ARGV_BYTES_MAX || msg->n_fds < 2)
		return err_new(e, ERR_INVALID, "the command is malformed");
	c->text = *owned = mem_alloc(c->text_len);
	int n = os_pread(msg->fds[1], c->text, c->text_len, 0);
	return n == (int)c->text_len ? 0 : err_new(e, ERR_INVALID, "the command is malformed");
}

static int read_exec(const struct message *msg, struct command *c, char **owned, struct err *e)
{
	struct channel_exec x;

	if (msg->packet.head.len < sizeof x)
		return err_new(e, ERR_INVALID, "the command is malformed");
	memcpy(&x, msg->packet.data, sizeof x);
	*c = (struct command){ .uid = x.uid,
		               .gid = x.gid,
		               .is_tty = x.flags & EXEC_TTY,
		               .has_stdin = x.flags & EXEC_STDIN,
		               .is_merged = x.flags & EXEC_MERGE,
		               .is_final = x.flags & EXEC_FINAL,
		               .wants_usage = x.flags & EXEC_USAGE,
		               .is_shell = x.flags & EXEC_SHELL,
		               .is_alone = x.flags & EXEC_ALONE,
		               .is_gated = x.flags & EXEC_GATED,
		               .rows = x.rows,
		               .cols = x.cols,
		               .timeout_ms = x.timeout_ms,
		               .log_max = x.log_max,
		               .output_max = x.output_max,
		               .window = x.window,
		               .argc = x.argc,
		               .envc = x.envc,
		               .tripc = x.tripc,
		               .trip_ms = x.trip_ms,
		               .text_len = x.text_len };
	if (read_text(c, msg, x.flags & EXEC_TEXT_FD, owned, e) < 0)
		return -1;
	return command_is_whole(c) ? 0 : err_new(e, ERR_INVALID, "the command is malformed");
}

static int take_exec(struct monitor *m, struct message *msg, struct err *e)
{
	AUTO(procs_start_done)
	struct proc_start s = {
		.num = msg->packet.head.num, .log_fd = -1, .extra_fd = -1, .program_fd = -1
	};
	AUTO(freep) char *owned = NULL;

	if (msg->n_fds < 1)
		return err_new(e, ERR_INVALID, "the command has no log");
	if (read_exec(msg, &s.command, &owned, e) < 0)
		return -1;
	s.log_fd = fd_take(&msg->fds[0]);
	return s.command.is_shell ? shells_exec(m, &s, e) : procs_start(m, &s, e);
}

static void hear_exec(struct monitor *m, struct message *msg)
{
	struct err e = { 0 };

	if (take_exec(m, msg, &e) < 0)
		talk_fail(m, msg->packet.head.num, &e);
}

#define TREE_ROOT_MAX 256

/* As the user of the sandbox, in its root, with nothing of a command's environment. */
static void hear_tree(struct monitor *m, struct message *msg)
{
	char text[sizeof "/\0caisson-tree" + TREE_ROOT_MAX];
	const char *root = (const char *)msg->packet.data;
	size_t len = msg->packet.head.len;
	struct err e = { 0 };
	AUTO(procs_start_done)
	struct proc_start s = { .num = msg->packet.head.num,
		                .command = { .uid = m->box->plan->uid,
		                             .gid = m->box->plan->gid,
		                             .argc = 2,
		                             .text = text },
		                .log_fd = -1,
		                .extra_fd = -1,
		                .program_fd = -1 };

	if (msg->n_fds != 2 || len < 2 || len > TREE_ROOT_MAX || root[0] != '/' ||
	    strnlen(root, len) != len - 1) {
		err_new(&e, ERR_INVALID, "a worker needs a root, a socket and a program");
		talk_fail(m, s.num, &e);
		return;
	}
	memcpy(text, "/\0caisson-tree", sizeof "/\0caisson-tree");
	memcpy(text + sizeof "/\0caisson-tree", root, len);
	s.command.text_len = sizeof "/\0caisson-tree" + len;
	s.extra_fd = fd_take(&msg->fds[0]);
	s.program_fd = fd_take(&msg->fds[1]);
	if (procs_start(m, &s, &e) < 0)
		talk_fail(m, s.num, &e);
}

static void hear_shell(struct monitor *m, const struct message *msg)
{
	struct channel_shell s;
	const char *text;

	if (!channel_shell_read(&s, &text, msg->packet.data, msg->packet.head.len))
		return;
	if (msg->packet.head.type == CH_DROP)
		shells_drop(m, s.name);
	else
		shells_seed(m, &s, text);
}

static void hear_gate(struct monitor *m, struct message *msg)
{
	if (msg->n_fds > 0)
		gatekeep_take(m, &msg->fds[0]);
}

static void hear_rules(struct monitor *m, struct message *msg)
{
	struct gate_rules r;

	memcpy(&r, msg->packet.data, sizeof r);
	if (msg->n_fds > 0)
		gatekeep_rules(m, r.generation, &msg->fds[0]);
}

static void hear_net_ack(struct monitor *m, const struct message *msg)
{
	uint64_t at;

	memcpy(&at, msg->packet.data, sizeof at);
	gatekeep_ack(m, at);
}

static void hear_answer(struct monitor *m, const struct message *msg)
{
	struct gate_answer a;

	memcpy(&a, msg->packet.data, sizeof a);
	gatekeep_answer(m, &a);
}

static void hear_trip_answer(struct monitor *m, const struct message *msg)
{
	struct gate_answer a;

	memcpy(&a, msg->packet.data, sizeof a);
	trips_answer(m, &a);
}

#define ANY UINT32_MAX

/* clang-format off */
static const struct {
	uint32_t len; /* of the body */
	bool is_later; /* not while all stand still: it starts somebody, or is meant for him */
	void (*of_proc)(struct proc *p, const struct message *msg);
	void (*of_box)(struct monitor *m, const struct message *msg);
	void (*of_new)(struct monitor *m, struct message *msg); /* takes descriptors */
} verbs[CH_TYPES] = {
	[CH_EXEC]    = { ANY,                          true,  NULL,        NULL,         hear_exec },
	[CH_TREE]    = { ANY,                          true,  NULL,        NULL,         hear_tree },
	[CH_IN]      = { ANY,                          true,  hear_in,     NULL,         NULL },
	[CH_EOF]     = { 0,                            true,  hear_eof,    NULL,         NULL },
	[CH_SIGNAL]  = { sizeof(struct channel_signal), true,  hear_signal, NULL,         NULL },
	[CH_RESIZE]  = { sizeof(struct channel_size),  true,  hear_resize, NULL,         NULL },
	[CH_KILL]    = { 0,                            true,  hear_kill,   NULL,         NULL },
	[CH_ACK]     = { sizeof(uint64_t),             false, hear_ack,    NULL,         NULL },
	[CH_WATCH]   = { sizeof(uint32_t),             false, hear_watch,  NULL,         NULL },
	[CH_FORGET]  = { 0,                            false, NULL,        hear_forget,  NULL },
	[CH_STOP]    = { 0,                            false, NULL,        hear_stop,    NULL },
	[CH_FREEZE]  = { 0,                            false, NULL,        hear_freeze,  NULL },
	[CH_THAW]    = { 0,                            false, NULL,        hear_freeze,  NULL },
	[CH_HOLD]    = { sizeof(uint32_t),             false, NULL,        hear_hold,    NULL },
	[CH_RELEASE] = { 0,                            false, NULL,        hear_release, NULL },
	[CH_USAGE]   = { 0,                            false, NULL,        hear_usage,   NULL },
	[CH_SYNC]    = { 0,                            false, NULL,        hear_sync,    NULL },
	[CH_EXTEND]  = { sizeof(uint64_t),             false, NULL,        hear_extend,  NULL },
	[CH_CLOSE]   = { 0,                            false, NULL,        hear_close,   NULL },
	[CH_DROP]    = { ANY,                          true,  NULL,        hear_shell,   NULL },
	[CH_SHELL]   = { ANY,                          true,  NULL,        hear_shell,   NULL },
	[CH_GATE]    = { 0,                            false, NULL,        NULL,         hear_gate },
	[CH_RULES]   = { sizeof(struct gate_rules),    false, NULL,        NULL,         hear_rules },
	[CH_NET_ACK] = { sizeof(uint64_t),             false, NULL,        hear_net_ack, NULL },
	[CH_ANSWER]  = { sizeof(struct gate_answer),   false, NULL,        hear_answer,  NULL },
	[CH_TRIP_ANSWER] = { sizeof(struct gate_answer), false, NULL,      hear_trip_answer, NULL },
};
/* clang-format on */

void talk_hear(struct monitor *m, struct message *msg)
{
	const struct channel_head *head = &msg->packet.head;

	if (head->type >= CH_TYPES ||
	    (verbs[head->type].len != ANY && verbs[head->type].len != head->len))
		return; /* not a client's to say */
	if (verbs[head->type].is_later && freeze_defer(m, msg))
		return;
	struct proc *p = verbs[head->type].of_proc ? procs_find(m, head->num) : NULL;

	if (p && p->is_over && p->shell)
		return; /* it has ended, and what lives there now is not meant */
	if (p)
		verbs[head->type].of_proc(p, msg);
	else if (verbs[head->type].of_box)
		verbs[head->type].of_box(m, msg);
	else if (verbs[head->type].of_new)
		verbs[head->type].of_new(m, msg);
}

static void message_done(struct message *msg)
{
	for (size_t i = 0; i < msg->n_fds; i++)
		fd_close(&msg->fds[i]);
}

/* 1, 0 when there is none now, -1 at the end. */
static int receive(struct monitor *m, struct message *msg)
{
	int n;

	do { /* A client that went without reading all we said: what it said is still there. */
		msg->n_fds = COUNT(msg->fds);
		n = os_recv(m->control.fd, &msg->packet, sizeof msg->packet, msg->fds, &msg->n_fds);
	} while (n == -ECONNRESET);
	if (n == -EAGAIN || n == -ENOMEM || n == -ENOBUFS) /* again when the loop looks next */
		return 0;
	if (n < 0) {
		m->cause = RUN_LOST;
		snprintf(m->reason, sizeof m->reason, "hear the client: %s", strerror(-n));
	}
	if (n < 0 && m->box->is_kept) /* the client believes us dead: nobody would ever end it */
		monitor_finish(m);
	if (n <= 0)
		return -1;
	if ((size_t)n < sizeof msg->packet.head ||
	    msg->packet.head.len != (size_t)n - sizeof msg->packet.head) {
		message_done(msg);
		msg->packet.head.type = CH_TYPES;
	}
	return 1;
}

static void leave_fired(struct timer *t)
{
	monitor_finish(OWNER_OF(t, struct monitor, leave));
}

/* A sandbox that is kept waits for the next one; else the reason to run is gone too. Others have
 * lost the same client: they do not all end in one instant. */
static void client_gone(struct monitor *m)
{
	freeze_forget(m);
	if (!m->box->is_kept && m->box->end_wait_ms == 0)
		monitor_finish(m);
	if (!m->box->is_kept)
		timer_set(&m->timers, &m->leave, m->box->end_wait_ms);
	loop_remove(&m->loop, &m->control);
	fd_close(&m->control.fd);
	m->is_blocked = false;
}

/* As receive(). */
static int hear_one(struct monitor *m)
{
	static struct message msg; /* 32 KiB: not on the stack of a callback */
	int r = receive(m, &msg);

	if (r > 0) {
		talk_hear(m, &msg);
		message_done(&msg);
	}
	return r;
}

static void control_ready(struct watch *w, uint32_t events)
{
	struct monitor *m = OWNER_OF(w, struct monitor, control);

	if (events & EPOLLOUT) {
		m->is_blocked = false;
		talk_flush(m);
		if (!m->is_blocked)
			watch_control(m);
	}
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	if (hear_one(m) < 0)
		client_gone(m);
}

/* The new client replaces the old one, whose last words are heard first. */
static void door_ready(struct watch *w, uint32_t events)
{
	struct monitor *m = OWNER_OF(w, struct monitor, door);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	while (m->control.fd >= 0 && hear_one(m) > 0)
		;
	client_gone(m);
	m->control.fd = fd;
	monitor_watch(m, &m->control, EPOLLIN);
	memset(m->due_done, 0, sizeof m->due_done);
	m->due_synced = m->due_usage = false;
	m->due_ready = true;
	gatekeep_new_client(m);
	trips_new_client(m);
	for (struct proc *p = m->procs; p; p = p->next) {
		p->is_rung = false;
		p->due_grew = p->log_fd >= 0 && p->log.at > p->acked;
	}
	say_ready(m); /* the rest when it asks */
}

int talk_open(struct monitor *m, struct err *e)
{
	if (fcntl(m->control.fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, errno, "set the channel non-blocking");
	m->control.ready = control_ready;
	m->leave.fired = leave_fired;
	int r = loop_add(&m->loop, &m->control, EPOLLIN);
	m->door = (struct watch){ .fd = m->box->listen_fd, .ready = door_ready };
	if (r >= 0 && m->door.fd >= 0 && fcntl(m->door.fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r >= 0 && m->door.fd >= 0)
		r = loop_add(&m->loop, &m->door, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch the client") : 0;
}

int talk_await_exec(struct monitor *m, struct err *e)
{
	struct message msg;

	if (receive(m, &msg) <= 0)
		return err_new(e, ERR_INTERNAL, "the client is gone");
	int r = msg.packet.head.type == CH_EXEC
	            ? take_exec(m, &msg, e)
	            : err_new(e, ERR_INTERNAL, "the client gave no command");
	message_done(&msg);
	return r;
}
