/*
 * events.c - the ledger, as lines or Server-Sent Events.
 */
#include "core/events.h"
#include "api/handlers.h"
#include "core/workspace.h"

struct stream {
	struct events events; /* first */
	struct call *call;
	struct timer again; /* the rest of many, next turn */
	uint64_t limit;     /* so many more; UINT64_MAX: all */
	bool is_sse, is_live, is_full, is_over;
};

static void put(struct stream *s, struct span line, const struct ledger_line *l)
{
	AUTO(str_done) struct str text = { .max = 2ul * LEDGER_LINE_MAX };

	if (s->is_sse)
		str_addf(&text, "id: %llu\nevent: %.*s\ndata: ", (unsigned long long)l->seq,
		         (int)l->kind.len, l->kind.at);
	str_addn(&text, line.at, line.len);
	str_add(&text, s->is_sse ? "\n\n" : "\n");
	s->is_full = !reply_write(s->call->r, str_text(&text), text.len);
	s->limit -= s->limit != UINT64_MAX;
}

static void end(struct stream *s)
{
	s->is_over = true;
	s->call->is_answered = true;
	reply_end(s->call->r);
}

static void pump(struct stream *s)
{
	enum events_what what = EVENTS_LINE;
	size_t budget = 0;

	while (!s->is_over && !s->is_full && s->call->r && what == EVENTS_LINE && s->limit > 0) {
		struct ledger_line l;
		struct span line;

		what = events_next(&s->events, &budget, &line, &l);
		if (what == EVENTS_LINE)
			put(s, line, &l);
	}
	if (s->is_over || !s->call->r)
		return;
	if (what == EVENTS_TURN_OVER)
		timer_set(&s->events.core->timers, &s->again, 0);
	else if (what == EVENTS_FAILED || s->limit == 0 || (what == EVENTS_END && !s->is_live))
		end(s);
}

static void more(struct events *e)
{
	pump((struct stream *)e);
}

static void again(struct timer *t)
{
	pump((struct stream *)(void *)((char *)t - offsetof(struct stream, again)));
}

static void on_room(struct request *r)
{
	struct stream *s = ((struct call *)r->route)->state;

	s->is_full = false;
	pump(s);
}

static void over(struct call *c)
{
	struct stream *s = c->state;

	events_close(&s->events);
	timer_stop(&s->events.core->timers, &s->again);
	call_unref(s->call);
	free(s);
}

/* "exec,git.pushed" */
static int take_kinds(struct call *c, struct events_query *q, struct fail *f)
{
	const char *text = call_query(c, "kind");

	while (text && *text) {
		size_t n = strcspn(text, ",");

		if (q->n_kinds == EVENTS_KINDS_MAX || n == 0 || n >= LEDGER_KIND_SIZE)
			return fail_set(f, FAIL_INVALID,
			                "kind: up to %d names with commas between them",
			                EVENTS_KINDS_MAX);
		q->kinds[q->n_kinds++] = arena_strndup(&c->arena, text, n);
		text += n + (text[n] == ',');
	}
	return 0;
}

/* What is gone has its id still; what lives has a key too. */
static int take_places(struct call *c, struct events_query *q, struct fail *f)
{
	q->sandbox = call_query(c, "sandbox");
	q->workspace = call_query(c, "workspace");
	q->process = call_query(c, "process");
	if (q->sandbox && !id_is(q->sandbox, strlen(q->sandbox), "sb")) {
		const struct sbx *s = sbx_find(c->api->core, c->tenant, q->sandbox, f);

		if (!s)
			return -1;
		q->sandbox = arena_strdup(&c->arena, s->id);
	}
	if (q->workspace && !id_is(q->workspace, strlen(q->workspace), "ws")) {
		const struct wsx *w = wsx_find(c->api->core, c->tenant, q->workspace, f);

		if (!w)
			return -1;
		q->workspace = arena_strdup(&c->arena, w->row.id);
	}
	return 0;
}

/* A tenant sees what is his; what the daemon and the ledger say of themselves is the operator's. */
void events_get(struct call *c)
{
	const char *accept = call_header(c, "Accept"), *follow = call_query(c, "follow");
	const char *last = call_header(c, "Last-Event-ID");
	bool sees_all = c->is_operator || c->is_admin;
	struct events_query q = { .tenant = sees_all ? NULL : c->tenant,
		                  .after = last ? strtoull(last, NULL, 10) : 0 };
	uint64_t limit = UINT64_MAX, since = 0;
	struct fail f = { 0 };

	if (query_number(c, "after", &q.after, &f) < 0 ||
	    query_number(c, "limit", &limit, &f) < 0 || query_number(c, "since", &since, &f) < 0 ||
	    take_kinds(c, &q, &f) < 0 || take_places(c, &q, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	q.since_ms = since > INT64_MAX ? INT64_MAX : (int64_t)since;
	struct stream *s = mem_alloc(sizeof *s);

	*s = (struct stream){ .call = call_ref(c),
		              .again.fired = again,
		              .limit = limit,
		              .is_sse = accept && strstr(accept, "text/event-stream"),
		              .is_live = follow && strcmp(follow, "0") != 0 };
	events_open(&s->events, c->api->core, &q, more);
	c->state = s;
	c->over = over;
	c->r->on_room = on_room;
	reply_begin(c->r, 200, s->is_sse ? "text/event-stream" : "application/x-ndjson", -1,
	            (const char *[]){ "Cache-Control", "no-store", NULL });
	pump(s);
}
