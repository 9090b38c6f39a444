/*
 * asks.c - connections that wait for a person, and requests of them.
 *
 * The client has its connection and just waits. All that want the same name and port are one
 * question, and so are all that want the first use of a secret at the same host. Every other
 * request (web_hold.c) is a question of its own, however much it looks like another: an answer
 * releases one request. When nobody waits any more the question is withdrawn, a little later: a
 * client that tries again joins it, and one that only connects and leaves cannot ask faster than
 * that. No answer in time is a no.
 */
#include "base/fd.h"
#include "gate/gate-internal.h"
#include "gate/web.h"

#define ASKS_MAX 64  /* different questions */
#define HELD_MAX 256 /* connections that wait */
#define LINGER_MS 1000
#define SEQ_BITS 40 /* of connections that a sandbox ever makes */

struct ask {
	struct ask *next;
	struct gate *gate;
	struct conn *conns;
	struct timer timer;
	uint64_t until_ms;
	const char *name; /* NULL: the address */
	struct rules_addr to;
	struct gate_ask about; /* of a request; else its kind alone */
	uint64_t id;
};

/* Many may wait for one answer. */
static bool is_shared(const struct gate_ask *about)
{
	return about->kind == GATE_ASK_CONNECT || about->is_first;
}

/* Of the same name and port. */
static bool is_about(const struct ask *a, const struct conn *c, const struct gate_ask *about)
{
	if (!is_shared(&a->about) || !is_shared(about) || a->about.kind != about->kind ||
	    strcmp(a->about.secret, about->secret) != 0)
		return false;
	if (a->to.port != c->to.port || !a->name != !c->name)
		return false;
	if (a->name)
		return strcmp(a->name, c->name) == 0;
	return a->to.is_v6 == c->to.is_v6 && memcmp(a->to.at, c->to.at, sizeof a->to.at) == 0;
}

/* Until it is over, with or without somebody who waits. */
static void set_timer(struct ask *a)
{
	uint64_t now = timer_now_ms(), left = a->until_ms > now ? a->until_ms - now : 0;

	if (!a->conns && left > LINGER_MS)
		left = LINGER_MS;
	timer_set(&a->gate->timers, &a->timer, left);
}

void asks_leave(struct conn *c)
{
	if (!c->ask)
		return;
	struct conn **at = &c->ask->conns;

	while (*at != c)
		at = &(*at)->ask_next;
	*at = c->ask_next;
	if (!c->ask->conns)
		set_timer(c->ask);
	c->ask = NULL;
	c->ask_next = NULL;
	c->gate->asks.n_conns--;
}

static void ask_free(struct ask *a)
{
	struct ask **at = &a->gate->asks.first;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	a->gate->asks.n--;
	timer_stop(&a->gate->timers, &a->timer);
	free(a);
}

static void tell(struct conn *c, bool is_allowed, enum gate_reason why)
{
	if (c->state == CONN_WEB) {
		web_asked(c, is_allowed, why);
		return;
	}
	c->is_answered = is_allowed;
	if (is_allowed)
		conn_judge(c); /* the rules may have changed */
	else
		conn_deny(c, GATE_ASKED_DENY, why);
}

/* Those that come again while these are let go are asked for anew. */
static void settle(struct ask *a, bool is_allowed, enum gate_reason why)
{
	struct conn *c = a->conns, *next;

	for (struct conn *x = c; x; x = x->ask_next) {
		x->ask = NULL;
		x->gate->asks.n_conns--;
	}
	ask_free(a);
	for (; c; c = next) {
		next = c->ask_next;
		c->ask_next = NULL;
		tell(c, is_allowed, why);
	}
}

static void withdraw(struct ask *a)
{
	struct gate_packet p = { .head = { G_UNASK, sizeof p.unask }, .unask.ask = a->id };

	gate_say(a->gate, &p);
	ask_free(a);
}

static void too_late(struct timer *t)
{
	struct ask *a = OWNER_OF(t, struct ask, timer);

	if (a->conns)
		settle(a, false, GATE_ASK_TIMEOUT);
	else
		withdraw(a);
}

void asks_answer(struct gate *g, const struct gate_answer *answer)
{
	for (struct ask *a = g->asks.first; a; a = a->next)
		if (a->id == answer->ask) {
			settle(a, answer->is_allowed, GATE_ASK_DENIED);
			return;
		}
}

/* Another one than any that a child before us has given: the number of a connection is. */
static uint64_t id_of(struct conn *c, const struct gate_ask *about)
{
	bool is_request = about->kind != GATE_ASK_CONNECT;

	return c->seq + (is_request ? ++c->gate->asks.n_requests << SEQ_BITS : 0);
}

static struct ask *ask_new(struct conn *c, const struct gate_ask *about)
{
	struct gate *g = c->gate;
	struct ask *a = mem_alloc(sizeof *a);
	struct gate_packet p = { .head = { G_ASK, sizeof p.ask }, .ask = *about };

	*a = (struct ask){ .next = g->asks.first,
		           .gate = g,
		           .timer = { .fired = too_late },
		           .until_ms = timer_now_ms() + g->rules.ask_ms,
		           .name = c->name,
		           .to = c->to,
		           .about = *about,
		           .id = id_of(c, about) };
	g->asks.first = a;
	g->asks.n++;
	p.ask.ask = a->id;
	p.ask.seq = c->seq;
	p.ask.timeout_ms = g->rules.ask_ms;
	p.ask.port = c->to.port;
	snprintf(p.ask.name, sizeof p.ask.name, "%s", c->name ? c->name : "");
	gate_say(g, &p);
	return a;
}

/* Whoever hangs up does not wait any more: one that has only ended its own side cannot be told from
 * one that is gone, and would be answered by nobody. */
static void client_left(struct watch *w, uint32_t events)
{
	(void)events;
	conn_end(OWNER_OF(w, struct conn, relay.client.watch), GATE_NONE, BY_CLIENT);
}

/* The number of the question; 0: too many wait. */
static uint64_t hold(struct conn *c, const struct gate_ask *about)
{
	struct asks *asks = &c->gate->asks;
	struct ask *a = asks->first;

	while (a && !is_about(a, c, about))
		a = a->next;
	if (asks->n_conns >= HELD_MAX || (!a && asks->n >= ASKS_MAX))
		return 0;
	if (!a)
		a = ask_new(c, about);
	c->ask = a;
	c->ask_next = a->conns;
	a->conns = c;
	asks->n_conns++;
	set_timer(a);
	return a->id;
}

void asks_hold(struct conn *c, const struct verdict *v)
{
	struct gate_ask about = { .kind = GATE_ASK_CONNECT };

	if (c->ask)
		return;
	snprintf(about.rule, sizeof about.rule, "%s", v->rule);
	if (!hold(c, &about)) {
		conn_deny(c, GATE_ASKED_DENY, GATE_ASK_FULL);
		return;
	}
	c->state = CONN_HELD;
	c->relay.client.watch.ready = client_left;
	relay_end_watch(&c->relay, &c->relay.client, EPOLLRDHUP);
}

uint64_t asks_hold_request(struct conn *c, const struct gate_ask *about)
{
	return c->ask ? 0 : hold(c, about);
}

/* ---- secrets that were allowed once ---- */

bool asks_was_used(const struct gate *g, const char *secret)
{
	for (size_t i = 0; i < g->asks.used.len; i++)
		if (strcmp(g->asks.used.at[i], secret) == 0)
			return true;
	return false;
}

void asks_note_used(struct gate *g, const char *secret)
{
	if (!asks_was_used(g, secret))
		vec_push(&g->asks.used, mem_strdup(secret));
}

void asks_done(struct gate *g)
{
	for (size_t i = 0; i < g->asks.used.len; i++)
		free(g->asks.used.at[i]);
	vec_done(&g->asks.used);
	for (struct ask *a = g->asks.first, *next; a; a = next) {
		next = a->next;
		ask_free(a);
	}
}
