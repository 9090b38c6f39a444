/*
 * share.c - whose bodies the memory of the server is taken by. One owner (a tenant; all clients
 * without one together) has an eighth of it at most, and all owners leave an eighth to the
 * operator.
 */
#include "api/server-internal.h"

#define SHARES 8

struct share {
	struct share *next;
	size_t refs, bytes;
	char owner[];
};

static struct share *share_find(struct server *s, const char *owner)
{
	struct share *f = s->shares;

	while (f && strcmp(f->owner, owner) != 0)
		f = f->next;
	if (f)
		return f;
	f = mem_alloc(sizeof *f + strlen(owner) + 1);
	*f = (struct share){ .next = s->shares };
	memcpy(f->owner, owner, strlen(owner) + 1);
	s->shares = f;
	return f;
}

void share_join(struct exchange *x)
{
	bool is_operator = x->r.door == DOOR_UNIX && !x->r.owner;

	if (is_operator)
		return;
	x->share = share_find(x->conn->server, x->r.owner ? x->r.owner : "");
	x->share->refs++;
}

bool share_take(struct exchange *x, size_t n)
{
	struct server *s = x->conn->server;
	size_t part = s->memory_max / SHARES,
	       most = x->share ? s->memory_max - part : s->memory_max;

	if (n > most || s->bodies > most - n ||
	    (x->share && (n > part || x->share->bytes > part - n)))
		return false;
	s->bodies += n;
	s->held += n;
	if (x->share)
		x->share->bytes += n;
	return true;
}

void share_leave(struct exchange *x)
{
	struct server *s = x->conn->server;

	s->bodies -= x->body.len;
	s->held -= x->body.len;
	if (!x->share)
		return;
	x->share->bytes -= x->body.len;
	if (--x->share->refs > 0)
		return;
	struct share **at = &s->shares;

	while (*at != x->share)
		at = &(*at)->next;
	*at = x->share->next;
	free(x->share);
	x->share = NULL;
}
