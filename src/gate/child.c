#include "gate/child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

#include "base/fd.h"
#include "gate/gate-internal.h"
#include "gate/harden.h"
#include "gate/play.h"
#include "gate/safe.h"
#include "gate/web.h"
#include "io/journal.h"
#include "os/extent.h"
#include "os/sock.h"
#include "wire/hash.h"

#define CONNS_MAX 16384
#define CONN_FDS 2    /* sockets of one connection */
#define SPARE_FDS 512 /* pipes, lookups, DNS by TCP, a few of our own */
/* A server may find a connection in its queue, or bytes on their way, after the gate has cut it.
 * Narrower rules are acknowledged when nothing has gone out under the old ones for so long. */
#define SETTLE_MS 300

struct message {
	struct gate_packet packet;
	int fds[GATE_FDS];
	size_t n_fds;
};

int64_t gate_unix_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- saying -------------------------------------------------------------------------- */

static void watch_monitor(struct gate *g)
{
	uint32_t events = EPOLLIN | (g->records.unsaid ? EPOLLOUT : 0);

	if (loop_change(&g->loop, &g->monitor, events) < 0)
		g->loop.is_done = true; /* the next child may have more luck */
}

/* False: no room. Whoever hung up is heard as an end. */
static bool say_now(struct gate *g, const struct gate_packet *p)
{
	int r = os_send(g->monitor.fd, p, gate_size(p), NULL, 0);

	return r != -EAGAIN && r != -ENOBUFS;
}

void gate_say(struct gate *g, const struct gate_packet *p)
{
	struct records *r = &g->records;

	if (!r->unsaid && say_now(g, p))
		return;
	struct unsaid *u = mem_alloc(sizeof *u);

	u->next = NULL;
	memcpy(&u->packet, p, gate_size(p));
	*(r->unsaid ? r->unsaid_end : &r->unsaid) = u;
	r->unsaid_end = &u->next;
	watch_monitor(g);
}

static void say_more(struct gate *g)
{
	struct unsaid *u;

	while ((u = g->records.unsaid) && say_now(g, &u->packet)) {
		g->records.unsaid = u->next;
		free(u);
	}
	watch_monitor(g);
}

/* ---- rules --------------------------------------------------------------------------- */

/* Without it, whatever has to end here is denied. */
static void say_ca(struct gate *g)
{
	struct gate_packet p = { .head = { G_CA, sizeof p.ca } };
	struct err e = { 0 };

	if (g->ends.ca ||
	    (g->rules.http.len == 0 && g->rules.inspect.len == 0 && g->rules.mock.len == 0 &&
	     g->rules.headers.len == 0 && g->rules.cache.len == 0 && g->rules.creds.len == 0))
		return;
	if (ends_init(&g->ends, g->seed, g->id, &e) < 0) {
		journal(JOURNAL_ERROR, "no TLS can end here", "sandbox", g->id, "reason", e.msg,
		        NULL);
		return;
	}
	snprintf(p.ca.pem, sizeof p.ca.pem, "%s", ca_pem(g->ends.ca));
	p.ca.hash = ca_hash(g->ends.ca);
	gate_say(g, &p);
}

/* ---- secrets ---- */

int gate_open_secret(const struct gate *g, const struct cred_rule *c, uint8_t *out, struct err *e)
{
	AUTO(str_done) struct str aad = { .max = SAFE_AAD_MAX };
	AUTO(str_done) struct str sealed = { .max = SAFE_SEALED_MAX };

	secret_aad(c->tenant, c->name, c->bind_text, &aad);
	if (aad.overflow || !base64_decode(c->sealed, strlen(c->sealed), &sealed))
		return err_new(e, ERR_INVALID, "it is not sealed");
	return safe_unseal(g->safe_fd, (struct span){ aad.data, aad.len },
	                   (struct span){ str_text(&sealed), sealed.len }, out, e);
}

static int open_secret(void *arg, const struct cred_rule *c, uint8_t *out, struct err *e)
{
	return gate_open_secret(arg, c, out, e);
}

static void add_marks(struct marks *m, const struct purse_entry *e)
{
	for (size_t i = 0; i < e->n_marks && i < MARKS_EACH; i++)
		if (!marks_add(m, e->name, e->marks[i]))
			return; /* as many as can be held: more secrets than a sandbox has */
}

/* So that who does not have them can look for them. */
static void tell_marks(struct gate *g, const struct purse *purse, const uint8_t key[MARKS_KEY])
{
	static struct marks all;
	struct gate_packet p = { .head = { G_MARKS, sizeof p.marks } };

	marks_begin(&all, key);
	for (size_t i = 0; i < purse->n; i++)
		add_marks(&all, &purse->entries[i]);
	for (uint32_t i = 0; i == 0 || i < all.n_names; i++) {
		marks_tell(&all, i, &p.marks);
		gate_say(g, &p);
	}
}

/* The monitor looks at what is written inside. */
void gate_say_marks(struct gate *g)
{
	uint8_t key[MARKS_KEY];
	struct hash h;

	if (g->purse->n == 0 && !g->has_marks)
		return;
	hash_init(&h);
	hash_add(&h, span_of("marks"));
	hash_add(&h, (struct span){ (const char *)g->seed, sizeof g->seed });
	hash_bytes(&h, key);
	tell_marks(g, g->purse, key);
	g->has_marks = g->purse->n > 0;
}

/* With their secrets; at the start all of them, or not at all. */
static int take_rules(struct gate *g, const char *text, size_t n, struct err *e)
{
	AUTO(rules_done) struct rules next = { 0 };

	if (rules_read(&next, text, n, e) < 0)
		return -1;
	const struct purse_opts opts = { open_secret, g, .is_strict = !g->is_up };
	struct purse *purse = purse_new(&next, &opts, e);

	if (!purse)
		return -1;
	g->is_narrower = !rules_tightens(&next, &g->rules);
	purse_keep_tokens(purse, &next, g->purse, &g->rules);
	mints_done(g); /* who waits asks again: on_rules() */
	purse_unref(g->purse);
	g->purse = purse;
	rules_done(&g->rules);
	g->rules = next;
	next = (struct rules){ 0 };
	return 0;
}

/* Takes the descriptor when the rules hold: the package cache is shown it. */
static int read_rules(struct gate *g, int *fd, struct err *e)
{
	AUTO(freep) char *text = mem_alloc(GATE_RULES_MAX + 1);
	int n = os_pread(*fd, text, GATE_RULES_MAX + 1, 0);

	if (n < 0)
		return err_sys(e, -n, "read the rules");
	if (n > (int)GATE_RULES_MAX)
		return err_new(e, ERR_LIMIT, "the rules have more than %u bytes", GATE_RULES_MAX);
	if (take_rules(g, text, (size_t)n, e) < 0)
		return -1;
	fd_close(&g->rules_fd);
	g->rules_fd = fd_take(fd);
	rules_own(&g->rules, g->own, g->n_own);
	play_read(g);
	bucket_set(&g->connections, g->rules.rates.connections, g->rules.rates.connections_ms);
	g->meters[0].max = g->rules.rates.bytes_up ? g->rules.rates.bytes_up : UINT64_MAX;
	g->meters[1].max = g->rules.rates.bytes_down ? g->rules.rates.bytes_down : UINT64_MAX;
	pace_set(&g->paces[0], g->rules.rates.up);
	pace_set(&g->paces[1], g->rules.rates.down);
	say_ca(g);
	gate_say_marks(g);
	return 0;
}

static uint32_t judge_all(struct gate *g)
{
	uint32_t closed = 0;

	for (struct conn *c = g->conns, *next; c; c = next) {
		next = c->next;
		closed += !conn_rejudge(c);
	}
	return closed;
}

static void settled(struct timer *t)
{
	struct gate *g = OWNER_OF(t, struct gate, settle);

	gate_say(g, &g->ruled);
}

/* For how long what was cut may still arrive. */
static uint64_t settle_left_ms(const struct gate *g)
{
	uint64_t now = timer_now_ms(), until = g->last_cut_ms + SETTLE_MS;

	return g->is_up && g->is_narrower && g->last_cut_ms && until > now ? until - now : 0;
}

/* They hold, or why they do not. Said later when something that they deny may still arrive; newer
 * rules take its place then. */
static void say_ruled(struct gate *g, uint32_t generation, const struct err *why)
{
	struct gate_packet p = { .head = { G_RULED, sizeof p.ruled },
		                 .ruled = { .generation = generation, .is_refused = why != NULL } };

	if (why) {
		snprintf(p.ruled.reason, sizeof p.ruled.reason, "%s", why->msg);
		gate_plain(p.ruled.reason);
	} else {
		p.ruled.closed = judge_all(g);
	}
	uint64_t left_ms = why ? 0 : settle_left_ms(g);

	timer_stop(&g->timers, &g->settle);
	if (left_ms == 0) {
		gate_say(g, &p);
		return;
	}
	g->ruled = p;
	timer_set(&g->timers, &g->settle, left_ms);
}

static int on_rules(struct gate *g, struct message *m, struct err *e)
{
	uint32_t generation = m->packet.rules.generation;
	struct err why = { 0 };
	int r = read_rules(g, &m->fds[0], &why);

	(void)e;
	if (r == 0)
		g->generation = generation;
	say_ruled(g, generation, r < 0 ? &why : NULL);
	web_look_again(g);
	return 0;
}

/* ---- hearing ------------------------------------------------------------------------- */

static size_t conns_max(void)
{
	struct rlimit l = { .rlim_cur = 1024 };

	(void)getrlimit(RLIMIT_NOFILE, &l);
	size_t n = l.rlim_cur > SPARE_FDS ? (size_t)(l.rlim_cur - SPARE_FDS) / CONN_FDS : 0;

	return n < CONNS_MAX ? n : CONNS_MAX;
}

static int on_start(struct gate *g, struct message *m, struct err *e)
{
	static const struct gate_packet up = { .head = { G_UP, 0 } };
	int tcp[2] = { fd_take(&m->fds[GATE_TCP4]), fd_take(&m->fds[GATE_TCP6]) };
	int udp[2] = { fd_take(&m->fds[GATE_UDP4]), fd_take(&m->fds[GATE_UDP6]) };

	memcpy(g->id, m->packet.start.id, sizeof g->id);
	memcpy(g->seed, m->packet.start.seed, sizeof g->seed);
	g->generation = m->packet.start.generation;
	g->records.credit = m->packet.start.credit;
	if (names_open(&g->names, m->fds[GATE_NAMES], e) < 0)
		return -1;
	g->meters[0].used = names_bytes(&g->names, 0);
	g->meters[1].used = names_bytes(&g->names, 1);
	if (read_rules(g, &m->fds[GATE_RULES], e) < 0) {
		say_ruled(g, g->generation, e);
		return -1;
	}
	records_start(g);
	int r = resolver_start(g, udp);
	if (r >= 0)
		r = conns_listen(g, tcp);
	if (r < 0)
		return err_sys(e, -r, "listen");
	g->is_up = true;
	gate_say(g, &up);
	return 0;
}

static int on_credit(struct gate *g, struct message *m, struct err *e)
{
	(void)e;
	records_credit(g, m->packet.credit.n);
	conns_credit(g);
	return 0;
}

static int on_answer(struct gate *g, struct message *m, struct err *e)
{
	(void)e;
	asks_answer(g, &m->packet.answer);
	return 0;
}

static int on_key(struct gate *g, struct message *m, struct err *e)
{
	struct gate_packet p = { .head = { G_KEY, sizeof p.key } };

	(void)m;
	if (safe_public(g->safe_fd, p.key.key, e) < 0)
		return -1;
	gate_say(g, &p);
	return 0;
}

/* Asked by who has no sandbox: what leaves is looked at. */
static int on_look(struct gate *g, struct message *m, struct err *e)
{
	static const struct gate_packet up = { .head = { G_UP, 0 } };
	AUTO(rules_done) struct rules rules = { 0 };
	AUTO(freep) char *text = mem_alloc(GATE_RULES_MAX + 1);
	int n = os_pread(m->fds[0], text, GATE_RULES_MAX + 1, 0);

	if (n < 0)
		return err_sys(e, -n, "read the secrets");
	if (rules_read(&rules, text, (size_t)n, e) < 0)
		return -1;
	struct purse *purse = purse_new(&rules, &(struct purse_opts){ open_secret, g, false }, e);

	if (!purse)
		return -1;
	tell_marks(g, purse, m->packet.look.key);
	purse_unref(purse);
	gate_say(g, &up);
	return 0;
}

static int (*const verbs[])(struct gate *g, struct message *m, struct err *e) = {
	[G_START] = on_start,   [G_RULES] = on_rules, [G_CREDIT] = on_credit,
	[G_ANSWER] = on_answer, [G_KEY] = on_key,     [G_LOOK] = on_look,
};

static int hear_one(struct gate *g, struct message *m, size_t n, struct err *e)
{
	uint32_t type = m->packet.head.type;

	if (!gate_check(&m->packet, n, m->n_fds) || type >= COUNT(verbs) || !verbs[type] ||
	    (type == G_START || type == G_KEY || type == G_LOOK) == g->is_up)
		return err_new(e, ERR_INVALID, "the monitor says what it should not");
	return verbs[type](g, m, e);
}

struct child {
	struct gate gate; /* first */
	struct err error;
	bool has_failed;
};

static void monitor_ready(struct watch *w, uint32_t events)
{
	struct gate *g = OWNER_OF(w, struct gate, monitor);
	struct child *child = (struct child *)(void *)g;
	static struct message m;

	if (events & EPOLLOUT)
		say_more(g);
	while (!g->loop.is_done) {
		m.n_fds = GATE_FDS;
		int n = os_recv(w->fd, &m.packet, sizeof m.packet, m.fds, &m.n_fds);

		if (n == -EAGAIN)
			return;
		for (size_t i = m.n_fds; i < GATE_FDS; i++)
			m.fds[i] = -1;
		child->has_failed = n > 0 && hear_one(g, &m, (size_t)n, &child->error) < 0;
		g->loop.is_done = n <= 0 || child->has_failed;
		for (size_t i = 0; i < GATE_FDS; i++)
			fd_close(&m.fds[i]);
	}
}

/* ---- life ---------------------------------------------------------------------------- */

/* ---- addresses of this host ---- */

static void own_changed(void *arg, const union os_address *a, bool is_there)
{
	struct gate *g = arg;
	struct rules_addr to = rules_addr_of(a);
	size_t i = 0;

	to.port = 0;
	while (i < g->n_own &&
	       (g->own[i].is_v6 != to.is_v6 || memcmp(g->own[i].at, to.at, sizeof to.at) != 0))
		i++;
	if (is_there && i == g->n_own && i < OWN_MAX)
		g->own[g->n_own++] = to;
	else if (!is_there && i < g->n_own)
		g->own[i] = g->own[--g->n_own];
}

/* Of what comes while it runs the kernel tells by a socket. Told too much at once, it lists all. */
static void own_ready(struct watch *w, uint32_t events)
{
	struct gate *g = OWNER_OF(w, struct gate, own_events);
	int r;

	(void)events;
	do
		r = os_address_next(w->fd, own_changed, g);
	while (r == 0);
	if (r == -ENOBUFS)
		(void)os_address_list(w->fd); /* what is known already stays */
	rules_own(&g->rules, g->own, g->n_own);
}

/* Before the filter, which lets nobody make such a socket. */
static void find_own(struct gate *g)
{
	static union os_address found[OWN_MAX];
	int fd = os_address_events(), n = os_own_addresses(found, COUNT(found));

	for (int i = 0; i < n; i++)
		own_changed(g, &found[i], true);
	g->own_events = (struct watch){ .fd = fd, .ready = own_ready };
}

static int serve(struct gate *g, int monitor_fd, struct err *e)
{
	int r = loop_init(&g->loop);

	if (r >= 0)
		r = timers_init(&g->timers, &g->loop);
	if (r < 0)
		return err_sys(e, -r, "start");
	for (size_t i = 0; i < COUNT(g->paces); i++) {
		pace_init(&g->paces[i], &g->timers);
		g->meters[i].pace = &g->paces[i];
	}
	g->monitor = (struct watch){ .fd = monitor_fd, .ready = monitor_ready };
	if (lookups_init(&g->lookups, &g->loop, &g->timers) < 0)
		return err_new(e, ERR_INTERNAL, "start the resolver");
	g->dialer = (struct dialer){ &g->loop, &g->timers, &g->lookups, &g->rules };
	r = fcntl(monitor_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r >= 0)
		r = loop_add(&g->loop, &g->monitor, EPOLLIN);
	if (r >= 0 && g->own_events.fd >= 0)
		r = loop_add(&g->loop, &g->own_events, EPOLLIN);
	if (r >= 0)
		r = loop_run(&g->loop);
	return r < 0 ? err_sys(e, -r, "wait") : 0;
}

int child_run(const struct child_opts *o, struct err *e)
{
	static struct child child;
	struct gate *g = &child.gate;

	g->n_conns_max = conns_max();
	g->cache_fd = o->cache_fd;
	g->safe_fd = o->safe_fd;
	g->rules_fd = -1;
	g->settle.fired = settled;
	find_own(g);
	if (harden_child(o->master, e) < 0 || serve(g, o->monitor_fd, e) < 0)
		return -1;
	mints_done(g);
	conns_done(g);
	asks_done(g);
	resolver_done(g);
	records_done(g);
	lookups_done(&g->lookups);
	ends_done(&g->ends);
	names_done(&g->names);
	play_done(g);
	rules_done(&g->rules);
	purse_unref(g->purse);
	fd_close(&g->rules_fd);
	fd_close(&g->own_events.fd);
	for (size_t i = 0; i < COUNT(g->paces); i++)
		pace_done(&g->paces[i]);
	timers_done(&g->timers, &g->loop);
	loop_close(&g->loop);
	*e = child.error;
	return child.has_failed ? -1 : 0;
}
