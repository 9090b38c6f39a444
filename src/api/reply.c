/*
 * reply.c - answers: their heads, their framing, and what must not be said twice.
 */
#include <time.h>

#include "api/server-internal.h"

#define PROBLEM_MAX 512

static struct exchange *exchange_of(struct request *r)
{
	return (struct exchange *)(void *)r;
}

/* After an answer that goes on. Inside, the caller settles; outside, it must not be freed yet:
 * the handler may be using it. */
static void settle_later(struct conn *c)
{
	if (c->is_inside)
		return;
	if (c->is_broken)
		conn_soon(c);
	else
		conn_settle(c);
}

/* After one that ends. */
static void end(struct exchange *x)
{
	struct conn *c = x->conn;

	x->is_over = true;
	if (c->is_inside)
		return;
	if (!c->is_broken)
		conn_finish(c);
	conn_settle(c);
}

/* ---- heads ------------------------------------------------------------------------- */

static const char *date_text(struct server *s)
{
	time_t now = time(NULL);
	struct tm tm;

	if (now == s->date_s)
		return s->date;
	s->date_s = now;
	gmtime_r(&now, &tm);
	strftime(s->date, sizeof s->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	return s->date;
}

/* What is said in a head besides its status. */
struct head_opts {
	const char *type, *upgrade;
	enum http_body_kind framing;
	uint64_t length;
	const char *const *extra;
	bool is_last; /* no other answer on this connection */
};

static int print_head(struct server *s, int status, const struct head_opts *o)
{
	struct http_print p;
	struct err e;

	str_clear(&s->head_text);
	p = http_print_response(&s->head_text, status);
	http_print_text(&p, "Date", date_text(s));
	if (o->type)
		http_print_text(&p, "Content-Type", o->type);
	http_print_framing(&p, o->framing, o->length);
	if (o->upgrade)
		http_print_text(&p, "Upgrade", o->upgrade);
	if (o->upgrade || o->is_last)
		http_print_text(&p, "Connection", o->upgrade ? "Upgrade" : "close");
	for (size_t i = 0; o->extra && o->extra[i]; i += 2)
		http_print_text(&p, o->extra[i], o->extra[i + 1]);
	return http_print_end(&p, &e);
}

/* Makes the head, with what it means for the connection; it is in `head_text` then. */
static void make_head(struct exchange *x, int status, struct head_opts *o)
{
	struct conn *c = x->conn;

	c->is_kept = x->head.keep_alive && !c->server->is_draining && !o->upgrade &&
	             !c->server->is_single && o->framing != HTTP_UNTIL_CLOSE &&
	             (conn_body_done(c) || conn_can_skip(c));
	o->is_last = !c->is_kept;
	x->has_begun = true;
	x->framing = o->framing;
	x->left = o->length;
	x->is_bodiless = span_is(x->head.method, "HEAD") || status == 204 || status == 304;
	if (status == 204 || status == 304)
		o->framing = HTTP_NO_BODY;
	if (print_head(c->server, status, o) == 0)
		return;
	c->is_kept = false;
	x->is_bodiless = true;
	(void)print_head(c->server, 500,
	                 &(struct head_opts){ .framing = HTTP_LENGTH, .is_last = true });
	if (o->upgrade)
		c->is_broken = c->is_reset = true; /* half of it is not possible */
}

static struct iovec iov_of(const void *bytes, size_t n)
{
	return (struct iovec){ (void *)(uintptr_t)bytes, n };
}

static struct iovec iov_of_head(const struct server *s)
{
	return iov_of(s->head_text.data, s->head_text.len);
}

/* More follows at once. */
static bool is_held(const struct exchange *x)
{
	return x->conn->is_inside || x->is_held;
}

static bool is_usable(const struct exchange *x)
{
	return !x->is_over && !x->conn->is_broken;
}

void reply(struct request *r, int status, const char *type, const void *body, size_t n,
           const char *const *extra)
{
	struct exchange *x = exchange_of(r);
	struct conn *c = x->conn;

	if (x->is_over || x->has_begun)
		return;
	if (!c->is_broken) {
		make_head(x, status,
		          &(struct head_opts){
			      .type = type, .framing = HTTP_LENGTH, .length = n, .extra = extra });
		struct iovec iov[] = { iov_of_head(c->server), iov_of(body, n) };

		out_send(c, iov, x->is_bodiless ? 1 : 2, false);
	}
	end(x);
}

/* ---- streams ----------------------------------------------------------------------- */

void reply_begin(struct request *r, int status, const char *type, int64_t length,
                 const char *const *extra)
{
	struct exchange *x = exchange_of(r);
	struct conn *c = x->conn;
	struct head_opts o = { .type = type, .extra = extra, .framing = HTTP_LENGTH };

	if (!is_usable(x) || x->has_begun)
		return;
	if (length < 0)
		o.framing = x->head.minor == 1 ? HTTP_CHUNKED : HTTP_UNTIL_CLOSE;
	else
		o.length = (uint64_t)length;
	make_head(x, status, &o);
	struct iovec iov = iov_of_head(c->server);

	out_send(c, &iov, 1, is_held(x));
	settle_later(c);
}

static void write_chunk(struct exchange *x, const void *p, size_t n)
{
	char size[24];
	int len = snprintf(size, sizeof size, "%zx\r\n", n);
	struct iovec iov[] = { iov_of(size, (size_t)len), iov_of(p, n), iov_of("\r\n", 2) };

	out_send(x->conn, iov, COUNT(iov), is_held(x));
}

static void write_plain(struct exchange *x, const void *p, size_t n)
{
	struct conn *c = x->conn;
	struct iovec iov = iov_of(p, n);

	if (x->framing == HTTP_LENGTH && n > x->left) {
		c->is_broken = c->is_reset = true; /* more than the head has said */
		return;
	}
	x->left -= x->framing == HTTP_LENGTH ? n : 0;
	out_send(c, &iov, 1, is_held(x));
}

/* When many wait for slow clients, each may wait with less. */
static size_t out_mark(const struct server *s)
{
	return server_is_full(s) ? OUT_LOW : OUT_HIGH;
}

bool reply_write(struct request *r, const void *p, size_t n)
{
	struct exchange *x = exchange_of(r);
	struct conn *c = x->conn;

	if (!is_usable(x))
		return false;
	if (x->is_bodiless || n == 0)
		return true;
	if (x->framing == HTTP_CHUNKED)
		write_chunk(x, p, n);
	else
		write_plain(x, p, n);
	if (out_waiting(c) > out_mark(c->server))
		x->wants_room = true;
	bool has_room = !x->wants_room && !c->is_broken;

	settle_later(c);
	return has_room;
}

void reply_hold(struct request *r, bool is_on)
{
	struct exchange *x = exchange_of(r);

	x->is_held = is_on;
	if (is_on || !is_usable(x) || x->conn->is_inside)
		return;
	out_flush(x->conn);
	settle_later(x->conn);
}

void reply_end(struct request *r)
{
	struct exchange *x = exchange_of(r);
	struct conn *c = x->conn;

	if (x->is_over)
		return;
	if (is_usable(x) && x->framing == HTTP_CHUNKED && !x->is_bodiless) {
		struct iovec iov = iov_of("0\r\n\r\n", 5);

		out_send(c, &iov, 1, is_held(x));
	}
	if (x->framing == HTTP_LENGTH && x->left > 0 && !x->is_bodiless)
		c->is_broken = c->is_reset = true; /* less than the head has said */
	end(x);
}

void reply_abort(struct request *r)
{
	struct exchange *x = exchange_of(r);

	if (x->is_over)
		return;
	x->conn->is_broken = x->conn->is_reset = true;
	end(x);
}

void reply_pause(struct request *r, bool is_paused)
{
	struct exchange *x = exchange_of(r);
	struct conn *c = x->conn;

	if (!is_usable(x) || x->is_paused == is_paused)
		return;
	x->is_paused = is_paused;
	if (!is_paused && (c->ahead.len > 0 || conn_body_done(c)))
		c->is_stirred = true;
	settle_later(c);
}

/* ---- upgrades ---------------------------------------------------------------------- */

bool request_asks_upgrade(const struct request *r, const char *token)
{
	bool is_said = false, is_token = false;

	for (size_t i = 0; i < r->head->n_fields; i++) {
		const struct http_field *f = &r->head->fields[i];

		is_said |=
		    span_is_nocase(f->name, "Connection") && http_list_has(f->value, "upgrade");
		is_token |= span_is_nocase(f->name, "Upgrade") && http_list_has(f->value, token);
	}
	return is_said && is_token && r->head->minor == 1;
}

void reply_upgrade(struct request *r, const char *protocol, const char *const *extra)
{
	struct exchange *x = exchange_of(r);
	struct conn *c = x->conn;

	if (!is_usable(x) || x->has_begun)
		return;
	make_head(x, 101, &(struct head_opts){ .upgrade = protocol, .extra = extra });
	c->body.error = HTTP_E_CUT; /* where the peer's bytes end is not known from now on */
	conn_phase(c, PHASE_RAW);
	c->is_stirred = c->ahead.len > 0;
	struct iovec iov = iov_of_head(c->server);

	out_send(c, &iov, 1, is_held(x));
	settle_later(c);
}

void reply_shut(struct request *r)
{
	struct exchange *x = exchange_of(r);
	struct conn *c = x->conn;

	if (!is_usable(x) || c->phase != PHASE_RAW)
		return;
	c->is_shut_due = true;
	out_flush(c);
	settle_later(c);
}

/* ---- problems ---------------------------------------------------------------------- */

/* Head and body of one, the body in `buf`. */
static void print_problem(struct server *s, const struct problem *p, char *buf, struct iovec iov[2])
{
	static const char *const again[] = { "Retry-After", "1", NULL };
	int n = snprintf(buf, PROBLEM_MAX,
	                 "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"code\":\"%s\","
	                 "\"detail\":\"%s\"}",
	                 http_reason(p->status), p->status, p->code, p->detail);
	struct head_opts o = { .type = "application/problem+json",
		               .framing = HTTP_LENGTH,
		               .length = (uint64_t)n,
		               .extra = p->status == 503 ? again : NULL,
		               .is_last = true };

	(void)print_head(s, p->status, &o); /* only words of ours */
	iov[0] = iov_of_head(s);
	iov[1] = iov_of(buf, (size_t)n);
}

void reply_problem(struct conn *c, const struct problem *p)
{
	char buf[PROBLEM_MAX];
	struct iovec iov[2];

	print_problem(c->server, p, buf, iov);
	out_send(c, iov, COUNT(iov), false);
}

void reply_refuse(struct server *s, int fd)
{
	static const struct problem busy = { 503, "busy", "there are too many connections" };
	char buf[PROBLEM_MAX];
	struct iovec iov[2];

	print_problem(s, &busy, buf, iov);
	(void)os_sendv(fd, iov, COUNT(iov)); /* who cannot take it now is not waited for */
}
