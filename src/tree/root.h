/*
 * root.h - names become descriptors here and nowhere else.
 *
 * Every path is resolved by the kernel inside the root (openat2, RESOLVE_IN_ROOT): `..` and
 * absolute links stop at it, links of /proc are not followed. What is written is named by an open
 * directory and one name in it, so that nothing swapped during the call can lead elsewhere.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/limits.h"
#include "tree/undo.h"

/* A directory and one name in it. */
struct place {
	int dir_fd; /* owned; -1: none */
	char name[NAME_MAX + 1];
};

void place_done(struct place *p);

/* Opens without waiting for anybody; `flags` as open(2). Returns the descriptor. */
int root_open(int root_fd, const char *path, int flags, struct err *e) MUST_USE;
int root_open_dir(int root_fd, const char *path, struct err *e) MUST_USE;
/* Only a regular file; *st is of it. */
int root_open_file(int root_fd, const char *path, struct stat *st, struct err *e) MUST_USE;

struct place_how {
	bool follow;       /* the last name may be a link: the place is that of its target */
	bool make_parents; /* with mode 0755 */
	struct undo *undo; /* NULL, or who learns about new directories */
};
int root_place(int root_fd, const char *path, struct place_how how, struct place *out,
               struct err *e) MUST_USE;

/* `name` taken from the directory `base`, unless it begins with '/'. */
int root_join(const char *base, const char *name, char out[PATH_TEXT_MAX], struct err *e) MUST_USE;
