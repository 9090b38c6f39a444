#include "core/net.h"

#include <arpa/inet.h>

#include "core/canary.h"
#include "core/details.h"
#include "core/gate.h"
#include "core/notes.h"
#include "core/process.h"
#include "core/secret.h"
#include "io/journal.h"
#include "store/connections.h"
#include "wire/cache.h"

#define RETRY_MS 1000
#define LATE_MS 250
/* More than any monitor of ours sends before it is told that some were taken. */
#define HELD_MAX (4ul * STORE_CONNECTIONS_MAX)

struct held {
	uint64_t at;
	uint64_t uses; /* of secrets, with this one and all before it */
	char process[ID_SIZE], approval[ID_SIZE];
	struct gate_record record;
};

/* Of one sandbox, from its first record on; lives until the store has answered, if that is longer.
 */
struct net {
	struct core *core;
	struct sbx *sandbox; /* NULL: freed */
	char sandbox_id[ID_SIZE], tenant[TENANT_SIZE];
	int64_t generation; /* of the sandbox, when it was made */
	VEC(struct held) held;
	size_t n_sent;               /* of these, the first */
	uint64_t uses, uses_on_disk; /* of secrets: said to the ledger, and there */
	bool is_stored; /* those that were sent; they are taken when the ledger has their uses */
	bool is_lost_due;
	struct timer retry;
	struct net_watch *watches;
};

/* ---- one record as a row -------------------------------------------------------------- */

static const enum connection_kind kinds[] = {
	[GATE_OPENED] = CONNECTION_ONE,    [GATE_CLOSED] = CONNECTION_ONE,
	[GATE_LOOKUP] = CONNECTION_LOOKUP, [GATE_REQUEST] = CONNECTION_REQUEST,
	[GATE_USE] = CONNECTION_REQUEST,
};
_Static_assert(COUNT(kinds) == GATE_KINDS, "a kind of record has no row");

static const char *const closers[] = { "gate", "client", "server", "gate" };

static const char *some(const char *text)
{
	return text[0] ? text : NULL;
}

/* An IPv4 address has the first four bytes, and zeros; no host has such an IPv6 one. */
static const char *address_text(struct arena *a, const uint8_t addr[16])
{
	static const uint8_t none[16];
	bool is_v6 = memcmp(addr + 4, none, 12) != 0;
	char text[INET6_ADDRSTRLEN];

	if (memcmp(addr, none, sizeof none) == 0)
		return NULL;
	return arena_strdup(a, inet_ntop(is_v6 ? AF_INET6 : AF_INET, addr, text, sizeof text));
}

static const char *close_of(const struct gate_record *r)
{
	if (r->kind == GATE_OPENED || r->kind == GATE_USE)
		return CONNECTION_OPEN;
	return r->kind == GATE_CLOSED ? closers[r->close_by % COUNT(closers)] : NULL;
}

/* Its name has no letter that JSON would escape. */
static const char *secrets_of(const struct gate_record *r, struct arena *a)
{
	char text[GATE_SECRET_SIZE + sizeof "[\"\"]"];

	if (!r->secret[0] || strpbrk(r->secret, "\"\\"))
		return NULL;
	snprintf(text, sizeof text, "[\"%s\"]", r->secret);
	return arena_strdup(a, text);
}

bool net_is_denied(const struct gate_record *r)
{
	return r->decision == GATE_DENY || r->decision == GATE_ASKED_DENY;
}

void net_row(const struct gate_record *r, struct arena *a, struct connection_row *out)
{
	*out = (struct connection_row){
		.kind = kinds[r->kind],
		.num = (int64_t)r->seq,
		.request = (int64_t)r->request,
		.ts_ms = r->unix_ms > 0 ? r->unix_ms : 0,
		.name = some(r->name),
		.dst = address_text(a, r->dst),
		.real = address_text(a, r->real),
		.port = r->port,
		.proto = gate_proto_name((enum gate_proto)r->proto),
		.sni = some(r->sni),
		.alpn = some(r->alpn),
		.decision = gate_decision_name((enum gate_decision)r->decision),
		.denied = net_is_denied(r),
		.rule = some(r->rule),
		.reason =
		    r->reason == GATE_NONE ? NULL : gate_reason_name((enum gate_reason)r->reason),
		.rules = r->generation,
		.bytes_up = (int64_t)(r->bytes_up & INT64_MAX),
		.bytes_down = (int64_t)(r->bytes_down & INT64_MAX),
		.ms = (int64_t)(r->ms & INT64_MAX),
		.close = close_of(r),
		.method = some(r->method),
		.path = some(r->path),
		.status = r->status,
		.secrets = secrets_of(r, a),
		.cache = some(cache_word_name((enum cache_word)r->cache)),
		.count = r->count > 0 ? r->count : 1,
	};
}

/* ---- to the store --------------------------------------------------------------------- */

static void send_some(struct net *n);

static void drop_if_idle(struct net *n)
{
	if (n->sandbox || n->held.len > 0 || n->uses > n->uses_on_disk)
		return;
	timer_stop(&n->core->timers, &n->retry);
	vec_done(&n->held);
	free(n);
}

static void forget_sent(struct net *n)
{
	size_t left = n->held.len - n->n_sent;

	memmove(n->held.at, n->held.at + n->n_sent, left * sizeof *n->held.at);
	n->held.len = left;
	n->n_sent = 0;
}

/* A callback may remove itself. */
static void tell(struct net *n)
{
	struct net_watch *next;

	for (struct net_watch *w = n->watches; w; w = next) {
		next = w->next;
		w->grew(w);
	}
}

static void try_again(struct timer *t)
{
	struct net *n = (struct net *)(void *)((char *)t - offsetof(struct net, retry));

	send_some(n);
	drop_if_idle(n);
}

/* Nobody is told that they were taken: a store that stays full stops the network in the end. */
static void hold_back(struct net *n, const char *why)
{
	journal(JOURNAL_ERROR, why, "sandbox", n->sandbox_id, NULL);
	n->n_sent = 0;
	timer_set(&n->core->timers, &n->retry, RETRY_MS);
}

static bool has_uses(const struct net *n)
{
	return n->held.at[n->n_sent - 1].uses <= n->uses_on_disk;
}

/* They are on record: whoever kept them may forget them. */
static void took(struct net *n)
{
	uint64_t at = n->held.at[n->n_sent - 1].at;

	n->is_stored = false;
	forget_sent(n);
	if (n->sandbox)
		gate_took(n->sandbox, at);
	if (n->held.len > 0)
		send_some(n);
	drop_if_idle(n);
}

static void on_record(void *arg, const struct store_answer *a)
{
	struct net *n = arg;

	if (a->code == STORE_FULL || a->code == STORE_BROKEN) {
		hold_back(n, a->err->msg);
		return;
	}
	if (a->code != STORE_OK) /* a row that is refused now is refused for ever */
		journal(JOURNAL_ERROR, a->err->msg, "sandbox", n->sandbox_id, NULL);
	n->is_stored = true;
	if (n->sandbox && a->rows > 0)
		tell(n);
	if (has_uses(n))
		took(n);
}

/* One that comes late is in the ledger's queue still: what it takes, it takes in order. */
static void use_on_disk(void *arg, bool is_on_disk)
{
	struct net *n = arg;

	if (!is_on_disk)
		journal(JOURNAL_ERROR, "the use of a secret is not on disk yet", "sandbox",
		        n->sandbox_id, NULL);
	n->uses_on_disk++; /* in the order in which they were said */
	if (n->is_stored && has_uses(n))
		took(n);
	else
		drop_if_idle(n);
}

static void say_lost(struct net *n)
{
	struct err e = { 0 };

	n->is_lost_due = false;
	if (store_connection_lose(n->core->store, n->sandbox_id, (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "sandbox", n->sandbox_id, NULL);
}

static void send_some(struct net *n)
{
	struct connection_row rows[STORE_CONNECTIONS_MAX];
	AUTO(arena_done) struct arena a = { 0 };
	struct store_call call = { .done = on_record, .arg = n, .is_lazy = true };
	struct err e = { 0 };
	size_t k = 0;

	for (; k < n->held.len && k < STORE_CONNECTIONS_MAX; k++) {
		const struct held *h = &n->held.at[k];

		net_row(&h->record, &a, &rows[k]);
		rows[k].sandbox = n->sandbox_id;
		rows[k].tenant = n->tenant;
		rows[k].generation = n->generation;
		rows[k].process = some(h->process);
		rows[k].approval = some(h->approval);
		if (rows[k].kind == CONNECTION_LOOKUP && rows[k].num == 0)
			rows[k].request = (int64_t)h->at; /* it has no number of its own */
	}
	n->n_sent = k;
	if (store_connection_put(n->core->store, rows, k, call, &e) < 0) {
		hold_back(n, e.msg);
		if (e.kind == ERR_INTERNAL) /* it is being closed; the monitor keeps them */
			n->held.len = 0;
		return;
	}
	core_nudge_soon(n->core);
	if (n->is_lost_due && k == n->held.len) /* runs after these */
		say_lost(n);
}

static struct net *net_of(struct sbx *s)
{
	if (s->net)
		return s->net;
	struct net *n = mem_alloc(sizeof *n);

	*n = (struct net){ .core = s->core, .sandbox = s, .retry.fired = try_again };
	snprintf(n->sandbox_id, sizeof n->sandbox_id, "%s", s->id);
	snprintf(n->tenant, sizeof n->tenant, "%s", s->tenant);
	s->net = n;
	return n;
}

/* ---- whose it is ---------------------------------------------------------------------- */

/* Everything inside is of the one command, or the monitor has seen who it was. Else it is a guess:
 * what lived at that moment. */
static void note_denial(struct sbx *s, const struct px *known, size_t n_live,
                        const struct gate_record *r)
{
	bool is_certain = known || (n_live == 1 && s->is_one_shot);

	for (struct px *p = s->processes; p; p = p->next)
		if (!p->has_end && (!known || p == known))
			details_deny(&p->denials, r, is_certain);
}

/* The gate takes a connection after the kernel did; who made it may have ended by then. */
static bool was_last(const struct sbx *s, const struct gate_record *r)
{
	return r->unix_ms >= s->last.created_ms && r->unix_ms <= s->last.ended_ms + LATE_MS;
}

/* The id of the process that made it, or "": several might have. */
static const char *note_whose(struct sbx *s, uint32_t num, const struct gate_record *r)
{
	const struct px *known = num ? px_by_num(s, num) : NULL, *only = known;
	size_t n = 0;

	for (const struct px *p = s->processes; p; p = p->next) {
		if (p->has_end)
			continue;
		only = known ? known : p;
		n++;
	}
	if (net_is_denied(r))
		note_denial(s, known, n, r);
	if (known || n == 1)
		return only->id;
	return n == 0 && was_last(s, r) ? s->last.id : "";
}

/* ---- from and to others --------------------------------------------------------------- */

void core_on_record(struct sbx *s, uint64_t at, uint32_t num, const struct gate_record *r)
{
	struct net *n = net_of(s);

	if (n->held.len >= HELD_MAX)
		return; /* not one of ours: it was not told that so many may come */
	struct held h = { .at = at, .uses = n->uses, .record = *r };

	snprintf(h.process, sizeof h.process, "%s", note_whose(s, num, r));
	gate_approval_of(s, r, h.approval);
	n->generation = s->generation;
	if (r->kind != GATE_USE) /* how it ended is told of then */
		note_net(s, h.process, r);
	secret_note_use(s, r);
	canary_note_net(s, h.process, r);
	if (r->kind == GATE_USE) {
		h.uses = ++n->uses;
		note_use(s, h.process, r, use_on_disk, n);
	}
	vec_push(&n->held, h);
	if (n->n_sent == 0 && n->retry.at_ms == 0)
		send_some(n);
}

void net_on_lost(struct sbx *s)
{
	if (!s->net && s->spec.net.mode == NET_DENY)
		return;
	struct net *n = net_of(s);

	if (n->held.len > n->n_sent)
		n->is_lost_due = true; /* after these */
	else
		say_lost(n);
}

void net_watch_add(struct sbx *s, struct net_watch *w)
{
	struct net *n = net_of(s);

	w->sandbox = s;
	w->next = n->watches;
	n->watches = w;
}

void net_watch_remove(struct net_watch *w)
{
	for (struct net_watch **at = w->sandbox ? &w->sandbox->net->watches : NULL; at && *at;
	     at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			return;
		}
	}
}

void net_done(struct sbx *s)
{
	struct net *n = s->net;

	if (!n)
		return;
	while (n->watches) { /* there will be no more */
		struct net_watch *w = n->watches;

		n->watches = w->next;
		w->sandbox = NULL;
		w->grew(w);
	}
	n->sandbox = NULL;
	s->net = NULL;
	if (!n->core->store)
		n->held.len = 0; /* it was closed, with all that it was given */
	drop_if_idle(n);
}
