/*
 * ops.h - what is done to one file, alone or as part of a batch. Each answers one JSON object,
 * which the caller owns.
 */
#pragma once

#include <jansson.h>
#include <sys/stat.h>

#include "tree/call.h"
#include "tree/replace.h"

void mark_print(int fd, json_t *to); /* attributes of a file, when it has some */
int op_stat(struct call *c, const char *path, bool with_hash, json_t **out, struct err *e) MUST_USE;
/* The entry of a directory; NULL when it is gone. */
json_t *stat_entry(int dir_fd, const char *name, struct span path);

struct lines_args {
	const char *path;
	uint64_t first, count; /* 0: from the first, the usual number */
	uint32_t line_max;     /* 0: the usual */
};
int op_lines(struct call *c, const struct lines_args *args, json_t **out, struct err *e) MUST_USE;

/* how->root_fd is filled in. */
int op_write(struct call *c, struct replace_how how, struct span bytes, json_t **out,
             struct err *e) MUST_USE;

struct edit_args {
	const char *path;
	const char *match;   /* may be NULL */
	const json_t *edits; /* one of the three */
	const json_t *insert;
	struct span unified; /* .at NULL: none */
	struct undo *undo;
};
int op_edit(struct call *c, const struct edit_args *args, json_t **out, struct err *e) MUST_USE;

struct delete_args {
	const char *path;
	const char *match; /* may be NULL */
	bool recursive;
	struct undo *undo;
};
int op_delete(struct call *c, const struct delete_args *args, json_t **out, struct err *e) MUST_USE;

/* c->detail, which an error is shown with. */
void op_detail_lines(struct call *c, const size_t *lines, size_t n);
