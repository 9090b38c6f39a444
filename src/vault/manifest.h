/*
 * manifest.h - what lies in a top: a list of entries, sorted so that a directory comes before what
 * is in it. Pure.
 *
 * An entry is what the overlay put there, not what one sees through it: whiteouts stand for names
 * that are gone, and directories carry the overlay's own attributes (opaque, redirect). Ids are
 * those on disk. Paths are bytes; the root is "".
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/span.h"
#include "wire/vault.h"

#define MANIFEST_PATH_MAX 4095 /* what no program can name is refused */

enum entry_type {
	ENTRY_DIR,
	ENTRY_FILE,
	ENTRY_LINK,     /* symbolic; `target` is its text */
	ENTRY_WHITEOUT, /* the name is gone */
	ENTRY_FIFO,
	ENTRY_SOCKET,
	ENTRY_TYPES
};

struct entry {
	struct span path;
	enum entry_type type;
	uint32_t mode, uid, gid; /* mode: the bits of chmod(2) */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint64_t size;
	uint8_t hash[32];   /* of a file (vault/blob.h) */
	struct span target; /* of a link; of a file: the first of its names, when this is another */
	struct span xattrs; /* name NUL u32 length value, sorted by name */

	/* How the inode looked: it holds the same still when it looks so. Not part of what it is.
	 */
	uint64_t ino;
	int64_t ctime_s;
	uint32_t ctime_ns;
	bool is_unsure; /* it may change without looking different */
	bool is_unkept; /* the hash is known, and no checkpoint has the content */
};

struct manifest {
	struct arena arena; /* what the entries point to */
	VEC(struct entry) list;
	uint64_t number;    /* of the checkpoint; 0: of none */
	uint64_t workspace; /* whose */
	uint64_t top;       /* whose inodes these are */
	uint64_t base;      /* on disk it says only what differs from this; 0: all */
	uint32_t chain;     /* how many of those until one that says all */
	uint32_t n_layers;  /* of the stack that it lay on */
	uint64_t layers[VAULT_LAYERS_MAX];
};

void manifest_done(struct manifest *m);
/* In the order of the list: a slash comes before any other byte. */
int path_order(struct span a, struct span b);
/* Is `path` in the directory `dir`, at any depth? */
bool path_is_below(struct span path, struct span dir);

/* Adds a copy behind the last one. */
struct entry *manifest_add(struct manifest *m, const struct entry *e);
const struct entry *manifest_find(const struct manifest *m, struct span path); /* NULL: none */
size_t manifest_place(const struct manifest *m, struct span path); /* of the first one not before */

/* The same thing, whatever its inode is. */
bool entry_same(const struct entry *a, const struct entry *b);
/* The value of an extended attribute; .at is NULL when there is none. */
struct span entry_xattr(const struct entry *e, const char *name);

/* What differs, in order: `a` or `b` is NULL where only the other has the path. */
typedef int manifest_difference(void *ctx, const struct entry *a, const struct entry *b);
int manifest_compare(const struct manifest *a, const struct manifest *b, manifest_difference *f,
                     void *ctx);

/* As bytes, with their hash behind: all of `m`, or (with `base`) what differs from that. */
void manifest_print(const struct manifest *m, const struct manifest *base, struct str *out);
/* `m` is empty, or has what the bytes are based on: then it gets their changes. */
int manifest_parse(struct span bytes, struct manifest *m, struct err *e) MUST_USE;

/* Every record of the bytes that is not about something gone; borrowed. */
typedef void manifest_record(void *ctx, const struct entry *e);
int manifest_records(struct span bytes, manifest_record *f, void *ctx, struct err *e) MUST_USE;

struct manifest_head {
	char magic[8];
	uint64_t number, workspace, top, base, n_records;
	uint32_t chain, n_layers; /* the layers follow */
};
int manifest_parse_head(struct span bytes, struct manifest_head *out, struct err *e) MUST_USE;
