/*
 * copytree.h - small public trees, copied and removed by descriptor, never through a link.
 */
#pragma once

#include "base/err.h"

/* Copies from_fd/name to to_fd/name: files that everybody may read, links as links, folders.
 * Absent is fine; other kinds of files, and those not readable by all, are left out. `name` may
 * have a folder part that exists on both sides. A folder that is there already is added to: "."
 * copies what is in from_fd. */
int copytree(int from_fd, int to_fd, const char *name, struct err *e) MUST_USE;

/* rm -rf; what resists stays. */
void copytree_remove(int dir_fd, const char *name);
