/*
 * reserve.h - sandboxes do not take the last of the store's file system.
 *
 * While a sandbox has a workspace the daemon looks at the file system, up to ten times a second.
 * Below the reserve (wire/room.h) workspaces with sandboxes are counted, and the sandboxes of the
 * largest are stopped until none holds more than twice the reserve. Inodes have a second reserve,
 * files that the keeper of the store made before (V_RESERVE): a writer that is faster than our look
 * meets ENOSPC, and these are removed when it has been stopped.
 */
#pragma once

#include "core/workspace.h"

/* A sandbox has a workspace from now on, or is started again. */
void reserve_watch(struct core *c);
/* `quota` for a workspace that holds much while the file system lacks room. */
int reserve_check(const struct wsx *w, struct fail *f) MUST_USE;
void reserve_close(struct core *c);
