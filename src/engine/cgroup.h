/*
 * cgroup.h - limits that hold for a whole sandbox, on cgroup v1, hybrid and v2 hosts.
 *
 * Below the base of each hierarchy lies caisson/. A hierarchy with a limit has a folder per
 * sandbox there; on v2 with two leaves, mon (the monitor and pid 1) and box (the commands, with
 * the limits): a process without rights may only be moved below a folder that was handed to it,
 * so the monitor has to live in there too. A hierarchy without limits (devices, freezer, ...)
 * is shared: the monitor joins caisson/ itself, and what it starts is born there.
 *
 * Moving a process between cgroups costs an RCU grace period, 15 ms. Two ways do not:
 * CLONE_INTO_CGROUP on v2, and on v1 a thread that writes "0" to `tasks`. We use no other.
 *
 *   launcher: cgroup_find, cgroup_prepare (before the monitor is cloned into mon_fd),
 *             cgroup_make, cgroup_limit ... cgroup_remove, cgroup_kill when that fails
 *   monitor:  cgroup_join_shared, cgroup_take_keys; each command: cgroup_join, clone into box_fd
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "spec/spec.h"

#define CGROUP_HIERARCHIES_MAX 12

enum cgroup_controller { CG_CPU, CG_MEMORY, CG_PIDS, CG_CONTROLLERS };

struct cgroup_tree {
	char path[192]; /* the base: where caisson/ lies */
	bool is_v2;
	bool is_shared;           /* no limit here: no folder per sandbox */
	bool is_devices;          /* v1: wants the list of devices at birth */
	unsigned int controllers; /* bit per cgroup_controller */
	int tasks_fd;             /* v1: opened by root, written by whoever joins */
};

struct cgroup {
	struct cgroup_tree trees[CGROUP_HIERARCHIES_MAX];
	size_t n_trees;
	char name[16];
	int box_fd; /* v2: where commands are cloned into; else -1 */
	int mon_fd; /* v2: where the monitor is cloned into; else -1 */
};

/* What the host has and lets us use; a host without cgroups has none. 0 or -errno: not knowing is
 * no reason to do without. */
int cgroup_find(struct cgroup *cg, bool is_root);
bool cgroup_has(const struct cgroup *cg, enum cgroup_controller c);
const char *cgroup_mechanism(const struct cgroup *cg,
                             enum cgroup_controller c); /* "cgroup2", "cgroup1" or NULL */

/* What must exist before the monitor is cloned. */
int cgroup_prepare(struct cgroup *cg, const char *name, struct err *e) MUST_USE;
/* Makes the folders with the limits; on v2 `owner` may then clone into them. A leftover of that
 * name is killed and removed first: the caller holds the slot, so nobody lives in it. */
int cgroup_make(struct cgroup *cg, uid_t owner, struct err *e) MUST_USE;
int cgroup_limit(const struct cgroup *cg, const uint64_t limits[LIMIT_COUNT],
                 struct err *e) MUST_USE;

/* The calling process into the shared hierarchies. */
int cgroup_join_shared(const struct cgroup *cg, struct err *e) MUST_USE;
/* What lets a process without rights start others in the groups: passed from launcher to monitor.
 */
#define CGROUP_KEYS_MAX 4
size_t cgroup_keys(const struct cgroup *cg, int *fds, size_t max);
int cgroup_take_keys(struct cgroup *cg, int *fds, size_t n_fds) MUST_USE; /* 0 or -EPROTO */
/* The calling process into the v1 hierarchies with limits. */
int cgroup_join(const struct cgroup *cg, struct err *e) MUST_USE;

/* Kills all members and waits until none is left. 0, or -ETIME. */
int cgroup_kill(const struct cgroup *cg, unsigned int timeout_ms);
/* Returns the number of folders left: of those that still have members. */
int cgroup_remove(const struct cgroup *cg);
void cgroup_done(struct cgroup *cg); /* closes descriptors only */

struct cgroup_usage {
	uint64_t cpu_ms, mem_peak, pids_denied; /* 0 where the host does not say */
};
void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *out);
uint64_t cgroup_oom_kills(const struct cgroup *cg);
/* Pids of the members, as this process sees them; returns how many (at most max). */
size_t cgroup_members(const struct cgroup *cg, pid_t *out, size_t max);

/* Somebody's folder lies below caisson/: a living sandbox's or a leftover. Cheap. */
bool cgroup_any(const struct cgroup *cg);
/* Names below caisson/ in any hierarchy: calls back once per hierarchy and name. */
void cgroup_each_name(const struct cgroup *cg, void (*found)(const char *name, void *arg),
                      void *arg);
void cgroup_remove_base(const struct cgroup *cg); /* caisson/ itself, where empty */
