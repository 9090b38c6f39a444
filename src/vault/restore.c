#include "vault/restore.h"

#include "os/file.h"
#include "vault/names.h"
#include "vault/verbs.h"
#include "vault/xattrs.h"

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

static bool same_target(const struct entry *a, const struct entry *b)
{
	return a->target.len == b->target.len &&
	       (a->target.len == 0 || memcmp(a->target.at, b->target.at, a->target.len) == 0);
}

/* 1 when one sees no difference; the time of a directory is not looked at. */
static int is_same(struct restore *r, struct node *a, struct node *b, struct err *e)
{
	struct entry x, y;

	if (a->is_there != b->is_there)
		return 0;
	if (!a->is_there)
		return 1;
	if (a->seen.type != b->seen.type || a->seen.mode != b->seen.mode ||
	    a->seen.uid != b->seen.uid || a->seen.gid != b->seen.gid)
		return 0;
	if (a->seen.type != ENTRY_DIR && a->seen.type != ENTRY_SOCKET &&
	    (a->seen.mtime_s != b->seen.mtime_s || a->seen.mtime_ns != b->seen.mtime_ns))
		return 0;
	if (view_read(a, &r->arena, &x, e) < 0 || view_read(b, &r->arena, &y, e) < 0)
		return -1;
	if (!same_target(&x, &y) || !xattrs_same_view(x.xattrs, y.xattrs))
		return 0;
	return a->seen.type == ENTRY_FILE ? view_same_content(r->v, a, b, e) : 1;
}

static int enter(struct restore *r, struct span path, struct node *a, struct node *b, struct err *e)
{
	bool is_dir_kept =
	    a->is_there && b->is_there && a->seen.type == ENTRY_DIR && b->seen.type == ENTRY_DIR;
	int same = is_same(r, a, b, e);

	if (same != 0)
		return same < 0 ? -1 : 0;
	r->done->files++;
	if (b->is_there && b->seen.type == ENTRY_FILE)
		r->done->bytes += b->seen.size;
	if (!r->is_counting && !is_dir_kept && restore_write(r, path, a, b, e) < 0)
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
	return r->is_counting ? 0 : restore_links(r, e);
}

static int go_to(struct vault *v, uint64_t to, bool is_counting, struct vault_done *done,
                 struct err *e)
{
	AUTO(sides_done) struct sides sides = { .other_fd = -1 };
	struct restore r = { .v = v,
		             .sides = &sides,
		             .is_counting = is_counting,
		             .done = done,
		             .parent = { .root_fd = v->work_fd, .fd = -1 } };
	int status = sides_open(v, VAULT_NOW, to, &sides, e);

	if (status >= 0)
		status = restore_all(&r, e);
	den_as_self(v);
	parent_done(&r.parent);
	arena_done(&r.arena);
	return status < 0 ? -1 : 0;
}

int restore_count(struct vault *v, uint64_t to, uint64_t *files, struct err *e)
{
	struct vault_done done = { 0 };

	if (go_to(v, to, true, &done, e) < 0)
		return -1;
	*files = done.files;
	return 0;
}

int verb_restore(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                 struct err *e)
{
	bool is_counting = ask->restore.flags & VAULT_COUNT;

	(void)fd;
	if (!v->open.top)
		return err_new(e, ERR_INVALID, "the workspace is read-only");
	if (go_to(v, ask->restore.to, is_counting, done, e) < 0)
		return -1;
	if (!is_counting) {
		v->is_restored = true;
		v->is_seen = false;
		v->restored = ask->restore.to;
	}
	return 0;
}
