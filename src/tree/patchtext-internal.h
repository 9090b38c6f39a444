/*
 * patchtext-internal.h - what the two readers of patches share.
 */
#pragma once

#include "tree/patchtext.h"

struct reader {
	struct span rest;
	struct span line; /* without line end */
	struct span full; /* without line feed only: a carriage return is part of a changed line */
	size_t number;
	bool has_held;
};

bool reader_next(struct reader *r);
void reader_hold(struct reader *r); /* the same line comes again */
bool starts(struct span s, const char *with, struct span *rest);
/* -1: the name leads out of the folder that the patch is for. Every name that a patch has is asked
 * about, also one that a later line replaces: nothing of such a patch is applied. */
int patch_check_name(const char *name, size_t line, struct err *e);
struct patch_file *patch_file_new(struct patch *p, size_t line, struct err *e);

int unified_parse(struct patch *p, struct reader *r, struct err *e);
int unified_hunk(struct reader *r, struct hunks *out, struct err *e); /* r->line is its head */
int v4a_parse(struct patch *p, struct reader *r, struct err *e);
