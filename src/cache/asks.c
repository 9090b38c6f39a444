/*
 * asks.c - what an operator asks: a line of JSON on a stream, an answer, an end.
 *
 *   {"op":"list","limit":100,"after":ID}  {"entries":[...],"next":ID or null,"bytes":N,"max":N}
 *   {"op":"gc","max":BYTES,"older_ms":N}  {"freed_bytes":N,"bytes":N,"entries":N}
 *   {"op":"verify"}                       {"checked":N,"bad":[{"kind":...,"url":...},...]}
 *
 * Verifying reads everything, one piece a turn, between what others want.
 */
#include <fcntl.h>
#include <jansson.h>

#include "base/fd.h"
#include "base/hex.h"
#include "cache/cache-internal.h"
#include "cache/storefile.h"
#include "os/net.h"

#define LINE_MAX_BYTES 4096
#define LIMIT_MAX 1000
#define BAD_MAX 1000 /* are named */
#define ASK_MS 60000

struct id {
	uint8_t at[STORE_ID_SIZE];
};

struct ask {
	struct side side;
	struct cache *cache;
	struct ask *next, **link;
	struct timer timer;
	bool is_answered;
	/* verify */
	VEC(struct id) left;
	struct check check;
	json_t *bad;
	size_t checked;
};

static void ask_free(struct ask *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	timer_stop(&a->cache->timers, &a->timer);
	side_close(&a->side);
	vec_done(&a->left);
	check_done(&a->check);
	json_decref(a->bad);
	free(a);
}

static void run(struct ask *a);

static int add_text(const char *bytes, size_t n, void *out)
{
	str_addn(out, bytes, n);
	return 0;
}

/* Takes it. */
static void answer(struct ask *a, json_t *o)
{
	struct str *out = leg_out(&a->side.leg);

	out->max = 16u << 20; /* LIMIT_MAX entries with the longest URLs */
	(void)json_dump_callback(o, add_text, out, JSON_COMPACT);
	str_add(out, "\n");
	json_decref(o);
	a->is_answered = true;
	timer_set(&a->cache->timers, &a->timer, ASK_MS);
}

static void answer_error(struct ask *a, const char *text)
{
	answer(a, json_pack("{ss}", "error", text));
}

/* ---- list ---------------------------------------------------------------------------- */

static json_t *print_entry(const struct entry *n)
{
	char sha256[2 * STORE_SHA_SIZE + 1];

	hex_print(n->sha256, STORE_SHA_SIZE, sha256);
	return json_pack("{ss,ss,ss,ss,sI,sI,sI}", "kind", pkg_name(n->kind), "type",
	                 n->is_index ? "index" : "file", "url", n->url, "sha256", sha256, "bytes",
	                 (json_int_t)n->bytes, "hits", (json_int_t)n->hits, "used_ms",
	                 (json_int_t)n->used_ms);
}

/* The most recently used first. One that is gone since: then from the beginning. */
static void op_list(struct ask *a, const json_t *q)
{
	const struct store *s = &a->cache->store;
	json_int_t limit = json_integer_value(json_object_get(q, "limit"));
	const char *after = json_string_value(json_object_get(q, "after"));
	const struct entry *n = s->newest;
	char name[STORE_NAME_SIZE] = "";
	struct id id;

	if (after && strlen(after) == STORE_NAME_SIZE - 1 && hex_read(after, id.at, sizeof id.at)) {
		const struct entry *last = store_find(s, id.at);

		n = last ? last->older : NULL;
	}
	json_t *rows = json_array();

	for (json_int_t i = 0; n && i < limit && i < LIMIT_MAX; i++, n = n->older) {
		json_array_append_new(rows, print_entry(n));
		hex_print(n->id, STORE_ID_SIZE, name);
	}
	json_t *o = json_pack("{so,sI,sI,sI}", "entries", rows, "bytes", (json_int_t)s->used, "max",
	                      (json_int_t)s->max, "count", (json_int_t)s->n_entries);

	json_object_set_new(o, "next", n && name[0] ? json_string(name) : json_null());
	answer(a, o);
}

/* ---- gc ------------------------------------------------------------------------------ */

static void op_gc(struct ask *a, const json_t *q)
{
	struct store *s = &a->cache->store;
	const json_t *max = json_object_get(q, "max"), *older = json_object_get(q, "older_ms");
	int64_t before_ms = older ? store_now_ms() - json_integer_value(older) : INT64_MIN;
	size_t n = s->n_entries;
	uint64_t freed =
	    store_gc(s, before_ms, max ? (uint64_t)json_integer_value(max) : UINT64_MAX);

	answer(a, json_pack("{sI,sI,sI,sI}", "removed", (json_int_t)(n - s->n_entries),
	                    "freed_bytes", (json_int_t)freed, "bytes", (json_int_t)s->used, "count",
	                    (json_int_t)s->n_entries));
}

/* ---- verify -------------------------------------------------------------------------- */

static void found_bad(struct ask *a, struct entry *n)
{
	if (json_array_size(a->bad) < BAD_MAX)
		json_array_append_new(a->bad, print_entry(n));
	store_drop(&a->cache->store, n);
}

/* One piece. */
static void verify_on(struct ask *a)
{
	struct store *s = &a->cache->store;

	while (a->left.len > 0) {
		struct entry *n = store_find(s, a->left.at[a->left.len - 1].at);
		int r = 0;

		if (!n || (a->check.entry && a->check.entry != n)) {
			check_done(&a->check); /* it is gone since */
		} else {
			a->check.entry = n;
			r = check_step(s, &a->check);
		}
		if (r > 0) {
			timer_set(&a->cache->timers, &a->timer, 0);
			return;
		}
		check_done(&a->check);
		a->checked += n != NULL;
		a->left.len--;
		if (r < 0)
			found_bad(a, n);
	}
	answer(a, json_pack("{sI,sO}", "checked", (json_int_t)a->checked, "bad", a->bad));
}

static void verify_later(struct ask *a, const struct entry *n)
{
	struct id id;

	memcpy(id.at, n->id, sizeof id.at);
	vec_push(&a->left, id);
}

static void op_verify(struct ask *a, const json_t *q)
{
	(void)q;
	a->bad = json_array();
	for (const struct entry *n = a->cache->store.newest; n; n = n->older)
		verify_later(a, n);
	verify_on(a);
}

/* ---- the loop ------------------------------------------------------------------------ */

static void take_line(struct ask *a, struct span line)
{
	static const struct {
		const char *name;
		void (*run)(struct ask *a, const json_t *q);
	} ops[] = { { "list", op_list }, { "gc", op_gc }, { "verify", op_verify } };
	json_t *q = json_loadb(line.at, line.len, 0, NULL);
	const char *op = json_string_value(json_object_get(q, "op"));
	size_t i = 0;

	while (i < COUNT(ops) && (!op || strcmp(op, ops[i].name) != 0))
		i++;
	if (i < COUNT(ops))
		ops[i].run(a, q);
	else
		answer_error(a, "no such thing can be asked");
	json_decref(q);
}

static bool is_verifying(const struct ask *a)
{
	return a->bad && !a->is_answered;
}

static void run(struct ask *a)
{
	struct leg *leg = &a->side.leg;

	while (leg_fill(leg))
		;
	struct span in = leg_input(leg);
	const char *end = in.len > 0 ? memchr(in.at, '\n', in.len) : NULL;

	if (end && !a->is_answered && !a->bad)
		take_line(a, (struct span){ in.at, (size_t)(end - in.at) });
	(void)leg_flush(leg);
	if (leg->is_broken || leg->is_deaf || (leg->is_eof && !a->is_answered) ||
	    in.len > LINE_MAX_BYTES || (a->is_answered && leg_unsent(leg) == 0)) {
		ask_free(a);
		return;
	}
	leg_watch(&a->side.relay, leg, true);
}

static void ask_ready(struct watch *w, uint32_t events)
{
	struct ask *a = OWNER_OF(w, struct ask, side.relay.client.watch);

	leg_heard(&a->side.leg, events);
	run(a);
}

static void tick(struct timer *t)
{
	struct ask *a = OWNER_OF(t, struct ask, timer);

	if (!is_verifying(a)) {
		ask_free(a); /* it asks nothing, or takes nothing */
		return;
	}
	verify_on(a);
	run(a);
}

void ask_start(struct cache *c, int fd)
{
	struct ask *a = mem_alloc(sizeof *a);

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		fd_close(&fd);
		free(a);
		return;
	}
	*a = (struct ask){
		.cache = c, .next = c->asks, .link = &c->asks, .timer.fired = tick, .check.fd = -1
	};
	if (a->next)
		a->next->link = &a->next;
	c->asks = a;
	side_open(c, &a->side, fd, ask_ready);
	timer_set(&c->timers, &a->timer, ASK_MS);
	run(a);
}

void asks_done(struct cache *c)
{
	for (struct ask *a = c->asks, *next; a; a = next) {
		next = a->next;
		ask_free(a);
	}
}
