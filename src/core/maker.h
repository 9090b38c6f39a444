/*
 * maker.h - what the daemon asks of the launcher (wire/launch.h). Answers come later, in the loop.
 */
#pragma once

#include "core/core.h"

/* One of m and e is NULL. `channel_fd` is the callee's to take. */
typedef void made_fn(void *arg, const struct launch_made *m, int channel_fd, const struct err *e);
typedef void opened_fn(void *arg, const struct launch_opened *o, int fd, const struct err *e);

/* `fd` is the callee's to take: a socket to whom was asked for; -1 with `e`. */
typedef void given_fn(void *arg, int fd, const struct err *e);

/* Asks what the host can do, waits for that one answer, then watches the channel. */
int maker_open(struct core *c, int fd, struct err *e) MUST_USE;
void maker_close(struct core *c);
void maker_ready(struct core *c); /* requests are answered from now on */

/* One more mount: tree `tree` of the store (wire/vault.h), shown at `at` as it is. Mounts may come
 * in any order; false when there is no room. */
struct maker_tree {
	uint64_t tree;
	const char *at;
	bool is_read_only; /* a sealed one has to be */
};
bool maker_add_tree(struct launch_make *m, struct str *text, struct maker_tree t);
/* The same for a workspace that is open; t.tree is its number. One at most. */
bool maker_add_work(struct launch_make *m, struct str *text, struct maker_tree t);

/* `make` is whole but for text_len. Sent at once and not kept. */
void maker_make(struct core *c, const struct launch_make *make, const struct str *text,
                made_fn *done, void *arg);
/* `client_fd` says whose rights count: the launcher asks the socket itself. -1: the operator's list
 * of host paths. */
void maker_path(struct core *c, const char *path, int client_fd, opened_fn *done, void *arg);
void maker_gate(struct core *c, given_fn *done, void *arg);  /* a new child of it */
void maker_cache(struct core *c, given_fn *done, void *arg); /* a stream to it */
void maker_ledger(struct core *c, given_fn *done, void *arg);
void maker_hook(struct core *c, given_fn *done, void *arg);
/* The keeper of a workspace's storage, or of the store (0), started if it does not run. Whoever had
 * a socket to it before hears its end. the ids are the launcher's to fill. */
void maker_vault(struct core *c, const struct vault_open *open, given_fn *done, void *arg);
/* Of these: nobody waits any more. */
void maker_cancel(struct core *c, const void *arg);
void maker_clean(struct core *c,
                 int slot); /* its monitor is dead, and was no child of this launcher */
/* SIGKILL for the monitor of that slot, if it has that name. Its end is told as any other. */
void maker_kill(struct core *c, int slot, const char *name);
