/*
 * approvals.c - /v1/approvals: what waits for a person, who waits for the answer, and the answer.
 *
 * The operator sees what all tenants ask; everybody else what is his own.
 */
#include "api/handlers.h"
#include "core/approval.h"
#include "core/workspace.h"

#define PAGE 100       /* rows of one turn of a stream */
#define STORED_MS 5000 /* for a question to be on record */
#define WAIT_MS_MAX (10ull * 60 * 1000)
#define LINE_MAX_BYTES (STORE_DETAIL_MAX * 4ul)

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static bool sees_all(const struct call *c)
{
	return c->is_operator || c->is_admin;
}

/* ---- which -------------------------------------------------------------------------------- */

static int take_wait(struct call *c, uint64_t *ms, struct fail *f)
{
	const char *text = call_query(c, "wait");
	struct err e = { 0 };

	if (text && duration_parse(text, ms, &e) < 0)
		return fail_set(f, FAIL_INVALID, "wait: %s", e.msg);
	*ms = *ms < WAIT_MS_MAX ? *ms : WAIT_MS_MAX;
	return 0;
}

/* What is gone has its id still; what lives has a key too. */
static int take_places(struct call *c, struct approval_query *q, struct fail *f)
{
	q->sandbox = call_query(c, "sandbox");
	q->workspace = call_query(c, "workspace");
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

static int take_query(struct call *c, struct approval_query *q, struct fail *f)
{
	const char *state = call_query(c, "state"), *last = call_header(c, "Last-Event-ID");
	uint64_t after = last ? strtoull(last, NULL, 10) : 0;

	q->kind = call_query(c, "kind");
	if (take_page(c, &q->page, f) < 0 || query_number(c, "after", &after, f) < 0 ||
	    take_places(c, q, f) < 0)
		return -1;
	q->after = after > INT64_MAX ? INT64_MAX : (int64_t)after;
	q->page.is_all_tenants = sees_all(c);
	q->page.tenant = sees_all(c) ? NULL : c->tenant;
	if (q->kind && approval_kind_of(q->kind) == APPROVAL_KINDS)
		return fail_set(f, FAIL_INVALID, "kind: \"%.32s\" is none", q->kind);
	if (state && approval_state_of(state) == APPROVAL_STATE_COUNT)
		return fail_set(f, FAIL_INVALID, "state: \"%.32s\" is none", state);
	q->states = state ? 1u << approval_state_of(state) : 0;
	return 0;
}

/* ---- a stream ----------------------------------------------------------------------------- */

struct stream {
	struct approval_watch watch; /* first */
	struct call *call;
	struct core *core;
	struct approval_query query;
	struct timer again; /* the rest of many, next turn */
	bool is_sse, is_full, is_over;
};

static void put(struct stream *s, const struct approval_row *row)
{
	json_t *o = approval_json(row);
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);
	AUTO(str_done) struct str line = { .max = LINE_MAX_BYTES };

	json_decref(o);
	if (s->is_sse)
		str_addf(&line, "id: %lld\nevent: %s\ndata: %s\n\n", (long long)row->rev,
		         approval_state_name(row->state), text);
	else
		str_addf(&line, "%s\n", text);
	s->is_full = !reply_write(s->call->r, str_text(&line), line.len);
}

/* First what is there in the wanted state, up to one moment; then all that changes after it. */
static void pump(struct stream *s)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct approval_list list = { 0 };
	struct err e = { 0 };

	if (s->is_over || s->is_full || !s->call->r)
		return;
	if (store_approval_changes(s->core->store, &s->query, &a, &list, &e) < 0) {
		s->is_over = s->call->is_answered = true;
		reply_end(s->call->r);
		return;
	}
	for (size_t i = 0; i < list.n && !s->is_full; i++) {
		put(s, &list.rows[i]);
		s->query.after = list.rows[i].rev;
	}
	if (s->is_full)
		return;
	bool is_first_done = list.n < PAGE && s->query.upto;

	if (is_first_done) {
		s->query.after = s->query.upto;
		s->query.upto = 0;
		s->query.states = 0;
	}
	if (is_first_done || list.n == PAGE)
		timer_set(&s->core->timers, &s->again, 0);
}

static void stream_again(struct timer *t)
{
	pump((struct stream *)(void *)((char *)t - offsetof(struct stream, again)));
}

static void stream_changed(struct approval_watch *w)
{
	pump((struct stream *)w);
}

static void on_room(struct request *r)
{
	struct stream *s = ((struct call *)r->route)->state;

	s->is_full = false;
	pump(s);
}

static void stream_over(struct call *c)
{
	struct stream *s = c->state;

	approval_watch_remove(s->core, &s->watch);
	timer_stop(&s->core->timers, &s->again);
	call_unref(s->call);
	free(s);
}

static void stream_start(struct call *c, const struct approval_query *q, bool is_sse)
{
	struct stream *s = mem_alloc(sizeof *s);

	*s = (struct stream){ .watch.changed = stream_changed,
		              .call = call_ref(c),
		              .core = c->api->core,
		              .query = *q,
		              .again.fired = stream_again,
		              .is_sse = is_sse };
	s->query.page.limit = PAGE;
	s->query.upto = q->after == 0 ? store_approval_rev(s->core->store) : 0;
	s->query.states = s->query.upto == 0 ? 0 : q->states ? q->states : 1u << APPROVAL_PENDING;
	c->state = s;
	c->over = stream_over;
	c->r->on_room = on_room;
	approval_watch_add(s->core, &s->watch);
	reply_begin(c->r, 200, is_sse ? "text/event-stream" : "application/x-ndjson", -1,
	            (const char *[]){ "Cache-Control", "no-store", NULL });
	pump(s);
}

/* ---- somebody who waits ------------------------------------------------------------------- */

struct poll {
	struct approval_watch watch; /* first */
	struct call *call;
	struct core *core;
	struct timer late;
	struct approval_query query; /* of a list, */
	bool is_one;                 /* or the one of the path, */
	const char *asked;           /* or that was just asked; in the call's arena */
};

static void poll_over(struct call *c)
{
	struct poll *p = c->state;

	approval_watch_remove(p->core, &p->watch);
	timer_stop(&p->core->timers, &p->late);
	call_unref(p->call);
	free(p);
}

/* True: it was answered. */
static bool answer_list(struct call *c, const struct approval_query *q, bool is_last)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct approval_list list;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (store_approval_list(c->api->core->store, q, &a, &list, &e) < 0) {
		fail_err(&f, &e);
		answer_fail(c, &f);
		return true;
	}
	if (list.n == 0 && !is_last)
		return false;
	json_t *rows = json_array();

	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(rows, approval_json(&list.rows[i]));
	answer_json(c, 200,
	            json_pack("{so,so,sI}", "approvals", rows, "next", text_or_null(list.next),
	                      "rev", (json_int_t)store_approval_rev(c->api->core->store)));
	return true;
}

static bool answer_one(struct call *c, bool is_last)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct approval_row row;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (store_approval_get(c->api->core->store, sees_all(c) ? NULL : c->tenant, c->params[0],
	                       &a, &row, &e) < 0) {
		if (e.kind == ERR_NOT_FOUND)
			fail_set(&f, FAIL_NOT_FOUND, "there is no such approval");
		else
			fail_err(&f, &e);
		answer_fail(c, &f);
		return true;
	}
	if (row.state == APPROVAL_PENDING && !is_last)
		return false;
	answer_json(c, 200, approval_json(&row));
	return true;
}

/* A question that was just asked. */
static bool answer_new(struct call *c, const char *id, bool is_last)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct approval_row row;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (store_approval_get(c->api->core->store, NULL, id, &a, &row, &e) == 0) {
		answer_json(c, 202, json_pack("{so}", "approval", approval_json(&row)));
		return true;
	}
	if (is_last) {
		fail_set(&f, FAIL_BACKEND_ERROR, "the question could not be stored");
		answer_fail(c, &f);
	}
	return is_last;
}

static void look(struct poll *p, bool is_last)
{
	if (p->call->is_answered || !p->call->r)
		return;
	if (p->asked)
		(void)answer_new(p->call, p->asked, is_last);
	else if (p->is_one)
		(void)answer_one(p->call, is_last);
	else
		(void)answer_list(p->call, &p->query, is_last);
}

static void poll_changed(struct approval_watch *w)
{
	look((struct poll *)w, false);
}

static void poll_late(struct timer *t)
{
	look((struct poll *)(void *)((char *)t - offsetof(struct poll, late)), true);
}

static void poll_start(struct call *c, const struct approval_query *q, uint64_t wait_ms)
{
	struct poll *p = mem_alloc(sizeof *p);

	*p = (struct poll){ .watch.changed = poll_changed,
		            .call = call_ref(c),
		            .core = c->api->core,
		            .late.fired = poll_late,
		            .is_one = !q };
	if (q)
		p->query = *q;
	c->state = p;
	c->over = poll_over;
	approval_watch_add(p->core, &p->watch);
	timer_set(&p->core->timers, &p->late, wait_ms);
}

/* ---- the requests ------------------------------------------------------------------------- */

void approval_list(struct call *c)
{
	const char *accept = call_header(c, "Accept"), *follow = call_query(c, "follow");
	bool is_sse = accept && strstr(accept, "text/event-stream");
	struct approval_query q = { 0 };
	struct fail f = { 0 };
	uint64_t wait_ms = 0;

	bool is_stream = is_sse || (follow && strcmp(follow, "0") != 0);

	if (take_query(c, &q, &f) == 0 && take_wait(c, &wait_ms, &f) == 0 && q.after && !is_stream)
		fail_set(&f, FAIL_INVALID, "after: only with follow");
	if (f.code != FAIL_NONE)
		answer_fail(c, &f);
	else if (is_stream)
		stream_start(c, &q, is_sse);
	else if (!answer_list(c, &q, wait_ms == 0))
		poll_start(c, &q, wait_ms);
}

void approval_get(struct call *c)
{
	struct fail f = { 0 };
	uint64_t wait_ms = 0;

	if (take_wait(c, &wait_ms, &f) < 0)
		answer_fail(c, &f);
	else if (!answer_one(c, wait_ms == 0))
		poll_start(c, NULL, wait_ms);
}

/* Who is told of it can ask for it: not before it is on record. */
void answer_asked(struct call *c, const char *id)
{
	const char *own = arena_strdup(&c->arena, id);

	if (!answer_new(c, own, false))
		poll_start(c, NULL, STORED_MS);
	if (!c->is_answered)
		((struct poll *)c->state)->asked = own;
}

static void decided(void *arg, const struct approval_row *row, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 200, approval_json(row));
	call_unref(c);
}

static int take_answer(struct call *c, struct approval_answer *a, struct fail *f)
{
	static const char *const known[] = { "decision", "scope", "for", "note", "seen", NULL };
	const char *decision = "", *scope = "once";

	if (members_known(c->body, known, f) < 0 ||
	    member_text(c->body, "decision", &decision, f) < 0 ||
	    member_text(c->body, "scope", &scope, f) < 0 ||
	    member_text(c->body, "note", &a->note, f) < 0 ||
	    member_text(c->body, "seen", &a->seen, f) < 0 ||
	    member_duration(c->body, "for", &a->for_ms, f) < 0)
		return -1;
	a->is_allowed = strcmp(decision, "allow") == 0;
	if (!a->is_allowed && strcmp(decision, "deny") != 0)
		return fail_set(f, FAIL_INVALID, "decision: \"allow\" or \"deny\"");
	a->scope = approval_scope_of(scope);
	if (a->scope == APPROVAL_SCOPES)
		return fail_set(f, FAIL_INVALID, "scope: once, sandbox or workspace");
	return 0;
}

/* Late: he is told what it is. */
static void answer_late(struct call *c, const struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct approval_row row;
	struct err e = { 0 };
	bool is_known =
	    store_approval_get(c->api->core->store, NULL, c->params[0], &a, &row, &e) == 0;

	answer_fail_with(c, f, is_known ? "state" : NULL,
	                 is_known ? json_string(approval_state_name(row.state)) : NULL);
}

void approval_post(struct call *c)
{
	struct approval_answer a = { .id = c->params[0],
		                     .tenant = sees_all(c) ? NULL : c->tenant,
		                     .actor = c->actor };
	struct fail f = { 0 };

	call_ref(c);
	if (take_answer(c, &a, &f) == 0 && approval_decide(c->api->core, &a, decided, c, &f) == 0)
		return;
	if (f.code == FAIL_CONFLICT)
		answer_late(c, &f);
	else
		answer_fail(c, &f);
	call_unref(c);
}
