/*
 * later.h - files that execute later: a hook, a build file, a setting of an editor. Pure.
 *
 * Who takes files from a sandbox to the host runs nothing of them; but the next `git`, `make`, or
 * opened editor there does. One table says which names these are, at any depth. Names are compared
 * as the most generous file system would find them (wire/fold.h). In doubt a file is one of them.
 */
#pragma once

#include "wire/span.h"

#define LATER_READ_MAX (1u << 20) /* a file whose text decides, and is longer, is one of them */

struct later_file {
	struct span path;    /* from the root of the tree: no slash in front, no `.` and `..` */
	uint32_t mode;       /* permission bits, as it will be; of a link 0 */
	bool was_executable; /* it is there, and is executable */
	bool is_new;         /* nothing is there by that name */
	const char *target;  /* of a link, else NULL */
	/* Of a file that later_reads(): as it was (at NULL: it was not there), and as it will be
	 * (at NULL: nobody has read it). */
	struct span before, after;
};

/* Why it is one of them, in a few words; NULL: it is not. */
const char *later_why(const struct later_file *f);
/* What is in it decides. */
bool later_reads(struct span path);
/* It lies in a git folder, or is one: `.git`, spelled so. */
bool later_is_git(struct span path);

/* A pattern names it (fnmatch; a * matches slashes too). Of a git folder only one that says so: its
 * index and branches are those of the workspace. */
bool later_is_allowed(const char *path, const char *const *patterns, size_t n);

/* Mode bits that a file from inside a sandbox may have on the host. Setuid, setgid and sticky bits
 * never cross, whoever says yes: every way out (apply, collect, cp, archives) asks here. */
static inline uint32_t later_mode(uint32_t mode)
{
	return mode & 0777;
}
