/*
 * resolver.c - DNS for the sandbox, by UDP and TCP, at whatever address it asks.
 *
 * A name that some rule lets it reach has one synthetic address (gate/names.h); others do not
 * exist. Nothing is asked upstream, so that a question carries nothing out. What it could carry out
 * later, as a label below a wildcard that somebody else's server sees when it is connected to, is
 * bounded: so many new names in a minute.
 */
#include "base/fd.h"
#include "gate/gate-internal.h"
#include "os/unix.h"
#include "wire/dns.h"

#define TTL_S 60
#define BATCH 32
#define QUESTIONS_PER_S 2000
#define NAMES_PER_MIN 300 /* a build talks to a few dozen */
#define WINDOW_MS 10000
#define TCP_MAX 64
#define TCP_IDLE_MS 10000

/* ---- denials ------------------------------------------------------------------------- */

static struct lookup_note *find_note(struct resolver *x, const char *name)
{
	for (size_t i = 0; i < x->n_notes; i++)
		if (strcmp(x->notes[i].name, name) == 0)
			return &x->notes[i];
	return NULL;
}

static void tell(struct gate *g, struct lookup_note *n)
{
	if (n->count == 0 || !records_has_room(g))
		return;
	record_lookup(g, n);
	n->count = 0;
}

/* The first is told at once: somebody may be looking. */
static void note(struct gate *g, const char *name, enum gate_reason why)
{
	struct resolver *x = &g->resolver;
	struct lookup_note *n = find_note(x, name);

	if (!x->window.at_ms)
		timer_set(&g->timers, &x->window, WINDOW_MS);
	if (!n && x->n_notes == LOOKUPS_MAX) {
		x->n_more++;
		return;
	}
	if (n) {
		n->count++;
		return;
	}
	n = &x->notes[x->n_notes++];
	*n = (struct lookup_note){ .count = 1, .reason = why };
	snprintf(n->name, sizeof n->name, "%s", name);
	tell(g, n);
}

static void window_over(struct timer *t)
{
	struct gate *g = OWNER_OF(t, struct gate, resolver.window);
	struct resolver *x = &g->resolver;
	struct lookup_note more = { .count = x->n_more, .reason = GATE_NO_RULE };

	for (size_t i = 0; i < x->n_notes; i++)
		tell(g, &x->notes[i]);
	x->n_notes = 0;
	if (x->n_more > 0)
		tell(g, &more);
	x->n_more = more.count;
	if (x->n_more > 0)
		timer_set(&g->timers, t, WINDOW_MS);
}

/* ---- answers ------------------------------------------------------------------------- */

static int deny(struct gate *g, const char *name, enum gate_reason why, int rcode)
{
	note(g, name, why);
	return rcode;
}

/* An rcode; *has_address: and `a` is the answer. */
static int resolve(struct gate *g, const struct dns_query *q, uint8_t a[4], bool *has_address)
{
	struct question ask = { .stage = STAGE_LOOKUP, .name = q->name };

	if (q->class != DNS_IN)
		return DNS_REFUSED;
	if (!q->is_name_ok)
		return deny(g, "", GATE_NAME_BAD, DNS_NXDOMAIN);
	if (canaries_find(g->rules.canaries, span_of(q->name)))
		return deny(g, q->name, GATE_CANARY, DNS_NXDOMAIN);
	struct verdict v = rules_decide(&g->rules, &ask);

	if (v.what == VERDICT_DENY)
		return deny(g, q->name, v.reason, DNS_NXDOMAIN);
	if (q->type != DNS_A)
		return DNS_NOERROR;
	if (!names_has(&g->names, q->name) && !bucket_take(&g->resolver.names, timer_now_ms()))
		return deny(g, q->name, GATE_BUDGET, DNS_REFUSED);
	if (!names_give(&g->names, q->name, a))
		return deny(g, q->name, GATE_BUDGET, DNS_SERVFAIL);
	*has_address = true;
	return DNS_NOERROR;
}

/* The length of the answer; 0: none. */
static size_t answer(struct gate *g, const uint8_t *msg, size_t n, uint8_t out[DNS_ANSWER_MAX])
{
	static const int rcodes[] = { [DNS_MALFORMED] = DNS_FORMERR, [DNS_UNKNOWN] = DNS_NOTIMP };
	struct dns_query q = { 0 };
	enum dns_result r = dns_parse(msg, n, &q);
	uint8_t a[4];
	bool has_address = false;

	if (r == DNS_DROP)
		return 0;
	if (!bucket_take(&g->resolver.questions, timer_now_ms())) {
		note(g, "", GATE_BUDGET);
		return 0;
	}
	int rcode = r == DNS_OK ? resolve(g, &q, a, &has_address) : rcodes[r];

	return dns_print(out, &q, rcode, has_address ? a : NULL, TTL_S);
}

static void udp_take(struct gate *g, struct watch *w)
{
	static uint8_t in[DNS_QUERY_MAX];
	uint8_t out[DNS_ANSWER_MAX];

	for (int i = 0; i < BATCH; i++) {
		struct os_datagram d;
		int n = os_recv_datagram(w->fd, in, sizeof in, &d);

		if (n == -EAGAIN)
			return;
		size_t len = n > 0 ? answer(g, in, (size_t)n, out) : 0;

		if (len > 0) /* one that is lost is asked for again */
			(void)os_answer_datagram(w->fd, out, len, &d);
	}
}

static void udp4_ready(struct watch *w, uint32_t events)
{
	(void)events;
	udp_take(OWNER_OF(w, struct gate, resolver.udp[0]), w);
}

static void udp6_ready(struct watch *w, uint32_t events)
{
	(void)events;
	udp_take(OWNER_OF(w, struct gate, resolver.udp[1]), w);
}

/* ---- TCP ----------------------------------------------------------------------------- */

struct dns_conn {
	struct watch watch;
	struct gate *gate;
	struct dns_conn *next, **link;
	struct timer idle;
	size_t len;
	uint8_t in[2 + DNS_QUERY_MAX];
};

static void tcp_close(struct dns_conn *x)
{
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	x->gate->resolver.n_conns--;
	loop_remove(&x->gate->loop, &x->watch);
	timer_stop(&x->gate->timers, &x->idle);
	fd_close(&x->watch.fd);
	free(x);
}

static void tcp_idle(struct timer *t)
{
	tcp_close(OWNER_OF(t, struct dns_conn, idle));
}

/* Answers are short: a client that does not take one has gone. */
static bool tcp_say(const struct dns_conn *x, const uint8_t *out, size_t n)
{
	uint8_t head[2] = { (uint8_t)(n >> 8), (uint8_t)n };
	struct iovec iov[] = { { head, 2 }, { (void *)(uintptr_t)out, n } };

	return os_sendv(x->watch.fd, iov, 2) == (int)n + 2;
}

/* False: this one is not worth another word. */
static bool tcp_answer(struct dns_conn *x)
{
	uint8_t out[DNS_ANSWER_MAX];
	size_t at = 0;

	while (x->len - at >= 2) {
		size_t want = (size_t)x->in[at] << 8 | x->in[at + 1];

		if (want > DNS_QUERY_MAX)
			return false;
		if (x->len - at - 2 < want)
			break;
		size_t n = answer(x->gate, x->in + at + 2, want, out);

		if (n == 0 || !tcp_say(x, out, n))
			return false;
		at += 2 + want;
	}
	memmove(x->in, x->in + at, x->len - at);
	x->len -= at;
	return true;
}

static void tcp_ready(struct watch *w, uint32_t events)
{
	struct dns_conn *x = OWNER_OF(w, struct dns_conn, watch);
	int n = os_recv_some(w->fd, x->in + x->len, sizeof x->in - x->len);

	(void)events;
	if (n == -EAGAIN)
		return;
	x->len += n > 0 ? (size_t)n : 0;
	if (n <= 0 || !tcp_answer(x))
		tcp_close(x);
	else
		timer_set(&x->gate->timers, &x->idle, TCP_IDLE_MS);
}

void resolver_accept(struct gate *g, int fd)
{
	struct resolver *r = &g->resolver;

	if (r->n_conns >= TCP_MAX) {
		fd_close(&fd);
		return;
	}
	struct dns_conn *x = mem_alloc(sizeof *x);

	*x = (struct dns_conn){ .watch = { .fd = fd, .ready = tcp_ready },
		                .gate = g,
		                .next = r->conns,
		                .link = &r->conns,
		                .idle = { .fired = tcp_idle } };
	if (r->conns)
		r->conns->link = &x->next;
	r->conns = x;
	r->n_conns++;
	timer_set(&g->timers, &x->idle, TCP_IDLE_MS);
	if (loop_add(&g->loop, &x->watch, EPOLLIN) < 0)
		tcp_close(x);
}

/* ---- life ---------------------------------------------------------------------------- */

int resolver_start(struct gate *g, const int fds[2])
{
	struct resolver *x = &g->resolver;
	int r = 0;

	x->window.fired = window_over;
	bucket_set(&x->questions, QUESTIONS_PER_S, 1000);
	bucket_set(&x->names, NAMES_PER_MIN, 60000);
	for (int i = 0; i < 2; i++)
		x->udp[i] = (struct watch){ .fd = fds[i], .ready = i ? udp6_ready : udp4_ready };
	for (int i = 0; i < 2 && r >= 0; i++)
		r = loop_add(&g->loop, &x->udp[i], EPOLLIN);
	return r < 0 ? r : 0;
}

void resolver_done(struct gate *g)
{
	for (struct dns_conn *x = g->resolver.conns, *next; x; x = next) {
		next = x->next;
		tcp_close(x);
	}
	timer_stop(&g->timers, &g->resolver.window);
	for (int i = 0; i < 2; i++)
		fd_close(&g->resolver.udp[i].fd);
}
