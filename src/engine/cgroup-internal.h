/*
 * cgroup-internal.h - shared by cgroup.c (making), cgroup_leaf.c (one command) and cgroup_end.c
 * (killing, counting).
 */
#pragma once

#include "engine/cgroup.h"

#define CGROUP_BASE "caisson"
#define CGROUP_PATH_MAX 320

/* base/caisson/<name>[/leaf]/file */
void cgroup_path(const struct cgroup *cg, const struct cgroup_tree *t, const char *rest, char *out);
/* The hierarchy that has this controller, or NULL. */
const struct cgroup_tree *cgroup_tree_of(const struct cgroup *cg, enum cgroup_controller c);
/* Where the limits of a hierarchy are written and its members listed: "box/" on v2, else "". */
const char *cgroup_leaf(const struct cgroup_tree *t);
/* Kills what lives in the sandbox's folder of one hierarchy and removes it. Best effort. */
void cgroup_sweep(const struct cgroup *cg, const struct cgroup_tree *t);
/* The hierarchy with the leaves, or NULL: none, or not a sandbox that is kept. */
const struct cgroup_tree *cgroup_leaf_tree(const struct cgroup *cg);
/* Pids in `folder`/cgroup.procs, as many as there is room for. */
size_t cgroup_list(const char *folder, pid_t except, pid_t *out,
                   size_t max); /* except: 0 for none */
/* SIGKILL for those of `pids` that list() still names when a pidfd holds them, but nobody with a
 * uid below least_uid. */
typedef size_t cgroup_list_fn(const void *arg, pid_t *out, size_t max);
void cgroup_kill_listed(cgroup_list_fn *list, const void *arg, uid_t least_uid, pid_t *pids,
                        size_t n);
/* Where a process is, in the text of its /proc/PID/cgroup: up to the end of the line; "" asks for
 * v2. NULL: nowhere. */
const char *cgroup_path_in(const char *list, const char *controller);
/* cgroup_huge.c: in caisson/ of this hierarchy. How many sizes of pages are bounded. */
int cgroup_forbid_huge(const struct cgroup_tree *t);
/* The number after `key` in an open file, which is read from its beginning; 0 without it. */
uint64_t cgroup_number_at(int fd, const char *key);
/* "base/caisson/name/box/", of one hierarchy: where members and leaves are. */
void cgroup_folder(const struct cgroup *cg, const struct cgroup_tree *t, char *out);
