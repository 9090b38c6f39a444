/*
 * parent.h - the folder of a path below a root, kept open for the next path that lies there too.
 *
 * Links are never followed and nothing leads out of the root, whatever the path says.
 */
#pragma once

#include "vault/manifest.h"

struct parent {
	int root_fd; /* borrowed */
	int fd;      /* of `dir`; -1: none */
	char dir[MANIFEST_PATH_MAX + 1];
};

/* The descriptor, borrowed until the next call; *name is the end of the path, which has a NUL. */
int parent_open(struct parent *p, struct span path, const char **name, struct err *e) MUST_USE;
void parent_done(struct parent *p); /* may be used again */
