/*
 * hostcheck.h - what this host can enforce, by what, and what it lacks.
 *
 * Reading, trying and judging are apart. hostcheck_read() reads files below a root, so that a
 * test can give it a tree of its own; hostcheck_try() asks the kernel by doing what a launch does;
 * hostcheck_judge() is pure: facts in, rows out.
 *
 * The walls are the same in both modes: also in root mode it is a process without rights that
 * makes the namespaces. What differs is who may use which cgroup.
 */
#pragma once

#include "base/arena.h"
#include "engine/cgroup.h"

#define HOST_FLOOR_MAJOR 6
#define HOST_FLOOR_MINOR 1
#define HOST_SETTINGS_MAX 32
#define HOST_ROWS_MAX 96

enum host_mode { HOST_ROOT, HOST_ROOTLESS, HOST_MODES };

enum host_layout { LAYOUT_NONE, LAYOUT_V1, LAYOUT_HYBRID, LAYOUT_V2 };

/* What can only be known by doing it. */
enum host_try {
	TRY_NAMESPACES,
	TRY_OVERLAY,
	TRY_PROC,
	TRY_NOTIFY,
	TRY_NETFILTER,
	TRY_IDMAP,
	TRY_LAYERS,
	TRY_VOLUMES,
	TRY_COUNT
};

#define HOST_UNKNOWN (-1)

struct host_value {
	enum { VALUE_ABSENT, VALUE_HIDDEN, VALUE_READ } state; /* some only root may read */
	long long value;
};

struct hostfacts {
	enum host_mode mode; /* the one that this process runs in */

	/* files */
	char release[72];
	unsigned int major, minor; /* 0.0: not known */
	struct host_value settings[HOST_SETTINGS_MAX];
	char core_pattern[128];
	char lsm[128];          /* names, separated by commas */
	char vulnerable[256];   /* what the processor suffers from, unmitigated */
	char proc_covered[128]; /* the first path below /proc that is covered, or "" */
	bool is_swap_uncounted; /* there is swap, and nothing counts it */

	/* cgroups: bits of enum cgroup_controller */
	enum host_layout layout;
	unsigned int v1, v2;                /* mounted on v1; handed to the top of v2 */
	char hierarchy[CG_CONTROLLERS][32]; /* of v1, mounted or not: "cpu,cpuacct"; or "" */
	unsigned int disabled;              /* switched off at boot */
	struct cgroup cgroups[HOST_MODES];  /* only `controllers` of the trees counts */
	bool is_delegation_known;           /* root cannot tell what a user was given */

	/* trials */
	int tried[TRY_COUNT]; /* 0: works; an errno; HOST_UNKNOWN: not tried */
	int landlock_abi;     /* 0: none; HOST_UNKNOWN: not asked */
};

enum host_area { AREA_WALLS, AREA_ROOT, AREA_ROOTLESS, AREA_SETTINGS };

enum host_state { HOST_OK, HOST_WEAK, HOST_MISSING, HOST_NOT_KNOWN };

struct hostcheck_row {
	enum host_area area;
	enum host_state state;
	const char *name;
	const char *by;     /* the mechanism, or the value of a setting; NULL: nothing */
	const char *detail; /* why it matters; NULL: ok, or another row says it */
	const char *fix;    /* a command, or what to change; NULL: none */
};

/* `root` is "" for this host. Nothing is tried: the trials are unknown. */
void hostcheck_read(const char *root, enum host_mode mode, struct hostfacts *out);

/* Makes throw-away processes in namespaces of their own; changes nothing on the host. Replaces
 * what was read about the cgroups of this mode by what a launch would use. */
void hostcheck_try(struct hostfacts *f);

/* Just the one: can a sandbox have a network here? 0 or the errno. */
int hostcheck_net(bool is_root);

/* Texts are static, in the facts or in the arena. Returns the number of rows. */
size_t hostcheck_judge(const struct hostfacts *f, struct arena *arena,
                       struct hostcheck_row rows[HOST_ROWS_MAX]);

/* The default spec: every wall, and every default limit, in the mode that we run in. */
bool hostcheck_enforceable(enum host_mode mode, const struct hostcheck_row *rows, size_t n);

/* Adds to the error of a launch why, and what to type, when this host's own files tell. False: they
 * do not, or the error is the caller's. */
bool hostcheck_advise(const char *root, enum host_mode mode, struct err *e);

/* The same to the error of a limit that has no mechanism: as the row of doctor has it. */
void hostcheck_advise_limit(const char *root, enum host_mode mode, const char *field,
                            struct err *e);

const char *hostcheck_layout_name(enum host_layout layout);
