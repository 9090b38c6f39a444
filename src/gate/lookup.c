#include "gate/lookup.h"

#include <ares.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "os/file.h"

#define NAMES_KEPT 256
#define KEEP_MIN_MS 2000 /* also of no answer at all */
#define KEEP_MAX_S 60
#define TRY_MS 2000
#define TRIES 3
#define CONF "/etc/resolv.conf"
#define CONF_MS 5000 /* how often it is looked at */

struct lookup_name {
	struct lookup_name *next;
	struct lookups *lookups;
	struct lookup_wait *waiting;
	struct lookup_answer answer;
	uint64_t until_ms; /* 0: under way */
	char name[];
};

struct lookup_socket {
	struct watch watch; /* first */
	struct lookup_socket *next;
	struct lookups *lookups;
	uint32_t events; /* 0: closed by c-ares */
};

/* ---- waiting ------------------------------------------------------------------------- */

static void wait_add(struct lookup_name *n, struct lookup_wait *w)
{
	w->next = n->waiting;
	w->link = &n->waiting;
	if (w->next)
		w->next->link = &w->next;
	n->waiting = w;
}

void lookup_leave(struct lookup_wait *w)
{
	if (!w->link)
		return;
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	w->next = NULL;
	w->link = NULL;
}

/* ---- c-ares -------------------------------------------------------------------------- */

static void arm(struct lookups *ls)
{
	struct timeval buf, *next = ares_timeout(ls->channel, NULL, &buf);

	if (next)
		timer_set(ls->timers, &ls->tick,
		          (uint64_t)next->tv_sec * 1000 + (uint64_t)next->tv_usec / 1000 + 1);
	else
		timer_stop(ls->timers, &ls->tick);
}

static void ticked(struct timer *t)
{
	struct lookups *ls = (struct lookups *)(void *)((char *)t - offsetof(struct lookups, tick));

	ares_process_fd(ls->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm(ls);
}

/* Sockets that c-ares has closed are freed here and not while it works on them. */
static void sweep(struct lookups *ls)
{
	for (struct lookup_socket **at = &ls->sockets; *at;) {
		struct lookup_socket *s = *at;

		if (s->events) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		free(s);
	}
}

static void socket_ready(struct watch *w, uint32_t events)
{
	struct lookup_socket *s = (struct lookup_socket *)(void *)w;
	struct lookups *ls = s->lookups;
	bool is_broken = events & (EPOLLERR | EPOLLHUP);
	int in = events & EPOLLIN || is_broken ? w->fd : ARES_SOCKET_BAD;
	int out = events & EPOLLOUT || is_broken ? w->fd : ARES_SOCKET_BAD;

	ares_process_fd(ls->channel, in, out);
	sweep(ls);
	arm(ls);
}

static void socket_changed(void *data, ares_socket_t fd, int readable, int writable)
{
	struct lookups *ls = data;
	uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
	struct lookup_socket *s = ls->sockets;

	while (s && (s->watch.fd != fd || !s->events))
		s = s->next;
	if (s && !events) {
		loop_remove(ls->loop, &s->watch);
		s->events = 0;
	} else if (s) {
		(void)loop_change(ls->loop, &s->watch, events); /* its time runs out then */
		s->events = events;
	} else if (events) {
		s = mem_alloc(sizeof *s);
		*s = (struct lookup_socket){ .watch = { .fd = fd, .ready = socket_ready },
			                     .next = ls->sockets,
			                     .lookups = ls,
			                     .events = events };
		ls->sockets = s;
		(void)loop_add(ls->loop, &s->watch, events);
	}
}

static struct ares_channeldata *open_channel(struct lookups *ls)
{
	char from[] = "fb"; /* the file, then DNS: nsswitch.conf is not ours to obey */
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TRY_MS,
		.tries = TRIES,
		.lookups = from,
		.sock_state_cb = socket_changed,
		.sock_state_cb_data = ls,
	};
	struct ares_channeldata *channel;

	if (ares_init_options(&channel, &o,
	                      ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
	                          ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB) != ARES_SUCCESS)
		return NULL;
	return channel;
}

/* A laptop moves, a VPN comes up: the servers are others then. A file that Landlock does not know
 * cannot be read; the old servers stay. */
static void follow_conf(struct lookups *ls)
{
	struct stat st = { 0 };
	uint64_t now = timer_now_ms();

	if (now - ls->conf_ms < CONF_MS)
		return;
	ls->conf_ms = now;
	(void)os_fstatat(AT_FDCWD, CONF, &st, 0); /* not there: all zero */
	int64_t is[3] = { (int64_t)st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };

	if (ls->channel && memcmp(is, ls->conf, sizeof is) == 0)
		return;
	memcpy(ls->conf, is, sizeof is);
	struct ares_channeldata *next = open_channel(ls);

	if (next && ls->channel)
		ares_destroy(ls->channel); /* who waits gets no answer, and may come again */
	if (next)
		ls->channel = next;
	sweep(ls);
}

/* ---- answers ------------------------------------------------------------------------- */

static bool read_address(const struct ares_addrinfo_node *n, struct rules_addr *out)
{
	const char *at = (const char *)n->ai_addr;

	*out = (struct rules_addr){ .is_v6 = n->ai_family == AF_INET6 };
	if (!at || (n->ai_family != AF_INET && n->ai_family != AF_INET6))
		return false;
	if (out->is_v6)
		memcpy(out->at, at + offsetof(struct sockaddr_in6, sin6_addr), 16);
	else
		memcpy(out->at, at + offsetof(struct sockaddr_in, sin_addr), 4);
	return true;
}

/* Takes the next of that family, stepping over the others. */
static bool next_of(const struct ares_addrinfo_node **at, bool is_v6, struct rules_addr *out)
{
	for (; *at; *at = (*at)->ai_next)
		if (read_address(*at, out) && out->is_v6 == is_v6) {
			*at = (*at)->ai_next;
			return true;
		}
	return false;
}

static uint64_t read_answer(const struct ares_addrinfo *from, struct lookup_answer *out)
{
	const struct ares_addrinfo_node *v6 = from->nodes, *v4 = from->nodes;
	bool is_v6 = true;
	int ttl = KEEP_MAX_S;

	out->n = 0;
	while (out->n < LOOKUP_ADDRS_MAX && (v6 || v4)) {
		out->n += next_of(is_v6 ? &v6 : &v4, is_v6, &out->at[out->n]);
		is_v6 = !is_v6;
	}
	for (const struct ares_addrinfo_node *n = from->nodes; n; n = n->ai_next)
		ttl = n->ai_ttl < ttl ? n->ai_ttl : ttl;
	uint64_t keep_ms = (uint64_t)(ttl > 0 ? ttl : 0) * 1000;

	return keep_ms < KEEP_MIN_MS ? KEEP_MIN_MS : keep_ms;
}

static void answered(void *arg, int status, int timeouts, struct ares_addrinfo *from)
{
	struct lookup_name *n = arg;
	uint64_t keep_ms = KEEP_MIN_MS;

	(void)timeouts;
	n->answer.n = 0;
	if (status == ARES_SUCCESS && from)
		keep_ms = read_answer(from, &n->answer);
	if (from)
		ares_freeaddrinfo(from);
	n->until_ms = timer_now_ms() + keep_ms;
	struct lookup_answer answer =
	    n->answer; /* who is told may ask again, and the name be gone */
	struct lookup_wait *waiting = n->waiting;

	n->waiting = NULL;
	if (waiting)
		waiting->link = &waiting;
	while (waiting) {
		struct lookup_wait *w = waiting;

		lookup_leave(w);
		w->done(w, &answer);
	}
}

/* ---- names --------------------------------------------------------------------------- */

static void name_free(struct lookups *ls, struct lookup_name **at)
{
	struct lookup_name *n = *at;

	*at = n->next;
	ls->n_names--;
	free(n);
}

/* Those whose time is over; when there are too many, all that nobody waits for. */
static void forget(struct lookups *ls)
{
	uint64_t now = timer_now_ms();
	bool is_full = ls->n_names >= NAMES_KEPT;

	for (struct lookup_name **at = &ls->names; *at;) {
		if ((*at)->until_ms && (is_full || (*at)->until_ms <= now))
			name_free(ls, at);
		else
			at = &(*at)->next;
	}
}

static struct lookup_name *find(const struct lookups *ls, const char *name)
{
	struct lookup_name *n = ls->names;

	while (n && strcmp(n->name, name) != 0)
		n = n->next;
	return n;
}

static struct lookup_name *ask(struct lookups *ls, const char *name)
{
	static const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
		                                          .ai_flags = ARES_AI_NOSORT };
	size_t size = strlen(name) + 1;
	struct lookup_name *n = mem_alloc(sizeof *n + size);

	*n = (struct lookup_name){ .next = ls->names, .lookups = ls };
	memcpy(n->name, name, size);
	ls->names = n;
	ls->n_names++;
	ares_getaddrinfo(ls->channel, name, NULL, &hints, answered, n);
	arm(ls);
	return n;
}

bool lookup(struct lookups *ls, const char *name, struct lookup_wait *w, struct lookup_answer *a)
{
	forget(ls);
	follow_conf(ls);
	struct lookup_name *n = find(ls, name);

	if (!n)
		n = ask(ls, name);
	if (n->until_ms) { /* known, or told at once by /etc/hosts */
		*a = n->answer;
		return true;
	}
	wait_add(n, w);
	return false;
}

int lookups_init(struct lookups *ls, struct loop *l, struct timers *t)
{
	*ls = (struct lookups){ .loop = l, .timers = t, .tick = { .fired = ticked } };
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return -1;
	follow_conf(ls);
	return ls->channel ? 0 : -1;
}

void lookups_done(struct lookups *ls)
{
	if (ls->channel)
		ares_destroy(ls->channel);
	ls->channel = NULL;
	sweep(ls);
	timer_stop(ls->timers, &ls->tick);
	while (ls->names)
		name_free(ls, &ls->names);
}
