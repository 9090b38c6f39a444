/*
 * web_hold.c - requests that a person is asked about.
 *
 * The whole request stays in the client's input. Its body is read and hashed there first, up to
 * WEBPEEK_MAX, so that the question can say what would be sent; the same bytes go on when the
 * answer is yes. One question is one request.
 */
#include "gate/inject.h"
#include "gate/web-internal.h"

#define PEEKS_HELD_MAX (96u << 20) /* of all legs of a sandbox, with bodies that are looked at */

bool web_is_approved(const struct web *w, enum gate_ask_kind kind)
{
	return w->approved & 1u << kind;
}

/* The head is judged again when the body was looked at. */
static void peek_begin(struct web *w, const struct web_held *held)
{
	webpeek_begin(&w->peek, held->head, held->n);
	w->n_requests -= !w->approved;
	if (!held->head->expect_continue)
		return;
	w->has_continued = true;
	str_add(leg_out(&w->client), "HTTP/1.1 100 Continue\r\n\r\n");
}

bool web_peek(struct web *w)
{
	int r = webpeek_look(&w->peek, leg_input(&w->client));

	if (r == HTTP_BODY_DONE)
		return true;
	if (r < 0)
		web_refuse_body(w, r);
	else if (w->conn->gate->legs.held > PEEKS_HELD_MAX)
		web_refuse(w, 403, GATE_ASKED_DENY, GATE_ASK_FULL);
	if (w->is_closing || w->is_over)
		return false;
	bool has_moved = leg_fill(&w->client);

	if (!has_moved && w->client.is_eof)
		web_cut(w, GATE_NONE, BY_CLIENT);
	return has_moved;
}

/* The request stays where it is; nobody waits for an answer, so the server is let go. */
static void hold(struct web *w, struct gate_ask *about)
{
	if (about->kind != GATE_ASK_SECRET || !about->is_first) {
		snprintf(about->method, sizeof about->method, "%s", w->method);
		snprintf(about->path, sizeof about->path, "%s", w->path);
		about->content = w->peek.content;
	}
	snprintf(about->secret, sizeof about->secret, "%s", w->secret);
	gate_plain(about->path);
	gate_plain(about->rule);
	w->ask = asks_hold_request(w->conn, about);
	if (w->ask == 0) {
		web_refuse(w, 403, GATE_ASKED_DENY, GATE_ASK_FULL);
		return;
	}
	w->is_held = true;
	w->asked_for = about->kind;
	w->is_first = about->is_first;
	web_renew_server(w);
}

void web_hold_request(struct web *w, const struct web_held *held, const struct verdict *v)
{
	const struct http_head *h = held->head;
	struct gate_ask about = { .kind = GATE_ASK_REQUEST };

	if (!w->peek.is_over) {
		peek_begin(w, held);
		return;
	}
	snprintf(about.rule, sizeof about.rule, "%s", v->rule);
	webpeek_show_query(h->path, about.query);
	if (!w->path[0]) { /* in the client's own words, then */
		const char *mark = memchr(h->path.at, '?', h->path.len);
		size_t n = mark ? (size_t)(mark - h->path.at) : h->path.len;

		free(w->path);
		w->path = mem_alloc(n + 1);
		memcpy(w->path, h->path.at, n);
	}
	hold(w, &about);
}

bool web_may_use(struct web *w, const struct web_held *held, const struct injection *j)
{
	struct gate_ask about = { .kind = GATE_ASK_SECRET };
	const char *when = j->rule ? j->rule->bind.approve : NULL;

	if (!when || web_is_approved(w, GATE_ASK_SECRET))
		return true;
	about.is_first = strcmp(when, "first") == 0;
	if (about.is_first && asks_was_used(w->conn->gate, w->secret))
		return true;
	if (!about.is_first && !w->peek.is_over) {
		peek_begin(w, held);
		return false;
	}
	if (!about.is_first)
		webpeek_show_query(held->head->path, about.query);
	snprintf(about.rule, sizeof about.rule, "approve: %s", when);
	hold(w, &about);
	return false;
}

void web_hold_push(struct web *w)
{
	struct gate_ask about = { .kind = GATE_ASK_PUSH };

	snprintf(about.refs, sizeof about.refs, "%s", str_text(&w->push.wanted));
	snprintf(about.rule, sizeof about.rule, "push_ask");
	gate_plain(about.refs);
	hold(w, &about);
}
