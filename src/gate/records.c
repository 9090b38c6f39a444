/*
 * records.c - one record when a connection is open, one when it has ended; of what is refused in
 * masses, one a second with their number.
 */
#include "gate/gate-internal.h"

#define WINDOW_MS 1000

enum { ALIKE_BUDGET, ALIKE_SPOOL };

static void copy(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text ? text : "");
}

/* Nobody takes it yet. They are not many: without credit no connection and no recorded request
 * begins, and each that had begun has at most three things left to tell. */
static void owe(struct records *r, const struct gate_packet *p)
{
	struct unsaid *u = mem_alloc(sizeof *u);

	u->next = NULL;
	memcpy(&u->packet, p, gate_size(p));
	*(r->owed ? r->owed_end : &r->owed) = u;
	r->owed_end = &u->next;
}

static void tell(struct gate *g, const struct gate_record *r)
{
	struct gate_packet p = { .head = { G_RECORD, sizeof p.record }, .record = *r };

	if (g->records.credit == 0) {
		owe(&g->records, &p);
		return;
	}
	g->records.credit--;
	gate_say(g, &p);
}

static void tell_owed(struct gate *g)
{
	struct unsaid *u = g->records.owed;

	g->records.owed = u->next;
	gate_say(g, &u->packet);
	free(u);
}

void records_credit(struct gate *g, uint32_t n)
{
	g->records.credit += n;
	for (; g->records.owed && g->records.credit > 0; g->records.credit--)
		tell_owed(g);
}

bool records_has_room(const struct gate *g)
{
	return g->records.credit > 0;
}

static struct gate_record describe(const struct conn *c, enum gate_kind kind)
{
	struct gate_record r = {
		.seq = c->seq,
		.unix_ms = c->unix_ms,
		.bytes_up = c->relay.up.bytes,
		.bytes_down = c->relay.down.bytes,
		.ms = timer_now_ms() - c->since_ms,
		.kind = kind,
		.decision = c->is_answered ? GATE_ASKED_ALLOW : GATE_ALLOW,
		.proto = c->proto,
		.generation = c->generation,
		.port = c->to.port,
		.src_port = c->src_port,
		.is_v6 = c->to.is_v6,
		.is_terminated = c->is_terminated,
	};

	memcpy(r.dst, c->to.at, sizeof r.dst);
	memcpy(r.real, c->real.at, sizeof r.real);
	copy(r.name, sizeof r.name, c->name);
	copy(r.sni, sizeof r.sni, c->sni);
	copy(r.alpn, sizeof r.alpn, c->alpn);
	copy(r.rule, sizeof r.rule, c->rule);
	copy(r.secret, sizeof r.secret, c->canary);
	return r;
}

void record_opened(struct conn *c)
{
	struct gate_record r = describe(c, GATE_OPENED);

	c->is_opened = true;
	tell(c->gate, &r);
}

/* The first of them is told whole, with how many there were. */
static void count_alike(struct gate *g, const struct gate_record *r)
{
	struct gate_record *sum =
	    &g->records.denied[r->reason == GATE_SPOOL ? ALIKE_SPOOL : ALIKE_BUDGET];

	if (sum->count++ > 0)
		return;
	*sum = *r;
	sum->count = 1;
	if (!g->records.window.at_ms)
		timer_set(&g->timers, &g->records.window, WINDOW_MS);
}

void record_closed(struct conn *c, enum gate_decision d, enum gate_reason why, enum conn_by by)
{
	struct gate_record r = describe(c, GATE_CLOSED);

	r.decision = d;
	r.reason = why;
	r.close_by = (uint8_t)by;
	if (!c->is_opened && (why == GATE_BUDGET || why == GATE_SPOOL))
		count_alike(c->gate, &r);
	else
		tell(c->gate, &r);
}

static struct gate_record describe_request(const struct conn *c, enum gate_kind kind,
                                           const struct request_note *n)
{
	struct gate_record r = describe(c, kind);

	r.request = n->number;
	r.ask = n->ask;
	if (n->content)
		r.content = *n->content;
	if (n->is_approved)
		r.decision = GATE_ASKED_ALLOW;
	copy(r.method, sizeof r.method, n->method);
	copy(r.path, sizeof r.path, n->path);
	copy(r.secret, sizeof r.secret, n->secret);
	return r;
}

void record_use(struct conn *c, const struct request_note *n)
{
	struct gate_record r = describe_request(c, GATE_USE, n);

	tell(c->gate, &r);
}

void record_request(struct conn *c, const struct request_note *n)
{
	struct gate_record r = describe_request(c, GATE_REQUEST, n);

	r.status = (uint32_t)n->status;
	r.reason = n->reason;
	r.cache = (uint8_t)n->cache;
	if (n->reason == GATE_ASK_TIMEOUT || n->reason == GATE_ASK_DENIED ||
	    n->reason == GATE_ASK_FULL)
		r.decision = GATE_ASKED_DENY;
	if (n->reason == GATE_HTTP_RULE || n->reason == GATE_HTTP_BAD ||
	    n->reason == GATE_NAME_MISMATCH || n->reason == GATE_NAME_BAD ||
	    n->reason == GATE_CREDENTIAL || n->reason == GATE_GIT || n->reason == GATE_CANARY)
		r.decision = GATE_DENY;
	copy(r.method, sizeof r.method, n->method);
	copy(r.path, sizeof r.path, n->path);
	if (n->secret[0] && !c->canary)
		copy(r.secret, sizeof r.secret, n->secret);
	tell(c->gate, &r);
}

void record_minted(struct gate *g, const struct minted *m)
{
	struct gate_record r = {
		.seq = m->seq,
		.unix_ms = gate_unix_ms(),
		.kind = m->kind,
		.request = 1,
		.decision = GATE_ALLOW,
		.reason = m->reason,
		.proto = GATE_PROTO_TLS,
		.generation = g->generation,
		.port = m->port,
		.status = (uint32_t)m->status,
		.is_terminated = true,
	};

	copy(r.name, sizeof r.name, m->name);
	copy(r.method, sizeof r.method, "POST");
	copy(r.path, sizeof r.path, m->path);
	copy(r.secret, sizeof r.secret, m->secret);
	tell(g, &r);
}

static void window_over(struct timer *t)
{
	struct gate *g = OWNER_OF(t, struct gate, records.window);

	for (size_t i = 0; i < COUNT(g->records.denied); i++) {
		struct gate_record *sum = &g->records.denied[i];

		if (sum->count > 0 && records_has_room(g)) {
			tell(g, sum);
			sum->count = 0;
		}
		if (sum->count > 0)
			timer_set(&g->timers, t, WINDOW_MS); /* once somebody takes records again */
	}
}

void record_lookup(struct gate *g, const struct lookup_note *n)
{
	struct gate_record r = {
		.seq = names_next_seq(&g->names),
		.unix_ms = gate_unix_ms(),
		.kind = GATE_LOOKUP,
		.decision = GATE_DENY,
		.reason = n->reason,
		.proto = GATE_PROTO_DNS,
		.generation = g->generation,
		.port = 53,
		.count = n->count,
	};

	copy(r.name, sizeof r.name, n->name);
	if (n->reason == GATE_CANARY)
		copy(r.secret, sizeof r.secret, canaries_find(g->rules.canaries, span_of(n->name)));
	tell(g, &r);
}

void records_start(struct gate *g)
{
	g->records.window.fired = window_over;
}

void records_done(struct gate *g)
{
	timer_stop(&g->timers, &g->records.window);
	while (g->records.owed) /* the last words need no credit */
		tell_owed(g);
	for (struct unsaid *u = g->records.unsaid, *next; u; u = next) {
		next = u->next;
		free(u);
	}
}
