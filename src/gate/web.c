#include "gate/web-internal.h"

#include "base/fd.h"
#include "gate/leg.h"
#include "gate/play.h"
#include "gate/webbody.h"
#include "gate/webhead.h"
#include "os/net.h"

#define HEAD_MS 30000    /* for a head, once it has begun */
#define IDLE_MS 600000   /* between requests */
#define STALL_MS 3600000 /* in a request, nothing moving */
#define LINGER_MS 2000   /* behind our last word, for what the client still sends */
#define RAW_MS 200       /* for the rest of what may be a secret, behind 101 */
#define ROUNDS 16        /* of reads and writes, before others get their turn */

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
	mask_done(&w->mask);
	gitpush_done(&w->push);
	sigv4_done(&w->sign);
	webpeek_done(&w->peek);
	free(w->path);
	free(w);
}

bool web_has_server(const struct web *w)
{
	return w->conn->relay.server.watch.fd >= 0;
}

enum gate_decision web_allowed(const struct web *w)
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

void web_cut(struct web *w, enum gate_reason why, enum conn_by by)
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
		                                                .secret = w->secret,
		                                                .ask = w->ask,
		                                                .is_approved = w->approved,
		                                                .content = &w->peek.content,
		                                                .reason = why });
	w->method[0] = '\0';
}

/* What it would still say is for nobody. */
static void drop_server(struct web *w)
{
	struct conn *c = w->conn;

	if (c->dial || web_has_server(w))
		c->gate->last_cut_ms = timer_now_ms();
	dial_cancel(c->dial);
	c->dial = NULL;
	leg_done(&w->server);
	if (!web_has_server(w))
		return;
	relay_end_unwatch(&c->relay, &c->relay.server);
	(void)os_reset_on_close(c->relay.server.watch.fd); /* it may have closed already */
	fd_close(&c->relay.server.watch.fd);
}

void web_leave(struct web *w, enum gate_decision d, enum gate_reason why, enum conn_by by)
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

void web_refuse(struct web *w, int status, enum gate_decision d, enum gate_reason why)
{
	char text[128];

	record(w, status, why);
	if (w->has_answered) {
		web_cut(w, why, BY_GATE);
		return;
	}
	snprintf(text, sizeof text, "caisson: %s (%s)\n", http_reason(status),
	         gate_reason_name(why));
	webhead_refusal(status, text, w->asked != HTTP_ASKED_HEAD, leg_out(&w->client));
	web_leave(w, d, why, BY_GATE);
}

static void client_paced(struct pace_wait *wait)
{
	struct web *w = OWNER_OF(wait, struct web, client.wait);

	leg_turn(&w->client);
	run(w);
}

static void server_paced(struct pace_wait *wait)
{
	struct web *w = OWNER_OF(wait, struct web, server.wait);

	leg_turn(&w->server);
	run(w);
}

static struct leg server_leg(struct conn *c)
{
	return (struct leg){ .end = &c->relay.server,
		             .flow = &c->relay.down,
		             .meter = &c->gate->meters[1],
		             .legs = &c->gate->legs,
		             .is_readable = true,
		             .wait.wake = server_paced,
		             .is_private = c->name && rules_is_bound(&c->gate->rules, c->name) };
}

void web_renew_server(struct web *w)
{
	drop_server(w);
	w->server = server_leg(w->conn);
	w->is_asking_cache = false;
}

/* ---- answers ------------------------------------------------------------------------- */

static void answered(struct web *w)
{
	w->has_reflected |= w->mask.hits > 0;
	w->answering = ANSWER_NONE;
	w->has_answered = false;
	if (leg_input(&w->server).len > 0) { /* an answer to a request that is still to come */
		web_leave(w, web_allowed(w), GATE_HTTP_BAD, BY_SERVER);
		return;
	}
	if (w->is_last || w->asking != ASK_DONE) {
		web_leave(w, web_allowed(w), GATE_NONE, BY_SERVER);
		return;
	}
	w->asking = ASK_HEAD;
	w->approved = 0;
	w->ask = 0;
	w->has_continued = false;
	webpeek_done(&w->peek);
}

static void bad_answer(struct web *w)
{
	web_refuse(w, 502, web_allowed(w), GATE_HTTP_BAD);
}

/* An answer to a request with a secret, in which nobody could look for it: coded, in whatever
 * field of several, or a part of the whole. Neither was asked for. */
static bool is_opaque(const struct web *w, const struct http_head *h)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (span_is_nocase(h->fields[i].name, "Content-Encoding") &&
		    !span_is_nocase(h->fields[i].value, "identity"))
			return true;
	return h->status == 206 && !w->sign.is_on;
}

static void take_answer(struct web *w, const struct http_head *h)
{
	bool is_interim = h->status < 200 && h->status != 101;
	struct webhead_way way = { .body = h->body, .is_cached = w->is_asking_cache };
	struct err e;

	if ((h->status == 101 && !w->is_upgrade) || (w->secret[0] && is_opaque(w, h))) {
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
	record(w, h->status, w->mask.hits > 0 ? GATE_REFLECTED : GATE_NONE);
	w->is_raw = h->status == 101;
	webbody_begin(&w->down, h, &w->down_trailers);
	w->answering = ANSWER_BODY;
}

/* The cache leaves it to the server, or is gone. Nobody has heard of an answer yet. */
static void ask_again(struct web *w)
{
	w->cache = CACHE_PASS; /* also when it died */
	web_renew_server(w);
	if (w->conn->gate->rules.is_offline) {
		web_refuse(w, 504, web_allowed(w), GATE_OFFLINE);
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
		web_leave(w, web_allowed(w), GATE_NONE, BY_SERVER);
	} else {
		web_refuse(w, 502, web_allowed(w), GATE_UNREACHABLE);
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
		mask_text(&w->mask, leg_bytes(&w->server), (size_t)n); /* what h points at */
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

static struct webbody_way down_way(struct web *w)
{
	return (struct webbody_way){ .is_raw = w->is_down_raw, .mask = &w->mask };
}

static bool answer_body(struct web *w)
{
	if (leg_is_full(&w->client))
		return false;
	int r = HTTP_BODY_MORE;

	if (leg_input(&w->server).len > 0 || w->down.kind != HTTP_CHUNKED)
		r = webbody_move(&w->down, &w->server, &w->client, down_way(w));
	if (r == HTTP_BODY_MORE && leg_input(&w->server).len > 0)
		return true; /* the client has to take some first */
	if (r == HTTP_BODY_MORE && leg_fill(&w->server))
		return true;
	if (r == HTTP_BODY_MORE && w->server.is_eof)
		r = http_body_eof(&w->down);
	if (r == HTTP_BODY_DONE)
		r = webbody_end(&w->down, &w->down_trailers, down_way(w), &w->client) < 0 ? -1 : r;
	if (r < 0)
		web_cut(w, r == HTTP_E_CUT ? GATE_NONE : GATE_HTTP_BAD, BY_SERVER);
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
		web_renew_server(w);
		return true;
	}
	web_leave(w, web_allowed(w), leg_input(&w->server).len > 0 ? GATE_HTTP_BAD : GATE_NONE,
	          BY_SERVER);
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
		web_cut(w, GATE_HTTP_BAD, BY_GATE);
	return true;
}

/* A file may be long, and its client slow. Other rules may have another one. */
static bool answer_mock_body(struct web *w)
{
	if (leg_is_full(&w->client))
		return false;
	if (w->play_count != w->conn->gate->play_count) {
		web_cut(w, GATE_RELOADED, BY_GATE);
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
	if (!web_has_server(w))
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
	bool has_moved;

	if (!leg_is_full(&w->server) && conn_sings(w->conn, &w->scan, leg_input(&w->client))) {
		web_cut(w, GATE_CANARY, BY_GATE);
		return true;
	}
	has_moved = webbody_pass(&w->client, &w->server);
	has_moved |= webbody_pass_masked(&w->server, &w->client, &w->mask);
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

	if (web_has_server(w))
		has_moved |= leg_flush(&w->server);
	if (w->client.is_broken || w->client.is_deaf || w->server.is_broken)
		return true;
	if (w->is_closing)
		return run_closing(w) || has_moved;
	if (w->is_raw)
		return run_raw(w) || has_moved;
	has_moved |= web_ask(w);
	if (!w->is_over && !w->is_closing && !w->is_held)
		has_moved |= answer(w);
	return has_moved;
}

static void check_server(struct web *w)
{
	if (w->server.tls && !w->server.is_shaken)
		web_refuse(w, 502, web_allowed(w), GATE_TLS);
	else if (w->answering == ANSWER_NONE)
		web_leave(w, web_allowed(w), GATE_NONE, BY_SERVER);
	else if (w->answering == ANSWER_HEAD)
		no_answer(w);
	else
		web_cut(w, GATE_NONE, BY_SERVER);
}

static void check_legs(struct web *w)
{
	if (w->client.is_over_budget || w->server.is_over_budget)
		web_cut(w, GATE_BUDGET, BY_GATE);
	else if (w->client.is_broken || w->client.is_deaf)
		web_cut(w, w->client.tls && !w->client.is_shaken ? GATE_TLS : GATE_NONE, BY_CLIENT);
	else if (w->server.is_broken && !w->is_closing)
		check_server(w);
}

static bool may_ask(const struct web *w)
{
	if (w->is_closing)
		return true;
	if (w->is_raw)
		return !leg_is_full(&w->server);
	if (w->is_held)
		return leg_input(&w->client).len < WEB_AHEAD_MAX;
	if (w->peek.is_on)
		return true;
	if (w->asking == ASK_BODY)
		return !leg_is_full(&w->server);
	return leg_input(&w->client).len < WEB_AHEAD_MAX ||
	       (w->asking == ASK_HEAD && !w->is_waiting);
}

static bool is_mock_due(const struct web *w)
{
	return w->answering == ANSWER_MOCK && w->asking == ASK_DONE && !w->is_closing;
}

static void set_timer(struct web *w)
{
	bool is_idle =
	    w->asking == ASK_HEAD && w->answering == ANSWER_NONE && !w->is_held && !w->peek.is_on;
	struct timers *ts = &w->conn->gate->timers;

	if (w->is_busy || w->is_closing || is_mock_due(w)) {
		uint64_t now = timer_now_ms();

		timer_set(ts, &w->conn->timer,
		          !w->is_busy && w->due_ms > now ? w->due_ms - now : 0);
		return;
	}
	if (w->is_raw && mask_waiting(&w->mask) > 0) {
		timer_set(ts, &w->conn->timer, RAW_MS);
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
	if (web_has_server(w))
		leg_watch(r, &w->server, !leg_is_full(&w->client));
	set_timer(w);
}

static void finish(struct web *w)
{
	struct conn *c = w->conn;
	enum gate_decision d = w->is_closing ? w->decision : web_allowed(w);

	if (w->is_reset) {
		(void)os_reset_on_close(c->relay.client.watch.fd);
		if (web_has_server(w))
			(void)os_reset_on_close(c->relay.server.watch.fd);
	}
	record(w, 0, w->why);
	if (w->why == GATE_NONE && (w->has_reflected || w->mask.hits > 0))
		w->why = GATE_REFLECTED;
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

void web_server_ready(struct watch *watch, uint32_t events)
{
	struct web *w = OWNER_OF(watch, struct conn, relay.server.watch)->web;

	leg_heard(&w->server, events);
	run(w);
}

static void too_long(struct timer *t)
{
	struct web *w = OWNER_OF(t, struct conn, timer)->web;

	if (w->is_raw && mask_waiting(&w->mask) > 0) {
		mask_let_go(&w->mask, leg_out(&w->client));
		w->is_busy = true;
	}
	if (is_mock_due(w) || w->is_busy) {
		run(w);
		return;
	}
	if (w->asking == ASK_HEAD && leg_input(&w->client).len > 0 && !w->is_closing && !w->is_held)
		w->is_reset = true;
	over(w, w->is_closing ? w->why : GATE_SILENT, BY_GATE);
	finish(w);
}

void web_look_again(struct gate *g)
{
	for (struct conn *c = g->conns, *next; c; c = next) {
		next = c->next;
		if (c->state != CONN_WEB || !c->web->is_waiting)
			continue;
		c->web->is_waiting = false;
		run(c->web);
	}
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
		web_refuse(w, 502, web_allowed(w), GATE_TLS);
}

void web_asked(struct conn *c, bool is_allowed, enum gate_reason why)
{
	struct web *w = c->web;

	w->is_held = false;
	if (is_allowed)
		web_go_on(w);
	else
		web_refuse(w, 403, GATE_ASKED_DENY, why);
	run(w);
}

void web_dialled(struct conn *c, int fd, enum gate_reason why)
{
	struct web *w = c->web;
	bool is_denied = why == GATE_SPECIAL || why == GATE_METADATA || why == GATE_RULE;

	if (fd < 0) {
		web_refuse(w,
		           is_denied                ? 403
		           : why == GATE_UNRESOLVED ? 502
		                                    : 504,
		           is_denied ? GATE_DENY : web_allowed(w), why);
	} else {
		c->relay.server.watch = (struct watch){ .fd = fd, .ready = web_server_ready };
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
		                       .wait.wake = client_paced,
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
	c->relay.server.watch.ready = web_server_ready;
	if (web_has_server(w))
		meet_server(w);
	run(w);
}
