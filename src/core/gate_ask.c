/*
 * gate_ask.c - connections and requests that a gate holds, and the person who is asked.
 *
 * A monitor tells a new daemon again of what is still held, so a question outlives us: the next
 * daemon finds it in the store, and the same words join it (approval.h). The gate has the last word
 * about time: ours is over a little earlier, so that a yes that was recorded is never too late for
 * the client that it was for.
 */
#include "core/approval.h"
#include "core/gate.h"
#include "core/process.h"
#include "core/sandbox-internal.h"
#include "core/workspace.h"
#include "io/journal.h"

#define SOONER_MS 1000
#define WHAT_MAX 4096
#define ANSWERED_MAX 256 /* questions whose requests may still be told of */

/* A question of the gate; once it is answered, by which approval that was. */
struct gate_held {
	struct gate_held *next;
	struct sbx *sandbox;
	uint64_t ask;
	char approval[ID_SIZE];
	bool is_over;
};

static void held_free(struct gate_held *h)
{
	struct gate_held **at = &h->sandbox->held;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	free(h);
}

/* Kept for the records of what was asked for; the oldest go. */
static void held_over(struct gate_held *h)
{
	struct gate_held *last = NULL;
	size_t n = 0;

	h->is_over = true;
	for (struct gate_held *x = h->sandbox->held; x; x = x->next) {
		n += x->is_over;
		last = x->is_over ? x : last;
	}
	if (n > ANSWERED_MAX)
		held_free(last);
}

/* No answer in time is not told: the gate knows, and its record says so. */
static void decided(void *arg, const struct approval_row *row)
{
	struct gate_held *h = arg;

	if (row->state != APPROVAL_EXPIRED)
		(void)gate_answer(h->sandbox, h->ask, approval_is_allowed(row)); /* or it is dead */
	held_over(h);
}

/* The only one that runs: it is this one that waits. */
static const struct px *only_process(const struct sbx *s)
{
	const struct px *only = NULL;

	for (const struct px *p = s->processes; p; p = p->next) {
		if (p->has_end)
			continue;
		if (only)
			return NULL;
		only = p;
	}
	return only;
}

static void say_why(struct str *out, const struct gate_ask *a, const struct px *p)
{
	str_addf(out, "rule \"%s\"", a->rule);
	if (p && p->argv)
		str_addf(out, ", while it runs %s", p->argv);
}

/* Asks one question for one request: only a connection, and the first use of a secret, are asked
 * for once for all that want the same. */
static bool is_single(const struct gate_ask *a)
{
	return a->kind != GATE_ASK_CONNECT && !a->is_first;
}

static json_t *detail_of(const struct gate_ask *a)
{
	const struct {
		const char *key, *text;
	} rows[] = { { "method", a->method },
		     { "path", a->path },
		     { "query", a->query },
		     { "query_sha256", a->content.query_hash },
		     { "body_sha256", a->content.body_hash },
		     { "secret", a->secret },
		     { "refs", a->refs } };
	json_t *o = json_pack("{ss,si,ss}", "host", a->name, "port", (int)a->port, "rule", a->rule);

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].text[0])
			json_object_set_new(o, rows[i].key, json_string(rows[i].text));
	if (a->content.body_hash[0])
		json_object_set_new(o, "body_bytes",
		                    json_integer((json_int_t)a->content.body_bytes));
	if (a->content.is_partial)
		json_object_set_new(o, "body_partial", json_true());
	if (a->content.is_stream)
		json_object_set_new(o, "stream", json_true());
	if (is_single(a)) /* so that no two are the same */
		json_object_set_new(o, "number", json_integer((json_int_t)a->ask));
	return o;
}

/* One of ours has no name that anybody knows: it asks for its workspace. */
static struct approval_ask asker(const struct sbx *s)
{
	const struct px *p = s->is_service ? NULL : only_process(s);

	return (struct approval_ask){ .tenant = s->tenant,
		                      .sandbox = s->is_service ? NULL : s->id,
		                      .workspace = s->workspace ? s->workspace->row.id : NULL,
		                      .process = p ? p->id : NULL };
}

/* approve: first. It was allowed before, for whatever; a gate that died has forgotten it. */
static bool was_allowed(const struct sbx *s, const struct approval_ask *ask)
{
	AUTO(arena_done) struct arena a = { 0 };
	const struct approval_row like = { .tenant = ask->tenant,
		                           .kind = approval_kind_name(ask->kind),
		                           .what = ask->what,
		                           .sandbox = ask->sandbox,
		                           .workspace = ask->workspace,
		                           .decided_ms = core_now_ms() };
	struct approval_row found;
	struct err e = { 0 };

	return ask->sandbox && store_approval_last(s->core->store, &like, &a, &found, &e) == 0 &&
	       approval_is_allowed(&found);
}

/* 1: there is no need to. */
static int ask_person(struct gate_held *h, const struct gate_ask *a, struct fail *f)
{
	struct sbx *s = h->sandbox;
	AUTO(str_done) struct str why = { .max = STORE_TEXT_MAX };
	AUTO(str_done) struct str what = { .max = WHAT_MAX }, suggestion = { .max = WHAT_MAX };
	uint32_t sooner = a->timeout_ms / 10 < SOONER_MS ? a->timeout_ms / 10 : SOONER_MS;
	struct approval_ask ask = asker(s);

	ask.kind = gate_words(a, &what, &suggestion);
	ask.timeout_ms = a->timeout_ms - sooner;
	ask.is_single = is_single(a);
	ask.is_cut = what.overflow || gate_words_are_cut(a);
	ask.what = str_text(&what);
	ask.suggestion = str_text(&suggestion);
	say_why(&why, a, ask.process ? only_process(s) : NULL);
	ask.why = str_text(&why);
	if (a->is_first && was_allowed(s, &ask))
		return 1;
	json_t *detail = detail_of(a);

	ask.detail = detail;
	int r = approval_ask(s->core, &ask, decided, h, h->approval, f);

	json_decref(detail);
	return r;
}

void gate_on_ask(struct sbx *s, const void *bytes, size_t n)
{
	struct gate_packet p = { .head = { G_ASK, sizeof p.ask } };
	struct fail f = { 0 };

	if (n != sizeof p.ask)
		return;
	memcpy(&p.ask, bytes, sizeof p.ask);
	if (!gate_check(&p, gate_size(&p), 0) || !p.ask.name[0])
		return;
	struct gate_held *h = mem_alloc(sizeof *h);

	*h = (struct gate_held){ .next = s->held, .sandbox = s, .ask = p.ask.ask };
	s->held = h;
	int r = ask_person(h, &p.ask, &f);

	if (r == 0)
		return;
	if (r < 0)
		journal(JOURNAL_WARN, "nobody can be asked", "sandbox", s->id, "reason", f.detail,
		        NULL);
	(void)gate_answer(s, h->ask, r > 0); /* or it is dead */
	held_free(h);
}

void gate_on_unask(struct sbx *s, const void *bytes, size_t n)
{
	struct gate_unask over;

	if (n != sizeof over)
		return;
	memcpy(&over, bytes, sizeof over);
	for (struct gate_held *h = s->held, *next; h; h = next) {
		next = h->next;
		if (h->ask != over.ask || h->is_over)
			continue;
		approval_cancel(s->core, h);
		held_over(h);
	}
}

/* What stands answers it; else it was the last question. */
static int find_decision(struct sbx *s, const struct gate_ask *ask, struct arena *a,
                         struct approval_row *out)
{
	AUTO(str_done) struct str what = { .max = WHAT_MAX }, unused = { .max = WHAT_MAX };
	enum approval_kind kind = gate_words(ask, &what, &unused);
	const struct approval_row like = { .tenant = s->tenant,
		                           .kind = approval_kind_name(kind),
		                           .what = str_text(&what),
		                           .sandbox = s->is_service ? NULL : s->id,
		                           .workspace = s->workspace ? s->workspace->row.id : NULL,
		                           .decided_ms = core_now_ms() };
	struct err e = { 0 };

	if (store_approval_standing(s->core->store, &like, a, out, &e) == 0)
		return 0;
	return store_approval_last(s->core->store, &like, a, out, &e);
}

int gate_asked(struct sbx *s, const char *name, uint16_t port, struct arena *a,
               struct approval_row *out)
{
	struct gate_ask ask = { .kind = GATE_ASK_CONNECT, .port = port };

	snprintf(ask.name, sizeof ask.name, "%s", name);
	return find_decision(s, &ask, a, out);
}

/* By its number, while this daemon has asked; else by its words, of which a record has enough for
 * a connection and for the first use of a secret. */
void gate_approval_of(struct sbx *s, const struct gate_record *r, char id[ID_SIZE])
{
	static const struct {
		enum gate_ask_kind kind;
		bool is_first, is_request;
	} questions[] = {
		{ GATE_ASK_CONNECT, false, false },
		{ GATE_ASK_SECRET, true, true },
	};
	AUTO(arena_done) struct arena a = { 0 };
	struct gate_ask ask = { .port = r->port };
	struct approval_row found;
	const bool is_request = r->kind == GATE_REQUEST || r->kind == GATE_USE;

	id[0] = '\0';
	if (r->decision != GATE_ASKED_ALLOW && r->decision != GATE_ASKED_DENY)
		return;
	for (const struct gate_held *h = s->held; h && r->ask; h = h->next)
		if (h->ask == r->ask && h->approval[0]) {
			snprintf(id, ID_SIZE, "%s", h->approval);
			return;
		}
	snprintf(ask.name, sizeof ask.name, "%s", r->name);
	snprintf(ask.secret, sizeof ask.secret, "%s", r->secret);
	for (size_t i = 0; i < COUNT(questions) && !id[0]; i++) {
		ask.kind = (uint8_t)questions[i].kind;
		ask.is_first = questions[i].is_first;
		if (questions[i].is_request == is_request && (!is_request || r->secret[0]) &&
		    find_decision(s, &ask, &a, &found) == 0)
			snprintf(id, ID_SIZE, "%s", found.id);
	}
}

void gate_asks_close(struct sbx *s)
{
	for (struct gate_held *h = s->held, *next; h; h = next) {
		next = h->next;
		approval_cancel(s->core, h);
		held_free(h);
	}
}
