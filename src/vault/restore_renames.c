/*
 * restore_renames.c - directories of the layers that have another name now get theirs back.
 *
 * A directory is known by its way in the layers. Where that lies in the view before and now, if not
 * at the same name, is one rename instead of a copy of all that is in it. The list is made anew
 * after each: a rename takes others along.
 */
#include <linux/fs.h>

#include "base/fd.h"
#include "base/vec.h"
#include "os/node.h"
#include "vault/restore.h"

struct moved {
	struct span lower, path;
};
typedef VEC(struct moved) moved_list;

/* Directories of a top that lie on another one. */
static int list_moved(struct restore *r, const struct side *s, moved_list *out, struct err *e)
{
	const char *name = s->is_rootless ? "user.overlay.redirect" : "trusted.overlay.redirect";

	for (size_t i = 0; i < s->top->list.len; i++) {
		const struct entry *at = &s->top->list.at[i];
		struct node n;

		if (at->type != ENTRY_DIR || entry_xattr(at, name).len == 0)
			continue;
		if (view_find(s, at->path, &r->arena, &n, e) < 0)
			return -1;
		if (n.is_there && n.has_lower)
			vec_push(out, (struct moved){ n.lower, at->path });
	}
	return 0;
}

/* Where this side has a directory of the layers: 1, or 0 for nowhere. */
static int find_place(struct restore *r, const struct side *s, const moved_list *moved,
                      struct span lower, struct span *out, struct err *e)
{
	struct node n;

	for (size_t i = 0; i < moved->len; i++) {
		if (path_order(moved->at[i].lower, lower) == 0) {
			*out = moved->at[i].path;
			return 1;
		}
	}
	if (view_find(s, lower, &r->arena, &n, e) < 0)
		return -1;
	*out = lower;
	return n.is_there && n.seen.type == ENTRY_DIR && n.has_lower &&
	       path_order(n.lower, lower) == 0;
}

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
	int from_dir = restore_parent(r, from, &from_name, &ignored);
	if (from_dir < 0)
		return false;
	r->dir_fd = -1; /* kept until the other one is open */
	int to_dir = restore_parent(r, to, &to_name, &ignored);
	int status = to_dir < 0
	                 ? -1
	                 : os_renameat2((struct os_names){ from_dir, from_name, to_dir, to_name },
	                                is_dir ? RENAME_EXCHANGE : RENAME_NOREPLACE);

	fd_close(&from_dir);
	restore_forget_parent(r);
	return status >= 0;
}

/* 1: renamed one, 0: none that can be. */
static int rename_one(struct restore *r, const moved_list *now, const moved_list *then,
                      moved_list *tried, struct err *e)
{
	for (size_t i = 0; i < now->len + then->len; i++) {
		struct span lower = i < now->len ? now->at[i].lower : then->at[i - now->len].lower;
		struct span from, to;
		bool is_tried = false;
		int has_from = find_place(r, &r->sides->at[0], now, lower, &from, e);
		int has_to = find_place(r, &r->sides->at[1], then, lower, &to, e);

		if (has_from < 0 || has_to < 0)
			return -1;
		for (size_t k = 0; k < tried->len; k++)
			is_tried = is_tried || path_order(tried->at[k].lower, lower) == 0;
		if (!has_from || !has_to || is_tried || path_order(from, to) == 0)
			continue;
		vec_push(tried, (struct moved){ lower, to });
		if (rename_back(r, from, to))
			return 1;
	}
	return 0;
}

int restore_renames(struct restore *r, struct err *e)
{
	moved_list tried = { 0 };
	int status = r->sides->at[1].is_other ? 0 : 1;

	while (status > 0) {
		moved_list now = { 0 }, then = { 0 };

		status = list_moved(r, &r->sides->at[0], &now, e);
		if (status >= 0)
			status = list_moved(r, &r->sides->at[1], &then, e);
		if (status >= 0)
			status = rename_one(r, &now, &then, &tried, e);
		vec_done(&now);
		vec_done(&then);
		if (status > 0) {
			r->done->files++;
			if (sides_look_again(r->v, r->sides, e) < 0)
				status = -1;
		}
	}
	vec_done(&tried);
	return status;
}
