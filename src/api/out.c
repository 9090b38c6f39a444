/*
 * out.c - what waits to be sent. It is sent at once when nothing waits; else it is copied behind
 * what does, and the loop tells when the socket takes more.
 */
#include "api/server-internal.h"

#define HOLD_MAX (16u << 10)

static void add(struct conn *c, const void *bytes, size_t n)
{
	if (c->out_from >= OUT_LOW || c->out_from >= c->out.len) {
		c->out.len -= c->out_from;
		if (c->out.len > 0)
			memmove(c->out.data, c->out.data + c->out_from, c->out.len);
		c->out_from = 0;
	}
	c->out.max = OUT_MAX;
	str_addn(&c->out, bytes, n);
	c->server->held += n;
	if (!c->out.overflow)
		return;
	c->server->held -= n;
	c->is_broken = true;
}

static void sent(struct conn *c, size_t n)
{
	c->out_from += n;
	c->server->held -= n;
	c->has_moved = true;
	if (out_waiting(c) == 0)
		out_drop(c);
}

void out_drop(struct conn *c)
{
	c->server->held -= out_waiting(c);
	str_done(&c->out);
	c->out_from = 0;
}

/* What a write returned. */
static bool went_out(struct conn *c, int r)
{
	if (r >= 0)
		return true;
	c->is_blocked = r == -EAGAIN;
	c->is_broken |= r != -EAGAIN;
	return false;
}

static int write_some(struct conn *c)
{
	struct iovec iov = { c->out.data + c->out_from, out_waiting(c) };

	if (!c->tls_context)
		return os_sendv(c->watch.fd, &iov, 1);
	return c->tls ? tls_write(c->tls, iov.iov_base, iov.iov_len) : -EPIPE;
}

static void shut(struct conn *c)
{
	c->is_shut_due = false;
	if (c->tls)
		tls_say_end(c->tls);
	(void)os_shut_write(c->watch.fd); /* a peer that has left does not miss it */
}

void out_flush(struct conn *c)
{
	while (out_waiting(c) > 0 && !c->is_blocked && !c->is_broken) {
		int r = write_some(c);

		if (went_out(c, r))
			sent(c, (size_t)r);
	}
	if (c->is_shut_due && out_waiting(c) == 0 && !c->is_broken)
		shut(c);
}

static size_t total(const struct iovec *iov, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

void out_send(struct conn *c, struct iovec *iov, size_t n, bool hold)
{
	size_t size = total(iov, n), done = 0;

	if (c->is_broken || size == 0)
		return;
	hold = hold && out_waiting(c) + size <= HOLD_MAX;
	if (!c->tls_context && !c->is_blocked && out_waiting(c) == 0 && !hold) {
		int r = os_sendv(c->watch.fd, iov, n);

		if (went_out(c, r))
			done = (size_t)r;
		c->has_moved |= done > 0;
		c->is_blocked |= done < size;
	}
	for (size_t i = 0; i < n && !c->is_broken; i++) {
		size_t skip = done < iov[i].iov_len ? done : iov[i].iov_len;

		done -= skip;
		if (skip < iov[i].iov_len)
			add(c, (char *)iov[i].iov_base + skip, iov[i].iov_len - skip);
	}
	if (!hold)
		out_flush(c);
}
