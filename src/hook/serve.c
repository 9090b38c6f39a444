#include "hook/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "gate/harden.h"
#include "hook/hook-internal.h"
#include "io/journal.h"
#include "os/secret.h"
#include "os/sock.h"

#define TRIES_MAX 5
#define AGAIN_MS 1000 /* then twice as long each time */
#define ITEMS_MAX 1024
#define KEY_TEXT_MAX (2ul * SIGN_KEY_MAX)
/* The operator has named the receiver: it may be anywhere but at a cloud's metadata. */
static const char rules[] = "{\"net\":{\"mode\":\"allow\"},\"grant\":[\"0.0.0.0/0\",\"::/0\"]}";

struct client {
	struct watch watch;
	struct hook *hook;
	struct client *next;
};

struct item {
	struct item *next;
	struct client *client; /* NULL: it is gone, and the next daemon says it again */
	uint64_t num;
	unsigned int tries;
	char id[HOOK_ID_SIZE];
	char body[];
};

/* ---- sending -------------------------------------------------------------------------- */

static void go_on(struct hook *h);

static void item_end(struct hook *h, int status, bool is_given_up)
{
	struct item *i = h->first;
	const struct hook_end end = { .type = HOOK_END,
		                      .is_given_up = is_given_up,
		                      .num = i->num,
		                      .status = (uint32_t)status,
		                      .tries = i->tries };

	if (i->client) /* or it is dead */
		(void)os_send(i->client->watch.fd, &end, sizeof end, NULL, 0);
	h->first = i->next;
	if (!h->first)
		h->last = &h->first;
	h->n_items--;
	free(i);
}

static void posted(struct hook *h, int status, const char *wrong)
{
	struct item *i = h->first;
	char text[64];

	i->tries++;
	if (status >= 200 && status < 300) {
		item_end(h, status, false);
		go_on(h);
		return;
	}
	snprintf(text, sizeof text, "it says %d", status);
	journal(JOURNAL_WARN, "a webhook was not taken", "id", i->id, "reason",
	        wrong ? wrong : text, NULL);
	if (i->tries >= TRIES_MAX) {
		item_end(h, status, true);
		go_on(h);
	} else {
		timer_set(&h->timers, &h->again, (uint64_t)AGAIN_MS << (i->tries - 1));
	}
}

static void go_on(struct hook *h)
{
	while (h->first && !h->first->client)
		item_end(h, 0, true);
	if (h->first && !h->post && h->again.at_ms == 0)
		post_start(h, h->first->id, span_of(h->first->body), posted);
}

static void again_fired(struct timer *t)
{
	go_on(OWNER_OF(t, struct hook, again));
}

/* ---- daemons -------------------------------------------------------------------------- */

static void client_leave(struct client *c)
{
	struct hook *h = c->hook;
	struct client **at = &h->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	for (struct item *i = h->first; i; i = i->next)
		if (i->client == c)
			i->client = NULL;
	loop_remove(&h->loop, &c->watch);
	fd_close(&c->watch.fd);
	free(c);
}

static void take(struct client *c, const struct hook_send *s, size_t n)
{
	struct hook *h = c->hook;
	size_t len = n - sizeof *s;
	struct item *i = mem_alloc(sizeof *i + len);

	*i = (struct item){ .client = c, .num = s->num };
	snprintf(i->id, sizeof i->id, "%s", s->id);
	memcpy(i->body, s->body, len);
	*h->last = i;
	h->last = &i->next;
	h->n_items++;
	go_on(h);
}

static void client_ready(struct watch *w, uint32_t events)
{
	static union hook_packet p;
	struct client *c = OWNER_OF(w, struct client, watch);
	size_t n_fds = 0;
	int n = os_recv(w->fd, &p, sizeof p, NULL, &n_fds);

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n > 0 && hook_send_check(&p.send, (size_t)n) && c->hook->n_items < ITEMS_MAX)
		take(c, &p.send, (size_t)n);
	else
		client_leave(c);
}

static void client_start(struct hook *h, int socket_fd)
{
	AUTO(fd_close) int fd = socket_fd;
	struct client *c = mem_alloc(sizeof *c);

	*c = (struct client){ .hook = h, .next = h->clients };
	c->watch = (struct watch){ .fd = fd, .ready = client_ready };
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || loop_add(&h->loop, &c->watch, EPOLLIN) < 0) {
		free(c);
		return;
	}
	h->clients = c;
	(void)fd_take(&fd); /* the watch has it */
}

static void launcher_ready(struct watch *w, uint32_t events)
{
	struct hook *h = OWNER_OF(w, struct hook, launcher);
	char word[16];
	int fd = -1;
	size_t n_fds = 1;
	int n = os_recv(w->fd, word, sizeof word, &fd, &n_fds);

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n <= 0)
		h->loop.is_done = true;
	else if (n_fds == 1)
		client_start(h, fd);
}

/* ---- life ----------------------------------------------------------------------------- */

/* Before the filter; the text of it is nowhere else then. */
static int read_key(struct hook *h, int fd, struct err *e)
{
	void *text = NULL, *key = NULL;
	int r = os_secret_map(KEY_TEXT_MAX, false, &text);

	if (r >= 0)
		r = os_secret_map(SIGN_KEY_MAX, false, &key);
	ssize_t n = r < 0 ? -1 : read(fd, text, KEY_TEXT_MAX);

	if (r >= 0 && n < 0)
		r = -errno;
	if (r < 0)
		err_sys(e, -r, "read the key of the webhook");
	else
		r = sign_key((struct span){ text, (size_t)n }, key, e);
	os_secret_unmap(text, KEY_TEXT_MAX);
	h->key = key;
	h->key_len = r < 0 ? 0 : (size_t)r;
	(void)close(fd);
	return r < 0 ? -1 : 0;
}

static int start(struct hook *h, const struct serve_opts *o, struct err *e)
{
	h->last = &h->first;
	h->again.fired = again_fired;
	if (weburl_read(span_of(o->url), &h->to) < 0)
		return err_new(e, ERR_INVALID, "the webhook is no URL that can be sent to");
	if (read_key(h, o->key_fd, e) < 0 || rules_read(&h->rules, rules, strlen(rules), e) < 0)
		return -1;
	if (o->proxy)
		rules_proxy_by(&h->rules, o->proxy);
	if (harden_caller(e) < 0)
		return -1;
	int r = loop_init(&h->loop);
	if (r >= 0)
		r = timers_init(&h->timers, &h->loop);
	if (r < 0)
		return err_sys(e, -r, "start");
	if (lookups_init(&h->lookups, &h->loop, &h->timers) < 0)
		return err_new(e, ERR_INTERNAL, "start the resolver");
	h->dialer = (struct dialer){ &h->loop, &h->timers, &h->lookups, &h->rules };
	if (ends_init_outside(&h->ends, e) < 0)
		return -1;
	h->launcher = (struct watch){ .fd = o->launcher_fd, .ready = launcher_ready };
	r = fcntl(o->launcher_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r >= 0)
		r = loop_add(&h->loop, &h->launcher, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch") : 0;
}

int serve_run(const struct serve_opts *o, struct err *e)
{
	static struct hook h;

	signal(SIGPIPE, SIG_IGN);
	if (start(&h, o, e) < 0)
		return -1;
	journal(JOURNAL_INFO, "webhooks are sent", NULL);
	int r = loop_run(&h.loop);

	post_cancel(&h);
	for (struct client *c = h.clients, *next; c; c = next) {
		next = c->next;
		client_leave(c);
	}
	while (h.first)
		item_end(&h, 0, true);
	lookups_done(&h.lookups);
	ends_done(&h.ends);
	rules_done(&h.rules);
	os_secret_unmap(h.key, SIGN_KEY_MAX);
	timers_done(&h.timers, &h.loop);
	loop_close(&h.loop);
	return r < 0 ? err_sys(e, -r, "wait") : 0;
}
