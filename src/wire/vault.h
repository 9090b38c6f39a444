/*
 * vault.h - what the keeper of a workspace's storage says to its launcher and to the daemon.
 *
 * caisson-vault holds the only overlay mount of one workspace, and is the only program that sees
 * its layers as they lie on disk. One per workspace that is open; a second kind, with workspace 0,
 * has no mount and looks after the store (remove, seal, verify). Started by the launcher, which
 * gives it three folders and one order; what it mounted goes back as a descriptor that the launcher
 * clones for every sandbox. The daemon then talks to it over a socket of its own, one request at a
 * time. One message is one packet of a SOCK_SEQPACKET socket: the head, then a fixed struct.
 *
 * A tree is a number that the daemon made. On disk, below the store's trees/:
 *   NUM/d        its files, with the ids that they have inside
 *   NUM/w        of a top: the overlay's work folder
 *   NUM/sealed   it never changes again; nobody mounts it writable
 *   NUM/flat     of one that V_FLATTEN made: the numbers of the layers that it stands for
 * Tree 1 is the empty one. A workspace is a stack of sealed trees and one top. Checkpoints are
 * numbers as well: blobs/ has what they hold.
 *
 * It ends, and its mount with it, when V_CLOSE says so; and by itself when for a minute it had no
 * launcher, no client, and nobody else held the lock file of its number.
 *
 * Names and contents of files are hostile: nothing here interprets them, and lists of them go as
 * JSON lines into a descriptor that the asker gave: a memfd, so that nobody waits for a reader.
 */
#pragma once

#include "base/err.h"

/* What caisson-vault finds at its start. */
#define VAULT_LAUNCHER_FD 3 /* SOCK_SEQPACKET */
#define VAULT_TREES_FD 4    /* the three folders: open for reading, not O_PATH */
#define VAULT_BLOBS_FD 5
#define VAULT_VOLUMES_FD 6
#define VAULT_LISTEN_FD                                                                            \
	7 /* SOCK_SEQPACKET: a later launcher; who connects replaces the one before */
#define VAULT_LOCK_FD                                                                              \
	8 /* the lock file of its number (launcher/slot.h), open for reading: its own share. Each  \
	   * sandbox that has the mount holds another */

#define VAULT_LAYERS_MAX 128
#define VAULT_AGENT_ID 1000u /* owns the root of a new tree (root mode) */
#define VAULT_EMPTY_TREE 1u

enum vault_type {
	/* the launcher; answer: V_OPENED or V_FAILED */
	V_OPEN, /* struct vault_open; the first. Again, by a later launcher: the same or V_FAILED.
	         * Descriptor, in root mode with a mount: a user namespace that maps the ids */
	/* the launcher, any time */
	V_CLIENT, /* descriptor: a socket to a daemon. The one before is closed */
	V_MOUNT,  /* V_OPENED with a mount that nobody else has: one for each sandbox */

	/* the daemon; each has one answer with the same tag: V_DONE or V_FAILED */
	V_CHECKPOINT, /* vault_point: what changed since `before` becomes checkpoint `number` */
	V_RESTORE,   /* vault_restore: the tree as it was at a checkpoint, through the live mount */
	V_CHANGES,   /* vault_between; descriptor: JSON lines go there */
	V_RELAYER,   /* vault_relayer: the top is sealed, a new one laid over it */
	V_SYNC,      /* all of it is on disk */
	V_USAGE,     /* of the top and of the checkpoints of this workspace */
	V_MAKE_TREE, /* vault_tree: an empty one */
	V_SEAL_TREE, /* vault_tree: synced and never written again */
	V_REMOVE_TREE,   /* vault_tree */
	V_REMOVE_VOLUME, /* vault_tree: of the workspace with this number, that nobody has open */
	V_REMOVE_POINTS, /* vault_points: checkpoints that nobody needs */
	V_RESERVE,       /* vault_tree: so many inodes are kept by empty files; 0: none */
	V_SWEEP,         /* what no checkpoint of any workspace holds is removed; done: how much */
	V_VERIFY,        /* descriptor: findings as JSON lines; done.files: how many */
	V_MEND,          /* the same, and what can be mended without a loss is (vault/verify.c) */
	V_CENSUS,  /* descriptor: all that is there, as JSON lines (vault/census.c); done.bytes: of
	            * all of it */
	V_FLATTEN, /* vault_flatten: a stack, to its bottom, becomes one new sealed tree, by links;
	            * with a checkpoint over it: what one saw then */
	V_CLOSE,   /* ends, and unmounts then; V_FAILED (EBUSY) while a sandbox has it. A
	            * launcher that ends in order says it too: its answer is the end, or V_FAILED */

	/* the vault */
	V_OPENED, /* to the launcher: struct vault_opened; descriptor: a detached mount, for one
	           * move_mount(2). None with workspace 0 */
	V_DONE,   /* struct vault_done */
	V_FAILED, /* struct err */
	V_TYPES
};

struct vault_head {
	uint32_t type, len; /* len: of what follows */
	uint32_t tag;       /* the asker's; comes back with the answer */
	uint32_t zero;
};

#define VAULT_READ_ONLY 1u /* no top: the layers alone */
#define VAULT_BOUNDED 2u   /* the top lies in a volume of its own: bytes, inodes */
#define VAULT_ROOTLESS 4u  /* one id, user.overlay.* attributes, no volume */
#define VAULT_OPEN_FLAGS 7u

struct vault_open {
	uint64_t workspace;     /* 0: the store's, no mount */
	uint64_t top;           /* made when it is not there; 0 with VAULT_READ_ONLY */
	uint64_t from;          /* a checkpoint that a new top begins with; 0: empty */
	uint64_t bytes, inodes; /* VAULT_BOUNDED */
	uint64_t ids_of; /* L_VAULT: a workspace that is open, whose sandboxes have this one too:
	                  * its ids. 0: ids of its own; always 0 in V_OPEN */
	uint32_t flags;
	uint32_t id_base, n_ids; /* root mode: host id of root inside, and how many */
	uint32_t n_layers;
	uint64_t layers[VAULT_LAYERS_MAX]; /* the uppermost first; at least VAULT_EMPTY_TREE */
};

struct vault_opened {
	uint32_t is_new; /* the top was made just now */
	uint32_t zero;
};

#define VAULT_ALWAYS 1u /* a checkpoint is made even when nothing differs */
#define VAULT_POINT_FLAGS 1u
struct vault_point {
	uint64_t number, before; /* before 0: the first of this top */
	uint32_t flags, zero;
};

#define VAULT_COUNT                                                                                \
	1u             /* nothing is changed: done.files and done.bytes say what would be written  \
	                */
#define VAULT_STILL 2u /* nobody has written since the checkpoint before this order */
#define VAULT_RESTORE_FLAGS 3u
struct vault_restore {
	uint64_t to;  /* a checkpoint; 0: an empty top */
	uint64_t now; /* what is there was checkpointed as this; 0: it was not, and is lost */
	uint32_t flags, zero;
};

/* Between two points: a checkpoint, 0: the empty top (what the layers say), UINT64_MAX: now. */
#define VAULT_NOW UINT64_MAX
#define VAULT_PLAIN 1u /* nothing was renamed: it is gone, and something came */
#define VAULT_BETWEEN_FLAGS 1u
struct vault_between {
	uint64_t from, to;
	uint32_t flags, zero;
};

/* Those with a number in this range; `workspace` is what is open, unless that is the store. */
struct vault_points {
	uint64_t workspace, from, to;
};

/* Only when no sandbox has the mount: V_FAILED (EBUSY) else, and nothing changed. V_MOUNT gives the
 * new one. With the old top among the layers it is sealed; else it is left as it is. */
struct vault_relayer {
	uint64_t new_top;
	uint64_t from; /* the new top begins with this checkpoint; 0: empty */
	uint32_t n_layers, zero;
	uint64_t layers[VAULT_LAYERS_MAX];
};

struct vault_tree {
	uint64_t number;
};
#define VAULT_RESERVE_MAX 65536u /* of V_RESERVE */

struct vault_flatten {
	uint64_t number; /* the new tree */
	uint64_t from;   /* a checkpoint of a top that lay on just these layers; 0: none */
	uint64_t filled; /* then: a tree that nobody needs, for what it held */
	uint32_t n_layers, zero;
	uint64_t layers[VAULT_LAYERS_MAX];
};

struct vault_done {
	uint64_t files; /* CHECKPOINT, RESTORE, CHANGES: entries that differ; 0: nothing did, and no
	                 * checkpoint was made. USAGE: entries of the top. VERIFY: findings.
	                 * REMOVE_POINTS, SWEEP: how many. FLATTEN: names, but of folders */
	uint64_t bytes; /* CHECKPOINT: newly kept. RESTORE: written. USAGE: of the top. SWEEP:
	                 * freed. FLATTEN: of the files */
	uint64_t kept;  /* USAGE: what checkpoints of this workspace hold, each content once */
	uint64_t shared; /* USAGE: of that, what checkpoints of others hold too */
};

struct vault_packet {
	struct vault_head head;
	union {
		struct vault_open open;
		struct vault_opened opened;
		struct vault_point point;
		struct vault_restore restore;
		struct vault_between between;
		struct vault_relayer relayer;
		struct vault_points points;
		struct vault_tree tree;
		struct vault_flatten flatten;
		struct vault_done done;
		struct err err;
	};
};

/* A packet of `n` bytes that came with `n_fds` descriptors: shape and ranges. */
bool vault_check(const struct vault_packet *p, size_t n, size_t n_fds);
size_t vault_size(const struct vault_packet *p); /* of a packet of this type, with its head */
