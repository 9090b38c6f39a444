#include "api/duct.h"

#include "os/net.h"

#define READ_BYTES (64u << 10)
#define OUT_MAX (1u << 20) /* one read of the client's, framed */

static size_t unsent(const struct duct *d)
{
	return d->out.len - d->out_from;
}

/* A socket whose peer is gone is always ready: it is watched only while something is wanted. */
static void want(struct duct *d)
{
	uint32_t events = (d->is_full || d->is_eof ? 0 : EPOLLIN) | (unsent(d) > 0 ? EPOLLOUT : 0);
	struct loop *l = d->dial->core->loop;

	if (events == d->events)
		return;
	if (events == 0)
		loop_remove(l, &d->watch);
	else if (d->events == 0)
		(void)loop_add(l, &d->watch, events); /* no memory for it: the idle time ends it */
	else
		(void)loop_change(l, &d->watch, events);
	d->events = events;
}

static void stir(struct duct *d)
{
	timer_set(&d->dial->core->timers, &d->idle, d->idle_ms);
}

/* All was read; whether that was all, the worker says. */
static void check_end(struct duct *d)
{
	if (d->is_told || !d->is_eof || (!d->dial->is_far_closed && !d->dial->is_over))
		return;
	d->is_told = true;
	d->ops->ended(d, d->dial->is_far_closed);
}

/* ---- to the application -------------------------------------------------------------- */

static void drop_out(struct duct *d)
{
	str_done(&d->out);
	d->out_from = 0;
}

/* 0 when it took nothing now. */
static size_t put(struct duct *d, const void *bytes, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, n };
	int r = os_sendv(d->dial->fd, &iov, 1);

	if (r < 0 && r != -EAGAIN)
		d->is_deaf = true;
	return r < 0 ? 0 : (size_t)r;
}

static void flush(struct duct *d)
{
	while (unsent(d) > 0 && !d->is_deaf) {
		size_t n = put(d, d->out.data + d->out_from, unsent(d));

		if (n == 0)
			break;
		d->out_from += n;
	}
	if (d->is_deaf || unsent(d) == 0) {
		drop_out(d);
		if (d->is_shut_due)
			(void)os_shut_write(d->dial->fd); /* it may be gone */
		d->is_shut_due = false;
		reply_pause(d->r, false);
	}
	want(d);
}

void duct_send(struct duct *d, const void *bytes, size_t n)
{
	stir(d);
	if (d->is_deaf)
		return;
	size_t done = unsent(d) == 0 ? put(d, bytes, n) : 0;

	if (done == n || d->is_deaf)
		return;
	d->out.max = OUT_MAX;
	str_addn(&d->out, (const char *)bytes + done, n - done);
	reply_pause(d->r, true);
	want(d);
}

void duct_shut(struct duct *d)
{
	d->is_shut_due = true;
	if (unsent(d) == 0)
		flush(d);
}

/* ---- from the application ------------------------------------------------------------ */

void duct_room(struct duct *d)
{
	d->is_full = false;
	want(d);
}

static void take(struct duct *d)
{
	static char buf[READ_BYTES];
	int n = os_recv_some(d->dial->fd, buf, sizeof buf);

	if (n == -EAGAIN)
		return;
	stir(d);
	if (n <= 0) {
		d->is_eof = true;
		want(d);
		check_end(d);
		return;
	}
	if (d->ops->got(d, buf, (size_t)n) == DUCT_WAIT) {
		d->is_full = true;
		want(d);
	}
}

static void ready(struct watch *w, uint32_t events)
{
	struct duct *d = (struct duct *)(void *)w;

	if (events & EPOLLOUT)
		flush(d);
	if (!d->is_full && !d->is_eof && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		take(d);
}

/* ---- life ---------------------------------------------------------------------------- */

/* Also of a client that says nothing more to an application that has ended. */
static void too_long(struct timer *t)
{
	struct duct *d = (struct duct *)(void *)((char *)t - offsetof(struct duct, idle));

	d->ops->ended(d, false);
}

static void changed(struct dial *dial)
{
	struct duct *d = dial->owner;

	if (d->is_open) {
		check_end(d);
	} else if (dial->is_connected) {
		d->is_open = true;
		d->watch = (struct watch){ .fd = dial->fd, .ready = ready };
		want(d);
		stir(d);
		reply_pause(d->r, false);
		d->ops->opened(d);
	} else if (dial->is_over && !d->is_told) {
		d->is_told = true;
		d->ops->failed(d, &dial->fail);
	}
}

int duct_start(struct duct *d, struct sbx *s, uint16_t port, struct fail *f)
{
	d->dial = dial_start(s, port, DIAL_MS, f);
	if (!d->dial)
		return -1;
	d->dial->changed = changed;
	d->dial->owner = d;
	d->idle.fired = too_long;
	d->watch.fd = -1;
	reply_pause(d->r, true);
	return 0;
}

void duct_end(struct duct *d)
{
	if (!d->dial)
		return;
	loop_remove(d->dial->core->loop, &d->watch);
	timer_stop(&d->dial->core->timers, &d->idle);
	drop_out(d);
	dial_end(d->dial);
	d->dial = NULL;
}
