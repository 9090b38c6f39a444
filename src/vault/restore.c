#include "vault/restore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "os/file.h"
#include "vault/blob.h"
#include "vault/names.h"
#include "vault/points.h"
#include "vault/verbs.h"

int restore_remove(struct restore *r, struct span path, struct err *e)
{
	const char *name;
	int dir = parent_open(&r->parent, path, &name, e);
	int status = dir < 0 ? -1 : os_unlinkat(dir, name);

	if (dir < 0)
		return -1;
	if (status == 0 || status == -ENOENT)
		return 0;
	return names_remove(dir, name, e);
}

/* Before a byte is written: is all that will be still what it was? Else nothing is touched. Of
 * more files than this a new top is made, which judges for itself (vault/fill.c). */
#define CHECKED_MAX 512

/* What its blob takes on the disk, and of a pack all; less what is written over. */
static void add_need(struct restore *r, const struct node *a, const struct content *from,
                     uint64_t size)
{
	struct stat st;
	bool is_blob = from->at == 0 && os_fstatat(from->fd, "", &st, AT_EMPTY_PATH) == 0;
	uint64_t bytes = is_blob ? (uint64_t)st.st_blocks * 512 : size;
	bool is_over = a->is_there && a->top && a->seen.type == ENTRY_FILE;
	uint64_t over = is_over ? a->seen.size : 0;

	r->needed += bytes > over ? bytes - over : 0;
}

static int check_source(struct restore *r, struct node *a, struct node *b, struct err *e)
{
	bool is_copied = b->is_there && b->seen.type == ENTRY_FILE && b->top && b->seen.size > 0 &&
	                 b->seen.target.len == 0;

	if (!is_copied || r->done->files > CHECKED_MAX)
		return 0;
	int same = a->is_there && a->seen.type == ENTRY_FILE ? view_same_content(r->v, a, b, e) : 0;
	if (same != 0)
		return same < 0 ? -1 : 0;
	AUTO(content_done) struct content from = { .fd = -1 };
	if (view_open(r->v, b, &from, e) < 0)
		return -1;
	add_need(r, a, &from, b->seen.size);
	return blob_check(from, b->seen.size, b->top->hash, e);
}

/* A file is emptied before it is written again: without room for all, nothing is begun. */
static int check_room(const struct restore *r, struct err *e)
{
	struct statfs sf;
	int status = os_fstatfs(r->v->work_fd, &sf);

	if (status < 0)
		return err_sys(e, -status, "look for room");
	if (sf.f_blocks == 0) /* a file system without an end */
		return 0;
	uint64_t kept = (uint64_t)sf.f_blocks / 50; /* ext4 gives these to nobody */
	uint64_t blocks = r->v->uid != 0 ? (uint64_t)sf.f_bavail : (uint64_t)sf.f_bfree;
	kept = r->v->uid != 0 ? 0 : kept < 4096 ? kept : 4096;
	uint64_t room = blocks > kept ? (blocks - kept) * (uint64_t)sf.f_bsize : 0;
	return r->needed > room ? err_sys(e, ENOSPC, "%llu bytes are to be restored",
	                                  (unsigned long long)r->needed)
	                        : 0;
}

static int enter(struct restore *r, struct span path, struct node *a, struct node *b, struct err *e)
{
	bool is_dir_kept =
	    a->is_there && b->is_there && a->seen.type == ENTRY_DIR && b->seen.type == ENTRY_DIR;
	int same = view_same(r->v, a, b, &r->arena, e);

	if (same != 0)
		return same < 0 ? -1 : 0;
	r->done->files++;
	if (b->is_there && b->seen.type == ENTRY_FILE)
		r->done->bytes += b->seen.size;
	if (r->is_counting ? check_source(r, a, b, e) < 0
	                   : !is_dir_kept && restore_write(r, path, a, b, e) < 0)
		return err_wrap(e, "%.200s", path.at);
	bool goes_on = b->is_there && b->seen.type == ENTRY_DIR;
	return goes_on ? 0 : VIEW_STAY;
}

static int visit(void *ctx, enum view_event event, struct span path, struct node *a, struct node *b,
                 struct err *e)
{
	struct restore *r = ctx;

	switch (event) {
	case VIEW_ENTER:
		return enter(r, path, a, b, e);
	case VIEW_LEAVE:
		return r->is_counting ? 0 : restore_attributes(r, path, a, b, e);
	}
	return -1;
}

static int restore_all(struct restore *r, struct err *e)
{
	if (!r->is_counting && restore_renames(r, e) < 0)
		return -1;
	if (view_compare(&r->sides->at[0], &r->sides->at[1], (struct view_pairs){ 0 }, visit, r,
	                 e) < 0)
		return -1;
	return r->is_counting ? check_room(r, e) : restore_links(r, e);
}

/* From what is there to where it goes. What was counted a moment ago is not looked for again. */
static int open_sides(struct vault *v, const struct vault_restore *ask, struct sides *out,
                      struct err *e)
{
	if (!(ask->flags & VAULT_STILL) || v->index.top != v->open.top)
		return sides_open(v, VAULT_NOW, ask->to, out, e);
	*out = (struct sides){ .other_fd = -1 };
	if (ask->to && v->target.number == ask->to) {
		out->points[1] = v->target;
		v->target = (struct manifest){ 0 };
	} else if (points_load(v, ask->to, &out->points[1], e) < 0) {
		return -1;
	}
	return sides_of(v, &v->index, &out->points[1], out, e);
}

static void keep_target(struct vault *v, struct sides *s)
{
	manifest_done(&v->target);
	v->target = s->points[1];
	s->points[1] = (struct manifest){ 0 };
}

int verb_restore(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                 struct err *e)
{
	AUTO(sides_done) struct sides sides = { .other_fd = -1 };
	struct restore r = {
		.v = v, .sides = &sides, .done = done, .parent = { .root_fd = v->work_fd, .fd = -1 }
	};

	(void)fd;
	if (!v->open.top)
		return err_new(e, ERR_INVALID, "the workspace is read-only");
	r.is_counting = ask->restore.flags & VAULT_COUNT;
	int status = open_sides(v, &ask->restore, &sides, e);
	if (status >= 0)
		status = restore_all(&r, e);
	den_as_self(v);
	parent_done(&r.parent);
	arena_done(&r.arena);
	if (r.is_counting && status >= 0)
		keep_target(v, &sides);
	return status < 0 ? -1 : 0;
}
