/*
 * replace.h - a file gets new bytes: all of them or none.
 *
 * They go to a file of a secret name in the same directory, which then takes the old one's mode,
 * owner and name. A reader sees the old file or the new one, whoever dies when. The old inode
 * stays as it is: other hard links of it keep the old bytes.
 */
#pragma once

#include "tree/root.h"
#include "wire/span.h"
#include "wire/tree.h"

struct replace_how {
	int root_fd;
	const char *path;
	const char *match;         /* NULL or "", or the hash that the old bytes must have */
	const struct stat *expect; /* NULL, or what the old file was when it was read */
	bool only_new, has_mode;
	uint32_t mode;
	struct undo *undo; /* may be NULL */
};

struct replace {
	struct replace_how how;
	struct place place;
	struct stat old;
	bool is_new;
	int fd;
	char temp[TEMP_NAME]; /* "": none is left */
	uint64_t bytes;
};

int replace_begin(struct replace *r, const struct replace_how *how, struct err *e) MUST_USE;
int replace_add(struct replace *r, struct span bytes, struct err *e) MUST_USE;
int replace_end(struct replace *r, struct err *e) MUST_USE;
void replace_done(struct replace *r); /* removes what did not get its name */

/* All three. *is_new may be NULL. */
int replace_whole(const struct replace_how *how, struct span bytes, bool *is_new,
                  struct err *e) MUST_USE;
