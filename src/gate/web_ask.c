/*
 * web_ask.c - requests: judged, given the secret that goes with them, printed anew.
 */
#include "gate/inject.h"
#include "gate/play.h"
#include "gate/web-internal.h"
#include "gate/webbody.h"
#include "gate/webhead.h"
#include "wire/target.h"

#define PATH_MAX_BYTES (3ul * HTTP_TARGET_MAX) /* all of it escaped */

/* ---- judging ------------------------------------------------------------------------- */

/* A target with the other scheme would be read in two ways. */
static bool has_scheme_of(const struct web *w, const struct http_head *h)
{
	return h->form != HTTP_ABSOLUTE ||
	       (h->target.len > 4 && span_lower(h->target.at[4]) == 's') == (w->client.tls != NULL);
}

static struct verdict judge(struct web *w, const struct http_head *h)
{
	struct conn *c = w->conn;
	AUTO(str_done) struct str path = { .max = PATH_MAX_BYTES };
	struct question q = conn_question(c, STAGE_BYTES);
	bool is_clear = h->form != HTTP_AUTHORITY && http_target_normal(h->path, &path) == 0;
	char method[HTTP_METHOD_MAX + 1];
	struct verdict v = { .what = VERDICT_ALLOW };

	snprintf(method, sizeof method, "%.*s", (int)h->method.len, h->method.at);
	q.proto = GATE_PROTO_HTTP;
	q.said = said_host(h->host, h->port);
	snprintf(w->method, sizeof w->method, "%s", method);
	free(w->path);
	w->path = mem_strdup(is_clear ? str_text(&path) : "");
	w->n_requests += !w->approved; /* it comes again when a person was asked */
	w->asked = strcmp(method, "HEAD") == 0 ? HTTP_ASKED_HEAD : HTTP_ASKED_BODY;
	if (!has_scheme_of(w, h))
		return (struct verdict){ .what = VERDICT_DENY, .reason = GATE_HTTP_BAD };
	if (!w->client.tls) {
		v = conn_decide(c, &q);
		w->is_recorded = v.is_terminated;
	}
	if (v.what != VERDICT_ALLOW)
		return v;
	if (w->is_recorded && !records_has_room(c->gate))
		return (struct verdict){ .what = VERDICT_DENY, .reason = GATE_SPOOL };
	return rules_http(&c->gate->rules, &q, method, is_clear ? str_text(&path) : NULL);
}

/* ---- requests ------------------------------------------------------------------------ */

/* Nobody is dialled: what is asked here never leaves. */
static void meet_mock(struct web *w, bool expects)
{
	w->due_ms = timer_now_ms() + play_answer(w->conn, w->method, w->path)->delay_ms;
	if (expects)
		str_add(leg_out(&w->client), "HTTP/1.1 100 Continue\r\n\r\n");
	if (!w->conn->is_opened)
		record_opened(w->conn);
}

static bool meet_cache(struct web *w)
{
	struct conn *c = w->conn;
	int fd = cached_open(c, w->client.tls != NULL);

	if (fd < 0)
		return false;
	c->relay.server.watch = (struct watch){ .fd = fd, .ready = web_server_ready };
	w->is_asking_cache = true;
	if (!c->is_opened)
		record_opened(c);
	return true;
}

/* Whom it is for decides who is asked; false: nobody can be. */
static bool choose_server(struct web *w, const struct http_head *h)
{
	bool is_cached = cached_is(w->conn, h) && !w->secret[0];

	w->cache = CACHE_NONE;
	if (web_has_server(w) && w->is_asking_cache != is_cached)
		web_renew_server(w);
	if (is_cached && !web_has_server(w))
		is_cached = meet_cache(w);
	return is_cached || !w->conn->gate->rules.is_offline;
}

static enum gate_reason sign(struct web *w, const struct http_head *h, struct injection *j)
{
	const struct sigv4_ask q = { .head = h,
		                     .name = w->conn->name,
		                     .bound = j->rule->bind.arg,
		                     .value = j->entry->said,
		                     .now_ms = gate_unix_ms() };

	if (!sigv4_begin(&w->sign, &q, &w->conn->gate->n_signing))
		return GATE_CREDENTIAL;
	j->sign = &w->sign;
	return GATE_NONE;
}

/* Its head waits for the rest of the request. */
static bool is_secret_held(const struct web *w)
{
	return (w->push.is_on && w->push.head.len > 0) ||
	       (w->sign.is_on && w->sign.payload == SIGV4_HELD && w->asking != ASK_DONE);
}

/* Before the next bytes leave. */
static void tell_use(struct web *w)
{
	if (!w->secret[0] || w->is_told || is_secret_held(w))
		return;
	w->is_told = true;
	record_use(w->conn, &(struct request_note){ .number = w->n_requests,
	                                            .method = w->method,
	                                            .path = w->path,
	                                            .ask = w->ask,
	                                            .is_approved = w->approved,
	                                            .content = &w->peek.content,
	                                            .secret = w->secret });
}

/* What was held goes on: the head is judged once more, by the rules as they are now. */
void web_go_on(struct web *w)
{
	w->approved |= (uint8_t)(1u << w->asked_for);
	if (w->is_first)
		asks_note_used(w->conn->gate, w->secret);
	if (w->asked_for != GATE_ASK_PUSH)
		return;
	leg_keep_secret(&w->server);
	webbody_go_on(&w->up, &w->push, leg_out(&w->server));
	tell_use(w);
	conn_dial(w->conn);
}

/* Which secret goes with it; or why it does not go. */
static enum gate_reason choose_secret(struct web *w, const struct http_head *h, struct injection *j)
{
	const struct conn *c = w->conn;
	struct gate *g = c->gate;
	const struct inject_ask q = { .rules = &g->rules,
		                      .head = h,
		                      .name = c->name,
		                      .method = w->method,
		                      .path = w->path[0] ? w->path : NULL,
		                      .port = c->to.port,
		                      .is_tls = w->client.tls != NULL,
		                      .now_ms = gate_unix_ms() };
	bool is_bound = c->name && rules_is_bound(&g->rules, c->name);
	size_t which;
	enum gate_reason why = inject_choose(&q, &which);

	w->secret[0] = '\0';
	w->is_told = false;
	gitpush_done(&w->push);
	sigv4_done(&w->sign);
	mask_begin(&w->mask, is_bound ? g->purse : NULL);
	*j = (struct injection){ .rules = &g->rules };
	if (why != GATE_NONE || which == INJECT_NONE)
		return why;
	j->rule = &g->rules.creds.at[which];
	if (g->purse->entries[which].name[0] && j->rule->bind.how == BIND_APP) {
		enum mint_word word = mint_ask(g, which);

		w->is_waiting = word == MINT_WAITS;
		if (word != MINT_READY)
			return GATE_TOKEN;
	}
	if (g->purse->entries[which].said.len == 0)
		return GATE_NONE; /* it does not open any more */
	j->entry = &g->purse->entries[which];
	j->said = j->rule->bind.how == BIND_APP && git_path_is(w->path) ? j->entry->said_git
	                                                                : j->entry->said;
	snprintf(w->secret, sizeof w->secret, "%s", j->entry->name);
	if (j->rule->bind.how == BIND_AWS)
		return sign(w, h, j);
	if (inject_git(&q, &j->rule->bind) != GIT_PUSH)
		return GATE_NONE;
	gitpush_begin(&w->push, &j->rule->bind);
	return http_header(h, "Content-Encoding") ? GATE_GIT : GATE_NONE; /* it could not be read */
}

/* Its head for the server, with the secret that goes there. */
static int say_request(struct web *w, const struct http_head *h, const struct injection *j)
{
	const struct webhead_to to = { &w->conn->gate->rules, w->conn->name, w->conn->to.port };
	struct err e;

	if (!j->entry)
		return webhead_request(h, NULL, &to, leg_out(&w->server), &e);
	leg_keep_secret(&w->server);
	struct str *held = w->push.is_on                               ? &w->push.head
	                   : j->sign && j->sign->payload == SIGV4_HELD ? &w->sign.head
	                                                               : NULL;

	if (!held)
		return webhead_request(h, j, &to, leg_out(&w->server), &e);
	if (h->expect_continue) /* what it is for is in the body */
		str_add(leg_out(&w->client), "HTTP/1.1 100 Continue\r\n\r\n");
	held->max = WEB_HEAD_MAX;
	str_room(held, WEB_HEAD_MAX);
	return webhead_request(h, j, &to, held, &e);
}

/* False: it was refused, or is held. */
static bool admit(struct web *w, const struct http_head *h, size_t n, struct injection *j)
{
	struct verdict v = judge(w, h);
	bool is_asked = v.what == VERDICT_ASK && !web_is_approved(w, GATE_ASK_REQUEST);

	w->scan = (struct canary_scan){ 0 };
	if (conn_sings(w->conn, &w->scan, (struct span){ leg_input(&w->client).at, n }))
		v = (struct verdict){ .what = VERDICT_DENY, .reason = GATE_CANARY };
	enum gate_reason why = v.what == VERDICT_DENY ? v.reason : choose_secret(w, h, j);

	if (v.what != VERDICT_DENY && why == GATE_NONE && is_asked) {
		web_hold_request(w, &(struct web_held){ h, n }, &v);
		return false;
	}
	if (v.what != VERDICT_DENY && why == GATE_NONE)
		return web_may_use(w, &(struct web_held){ h, n }, j);
	if (w->is_waiting) { /* judged again, then */
		w->n_requests -= !w->approved;
		return false;
	}
	web_refuse(w, webhead_status(why), GATE_DENY, why);
	return false;
}

static void take_request(struct web *w, const struct http_head *h, size_t n)
{
	struct injection j;

	if (!admit(w, h, n, &j))
		return;
	bool is_played = play_has(w->conn);

	if (!is_played && !choose_server(w, h)) {
		web_refuse(w, 504, GATE_DENY, GATE_OFFLINE);
		return;
	}
	if (!is_played && say_request(w, h, &j) < 0) {
		web_refuse(w, 431, GATE_DENY, GATE_HTTP_BAD);
		return;
	}
	if (w->is_asking_cache) {
		w->again.max = WEB_HEAD_MAX;
		str_clear(&w->again);
		str_addn(&w->again, w->server.out.data, w->server.out.len);
	}
	if (!w->peek.is_over)
		webpeek_hash_query(h->path, w->peek.content.query_hash);
	webbody_begin(&w->up, h, &w->up_trailers);
	w->is_upgrade = h->is_upgrade_websocket;
	w->is_old = h->minor == 0;
	w->is_last = !h->keep_alive;
	w->has_answered = false;
	w->is_up_whole = false;
	w->asking = ASK_BODY;
	w->answering = is_played ? ANSWER_MOCK : ANSWER_HEAD;
	tell_use(w);
	if (is_played)
		meet_mock(w, h->expect_continue);
	leg_take(&w->client, n);
	if (!is_played && !web_has_server(w) && !w->conn->dial)
		conn_dial(w->conn);
}

static bool ask_head(struct web *w)
{
	static struct http_head h; /* of the next one */
	struct span in = leg_input(&w->client);
	int n = http_proxy_head(in.at, in.len, &h);

	h.expect_continue &= !w->has_continued;
	if (n < 0) {
		w->asked = HTTP_ASKED_BODY;
		web_refuse(w, http_error_status(n), GATE_DENY, GATE_HTTP_BAD);
	} else if (n > 0) {
		take_request(w, &h, (size_t)n);
	} else if (leg_fill(&w->client)) {
		return true;
	} else if (w->client.is_eof) {
		web_leave(w, web_allowed(w), w->n_requests == 0 ? GATE_SILENT : GATE_NONE,
		          BY_CLIENT);
	} else {
		return false;
	}
	return true;
}

/* As much of it as there is now. */
static int move_body(struct web *w, struct webbody_way way)
{
	if (w->is_up_whole)
		return HTTP_BODY_DONE;
	if (leg_input(&w->client).len == 0 && w->up.kind == HTTP_CHUNKED)
		return HTTP_BODY_MORE;
	return webbody_move(&w->up, &w->client, &w->server, way);
}

void web_refuse_body(struct web *w, int r)
{
	enum gate_reason why = r == WEBBODY_PUSH     ? GATE_GIT
	                       : r == WEBBODY_CANARY ? GATE_CANARY
	                       : r == WEBBODY_LARGE  ? GATE_BUDGET
	                                             : GATE_HTTP_BAD;

	web_refuse(w, r == WEBBODY_LARGE ? 413 : webhead_status(why), GATE_DENY, why);
}

static bool ask_body(struct web *w)
{
	const struct webhead_to to = { &w->conn->gate->rules, w->conn->name, w->conn->to.port };
	const struct webbody_way way = {
		.push = &w->push, .sign = &w->sign, .canary = w->conn, .scan = &w->scan, .to = &to
	};

	if (leg_is_full(&w->server))
		return false;
	int r = move_body(w, way);

	if (r >= 0 && w->push.is_waiting) {
		w->is_up_whole = r == HTTP_BODY_DONE;
		web_hold_push(w);
		return false;
	}
	if (r == HTTP_BODY_DONE) {
		w->asking = ASK_DONE;
		if (w->approved)
			str_clear(&w->up_trailers); /* no question has shown them */
		r = webbody_end(&w->up, &w->up_trailers, way, &w->server);
	}
	if (w->answering == ANSWER_MOCK)
		str_done(leg_out(&w->server));
	if (r < 0) {
		web_refuse_body(w, r);
		return false;
	}
	tell_use(w);
	if (w->asking == ASK_DONE || leg_input(&w->client).len > 0 || leg_fill(&w->client))
		return true;
	if (w->client.is_eof)
		web_cut(w, GATE_NONE, BY_CLIENT);
	return false;
}

/* The whole request has gone. A client that hangs up waits no more; over plain TCP it may have
 * ended only its own side, and is told the answer. */
static bool ask_done(struct web *w)
{
	if (leg_input(&w->client).len >= WEB_AHEAD_MAX)
		return false;
	bool has_moved = leg_fill(&w->client);

	if (w->client.is_eof && w->client.tls)
		web_cut(w, GATE_NONE, BY_CLIENT);
	return has_moved;
}

/* Nobody has answered yet. A client that hangs up waits no more. */
static bool ask_held(struct web *w)
{
	if (leg_input(&w->client).len >= WEB_AHEAD_MAX)
		return false;
	bool has_moved = leg_fill(&w->client);

	if (w->client.is_eof)
		web_cut(w, GATE_NONE, BY_CLIENT);
	return has_moved;
}

bool web_ask(struct web *w)
{
	if (w->is_held)
		return ask_held(w);
	switch (w->asking) {
	case ASK_HEAD:
		if (w->is_waiting)
			return ask_done(w);
		if (w->peek.is_on)
			return web_peek(w);
		return w->answering == ANSWER_NONE && ask_head(w);
	case ASK_BODY:
		return ask_body(w);
	case ASK_DONE:
		return ask_done(w);
	}
	return false;
}
