#include "gate/web.h"

#include "base/fd.h"
#include "gate/leg.h"
#include "gate/play.h"
#include "gate/webbody.h"
#include "gate/webhead.h"
#include "os/net.h"
#include "wire/target.h"

#define HEAD_MS 30000    /* for a head, once it has begun */
#define IDLE_MS 600000   /* between requests */
#define STALL_MS 3600000 /* in a request, nothing moving */
#define LINGER_MS 2000   /* behind our last word, for what the client still sends */
#define PATH_MAX_BYTES (3ul * HTTP_TARGET_MAX) /* all of it escaped */
#define ROUNDS 16             /* of reads and writes, before others get their turn */
#define AHEAD_MAX (16u << 10) /* of the next request, while one is answered */

enum asking { ASK_HEAD, ASK_BODY, ASK_DONE };
enum answering { ANSWER_NONE, ANSWER_HEAD, ANSWER_BODY, ANSWER_MOCK, ANSWER_MOCK_BODY };

struct web {
	struct conn *conn;
	struct leg client, server;
	struct http_body up, down;
	struct str up_trailers, down_trailers;
	enum asking asking;
	enum answering answering;
	enum http_asked asked;
	enum gate_decision decision; /* of its end */
	enum gate_reason why;
	enum conn_by by;
	uint64_t n_requests;
	uint64_t due_ms;                  /* ANSWER_MOCK: not before; is_closing: not later */
	const struct mock_answer *played; /* ANSWER_MOCK_BODY: while play_count is the same */
	size_t n_played;
	uint64_t play_count;
	char method[GATE_METHOD_SIZE], *path;
	struct str again; /* what the cache was asked, for the server if that does not answer */
	enum cache_word cache;   /* what it did */
	bool is_asking_cache;    /* the server is the package cache */
	bool is_recorded;        /* requests are told one by one */
	bool is_upgrade, is_old; /* the client is of HTTP/1.0 */
	bool is_last;            /* nothing follows this answer */
	bool is_raw;             /* behind 101 */
	bool is_down_raw;        /* the body is passed without chunks */
	bool is_closing;         /* the last word was said */
	bool is_over, is_reset;
	bool is_busy;      /* goes on in the next turn, when others have had theirs */
	bool has_answered; /* something of this answer has gone to the client */
};

static void run(struct web *w);

/* ---- ends ---------------------------------------------------------------------------- */

void web_free(struct web *w)
{
	if (!w)
		return;
	w->conn->gate->n_ended -= w->client.tls != NULL;
	leg_done(&w->client);
	leg_done(&w->server);
	str_done(&w->up_trailers);
	str_done(&w->down_trailers);
	str_done(&w->again);
	free(w->path);
	free(w);
}

static bool has_server(const struct web *w)
{
	return w->conn->relay.server.watch.fd >= 0;
}

static enum gate_decision allowed(const struct web *w)
{
	return w->conn->is_answered ? GATE_ASKED_ALLOW : GATE_ALLOW;
}

static void over(struct web *w, enum gate_reason why, enum conn_by by)
{
	if (w->is_over)
		return;
	w->is_over = true;
	if (w->is_closing)
		return; /* why has been said */
	w->why = why;
	w->by = by;
}

/* In the middle of something: nobody may take it for whole. */
static void cut(struct web *w, enum gate_reason why, enum conn_by by)
{
	w->is_reset |= !w->is_over && !w->is_closing;
	over(w, why, by);
}

static void record(struct web *w, int status, enum gate_reason why)
{
	if (w->is_recorded && w->method[0])
		record_request(w->conn, &(struct request_note){ .number = w->n_requests,
		                                                .method = w->method,
		                                                .path = w->path,
		                                                .status = status,
		                                                .cache = w->cache,
		                                                .reason = why });
	w->method[0] = '\0';
}

/* What it would still say is for nobody. */
static void drop_server(struct web *w)
{
	struct conn *c = w->conn;

	dial_cancel(c->dial);
	c->dial = NULL;
	leg_done(&w->server);
	if (!has_server(w))
		return;
	relay_end_unwatch(&c->relay, &c->relay.server);
	(void)os_reset_on_close(c->relay.server.watch.fd); /* it may have closed already */
	fd_close(&c->relay.server.watch.fd);
}

/* Nothing more is said to the client, but all that was is sent. */
static void leave(struct web *w, enum gate_decision d, enum gate_reason why, enum conn_by by)
{
	if (w->is_closing || w->is_over)
		return;
	w->is_closing = true;
	w->decision = d;
	w->why = why;
	w->by = by;
	w->due_ms = timer_now_ms() + LINGER_MS;
	drop_server(w);
}

/* An answer of ours, and then nothing more. What was asked so far is forgotten. */
static void refuse(struct web *w, int status, enum gate_decision d, enum gate_reason why)
{
	char text[128];

	record(w, status, why);
	if (w->has_answered) {
		cut(w, why, BY_GATE);
		return;
	}
	snprintf(text, sizeof text, "caisson: %s (%s)\n", http_reason(status),
	         gate_reason_name(why));
	webhead_refusal(status, text, w->asked != HTTP_ASKED_HEAD, leg_out(&w->client));
	leave(w, d, why, BY_GATE);
}

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
	w->n_requests++;
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

static void server_ready(struct watch *watch, uint32_t events);

static struct leg server_leg(struct conn *c)
{
	return (struct leg){ .end = &c->relay.server,
		             .flow = &c->relay.down,
		             .meter = &c->gate->meters[1],
		             .legs = &c->gate->legs,
		             .is_readable = true };
}

/* The next one is another, and knows nothing of the last. */
static void renew_server(struct web *w)
{
	drop_server(w);
	w->server = server_leg(w->conn);
	w->is_asking_cache = false;
}

static bool meet_cache(struct web *w)
{
	struct conn *c = w->conn;
	int fd = cached_open(c, w->client.tls != NULL);

	if (fd < 0)
		return false;
	c->relay.server.watch = (struct watch){ .fd = fd, .ready = server_ready };
	w->is_asking_cache = true;
	if (!c->is_opened)
		record_opened(c);
	return true;
}

/* Whom it is for decides who is asked; false: nobody can be. */
static bool choose_server(struct web *w, const struct http_head *h)
{
	bool is_cached = cached_is(w->conn, h);

	w->cache = CACHE_NONE;
	if (has_server(w) && w->is_asking_cache != is_cached)
		renew_server(w);
	if (is_cached && !has_server(w))
		is_cached = meet_cache(w);
	return is_cached || !w->conn->gate->rules.is_offline;
}

static void take_request(struct web *w, const struct http_head *h, size_t n)
{
	struct verdict v = judge(w, h);
	struct err e;

	if (v.what != VERDICT_ALLOW) {
		refuse(w, webhead_status(v.reason), GATE_DENY, v.reason);
		return;
	}
	bool is_played = play_has(w->conn);

	if (!is_played && !choose_server(w, h)) {
		refuse(w, 504, GATE_DENY, GATE_OFFLINE);
		return;
	}
	if (!is_played && webhead_request(h, leg_out(&w->server), &e) < 0) {
		refuse(w, 431, GATE_DENY, GATE_HTTP_BAD);
		return;
	}
	if (w->is_asking_cache) {
		w->again.max = WEB_HEAD_MAX;
		str_clear(&w->again);
		str_addn(&w->again, w->server.out.data, w->server.out.len);
	}
	webbody_begin(&w->up, h, &w->up_trailers);
	w->is_upgrade = h->is_upgrade_websocket;
	w->is_old = h->minor == 0;
	w->is_last = !h->keep_alive;
	w->has_answered = false;
	w->asking = ASK_BODY;
	w->answering = is_played ? ANSWER_MOCK : ANSWER_HEAD;
	if (is_played)
		meet_mock(w, h->expect_continue);
	leg_take(&w->client, n);
	if (!is_played && !has_server(w) && !w->conn->dial)
		conn_dial(w->conn);
}

static bool ask_head(struct web *w)
{
	static struct http_head h;
	struct span in = leg_input(&w->client);
	int n = http_proxy_head(in.at, in.len, &h);

	if (n < 0) {
		w->asked = HTTP_ASKED_BODY;
		refuse(w, http_error_status(n), GATE_DENY, GATE_HTTP_BAD);
	} else if (n > 0) {
		take_request(w, &h, (size_t)n);
	} else if (leg_fill(&w->client)) {
		return true;
	} else if (w->client.is_eof) {
		leave(w, allowed(w), w->n_requests == 0 ? GATE_SILENT : GATE_NONE, BY_CLIENT);
	} else {
		return false;
	}
	return true;
}

static bool ask_body(struct web *w)
{
	int r = HTTP_BODY_MORE;

	if (leg_is_full(&w->server))
		return false;
	if (leg_input(&w->client).len > 0 || w->up.kind != HTTP_CHUNKED)
		r = webbody_move(&w->up, &w->client, &w->server, false);
	if (r == HTTP_BODY_DONE) {
		w->asking = ASK_DONE;
		r = webbody_end(&w->up, &w->up_trailers, false, &w->server);
	}
	if (w->answering == ANSWER_MOCK)
		str_done(leg_out(&w->server));
	if (r < 0) {
		refuse(w, 400, GATE_DENY, GATE_HTTP_BAD);
		return false;
	}
	if (w->asking == ASK_DONE || leg_input(&w->client).len > 0 || leg_fill(&w->client))
		return true;
	if (w->client.is_eof)
		cut(w, GATE_NONE, BY_CLIENT);
	return false;
}

/* The whole request has gone. A client that hangs up waits no more; over plain TCP it may have
 * ended only its own side, and is told the answer. */
static bool ask_done(struct web *w)
{
	if (leg_input(&w->client).len >= AHEAD_MAX)
		return false;
	bool has_moved = leg_fill(&w->client);

	if (w->client.is_eof && w->client.tls)
		cut(w, GATE_NONE, BY_CLIENT);
	return has_moved;
}

static bool ask(struct web *w)
{
	switch (w->asking) {
	case ASK_HEAD:
		return w->answering == ANSWER_NONE && ask_head(w);
	case ASK_BODY:
		return ask_body(w);
	case ASK_DONE:
		return ask_done(w);
	}
	return false;
}

/* ---- answers ------------------------------------------------------------------------- */

static void answered(struct web *w)
{
	w->answering = ANSWER_NONE;
	w->has_answered = false;
	if (leg_input(&w->server).len > 0) { /* an answer to a request that is still to come */
		leave(w, allowed(w), GATE_HTTP_BAD, BY_SERVER);
		return;
	}
	if (w->is_last || w->asking != ASK_DONE) {
		leave(w, allowed(w), GATE_NONE, BY_SERVER);
		return;
	}
	w->asking = ASK_HEAD;
}

static void bad_answer(struct web *w)
{
	refuse(w, 502, allowed(w), GATE_HTTP_BAD);
}

static void take_answer(struct web *w, const struct http_head *h)
{
	bool is_interim = h->status < 200 && h->status != 101;
	struct webhead_way way = { .body = h->body, .is_cached = w->is_asking_cache };
	struct err e;

	if (h->status == 101 && !w->is_upgrade) {
		bad_answer(w);
		return;
	}
	if (is_interim && w->is_old)
		return; /* it would not know what that is */
	w->is_down_raw = h->body == HTTP_CHUNKED && w->is_old;
	if (w->is_down_raw)
		way.body = HTTP_UNTIL_CLOSE;
	if (!is_interim)
		w->is_last |= !h->keep_alive || way.body == HTTP_UNTIL_CLOSE;
	way.is_last = w->is_last;
	if (webhead_answer(h, &way, leg_out(&w->client), &e) < 0) {
		bad_answer(w);
		return;
	}
	if (is_interim)
		return;
	w->has_answered = true;
	record(w, h->status, GATE_NONE);
	w->is_raw = h->status == 101;
	webbody_begin(&w->down, h, &w->down_trailers);
	w->answering = ANSWER_BODY;
}

/* The cache leaves it to the server, or is gone. Nobody has heard of an answer yet. */
static void ask_again(struct web *w)
{
	w->cache = CACHE_PASS; /* also when it died */
	renew_server(w);
	if (w->conn->gate->rules.is_offline) {
		refuse(w, 504, allowed(w), GATE_OFFLINE);
		return;
	}
	str_addn(leg_out(&w->server), w->again.data, w->again.len);
	conn_dial(w->conn);
}

/* One that ended while it was idle: the client sees just that, and may try again. */
static void no_answer(struct web *w)
{
	if (w->is_asking_cache)
		ask_again(w);
	else if (w->n_requests > 1 && leg_input(&w->server).len == 0) {
		record(w, 0, GATE_NONE);
		leave(w, allowed(w), GATE_NONE, BY_SERVER);
	} else {
		refuse(w, 502, allowed(w), GATE_UNREACHABLE);
	}
}

static bool answer_head(struct web *w)
{
	static struct http_head h;
	struct span in = leg_input(&w->server);
	int n = http_response_head(in.at, in.len, w->asked, &h);

	if (n > 0 && w->is_asking_cache && (w->cache = cached_word(&h)) == CACHE_PASS) {
		ask_again(w);
		return true;
	}
	if (n > 0) {
		take_answer(w, &h);
		leg_take(&w->server, (size_t)n);
		return true;
	}
	if (n < 0) {
		bad_answer(w);
		return false;
	}
	if (leg_fill(&w->server))
		return true;
	if (w->server.is_eof)
		no_answer(w);
	return false;
}

static bool answer_body(struct web *w)
{
	if (leg_is_full(&w->client))
		return false;
	int r = HTTP_BODY_MORE;

	if (leg_input(&w->server).len > 0 || w->down.kind != HTTP_CHUNKED)
		r = webbody_move(&w->down, &w->server, &w->client, w->is_down_raw);
	if (r == HTTP_BODY_MORE && leg_input(&w->server).len > 0)
		return true; /* the client has to take some first */
	if (r == HTTP_BODY_MORE && leg_fill(&w->server))
		return true;
	if (r == HTTP_BODY_MORE && w->server.is_eof)
		r = http_body_eof(&w->down);
	if (r == HTTP_BODY_DONE)
		r = webbody_end(&w->down, &w->down_trailers, w->is_down_raw, &w->client) < 0 ? -1
		                                                                             : r;
	if (r < 0)
		cut(w, r == HTTP_E_CUT ? GATE_NONE : GATE_HTTP_BAD, BY_SERVER);
	else if (r == HTTP_BODY_DONE)
		answered(w);
	return r == HTTP_BODY_DONE;
}

/* Nobody has asked for anything. */
static bool answer_none(struct web *w)
{
	if (!leg_fill(&w->server))
		return false;
	if (w->is_asking_cache && leg_input(&w->server).len == 0) { /* it was replaced */
		renew_server(w);
		return true;
	}
	leave(w, allowed(w), leg_input(&w->server).len > 0 ? GATE_HTTP_BAD : GATE_NONE, BY_SERVER);
	return true;
}

static bool answer_mock(struct web *w)
{
	if (w->asking != ASK_DONE || timer_now_ms() < w->due_ms)
		return false;
	const struct mock_answer *a = play_answer(w->conn, w->method, w->path);
	bool is_bare = a->status == 204 || a->status == 304;
	struct webhead_way way = { .is_last = w->is_last,
		                   .body = is_bare ? HTTP_NO_BODY : HTTP_LENGTH };
	struct err e;

	record(w, (int)a->status, GATE_NONE);
	w->played = a;
	w->n_played = is_bare || w->asked == HTTP_ASKED_HEAD ? a->body_len : 0;
	w->play_count = w->conn->gate->play_count;
	w->answering = ANSWER_MOCK_BODY;
	w->has_answered = true;
	if (webhead_mock(a, &way, leg_out(&w->client), &e) < 0)
		cut(w, GATE_HTTP_BAD, BY_GATE);
	return true;
}

/* A file may be long, and its client slow. Other rules may have another one. */
static bool answer_mock_body(struct web *w)
{
	if (leg_is_full(&w->client))
		return false;
	if (w->play_count != w->conn->gate->play_count) {
		cut(w, GATE_RELOADED, BY_GATE);
		return true;
	}
	size_t left = w->played->body_len - w->n_played, n = left < LEG_FULL ? left : LEG_FULL;

	str_addn(leg_out(&w->client), w->played->body + w->n_played, n);
	w->n_played += n;
	if (n == left)
		answered(w);
	return true;
}

static bool answer(struct web *w)
{
	if (w->answering == ANSWER_MOCK || w->answering == ANSWER_MOCK_BODY)
		return w->answering == ANSWER_MOCK ? answer_mock(w) : answer_mock_body(w);
	if (!has_server(w))
		return false;
	switch (w->answering) {
	case ANSWER_NONE:
		return answer_none(w);
	case ANSWER_HEAD:
		return answer_head(w);
	case ANSWER_BODY:
		return answer_body(w);
	case ANSWER_MOCK:
	case ANSWER_MOCK_BODY:
		break;
	}
	return false;
}

/* ---- behind 101 ---------------------------------------------------------------------- */

static bool run_raw(struct web *w)
{
	bool has_moved = webbody_pass(&w->client, &w->server);

	has_moved |= webbody_pass(&w->server, &w->client);
	if (w->client.is_shut && w->server.is_shut)
		over(w, GATE_NONE, w->client.is_eof ? BY_CLIENT : BY_SERVER);
	return has_moved;
}

/* ---- the loop ------------------------------------------------------------------------ */

/* Reads what comes behind our last word, so that its rejection does not destroy that. */
static bool run_closing(struct web *w)
{
	if (leg_unsent(&w->client) > 0)
		return false;
	leg_shut(&w->client);
	bool has_moved = leg_fill(&w->client);

	leg_take(&w->client, leg_input(&w->client).len);
	if (w->client.is_eof || w->client.is_broken)
		over(w, w->why, w->by);
	return has_moved;
}

static bool step(struct web *w)
{
	bool has_moved = leg_flush(&w->client);

	if (has_server(w))
		has_moved |= leg_flush(&w->server);
	if (w->client.is_broken || w->client.is_deaf || w->server.is_broken)
		return true;
	if (w->is_closing)
		return run_closing(w) || has_moved;
	if (w->is_raw)
		return run_raw(w) || has_moved;
	has_moved |= ask(w);
	if (!w->is_over && !w->is_closing)
		has_moved |= answer(w);
	return has_moved;
}

static void check_server(struct web *w)
{
	if (w->server.tls && !w->server.is_shaken)
		refuse(w, 502, allowed(w), GATE_TLS);
	else if (w->answering == ANSWER_NONE)
		leave(w, allowed(w), GATE_NONE, BY_SERVER);
	else if (w->answering == ANSWER_HEAD)
		no_answer(w);
	else
		cut(w, GATE_NONE, BY_SERVER);
}

static void check_legs(struct web *w)
{
	if (w->client.is_over_budget || w->server.is_over_budget)
		cut(w, GATE_BUDGET, BY_GATE);
	else if (w->client.is_broken || w->client.is_deaf)
		cut(w, w->client.tls && !w->client.is_shaken ? GATE_TLS : GATE_NONE, BY_CLIENT);
	else if (w->server.is_broken && !w->is_closing)
		check_server(w);
}

static bool may_ask(const struct web *w)
{
	if (w->is_closing)
		return true;
	if (w->is_raw)
		return !leg_is_full(&w->server);
	if (w->asking == ASK_BODY)
		return !leg_is_full(&w->server);
	return leg_input(&w->client).len < AHEAD_MAX || w->asking == ASK_HEAD;
}

static bool is_mock_due(const struct web *w)
{
	return w->answering == ANSWER_MOCK && w->asking == ASK_DONE && !w->is_closing;
}

static void set_timer(struct web *w)
{
	bool is_idle = w->asking == ASK_HEAD && w->answering == ANSWER_NONE;
	struct timers *ts = &w->conn->gate->timers;

	if (w->is_busy || w->is_closing || is_mock_due(w)) {
		uint64_t now = timer_now_ms();

		timer_set(ts, &w->conn->timer,
		          !w->is_busy && w->due_ms > now ? w->due_ms - now : 0);
		return;
	}
	if (is_idle && leg_input(&w->client).len > 0 && w->conn->is_patient)
		return; /* a head has begun */
	w->conn->is_patient = is_idle && leg_input(&w->client).len > 0;
	timer_set(ts, &w->conn->timer,
	          w->conn->is_patient || (is_idle && w->n_requests == 0) ? HEAD_MS
	          : is_idle                                              ? IDLE_MS
	                                                                 : STALL_MS);
}

static void settle(struct web *w)
{
	struct relay *r = &w->conn->relay;

	leg_watch(r, &w->client, may_ask(w));
	if (has_server(w))
		leg_watch(r, &w->server, !leg_is_full(&w->client));
	set_timer(w);
}

static void finish(struct web *w)
{
	struct conn *c = w->conn;
	enum gate_decision d = w->is_closing ? w->decision : allowed(w);

	if (w->is_reset) {
		(void)os_reset_on_close(c->relay.client.watch.fd);
		if (has_server(w))
			(void)os_reset_on_close(c->relay.server.watch.fd);
	}
	record(w, 0, w->why);
	conn_close(c, d, w->why, w->by);
}

static void run(struct web *w)
{
	bool has_moved = true;

	if (w->is_closing && timer_now_ms() >= w->due_ms)
		over(w, w->why, w->by);
	for (int i = 0; i < ROUNDS && has_moved && !w->is_over; i++) {
		has_moved = step(w);
		check_legs(w);
	}
	w->is_busy = has_moved;
	if (w->is_over)
		finish(w);
	else
		settle(w);
}

static void client_ready(struct watch *watch, uint32_t events)
{
	struct web *w = OWNER_OF(watch, struct conn, relay.client.watch)->web;

	leg_heard(&w->client, events);
	run(w);
}

static void server_ready(struct watch *watch, uint32_t events)
{
	struct web *w = OWNER_OF(watch, struct conn, relay.server.watch)->web;

	leg_heard(&w->server, events);
	run(w);
}

static void too_long(struct timer *t)
{
	struct web *w = OWNER_OF(t, struct conn, timer)->web;

	if (is_mock_due(w) || w->is_busy) {
		run(w);
		return;
	}
	if (w->asking == ASK_HEAD && leg_input(&w->client).len > 0 && !w->is_closing)
		w->is_reset = true;
	over(w, w->is_closing ? w->why : GATE_SILENT, BY_GATE);
	finish(w);
}

/* Of a client whose TLS ends here the server has to prove who it is. */
static void meet_server(struct web *w)
{
	struct conn *c = w->conn;

	w->server.is_readable = true;
	if (!w->client.tls || w->is_asking_cache)
		return;
	w->server.tls = ends_connect(&c->gate->ends, c->relay.server.watch.fd, c->name);
	if (!w->server.tls)
		refuse(w, 502, allowed(w), GATE_TLS);
}

void web_dialled(struct conn *c, int fd, enum gate_reason why)
{
	struct web *w = c->web;
	bool is_denied = why == GATE_SPECIAL || why == GATE_METADATA;

	if (fd < 0) {
		refuse(w,
		       is_denied                ? 403
		       : why == GATE_UNRESOLVED ? 502
		                                : 504,
		       is_denied ? GATE_DENY : allowed(w), why);
	} else {
		c->relay.server.watch = (struct watch){ .fd = fd, .ready = server_ready };
		meet_server(w);
		if (!c->is_opened)
			record_opened(c);
	}
	run(w);
}

void web_start(struct conn *c, struct tls *tls)
{
	struct gate *g = c->gate;
	struct web *w = mem_alloc(sizeof *w);

	*w = (struct web){ .conn = c,
		           .client = { .end = &c->relay.client,
		                       .tls = tls,
		                       .flow = &c->relay.up,
		                       .meter = &g->meters[0],
		                       .legs = &g->legs,
		                       .is_readable = true },
		           .server = server_leg(c),
		           .decision = GATE_ALLOW,
		           .is_recorded = tls != NULL };
	g->n_ended += tls != NULL;
	c->web = w;
	c->state = CONN_WEB;
	c->is_patient = false;
	c->timer.fired = too_long;
	c->relay.client.watch.ready = client_ready;
	c->relay.server.watch.ready = server_ready;
	if (has_server(w))
		meet_server(w);
	run(w);
}
