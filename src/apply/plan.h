/*
 * plan.h - what a change of a workspace does to a folder of the host. Pure.
 *
 * A change is a list of names, each as it was (base) and as it is (head) in the workspace, and as
 * the folder has it (host). A name is applied when the folder has what it was, skipped when it has
 * what it is, merged when all three are files; everything else is a conflict, and then nothing at
 * all is applied.
 *
 * Modes are taken as git does: whether the owner may execute it. The rest is the folder's own
 * affair; setuid, setgid and sticky bits of the workspace never cross (later_mode()).
 */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "base/arena.h"
#include "base/vec.h"
#include "wire/span.h"

#define APPLY_STAGE                                                                                \
	".caisson-apply." /* how our folder in the folder begins: no name of a change              \
	                   */

enum node_type {
	NODE_NONE,
	NODE_FILE,
	NODE_LINK,
	NODE_DIR,
	NODE_OTHER,     /* a device, a pipe */
	NODE_BLOCKED,   /* host: a folder that it should lie in is something else */
	NODE_ELSEWHERE, /* host: another file system is mounted over a folder that it should lie in
	                 */
};

struct apply_node {
	enum node_type type;
	mode_t mode;
	const char *target; /* of a link */
};

/* Which file of the host it was that we looked at. */
struct apply_ident {
	uint64_t ino, size;
	struct timespec mtime;
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

enum apply_act {
	ACT_NONE,     /* the folder has it */
	ACT_CREATE,   /* where nothing is */
	ACT_REPLACE,  /* what is there */
	ACT_MERGE,    /* of three versions one has to be made; then it is ACT_REPLACE */
	ACT_MODE,     /* only its mode */
	ACT_DELETE,   /* a file or link */
	ACT_MKDIR,    /* where nothing is, */
	ACT_TO_DIR,   /* or instead of a file */
	ACT_RMDIR,    /* unless there is more in it than we know of; */
	ACT_FROM_DIR, /* or it has to be empty: a file comes instead */
	ACT_LEAVE,    /* left out: `why` */
	ACT_CONFLICT, /* `why` */
	ACTS
};

struct apply_entry {
	const char *path; /* any bytes but NUL; apply_path_is() */
	struct apply_node base, head, host;
	uint64_t bytes;         /* of the file in the workspace */
	struct apply_ident was; /* host: of a file, link or folder */
	bool has_base_bytes;    /* host: a file with the bytes of base, */
	bool has_head_bytes;    /* or of head */
	bool is_mode_only;      /* base and head have the same bytes */
	bool is_reverted; /* base and head are the same: it differs from what was applied before */

	enum apply_act act;
	mode_t mode;     /* that it gets: CREATE, REPLACE, MERGE, MODE, FROM_DIR; of a file */
	const char *why; /* LEAVE, CONFLICT */
};

struct apply_change {
	struct apply_entry *at; /* sorted by path, bytewise */
	size_t n;
};

/* Parts that are neither empty nor `.` nor `..`, and not our own folder. */
bool apply_path_is(const char *path);
/* NULL: not there. */
struct apply_entry *apply_find(const struct apply_change *c, const char *path);
/* The host has it; `has_bytes`: a file with the same. */
bool apply_is_same(const struct apply_node *n, const struct apply_node *host, bool has_bytes);
/* act, mode, why; once everything else is known, and after those of the folders that it lies in. */
void apply_decide(const struct apply_change *c, struct apply_entry *e, mode_t umask);
const char *apply_act_name(enum apply_act act); /* "create" */
bool apply_act_writes(enum apply_act act); /* a file or link is there afterwards that was not */

/* ---- steps ---- */

enum op_kind { OP_REMOVE, OP_RMDIR, OP_MKDIR, OP_CREATE, OP_REPLACE, OP_MODE, OP_KINDS };

struct apply_op {
	enum op_kind kind;
	const char *path;
	struct apply_entry *entry; /* NULL: read from a journal, or a folder that has to be there */
	uint32_t number;           /* of its files in our folder: "n7", "o7" */
	mode_t before, after;      /* RMDIR, MKDIR, MODE */
	uint64_t ino_new, ino_old; /* CREATE, REPLACE; REPLACE, MODE, REMOVE */
	bool is_needed;            /* RMDIR: it has to be empty */
};

struct apply_ops {
	struct arena arena;
	VEC(struct apply_op) list;
};

/* In the order in which they are done. Every folder of a new name is there, also one that the host
 * has: host_trim(). */
void apply_steps(const struct apply_change *c, mode_t umask, struct apply_ops *out);
void apply_ops_done(struct apply_ops *ops);
