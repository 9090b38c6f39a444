/*
 * maker.h - what the daemon asks of the launcher (wire/launch.h). Answers come later, in the loop.
 */
#pragma once

#include "core/core.h"

/* One of m and e is NULL. `channel_fd` is the callee's to take. */
typedef void made_fn(void *arg, const struct launch_made *m, int channel_fd, const struct err *e);
typedef void opened_fn(void *arg, const struct launch_opened *o, int fd, const struct err *e);

/* `fd` is the callee's to take: the socket of a new child of the gate, or a stream to the package
 * cache; -1 with `e`. */
typedef void gated_fn(void *arg, int fd, const struct err *e);

/* Asks what the host can do, waits for that one answer, then watches the channel. */
int maker_open(struct core *c, int fd, struct err *e) MUST_USE;
void maker_close(struct core *c);
void maker_ready(struct core *c); /* requests are answered from now on */

/* `make` is whole but for text_len. Sent at once and not kept. */
void maker_make(struct core *c, const struct launch_make *make, const struct str *text,
                made_fn *done, void *arg);
/* `client_fd` says whose rights count: the launcher asks the socket itself. -1: the operator's list
 * of host paths. */
void maker_path(struct core *c, const char *path, int client_fd, opened_fn *done, void *arg);
void maker_gate(struct core *c, gated_fn *done, void *arg);
void maker_cache(struct core *c, gated_fn *done, void *arg);
void maker_cancel(struct core *c, const void *arg); /* of these two: nobody waits any more */
void maker_clean(struct core *c,
                 int slot); /* its monitor is dead, and was no child of this launcher */
