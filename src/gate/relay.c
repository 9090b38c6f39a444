#include "gate/relay.h"

#include <fcntl.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/net.h"

#define ROUNDS 4 /* pipes full, before others get their turn */
#define LOOK_BYTES (64u << 10)

#define RELAY_OF(w, end)                                                                           \
	((struct relay *)(void *)((char *)(w)-offsetof(struct relay, end) -                        \
	                          offsetof(struct relay_end, watch)))

/* ---- pipes --------------------------------------------------------------------------- */

static void pipe_close(int pipe[2])
{
	for (int i = 0; i < 2; i++)
		if (pipe[i] > 0)
			fd_close(&pipe[i]);
	pipe[0] = pipe[1] = 0;
}

static int pipe_take(struct pipes *p, int out[2])
{
	if (p->n > 0) {
		p->n--;
		memcpy(out, p->kept[p->n], sizeof p->kept[0]);
		return 0;
	}
	int r = os_pipe(out, O_NONBLOCK);

	if (r < 0) {
		out[0] = out[1] = 0;
		return r;
	}
	(void)os_pipe_size(out[1], RELAY_PIPE_BYTES); /* a smaller one is slower, that is all */
	return 0;
}

/* Only an empty one: what lies in a pipe belongs to one connection. */
static void pipe_give(struct pipes *p, int pipe[2])
{
	if (pipe[1] <= 0)
		return;
	if (p->n == PIPES_KEPT) {
		pipe_close(pipe);
		return;
	}
	memcpy(p->kept[p->n++], pipe, sizeof p->kept[0]);
	pipe[0] = pipe[1] = 0;
}

void pipes_done(struct pipes *p)
{
	while (p->n > 0)
		pipe_close(p->kept[--p->n]);
}

/* ---- watching ------------------------------------------------------------------------ */

void relay_end_unwatch(struct relay *r, struct relay_end *e)
{
	if (e->is_watched)
		loop_remove(r->loop, &e->watch);
	e->is_watched = false;
}

void relay_end_watch(struct relay *r, struct relay_end *e, uint32_t events)
{
	if (e->is_watched && events == e->events)
		return;
	int done = e->is_watched ? loop_change(r->loop, &e->watch, events)
	                         : loop_add(r->loop, &e->watch, events);

	e->is_watched |= done >= 0; /* no memory for it: the other side's end ends it */
	e->events = events;
}

static bool may_read(const struct flow *f)
{
	return !f->is_eof && f->held == 0 && !f->is_paced;
}

/* A side that is read no more is watched for nothing, which is to say for its breaking; one that
 * has to wait is not watched, since its end would be told again and again. */
static void want(struct relay *r, struct relay_end *e, const struct flow *out,
                 const struct flow *in)
{
	uint32_t events = (may_read(out) ? EPOLLIN : 0) | (in->held > 0 ? EPOLLOUT : 0);

	/* What is only looked at stays readable: told once for all that arrives. */
	if (e == &r->client && r->is_up_held)
		events |= EPOLLIN | EPOLLET;
	if (events == 0 && !out->is_eof)
		relay_end_unwatch(r, e);
	else
		relay_end_watch(r, e, events);
}

/* ---- moving -------------------------------------------------------------------------- */

enum moved { MOVED_ALL, MOVED_BLOCKED, MOVED_BROKEN, MOVED_BUDGET, MOVED_REFUSED };

static struct meter *meter_of(const struct relay *r, const struct flow *f)
{
	return r->meters ? &r->meters[f == &r->down] : NULL;
}

static size_t allowance(const struct relay *r, const struct flow *f)
{
	const struct meter *m = meter_of(r, f);
	uint64_t left = !m ? UINT64_MAX : *m->used < m->max ? m->max - *m->used : 0;

	return left < RELAY_PIPE_BYTES ? (size_t)left : RELAY_PIPE_BYTES;
}

/* Nothing may pass any more; an end is not a byte too many. */
static enum moved take_end(struct flow *f, int from)
{
	char byte;
	int n = os_peek(from, &byte, 1);

	f->is_eof = n == 0;
	if (n == -EAGAIN)
		return MOVED_BLOCKED;
	return n == 0 ? MOVED_ALL : MOVED_BUDGET;
}

/* So many of the next bytes may go on; -EAGAIN too when nothing is there. */
static int looked_at(struct relay *r, int from, size_t most)
{
	static char seen[LOOK_BYTES];
	int n = os_peek(from, seen, most < sizeof seen ? most : sizeof seen);

	if (n > 0 && r->refuses(r, (struct span){ seen, (size_t)n }))
		return -EACCES;
	return n;
}

static enum moved take_in(struct relay *r, struct flow *f, int from)
{
	size_t most = allowance(r, f);
	struct meter *m = meter_of(r, f);

	if (most == 0)
		return take_end(f, from);
	if (m && m->pace)
		most = pace_allows(m->pace, &f->wait, most);
	f->is_paced = most == 0;
	if (f->is_paced)
		return MOVED_BLOCKED;
	if (f->pipe[1] <= 0 && pipe_take(r->pipes, f->pipe) < 0)
		return MOVED_BROKEN;
	int n = r->refuses && f == &r->up ? looked_at(r, from, most) : (int)most;

	if (n > 0)
		n = os_splice(from, f->pipe[1], (size_t)n);
	if (n == -EAGAIN)
		return MOVED_BLOCKED;
	if (n == -EACCES)
		return MOVED_REFUSED;
	if (n < 0)
		return MOVED_BROKEN;
	f->is_eof = n == 0;
	f->held = (uint32_t)n;
	f->bytes += (uint32_t)n;
	if (m)
		*m->used += (uint32_t)n;
	if (m && m->pace)
		pace_took(m->pace, (size_t)n);
	return MOVED_ALL;
}

static enum moved give_out(struct flow *f, int to)
{
	while (f->held > 0) {
		int n = os_splice(f->pipe[0], to, f->held);

		if (n == -EAGAIN)
			return MOVED_BLOCKED;
		if (n <= 0)
			return MOVED_BROKEN;
		f->held -= (uint32_t)n;
	}
	return MOVED_ALL;
}

static void flow_drop(struct relay *r, struct flow *f)
{
	pace_leave(&f->wait);
	f->is_paced = false;
	if (f->held > 0)
		pipe_close(f->pipe);
	else
		pipe_give(r->pipes, f->pipe);
	f->held = 0;
}

/* The sink takes no more. What it has said before is still to be delivered. */
static void flow_abandon(struct relay *r, struct flow *f)
{
	flow_drop(r, f);
	f->is_eof = f->is_shut = true;
}

static enum moved flow_run(struct relay *r, struct flow *f, int from, int to)
{
	enum moved m = MOVED_ALL;

	for (int i = 0; i < ROUNDS && m == MOVED_ALL; i++) {
		if (may_read(f))
			m = take_in(r, f, from);
		if (m != MOVED_ALL)
			break;
		m = give_out(f, to);
		if (m == MOVED_BROKEN) {
			flow_abandon(r, f);
			return MOVED_ALL;
		}
		if (f->is_eof)
			break;
	}
	if (f->held == 0)
		pipe_give(r->pipes, f->pipe);
	if (f->is_eof && f->held == 0 && !f->is_shut) {
		(void)os_shut_write(to); /* it may be gone: then nobody waits for this */
		f->is_shut = true;
	}
	return m;
}

static bool finish(struct relay *r, enum relay_over why, bool is_broken)
{
	relay_stop(r);
	r->over(r, why, is_broken);
	return true;
}

/* True when it is over. */
static bool run(struct relay *r, struct flow *f)
{
	bool is_up = f == &r->up;
	enum moved m = is_up ? flow_run(r, f, r->client.watch.fd, r->server.watch.fd)
	                     : flow_run(r, f, r->server.watch.fd, r->client.watch.fd);
	enum relay_over source = is_up ? RELAY_CLIENT : RELAY_SERVER;

	if (m == MOVED_BROKEN)
		return finish(r, source, true);
	if (m == MOVED_BUDGET)
		return finish(r, RELAY_BUDGET, true);
	if (m == MOVED_REFUSED)
		return finish(r, RELAY_REFUSED, true);
	if (f->is_eof && !(is_up ? &r->down : &r->up)->is_eof)
		r->is_server_first = !is_up;
	if (r->up.is_shut && r->down.is_shut)
		return finish(r, r->is_server_first ? RELAY_SERVER : RELAY_CLIENT, false);
	return false;
}

static void settle(struct relay *r)
{
	want(r, &r->server, &r->down, &r->up);
	want(r, &r->client, &r->up, &r->down);
}

/* An end that is not read any more has something to say: it is broken. */
static bool is_gone(const struct flow *out, uint32_t events)
{
	return out->is_eof && (events & (EPOLLERR | EPOLLHUP));
}

static void client_ready(struct watch *w, uint32_t events)
{
	struct relay *r = RELAY_OF(w, client);

	if (is_gone(&r->up, events) && finish(r, RELAY_CLIENT, true))
		return;
	if (r->down.held > 0 && (events & ~(uint32_t)EPOLLIN) && run(r, &r->down))
		return;
	if (r->is_up_held && (events & ~(uint32_t)EPOLLOUT)) {
		r->knock(r);
		return;
	}
	if (may_read(&r->up) && (events & ~(uint32_t)EPOLLOUT) && run(r, &r->up))
		return;
	settle(r);
}

static void server_ready(struct watch *w, uint32_t events)
{
	struct relay *r = RELAY_OF(w, server);

	if (is_gone(&r->down, events) && finish(r, RELAY_SERVER, true))
		return;
	if (r->up.held > 0 && (events & ~(uint32_t)EPOLLIN) && run(r, &r->up))
		return;
	if (may_read(&r->down) && (events & ~(uint32_t)EPOLLOUT) && run(r, &r->down))
		return;
	settle(r);
}

static void up_paced(struct pace_wait *w)
{
	struct flow *f = (struct flow *)(void *)((char *)w - offsetof(struct flow, wait));
	struct relay *r = (struct relay *)(void *)((char *)f - offsetof(struct relay, up));

	f->is_paced = false;
	if (!run(r, f))
		settle(r);
}

static void down_paced(struct pace_wait *w)
{
	struct flow *f = (struct flow *)(void *)((char *)w - offsetof(struct flow, wait));
	struct relay *r = (struct relay *)(void *)((char *)f - offsetof(struct relay, down));

	f->is_paced = false;
	if (!run(r, f))
		settle(r);
}

void relay_start(struct relay *r)
{
	r->up.wait.wake = up_paced;
	r->down.wait.wake = down_paced;
	r->client.watch.ready = client_ready;
	r->server.watch.ready = server_ready;
	settle(r);
}

void relay_open_up(struct relay *r)
{
	r->is_up_held = false;
	if (!run(r, &r->up))
		settle(r);
}

void relay_stop(struct relay *r)
{
	relay_end_unwatch(r, &r->client);
	relay_end_unwatch(r, &r->server);
	flow_drop(r, &r->up);
	flow_drop(r, &r->down);
}
