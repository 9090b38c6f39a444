/*
 * undo.h - what was changed, so that all of it can be taken back.
 *
 * Nothing old is destroyed while a log is open: a file that is replaced changes names with its
 * successor (RENAME_EXCHANGE), a file that is removed is renamed; undo_commit() then removes what
 * was kept, undo_back() puts it back, last change first. A log is not a journal: when the process
 * is killed in between, the kept files (TEMP_PREFIX) stay, and so do the changes made until then.
 *
 * Without a log (NULL) the same functions simply do it.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "wire/tree.h"

#define TEMP_PREFIX TREE_TEMP_PREFIX
#define TEMP_NAME 32 /* with the NUL */

/* A name that nobody guesses. */
void temp_name(char out[TEMP_NAME]);

struct undo_dir {
	dev_t dev;
	ino_t ino;
	int fd;
};

struct undo_step {
	size_t dir;
	char name[NAME_MAX + 1];
	char kept[TEMP_NAME]; /* where the old one is; "": there was none */
	bool is_dir;          /* a directory was made */
	bool is_gone;         /* it was removed, and nothing is there now */
};

struct undo {
	VEC(struct undo_dir) dirs;
	VEC(struct undo_step) steps;
};

/* `temp`, in the same directory, becomes `name`. `is_new`: -1 and `exists` when there is one. */
int undo_put(struct undo *u, int dir_fd, const char *temp, const char *name, bool is_new,
             struct err *e) MUST_USE;
/* Removes a file, a link, or a directory with all that is in it. */
int undo_remove(struct undo *u, int dir_fd, const char *name, bool is_dir, struct err *e) MUST_USE;
int undo_made_dir(struct undo *u, int dir_fd, const char *name, struct err *e) MUST_USE;

void undo_commit(struct undo *u);
void undo_back(struct undo *u);
void undo_done(struct undo *u); /* takes back what was not committed */
