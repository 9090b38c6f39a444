#include "gate/dial.h"

#include <arpa/inet.h>

#include "base/fd.h"
#include "gate/proxy.h"
#include "os/net.h"
#include "os/unix.h"

#define TRIES_MAX 8
#define STAGGER_MS 250 /* RFC 8305, 8 */
#define DIAL_MS 20000  /* all of it */

#define OWNER_OF(at, type, member) ((type *)(void *)((char *)(at)-offsetof(type, member)))

struct
try {
	struct watch watch; /* fd -1: none */
	struct dial *dial;
	struct rules_addr to;
};

struct dial {
	const struct dialer *x;
	dial_done *done;
	void *owner;
	const char *name;
	struct rules_addr to, real;
	struct lookup_wait wait;
	struct lookup_answer left; /* that were not tried yet, from `next` on */
	size_t next, n_tries;
	struct try tries[TRIES_MAX];
	struct timer stagger, deadline;
	struct proxy proxy;
	enum gate_reason why;
};

/* ---- ends ---------------------------------------------------------------------------- */

static void stop(struct dial *d)
{
	lookup_leave(&d->wait);
	timer_stop(d->x->timers, &d->stagger);
	timer_stop(d->x->timers, &d->deadline);
	for (size_t i = 0; i < d->n_tries; i++) {
		if (d->tries[i].watch.fd >= 0)
			loop_remove(d->x->loop, &d->tries[i].watch);
		fd_close(&d->tries[i].watch.fd);
	}
	proxy_stop(&d->proxy);
}

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	stop(d);
	free(d);
}

static void finish(struct dial *d, int fd)
{
	dial_done *done = d->done;
	void *owner = d->owner;
	enum gate_reason why = d->why;
	struct rules_addr real = d->real;

	dial_cancel(d);
	done(owner, fd, fd < 0 ? why : GATE_NONE, &real);
}

static void too_late(struct timer *t)
{
	finish(OWNER_OF(t, struct dial, deadline), -1);
}

/* Not now: whoever dials does not expect to be told before dial_start() has returned. */
static void fail(struct dial *d, enum gate_reason why)
{
	d->why = why;
	timer_set(d->x->timers, &d->deadline, 0);
}

/* ---- connecting ---------------------------------------------------------------------- */

static void proxied(void *owner, int fd)
{
	finish(owner, fd);
}

static void connected(struct dial *d, struct try *t)
{
	int fd = fd_take(&t->watch.fd);
	const struct rules *rules = d->x->rules;

	d->real = t->to;
	if (rules->proxy == PROXY_NONE) {
		finish(d, fd);
		return;
	}
	/* The others are of no use any more; the deadline stays. */
	d->next = d->left.n;
	timer_stop(d->x->timers, &d->stagger);
	for (size_t i = 0; i < d->n_tries; i++) {
		if (d->tries[i].watch.fd >= 0)
			loop_remove(d->x->loop, &d->tries[i].watch);
		fd_close(&d->tries[i].watch.fd);
	}
	d->proxy = (struct proxy){ .loop = d->x->loop,
		                   .is_socks = rules->proxy == PROXY_SOCKS5,
		                   .name = d->name,
		                   .to = d->to,
		                   .done = proxied,
		                   .owner = d };
	proxy_start(&d->proxy, fd);
}

static bool is_trying(const struct dial *d)
{
	for (size_t i = 0; i < d->n_tries; i++)
		if (d->tries[i].watch.fd >= 0)
			return true;
	return false;
}

static void try_next(struct dial *d);

static void try_ready(struct watch *w, uint32_t events)
{
	struct try *t = OWNER_OF(w, struct try, watch);
	struct dial *d = t->dial;

	(void)events;
	loop_remove(d->x->loop, w);
	if (os_socket_option(w->fd, SO_ERROR) == 0) {
		connected(d, t);
		return;
	}
	fd_close(&w->fd);
	try_next(d);
}

static union os_address address_of(const struct rules_addr *a)
{
	union os_address out = { .v6 = { 0 } };

	if (a->is_v6) {
		out.v6 =
		    (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(a->port) };
		memcpy(&out.v6.sin6_addr, a->at, 16);
	} else {
		out.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(a->port) };
		memcpy(&out.v4.sin_addr, a->at, 4);
	}
	return out;
}

struct rules_addr rules_addr_of(const union os_address *a)
{
	struct rules_addr out = { .is_v6 = a->any.sa_family == AF_INET6 };

	out.port = ntohs(out.is_v6 ? a->v6.sin6_port : a->v4.sin_port);
	if (out.is_v6)
		memcpy(out.at, &a->v6.sin6_addr, 16);
	else
		memcpy(out.at, &a->v4.sin_addr, 4);
	return out;
}

/* False: this one fails at once. */
static bool try_one(struct dial *d, const struct rules_addr *to)
{
	union os_address a = address_of(to);
	AUTO(fd_close) int fd = os_connect_tcp(&a);

	d->real = *to;
	if (fd < 0)
		return false;
	struct try *t = &d->tries[d->n_tries];

	*t = (struct try){ .watch = { .fd = fd, .ready = try_ready }, .dial = d, .to = *to };
	if (loop_add(d->x->loop, &t->watch, EPOLLOUT) < 0)
		return false;
	d->n_tries++;
	(void)fd_take(&fd);
	return true;
}

static void try_next(struct dial *d)
{
	while (d->next < d->left.n && d->n_tries < TRIES_MAX) {
		if (!try_one(d, &d->left.at[d->next++]))
			continue;
		if (d->next < d->left.n)
			timer_set(d->x->timers, &d->stagger, STAGGER_MS);
		return;
	}
	if (!is_trying(d))
		fail(d, GATE_UNREACHABLE);
}

static void staggered(struct timer *t)
{
	try_next(OWNER_OF(t, struct dial, stagger));
}

/* ---- which addresses ----------------------------------------------------------------- */

/* Of the operator's own proxy every address is right. A name that leads to public addresses and to
 * some that nobody outside could mean is one that somebody has arranged: none of them is dialled.
 */
static void filter(struct dial *d, const struct lookup_answer *a)
{
	enum gate_reason why = GATE_UNRESOLVED;
	bool is_mixed = false;

	d->left.n = 0;
	for (size_t i = 0; i < a->n; i++) {
		struct rules_addr to = a->at[i];
		enum gate_reason no = GATE_NONE;

		to.port = d->x->rules->proxy == PROXY_NONE ? d->to.port : d->x->rules->proxy_port;
		if (d->x->rules->proxy != PROXY_NONE || rules_may_dial(d->x->rules, &to, &no)) {
			d->left.at[d->left.n++] = to;
			continue;
		}
		is_mixed |= no == GATE_SPECIAL || no == GATE_METADATA;
		why = why == GATE_METADATA ? why : no;
	}
	d->why = GATE_UNREACHABLE;
	if (d->left.n > 0 && !is_mixed)
		try_next(d);
	else
		fail(d, why);
}

static void looked_up(struct lookup_wait *w, const struct lookup_answer *a)
{
	filter(OWNER_OF(w, struct dial, wait), a);
}

/* The address that a text is, or nothing. */
static bool read_literal(const char *text, struct lookup_answer *out)
{
	struct rules_addr *a = &out->at[0];

	*out = (struct lookup_answer){ .n = 1 };
	if (inet_pton(AF_INET, text, a->at) == 1)
		return true;
	a->is_v6 = true;
	return inet_pton(AF_INET6, text, a->at) == 1;
}

static void find_addresses(struct dial *d)
{
	const struct rules *rules = d->x->rules;
	const char *name = rules->proxy == PROXY_NONE ? d->name : rules->proxy_host;
	struct lookup_answer a = { .n = 1, .at = { d->to } };
	enum gate_reason why;

	/* What the client named by its address is judged here, whoever connects. */
	if (!d->name && !rules_may_dial(rules, &d->to, &why)) {
		fail(d, why);
		return;
	}
	if (name && !read_literal(name, &a) && !lookup(d->x->lookups, name, &d->wait, &a))
		return;
	filter(d, &a);
}

struct dial *dial_start(const struct dialer *x, const struct dial_to *to, dial_done *done,
                        void *owner)
{
	struct dial *d = mem_alloc(sizeof *d);

	*d = (struct dial){ .x = x,
		            .done = done,
		            .owner = owner,
		            .name = to->name,
		            .to = to->to,
		            .wait = { .done = looked_up },
		            .stagger = { .fired = staggered },
		            .deadline = { .fired = too_late },
		            .proxy = { .watch = { .fd = -1 } },
		            .why = GATE_UNRESOLVED };
	timer_set(x->timers, &d->deadline, DIAL_MS);
	find_addresses(d);
	return d;
}
