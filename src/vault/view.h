/*
 * view.h - what one would see of a top over its layers, and where two such views differ.
 *
 * A side is a manifest and the layers that it lay on. Nothing is mounted for it but the layers: the
 * overlay's rules (whiteouts, opaque and redirected directories) are applied here, so a checkpoint
 * is seen as it was without making a tree of it. What neither manifest names and lies on the same
 * layers is the same: the work follows what lies in the tops, not what is below.
 */
#pragma once

#include "vault/blob.h"
#include "vault/manifest.h"
#include "vault/vault-internal.h"

struct side {
	const struct manifest *top;
	int lower_fd;              /* the layers */
	struct known_table *known; /* of them; NULL: they are not there for long */
	bool is_other;             /* they are not those of the first side */
	bool is_rootless;          /* which attributes are the overlay's */
};

/* A name as one side has it. */
struct node {
	const struct side *side;
	struct span path; /* on its side: another one than the other's in what was renamed */
	bool is_there;
	const struct entry *top; /* NULL: from the layers */
	bool has_lower;          /* `lower` is the way to it in the layers; of a directory of the
	                          * top: to what may lie below it */
	struct span lower;
	struct known *known; /* of what is from the layers; or NULL */
	/* As the entry says, or the layers; of these the target and the attributes are read when
	 * asked for. */
	struct entry seen;
};

enum view_event {
	VIEW_ENTER, /* a name that may differ; before what is in it */
	VIEW_LEAVE, /* a directory on side b, after what is in it, when something there may differ
	             */
};

/* Negative: the walk ends. VIEW_STAY: what is in it is not looked at. */
#define VIEW_STAY 1
typedef int view_visit(void *ctx, enum view_event event, struct span path, struct node *a,
                       struct node *b, struct err *e);

/* A directory that `a` has at `from` and `b` at `to`: compared with each other, and missing at the
 * old name. */
struct view_pair {
	struct span from, to;
};
struct view_pairs {
	const struct view_pair *at;
	size_t n;
};

/* From `a` to `b`. The path of a visit is that of `b`, or of `a` where that has it alone. Where
 * only one of them has a directory, its content is visited with the other one absent. */
int view_compare(const struct side *a, const struct side *b, struct view_pairs pairs,
                 view_visit *visit, void *ctx, struct err *e) MUST_USE;

/* The node at a path of this side; what it holds is in `arena`. */
int view_find(const struct side *s, struct span path, struct arena *arena, struct node *out,
              struct err *e) MUST_USE;

/* A file's content. */
int view_open(const struct vault *v, const struct node *n, struct content *out,
              struct err *e) MUST_USE;
/* The same, and what view_read() fills. */
int view_open_read(const struct vault *v, const struct node *n, struct arena *arena,
                   struct content *out, struct entry *entry, struct err *e) MUST_USE;
/* 1 when both hold the same bytes. */
int view_same_content(const struct vault *v, struct node *a, struct node *b,
                      struct err *e) MUST_USE;
/* 1 when one sees no difference; the time of a directory is not looked at. */
int view_same(const struct vault *v, struct node *a, struct node *b, struct arena *arena,
              struct err *e) MUST_USE;
/* Fills target and xattrs of n->seen. */
int view_read(const struct node *n, struct arena *arena, struct entry *out, struct err *e) MUST_USE;
