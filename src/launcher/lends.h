/*
 * lends.h - which paths of the host clients have lent (wire/lend.h). Root mode only: without root
 * the daemon is the caller, and opens nothing that it could not open itself.
 *
 * The socket is the launcher's own, in a folder that the daemon cannot write. Who lends is what the
 * kernel says of the connection.
 */
#pragma once

#include <sys/types.h>

#include "base/vec.h"
#include "io/loop.h"
#include "wire/lend.h"

#define LENDS_MAX 512        /* connections, each with a child */
#define LENDS_OF_ONE_MAX 128 /* of one user */
#define LENDS_KEPT_MAX 4096  /* remembered; with one more the oldest is forgotten */
#define LENDS_S_MAX 5        /* for a whole message */

struct lends_kept {
	uid_t uid;
	char *path;
};

struct lend;
struct lends {
	struct loop *loop;
	struct watch door; /* fd -1: none, nothing has to be lent */
	struct lend *first;
	size_t n;
	VEC(struct lends_kept) kept;
	int run_fd, state_fd; /* borrowed */
};

/* `api_fd`: whoever may connect there may connect here. */
int lends_open(struct lends *all, int api_fd, struct err *e) MUST_USE;
void lends_done(struct lends *all);
/* Refuses a path that this user has not lent, where paths have to be lent. */
int lends_check(const struct lends *all, uid_t uid, const char *path, struct err *e) MUST_USE;
