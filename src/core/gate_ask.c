/*
 * gate_ask.c - connections that a gate holds, and the person who is asked.
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
#define WHAT_SIZE (GATE_NAME_SIZE + 32)

struct gate_held {
	struct gate_held *next;
	struct sbx *sandbox;
	uint64_t ask;
};

static void held_free(struct gate_held *h)
{
	struct gate_held **at = &h->sandbox->held;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	free(h);
}

/* No answer in time is not told: the gate knows, and its record says so. */
static void decided(void *arg, const struct approval_row *row)
{
	struct gate_held *h = arg;

	if (row->state != APPROVAL_EXPIRED)
		(void)gate_answer(h->sandbox, h->ask, approval_is_allowed(row)); /* or it is dead */
	held_free(h);
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

void gate_what(char *out, size_t size, const char *name, uint16_t port)
{
	snprintf(out, size, "connect to %s:%u", name, port);
}

static int ask_person(struct gate_held *h, const struct gate_ask *a, struct fail *f)
{
	struct sbx *s = h->sandbox;
	const struct px *p = only_process(s);
	AUTO(str_done) struct str why = { .max = STORE_TEXT_MAX };
	char what[WHAT_SIZE], suggestion[WHAT_SIZE], id[ID_SIZE];
	uint32_t sooner = a->timeout_ms / 10 < SOONER_MS ? a->timeout_ms / 10 : SOONER_MS;
	json_t *detail =
	    json_pack("{ss,si,ss}", "host", a->name, "port", (int)a->port, "rule", a->rule);
	struct approval_ask ask = { .kind = APPROVAL_NET,
		                    .tenant = s->tenant,
		                    .sandbox = s->id,
		                    .workspace = s->workspace ? s->workspace->row.id : NULL,
		                    .process = p ? p->id : NULL,
		                    .what = what,
		                    .suggestion = suggestion,
		                    .detail = detail,
		                    .timeout_ms = a->timeout_ms - sooner };

	gate_what(what, sizeof what, a->name, a->port);
	snprintf(suggestion, sizeof suggestion, "net.allow: %s:%u", a->name, a->port);
	say_why(&why, a, p);
	ask.why = str_text(&why);
	int r = approval_ask(s->core, &ask, decided, h, id, f);

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
	if (ask_person(h, &p.ask, &f) == 0)
		return;
	journal(JOURNAL_WARN, "nobody can be asked", "sandbox", s->id, "reason", f.detail, NULL);
	(void)gate_answer(s, h->ask, false);
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
		if (h->ask != over.ask)
			continue;
		approval_cancel(s->core, h);
		held_free(h);
	}
}

/* What stands answered it; else it was the last question. */
void gate_approval_of(struct sbx *s, const struct gate_record *r, char id[ID_SIZE])
{
	AUTO(arena_done) struct arena a = { 0 };
	char what[WHAT_SIZE];
	struct approval_row like = { .tenant = s->tenant,
		                     .kind = approval_kind_name(APPROVAL_NET),
		                     .what = what,
		                     .sandbox = s->id,
		                     .workspace = s->workspace ? s->workspace->row.id : NULL,
		                     .decided_ms = core_now_ms() };
	struct approval_row found = { .id = "" };
	struct err e = { 0 };

	id[0] = '\0';
	if (r->decision != GATE_ASKED_ALLOW && r->decision != GATE_ASKED_DENY)
		return;
	gate_what(what, sizeof what, r->name, r->port);
	if (store_approval_standing(s->core->store, &like, &a, &found, &e) < 0)
		(void)!store_approval_last(s->core->store, &like, &a, &found, &e);
	snprintf(id, ID_SIZE, "%s", found.id);
}

void gate_asks_close(struct sbx *s)
{
	while (s->held) {
		approval_cancel(s->core, s->held);
		held_free(s->held);
	}
}
