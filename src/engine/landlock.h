/*
 * landlock.h - the second wall around files: what the mounts allow, said once more.
 */
#pragma once

#include "base/err.h"
#include "engine/command.h"
#include "engine/plan.h"

/* Everything may be read and executed; only the folders that are meant for it may be written. The
 * rules are made in the new root before anything runs in it, which could put other folders in the
 * place of those. Returns a descriptor; -1 with e->kind ERR_NONE in a test build without this wall.
 */
int landlock_rules(const struct plan *p, struct err *e) MUST_USE;
/* In the command's process, in the new root, with no_new_privs set. The one command of a sandbox
 * also keeps signals and names of abstract sockets to itself and what it starts, from Linux 6.12
 * on. Commands of a kept sandbox are in domains of their own, and must reach each other: there the
 * pid and network namespaces are the only walls. */
struct landlock_fds {
	int rules;   /* -1: made now */
	int program; /* of a worker of ours, or -1 */
};
int landlock_enter(const struct plan *p, const struct command *c, struct landlock_fds fds,
                   struct err *e) MUST_USE;
int landlock_abi(void); /* 0: this kernel has none */
