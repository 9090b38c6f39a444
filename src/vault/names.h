/*
 * names.h - what is in a directory, and everything below one removed.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

struct name {
	const char *text;   /* in `bytes` of its list */
	unsigned char type; /* DT_* */
};

struct names {
	VEC(struct name) list; /* sorted by bytes */
	struct str bytes;
};

/* Without . and .. */
int names_read(int dir_fd, struct names *out, struct err *e) MUST_USE;
void names_done(struct names *n);

/* Removes the entry and all that is in it, however deep; fine when it is not there. The tree is
 * nobody else's. */
int names_remove(int dir_fd, const char *name, struct err *e) MUST_USE;
