/*
 * inner.h - a request of the daemon to itself, on behalf of a client: what a door for another
 * protocol translates into.
 *
 * It goes over a pair of sockets, and the server sees a connection of that same client: identity,
 * scopes, limits and records are those of any request, and there is no second way to a handler.
 * Who hangs up ends it as any client does.
 */
#pragma once

#include "api/routes.h"

#define INNER_BODY_MAX (32u << 20) /* of an answer */

struct inner;

/* Who asks; a copy of his own, so that it outlives his request. */
struct inner_as {
	struct server_peer peer;
	char *authorization; /* NULL: none */
};
struct inner_as inner_as(struct call *c);
void inner_as_done(struct inner_as *as);

struct inner_ask {
	const char *method, *target; /* encoded, with its query */
	const char *accept;          /* NULL: JSON */
	const char *type;            /* of the body; NULL: JSON */
	struct span body;            /* nothing: none */
};

/* Once, never from within inner_call(); `status` 0: the connection broke. The inner is gone then.
 */
typedef void inner_fn(void *arg, int status, struct span body);

/* NULL: there are no more descriptors; `done` is not called. */
struct inner *inner_call(struct api *a, const struct inner_as *as, const struct inner_ask *ask,
                         inner_fn *done, void *arg) MUST_USE;
void inner_cancel(struct inner *i); /* hangs up; NULL is fine */
