/*
 * net.c - what a sandbox may reach, and what it did: connections, why, and rules that change.
 */
#include "core/net.h"
#include "api/handlers.h"
#include "api/print.h"
#include "core/approval.h"
#include "core/gate.h"
#include "core/policy.h"
#include "store/connections.h"

#define PAGE 200 /* rows of one turn of a stream */
#define PORT_MAX 65535

/* ---- connections ---------------------------------------------------------------------- */

struct records {
	struct net_watch watch; /* first */
	struct call *call;
	struct core *core;
	struct connection_query query;
	struct timer again; /* the rest of many rows, next turn */
	bool is_sse, is_live, is_full, is_over;
};

static void put_row(struct records *w, const struct connection_row *row)
{
	json_t *o = print_connection(row);
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);
	AUTO(str_done) struct str line = { .max = 64u << 10 };

	json_decref(o);
	if (w->is_sse)
		str_addf(&line, "id: %lld\nevent: %s\ndata: %s\n\n", (long long)row->seq,
		         connection_kind_name(row->kind), text);
	else
		str_addf(&line, "%s\n", text);
	w->is_full = !reply_write(w->call->r, str_text(&line), line.len);
}

static void end_stream(struct records *w)
{
	w->is_over = true;
	w->call->is_answered = true;
	reply_end(w->call->r);
}

static void stream_on(struct records *w)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct connection_list list;
	struct err e = { 0 };

	if (w->is_over || w->is_full || !w->call->r)
		return;
	w->query.limit = PAGE;
	if (store_connection_list(w->core->store, &w->query, &a, &list, &e) < 0) {
		end_stream(w);
		return;
	}
	for (size_t i = 0; i < list.n && !w->is_full; i++) {
		put_row(w, &list.rows[i]);
		w->query.after = list.rows[i].seq;
		list.has_more |= w->is_full && i + 1 < list.n;
	}
	if (list.has_more && !w->is_full)
		timer_set(&w->core->timers, &w->again, 0);
	else if (!list.has_more && !(w->is_live && w->watch.sandbox))
		end_stream(w);
}

static void stream_again(struct timer *t)
{
	stream_on((struct records *)(void *)((char *)t - offsetof(struct records, again)));
}

static void stream_grew(struct net_watch *w)
{
	stream_on((struct records *)w);
}

static void on_room(struct request *r)
{
	struct records *w = ((struct call *)r->route)->state;

	w->is_full = false;
	stream_on(w);
}

static void stream_over(struct call *c)
{
	struct records *w = c->state;

	net_watch_remove(&w->watch);
	timer_stop(&w->core->timers, &w->again);
	call_unref(w->call);
	free(w);
}

static void stream_start(struct call *c, struct sbx *s, const struct connection_query *q,
                         bool is_sse)
{
	const char *follow = call_query(c, "follow");
	struct records *w = mem_alloc(sizeof *w);

	*w = (struct records){ .call = call_ref(c),
		               .core = c->api->core,
		               .query = *q,
		               .watch.grew = stream_grew,
		               .again.fired = stream_again,
		               .is_sse = is_sse,
		               .is_live = s && follow && strcmp(follow, "0") != 0 };
	c->state = w;
	c->over = stream_over;
	c->r->on_room = on_room;
	if (w->is_live)
		net_watch_add(s, &w->watch);
	reply_begin(c->r, 200, is_sse ? "text/event-stream" : "application/x-ndjson", -1,
	            (const char *[]){ "Cache-Control", "no-store", NULL });
	stream_on(w);
}

static int take_decision(struct call *c, struct connection_query *q, struct fail *f)
{
	const char *word = call_query(c, "decision");

	if (!word)
		return 0;
	q->is_denied_only = strcmp(word, "deny") == 0;
	q->is_allowed_only = strcmp(word, "allow") == 0;
	for (enum gate_decision d = 0; d < GATE_DECISIONS; d++)
		if (strcmp(word, gate_decision_name(d)) == 0) {
			if (!q->is_denied_only && !q->is_allowed_only)
				q->decision = word;
			return 0;
		}
	return fail_set(f, FAIL_INVALID, "decision: \"%.32s\" is none", word);
}

static int take_query(struct call *c, struct connection_query *q, struct fail *f)
{
	const char *last = call_header(c, "Last-Event-ID");
	struct store_page page = { 0 };
	uint64_t after = last ? strtoull(last, NULL, 10) : 0;

	if (query_number(c, "after", &after, f) < 0 || take_page(c, &page, f) < 0 ||
	    take_decision(c, q, f) < 0)
		return -1;
	q->after = after > INT64_MAX ? INT64_MAX : (int64_t)after;
	q->limit = page.limit;
	q->name = call_query(c, "name");
	q->tenant = c->tenant;
	return 0;
}

/* One that is gone has its records still. */
static const char *find_records(struct call *c, struct sbx **s, struct fail *f)
{
	struct sandbox_row row;
	struct err e = { 0 };

	*s = sbx_find(c->api->core, c->tenant, c->params[0], f);
	if (*s)
		return (*s)->id;
	if (!id_is(c->params[0], c->param_len[0], "sb") ||
	    store_sandbox_get(c->api->core->store, c->tenant, c->params[0], &c->arena, &row, &e) <
	        0)
		return NULL;
	return c->params[0];
}

void connection_list(struct call *c)
{
	const char *accept = call_header(c, "Accept");
	bool is_sse = accept && strstr(accept, "text/event-stream");
	bool is_lines = call_query(c, "follow") || (accept && strstr(accept, "x-ndjson"));
	struct connection_query q = { 0 };
	struct connection_list list;
	struct fail f = { 0 };
	struct err e = { 0 };
	struct sbx *s = NULL;

	q.sandbox = find_records(c, &s, &f);
	if (!q.sandbox || take_query(c, &q, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	if (is_sse || is_lines) {
		stream_start(c, s, &q, is_sse);
		return;
	}
	if (store_connection_list(c->api->core->store, &q, &c->arena, &list, &e) < 0) {
		fail_err(&f, &e);
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(rows, print_connection(&list.rows[i]));
	json_t *o = json_pack("{so}", "connections", rows);
	json_object_set_new(o, "next",
	                    list.has_more ? json_integer(list.rows[list.n - 1].seq) : json_null());
	answer_json(c, 200, o);
}

/* Whoever was asked about it, and what he said. */
static json_t *asked_about(struct sbx *s, const char *host, uint16_t port)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct approval_row row;

	return gate_asked(s, host, port, &a, &row) < 0 ? json_null() : approval_json(&row);
}

/* ---- why ------------------------------------------------------------------------------ */

void net_why(struct call *c)
{
	static const char *const words[] = {
		[VERDICT_DENY] = "deny", [VERDICT_ALLOW] = "allow", [VERDICT_ASK] = "ask"
	};
	const char *host = call_query(c, "host");
	struct sbx *s = call_sandbox(c);
	struct policy_why why;
	struct fail f = { 0 };
	uint64_t port = 443;

	if (!s)
		return;
	if (!host || !*host)
		fail_set(&f, FAIL_INVALID, "host: it is needed");
	else if (query_number(c, "port", &port, &f) == 0 && (port < 1 || port > PORT_MAX))
		fail_set(&f, FAIL_INVALID, "port: 1 to %d", PORT_MAX);
	if (f.code != FAIL_NONE || policy_why(s, host, (uint16_t)port, &why, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	json_t *o = json_pack("{ss,sI,ss}", "host", host, "port", (json_int_t)port, "decision",
	                      words[why.verdict.what]);
	json_object_set_new(o, "rule", why.rule[0] ? json_string(why.rule) : json_null());
	json_object_set_new(o, "reason",
	                    why.verdict.reason == GATE_NONE
	                        ? json_null()
	                        : json_string(gate_reason_name(why.verdict.reason)));
	json_object_set_new(o, "would_allow",
	                    why.narrowest[0] ? json_string(why.narrowest) : json_null());
	json_object_set_new(o, "approval",
	                    why.verdict.what == VERDICT_ASK ? asked_about(s, host, (uint16_t)port)
	                                                    : json_null());
	answer_json(c, 200, o);
}

/* ---- rules that change ---------------------------------------------------------------- */

static void changed(void *arg, struct sbx *s, const struct policy_changed *r, const struct fail *f)
{
	struct call *c = arg;

	if (f) {
		answer_fail(c, f);
	} else {
		json_t *o =
		    json_pack("{sI,sb}", "closed", (json_int_t)r->closed, "loosened", r->is_looser);
		json_t *spec = json_loads(s->spec_text, 0, NULL);

		json_object_set_new(o, "generation",
		                    r->generation ? json_integer(r->generation) : json_null());
		json_object_set(o, "net", json_object_get(spec, "net"));
		json_decref(spec);
		answer_json(c, 200, o);
	}
	call_unref(c);
}

void net_change(struct call *c)
{
	struct sbx *s = call_sandbox(c);
	struct fail f = { 0 };
	char id[ID_SIZE];

	if (!s)
		return;
	if (!json_is_object(c->body)) {
		fail_set(&f, FAIL_INVALID, "an object of rules is expected");
		answer_fail(c, &f);
		return;
	}
	call_ref(c);
	if (policy_change(s, c->body, c->is_operator || c->is_admin, changed, c, &f) == 0)
		return;
	if (f.code == FAIL_APPROVAL_REQUIRED &&
	    policy_ask(s, c->body, call_query(c, "why"), id, &f) == 0)
		answer_asked(c, id);
	else
		answer_fail(c, &f);
	call_unref(c);
}
