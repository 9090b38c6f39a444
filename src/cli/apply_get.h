/*
 * apply_get.h - what a workspace has changed, as the daemon tells it: names, then the files as they
 * were at a point.
 */
#pragma once

#include "apply/plan.h"
#include "cli/client.h"

struct apply_source {
	struct client *client;
	const char *workspace;
	const char *from, *at; /* points */
	const char *then;      /* what was applied to the folder before; NULL: nothing is known */
};

struct apply_list {
	struct arena arena;
	VEC(struct apply_entry) list; /* sorted */
};

/* The names that differ, from `from` or `then`; type OTHER where that is known, else nodes are
 * still to come: base and head have type NONE, or FILE for "it is there". */
int apply_fetch_list(struct apply_source *s, struct apply_list *out, struct err *e) MUST_USE;
/* More of the file that was told of last: bytes at *bytes, 0 at its end, -1. */
typedef long apply_body(void *from, const void **bytes, struct err *e);
/* One of the files; what is not read of its body is skipped. The first one has no path: names that
 * git ignores, each with a NUL; of a folder with a slash behind. */
typedef int apply_file_fn(void *arg, const char *path, const struct apply_node *node,
                          apply_body *read, void *from, struct err *e);
/* These paths as they were at `point`. Those that are not there are an error. */
struct apply_paths {
	const char **at;
	size_t len, cap;
};
int apply_fetch(const struct apply_source *s, const char *point, const struct apply_paths *paths,
                apply_file_fn *each, void *arg, struct err *e) MUST_USE;
int apply_read_names(apply_body *read, void *from, struct str *out, struct err *e) MUST_USE;
/* Three versions of a file: 1 and what they come to, or 0: *conflicts times they meet, 0 when it is
 * no text. */
struct apply_three {
	const struct str *base, *ours, *theirs;
};
int apply_join(const struct apply_source *s, const struct apply_three *three, struct str *out,
               int64_t *conflicts, struct err *e) MUST_USE;
