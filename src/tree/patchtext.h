/*
 * patchtext.h - patches as text: unified diffs as git makes them, and *** Begin Patch. Pure.
 */
#pragma once

#include "base/arena.h"
#include "tree/hunk.h"

enum patch_kind { PATCH_UPDATE, PATCH_ADD, PATCH_DELETE };

struct patch_file {
	enum patch_kind kind;
	const char *path;     /* what is read; what is made, for PATCH_ADD */
	const char *new_path; /* NULL: the same */
	bool is_copy;         /* the old name stays */
	bool has_mode;
	uint32_t mode;
	size_t patch_line;
	struct hunks hunks;
};

struct patch {
	bool is_v4a;
	VEC(struct patch_file) files;
	struct arena arena; /* of the names; hunks point into the text */
};

int patch_parse(struct patch *p, struct span text, struct err *e) MUST_USE;
/* Only hunks, for a file that is known; heads of files are allowed and do not count. */
int patch_parse_hunks(struct hunks *h, struct span text, struct err *e) MUST_USE;
void patch_done(struct patch *p);
