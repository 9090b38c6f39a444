/*
 * gate.c - what of a sandbox's network outlives a child of the gate (wire/gate.h).
 *
 * Kept here: the sockets that everything inside is captured by, the rules, the names that were
 * given out, the records that the client has not stored yet. Without a child connections wait in
 * the sockets and nothing is open; the client is told that a child is wanted.
 *
 * Rules that no child has served by yet are `next`. A child that is there decides about them; when
 * there is none the next child begins with them, and if it ends before it is up they are dropped
 * for the old ones, unless there are no old ones.
 *
 * The CA that the child tells of is placed inside before anything is served by it (engine/trust.h);
 * later children have the same one. Where it cannot be placed the rules that need it are refused. A
 * command that was said to need the gate is held until one has served.
 *
 * The spool is bounded. What a child may still say is counted in: a child without credit denies,
 * and keeps what it has to tell of connections that were open. Only at the very end it says all of
 * it; for that there is some room of its own, and beyond it connections stay without an end.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/trust.h"
#include "monitor/monitor-internal.h"
#include "os/extent.h"
#include "os/pulse.h"
#include "os/sock.h"
#include "wire/truststore.h"

#define SPOOL_MAX 640 /* records: one MiB */
#define DEBTS_MAX 640 /* as many that came without credit */
#define WINDOW 64     /* of them, sent and not yet on record */
#define HEAR_MAX 1024 /* at once */
#define ASKS_MAX 64
#define UP_MS 5000    /* for a child to begin */
#define END_MS 2000   /* for one to say the last: its records are lost otherwise */
#define HOLD_MS 10000 /* for one to serve at all, while a command waits for that */

struct spooled {
	uint32_t num;
	struct channel_net net;
};

struct pending_ask {
	struct gate_ask ask;
	uint64_t until_ms;
	bool is_told, is_over; /* is_over: nobody waits for its answer */
};

struct gatekeep {
	struct watch link; /* to the child; fd -1: none */
	struct monitor *monitor;
	struct timer patience, hold;
	int names_fd;
	int rules_fd, next_fd; /* -1: none */
	uint32_t generation, next_generation;
	uint8_t seed[GATE_SEED_SIZE]; /* of its CA */
	bool is_started, is_up, is_next_sent;
	bool has_served; /* this child, or one before it */
	bool is_ca_placed;

	bool due_gateless, due_ruled;
	struct gate_ruled ruled;
	uint32_t credit; /* what the child has left */
	VEC(struct spooled) spool;
	size_t n_sent;
	uint64_t last_at;
	VEC(struct pending_ask) asks;
};

/* ---- to the client ----------------------------------------------------------------- */

static void tell_records(struct monitor *m, size_t window)
{
	struct gatekeep *g = m->gate;

	while (g->n_sent < g->spool.len && g->n_sent < window) {
		const struct spooled *s = &g->spool.at[g->n_sent];

		if (!talk_about(m, CH_NET, s->num, &s->net, sizeof s->net))
			return;
		g->n_sent++;
	}
}

/* False: it is over, and nobody who was told of it has to be told. */
static bool tell_ask(struct monitor *m, struct pending_ask *a)
{
	const struct gate_unask over = { .ask = a->ask.ask };

	if (a->is_over)
		return a->is_told && !talk_about(m, CH_UNASK, 0, &over, sizeof over);
	if (!a->is_told)
		a->is_told = talk_about(m, CH_ASK, 0, &a->ask, sizeof a->ask);
	return true;
}

static void tell_asks(struct monitor *m)
{
	struct gatekeep *g = m->gate;
	size_t kept = 0;

	for (size_t i = 0; i < g->asks.len; i++)
		if (tell_ask(m, &g->asks.at[i]))
			g->asks.at[kept++] = g->asks.at[i];
	g->asks.len = kept;
}

void gatekeep_tell(struct monitor *m)
{
	struct gatekeep *g = m->gate;

	if (!g)
		return;
	tell_records(m, m->is_ending ? SIZE_MAX : WINDOW);
	if (g->due_ruled)
		g->due_ruled = !talk_about(m, CH_RULED, 0, &g->ruled, sizeof g->ruled);
	tell_asks(m);
	if (g->due_gateless)
		g->due_gateless = !talk_about(m, CH_GATELESS, 0, NULL, 0);
}

/* Nothing of what was only sent to the one before is lost. */
void gatekeep_new_client(struct monitor *m)
{
	struct gatekeep *g = m->gate;

	if (!g)
		return;
	g->n_sent = 0;
	for (size_t i = 0; i < g->asks.len; i++)
		g->asks.at[i].is_told = false;
}

void gatekeep_sync(struct monitor *m)
{
	if (m->gate)
		m->gate->due_gateless = m->gate->link.fd < 0;
}

static void say_ruled(struct gatekeep *g, const struct gate_ruled *r)
{
	g->ruled = *r;
	g->due_ruled = true;
}

/* ---- to the child ------------------------------------------------------------------ */

static void lose(struct gatekeep *g);

/* Its socket has room for all that is ever under way: one that takes nothing is of no use. */
static bool send_packet(struct gatekeep *g, struct gate_packet *p, const int *fds, size_t n_fds)
{
	size_t size = gate_size(p);

	p->head.len = (uint32_t)(size - sizeof p->head);
	if (os_send(g->link.fd, p, size, fds, n_fds) >= 0)
		return true;
	lose(g);
	return false;
}

/* With what is on its way the spool is never more than full. */
static uint32_t new_credit(const struct gatekeep *g)
{
	size_t taken = g->spool.len + g->credit;
	size_t room = taken < SPOOL_MAX ? SPOOL_MAX - taken : 0;
	size_t wanted = GATE_CREDIT - g->credit;

	return (uint32_t)(room < wanted ? room : wanted);
}

static void give_credit(struct gatekeep *g)
{
	struct gate_packet p = { .head.type = G_CREDIT };

	if (!g->is_started || g->credit > GATE_CREDIT / 2)
		return;
	p.credit.n = new_credit(g);
	if (p.credit.n > 0 && send_packet(g, &p, NULL, 0))
		g->credit += p.credit.n;
}

static void start(struct gatekeep *g)
{
	const struct spawn_init *init = &g->monitor->init;
	const char *id = g->monitor->box->id;
	int rules_fd = g->next_fd >= 0 ? g->next_fd : g->rules_fd;
	int fds[GATE_FDS] = { init->net_fds[NET_TCP4],
		              init->net_fds[NET_TCP6],
		              init->net_fds[NET_UDP4],
		              init->net_fds[NET_UDP6],
		              g->names_fd,
		              rules_fd };
	struct gate_packet p = { .head.type = G_START };

	if (g->is_started || g->link.fd < 0 || rules_fd < 0)
		return;
	g->credit = 0;
	snprintf(p.start.id, sizeof p.start.id, "%s", id ? id : "sandbox");
	p.start.generation = g->next_fd >= 0 ? g->next_generation : g->generation;
	p.start.credit = new_credit(g);
	memcpy(p.start.seed, g->seed, sizeof p.start.seed);
	if (!send_packet(g, &p, fds, GATE_FDS))
		return;
	g->credit = p.start.credit;
	g->is_started = true;
	g->is_next_sent = g->next_fd >= 0;
	timer_set(&g->monitor->timers, &g->patience, UP_MS);
}

static void send_rules(struct gatekeep *g)
{
	struct gate_packet p = { .head.type = G_RULES, .rules.generation = g->next_generation };

	if (g->is_up && g->next_fd >= 0 && !g->is_next_sent)
		g->is_next_sent = send_packet(g, &p, &g->next_fd, 1);
}

static void accept_next(struct gatekeep *g)
{
	if (g->next_fd < 0)
		return;
	fd_close(&g->rules_fd);
	g->rules_fd = fd_take(&g->next_fd);
	g->generation = g->next_generation;
	g->is_next_sent = false;
}

static void refuse_next(struct gatekeep *g)
{
	fd_close(&g->next_fd);
	g->is_next_sent = false;
}

/* The child is dead, or of no use. The rules that it did not even begin with were the reason, as
 * far as we know; others are there. */
static void lose(struct gatekeep *g)
{
	struct monitor *m = g->monitor;
	struct gate_ruled refused = { .generation = g->next_generation, .is_refused = 1 };

	if (g->link.fd < 0)
		return;
	loop_remove(&m->loop, &g->link);
	fd_close(&g->link.fd);
	timer_stop(&m->timers, &g->patience);
	if (g->is_started && !g->is_up && g->next_fd >= 0 && g->rules_fd >= 0) {
		snprintf(refused.reason, sizeof refused.reason,
		         "the gate does not begin with them");
		say_ruled(g, &refused);
		refuse_next(g);
	}
	g->is_started = g->is_up = g->is_next_sent = false;
	g->credit = 0;
	for (size_t i = 0; i < g->asks.len; i++)
		g->asks.at[i].is_over = true; /* those that waited are closed */
	g->due_gateless = true;
}

/* ---- from the child ---------------------------------------------------------------- */

static void hear_up(struct gatekeep *g, const struct gate_packet *p)
{
	(void)p;
	if (!g->is_started || g->is_up)
		return;
	g->is_up = g->has_served = true;
	timer_stop(&g->monitor->timers, &g->patience);
	timer_stop(&g->monitor->timers, &g->hold);
	if (g->is_next_sent)
		accept_next(g);
	say_ruled(g, &(struct gate_ruled){ .generation = g->generation });
	send_rules(g); /* such as came meanwhile */
	execs_go_on(g->monitor);
}

static void hear_ruled(struct gatekeep *g, const struct gate_packet *p)
{
	if (!g->is_next_sent || p->ruled.generation != g->next_generation)
		return; /* about others, which newer ones have replaced */
	say_ruled(g, &p->ruled);
	if (!p->ruled.is_refused)
		accept_next(g);
	else if (g->is_up || g->rules_fd >= 0)
		refuse_next(g);
}

/* A command that is not over; a worker of ours has no log. */
static bool is_command(const struct proc *p)
{
	return !p->is_over && p->log_fd >= 0;
}

/* Its number, or 0: none, or more than one. What earlier ones left running is not seen here. */
static uint32_t only_running(const struct monitor *m)
{
	uint32_t num = 0;

	for (const struct proc *p = m->procs; p; p = p->next) {
		if (!is_command(p))
			continue;
		if (num)
			return 0;
		num = p->num;
	}
	return num;
}

/* The one that was answered, and those that nobody can answer any more. */
static void drop_asks(struct gatekeep *g, uint64_t answered)
{
	const uint64_t now = timer_now_ms();
	size_t kept = 0;

	for (size_t i = 0; i < g->asks.len; i++)
		if (g->asks.at[i].ask.ask != answered && g->asks.at[i].until_ms > now)
			g->asks.at[kept++] = g->asks.at[i];
	g->asks.len = kept;
}

static void hear_record(struct gatekeep *g, const struct gate_packet *p)
{
	const struct gate_record *r = &p->record;
	uint32_t num = only_running(g->monitor);

	g->credit -= g->credit > 0;
	if (g->spool.len < SPOOL_MAX + DEBTS_MAX)
		vec_push(&g->spool, (struct spooled){
					.num = num, .net = { .at = ++g->last_at, .record = *r } });
	if ((r->decision == GATE_DENY || r->decision == GATE_ASKED_DENY) && r->kind != GATE_OPENED)
		self_note_denied(g->monitor, num, r);
	give_credit(g);
}

/* Whoever is not told that they are over finds out by their time. */
static void drop_over(struct gatekeep *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->asks.len; i++)
		if (!g->asks.at[i].is_over)
			g->asks.at[kept++] = g->asks.at[i];
	g->asks.len = kept;
}

static void hear_ask(struct gatekeep *g, const struct gate_packet *p)
{
	drop_asks(g, p->ask.ask);
	if (g->asks.len >= ASKS_MAX)
		drop_over(g);
	if (g->asks.len < ASKS_MAX) /* else it ends by itself, with no */
		vec_push(&g->asks,
		         (struct pending_ask){ .ask = p->ask,
		                               .until_ms = timer_now_ms() + p->ask.timeout_ms });
}

static void hear_unask(struct gatekeep *g, const struct gate_packet *p)
{
	for (size_t i = 0; i < g->asks.len; i++)
		if (g->asks.at[i].ask.ask == p->unask.ask)
			g->asks.at[i].is_over = true;
}

/* The child has taken the new rules, or is about to: the next one begins with the old ones, if
 * there are any. */
static void refuse_rules(struct gatekeep *g, const char *reason)
{
	struct gate_ruled refused = { .generation =
		                          g->next_fd >= 0 ? g->next_generation : g->generation,
		                      .is_refused = 1 };

	snprintf(refused.reason, sizeof refused.reason, "%s", reason);
	gate_plain(refused.reason);
	say_ruled(g, &refused);
	if (g->rules_fd >= 0)
		refuse_next(g);
	lose(g);
}

/* The key is always the same, and so is what is trusted: once is enough. */
static void hear_ca(struct gatekeep *g, const struct gate_packet *p)
{
	struct monitor *m = g->monitor;
	const struct trust trust = { .pem = p->ca.pem,
		                     .hash = p->ca.hash,
		                     .make_store = truststore_make };
	struct err e = { 0 };

	if (g->is_ca_placed || m->is_ending)
		return;
	if (trust_place(m->box, &m->init, &trust, &e) < 0)
		refuse_rules(g, e.msg);
	else
		g->is_ca_placed = true;
}

static void hear_marks(struct gatekeep *g, const struct gate_packet *p)
{
	masks_take(g->monitor, &p->marks);
}

static void (*const words[G_TYPES])(struct gatekeep *g, const struct gate_packet *p) = {
	[G_UP] = hear_up,         [G_CA] = hear_ca,   [G_RULED] = hear_ruled,
	[G_RECORD] = hear_record, [G_ASK] = hear_ask, [G_UNASK] = hear_unask,
	[G_MARKS] = hear_marks,
};

/* True: there may be more. */
static bool hear_one(struct gatekeep *g)
{
	static struct gate_packet p;
	int fd = -1;
	size_t n_fds = 1;
	int n = os_recv(g->link.fd, &p, sizeof p, &fd, &n_fds);

	if (n == -EAGAIN)
		return false;
	if (n_fds > 0)
		fd_close(&fd);
	if (n > 0 && gate_check(&p, (size_t)n, n_fds) && words[p.head.type])
		words[p.head.type](g, &p);
	else
		lose(g);
	return g->link.fd >= 0;
}

static void link_ready(struct watch *w, uint32_t events)
{
	struct gatekeep *g = (struct gatekeep *)(void *)w;

	(void)events;
	(void)hear_one(g);
	gatekeep_tell(g->monitor);
}

static void patience_fired(struct timer *t)
{
	struct gatekeep *g = OWNER_OF(t, struct gatekeep, patience);

	lose(g);
	gatekeep_tell(g->monitor);
}

static void hold_fired(struct timer *t)
{
	struct gatekeep *g = OWNER_OF(t, struct gatekeep, hold);
	struct err e = { 0 };

	err_new(&e, ERR_INTERNAL, "the gate of the sandbox does not serve");
	execs_refuse(g->monitor, &e);
}

bool gatekeep_holds(struct monitor *m)
{
	struct gatekeep *g = m->gate;

	if (!g || g->has_served)
		return false;
	if (g->hold.at_ms == 0)
		timer_set(&m->timers, &g->hold, HOLD_MS);
	return true;
}

void gatekeep_hear(struct monitor *m)
{
	for (int i = 0; m->gate && m->gate->link.fd >= 0 && i < HEAR_MAX; i++)
		if (!hear_one(m->gate))
			break;
}

/* ---- what the client says ---------------------------------------------------------- */

void gatekeep_take(struct monitor *m, int *fd)
{
	struct gatekeep *g = m->gate;

	if (!g || g->link.fd >= 0 || m->is_ending)
		return;
	if (fcntl(*fd, F_SETFL, O_NONBLOCK) < 0)
		return;
	g->link.fd = fd_take(fd);
	monitor_watch(m, &g->link, EPOLLIN);
	g->due_gateless = false;
	start(g);
	gatekeep_tell(m);
}

void gatekeep_rules(struct monitor *m, uint32_t generation, int *fd)
{
	struct gatekeep *g = m->gate;

	if (!g)
		return;
	refuse_next(g);
	g->next_fd = fd_take(fd);
	g->next_generation = generation;
	if (g->is_up)
		send_rules(g);
	else
		start(g);
	gatekeep_tell(m);
}

void gatekeep_ack(struct monitor *m, uint64_t at)
{
	struct gatekeep *g = m->gate;
	size_t n = 0;

	while (g && n < g->n_sent && g->spool.at[n].net.at <= at)
		n++;
	if (n == 0)
		return;
	g->spool.len -= n;
	g->n_sent -= n;
	memmove(g->spool.at, g->spool.at + n, g->spool.len * sizeof *g->spool.at);
	give_credit(g);
	gatekeep_tell(m);
}

void gatekeep_answer(struct monitor *m, const struct gate_answer *a)
{
	struct gatekeep *g = m->gate;
	struct gate_packet p = { .head.type = G_ANSWER, .answer = *a };

	if (!g || !g->is_up)
		return;
	p.answer.is_allowed = a->is_allowed != 0;
	p.answer.zero = 0;
	drop_asks(g, a->ask);
	(void)send_packet(g, &p, NULL, 0);
}

/* ---- what is asked about it from inside ---------------------------------------------- */

const struct gate_ask *gatekeep_ask_at(const struct monitor *m, size_t i, uint64_t *left_ms)
{
	const struct gatekeep *g = m->gate;
	const uint64_t now = timer_now_ms();
	size_t n = 0;

	for (size_t k = 0; g && k < g->asks.len; k++) {
		const struct pending_ask *a = &g->asks.at[k];

		if (a->is_over || a->until_ms <= now || n++ < i)
			continue;
		*left_ms = a->until_ms - now;
		return &a->ask;
	}
	return NULL;
}

/* ---- birth and end ----------------------------------------------------------------- */

int gatekeep_open(struct monitor *m, struct err *e)
{
	if (m->init.net_fds[0] < 0)
		return 0;
	struct gatekeep *g = mem_alloc(sizeof *g);

	*g = (struct gatekeep){ .link = { .fd = -1, .ready = link_ready },
		                .monitor = m,
		                .patience = { .fired = patience_fired },
		                .hold = { .fired = hold_fired },
		                .rules_fd = -1,
		                .next_fd = -1 };
	m->gate = g;
	if (getrandom(g->seed, sizeof g->seed, 0) != (ssize_t)sizeof g->seed)
		return err_sys(e, errno, "getrandom");
	g->names_fd = os_memfd_sealable("names");
	return g->names_fd < 0 ? err_sys(e, -g->names_fd, "make the table of names") : 0;
}

/* Nothing inside lives any more, so every connection has lost its client. The child says how much
 * each carried; then the client gets what it has not had. */
void gatekeep_end(struct monitor *m)
{
	struct gatekeep *g = m->gate;
	const uint64_t until = timer_now_ms() + END_MS;

	if (!g)
		return;
	if (g->link.fd >= 0)
		(void)shutdown(g->link.fd, SHUT_WR); /* or it is dead already */
	while (g->link.fd >= 0 && timer_now_ms() < until) {
		struct pollfd child = { .fd = g->link.fd, .events = POLLIN };

		if (os_poll(&child, 1, (int)(until - timer_now_ms())) <= 0)
			continue;
		os_pulse_on();
		(void)hear_one(g);
		os_pulse_off();
	}
	g->due_gateless = false;
	gatekeep_tell(m);
}
