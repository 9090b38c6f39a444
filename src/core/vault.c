#include "core/vault.h"

#include <fcntl.h>

#include "base/fd.h"
#include "core/maker.h"
#include "os/net.h"
#include "os/sock.h"

struct ask {
	struct ask *next;
	vault_done_fn *done;
	void *arg;
	int fd; /* a duplicate, or -1 */
	struct vault_packet packet;
};

struct vault {
	struct watch watch; /* first; fd -1: it is not there yet */
	struct core *core;
	struct vault_owner owner;
	struct ask *first, **last; /* the first one is out when is_asked */
	bool is_asked;
	bool is_failing, is_closed; /* closed by one who was told that it failed */
	uint32_t tag;
};

static void ask_free(struct ask *a)
{
	fd_close(&a->fd);
	free(a);
}

static struct ask *take_first(struct vault *v)
{
	struct ask *a = v->first;

	if (!a)
		return NULL;
	v->first = a->next;
	if (!v->first)
		v->last = &v->first;
	v->is_asked = false;
	return a;
}

/* Whoever waits is told first; the owner closes it. */
static void fail_all(struct vault *v, const struct err *e)
{
	struct ask *a;

	if (v->watch.fd >= 0)
		loop_remove(v->core->loop, &v->watch);
	fd_close(&v->watch.fd);
	v->is_failing = true;
	while ((a = take_first(v))) {
		a->done(a->arg, NULL, e);
		ask_free(a);
	}
	if (!v->is_closed && v->owner.gone)
		v->owner.gone(v->owner.arg, e);
	v->is_failing = false;
	if (v->is_closed)
		vault_close(v);
}

static void died(struct vault *v)
{
	struct err e = { 0 };

	err_new(&e, ERR_INTERNAL, "the keeper of the storage died");
	e.sys = VAULT_DIED;
	fail_all(v, &e);
}

/* One at a time. What a full socket does not take is as good as dead: nothing else is in there. */
static void send_next(struct vault *v)
{
	struct ask *a = v->first;

	if (v->watch.fd < 0 || v->is_asked || !a)
		return;
	a->packet.head.tag = ++v->tag;
	v->is_asked = true;
	/* A failure shows at its end of the socket. */
	(void)os_send(v->watch.fd, &a->packet, vault_size(&a->packet), &a->fd, a->fd < 0 ? 0 : 1);
	fd_close(&a->fd);
}

static void ready(struct watch *w, uint32_t events)
{
	static struct vault_packet p;
	struct vault *v = (struct vault *)w;

	(void)events;
	int n = os_recv_some(w->fd, &p, sizeof p);
	if (n == -EAGAIN)
		return;
	bool is_answer = n > 0 && vault_check(&p, (size_t)n, 0) && v->is_asked &&
	                 (p.head.type == V_DONE || p.head.type == V_FAILED) && p.head.tag == v->tag;
	if (!is_answer) {
		died(v);
		return;
	}
	struct ask *a = take_first(v);
	send_next(v);
	if (p.head.type == V_DONE)
		a->done(a->arg, &p.done, NULL); /* it may close the vault */
	else
		a->done(a->arg, NULL, &p.err);
	ask_free(a);
}

static void vaulted(void *arg, int fd, const struct err *e)
{
	struct vault *v = arg;
	struct err full = { 0 };

	if (!e) {
		v->watch = (struct watch){ .fd = fd, .ready = ready };
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
		int r = loop_add(v->core->loop, &v->watch, EPOLLIN);
		if (r < 0) {
			err_sys(&full, -r, "watch the keeper of the storage");
			fd_close(&v->watch.fd);
			e = &full;
		}
	}
	if (e) {
		fail_all(v, e);
		return;
	}
	send_next(v);
	if (v->owner.opened)
		v->owner.opened(v->owner.arg);
}

struct vault *vault_open(struct core *c, const struct vault_open *open, struct vault_owner owner)
{
	struct vault *v = mem_alloc(sizeof *v);

	*v = (struct vault){ .watch.fd = -1, .core = c, .owner = owner };
	v->last = &v->first;
	maker_vault(c, open, vaulted, v);
	return v;
}

void vault_ask(struct vault *v, const struct vault_packet *p, int fd, vault_done_fn *done,
               void *arg)
{
	struct ask *a = mem_alloc(sizeof *a);

	*a = (struct ask){ .done = done, .arg = arg, .fd = -1, .packet = *p };
	a->packet.head = (struct vault_head){ .type = p->head.type };
	a->packet.head.len = (uint32_t)(vault_size(&a->packet) - sizeof a->packet.head);
	if (fd >= 0)
		a->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	*v->last = a;
	v->last = &a->next;
	send_next(v);
}

bool vault_is_there(const struct vault *v)
{
	return v->watch.fd >= 0;
}

bool vault_is_idle(const struct vault *v)
{
	return !v->first;
}

void vault_close(struct vault *v)
{
	struct ask *a;

	if (!v)
		return;
	v->is_closed = true;
	if (v->is_failing)
		return;
	maker_cancel(v->core, v);
	if (v->watch.fd >= 0)
		loop_remove(v->core->loop, &v->watch);
	fd_close(&v->watch.fd);
	while ((a = take_first(v)))
		ask_free(a);
	free(v);
}

void vault_dismiss(struct vault *v)
{
	struct vault_packet p = { .head = { .type = V_CLOSE } };

	if (v && v->watch.fd >= 0) /* or it ends by itself, in a minute */
		(void)os_send(v->watch.fd, &p, vault_size(&p), NULL, 0);
	vault_close(v);
}
