#include "gate/leg.h"

#include "os/net.h"

#define OUT_MAX (16u << 20)          /* LEG_FULL, what one read can become, a body that was held */
#define SECRET_ROOM (4ul * LEG_FULL) /* a head, what may be unsent behind it, one read more */
#define IN_MAX (2u << 20)            /* whoever fills stops long before: WEBPEEK_MAX, one read */

static void count_held(struct leg *l)
{
	size_t now = l->in.cap + l->out.cap;

	l->legs->held += now - l->held;
	l->held = now;
}

static void drop_in(struct leg *l)
{
	(l->is_private ? str_wipe : str_done)(&l->in);
	l->in_from = 0;
}

static void drop_out(struct leg *l)
{
	(l->has_secret ? str_wipe : str_done)(&l->out);
	l->has_secret = false;
	l->out_from = 0;
}

void leg_done(struct leg *l)
{
	tls_free(l->tls);
	l->tls = NULL;
	pace_leave(&l->wait);
	l->is_paced = false;
	drop_in(l);
	drop_out(l);
	count_held(l);
	l->is_readable = l->is_broken = false;
	l->is_eof = l->is_deaf = true;
}

void leg_heard(struct leg *l, uint32_t events)
{
	bool is_broken = events & (EPOLLERR | EPOLLHUP);

	l->is_readable |= (events & (EPOLLIN | EPOLLRDHUP)) || is_broken;
	if ((events & EPOLLOUT) || is_broken)
		l->is_blocked = false;
	if (is_broken && l->is_eof)
		l->is_broken = true; /* it has ended before: this is something else */
}

/* A side that has to wait is not watched, since its breaking would be told again and again. */
void leg_watch(struct relay *r, struct leg *l, bool may_read)
{
	bool shakes = l->tls && !l->is_shaken;
	uint32_t events = (may_read || shakes) && !l->is_eof && !l->is_paced ? EPOLLIN : 0;

	count_held(l);
	if ((leg_unsent(l) > 0 && !shakes) || (l->tls && tls_read_wants_write(l->tls)))
		events |= EPOLLOUT;
	if (events == 0 && !l->is_eof)
		relay_end_unwatch(r, l->end);
	else
		relay_end_watch(r, l->end, events);
}

/* ---- reading ------------------------------------------------------------------------- */

/* True when there is nothing to wait for. */
static bool shake(struct leg *l)
{
	if (!l->tls || l->is_shaken)
		return true;
	int r = tls_shake(l->tls);

	l->is_shaken = r > 0;
	l->is_readable = r > 0;
	if (r < 0 && r != -EAGAIN)
		l->is_broken = true;
	return l->is_shaken;
}

static size_t allowance(const struct leg *l, size_t most)
{
	uint64_t left = *l->meter->used < l->meter->max ? l->meter->max - *l->meter->used : 0;

	return left < most ? (size_t)left : most;
}

static void count(struct leg *l, size_t n)
{
	*l->meter->used += n;
	l->flow->bytes += n;
	if (l->meter->pace)
		pace_took(l->meter->pace, n);
}

void leg_turn(struct leg *l)
{
	l->is_paced = false;
	l->is_readable = true;
}

bool leg_fill(struct leg *l)
{
	static char buf[LEG_FULL];
	size_t most = allowance(l, leg_most(l));

	if (!l->is_readable || l->is_eof || l->is_broken || l->is_paced || !shake(l))
		return l->is_broken;
	if (most == 0) {
		l->is_over_budget = l->is_broken = true;
		return true;
	}
	if (l->meter->pace)
		most = pace_allows(l->meter->pace, &l->wait, most);
	l->is_paced = most == 0;
	if (l->is_paced)
		return false;
	int n = l->tls ? tls_read(l->tls, buf, most) : os_recv_some(l->end->watch.fd, buf, most);

	/* A socket that gave less than it was asked for is empty; the loop tells when not. */
	l->is_readable = n > 0 && (l->tls || (size_t)n == most);
	if (n == -EAGAIN)
		return false;
	l->is_eof = n == 0;
	l->is_broken = n < 0;
	if (n > 0) {
		count(l, (size_t)n);
		if (l->in_from > 0)
			memmove(l->in.data, l->in.data + l->in_from, l->in.len - l->in_from);
		l->in.len -= l->in_from;
		l->in_from = 0;
		l->in.max = IN_MAX;
		if (l->is_private && l->in.cap == 0)
			str_room(&l->in, 2ul * LEG_FULL); /* moved, it would be there twice */
		str_addn(&l->in, buf, (size_t)n);
		if (l->is_private)
			explicit_bzero(buf, (size_t)n);
	}
	return true;
}

void leg_take(struct leg *l, size_t n)
{
	l->in_from += n;
	if (l->in_from == l->in.len)
		drop_in(l);
}

/* ---- writing ------------------------------------------------------------------------- */

struct str *leg_out(struct leg *l)
{
	if (l->out_from > 0) {
		l->out.len -= l->out_from;
		memmove(l->out.data, l->out.data + l->out_from, l->out.len);
		l->out_from = 0;
	}
	l->out.max = OUT_MAX;
	return &l->out;
}

void leg_keep_secret(struct leg *l)
{
	l->has_secret = true;
	str_room(leg_out(l), SECRET_ROOM);
}

static int put(struct leg *l)
{
	struct iovec iov = { l->out.data + l->out_from, leg_unsent(l) };

	return l->tls ? tls_write(l->tls, iov.iov_base, iov.iov_len)
	              : os_sendv(l->end->watch.fd, &iov, 1);
}

bool leg_flush(struct leg *l)
{
	bool has_moved = false;

	while (leg_unsent(l) > 0 && !l->is_blocked && !l->is_broken && !l->is_deaf) {
		if (l->tls && !l->is_shaken) {
			l->is_readable = true; /* a handshake waits for either */
			if (!shake(l))
				break;
		}
		int n = put(l);

		l->is_blocked = n == -EAGAIN;
		l->is_deaf = n < 0 && n != -EAGAIN;
		l->out_from += n > 0 ? (size_t)n : 0;
		has_moved |= n > 0;
	}
	if (leg_unsent(l) == 0 || l->is_broken || l->is_deaf)
		drop_out(l);
	return has_moved;
}

void leg_shut(struct leg *l)
{
	if (l->is_shut)
		return;
	l->is_shut = true;
	if (l->tls)
		tls_say_end(l->tls);
	(void)os_shut_write(l->end->watch.fd); /* a peer that has left does not miss it */
}
