/*
 * landlock.h - the second wall around files: what the mounts allow, said once more.
 */
#pragma once

#include "base/err.h"
#include "engine/command.h"
#include "engine/plan.h"

/* Everything may be read and executed; only the folders that are meant for it may be written.
 * Called in the command's process, in the new root, with no_new_privs set. */
int landlock_enter(const struct plan *p, const struct command *c, int program_fd,
                   struct err *e) MUST_USE; /* program_fd: of a worker of ours, or -1 */
int landlock_abi(void);                     /* 0: this kernel has none */
