#include "core/hook.h"

#include <fcntl.h>

#include "base/fd.h"
#include "core/approval.h"
#include "core/maker.h"
#include "io/journal.h"
#include "os/net.h"
#include "os/pulse.h"
#include "os/sock.h"
#include "wire/hook.h"

#define AGAIN_MS 1000

struct told {
	struct told *next;
	size_t n;
	bool is_sent;
	struct hook_send packet; /* n bytes */
};

struct hook {
	struct watch watch; /* first; fd -1: none */
	struct core *core;
	struct told *first, **last;
	size_t n;
	uint64_t num;
	struct timer again;
	bool is_asked; /* the launcher was */
};

/* ---- sending -------------------------------------------------------------------------- */

static void flush(struct hook *h)
{
	bool is_blocked = false;

	for (struct told *t = h->first; t && h->watch.fd >= 0 && !is_blocked; t = t->next) {
		if (t->is_sent)
			continue;
		int r = os_send(h->watch.fd, &t->packet, t->n, NULL, 0);

		t->is_sent = r > 0;
		is_blocked = r <= 0; /* its end is heard of by the watch */
	}
	if (h->watch.fd >= 0)
		(void)loop_change(h->core->loop, &h->watch,
		                  is_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void drop(struct hook *h, struct told **at)
{
	struct told *t = *at;

	*at = t->next;
	if (h->last == &t->next)
		h->last = at;
	h->n--;
	free(t);
}

/* ---- hearing -------------------------------------------------------------------------- */

static void take_end(struct hook *h, const struct hook_end *e)
{
	for (struct told **at = &h->first; *at; at = &(*at)->next) {
		struct told *t = *at;

		if (t->packet.num != e->num)
			continue;
		if (e->is_given_up)
			journal(JOURNAL_WARN, "a webhook was given up", "id", t->packet.id, NULL);
		drop(h, at);
		return;
	}
}

static void hang_up(struct hook *h)
{
	loop_remove(h->core->loop, &h->watch);
	fd_close(&h->watch.fd);
	for (struct told *t = h->first; t; t = t->next)
		t->is_sent = false;
	timer_set(&h->core->timers, &h->again, AGAIN_MS);
}

static void ready(struct watch *w, uint32_t events)
{
	struct hook *h = (struct hook *)(void *)w;
	struct hook_end end;

	if (events & EPOLLOUT)
		flush(h);
	int n = os_recv_some(w->fd, &end, sizeof end);

	if (n == -EAGAIN)
		return;
	if (n > 0 && hook_end_check(&end, (size_t)n))
		take_end(h, &end);
	else
		hang_up(h);
}

/* ---- connecting ----------------------------------------------------------------------- */

static void given(void *arg, int socket_fd, const struct err *e)
{
	struct hook *h = arg;
	AUTO(fd_close) int fd = socket_fd;

	h->is_asked = false;
	if (e || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		journal(JOURNAL_ERROR, "webhooks cannot be sent", "reason", e ? e->msg : "fcntl",
		        NULL);
		timer_set(&h->core->timers, &h->again, 10ull * AGAIN_MS);
		return;
	}
	(void)os_refuse_fds(fd);
	h->watch = (struct watch){ .fd = fd_take(&fd), .ready = ready };
	if (loop_add(h->core->loop, &h->watch, EPOLLIN) < 0)
		fd_close(&h->watch.fd);
	flush(h);
}

static void connect_now(struct hook *h)
{
	if (h->watch.fd >= 0 || h->is_asked || !h->first)
		return;
	h->is_asked = true;
	maker_hook(h->core, given, h);
}

static void again_fired(struct timer *t)
{
	connect_now((struct hook *)(void *)((char *)t - offsetof(struct hook, again)));
}

void hook_open(struct core *c)
{
	if (!c->config.has_webhook)
		return;
	c->hook = mem_alloc(sizeof *c->hook);
	*c->hook = (struct hook){ .watch.fd = -1, .core = c, .again.fired = again_fired };
	c->hook->last = &c->hook->first;
}

void hook_close(struct core *c)
{
	struct hook *h = c->hook;

	if (!h)
		return;
	if (h->watch.fd >= 0)
		loop_remove(c->loop, &h->watch);
	fd_close(&h->watch.fd);
	maker_cancel(c, h);
	timer_stop(&c->timers, &h->again);
	while (h->first)
		drop(h, &h->first);
	free(h);
	c->hook = NULL;
}

/* ---- telling -------------------------------------------------------------------------- */

static char *print(const struct approval_row *row)
{
	const char *state = approval_state_name(row->state);
	json_t *approval = approval_json(row);
	json_t *o = json_pack("{s:s+,sO}", "event", "approval.", state, "approval", approval);
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);

	if (strlen(text) >= HOOK_BODY_MAX) { /* who wants all of it asks for it */
		free(text);
		json_object_set_new(approval, "detail", json_pack("{sb}", "cut", 1));
		text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
	}
	json_decref(approval);
	json_decref(o);
	return text;
}

void hook_tell(struct core *c, const struct approval_row *row)
{
	struct hook *h = c->hook;

	if (!h)
		return;
	AUTO(freep) char *body = print(row);
	size_t n = strlen(body) + 1;

	if (n > HOOK_BODY_MAX)
		return; /* texts are bounded: it never is */
	if (h->n >= HOOK_WAITING_MAX) {
		journal(JOURNAL_WARN, "a webhook was dropped: too many wait", "id",
		        h->first->packet.id, NULL);
		drop(h, &h->first);
	}
	struct told *t = mem_alloc(sizeof *t + n);

	*t = (struct told){ .n = sizeof t->packet + n,
		            .packet = { .type = HOOK_SEND, .num = ++h->num } };
	snprintf(t->packet.id, sizeof t->packet.id, "%s.%s", row->id,
	         approval_state_name(row->state));
	memcpy(t->packet.body, body, n);
	*h->last = t;
	h->last = &t->next;
	h->n++;
	if (h->watch.fd >= 0)
		flush(h);
	else if (h->again.at_ms == 0)
		connect_now(h);
}
