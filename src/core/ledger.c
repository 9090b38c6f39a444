#include "core/ledger.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>

#include "base/fd.h"
#include "core/maker.h"
#include "core/spool.h"
#include "io/journal.h"
#include "os/net.h"
#include "os/pulse.h"
#include "os/sock.h"
#include "wire/ledger_text.h"

#define AGAIN_MS 100
#define GATHER_MS                                                                                  \
	10 /* of the 50 in which a record is on disk: the writer wakes once for a start            \
	    */
#define GATHER_BYTES (64u << 10)
#define GOODBYE_MS 2000

/* What is not acknowledged yet, in the order of its numbers. */
struct said {
	struct said *next;
	char life[LEDGER_LIFE_SIZE]; /* ours, or that of a daemon before us */
	uint64_t num;
	bool is_synced; /* it has to be on disk */
	ledger_done_fn *done;
	void *arg;
	uint64_t late_ms; /* who waits is told then; 0: nobody does */
	size_t n;
	struct ledger_append packet; /* n bytes */
};

struct asked {
	struct asked *next;
	uint32_t tag;
	uint64_t seq;
	struct ledger_attest attest; /* its type is 0: a file of records is wanted */
	bool is_sent;
	ledger_file_fn *done; /* NULL: cancelled */
	void *arg;
};

struct reader {
	struct watch watch; /* first; fd -1: none */
	struct ledger *ledger;
	bool is_asked;
};

struct ledger {
	struct watch watch; /* first; fd -1: none */
	/* The way of readers: the writer listens to it also when it takes nothing. */
	struct reader reader;
	struct core *core;
	char life[LEDGER_LIFE_SIZE],
	    greeted[LEDGER_LIFE_SIZE]; /* ours; in whose name we speak now */
	struct spool spool;
	struct said *first, **last, *unsent;
	uint64_t num;
	size_t bytes, unsent_bytes;
	uint64_t n_lost;
	struct timer again, late, gather;
	bool is_asked; /* the launcher was */
	bool is_full;  /* the disk is, says the writer */
	bool is_blocked;
	uint64_t seq;
	struct ledger_watch *watches;
	struct asked *asked;
	uint32_t tag;
};

static void connect_soon(struct ledger *l, uint64_t in_ms);
static void ask_files(struct ledger *l);
static void reader_end(struct reader *r);

/* ---- sending -------------------------------------------------------------------------- */

static void want_room(struct ledger *l, bool is_blocked)
{
	if (l->is_blocked == is_blocked)
		return;
	l->is_blocked = is_blocked;
	(void)loop_change(l->core->loop, &l->watch, is_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int greet(struct ledger *l, const char *life)
{
	struct ledger_hello h = { .type = LEDGER_HELLO, .version = LEDGER_VERSION };

	if (strcmp(l->greeted, life) == 0)
		return 0;
	snprintf(h.life, sizeof h.life, "%s", life);
	int r = os_send(l->watch.fd, &h, sizeof h, NULL, 0);

	if (r > 0)
		snprintf(l->greeted, sizeof l->greeted, "%s", life);
	return r;
}

static void flush(struct ledger *l)
{
	timer_stop(&l->core->timers, &l->gather);
	while (l->watch.fd >= 0 && l->unsent) {
		int r = greet(l, l->unsent->life);

		if (r >= 0)
			r = os_send(l->watch.fd, &l->unsent->packet, l->unsent->n, NULL, 0);

		if (r < 0) { /* its end is heard of by the watch */
			want_room(l, r == -EAGAIN || r == -ENOBUFS);
			return;
		}
		l->unsent = l->unsent->next;
	}
	l->unsent_bytes = 0;
	if (l->watch.fd >= 0)
		want_room(l, false);
}

static void gather_fired(struct timer *t)
{
	flush((struct ledger *)(void *)((char *)t - offsetof(struct ledger, gather)));
}

static void copy_name(char to[LEDGER_NAME_SIZE], const char *from)
{
	snprintf(to, LEDGER_NAME_SIZE, "%s", from ? from : "");
	for (; *to; to++) /* a caller's own names: what no line may have */
		if (*to <= ' ' || *to > '~' || *to == '"' || *to == '\\')
			*to = '?';
}

static struct said *make_said(enum ledger_kind kind, const struct ledger_who *who, json_t *data)
{
	AUTO(str_done) struct str text = { .max = LEDGER_DATA_MAX };

	ledger_text(data, &text);
	if (text.overflow) { /* what it was is worth more than all it said */
		str_clear(&text);
		text.overflow = false;
		str_add(&text, "{\"cut\":true}");
	}
	json_decref(data);
	struct said *s = mem_alloc(sizeof *s + text.len + 1);

	*s = (struct said){ .n = sizeof s->packet + text.len + 1,
		            .is_synced = ledger_is_synced(kind),
		            .packet = { .type = LEDGER_APPEND, .kind = kind } };
	copy_name(s->packet.tenant, who->tenant);
	copy_name(s->packet.sandbox, who->sandbox);
	copy_name(s->packet.workspace, who->workspace);
	copy_name(s->packet.process, who->process);
	copy_name(s->packet.actor, who->actor);
	memcpy(s->packet.data, str_text(&text), text.len + 1);
	return s;
}

static void put(struct ledger *l, struct said *s)
{
	*l->last = s;
	l->last = &s->next;
	l->bytes += s->n;
	if (!l->unsent)
		l->unsent = s;
}

static struct said *say(struct ledger *l, enum ledger_kind kind, const struct ledger_who *who,
                        json_t *data)
{
	struct ledger_who full = *who;

	if (!full.actor || !full.actor[0])
		full.actor = l->core->actor;
	struct said *s = make_said(kind, &full, data);

	s->num = s->packet.num = ++l->num;
	snprintf(s->life, sizeof s->life, "%s", l->life);
	/* What no file has must not wait in here alone. */
	bool may_wait = spool_add(&l->spool, s->life, &s->packet, s->n) && !s->is_synced;
	put(l, s);
	l->unsent_bytes += s->n;
	if (!may_wait || l->unsent_bytes >= GATHER_BYTES)
		flush(l);
	else if (l->gather.at_ms == 0)
		timer_set(&l->core->timers, &l->gather, GATHER_MS);
	return s;
}

/* Said by a daemon before us, and perhaps heard by nobody. */
static void say_again(void *arg, const char *life, const struct ledger_append *packet, size_t n)
{
	struct said *s = mem_alloc(sizeof *s + n);

	*s = (struct said){ .n = n, .num = packet->num };
	snprintf(s->life, sizeof s->life, "%s", life);
	memcpy(&s->packet, packet, n);
	put(arg, s);
}

static void say_lost(struct ledger *l)
{
	if (l->n_lost == 0)
		return;
	json_t *data = json_pack("{sI}", "count", (json_int_t)l->n_lost);

	l->n_lost = 0;
	(void)say(l, LEDGER_LOST, &(struct ledger_who){ 0 }, data);
}

void ledger_note(struct core *c, enum ledger_kind kind, const struct ledger_who *who, json_t *data)
{
	struct ledger *l = c->ledger;

	if (!l) { /* it is closed: so are we */
		json_decref(data);
		return;
	}
	if (l->bytes >= LEDGER_WAITING_MAX && !ledger_is_synced(kind)) {
		if (l->n_lost++ == 0)
			journal(JOURNAL_ERROR, "records are lost: the ledger takes none", NULL);
		json_decref(data);
		return;
	}
	(void)say(l, kind, who, data);
}

void ledger_commit(struct core *c, enum ledger_kind kind, const struct ledger_who *who,
                   json_t *data, ledger_done_fn *done, void *arg)
{
	struct ledger *l = c->ledger;
	struct said *s = say(l, kind, who, data);

	s->is_synced = true;
	s->done = done;
	s->arg = arg;
	flush(l);
	s->late_ms = core_mono_ms() + LEDGER_COMMIT_MS;
	if (l->late.at_ms == 0)
		timer_set(&c->timers, &l->late, LEDGER_COMMIT_MS);
}

int ledger_admit(const struct core *c, struct fail *f)
{
	if (!c->ledger || c->ledger->bytes < LEDGER_WAITING_MAX / 2)
		return 0;
	fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the ledger takes no records%s",
	         c->ledger->is_full ? ": its disk is full" : "");
	f->is_retry_safe = true;
	return -1;
}

/* Told late: it may still come to the disk, but nobody could say when. */
static void late_fired(struct timer *t)
{
	struct ledger *l = (struct ledger *)(void *)((char *)t - offsetof(struct ledger, late));
	uint64_t now = core_mono_ms(), next = 0;

	for (struct said *s = l->first; s; s = s->next) {
		if (!s->done)
			continue;
		if (s->late_ms > now) {
			next = next ? next : s->late_ms;
			continue;
		}
		ledger_done_fn *done = s->done;

		s->done = NULL;
		done(s->arg, false);
	}
	if (next)
		timer_set(&l->core->timers, &l->late, next - now);
}

/* ---- hearing -------------------------------------------------------------------------- */

/* Who has heard something of ours has heard all that was said before us. */
static bool is_heard(const struct ledger *l, const struct said *s, const struct ledger_ack *a)
{
	if (strcmp(s->life, a->life) != 0)
		return strcmp(a->life, l->life) == 0 && a->written > 0;
	return s->num <= (s->is_synced ? a->synced : a->written);
}

static void take_ack(struct ledger *l, const struct ledger_ack *a)
{
	bool has_grown = a->seq > l->seq;

	l->is_full = a->is_full;
	l->seq = a->seq;
	while (l->first && l->first != l->unsent && is_heard(l, l->first, a)) {
		struct said *s = l->first;

		l->first = s->next;
		if (!l->first)
			l->last = &l->first;
		l->bytes -= s->n;
		if (s->done)
			s->done(s->arg, true);
		free(s);
	}
	if (!l->first)
		spool_clear(&l->spool);
	if (l->bytes < LEDGER_WAITING_MAX / 2)
		say_lost(l);
	struct ledger_watch *next;

	for (struct ledger_watch *w = has_grown ? l->watches : NULL; w; w = next) {
		next = w->next;
		w->grew(w);
	}
}

static void take_file(struct ledger *l, const struct ledger_file *f, int fd)
{
	for (struct asked **at = &l->asked; *at; at = &(*at)->next) {
		struct asked *a = *at;

		if (a->tag != f->tag || !a->is_sent)
			continue;
		*at = a->next;
		if (a->done)
			a->done(a->arg, fcntl(fd, F_DUPFD_CLOEXEC, 3), f->first, f->next);
		free(a);
		return;
	}
}

static void hang_up(struct ledger *l)
{
	loop_remove(l->core->loop, &l->watch);
	fd_close(&l->watch.fd);
	l->is_blocked = false;
	l->greeted[0] = '\0';
	l->unsent = l->first;
}

static void ready(struct watch *w, uint32_t events)
{
	static union ledger_packet p;
	struct ledger *l = (struct ledger *)(void *)w;

	if (events & EPOLLOUT)
		flush(l);
	for (int i = 0; i < LOOP_BATCH && l->watch.fd >= 0; i++) {
		int n = os_recv_some(w->fd, &p, sizeof p);

		if (n == -EAGAIN)
			return;
		if (n > 0 && ledger_ack_check(&p.ack, (size_t)n)) {
			take_ack(l, &p.ack);
		} else {
			hang_up(l);
			connect_soon(l, AGAIN_MS);
		}
	}
}

/* ---- connecting ----------------------------------------------------------------------- */

static int take_socket(struct ledger *l, int socket_fd)
{
	AUTO(fd_close) int fd = socket_fd;

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	(void)os_refuse_fds(fd);
	l->watch.fd = fd_take(&fd);
	int r = loop_add(l->core->loop, &l->watch, EPOLLIN);
	if (r < 0)
		fd_close(&l->watch.fd);
	return r;
}

static void given(void *arg, int fd, const struct err *e)
{
	struct ledger *l = arg;

	l->is_asked = false;
	if (e || take_socket(l, fd) < 0) {
		journal(JOURNAL_ERROR, "the ledger cannot be reached", "reason",
		        e ? e->msg : "its socket", NULL);
		connect_soon(l, AGAIN_MS * 10ul);
		return;
	}
	l->unsent = l->first;
	flush(l);
}

static void again_fired(struct timer *t)
{
	struct ledger *l = (struct ledger *)(void *)((char *)t - offsetof(struct ledger, again));

	if (l->watch.fd >= 0 || l->is_asked)
		return;
	l->is_asked = true;
	maker_ledger(l->core, given, l);
}

static void connect_soon(struct ledger *l, uint64_t in_ms)
{
	timer_set(&l->core->timers, &l->again, in_ms);
}

int ledger_open(struct core *c, struct err *e)
{
	struct ledger *l = mem_alloc(sizeof *l);
	uint8_t raw[(LEDGER_LIFE_SIZE - 1) / 2] = { 0 };

	*l = (struct ledger){ .watch = { .fd = -1, .ready = ready },
		              .reader = { .watch.fd = -1, .ledger = l },
		              .core = c,
		              .again.fired = again_fired,
		              .late.fired = late_fired,
		              .gather.fired = gather_fired };
	l->last = &l->first;
	(void)!getrandom(raw, sizeof raw, 0); /* does not fail for so few, once it was seeded */
	for (size_t i = 0; i < sizeof raw; i++)
		snprintf(l->life + 2 * i, 3, "%02x", raw[i]);
	c->ledger = l;
	if (spool_open(&l->spool, c->config.state_dir, say_again, l, e) < 0)
		return -1;
	again_fired(&l->again);
	return 0;
}

/* The writer hears what is in its socket, also when we are gone. */
static void say_goodbye(struct ledger *l)
{
	uint64_t until = core_mono_ms() + GOODBYE_MS;

	while (l->unsent && l->watch.fd >= 0 && core_mono_ms() < until) {
		struct pollfd room = { .fd = l->watch.fd, .events = POLLOUT };

		(void)poll(&room, 1, AGAIN_MS);
		flush(l);
	}
}

void ledger_close(struct core *c)
{
	struct ledger *l = c->ledger;

	if (!l)
		return;
	say_goodbye(l);
	if (l->watch.fd >= 0)
		hang_up(l);
	reader_end(&l->reader);
	maker_cancel(c, l);
	maker_cancel(c, &l->reader);
	timer_stop(&c->timers, &l->again);
	timer_stop(&c->timers, &l->late);
	timer_stop(&c->timers, &l->gather);
	spool_close(&l->spool);
	for (struct said *s = l->first, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	for (struct asked *a = l->asked, *next; a; a = next) {
		next = a->next;
		free(a);
	}
	free(l);
	c->ledger = NULL;
}

/* ---- readers -------------------------------------------------------------------------- */

static void reader_end(struct reader *r)
{
	if (r->watch.fd < 0)
		return;
	loop_remove(r->ledger->core->loop, &r->watch);
	fd_close(&r->watch.fd);
	for (struct asked *a = r->ledger->asked; a; a = a->next)
		a->is_sent = false;
}

static void reader_ready(struct watch *w, uint32_t events)
{
	struct reader *r = (struct reader *)(void *)w;
	struct ledger_file f;
	int got = -1;
	size_t n_fds = 1;
	int n = os_recv(w->fd, &f, sizeof f, &got, &n_fds);
	AUTO(fd_close) int fd = n > 0 && n_fds > 0 ? got : -1;

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n > 0 && ledger_file_check(&f, (size_t)n, n_fds)) {
		take_file(r->ledger, &f, fd);
		return;
	}
	reader_end(r);
	ask_files(r->ledger);
}

static void reader_given(void *arg, int socket_fd, const struct err *e)
{
	struct reader *r = arg;
	AUTO(fd_close) int fd = socket_fd;

	r->is_asked = false;
	if (e || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return; /* with the next question */
	r->watch = (struct watch){ .fd = fd_take(&fd), .ready = reader_ready };
	if (loop_add(r->ledger->core->loop, &r->watch, EPOLLIN) < 0)
		fd_close(&r->watch.fd);
	else
		ask_files(r->ledger);
}

/* Questions are few and small: they find room. Who asks finds what was said before. */
static void ask_files(struct ledger *l)
{
	flush(l);
	if (l->reader.watch.fd < 0) {
		if (l->asked && !l->reader.is_asked) {
			l->reader.is_asked = true;
			maker_ledger(l->core, reader_given, &l->reader);
		}
		return;
	}
	for (struct asked *a = l->asked; a; a = a->next) {
		const struct ledger_read q = { .type = LEDGER_READ, .tag = a->tag, .seq = a->seq };
		bool is_attest = a->attest.type == LEDGER_ATTEST;

		if (!a->is_sent)
			a->is_sent =
			    os_send(l->reader.watch.fd, is_attest ? (const void *)&a->attest : &q,
			            is_attest ? sizeof a->attest : sizeof q, NULL, 0) > 0;
	}
}

void ledger_watch_add(struct core *c, struct ledger_watch *w)
{
	w->next = c->ledger->watches;
	c->ledger->watches = w;
}

void ledger_watch_remove(struct core *c, struct ledger_watch *w)
{
	for (struct ledger_watch **at = c->ledger ? &c->ledger->watches : NULL; at && *at;
	     at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			return;
		}
	}
}

uint64_t ledger_last(const struct core *c)
{
	return c->ledger->seq;
}

void ledger_file(struct core *c, uint64_t seq, ledger_file_fn *done, void *arg)
{
	struct ledger *l = c->ledger;
	struct asked *a = mem_alloc(sizeof *a);

	*a = (struct asked){
		.next = l->asked, .tag = ++l->tag, .seq = seq, .done = done, .arg = arg
	};
	l->asked = a;
	ask_files(l);
}

void ledger_attest(struct core *c, const struct ledger_who *who, uint64_t record,
                   ledger_file_fn *done, void *arg)
{
	struct ledger *l = c->ledger;
	struct asked *a = mem_alloc(sizeof *a);

	*a = (struct asked){ .next = l->asked,
		             .tag = ++l->tag,
		             .attest = { .type = LEDGER_ATTEST, .tag = l->tag, .record = record },
		             .done = done,
		             .arg = arg };
	snprintf(a->attest.tenant, sizeof a->attest.tenant, "%s", who->tenant);
	snprintf(a->attest.workspace, sizeof a->attest.workspace, "%s", who->workspace);
	l->asked = a;
	ask_files(l);
}

void ledger_file_cancel(struct core *c, const void *arg)
{
	for (struct asked *a = c->ledger ? c->ledger->asked : NULL; a; a = a->next)
		if (a->arg == arg)
			a->done = NULL;
}
