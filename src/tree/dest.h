/*
 * dest.h - a new tree is filled, under a secret name until it is whole.
 *
 * Names inside are resolved without links and without leaving it (RESOLVE_BENEATH,
 * RESOLVE_NO_SYMLINKS), so that nothing that was put in can redirect what comes next.
 */
#pragma once

#include <sys/stat.h>

#include "base/str.h"
#include "tree/root.h"
#include "wire/span.h"

struct call;

struct dest {
	int parent_fd;        /* borrowed: where it lies */
	char temp[TEMP_NAME]; /* "": it has its name, or never was */
	int root_fd;          /* of the new tree */
	struct stat root;
	int dir_fd; /* the directory used last */
	struct str dir;
	uint64_t bytes, files;
};

int dest_open(struct dest *d, int parent_fd, struct err *e) MUST_USE;
/* The directory of `path`, made when it is missing; borrowed until the next call. *name points
 * into `path`. */
int dest_parent(struct dest *d, const char *path, const char **name, struct err *e) MUST_USE;
int dest_mkdir(struct dest *d, const char *path, struct err *e) MUST_USE; /* an old one is fine */
void dest_done(struct dest *d); /* removes what has no name */

/* Copies a regular file from where `from_fd` stands; adds to d->bytes, under the ceiling. */
int dest_copy(struct dest *d, int from_fd, int to_fd, struct call *call, struct err *e) MUST_USE;
int dest_count(struct dest *d, uint64_t bytes, struct err *e) MUST_USE;
