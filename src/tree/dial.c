/*
 * dial.c - a connection to a port of this sandbox, carried over a stream of the requester's.
 *
 * The requester never holds a socket of this side: what shares a socket shares its lock, its
 * lingering close and its flags (docs/decisions/0020-ports.md). It has one end of a pair of its
 * own, and bytes go back and forth here.
 */
#include <netinet/in.h>
#include <poll.h>

#include "base/fd.h"
#include "os/net.h"
#include "tree/fail.h"
#include "tree/sys.h"
#include "tree/verbs.h"

#define WAY_BYTES (64u << 10)

/* ---- connecting ---------------------------------------------------------------------- */

/* A queue that is full answers nothing: the time of the call ends that. Returns the socket, -errno
 * of the connection, or -1 with an error when the call is over. */
static int connect_to(struct call *c, const union os_address *a, struct err *e)
{
	AUTO(fd_close) int fd = sys_connect(a);

	if (fd < 0)
		return fd;
	if (call_wait(c, fd, POLLOUT, e) < 0)
		return -1;
	int r = sys_socket_error(fd);
	return r < 0 ? r : fd_take(&fd);
}

static int dial(struct call *c, struct err *e)
{
	int r = -ECONNREFUSED;

	*e = (struct err){ 0 };
	for (int is_v6 = 0; is_v6 < 2 && r < 0; is_v6++) {
		union os_address a = os_loopback(is_v6, (uint16_t)c->req.from);

		r = connect_to(c, &a, e);
		if (e->kind != ERR_NONE)
			return -1;
	}
	return r < 0 ? fail(e, TREE_NOT_FOUND, "nothing listens on port %u",
	                    (unsigned int)c->req.from)
	             : r;
}

/* ---- carrying ------------------------------------------------------------------------ */

struct way {
	int from, to;
	unsigned char bytes[WAY_BYTES];
	size_t at, len;
	bool is_ended; /* nothing more comes */
	bool is_over;  /* and the other side knows */
};

enum { OUT, BACK, WAYS }; /* to the application, from it */

static bool has_bytes(const struct way *w)
{
	return w->at < w->len;
}

/* 0 or -errno. */
static int take(struct way *w)
{
	int n = sys_recv_now(w->from, w->bytes, sizeof w->bytes);

	if (n == -EAGAIN)
		return 0;
	if (n < 0)
		return n;
	w->at = 0;
	w->len = (size_t)n;
	w->is_ended = n == 0;
	return 0;
}

static int give(struct way *w)
{
	while (has_bytes(w)) {
		int n = sys_send_now(w->to, w->bytes + w->at, w->len - w->at);

		if (n < 0)
			return n == -EAGAIN ? 0 : n;
		w->at += (size_t)n;
	}
	return 0;
}

/* The end is passed on behind the last byte. */
static int finish(struct call *c, struct way *w, bool is_back, struct err *e)
{
	if (!w->is_ended || has_bytes(w) || w->is_over)
		return 0;
	w->is_over = true;
	if (is_back && (call_add(c, span_of("."), e) < 0 || call_flush(c, e) < 0))
		return -1;
	(void)os_shut_write(w->to); /* it may be gone already */
	return 0;
}

static void drop(struct way *w)
{
	w->is_ended = w->is_over = true;
	w->at = w->len;
}

/* Whoever takes no more may still have something to say: an answer to half of a request. */
static int step(struct call *c, struct way *w, bool is_back, struct err *e)
{
	if (w->is_over)
		return 0;
	int r = w->is_ended || has_bytes(w) ? 0 : take(w);

	if (r < 0)
		return err_sys(e, -r, "carry");
	if (give(w) < 0) {
		drop(w);
		return 0;
	}
	return finish(c, w, is_back, e);
}

/* What is waited for at one end: bytes from it, or room in it. */
static struct pollfd wish(const struct way *in, const struct way *out)
{
	bool wants_in = !in->is_ended && !has_bytes(in), wants_out = has_bytes(out);

	return (struct pollfd){ .fd = wants_in || wants_out ? in->from : -1,
		                .events =
		                    (short)((wants_in ? POLLIN : 0) | (wants_out ? POLLOUT : 0)) };
}

static int carry(struct call *c, int near, int far, struct err *e)
{
	static struct way ways[WAYS];
	struct way *out = &ways[OUT], *back = &ways[BACK];

	*out = (struct way){ .from = near, .to = far };
	*back = (struct way){ .from = far, .to = near };
	while (!out->is_over || !back->is_over) {
		struct pollfd fds[] = { { .fd = -1 }, wish(out, back), wish(back, out) };

		if (call_poll(c, fds, COUNT(fds), e) < 0)
			return -1;
		/* The requester has left: there is nobody to carry anything back to. */
		if (fds[1].revents & POLLHUP)
			drop(back);
		if (step(c, out, false, e) < 0 || step(c, back, true, e) < 0)
			return -1;
	}
	return 0;
}

int verb_dial(struct call *c, struct err *e)
{
	AUTO(fd_close) int near = fd_take(&c->sink_fd);

	if (near < 0 || c->req.from == 0 || c->req.from > UINT16_MAX)
		return fail(e, TREE_INVALID, "a port and a descriptor are needed");
	AUTO(fd_close) int far = dial(c, e);
	if (far < 0 || call_flush(c, e) < 0)
		return -1;
	c->deadline_ms = 0; /* for as long as both want */
	return carry(c, near, far, e);
}
