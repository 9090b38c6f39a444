/*
 * self.c - /run/caisson/self.sock: what code inside may ask about its own sandbox.
 *
 * One line in, one line of JSON out, then the connection ends:
 *
 *   whoami    {"sandbox":"..."}
 *   why       {"violations":[{"kind":"limit","target":"pids","process":3,"count":2},
 *                            {"kind":"net","target":"example.org:443","reason":"no_rule","count":1},...],
 *              "pending":[{"kind":"net","target":"example.org:443","rule":"ask:
 * *","left_ms":58000}]} pending: what waits for a person; nothing that is said here answers it log
 * NUM   {"process":3,"encoding":"utf-8","data":"..."}    the last 64 KiB
 *
 * Whoever connects is hostile: few connections, short lines, little time, and nothing that can be
 * said here changes anything.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "monitor/monitor-internal.h"
#include "os/extent.h"
#include "os/net.h"
#include "wire/base64.h"
#include "wire/utf8.h"

#define CONNECTIONS_MAX 8
#define LINE_MAX_BYTES 64
#define ANSWER_BYTES_MAX                                                                           \
	(512u << 10) /* 64 KiB of control characters, six for one, and the rest                    \
	              */
#define PATIENCE_MS 2000
/* Its answers are made with the monitor's time, which no limit of the sandbox counts. */
#define RATION_MS 1000
#define RATION_ASKS 100
#define RATION_BYTES (1u << 20)

struct visitor {
	struct watch watch; /* fd -1: free */
	struct timer patience;
	struct monitor *monitor;
	char line[LINE_MAX_BYTES];
	size_t len;
	struct str answer;
	size_t sent;
};

struct self {
	struct watch door;
	struct visitor visitors[CONNECTIONS_MAX];
	struct timer ration; /* fires when there is a new one */
	size_t asks, bytes;  /* used of this one */
	bool is_closed;      /* nothing is left of it: who comes waits in the socket */
};

/* ---- answers ----------------------------------------------------------------------- */

static void add_quoted(struct str *out, const char *text, size_t n)
{
	static const char *const escapes[] = { ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t" };

	str_add(out, "\"");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			str_addf(out, "\\%c", c);
		else if (c < COUNT(escapes) && escapes[c])
			str_add(out, escapes[c]);
		else if (c < ' ' || c == 0x7f)
			str_addf(out, "\\u%04x", c);
		else
			str_addn(out, &c, 1);
	}
	str_add(out, "\"");
}

static void answer_whoami(struct visitor *v, const char *argument)
{
	const char *id = v->monitor->box->id;

	(void)argument;
	str_add(&v->answer, "{\"sandbox\":");
	if (id)
		add_quoted(&v->answer, id, strlen(id));
	else
		str_add(&v->answer, "null");
	str_add(&v->answer, "}\n");
}

static void print_why(struct str *out, const struct why *w)
{
	if (w->target) {
		str_addf(out,
		         "{\"kind\":\"limit\",\"target\":\"%s\",\"process\":%u,\"count\":%llu}",
		         w->target, w->num, (unsigned long long)w->count);
		return;
	}
	str_add(out, "{\"kind\":\"net\",\"target\":");
	add_quoted(out, w->peer, strlen(w->peer));
	str_addf(out, ",\"reason\":\"%s\",\"count\":%llu", gate_reason_name(w->reason),
	         (unsigned long long)w->count);
	if (w->num)
		str_addf(out, ",\"process\":%u", w->num);
	str_add(out, "}");
}

static void print_end(struct str *out, const char *rule, uint64_t left_ms)
{
	str_add(out, ",\"rule\":");
	add_quoted(out, rule, strlen(rule));
	str_addf(out, ",\"left_ms\":%llu}", (unsigned long long)left_ms);
}

static void print_ask(struct str *out, const struct gate_ask *a)
{
	static const char *const kinds[] = { [GATE_ASK_CONNECT] = "net",
		                             [GATE_ASK_REQUEST] = "publish",
		                             [GATE_ASK_SECRET] = "secret",
		                             [GATE_ASK_PUSH] = "push" };
	_Static_assert(COUNT(kinds) == GATE_ASK_KINDS, "a kind has no name");
	AUTO(str_done) struct str target = { .max = sizeof *a };

	str_addf(&target, "%s:%u%s", a->name, a->port, a->path);
	str_addf(out, "{\"kind\":\"%s\",\"target\":", kinds[a->kind]);
	add_quoted(out, str_text(&target), target.len);
}

/* The arguments have a NUL behind each; the first of them, as far as they are ASCII. */
static void print_trip(struct str *out, const struct channel_trip *t)
{
	char target[CHANNEL_EXEC_TEXT];
	size_t n = 0;

	for (; n + 1 < t->text_len && n < sizeof target; n++) {
		char c = t->text[n];

		target[n] = c;
		if (c == '\0')
			target[n] = ' ';
		else if (c & 0x80)
			target[n] = '?';
	}
	str_add(out, "{\"kind\":\"command\",\"target\":");
	add_quoted(out, target, n);
}

static void print_pending(struct str *out, const struct monitor *m)
{
	const struct channel_trip *t;
	const struct gate_ask *a;
	const char *rule, *between = "";
	uint64_t left_ms = 0;

	for (size_t i = 0; (a = gatekeep_ask_at(m, i, &left_ms)); i++) {
		str_add(out, between);
		print_ask(out, a);
		print_end(out, a->rule, left_ms);
		between = ",";
	}
	for (size_t i = 0; (t = trips_at(m, i, &rule, &left_ms)); i++) {
		str_add(out, between);
		print_trip(out, t);
		print_end(out, rule, left_ms);
		between = ",";
	}
}

static void answer_why(struct visitor *v, const char *argument)
{
	const struct monitor *m = v->monitor;
	size_t from = m->n_why > WHY_MAX ? m->n_why - WHY_MAX : 0;

	(void)argument;
	str_add(&v->answer, "{\"violations\":[");
	for (size_t i = from; i < m->n_why; i++) {
		str_add(&v->answer, i > from ? "," : "");
		print_why(&v->answer, &m->why[i % WHY_MAX]);
	}
	str_add(&v->answer, "],\"pending\":[");
	print_pending(&v->answer, m);
	str_add(&v->answer, "]}\n");
}

static void answer_error(struct visitor *v, const char *text)
{
	str_addf(&v->answer, "{\"error\":\"%s\"}\n", text);
}

/* The bytes of the frames in `from`..`to`, both streams as they came. */
static void read_tail(int fd, struct log_tail t, struct str *out)
{
	size_t size = t.to - t.from < LOG_TAIL_MAX ? (size_t)(t.to - t.from) : LOG_TAIL_MAX;
	AUTO(freep) char *bytes = mem_alloc(size + 1);
	int n = os_pread(fd, bytes, size, (off_t)t.from);
	size_t got = n < 0 ? 0 : (size_t)n;

	for (size_t at = 0; at + sizeof(struct log_frame) <= got;) {
		struct log_frame f;

		memcpy(&f, bytes + at, sizeof f);
		at += sizeof f;
		if (f.len == 0 || f.len > got - at)
			break; /* a hole has come over it */
		str_addn(out, bytes + at, f.len);
		at += f.len;
	}
}

static void print_tail(struct visitor *v, uint32_t num, const struct str *all)
{
	enum { BYTES = 64 << 10 };
	size_t n = all->len < BYTES ? all->len : BYTES;
	const char *text = str_text(all) + all->len - n;
	struct utf8 check = { 0 };

	for (int i = 0; i < 3 && n < all->len && n > 0 && (*text & 0xc0) == 0x80; i++) {
		text++; /* the cut went through a character */
		n--;
	}
	bool is_text = utf8_feed(&check, text, n);
	str_addf(&v->answer, "{\"process\":%u,\"encoding\":\"%s\",\"data\":", num,
	         is_text && utf8_is_whole(&check) ? "utf-8" : "base64");
	if (is_text && utf8_is_whole(&check)) {
		add_quoted(&v->answer, text, n);
	} else {
		str_add(&v->answer, "\"");
		base64_encode(text, n, &v->answer);
		str_add(&v->answer, "\"");
	}
	str_add(&v->answer, "}\n");
}

static void answer_log(struct visitor *v, const char *argument)
{
	const struct monitor *m = v->monitor;
	AUTO(str_done) struct str text = { .max = LOG_TAIL_MAX };
	char *end;
	unsigned long num = strtoul(argument, &end, 10);
	const struct proc *p = *argument && !*end ? procs_find(m, (uint32_t)num) : NULL;
	const struct ended *x = NULL;

	for (size_t i = 0; i < m->ended.len && !p && *argument && !*end; i++)
		if (m->ended.at[i].num == num && m->ended.at[i].log_fd >= 0)
			x = &m->ended.at[i];
	if (p && p->log_fd >= 0) {
		read_tail(p->log_fd, (struct log_tail){ p->tail.from, p->log.at }, &text);
	} else if (x) {
		read_tail(x->log_fd, x->tail, &text);
	} else {
		answer_error(v, "no such process");
		return;
	}
	print_tail(v, (uint32_t)num, &text);
}

static const struct {
	const char *verb;
	void (*answer)(struct visitor *v, const char *argument);
} verbs[] = {
	{ "whoami", answer_whoami },
	{ "why", answer_why },
	{ "log", answer_log },
};

static void answer(struct visitor *v)
{
	size_t word = strcspn(v->line, " ");
	const char *argument = v->line + word + (v->line[word] == ' ');

	for (size_t i = 0; i < COUNT(verbs); i++)
		if (strlen(verbs[i].verb) == word && memcmp(verbs[i].verb, v->line, word) == 0) {
			verbs[i].answer(v, argument);
			return;
		}
	answer_error(v, "known are whoami, why and log NUM");
}

/* ---- connections ------------------------------------------------------------------- */

static void leave(struct visitor *v)
{
	loop_remove(&v->monitor->loop, &v->watch);
	timer_stop(&v->monitor->timers, &v->patience);
	fd_close(&v->watch.fd);
	str_done(&v->answer);
}

static void patience_fired(struct timer *t)
{
	leave(OWNER_OF(t, struct visitor, patience));
}

static void hand_out(struct visitor *v)
{
	ssize_t n = send(v->watch.fd, v->answer.data + v->sent, v->answer.len - v->sent,
	                 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		v->sent += (size_t)n;
	bool is_done = (n < 0 && errno != EAGAIN && errno != EINTR) || v->sent == v->answer.len;
	if (is_done || loop_change(&v->monitor->loop, &v->watch, EPOLLOUT) < 0)
		leave(v);
}

static void visitor_ready(struct watch *w, uint32_t events)
{
	struct visitor *v = (struct visitor *)(void *)w;

	(void)events;
	if (v->answer.len > 0) {
		hand_out(v);
		return;
	}
	int n = os_recv_some(w->fd, v->line + v->len, sizeof v->line - 1 - v->len);
	if (n == -EAGAIN)
		return;
	if (n > 0)
		v->len += (size_t)n;
	v->line[v->len] = '\0';
	char *newline = memchr(v->line, '\n', v->len);
	if (newline) {
		*newline = '\0';
		answer(v);
		v->monitor->self->bytes += v->answer.len;
		hand_out(v);
	} else if (n <= 0 || v->len == sizeof v->line - 1) {
		leave(v);
	}
}

static void ration_fired(struct timer *t)
{
	struct self *self = OWNER_OF(t, struct self, ration);

	self->asks = self->bytes = 0;
	if (self->is_closed)
		monitor_watch(self->visitors[0].monitor, &self->door, EPOLLIN);
	self->is_closed = false;
}

/* A ration begins with the first who comes. False: it is used up. */
static bool ration_take(struct self *self)
{
	struct monitor *m = self->visitors[0].monitor;

	if (self->asks++ == 0)
		timer_set(&m->timers, &self->ration, RATION_MS);
	if (self->asks <= RATION_ASKS && self->bytes < RATION_BYTES)
		return true;
	loop_remove(&m->loop, &self->door);
	self->is_closed = true;
	return false;
}

static void door_ready(struct watch *w, uint32_t events)
{
	struct self *self = (struct self *)(void *)w;
	struct monitor *m = self->visitors[0].monitor;

	if (!ration_take(self))
		return;
	AUTO(fd_close) int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	for (size_t i = 0; i < CONNECTIONS_MAX && fd >= 0; i++) {
		struct visitor *v = &self->visitors[i];

		if (v->watch.fd >= 0)
			continue;
		v->watch.fd = fd;
		v->len = v->sent = 0;
		v->answer = (struct str){ .max = ANSWER_BYTES_MAX };
		if (loop_add(&m->loop, &v->watch, EPOLLIN) < 0) {
			v->watch.fd = -1;
			return;
		}
		timer_set(&m->timers, &v->patience, PATIENCE_MS);
		fd = -1;
	}
}

int self_open(struct monitor *m, struct err *e)
{
	if (m->init.door_fd < 0)
		return 0;
	struct self *self = mem_alloc(sizeof *self);

	self->door = (struct watch){ .fd = m->init.door_fd, .ready = door_ready };
	self->ration.fired = ration_fired;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		self->visitors[i] = (struct visitor){ .watch = { .fd = -1, .ready = visitor_ready },
			                              .patience = { .fired = patience_fired },
			                              .monitor = m };
	m->self = self;
	int r = fcntl(self->door.fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r >= 0)
		r = loop_add(&m->loop, &self->door, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch self.sock") : 0;
}

/* ---- what was refused -------------------------------------------------------------- */

static void note(struct monitor *m, uint32_t num, const char *target, uint64_t count)
{
	if (count > 0)
		m->why[m->n_why++ % WHY_MAX] =
		    (struct why){ .num = num, .target = target, .count = count };
}

void self_note_denied(struct monitor *m, uint32_t num, const struct gate_record *r)
{
	struct why w = { .num = num, .reason = r->reason, .count = r->count > 0 ? r->count : 1 };
	char peer[sizeof r->name + 8], address[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(r->is_v6 ? AF_INET6 : AF_INET, r->dst, address, sizeof address);
	size_t n = (size_t)snprintf(peer, sizeof peer, r->is_v6 && !r->name[0] ? "[%s]" : "%s",
	                            r->name[0] ? r->name : address);
	if (r->kind != GATE_LOOKUP)
		n += (size_t)snprintf(peer + n, sizeof peer - n, ":%u", r->port);
	snprintf(w.peer, sizeof w.peer, "%s",
	         peer + (n >= sizeof w.peer ? n - sizeof w.peer + 1 : 0));
	m->why[m->n_why++ % WHY_MAX] = w;
}

void self_note(struct proc *p)
{
	struct monitor *m = p->monitor;

	note(m, p->num, "mem", p->end.oom_kills);
	note(m, p->num, "pids", p->end.pids_denied);
	note(m, p->num, "output", p->end.dropped_bytes);
	note(m, p->num, "disk", p->end.is_disk_full);
	note(m, p->num, "inodes", p->end.is_inodes_full);
	note(m, p->num, "filters", p->end.filters_denied);
}
