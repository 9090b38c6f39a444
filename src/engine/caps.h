/*
 * caps.h - the command's identity and the end of its privileges.
 */
#pragma once

#include "base/err.h"
#include "engine/command.h"
#include "engine/plan.h"

/* Capabilities that the command keeps: none, or the six of `profile: rootful` for root. */
uint64_t caps_kept(const struct plan *p, const struct command *c);

unsigned long caps_securebits(uint64_t kept);

/* User, group, all five capability sets, securebits, no_new_privs. Nothing comes back after it. */
int caps_drop(const struct plan *p, const struct command *c, struct err *e) MUST_USE;
/* What a later execve could give back; the rights in use stay. */
int caps_bound(uint64_t kept, struct err *e) MUST_USE;
/* The rest of it for pid 1 of `uid`, after caps_bound(0): nothing kept at all. */
int caps_drop_all(uid_t uid, gid_t gid, struct err *e) MUST_USE;
