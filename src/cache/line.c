/*
 * line.c - connections to servers: one fetch has one, and leaves it for the next.
 *
 * A line that waits is closed when its server says anything, or after a moment. Who takes one may
 * find that its server has just left: then it dials.
 */
#include "base/fd.h"
#include "cache/cache-internal.h"

#define IDLE_MS 15000
#define IDLE_MAX 64

static void unlink_line(struct line *l)
{
	struct cache *c = l->cache;

	for (struct line **at = &c->idle; *at; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			c->n_idle--;
			break;
		}
	timer_stop(&c->timers, &l->timer);
}

void line_close(struct line *l)
{
	if (!l)
		return;
	unlink_line(l);
	side_close(&l->side);
	free(l);
}

static void line_heard(struct watch *w, uint32_t events)
{
	struct line *l = OWNER_OF(w, struct line, side.relay.client.watch);

	if (!l->ready) {
		line_close(l); /* nobody has asked for anything */
		return;
	}
	leg_heard(&l->side.leg, events);
	l->ready(l->owner);
}

static void too_long(struct timer *t)
{
	line_close(OWNER_OF(t, struct line, timer));
}

struct line *line_open(struct cache *c, const struct weburl *to, int fd,
                       const struct rules_addr *real)
{
	struct line *l = mem_alloc(sizeof *l);

	*l = (struct line){ .cache = c,
		            .is_tls = to->is_tls,
		            .port = to->port,
		            .real = *real,
		            .timer.fired = too_long };
	memcpy(l->host, to->host, sizeof l->host);
	side_open(c, &l->side, fd, line_heard);
	if (to->is_tls)
		l->side.leg.tls = ends_connect(&c->ends, fd, to->host);
	if (!to->is_tls || l->side.leg.tls)
		return l;
	line_close(l);
	return NULL;
}

struct line *line_take(struct cache *c, const struct weburl *to, const struct view *view)
{
	struct line *l = c->idle;

	while (l && (l->is_tls != to->is_tls || l->port != to->port ||
	             strcmp(l->host, to->host) != 0 || !view_may_see(view, &l->real)))
		l = l->next;
	if (l)
		unlink_line(l);
	return l;
}

static struct line *oldest(const struct cache *c)
{
	struct line *l = c->idle;

	while (l && l->next)
		l = l->next;
	return l;
}

void line_leave(struct line *l)
{
	struct cache *c = l->cache;

	if (l->side.leg.is_eof || l->side.leg.is_broken || leg_input(&l->side.leg).len > 0) {
		line_close(l);
		return;
	}
	l->ready = NULL;
	l->next = c->idle;
	c->idle = l;
	if (++c->n_idle > IDLE_MAX)
		line_close(oldest(c));
	leg_watch(&l->side.relay, &l->side.leg, true);
	timer_set(&c->timers, &l->timer, IDLE_MS);
}

void lines_done(struct cache *c)
{
	for (struct line *l = c->idle, *next; l; l = next) {
		next = l->next;
		line_close(l);
	}
}
