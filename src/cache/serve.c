#include "cache/serve.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>

#include "base/fd.h"
#include "cache/cache-internal.h"
#include "cache/harden.h"
#include "io/journal.h"
#include "os/net.h"
#include "os/sock.h"

#define BATCH 32

/* ---- what the files share ------------------------------------------------------------ */

struct view *view_take(struct view *v)
{
	v->refs++;
	return v;
}

void view_leave(struct view *v)
{
	if (!v || --v->refs > 0)
		return;
	rules_done(&v->rules);
	free(v);
}

bool view_may_see(const struct view *v, const struct rules_addr *real)
{
	enum gate_reason why;

	return real->port == 0 || rules_may_dial(&v->rules, real, &why);
}

void side_open(struct cache *c, struct side *s, int fd,
               void (*ready)(struct watch *w, uint32_t events))
{
	*s = (struct side){ .relay = { .client = { .watch = { .fd = fd, .ready = ready } },
		                       .server = { .watch = { .fd = -1 } },
		                       .loop = &c->loop } };
	s->leg = (struct leg){ .end = &s->relay.client,
		               .flow = &s->flow,
		               .meter = &c->meter,
		               .legs = &c->legs,
		               .is_readable = true };
}

void side_close(struct side *s)
{
	if (s->relay.client.watch.fd < 0)
		return;
	leg_done(&s->leg);
	relay_end_unwatch(&s->relay, &s->relay.client);
	fd_close(&s->relay.client.watch.fd);
}

/* ---- who comes ----------------------------------------------------------------------- */

static void gates_ready(struct watch *w, uint32_t events)
{
	struct cache *c = OWNER_OF(w, struct cache, gates);

	(void)events;
	for (int i = 0; i < BATCH; i++) {
		struct cache_hello h;
		int fds[CACHE_FDS + 1] = { -1, -1, -1 };
		size_t n_fds = COUNT(fds);
		int n = os_recv(w->fd, &h, sizeof h, fds, &n_fds);

		if (n == -EAGAIN)
			return;
		for (size_t k = n_fds; k < COUNT(fds); k++)
			fds[k] = -1;
		if (n > 0 && cache_hello_check(&h, (size_t)n, n_fds))
			client_start(c, &h, fd_take(&fds[CACHE_STREAM]),
			             fd_take(&fds[CACHE_RULES]));
		for (size_t k = 0; k < COUNT(fds); k++)
			fd_close(&fds[k]);
		if (n <= 0) { /* the launcher has the other end too: it is gone */
			loop_remove(&c->loop, w);
			return;
		}
	}
}

static void launcher_ready(struct watch *w, uint32_t events)
{
	struct cache *c = OWNER_OF(w, struct cache, launcher);
	char word[16];
	int fd = -1;
	size_t n_fds = 1;
	int n = os_recv(w->fd, word, sizeof word, &fd, &n_fds);

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n <= 0)
		c->loop.is_done = true;
	else if (n_fds == 1)
		ask_start(c, fd);
}

/* ---- life ---------------------------------------------------------------------------- */

/* Before the filter, which knows no netlink. */
static void find_own(struct cache *c)
{
	static union os_address found[OWN_MAX];
	int n = os_own_addresses(found, COUNT(found));

	for (int i = 0; i < n; i++)
		c->own[i] = rules_addr_of(&found[i]);
	c->n_own = n < 0 ? 0 : (size_t)n;
}

static int watch_all(struct cache *c, const struct serve_opts *o, struct err *e)
{
	struct {
		struct watch *watch;
		int fd;
		void (*ready)(struct watch *w, uint32_t events);
	} all[] = { { &c->gates, o->gates_fd, gates_ready },
		    { &c->launcher, o->launcher_fd, launcher_ready } };

	for (size_t i = 0; i < COUNT(all); i++) {
		*all[i].watch = (struct watch){ .fd = all[i].fd, .ready = all[i].ready };
		int r = fcntl(all[i].fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;

		if (r >= 0)
			r = loop_add(&c->loop, all[i].watch, EPOLLIN);
		if (r < 0)
			return err_sys(e, -r, "watch");
	}
	return 0;
}

static int start(struct cache *c, const struct serve_opts *o, struct err *e)
{
	find_own(c);
	if (harden_cache(o->dir_fd, e) < 0)
		return -1;
	int r = loop_init(&c->loop);
	if (r >= 0)
		r = loop_pulse(&c->loop);
	if (r >= 0)
		r = timers_init(&c->timers, &c->loop);
	if (r < 0)
		return err_sys(e, -r, "start");
	if (lookups_init(&c->lookups, &c->loop, &c->timers) < 0)
		return err_new(e, ERR_INTERNAL, "start the resolver");
	if (ends_init_outside(&c->ends, e) < 0 || store_open(&c->store, o->dir_fd, o->max, e) < 0)
		return -1;
	return watch_all(c, o, e);
}

int serve_run(const struct serve_opts *o, struct err *e)
{
	static struct cache c;

	signal(SIGPIPE, SIG_IGN);
	json_set_alloc_funcs(mem_alloc, free);
	c.proxy = o->proxy;
	c.meter = (struct meter){ .used = &c.metered, .max = UINT64_MAX };
	if (start(&c, o, e) < 0)
		return -1;
	journal(JOURNAL_INFO, "the package cache is there", NULL);
	int r = loop_run(&c.loop);

	clients_done(&c);
	fetches_done(&c);
	lines_done(&c);
	asks_done(&c);
	lookups_done(&c.lookups);
	ends_done(&c.ends);
	store_done(&c.store);
	timers_done(&c.timers, &c.loop);
	loop_close(&c.loop);
	return r < 0 ? err_sys(e, -r, "wait") : 0;
}
