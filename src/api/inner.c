#include "api/inner.h"

#include "base/fd.h"
#include "os/net.h"
#include "os/sock.h"

#define READ_BYTES (64u << 10)

struct inner {
	struct watch watch; /* first */
	struct api *api;
	inner_fn *done;
	void *arg;
	struct str out; /* the request, sent up to `sent` */
	size_t sent;
	struct str in;   /* the head of the answer, until it is whole */
	struct str body; /* of the answer */
	struct http_body framing;
	int status; /* 0: the head is not whole */
};

static char *copy(struct span text)
{
	char *s = mem_alloc(text.len + 1);

	memcpy(s, text.at, text.len);
	return s;
}

struct inner_as inner_as(struct call *c)
{
	const struct span *h = http_header(c->r->head, "Authorization");

	return (struct inner_as){
		.peer = { c->r->door, c->r->peer_uid, c->r->peer_gid,
		          c->r->door == DOOR_UNIX ? c->r->socket_fd : -1 },
		.authorization = h ? copy(*h) : NULL,
	};
}

void inner_as_done(struct inner_as *as)
{
	free(as->authorization);
	as->authorization = NULL;
}

void inner_cancel(struct inner *i)
{
	if (!i)
		return;
	loop_remove(i->api->core->loop, &i->watch);
	fd_close(&i->watch.fd);
	str_done(&i->out);
	str_done(&i->in);
	str_done(&i->body);
	free(i);
}

static void finish(struct inner *i, int status)
{
	struct str body = i->body;
	inner_fn *done = i->done;
	void *arg = i->arg;

	i->body = (struct str){ 0 };
	inner_cancel(i);
	done(arg, status, (struct span){ str_text(&body), body.len });
	str_done(&body);
}

/* ---- the answer ---------------------------------------------------------------------- */

/* True: it is over. */
static bool take_body(struct inner *i, struct span in)
{
	struct http_piece piece;
	int r;

	do {
		r = http_body_feed(&i->framing, in.at, in.len, &piece);
		in = span_after(in, piece.consumed);
		str_addn(&i->body, piece.data.at, piece.data.len);
	} while (r == HTTP_BODY_MORE && in.len > 0);
	if (r == HTTP_BODY_MORE)
		return false;
	finish(i, r == HTTP_BODY_DONE ? i->status : 0);
	return true;
}

static bool take(struct inner *i, struct span in)
{
	static struct http_head head;

	if (i->status)
		return take_body(i, in);
	str_addn(&i->in, in.at, in.len);
	struct span all = { str_text(&i->in), i->in.len };
	int n;
	do { /* interim ones say nothing */
		n = http_response_head(all.at, all.len, HTTP_ASKED_BODY, &head);
		if (n > 0)
			all = span_after(all, (size_t)n);
	} while (n > 0 && head.status < 200);
	if (n < 0) {
		finish(i, 0);
		return true;
	}
	if (n == 0)
		return false;
	i->status = head.status;
	http_body_init(&i->framing, &head, INNER_BODY_MAX);
	return take_body(i, all);
}

static void on_readable(struct inner *i)
{
	static char buf[READ_BYTES];

	for (;;) {
		int n = os_recv_some(i->watch.fd, buf, sizeof buf);

		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			bool is_whole =
			    n == 0 && i->status && http_body_eof(&i->framing) == HTTP_BODY_DONE;

			finish(i, is_whole ? i->status : 0);
			return;
		}
		if (take(i, (struct span){ buf, (size_t)n }))
			return;
	}
}

/* ---- the request --------------------------------------------------------------------- */

static int send_some(struct inner *i)
{
	while (i->sent < i->out.len) {
		struct iovec iov = { i->out.data + i->sent, i->out.len - i->sent };
		int n = os_sendv(i->watch.fd, &iov, 1);

		if (n == -EAGAIN)
			return loop_change(i->api->core->loop, &i->watch, EPOLLIN | EPOLLOUT);
		if (n < 0)
			return loop_change(i->api->core->loop, &i->watch,
			                   EPOLLIN); /* it has answered */
		i->sent += (size_t)n;
	}
	return loop_change(i->api->core->loop, &i->watch, EPOLLIN);
}

static void ready(struct watch *w, uint32_t events)
{
	struct inner *i = (struct inner *)(void *)w;

	if (events & EPOLLOUT && send_some(i) < 0) {
		finish(i, 0);
		return;
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		on_readable(i);
}

static int print(struct inner *i, const struct inner_as *as, const struct inner_ask *ask)
{
	struct err e = { 0 };

	i->out.max = (size_t)2 * HTTP_HEAD_MAX + ask->body.len;
	struct http_print p =
	    http_print_request(&i->out, span_of(ask->method), span_of(ask->target));
	http_print_text(&p, "Host", "localhost");
	http_print_text(&p, "Connection", "close");
	http_print_text(&p, "Accept", ask->accept ? ask->accept : "application/json");
	if (as->authorization)
		http_print_text(&p, "Authorization", as->authorization);
	if (ask->body.len > 0 || strcmp(ask->method, "PUT") == 0) {
		http_print_text(&p, "Content-Type", ask->type ? ask->type : "application/json");
		http_print_framing(&p, HTTP_LENGTH, ask->body.len);
	}
	if (http_print_end(&p, &e) < 0)
		return -1;
	str_addn(&i->out, ask->body.at, ask->body.len);
	return i->out.overflow ? -1 : 0;
}

struct inner *inner_call(struct api *a, const struct inner_as *as, const struct inner_ask *ask,
                         inner_fn *done, void *arg)
{
	struct inner *i = mem_alloc(sizeof *i);
	int pair[2];

	*i = (struct inner){ .watch = { .fd = -1, .ready = ready },
		             .api = a,
		             .done = done,
		             .arg = arg,
		             .in = { .max = (size_t)2 * HTTP_HEAD_MAX + READ_BYTES },
		             .body = { .max = INNER_BODY_MAX } };
	if (print(i, as, ask) < 0 || os_socketpair(pair, SOCK_STREAM | SOCK_NONBLOCK) < 0) {
		inner_cancel(i);
		return NULL;
	}
	i->watch.fd = pair[0];
	if (server_adopt(a->server, pair[1], &as->peer) < 0 ||
	    loop_add(a->core->loop, &i->watch, EPOLLIN) < 0 || send_some(i) < 0) {
		inner_cancel(i);
		return NULL;
	}
	return i;
}
