#include "core/cache.h"

#include <fcntl.h>

#include "base/fd.h"
#include "core/maker.h"
#include "os/net.h"

#define ANSWER_MAX (16u << 20)
#define ANSWER_MS 1800000 /* all of it may have to be read */
#define PIECE (64u << 10)

struct cache_ask {
	struct watch watch; /* fd -1: the launcher was asked for a stream */
	struct core *core;
	struct cache_ask *next, **link;
	cache_answer_fn *done;
	void *arg;
	char *line;
	struct str answer;
	struct timer late;
};

static void ask_free(struct cache_ask *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	if (a->watch.fd >= 0)
		loop_remove(a->core->loop, &a->watch);
	else
		maker_cancel(a->core, a);
	fd_close(&a->watch.fd);
	timer_stop(&a->core->timers, &a->late);
	str_done(&a->answer);
	free(a->line);
	free(a);
}

static void failed(struct cache_ask *a, const char *why)
{
	struct fail f = { 0 };

	fail_set(&f, FAIL_BACKEND_ERROR, "the package cache: %s", why);
	a->done(a->arg, NULL, &f);
	ask_free(a);
}

static void finish(struct cache_ask *a)
{
	json_t *o =
	    a->answer.overflow ? NULL : json_loadb(str_text(&a->answer), a->answer.len, 0, NULL);
	const char *error = json_string_value(json_object_get(o, "error"));

	if (!json_is_object(o) || error) {
		failed(a, error ? error : "it ended before it had answered");
	} else {
		a->done(a->arg, o, NULL);
		ask_free(a);
	}
	json_decref(o);
}

static void answer_ready(struct watch *w, uint32_t events)
{
	static char buf[PIECE];
	struct cache_ask *a = (struct cache_ask *)(void *)w;
	int n = os_recv_some(w->fd, buf, sizeof buf);

	(void)events;
	if (n > 0)
		str_addn(&a->answer, buf, (size_t)n);
	else if (n != -EAGAIN)
		finish(a);
}

static void late(struct timer *t)
{
	failed((struct cache_ask *)(void *)((char *)t - offsetof(struct cache_ask, late)),
	       "it does not answer");
}

/* A line is short: a new stream takes it whole. */
static void opened(void *arg, int stream_fd, const struct err *e)
{
	struct cache_ask *a = arg;
	struct iovec line = { a->line, strlen(a->line) };
	AUTO(fd_close) int fd = stream_fd;

	if (e) {
		failed(a, e->msg);
		return;
	}
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || os_sendv(fd, &line, 1) != (int)line.iov_len) {
		failed(a, "it takes no question");
		return;
	}
	a->watch.fd = fd_take(&fd);
	int r = loop_add(a->core->loop, &a->watch, EPOLLIN);

	if (r < 0)
		failed(a, strerror(-r));
}

void cache_ask(struct core *c, json_t *ask, cache_answer_fn *done, void *arg)
{
	AUTO(freep) char *text = json_dumps(ask, JSON_COMPACT);
	AUTO(str_done) struct str line = { .max = PIECE };
	struct cache_ask *a = mem_alloc(sizeof *a);

	json_decref(ask);
	str_addf(&line, "%s\n", text);
	*a = (struct cache_ask){ .watch = { .fd = -1, .ready = answer_ready },
		                 .core = c,
		                 .next = c->cache_asks,
		                 .link = &c->cache_asks,
		                 .done = done,
		                 .arg = arg,
		                 .line = mem_strdup(str_text(&line)),
		                 .answer.max = ANSWER_MAX,
		                 .late.fired = late };
	if (a->next)
		a->next->link = &a->next;
	c->cache_asks = a;
	timer_set(&c->timers, &a->late, ANSWER_MS);
	maker_cache(c, opened, a);
}

void cache_asks_done(struct core *c)
{
	for (struct cache_ask *a = c->cache_asks, *next; a; a = next) {
		next = a->next;
		ask_free(a);
	}
}
