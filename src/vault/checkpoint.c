/*
 * checkpoint.c - what changed since the checkpoint before becomes one.
 */
#include "vault/checkpoint.h"

#include <fcntl.h>
#include <linux/openat2.h>

#include "base/fd.h"
#include "os/file.h"
#include "vault/blob.h"
#include "vault/pack.h"
#include "vault/points.h"
#include "vault/scan.h"
#include "vault/sides.h"
#include "vault/trees.h"
#include "vault/verbs.h"

/* How the inodes of the top looked at the last look at them, here or in the life of another vault.
 * NULL: nobody looked. */
static const struct manifest *last_look(struct vault *v, uint64_t before, struct manifest *loaded)
{
	struct err ignored = { 0 };

	if (v->index.top == v->open.top)
		return &v->index;
	/* Without it everything is read. */
	if (before == 0 || points_load(v, before, loaded, &ignored) < 0)
		return NULL;
	return loaded->top == v->open.top ? loaded : NULL;
}

int checkpoint_look(struct vault *v, uint64_t hint, struct scan *s, struct manifest *out,
                    struct err *e)
{
	AUTO(manifest_done) struct manifest loaded = { 0 };
	AUTO(fd_close) int files = trees_open_files(v, v->open.top, e);

	if (files < 0)
		return -1;
	s->v = v;
	s->before = last_look(v, hint, &loaded);
	if (scan_top(s, files, out, e) < 0)
		return -1;
	out->workspace = v->open.workspace;
	out->top = v->open.top;
	out->n_layers = v->open.n_layers;
	memcpy(out->layers, v->open.layers, sizeof out->layers);
	s->before = NULL;
	return 0;
}

void checkpoint_remember(struct vault *v, struct manifest *now)
{
	manifest_done(&v->index);
	v->index = *now;
	*now = (struct manifest){ 0 };
}

struct difference {
	struct vault *v;
	struct arena arena;
	uint64_t count;
	bool is_seen; /* and one sees it, whatever lies below */
};

static bool is_rewritten(const struct entry *a, const struct entry *b)
{
	return a->type == ENTRY_FILE && b->type == ENTRY_FILE &&
	       (a->size != b->size || a->mtime_s != b->mtime_s || a->mtime_ns != b->mtime_ns ||
	        memcmp(a->hash, b->hash, sizeof a->hash) != 0);
}

/* A directory that only has another time had something in it that came and went. */
static int count_difference(void *ctx, const struct entry *a, const struct entry *b)
{
	struct difference *d = ctx;

	if (a && b && a->type == ENTRY_DIR && b->type == ENTRY_DIR) {
		struct entry like = *b;

		like.mtime_s = a->mtime_s;
		like.mtime_ns = a->mtime_ns;
		if (entry_same(a, &like))
			return 0;
	}
	d->count++;
	d->is_seen |= a && b && is_rewritten(a, b);
	return 0;
}

static int find_difference(void *ctx, enum view_event event, struct span path, struct node *a,
                           struct node *b, struct err *e)
{
	struct difference *d = ctx;

	if (event == VIEW_LEAVE && path.len > 0)
		return 0;
	int same = view_same(d->v, a, b, &d->arena, e);
	if (same != 0)
		return same < 0 ? -1 : 0;
	d->is_seen = true;
	return -1; /* one is enough */
}

/* A top says more than one sees: what an undo wrote back lies in it, and the folders on the way to
 * that. */
static int look_through(struct difference *d, const struct manifest *before,
                        const struct manifest *now, struct err *e)
{
	AUTO(sides_done) struct sides sides = { .other_fd = -1 };
	int r = sides_of(d->v, before, now, &sides, e);

	if (r >= 0)
		r = view_compare(&sides.at[0], &sides.at[1], (struct view_pairs){ 0 },
		                 find_difference, d, e);
	arena_done(&d->arena);
	return d->is_seen ? 0 : r;
}

/* What lies in the top and is not a part of any checkpoint. */
static void mark_unkept(const struct manifest *before, struct manifest *now)
{
	for (size_t i = 0; i < now->list.len; i++) {
		struct entry *at = &now->list.at[i];
		const struct entry *old =
		    at->type == ENTRY_FILE ? manifest_find(before, at->path) : NULL;

		at->is_unkept = !old || old->is_unkept || !entry_same(old, at);
	}
}

/* Now there is one. */
static int keep_rest(struct vault *v, struct manifest *now, uint64_t *kept, struct err *e)
{
	AUTO(fd_close) int files = trees_open_files(v, v->open.top, e);

	for (size_t i = 0; i < now->list.len && files >= 0; i++) {
		struct entry *at = &now->list.at[i];

		if (at->type != ENTRY_FILE || !at->is_unkept)
			continue;
		AUTO(fd_close)
		int fd = os_openat2(files, at->path.at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		if (fd < 0)
			return err_sys(e, -fd, "open %.200s", at->path.at);
		if (blob_keep(v, fd, at->size, at->hash, kept, e) < 0)
			return err_wrap(e, "%.200s", at->path.at);
		at->is_unkept = false;
	}
	return files < 0 ? -1 : 0;
}

static int save(struct vault *v, const struct vault_point *p, struct manifest *now,
                struct vault_done *done, struct err *e)
{
	AUTO(manifest_done) struct manifest loaded = { 0 };
	const struct manifest *before = &v->index;
	struct difference d = { .v = v };
	bool is_alike = v->is_alike;

	if (v->index.top != v->open.top || v->index.number != p->before) {
		if (points_load(v, p->before, &loaded, e) < 0)
			return -1;
		before = &loaded;
		is_alike = false;
	}
	(void)manifest_compare(before, now, count_difference, &d);
	if (d.count > 0 && !d.is_seen && look_through(&d, before, now, e) < 0)
		return -1;
	if (!d.is_seen && !(p->flags & VAULT_ALWAYS)) {
		now->number = p->before;
		now->base = before->base;
		now->chain = before->chain;
		v->is_alike = is_alike || d.count > 0;
		if (v->is_alike) /* also what was read again, and is the same */
			mark_unkept(before, now);
		return 0;
	}
	done->files = d.is_seen ? d.count : 0;
	now->number = p->number;
	if (keep_rest(v, now, &done->bytes, e) < 0 || pack_commit(v, p->number, e) < 0 ||
	    points_save(v, now, is_alike ? NULL : before, e) < 0)
		return -1;
	v->is_alike = false;
	return 0;
}

/* The last look vouches for the blobs of files that have not changed since: its checkpoint holds
 * them. When that is gone, a sweep may have taken them along, and every file is read and kept. */
static void distrust_look(struct vault *v)
{
	if (v->index.number && !points_has(v, v->index.number))
		manifest_done(&v->index);
}

int verb_checkpoint(struct vault *v, const struct vault_packet *ask, int fd,
                    struct vault_done *done, struct err *e)
{
	AUTO(manifest_done) struct manifest now = { 0 };
	struct scan s = { .is_keeping = true };

	(void)fd;
	if (!v->open.top)
		return err_new(e, ERR_INVALID, "a workspace that is read-only has no checkpoints");
	if (points_lock(v, e) < 0)
		return -1;
	distrust_look(v);
	int r = checkpoint_look(v, ask->point.before, &s, &now, e);
	if (r >= 0)
		r = save(v, &ask->point, &now, done, e);
	pack_drop(v); /* what was not committed */
	points_unlock(v);
	if (r < 0)
		return -1;
	done->bytes += s.kept;
	checkpoint_remember(v, &now);
	return 0;
}
