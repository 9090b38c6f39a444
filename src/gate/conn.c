/*
 * conn.c - one connection of the sandbox, from its arrival to its end.
 *
 *   accept ─ who is meant ─▷ judge ─▷ sniff ─▷ judge ─▷ dial ─▷ relay
 *                              │ ask                 (or, behind the first bytes, http.c)
 *                              ▽
 *                            held ─▷ judge
 *
 * The destination is a name when its address was given to one, else an address. The first bytes are
 * looked at and left in the socket. A client that waits for the server's first word (SMTP, MySQL)
 * gets its server when the rules allow it to speak what it wants, and is judged when it speaks.
 */
#include "base/fd.h"
#include "gate/gate-internal.h"
#include "gate/hello.h"
#include "gate/web.h"
#include "os/net.h"
#include "wire/sniff.h"

#define DNS_PORT 53
#define ACCEPT_BATCH 32
#define SILENT_MS 300     /* then it waits for the server, if that may be */
#define PATIENCE_MS 10000 /* for first bytes that mean something */
#define PAUSE_MS 100
#define SPOOL_MS 1000 /* for records to be taken; then nobody is there who would */

/* ---- ends ---------------------------------------------------------------------------- */

static void conn_free(struct conn *c)
{
	struct gate *g = c->gate;

	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	g->n_conns--;
	if (c->dial || c->relay.server.watch.fd >= 0)
		g->last_cut_ms = timer_now_ms();
	asks_leave(c);
	dial_cancel(c->dial);
	web_free(c->web);
	timer_stop(&g->timers, &c->timer);
	relay_stop(&c->relay);
	fd_close(&c->relay.client.watch.fd);
	fd_close(&c->relay.server.watch.fd);
	free(c->rule);
	free(c->sni);
	free(c->alpn);
	free(c->canary);
	free(c);
}

void conn_deny(struct conn *c, enum gate_decision d, enum gate_reason why)
{
	(void)os_reset_on_close(c->relay.client.watch.fd); /* an end is almost as good */
	if (c->relay.server.watch.fd >= 0)
		(void)os_reset_on_close(c->relay.server.watch.fd);
	record_closed(c, d, why, BY_GATE);
	conn_free(c);
}

void conn_close(struct conn *c, enum gate_decision d, enum gate_reason why, enum conn_by by)
{
	record_closed(c, d, why, by);
	conn_free(c);
}

void conn_end(struct conn *c, enum gate_reason why, enum conn_by by)
{
	enum gate_decision allowed = c->is_answered ? GATE_ASKED_ALLOW : GATE_ALLOW;

	conn_close(c, c->state == CONN_HELD ? GATE_ASKED_DENY : allowed, why, by);
}

/* ---- judging ------------------------------------------------------------------------- */

struct question conn_question(const struct conn *c, enum rules_stage stage)
{
	return (struct question){ .stage = stage,
		                  .name = c->name,
		                  .to = c->to,
		                  .is_answered = c->is_answered,
		                  .proto = c->proto };
}

struct verdict conn_decide(struct conn *c, const struct question *q)
{
	struct verdict v = rules_decide(&c->gate->rules, q);

	free(c->rule);
	c->rule = v.rule[0] ? mem_strdup(v.rule) : NULL;
	c->generation = c->gate->generation;
	return v;
}

bool conn_sings(struct conn *c, struct canary_scan *s, struct span bytes)
{
	const char *name = canaries_look(c->gate->rules.canaries, s, bytes);

	if (name && !c->canary)
		c->canary = mem_strdup(name);
	return name;
}

/* ---- relay --------------------------------------------------------------------------- */

static void over(struct relay *r, enum relay_over why, bool is_broken)
{
	static const struct {
		enum conn_by by;
		enum gate_reason reason;
	} ends[] = {
		[RELAY_CLIENT] = { BY_CLIENT, GATE_NONE },
		[RELAY_SERVER] = { BY_SERVER, GATE_NONE },
		[RELAY_BUDGET] = { BY_GATE, GATE_BUDGET },
		[RELAY_REFUSED] = { BY_GATE, GATE_CANARY },
	};
	struct conn *c = OWNER_OF(r, struct conn, relay);

	if (is_broken) {
		(void)os_reset_on_close(r->client.watch.fd);
		(void)os_reset_on_close(r->server.watch.fd);
	}
	if (why == RELAY_REFUSED)
		conn_close(c, GATE_DENY, ends[why].reason, ends[why].by);
	else
		conn_end(c, ends[why].reason, ends[why].by);
}

static bool refuses(struct relay *r, struct span bytes)
{
	struct conn *c = OWNER_OF(r, struct conn, relay);

	return conn_sings(c, &c->scan, bytes);
}

static void judge_bytes(struct conn *c, uint32_t events);

static void knock(struct relay *r)
{
	judge_bytes(OWNER_OF(r, struct conn, relay), EPOLLIN);
}

static void dialled(void *owner, int fd, enum gate_reason why, const struct rules_addr *real)
{
	struct conn *c = owner;

	c->dial = NULL;
	if (real->port > 0)
		c->real = *real;
	if (c->web) {
		web_dialled(c, fd, why);
		return;
	}
	if (fd < 0) {
		bool is_denied = why == GATE_SPECIAL || why == GATE_METADATA || why == GATE_RULE;

		conn_deny(c,
		          is_denied        ? GATE_DENY
		          : c->is_answered ? GATE_ASKED_ALLOW
		                           : GATE_ALLOW,
		          why);
		return;
	}
	c->state = CONN_RELAY;
	c->relay.server.watch.fd = fd;
	record_opened(c);
	relay_start(&c->relay);
}

/* While nobody reads from the client only its breaking is heard. */
static void broken(struct watch *w, uint32_t events)
{
	(void)events;
	conn_end(OWNER_OF(w, struct conn, relay.client.watch), GATE_NONE, BY_CLIENT);
}

void conn_dial(struct conn *c)
{
	const struct dial_to to = { c->name, c->to };

	c->dial = dial_start(&c->gate->dialer, &to, dialled, c);
}

static void dial_for_relay(struct conn *c)
{
	timer_stop(&c->gate->timers, &c->timer);
	c->state = CONN_DIAL;
	c->relay.client.watch.ready = broken;
	relay_end_watch(&c->relay, &c->relay.client, 0);
	conn_dial(c);
}

/* ---- first bytes --------------------------------------------------------------------- */

static void go_on(struct conn *c)
{
	if (c->state == CONN_RELAY) {
		timer_stop(&c->gate->timers, &c->timer);
		relay_open_up(&c->relay);
	} else {
		dial_for_relay(c);
	}
}

/* A server that has spoken first speaks something else. */
static bool has_heard(const struct conn *c)
{
	return c->relay.down.bytes > 0;
}

/* Of a name, and TLS: the rules see to both. The hello is still in the socket. */
static void terminate(struct conn *c)
{
	struct ends *x = &c->gate->ends;
	struct tls *tls = x->ca ? ends_accept(x, c->relay.client.watch.fd, c->name) : NULL;

	c->is_terminated = true;
	if (!tls || has_heard(c) || c->gate->n_ended >= ENDED_MAX) {
		tls_free(tls);
		conn_deny(c, GATE_DENY,
		          !tls           ? GATE_TLS
		          : has_heard(c) ? GATE_PROTOCOL
		                         : GATE_BUDGET);
		return;
	}
	relay_stop(&c->relay);
	web_start(c, tls);
}

static void decide(struct conn *c, enum gate_proto proto, const struct said *said)
{
	struct question q = conn_question(c, STAGE_BYTES);

	c->proto = (uint8_t)proto;
	q.proto = proto;
	q.said = *said;
	struct verdict v = conn_decide(c, &q);

	if (v.what != VERDICT_ALLOW)
		conn_deny(c, GATE_DENY, v.reason);
	else if (v.is_terminated)
		terminate(c);
	else {
		if (proto == GATE_PROTO_TCP && c->gate->rules.canaries)
			c->relay.refuses = refuses;
		go_on(c);
	}
}

static void keep(char **at, const char *text)
{
	free(*at);
	*at = text[0] ? mem_strdup(text) : NULL;
}

/* It has begun to speak; one deadline for all that it says first. */
static void be_patient(struct conn *c)
{
	if (c->is_patient && c->timer.at_ms)
		return;
	c->is_patient = true;
	timer_set(&c->gate->timers, &c->timer, PATIENCE_MS);
}

static void judge_tls(struct conn *c, const uint8_t *in, size_t n)
{
	struct hello h;
	enum hello_result r = hello_read(in, n, &h);

	if (r == HELLO_MORE) {
		be_patient(c);
		return;
	}
	if (r == HELLO_BAD) {
		c->proto = GATE_PROTO_TLS;
		conn_deny(c, GATE_DENY, GATE_TLS);
		return;
	}
	keep(&c->sni, h.sni.name);
	keep(&c->alpn, h.alpn);
	c->proto = GATE_PROTO_TLS;
	if (conn_sings(c, &(struct canary_scan){ 0 }, (struct span){ (const char *)in, n })) {
		conn_deny(c, GATE_DENY, GATE_CANARY);
		return;
	}
	decide(c, GATE_PROTO_TLS, &h.sni);
}

/* Every request is judged. */
static void judge_http(struct conn *c)
{
	c->proto = GATE_PROTO_HTTP;
	if (has_heard(c)) {
		conn_deny(c, GATE_DENY, GATE_PROTOCOL);
		return;
	}
	relay_stop(&c->relay);
	web_start(c, NULL);
}

static void judge_bytes(struct conn *c, uint32_t events)
{
	static uint8_t in[HELLO_BYTES_MAX];
	static const struct said nothing = { .kind = SAID_NOTHING };
	int n = os_peek(c->relay.client.watch.fd, in, sizeof in);

	if (n == -EAGAIN)
		return;
	if (n == 0 && c->state == CONN_RELAY) { /* it only listens */
		decide(c, GATE_PROTO_TCP, &nothing);
		return;
	}
	if (n <= 0) {
		conn_end(c, n == 0 ? GATE_SILENT : GATE_NONE, BY_CLIENT);
		return;
	}
	enum sniff kind = sniff(in, (size_t)n);

	if (kind == SNIFF_MORE && (events & EPOLLRDHUP))
		kind = SNIFF_OTHER; /* that was all */
	switch (kind) {
	case SNIFF_MORE:
		be_patient(c);
		break;
	case SNIFF_TLS:
		judge_tls(c, in, (size_t)n);
		break;
	case SNIFF_HTTP:
		judge_http(c);
		break;
	case SNIFF_SSH:
		decide(c, GATE_PROTO_SSH, &nothing);
		break;
	case SNIFF_OTHER:
		decide(c, GATE_PROTO_TCP, &nothing);
		break;
	}
}

static void sniff_ready(struct watch *w, uint32_t events)
{
	judge_bytes(OWNER_OF(w, struct conn, relay.client.watch), events);
}

/* Nothing came. If it may speak whatever it likes, it may be waiting for the server; once it speaks
 * it is judged all the same. */
static void silent(struct timer *t)
{
	struct conn *c = OWNER_OF(t, struct conn, timer);
	struct question q = conn_question(c, STAGE_BYTES);

	q.proto = GATE_PROTO_TCP;
	if (c->is_patient) {
		conn_deny(c, GATE_DENY, GATE_SILENT);
		return;
	}
	c->is_patient = true;
	struct verdict v = rules_decide(&c->gate->rules, &q);

	if (v.what != VERDICT_ALLOW || v.is_terminated || v.mock) {
		timer_set(&c->gate->timers, t, PATIENCE_MS);
		return;
	}
	c->relay.is_up_held = true;
	c->proto = GATE_PROTO_TCP;
	dial_for_relay(c);
}

static void sniff_start(struct conn *c)
{
	c->state = CONN_SNIFF;
	c->relay.client.watch.ready = sniff_ready;
	/* Bytes that are only looked at stay readable: told once for all that arrives. */
	relay_end_watch(&c->relay, &c->relay.client, EPOLLIN | EPOLLRDHUP | EPOLLET);
	timer_set(&c->gate->timers, &c->timer, SILENT_MS);
}

void conn_judge(struct conn *c)
{
	struct question q = conn_question(c, STAGE_CONNECT);
	struct verdict v = conn_decide(c, &q);

	switch (v.what) {
	case VERDICT_DENY:
		conn_deny(c, GATE_DENY, v.reason);
		break;
	case VERDICT_ASK:
		asks_hold(c, &v);
		break;
	case VERDICT_ALLOW:
		sniff_start(c);
		break;
	}
}

/* ---- new rules ----------------------------------------------------------------------- */

static bool is_still_allowed(struct conn *c)
{
	bool has_spoken = c->state != CONN_SNIFF;
	struct question q = conn_question(c, has_spoken ? STAGE_BYTES : STAGE_CONNECT);
	enum gate_reason why;

	if (c->proto == GATE_PROTO_HTTP && c->name)
		q.said = said_sni(c->name, strlen(c->name)); /* as each request had to say */
	else if (c->sni)
		q.said = said_sni(c->sni, strlen(c->sni));
	struct verdict v = rules_decide(&c->gate->rules, &q);

	if (v.what != VERDICT_ALLOW || (v.mock && c->relay.server.watch.fd >= 0) ||
	    (has_spoken && v.is_terminated && !c->web) || (c->is_terminated && !v.is_terminated))
		return false;
	return !c->is_opened || c->real.port == 0 || c->gate->rules.proxy != PROXY_NONE ||
	       rules_may_dial(&c->gate->rules, &c->real, &why);
}

bool conn_rejudge(struct conn *c)
{
	if (c->state == CONN_HELD) {
		struct question q = conn_question(c, STAGE_CONNECT);

		if (rules_decide(&c->gate->rules, &q).what == VERDICT_ASK)
			return true;
		asks_leave(c);
		conn_judge(c);
		return true;
	}
	if (!is_still_allowed(c)) {
		conn_deny(c, c->is_opened ? GATE_ALLOW : GATE_DENY, GATE_RELOADED);
		return false;
	}
	if (c->dial) { /* to an address that may be denied now */
		dial_cancel(c->dial);
		conn_dial(c);
	}
	return true;
}

/* ---- arrival ------------------------------------------------------------------------- */

static struct conn *conn_new(struct gate *g, int fd, const struct rules_addr *to)
{
	struct conn *c = mem_alloc(sizeof *c);

	*c = (struct conn){
		.relay = { .client = { .watch = { .fd = fd } },
		           .server = { .watch = { .fd = -1 } },
		           .loop = &g->loop,
		           .pipes = &g->pipes,
		           .meters = g->meters,
		           .over = over,
		           .knock = knock },
		.gate = g,
		.next = g->conns,
		.link = &g->conns,
		.timer = { .fired = silent },
		.name = to->is_v6 ? NULL : names_find(&g->names, to->at),
		.to = *to,
		.seq = names_next_seq(&g->names),
		.since_ms = timer_now_ms(),
		.unix_ms = gate_unix_ms(),
		.generation = g->generation,
	};
	if (g->conns)
		g->conns->link = &c->next;
	g->conns = c;
	g->n_conns++;
	return c;
}

static void arrived(struct gate *g, int fd, const struct rules_addr *to, uint16_t src_port)
{
	if (to->port == DNS_PORT) {
		resolver_accept(g, fd);
		return;
	}
	struct conn *c = conn_new(g, fd, to);

	c->src_port = src_port;
	if (!records_has_room(g))
		conn_deny(c, GATE_DENY, GATE_SPOOL);
	else if (g->n_conns > g->n_conns_max || !bucket_take(&g->connections, c->since_ms))
		conn_deny(c, GATE_DENY, GATE_BUDGET);
	else
		conn_judge(c);
}

/* Who comes waits in the queue, which would be told again and again. */
static void pause_accept(struct gate *g, uint64_t ms)
{
	for (int i = 0; i < 2; i++)
		loop_remove(&g->loop, &g->tcp[i]);
	timer_set(&g->timers, &g->accept_again, ms);
}

static void accept_again(struct timer *t)
{
	struct gate *g = OWNER_OF(t, struct gate, accept_again);

	g->is_spool_full = !records_has_room(g);
	for (int i = 0; i < 2; i++)
		if (loop_add(&g->loop, &g->tcp[i], EPOLLIN) < 0)
			timer_set(&g->timers, t, PAUSE_MS);
}

void conns_credit(struct gate *g)
{
	bool is_paused = g->accept_again.at_ms > 0;

	g->is_spool_full = false;
	if (is_paused && !records_has_room(g)) {
		timer_set(&g->timers, &g->accept_again, SPOOL_MS); /* somebody is there */
	} else if (is_paused) {
		timer_stop(&g->timers, &g->accept_again);
		accept_again(&g->accept_again);
	}
}

static void take(struct gate *g, struct watch *w)
{
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		if (!records_has_room(g) && !g->is_spool_full) {
			pause_accept(g, SPOOL_MS); /* many have ended at once */
			return;
		}
		union os_address peer = { .v6 = { 0 } }, dst;
		AUTO(fd_close) int fd = os_accept_from(w->fd, &peer);

		if (fd == -EAGAIN)
			return;
		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
			pause_accept(g, PAUSE_MS); /* the host has no more of it */
			return;
		}
		if (fd < 0)
			continue;
		if (os_original_dst(fd, &dst) < 0)
			continue;
		struct rules_addr to = rules_addr_of(&dst), from = rules_addr_of(&peer);

		arrived(g, fd_take(&fd), &to, from.port);
	}
}

static void tcp4_ready(struct watch *w, uint32_t events)
{
	(void)events;
	take(OWNER_OF(w, struct gate, tcp[0]), w);
}

static void tcp6_ready(struct watch *w, uint32_t events)
{
	(void)events;
	take(OWNER_OF(w, struct gate, tcp[1]), w);
}

int conns_listen(struct gate *g, const int fds[2])
{
	int r = 0;

	g->accept_again.fired = accept_again;
	for (int i = 0; i < 2; i++)
		g->tcp[i] = (struct watch){ .fd = fds[i], .ready = i ? tcp6_ready : tcp4_ready };
	for (int i = 0; i < 2 && r >= 0; i++)
		r = loop_add(&g->loop, &g->tcp[i], EPOLLIN);
	return r < 0 ? r : 0;
}

void conns_done(struct gate *g)
{
	/* All inside are dead, or will be: nobody else tells us to end. */
	for (struct conn *c = g->conns, *next; c; c = next) {
		next = c->next;
		conn_end(c, GATE_NONE, BY_CLIENT);
	}
	for (int i = 0; i < 2; i++)
		fd_close(&g->tcp[i].fd);
	pipes_done(&g->pipes);
}
