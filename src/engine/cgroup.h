/*
 * cgroup.h - limits that hold for a whole sandbox, on cgroup v1, hybrid and v2 hosts.
 *
 * Below the base of each hierarchy lies caisson/. A hierarchy with a limit has a folder per
 * sandbox there; on v2 with two leaves, mon (the monitor and pid 1, with limits of their own) and
 * box (the commands, with the sandbox's): a process without rights may only be moved below a folder
 * that was handed to it, so the monitor has to live in there too. A hierarchy without limits
 * (devices, freezer, ...) is shared: the monitor joins caisson/ itself, or a launcher that makes
 * many lives there, and what it starts is born there.
 *
 * A sandbox that is kept has a freezer of its own, and every command of it a leaf: a group with
 * the command and all it started, however it detached itself. Leaves lie in one hierarchy, that of
 * the pids; the monitor makes them in a folder that was handed to it.
 *
 * Moving a process between cgroups costs an RCU grace period, 15 ms. Two ways do not:
 * CLONE_INTO_CGROUP on v2, and on v1 a thread that writes "0" to `tasks`. We use no other.
 *
 *   launcher: cgroup_find, [cgroup_keep], cgroup_prepare (before the monitor is cloned into
 *             mon_fd), cgroup_make, cgroup_limit ... cgroup_remove, cgroup_kill when that fails
 *   monitor:  cgroup_join_shared, cgroup_take_keys; each command: [cgroup_leaf_make], cgroup_join,
 *             clone into box_fd or the leaf
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
	bool is_freezer;          /* v1 */
	bool is_tcp_uncounted;    /* v1: of the memory, on a kernel that was built without */
	unsigned int controllers; /* bit per cgroup_controller */
	int tasks_fd;             /* v1: opened by the monitor, written by whoever joins */
};

struct cgroup {
	struct cgroup_tree trees[CGROUP_HIERARCHIES_MAX];
	size_t n_trees;
	char name[16];
	int box_fd; /* v2: where commands are cloned into; else -1 */
	int mon_fd; /* v2: where the monitor is cloned into; else -1 */
	bool is_kept;
	uid_t least_uid; /* v1: a member with a lower one is not ours, and is never killed */
	pid_t init_pid;  /* in the monitor: pid 1, of v1 a member like all others */
	bool is_born_in; /* this process is in the shared groups of v1, and so is what it starts */
};

/* What the host has and lets us use; a host without cgroups has none. 0 or -errno: not knowing is
 * no reason to do without. */
int cgroup_find(struct cgroup *cg, bool is_root);
bool cgroup_counts_tcp(const struct cgroup *cg); /* with the memory */
bool cgroup_has(const struct cgroup *cg, enum cgroup_controller c);
const char *cgroup_mechanism(const struct cgroup *cg,
                             enum cgroup_controller c); /* "cgroup2", "cgroup1" or NULL */

/* For a sandbox that is kept, before cgroup_prepare(). */
void cgroup_keep(struct cgroup *cg);
/* What must exist before the monitor is cloned. */
int cgroup_prepare(struct cgroup *cg, const char *name, struct err *e) MUST_USE;
/* As os_clone(): the monitor, in its group of v2, if there is one. */
int cgroup_clone(struct cgroup *cg) MUST_USE;
/* Makes the folders with the limits; on v2 `owner` may then clone into them. A leftover of that
 * name is killed and removed first: the caller holds the slot, so nobody lives in it. */
int cgroup_make(struct cgroup *cg, uid_t owner, struct err *e) MUST_USE;
int cgroup_limit(const struct cgroup *cg, const uint64_t limits[LIMIT_COUNT],
                 struct err *e) MUST_USE;
/* For the proof. The limits are what cgroup_limit() wrote; the calling process, which sees the
 * host's /proc, is in the sandbox's group for each of the `promised` (bit per controller). */
int cgroup_limits_hold(const struct cgroup *cg, const uint64_t limits[LIMIT_COUNT],
                       struct err *e) MUST_USE;
int cgroup_membership_holds(const struct cgroup *cg, unsigned int promised, struct err *e) MUST_USE;
unsigned int
cgroup_controllers(const struct cgroup *cg); /* that the host has: bit per controller */

/* A process that starts many joins the shared v1 hierarchies itself, once; those of v2 are a
 * service manager's to count by. 0 or -errno: then each monitor joins. */
int cgroup_live_in(struct cgroup *cg);
void cgroup_leave(struct cgroup *cg); /* for the hierarchies' roots */
/* The calling process into the shared hierarchies. */
int cgroup_join_shared(struct cgroup *cg, struct err *e) MUST_USE;
/* What lets a process without rights start others in the groups: passed from launcher to monitor,
 * which takes them under its own id (v1 opens them anew for that). */
#define CGROUP_KEYS_MAX 4
size_t cgroup_keys(const struct cgroup *cg, int *fds, size_t max);
int cgroup_take_keys(struct cgroup *cg, const int *fds, size_t n_fds) MUST_USE; /* 0 or -errno */
struct cgroup_leaf {
	uint32_t num;  /* its name; 0: none */
	int fd;        /* v2: its folder, to clone into; v1: its tasks, to join */
	int events_fd; /* pids.events; v2: of all leaves */
};
/* The calling process into the v1 hierarchies with limits, and into the leaf if there is one. */
int cgroup_join(const struct cgroup *cg, const struct cgroup_leaf *leaf, struct err *e) MUST_USE;
/* Pid 1, which is born before the groups are there and has lost the id that they were handed to:
 * the first process lends it the tasks of v1, and it joins for processor, memory and pids. Of v2 it
 * is born in its group. Returns how many. */
size_t cgroup_lend(const struct cgroup *cg, int *fds, size_t max);
int cgroup_join_lent(const int *fds, size_t n); /* the calling process; 0 or -errno */
/* v2: where a new process may not be born because the pids are used up, it may still be moved. It
 * waits for that (see above). The calling process; 0 or -errno. */
int cgroup_move(const struct cgroup *cg, const struct cgroup_leaf *leaf);

/* cgroup_leaf.c: called in the monitor, all but the first best effort. */
bool cgroup_has_leaves(const struct cgroup *cg);
int cgroup_leaf_make(const struct cgroup *cg, uint32_t num,
                     struct cgroup_leaf *out);               /* or -errno */
uint32_t cgroup_leaf_of(const struct cgroup *cg, pid_t pid); /* its number; 0: in none */
size_t cgroup_leaf_members(const struct cgroup *cg, uint32_t num, pid_t *out, size_t max);
uint64_t cgroup_leaf_denied(const struct cgroup_leaf *leaf); /* births, for lack of pids, ever */
void cgroup_leaf_close(struct cgroup_leaf *leaf);            /* the descriptors only */
/* No member is born any more, all are killed; v1: those that were there when it was called. */
void cgroup_leaf_kill(const struct cgroup *cg, uint32_t num);
bool cgroup_leaf_remove(const struct cgroup *cg, uint32_t num); /* false: it has members */

bool cgroup_can_freeze(const struct cgroup *cg);
int cgroup_freeze(const struct cgroup *cg, bool on); /* 0 or -errno; it takes a moment */
int cgroup_is_frozen(const struct cgroup *cg);       /* 1 all of it, 0, or -errno */

/* Kills all members and waits until none is left. 0, or -ETIME. */
int cgroup_kill(const struct cgroup *cg, unsigned int timeout_ms);
/* Returns the number of folders left: of those that still have members. */
int cgroup_remove(const struct cgroup *cg);
void cgroup_done(struct cgroup *cg); /* closes descriptors only */

struct cgroup_usage {
	uint64_t cpu_ms, mem_peak, pids_denied; /* 0 where the host does not say */
};
void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *out);
struct cgroup_now {
	uint64_t mem, pids;
};
void cgroup_now(const struct cgroup *cg, struct cgroup_now *out);
uint64_t cgroup_oom_kills(const struct cgroup *cg);
/* The same for whoever asks often: the file, or -errno; what it says now. */
int cgroup_oom_open(const struct cgroup *cg);
uint64_t cgroup_oom_read(int fd);
/* Pids of the members but pid 1, as this process sees them; returns how many (at most max). */
size_t cgroup_members(const struct cgroup *cg, pid_t *out, size_t max);

/* Somebody's folder lies below caisson/: a living sandbox's or a leftover. Cheap. */
bool cgroup_any(const struct cgroup *cg);
/* Names below caisson/ in any hierarchy: calls back once per hierarchy and name. */
void cgroup_each_name(const struct cgroup *cg, void (*found)(const char *name, void *arg),
                      void *arg);
void cgroup_remove_base(const struct cgroup *cg); /* caisson/ itself, where empty */
