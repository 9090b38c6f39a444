/*
 * restore_renames.c - directories of the layers that have another name now get theirs back: one
 * rename instead of a copy of all that is in it. The list is made anew after each, because a rename
 * takes others along.
 */
#include <fcntl.h>
#include <linux/fs.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/moved.h"
#include "vault/restore.h"

/* False: it cannot be had this way, and will be copied. */
static bool rename_back(struct restore *r, struct span from, struct span to)
{
	struct err ignored = { 0 };
	const char *from_name, *to_name;
	struct node there;

	if (view_find(&r->sides->at[0], to, &r->arena, &there, &ignored) < 0)
		return false;
	bool is_dir = there.is_there && there.seen.type == ENTRY_DIR;
	if (there.is_there && !is_dir && restore_remove(r, to, &ignored) < 0)
		return false;
	int dir = parent_open(&r->parent, from, &from_name, &ignored);
	AUTO(fd_close) int from_dir = dir < 0 ? -1 : os_openat(dir, ".", O_PATH, 0);
	int to_dir = from_dir < 0 ? -1 : parent_open(&r->parent, to, &to_name, &ignored);
	if (to_dir < 0)
		return false;
	int status = os_renameat2((struct os_names){ from_dir, from_name, to_dir, to_name },
	                          is_dir ? RENAME_EXCHANGE : RENAME_NOREPLACE);
	parent_done(&r->parent); /* it may have moved */
	return status >= 0;
}

typedef VEC(struct span) spans;

static bool has(const spans *list, struct span s)
{
	for (size_t i = 0; i < list->len; i++)
		if (path_order(list->at[i], s) == 0)
			return true;
	return false;
}

static void add(spans *list, struct span s)
{
	vec_push(list, s);
}

/* 1: renamed one, 0: none that can be. */
static int rename_one(struct restore *r, spans *tried, struct err *e)
{
	struct moved_list moved = { 0 };
	int status = moved_find(&r->sides->at[0], &r->sides->at[1], &r->arena, &moved, e);

	for (size_t i = 0; i < moved.list.len && status == 0; i++) {
		const struct moved *m = &moved.list.at[i];

		if (has(tried, m->lower))
			continue;
		add(tried, m->lower);
		status = rename_back(r, m->from, m->to);
	}
	moved_done(&moved);
	return status;
}

int restore_renames(struct restore *r, struct err *e)
{
	spans tried = { 0 };
	int status;

	while ((status = rename_one(r, &tried, e)) > 0) {
		r->done->files++;
		if (sides_look_again(r->v, r->sides, e) < 0) {
			status = -1;
			break;
		}
	}
	vec_done(&tried);
	return status;
}
