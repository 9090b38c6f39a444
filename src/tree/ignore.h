/*
 * ignore.h - which files .gitignore hides (gitignore(5)); the walk pushes one level per directory.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/span.h"

struct ignore_rule {
	struct span pattern;
	bool is_not;      /* !pattern */
	bool is_dir_only; /* pattern/ */
	bool is_anchored; /* a slash in it: the whole path from its directory counts */
};

struct ignore_level {
	size_t n_rules;  /* of all levels until here */
	size_t base_len; /* of the path of its directory */
	struct arena arena;
};

struct ignore {
	VEC(struct ignore_rule) rules;
	VEC(struct ignore_level) levels;
	struct str path; /* of the start, '/' behind unless it is the root; then scratch */
	size_t start_len;
};

/* Reads the rules of the directories above `start`, from the root or the nearest repository on. */
void ignore_init(struct ignore *ig, int root_fd, const char *start);
void ignore_done(struct ignore *ig);

/* `path` from the start. Rules that cannot be read are no rules. */
void ignore_push(struct ignore *ig, int dir_fd, const char *path);
void ignore_pop(struct ignore *ig);
bool ignore_has(struct ignore *ig, const char *path, bool is_dir);

/* For tests: rules of a text, as if of the directory `path`. */
void ignore_push_text(struct ignore *ig, struct span text, const char *path);
