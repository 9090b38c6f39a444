/*
 * cgroup-internal.h - shared by cgroup.c (making) and cgroup_end.c (killing, counting).
 */
#pragma once

#include "engine/cgroup.h"

/* The folder whose files govern this controller; -1 without one. */
int cgroup_tree_of(const struct cgroup *cg, enum cgroup_controller c);
/* Kills what lives in base/name and removes it with its leaves. Best effort. */
void cgroup_sweep_dir(int base_fd, const char *name, bool is_v2);
