#include "ledger/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

#include "base/fd.h"
#include "io/journal.h"
#include "io/timer.h"
#include "ledger/attest.h"
#include "ledger/book.h"
#include "ledger/budget.h"
#include "ledger/harden.h"
#include "os/sock.h"
#include "wire/ledger_text.h"

#define BATCH 256
#define JOBS_MAX 8 /* of one daemon, at a time */
#define OWNER_OF(w, type, member) ((type *)(void *)((char *)(w)-offsetof(type, member)))

struct serve;

/* Something is being attested, a file in each turn. */
struct job {
	struct timer timer; /* first */
	struct client *client;
	struct job *next;
	uint32_t tag;
	struct attest_run run;
};

/* One daemon. The one before may still be heard while the next one speaks. */
struct client {
	struct watch watch;
	struct serve *serve;
	struct client *next;
	char life[LEDGER_LIFE_SIZE]; /* "": it has not said hello */
	uint64_t num;                /* the last that was added, */
	uint64_t written, synced;    /* written, synced */
	struct ledger_ack told;
	struct job *jobs;
	bool is_read;   /* it is being listened to */
	bool is_parked; /* out of the loop, which would tell for ever that it has hung up */
	bool is_sync_due;
};

struct serve {
	struct loop loop;
	struct timers timers;
	struct watch launcher;
	struct timer sync, seal;
	struct book book;
	struct budget budget;
	struct client *clients;
	bool is_leaving; /* the launcher is gone */
	bool is_full;    /* the disk took nothing */
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what was done -------------------------------------------------------------------- */

static void tell(struct client *c)
{
	const struct book *b = &c->serve->book;

	if (!c->life[0])
		return;
	struct ledger_ack a = { .type = LEDGER_ACK,
		                .is_full = c->serve->is_full,
		                .written = c->written,
		                .synced = c->synced,
		                .seq = b->seen };

	memcpy(a.life, c->life, sizeof a.life);
	if (memcmp(&a, &c->told, sizeof a) == 0)
		return;
	if (os_send(c->watch.fd, &a, sizeof a, NULL, 0) > 0)
		c->told = a; /* a full socket has older news: the next one says all */
}

static void listen_to(struct client *c, bool is_read)
{
	if (c->is_read == is_read)
		return;
	c->is_read = is_read;
	if (!c->is_parked)
		(void)loop_change(&c->serve->loop, &c->watch, is_read ? EPOLLIN : 0);
	else if (is_read)
		c->is_parked = loop_add(&c->serve->loop, &c->watch, EPOLLIN) < 0;
}

/* It is gone, and what it said last cannot be written yet: that is read when there is room. */
static void park(struct client *c)
{
	loop_remove(&c->serve->loop, &c->watch);
	c->is_parked = true;
	c->is_read = false;
}

static void note_disk(struct serve *s, int r, const struct err *e)
{
	if (r < 0 && !s->is_full)
		journal(JOURNAL_ERROR, "the ledger takes nothing", "reason", e->msg, NULL);
	if (r == 0 && s->is_full)
		journal(JOURNAL_WARN, "the ledger goes on", NULL);
	s->is_full = r < 0;
	for (struct client *c = s->clients; c; c = c->next)
		if (c->life[0]) /* who only reads is heard at any time */
			listen_to(c, !s->is_full && book_has_room(&s->book));
}

/* Writes; syncs, when it is due; says so. */
static void commit(struct serve *s, bool is_sync)
{
	struct err e = { 0 };
	int r = book_write(&s->book, &e);

	for (struct client *c = s->clients; c && r == 0; c = c->next)
		c->written = c->num;
	if (r == 0 && is_sync)
		r = book_sync(&s->book, &e);
	for (struct client *c = s->clients; c && r == 0 && is_sync; c = c->next)
		c->synced = c->written;
	note_disk(s, r, &e);
	for (struct client *c = s->clients; c; c = c->next)
		tell(c);
	if (r < 0)
		timer_set(&s->timers, &s->sync, SERVE_RETRY_MS);
	else if (is_sync)
		timer_stop(&s->timers, &s->sync);
	else if (s->sync.at_ms == 0 && s->book.written > s->book.synced)
		timer_set(&s->timers, &s->sync, SERVE_SYNC_MS);
	if (s->seal.at_ms == 0 && (s->book.sealed < s->book.seq || s->budget.sums.len > 0))
		timer_set(&s->timers, &s->seal, SERVE_SEAL_MS);
}

static void sync_due(struct timer *t)
{
	struct serve *s = OWNER_OF(t, struct serve, sync);

	commit(s, true);
	/* Nobody to tell and no room to write: the lock is for whoever comes next. */
	s->loop.is_done |= s->is_leaving && s->is_full;
}

/* ---- sums, signatures ----------------------------------------------------------------- */

static void add_sums(struct serve *s)
{
	struct err e = { 0 };

	for (size_t i = 0; i < s->budget.sums.len && book_has_room(&s->book); i++) {
		const struct budget_sum *m = &s->budget.sums.at[i];
		char data[384];
		/* Of one that is gone meanwhile, whose chain has ended, only the data tells. */
		bool is_there = ledger_heads_find(&s->book.heads, span_of(m->sandbox)) != NULL;
		const struct ledger_event ev = { .kind = LEDGER_SUM,
			                         .tenant = m->tenant,
			                         .sandbox = is_there ? m->sandbox : "",
			                         .data = data };

		snprintf(
		    data, sizeof data,
		    "{\"count\":%llu,\"from\":%lld,\"of\":\"%s\",\"sandbox\":\"%s\",\"to\":%lld}",
		    (unsigned long long)m->count, (long long)m->from_ms, ledger_kind_name(m->kind),
		    m->sandbox, (long long)m->to_ms);
		if (book_add(&s->book, &ev, now_ms(), &e) < 0)
			journal(JOURNAL_ERROR, e.msg, NULL);
	}
	s->budget.sums.len = 0;
}

static void seal_due(struct timer *t)
{
	struct serve *s = OWNER_OF(t, struct serve, seal);
	struct err e = { 0 };

	add_sums(s);
	int r = book_seal(&s->book, now_ms(), &e);

	if (r < 0)
		note_disk(s, r, &e);
	commit(s, true);
}

/* ---- who speaks ----------------------------------------------------------------------- */

static void job_free(struct job *j)
{
	timer_stop(&j->client->serve->timers, &j->timer);
	attest_stop(&j->run);
	free(j);
}

static void client_end(struct client *c)
{
	struct serve *s = c->serve;
	struct client **at = &s->clients;

	for (struct job *j = c->jobs, *next; j; j = next) {
		next = j->next;
		job_free(j);
	}

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	loop_remove(&s->loop, &c->watch);
	fd_close(&c->watch.fd);
	free(c);
	s->loop.is_done = s->is_leaving && !s->clients;
}

static bool is_known(const struct client *c, uint64_t num)
{
	return num <= c->num || num <= book_src_num(c->serve->book.src, c->life);
}

/* The daemon is believed about what happened, not about the form. */
static bool record(struct client *c, const struct ledger_append *a)
{
	AUTO(str_done) struct str text = { .max = LEDGER_DATA_MAX };
	char src[LEDGER_NAME_SIZE];
	struct err e = { 0 };
	int64_t now = now_ms();

	if (is_known(c, a->num))
		return true;
	json_t *data = json_loads(a->data, JSON_REJECT_DUPLICATES, NULL);
	bool is_object = json_is_object(data);

	if (is_object)
		ledger_text(data, &text);
	json_decref(data);
	if (!is_object || text.overflow)
		return false;
	snprintf(src, sizeof src, "%s-%llu", c->life, (unsigned long long)a->num);
	const struct ledger_event ev = { .kind = a->kind,
		                         .tenant = a->tenant,
		                         .sandbox = a->sandbox,
		                         .workspace = a->workspace,
		                         .process = a->process,
		                         .actor = a->actor,
		                         .src = src,
		                         .data = str_text(&text) };

	return !budget_take(&c->serve->budget, &ev, now) ||
	       book_add(&c->serve->book, &ev, now, &e) == 0;
}

static void show_file(struct client *c, const struct ledger_read *q)
{
	struct ledger_file f = { .type = LEDGER_FILE, .tag = q->tag };
	struct err e = { 0 };
	AUTO(fd_close) int fd = book_file(&c->serve->book, q->seq, &f.first, &f.next, &e);

	if (fd < 0)
		journal(JOURNAL_ERROR, e.msg, NULL);
	(void)os_send(c->watch.fd, &f, sizeof f, &fd, fd < 0 ? 0 : 1); /* it asks again */
}

/* ---- attesting ------------------------------------------------------------------------ */

/* `fd` is given away; -1: `first` says why. */
static void show_attested(const struct client *c, uint32_t tag, int fd, uint64_t first)
{
	const struct ledger_file f = { .type = LEDGER_FILE, .tag = tag, .first = first };
	AUTO(fd_close) int own = fd;

	(void)os_send(c->watch.fd, &f, sizeof f, &own, own < 0 ? 0 : 1); /* it asks again */
}

static void job_on(struct timer *t)
{
	struct job *j = (struct job *)(void *)t;
	struct err e = { 0 };
	uint64_t record = 0;
	int r = attest_step(&j->run, &e), fd = -1;

	if (r > 0) {
		timer_set(&j->client->serve->timers, t, 0);
		return;
	}
	if (r == 0)
		fd = attest_seal(&j->run, &record, &e);
	if (fd < 0 && e.kind != ERR_INVALID)
		journal(JOURNAL_ERROR, e.msg, NULL);
	show_attested(j->client, j->tag, fd, fd >= 0 ? record : e.kind != ERR_INVALID);
	for (struct job **at = &j->client->jobs; *at; at = &(*at)->next) {
		if (*at != j)
			continue;
		*at = j->next;
		break;
	}
	job_free(j);
}

static void attest(struct client *c, const struct ledger_attest *ask)
{
	size_t n = 0;

	for (const struct job *j = c->jobs; j; j = j->next)
		n++;
	if (n >= JOBS_MAX) {
		show_attested(c, ask->tag, -1, 1);
		return;
	}
	struct job *j = mem_alloc(sizeof *j);

	*j = (struct job){ .timer.fired = job_on, .client = c, .next = c->jobs, .tag = ask->tag };
	c->jobs = j;
	attest_start(&j->run, &c->serve->book, ask);
	timer_set(&c->serve->timers, &j->timer, 0);
}

/* False: it is none of ours, and not listened to any more. */
static bool take_packet(struct client *c, const union ledger_packet *p, size_t n)
{
	if (ledger_hello_check(&p->hello, n)) {
		memcpy(c->life, p->hello.life, sizeof c->life);
		c->num = c->written = c->synced = 0; /* of another life */
		return true;
	}
	if (ledger_read_check(&p->read, n)) {
		show_file(c, &p->read);
		return true;
	}
	if (ledger_attest_check(&p->attest, n)) {
		attest(c, &p->attest);
		return true;
	}
	if (!c->life[0] || !ledger_append_check(&p->append, n) || !record(c, &p->append))
		return false;
	c->is_sync_due |= ledger_is_synced(p->append.kind);
	c->num = p->append.num > c->num ? p->append.num : c->num;
	return true;
}

static void client_ready(struct watch *w, uint32_t events)
{
	static union ledger_packet p;
	struct client *c = (struct client *)(void *)w;
	struct serve *s = c->serve;
	bool is_over = false;

	if (c->life[0] && s->is_full && events & (EPOLLHUP | EPOLLERR)) {
		park(c);
		return;
	}
	c->is_sync_due = false;
	for (int i = 0; i < BATCH && !is_over; i++) {
		if (c->life[0] && (s->is_full || !book_has_room(&s->book)))
			break;
		size_t n_fds = 0;
		int n = os_recv(w->fd, &p, sizeof p, NULL, &n_fds);

		if (n == -EAGAIN)
			break;
		is_over = n <= 0 || !take_packet(c, &p, (size_t)n);
		if (n > 0 && is_over)
			journal(JOURNAL_ERROR, "the daemon said what cannot be recorded", NULL);
	}
	commit(s, c->is_sync_due);
	if (is_over)
		client_end(c);
}

static void client_start(struct serve *s, int fd)
{
	struct client *c = mem_alloc(sizeof *c);

	*c = (struct client){ .watch = { .fd = fd, .ready = client_ready },
		              .serve = s,
		              .next = s->clients,
		              .is_read = true };
	s->clients = c;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || loop_add(&s->loop, &c->watch, EPOLLIN) < 0)
		client_end(c);
}

static void launcher_ready(struct watch *w, uint32_t events)
{
	struct serve *s = OWNER_OF(w, struct serve, launcher);
	char word[16];
	int fd = -1;
	size_t n_fds = 1;
	int n = os_recv(w->fd, word, sizeof word, &fd, &n_fds);

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n > 0) {
		if (n_fds == 1)
			client_start(s, fd);
		return;
	}
	loop_remove(&s->loop, w);
	s->is_leaving = true;
	s->loop.is_done = !s->clients;
}

/* ---- life ----------------------------------------------------------------------------- */

/* The writer of a launcher that is gone may still have something to write. */
static int open_book(struct serve *s, const struct serve_opts *o, struct err *e)
{
	const struct book_opts opts = { o->dir_fd, o->file_bytes, o->keep_bytes };
	uint64_t begin = timer_now_ms();
	int r = book_open(&s->book, &opts, now_ms(), e);

	while (r < 0 && e->sys == EBUSY && timer_now_ms() - begin < SERVE_LOCK_MS) {
		const struct timespec pause = { .tv_nsec = 5000000 };

		book_close(&s->book, now_ms());
		(void)nanosleep(&pause, NULL);
		r = book_open(&s->book, &opts, now_ms(), e);
	}
	return r;
}

/* Opening went well, and the files were not what the last writer signed: the operator has to know.
 */
static void warn_of_damage(const struct book *b)
{
	const struct ledger_finding *f = &b->head_fault;
	char from[24], to[24];

	snprintf(from, sizeof from, "%llu", (unsigned long long)(f->from ? f->from : f->seq));
	snprintf(to, sizeof to, "%llu", (unsigned long long)(f->to ? f->to : f->seq));
	if (f->fault != LEDGER_SOUND)
		journal(JOURNAL_ERROR,
		        "the ledger's files are not what its signed head says; run caisson events "
		        "--verify",
		        "fault", ledger_fault_name(f->fault), "from", from, "to", to, NULL);
	if (b->is_damaged)
		journal(JOURNAL_ERROR,
		        "the ledger's last file was damaged; run caisson events --verify", NULL);
}

static int start(struct serve *s, const struct serve_opts *o, struct err *e)
{
	if (harden_ledger(o->dir_fd, e) < 0)
		return -1;
	int r = loop_init(&s->loop);

	if (r >= 0)
		r = timers_init(&s->timers, &s->loop);
	if (r < 0)
		return err_sys(e, -r, "start");
	if (open_book(s, o, e) < 0)
		return -1;
	warn_of_damage(&s->book);
	s->budget.burst = o->burst;
	s->sync.fired = sync_due;
	s->seal.fired = seal_due;
	s->launcher = (struct watch){ .fd = o->launcher_fd, .ready = launcher_ready };
	r = fcntl(o->launcher_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r >= 0)
		r = loop_add(&s->loop, &s->launcher, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch") : 0;
}

int serve_run(const struct serve_opts *o, struct err *e)
{
	static struct serve s;

	signal(SIGPIPE, SIG_IGN);
	json_set_alloc_funcs(mem_alloc, free);
	s.loop.epoll_fd = s.timers.watch.fd = -1;
	int r = start(&s, o, e);

	if (r == 0) {
		r = loop_run(&s.loop);
		r = r < 0 ? err_sys(e, -r, "wait") : 0;
		add_sums(&s);
	}
	book_close(&s.book, now_ms());
	budget_done(&s.budget);
	timers_done(&s.timers, &s.loop);
	loop_close(&s.loop);
	return r;
}
