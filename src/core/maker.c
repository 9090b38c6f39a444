#include "core/maker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/sandbox.h"
#include "os/sock.h"

struct pending {
	struct pending *next;
	uint32_t tag;
	made_fn *made; /* one of the three, or none: nobody wants to know */
	opened_fn *opened;
	given_fn *given;
	void *arg;
	struct cleaning *cleaning; /* or it is the answer to that */
};

/* A slot whose monitor is dead or about to die: its lock tells, so it is asked for more than once.
 */
struct cleaning {
	struct cleaning *next;
	struct core *core;
	struct timer timer;
	int slot;
	unsigned int tries;
};

#define CLEAN_TRIES 10
#define CLEAN_DELAY_MS 10 /* doubled each time: ten seconds in all */

/* A message that finds no room waits here: the launcher is slower than its clients at times. */
struct waiting {
	struct waiting *next;
	size_t n;
	int fd; /* a duplicate, or -1 */
	struct launch_packet packet;
};

struct maker {
	struct watch watch;
	struct core *core;
	struct pending *pending;
	struct cleaning *cleanings;
	struct waiting *first, **last;
	uint32_t tag;
};

/* ---- out ----------------------------------------------------------------------------- */

static bool try_send(struct maker *m, const struct launch_packet *p, size_t n, int fd)
{
	int r = os_send(m->watch.fd, p, n, &fd, fd < 0 ? 0 : 1);

	return r != -EAGAIN && r != -ENOBUFS; /* any other failure: its end of the socket tells */
}

static void flush(struct maker *m)
{
	while (m->first) {
		struct waiting *w = m->first;

		if (!try_send(m, &w->packet, w->n, w->fd))
			return;
		m->first = w->next;
		if (!m->first)
			m->last = &m->first;
		fd_close(&w->fd);
		free(w);
	}
	(void)loop_change(m->core->loop, &m->watch, EPOLLIN);
}

static void put(struct maker *m, struct launch_packet *p, size_t len, int fd)
{
	size_t n = sizeof p->head + len;

	p->head.len = (uint32_t)len;
	if (!m->first && try_send(m, p, n, fd))
		return;
	struct waiting *w = mem_alloc(sizeof *w);
	memcpy(&w->packet, p, n);
	w->n = n;
	w->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	w->next = NULL;
	*m->last = w;
	m->last = &w->next;
	(void)loop_change(m->core->loop, &m->watch, EPOLLIN | EPOLLOUT);
}

static uint32_t expect(struct maker *m, made_fn *made, opened_fn *opened, void *arg)
{
	struct pending *p = mem_alloc(sizeof *p);

	*p = (struct pending){
		.next = m->pending, .tag = ++m->tag, .made = made, .opened = opened, .arg = arg
	};
	m->pending = p;
	return p->tag;
}

static bool add_mount(struct launch_make *m, struct str *text, enum launch_mount_kind kind,
                      struct maker_tree t)
{
	if (m->n_mounts >= COUNT(m->mounts))
		return false;
	m->mounts[m->n_mounts++] =
	    (struct launch_mount){ .kind = kind,
		                   .at = (uint32_t)text->len,
		                   .tree = t.tree,
		                   .flags = t.is_read_only ? LAUNCH_READ_ONLY : 0 };
	str_addn(text, t.at, strlen(t.at) + 1);
	return !text->overflow;
}

bool maker_add_tree(struct launch_make *m, struct str *text, struct maker_tree t)
{
	return add_mount(m, text, LAUNCH_TREE, t);
}

bool maker_add_work(struct launch_make *m, struct str *text, struct maker_tree t)
{
	return add_mount(m, text, LAUNCH_WORK, t);
}

/* What lies in another mount is mounted after it, whatever the order they were written in. */
static void sort_mounts(struct launch_make *m, const char *text)
{
	for (size_t i = 1; i < m->n_mounts; i++) {
		for (size_t j = i; j > 0; j--) {
			struct launch_mount *a = &m->mounts[j - 1], *b = &m->mounts[j], swap = *a;

			if (strcmp(text + a->at, text + b->at) <= 0)
				break;
			*a = *b;
			*b = swap;
		}
	}
}

void maker_make(struct core *c, const struct launch_make *make, const struct str *text,
                made_fn *done, void *arg)
{
	static struct launch_packet p; /* 130 KiB: not on the stack */
	struct maker *m = c->maker;

	p.head = (struct launch_head){ .type = L_MAKE, .tag = expect(m, done, NULL, arg) };
	p.make = *make;
	sort_mounts(&p.make, str_text(text));
	p.make.text_len = (uint32_t)text->len;
	memcpy(p.bytes + sizeof p.make, str_text(text), text->len);
	put(m, &p, sizeof p.make + text->len, -1);
}

void maker_path(struct core *c, const char *path, int client_fd, opened_fn *done, void *arg)
{
	static struct launch_packet p;
	size_t n = strlen(path) + 1;

	p.head = (struct launch_head){ .type = L_OPEN, .tag = expect(c->maker, NULL, done, arg) };
	p.open = (struct launch_open){ .want = LAUNCH_ANY, .path_len = (uint32_t)n };
	memcpy(p.bytes + sizeof p.open, path, n);
	put(c->maker, &p, sizeof p.open + n, client_fd);
}

static void ask_socket(struct core *c, enum launch_type type, given_fn *done, void *arg)
{
	struct launch_packet *p = mem_alloc(sizeof *p);

	p->head = (struct launch_head){ .type = type, .tag = expect(c->maker, NULL, NULL, arg) };
	c->maker->pending->given = done;
	put(c->maker, p, 0, -1);
	free(p);
}

void maker_gate(struct core *c, given_fn *done, void *arg)
{
	ask_socket(c, L_GATE, done, arg);
}

void maker_cache(struct core *c, given_fn *done, void *arg)
{
	ask_socket(c, L_CACHE, done, arg);
}

void maker_ledger(struct core *c, given_fn *done, void *arg)
{
	ask_socket(c, L_LEDGER, done, arg);
}

void maker_hook(struct core *c, given_fn *done, void *arg)
{
	ask_socket(c, L_HOOK, done, arg);
}

void maker_vault(struct core *c, const struct vault_open *open, given_fn *done, void *arg)
{
	struct launch_packet *p = mem_alloc(sizeof *p);

	p->head = (struct launch_head){ .type = L_VAULT, .tag = expect(c->maker, NULL, NULL, arg) };
	c->maker->pending->given = done;
	p->vault = *open;
	put(c->maker, p, sizeof p->vault, -1);
	free(p);
}

void maker_cancel(struct core *c, const void *arg)
{
	for (struct pending *p = c->maker ? c->maker->pending : NULL; p; p = p->next)
		if (p->given && p->arg == arg)
			p->given = NULL;
}

static void clean_again(struct timer *t)
{
	struct cleaning *l =
	    (struct cleaning *)(void *)((char *)t - offsetof(struct cleaning, timer));
	struct maker *m = l->core->maker;
	struct launch_packet *p = mem_alloc(sizeof *p);

	p->head = (struct launch_head){ .type = L_CLEAN, .tag = expect(m, NULL, NULL, NULL) };
	m->pending->cleaning = l;
	p->slot.slot = l->slot;
	put(m, p, sizeof p->slot, -1);
	free(p);
}

void maker_clean(struct core *c, int slot)
{
	struct cleaning *l = mem_alloc(sizeof *l);

	*l = (struct cleaning){ .next = c->maker->cleanings, .core = c, .slot = slot };
	l->timer.fired = clean_again;
	c->maker->cleanings = l;
	clean_again(&l->timer);
}

void maker_kill(struct core *c, int slot, const char *name)
{
	struct launch_packet *p = mem_alloc(sizeof *p);

	p->head = (struct launch_head){ .type = L_KILL, .tag = expect(c->maker, NULL, NULL, NULL) };
	p->kill = (struct launch_kill){ .slot = slot };
	snprintf(p->kill.name, sizeof p->kill.name, "%s", name);
	put(c->maker, p, sizeof p->kill, -1);
	free(p);
}

static void cleaning_free(struct cleaning *l)
{
	struct cleaning **at = &l->core->maker->cleanings;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	timer_stop(&l->core->timers, &l->timer);
	free(l);
}

/* Nothing was done: it is not dead yet, or somebody else has the slot now. */
static void cleaned(struct cleaning *l, const struct launch_packet *p)
{
	if (p->head.type == L_DONE && p->done.count == 0 && ++l->tries < CLEAN_TRIES)
		timer_set(&l->core->timers, &l->timer, (uint64_t)CLEAN_DELAY_MS << l->tries);
	else
		cleaning_free(l);
}

void maker_ready(struct core *c)
{
	struct launch_packet *p = mem_alloc(sizeof *p);

	p->head = (struct launch_head){ .type = L_READY };
	put(c->maker, p, 0, -1);
	free(p);
}

/* ---- in ------------------------------------------------------------------------------ */

/* Whoever waits for it. */
static void tell(const struct pending *w, const struct launch_packet *p, int *fd)
{
	const struct err *e = p->head.type == L_FAILED ? &p->err : NULL;

	if (w->cleaning)
		cleaned(w->cleaning, p);
	if (w->made)
		w->made(w->arg, e ? NULL : &p->made, fd_take(fd), e);
	if (w->given)
		w->given(w->arg, e ? -1 : fd_take(fd), e);
	if (w->opened)
		w->opened(w->arg, e ? NULL : &p->opened, *fd, e);
}

static void answer(struct maker *m, const struct launch_packet *p, int *fd)
{
	for (struct pending **at = &m->pending; *at; at = &(*at)->next) {
		struct pending *found = *at;

		if (found->tag != p->head.tag)
			continue;
		*at = found->next;
		tell(found, p, fd);
		free(found);
		return;
	}
}

static void ready(struct watch *w, uint32_t events)
{
	static struct launch_packet p;
	struct maker *m = (struct maker *)w;
	int fd = -1;
	size_t n_fds = 1;
	struct err e = { 0 };

	if (events & EPOLLOUT)
		flush(m);
	if (!(events & (EPOLLIN | EPOLLHUP)))
		return;
	int n = os_recv(w->fd, &p, sizeof p, &fd, &n_fds);
	AUTO(fd_close) int owned = n_fds > 0 ? fd : -1;

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <=
	    0) { /* without a launcher nothing can be made or cleaned: our supervisor is gone */
		m->core->loop->is_done = true;
		return;
	}
	if (launch_check_answer(&p, (size_t)n, n_fds, &e) < 0)
		return;
	if (p.head.type == L_GONE)
		sbx_on_gone(m->core, p.gone.name);
	else
		answer(m, &p, &owned);
}

static int ask_host(struct core *c, int fd, struct err *e)
{
	struct launch_packet *p = mem_alloc(sizeof *p);
	AUTO(freep) struct launch_packet *owned = p;
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	size_t n_fds = 0;

	p->head = (struct launch_head){ .type = L_HOST, .tag = 0 };
	int r = os_send(fd, p, sizeof p->head, NULL, 0);
	if (r >= 0 && poll(&wait, 1, 10000) == 1)
		r = os_recv(fd, p, sizeof *p, NULL, &n_fds);
	if (r < 0)
		return err_sys(e, -r, "ask the launcher");
	if (launch_check_answer(p, (size_t)r, n_fds, e) < 0)
		return err_wrap(e, "the launcher");
	if (p->head.type != L_HOSTED)
		return err_new(e, ERR_INTERNAL, "the launcher does not say what the host can do");
	c->host = p->host;
	return 0;
}

int maker_open(struct core *c, int fd, struct err *e)
{
	struct maker *m = mem_alloc(sizeof *m);

	*m = (struct maker){ .watch = { .fd = fd, .ready = ready }, .core = c };
	m->last = &m->first;
	c->maker = m;
	if (ask_host(c, fd, e) < 0)
		return -1;
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	int r = loop_add(c->loop, &m->watch, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch the launcher") : 0;
}

void maker_close(struct core *c)
{
	struct maker *m = c->maker;

	if (!m)
		return;
	loop_remove(c->loop, &m->watch);
	fd_close(&m->watch.fd);
	while (m->pending) {
		struct pending *p = m->pending;

		m->pending = p->next;
		free(p);
	}
	while (m->cleanings) {
		struct cleaning *l = m->cleanings;

		m->cleanings = l->next;
		timer_stop(&c->timers, &l->timer);
		free(l);
	}
	while (m->first) {
		struct waiting *w = m->first;

		m->first = w->next;
		fd_close(&w->fd);
		free(w);
	}
	free(m);
	c->maker = NULL;
}
