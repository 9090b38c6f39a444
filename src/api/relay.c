/*
 * relay.c - one request through a forwarded port: who asks, then its head printed anew for the
 * application, its body as it comes, and the answer back in framing of ours.
 *
 * The application is the sandbox's: its head goes through the same strict parser as a client's, so
 * that it cannot make a client see an answer that it did not give, and its bytes are counted.
 */
#include "api/duct.h"
#include "api/forward.h"
#include "core/details.h"
#include "wire/url.h"

#define OWN_PATH "/.caisson/"
#define OPEN_PATH OWN_PATH "open"
#define TOKEN_TRIES 4          /* cookies of our name that are looked at */
#define ANSWER_IDLE_MS 600000  /* of an exchange in which nothing moves */
#define SOCKET_IDLE_MS 3600000 /* and of a WebSocket */

enum phase { PHASE_DIAL, PHASE_HEAD, PHASE_BODY, PHASE_RAW };

struct relay {
	struct duct duct; /* first */
	struct relay_how how;
	enum phase phase;
	struct str head;                  /* of the answer, until it is whole */
	struct http_body body;            /* of the answer */
	bool is_client_done, is_app_done; /* PHASE_RAW: has closed its side */
};

/* ---- ends ---------------------------------------------------------------------------- */

static void relay_free(struct relay *x)
{
	duct_end(&x->duct);
	str_done(&x->head);
	free(x);
}

static void say(struct request *r, int status, const char *code, const char *detail)
{
	static const char *const extra[] = { "Cache-Control", "no-store", NULL };
	json_t *o =
	    json_pack("{ss,ss,si,ss,so}", "type", "about:blank", "title", http_reason(status),
	              "status", status, "code", code, "detail", details_text(detail));
	AUTO(freep) char *body = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	reply(r, status, "application/problem+json", body, strlen(body), extra);
}

static void refuse(struct relay *x, int status, const char *code, const char *detail)
{
	struct request *r = x->duct.r;

	r->gone = NULL; /* it is freed here */
	if (x->how.refuse)
		x->how.refuse(r, status, detail);
	else
		say(r, status, code, detail); /* the words may be the duct's */
	relay_free(x);
}

static void finish(struct relay *x)
{
	struct request *r = x->duct.r;

	relay_free(x);
	reply_end(r);
}

static void cut(struct relay *x)
{
	struct request *r = x->duct.r;

	relay_free(x);
	reply_abort(r);
}

/* ---- the answer ---------------------------------------------------------------------- */

static enum duct_next bad_answer(struct relay *x, const char *why)
{
	refuse(x, 502, "backend_error", why);
	return DUCT_GONE;
}

static enum duct_next take_raw(struct relay *x, struct span in)
{
	return reply_write(x->duct.r, in.at, in.len) ? DUCT_MORE : DUCT_WAIT;
}

static enum duct_next take_body(struct relay *x, struct span in)
{
	bool has_room = true;
	int r;

	do {
		struct http_piece piece;

		r = http_body_feed(&x->body, in.at, in.len, &piece);
		in = span_after(in, piece.consumed);
		if (piece.data.len > 0)
			has_room = reply_write(x->duct.r, piece.data.at, piece.data.len);
	} while (r == HTTP_BODY_MORE && in.len > 0);
	if (r == HTTP_BODY_MORE)
		return has_room ? DUCT_MORE : DUCT_WAIT;
	if (r == HTTP_BODY_DONE)
		finish(x); /* what the application says behind it is for nobody */
	else
		cut(x);
	return DUCT_GONE;
}

static enum duct_next begin(struct relay *x, const struct http_head *h, struct span rest)
{
	const char *fields[FORWARD_FIELDS];
	struct request *r = x->duct.r;
	bool is_asked = r->head->is_upgrade_websocket;

	if (h->status == 101 && !is_asked)
		return bad_answer(x, "the application switched protocols unasked");
	forward_answer(h, x->how.way.tag, &r->arena, fields);
	if (h->status == 101) {
		x->phase = PHASE_RAW;
		x->duct.idle_ms = SOCKET_IDLE_MS;
		reply_upgrade(r, "websocket", fields);
		return rest.len > 0 ? take_raw(x, rest) : DUCT_MORE;
	}
	x->phase = PHASE_BODY;
	http_body_init(&x->body, h, UINT64_MAX);
	reply_begin(r, h->status, NULL, h->has_length ? (int64_t)h->length : -1, fields);
	return take_body(x, rest);
}

static enum duct_next take_head(struct relay *x, struct span in)
{
	static struct http_head h;
	enum http_asked asked =
	    span_is(x->duct.r->head->method, "HEAD") ? HTTP_ASKED_HEAD : HTTP_ASKED_BODY;
	struct span all;
	int n;

	x->head.max = HTTP_HEAD_MAX + in.len + 1;
	str_addn(&x->head, in.at, in.len);
	all = (struct span){ x->head.data, x->head.len };
	do { /* interim ones are not for the client: the server has said its own */
		n = http_response_head(all.at, all.len, asked, &h);
		if (n > 0)
			all = span_after(all, (size_t)n);
	} while (n > 0 && h.status < 200 && h.status != 101);
	if (n < 0)
		return bad_answer(x, "the answer of the application is no HTTP");
	if (n > 0)
		return begin(x, &h, all);
	memmove(x->head.data, all.at, all.len);
	x->head.len = all.len;
	return DUCT_MORE;
}

static enum duct_next got(struct duct *d, const char *bytes, size_t n)
{
	struct relay *x = (struct relay *)d;
	struct span in = { bytes, n };

	if (x->phase == PHASE_RAW)
		return take_raw(x, in);
	return x->phase == PHASE_BODY ? take_body(x, in) : take_head(x, in);
}

static void raw_ended(struct relay *x, bool is_clean)
{
	x->is_app_done = true;
	if (!is_clean)
		cut(x);
	else if (x->is_client_done)
		finish(x);
	else
		reply_shut(x->duct.r);
}

static void ended(struct duct *d, bool is_clean)
{
	struct relay *x = (struct relay *)d;

	if (x->phase == PHASE_HEAD)
		(void)bad_answer(x, "the application closed the connection without an answer");
	else if (x->phase == PHASE_RAW)
		raw_ended(x, is_clean);
	else if (is_clean && http_body_eof(&x->body) == HTTP_BODY_DONE)
		finish(x);
	else
		cut(x);
}

/* ---- the request --------------------------------------------------------------------- */

static void opened(struct duct *d)
{
	struct relay *x = (struct relay *)d;
	AUTO(str_done) struct str head = { .max = FORWARD_HEAD_MAX };
	struct err e = { 0 };

	if (forward_request(d->r->head, &x->how.way, &head, &e) < 0) {
		bool is_bad = e.kind == ERR_INVALID;

		refuse(x, is_bad ? 400 : 431, is_bad ? "invalid" : "too_large",
		       is_bad ? e.msg : "the head is too long");
		return;
	}
	x->phase = PHASE_HEAD;
	duct_send(d, head.data, head.len);
}

static void failed(struct duct *d, const struct fail *f)
{
	struct relay *x = (struct relay *)d;
	int status = f->code == FAIL_EXPIRED ? 504 : f->code == FAIL_NOT_FOUND ? 502 : 503;

	refuse(x, status, fail_name(f->code), f->detail);
}

static void on_data(struct request *r, const void *bytes, size_t n)
{
	struct relay *x = r->state;
	AUTO(str_done) struct str chunk = { .max = n + 64 };

	if (x->phase == PHASE_RAW && n == 0) {
		x->is_client_done = true;
		if (x->is_app_done)
			finish(x);
		else
			duct_shut(&x->duct);
		return;
	}
	if (x->phase == PHASE_RAW || r->head->body != HTTP_CHUNKED) {
		if (n > 0)
			duct_send(&x->duct, bytes, n);
		return;
	}
	if (n > 0)
		http_print_chunk(&chunk, bytes, n);
	else
		http_print_last_chunk(&chunk);
	duct_send(&x->duct, chunk.data, chunk.len);
}

static void on_room(struct request *r)
{
	duct_room(&((struct relay *)r->state)->duct);
}

static void gone(struct request *r)
{
	relay_free(r->state);
}

void relay_start(struct request *r, const struct relay_how *how)
{
	static const struct duct_ops ops = {
		.opened = opened, .failed = failed, .got = got, .ended = ended
	};
	static const char *const prefixes[] = { TOKEN_PREFIX, TOKEN_E2B_PREFIX, PORT_TOKEN_PREFIX,
		                                NULL };
	struct relay *x = mem_alloc(sizeof *x);
	struct fail fail = { 0 };

	*x = (struct relay){ .duct = { .ops = &ops, .r = r, .idle_ms = ANSWER_IDLE_MS },
		             .how = *how };
	x->how.way.carry.prefixes = prefixes;
	r->state = x;
	r->gone = gone;
	r->on_data = on_data;
	r->on_room = on_room;
	struct sbx *s = sbx_find(how->core, how->tenant, how->sandbox, &fail);

	if (!s || duct_start(&x->duct, s, how->port, &fail) < 0)
		refuse(x, 503, fail_name(fail.code), fail.detail);
}

static void on_request(struct request *r)
{
	const struct forward *f = r->route;

	relay_start(r, &(struct relay_how){ .core = f->core,
	                                    .tenant = f->tenant,
	                                    .sandbox = f->sandbox,
	                                    .port = f->port,
	                                    .way = { .tag = f->tag } });
}

/* ---- who asks ------------------------------------------------------------------------ */

static bool has_cookie(const struct forward *f, const struct http_head *h)
{
	struct span name, value;
	int tries = TOKEN_TRIES;

	for (size_t i = 0; i < h->n_fields; i++) {
		struct span rest = h->fields[i].value;

		if (!span_is_nocase(h->fields[i].name, "Cookie"))
			continue;
		while (cookie_next(&rest, &name, &value)) {
			if (!cookie_is_token(name, f->tag))
				continue;
			if (forward_takes(f, value))
				return true;
			if (--tries == 0)
				return false;
		}
	}
	return false;
}

static bool has_field(const struct forward *f, const struct http_head *h)
{
	const struct span *token = http_header(h, FORWARD_TOKEN);

	return token && http_header_count(h, FORWARD_TOKEN) == 1 && forward_takes(f, *token);
}

/* /.caisson/open?token=…: the browser keeps the token as a cookie, and the address bar does not. */
static void answer_own(struct request *r, const struct forward *f)
{
	char buf[256], cookie[256];
	struct span rest = r->query;
	struct url_param p;
	struct err e = { 0 };
	bool is_open = span_is(r->path, OPEN_PATH) && span_is(r->head->method, "GET");

	if (!is_open) {
		say(r, 404, "not_found", "no such resource");
		return;
	}
	if (url_param(&rest, (struct url_buf){ buf, sizeof buf }, &p, &e) <= 0 || rest.len > 0 ||
	    strcmp(p.name, "token") != 0 ||
	    !forward_takes(f, (struct span){ p.value, p.value_len })) {
		say(r, 401, "unauthorized", "the token is not this port's");
		return;
	}
	snprintf(cookie, sizeof cookie, "cp%s=%s; Path=/; HttpOnly; SameSite=Lax", f->tag, p.value);
	const char *const extra[] = {
		"Set-Cookie",      cookie,        "Location", "/", "Cache-Control", "no-store",
		"Referrer-Policy", "no-referrer", NULL
	};
	reply(r, 303, NULL, NULL, 0, extra);
}

static void on_head(struct request *r)
{
	struct forward *f = r->tag;
	bool is_by_field = has_field(f, r->head);

	if (!forward_host_is(r->head, f->local_port))
		say(r, 421, "forbidden", "the Host header names somebody else");
	else if (r->path.len >= strlen(OWN_PATH) &&
	         memcmp(r->path.at, OWN_PATH, strlen(OWN_PATH)) == 0)
		answer_own(r, f);
	else if (!is_by_field && !has_cookie(f, r->head))
		say(r, 401, "unauthorized", "the token of this port is needed");
	else if (!is_by_field && !forward_is_own_page(r->head))
		say(r, 403, "forbidden", "requests of other origins are refused");
	else if (f->n_requests >= FORWARD_REQUESTS_MAX)
		say(r, 503, "busy", "too many requests at once");
	else {
		f->n_requests++;
		r->route = f;
		r->body_mode = BODY_STREAM;
		r->body_max = UINT64_MAX;
		r->owner = f->tenant;
	}
}

static void on_end(struct request *r)
{
	if (r->route)
		forward_release(r->route);
}

const struct server_ops relay_ops = { .on_head = on_head,
	                              .on_request = on_request,
	                              .on_end = on_end };
