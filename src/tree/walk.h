/*
 * walk.h - everything below a directory, in the order of the names.
 *
 * One directory is open at a time, however deep it goes: the way up is `..`, and what it leads to
 * must be the directory that was left; a tree that is moved meanwhile ends the walk. Links are
 * never followed.
 */
#pragma once

#include <dirent.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "tree/ignore.h"

struct call;

struct walk_how {
	struct call *call;     /* asked between steps whether to go on; NULL: nobody */
	size_t depth;          /* levels; 0: all */
	bool with_hidden;      /* names that begin with a dot */
	bool with_temp;        /* names that begin with TEMP_PREFIX */
	bool with_git;         /* .git and what is in it */
	bool with_leave;       /* directories come once more, when they are done */
	bool is_strict;        /* a directory that cannot be opened is an error */
	bool is_endless;       /* deeper than TREE_DEPTH_MAX too, however long that takes */
	struct ignore *ignore; /* NULL, or the rules above the start; .gitignore counts */
};

struct walk_entry {
	int dir_fd; /* borrowed, until the next step */
	const char *name, *path;
	size_t depth;       /* 1: in the start itself */
	unsigned char type; /* DT_*; DT_UNKNOWN: it is gone */
	bool is_leave;
};

struct walk_level;

struct walk {
	struct walk_how how;
	VEC(struct walk_level) levels;
	struct str path;
	int fd; /* the directory of the last level */
	size_t names_bytes;
	size_t unreadable; /* directories that could not be opened, or lie too deep */
	bool is_too_deep;  /* some do */
	bool may_go_down;  /* into the entry that was returned last */
};

/* Takes `dir_fd`. */
int walk_open(struct walk *w, int dir_fd, struct walk_how how, struct err *e) MUST_USE;
/* 1: an entry, 0: the end. */
int walk_next(struct walk *w, struct walk_entry *out, struct err *e) MUST_USE;
void walk_skip(struct walk *w); /* stays out of the directory that was returned last */
void walk_done(struct walk *w);
