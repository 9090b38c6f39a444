/*
 * checkpoint.c - what changed since the checkpoint before becomes one.
 */
#include "vault/checkpoint.h"
#include "base/fd.h"
#include "vault/pack.h"
#include "vault/points.h"
#include "vault/restore.h"
#include "vault/scan.h"
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

/* A directory that only has another time had something in it that came and went. */
static int count_difference(void *ctx, const struct entry *a, const struct entry *b)
{
	uint64_t *count = ctx;

	if (a && b && a->type == ENTRY_DIR && b->type == ENTRY_DIR) {
		struct entry like = *b;

		like.mtime_s = a->mtime_s;
		like.mtime_ns = a->mtime_ns;
		if (entry_same(a, &like))
			return 0;
	}
	(*count)++;
	return 0;
}

static int save(struct vault *v, const struct vault_point *p, struct manifest *now,
                struct vault_done *done, struct err *e)
{
	AUTO(manifest_done) struct manifest loaded = { 0 };
	const struct manifest *before = &v->index;
	bool is_restored = v->is_restored && v->restored == p->before;

	if (v->index.top != v->open.top || v->index.number != p->before || !p->before) {
		if (points_load(v, p->before, &loaded, e) < 0)
			return -1;
		before = &loaded;
	}
	(void)manifest_compare(before, now, count_difference, &done->files);
	if (done->files > 0 && is_restored && !v->is_seen &&
	    restore_count(v, p->before, &done->files, e) < 0)
		return -1;
	if (done->files == 0 && p->before && !(p->flags & VAULT_ALWAYS)) {
		now->number = p->before;
		now->base = before->base;
		now->chain = before->chain;
		v->is_seen = true;
		return 0;
	}
	v->is_restored = false;
	if (is_restored && before != &loaded) { /* the record is based on what is on record */
		if (points_load(v, p->before, &loaded, e) < 0)
			return -1;
		before = &loaded;
	}
	now->number = p->number;
	if (pack_commit(v, p->number, e) < 0)
		return -1;
	return points_save(v, now, before, e);
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
	int r = checkpoint_look(v, ask->point.before, &s, &now, e);
	if (r >= 0)
		r = save(v, &ask->point, &now, done, e);
	pack_drop(v); /* what was not committed */
	points_unlock(v);
	if (r < 0)
		return -1;
	done->bytes = s.kept;
	checkpoint_remember(v, &now);
	return 0;
}
