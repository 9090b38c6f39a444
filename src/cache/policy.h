/*
 * policy.h - what the package cache may ask of the kernel. Data for tools/gen-filters.c.
 *
 * The list of the gate's children, and what files of its own need. It starts no process, changes
 * nothing about itself, makes no socket but those of TCP and DNS, and never listens.
 */
#pragma once

#include "gate/policy.h"

/* clang-format off */
static const struct policy_group policy_cache[] = {
	POLICY_GATE_BOTH,
	{ BY_ARGS(GATE_ARGS_SOCKET), "TCP and UDP", "socket" },
	{ ALLOW, "files of its own: made, synced, renamed, removed, listed; how full the disk is",
	  "pwrite64 pwritev fdatasync renameat unlinkat mkdirat getdents64 fstatfs" },
};
/* clang-format on */
