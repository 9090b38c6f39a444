#include "vault/sides.h"

#include "base/fd.h"
#include "os/mount.h"
#include "vault/checkpoint.h"
#include "vault/overlay.h"
#include "vault/points.h"
#include "vault/trees.h"

#define OTHER_PLACE "k"

void sides_done(struct sides *s)
{
	manifest_done(&s->points[0]);
	manifest_done(&s->points[1]);
	if (s->other_fd >= 0)
		(void)os_umount_lazy(OTHER_PLACE); /* ours alone; fine when nothing is there */
	fd_close(&s->other_fd);
}

static int load(struct vault *v, uint64_t number, uint64_t hint, struct manifest *out,
                struct err *e)
{
	struct scan s = { 0 };

	if (number != VAULT_NOW)
		return points_load(v, number, out, e);
	if (!v->open.top)
		return points_load(v, 0, out, e);
	return checkpoint_look(v, hint, &s, out, e);
}

static bool is_current(const struct vault *v, const struct manifest *m)
{
	return m->n_layers == 0 ||
	       trees_same_stack(v, (struct stack_of){ m->layers, m->n_layers },
	                        (struct stack_of){ v->open.layers, v->open.n_layers });
}

static bool same_layers(const struct vault *v, const struct manifest *a, const struct manifest *b)
{
	return trees_same_stack(v, (struct stack_of){ a->layers, a->n_layers },
	                        (struct stack_of){ b->layers, b->n_layers });
}

static int open_layers(struct vault *v, struct sides *s, size_t i, struct err *e)
{
	const struct manifest *m = s->at[i].top;
	struct side *side = &s->at[i];

	side->is_rootless = v->open.flags & VAULT_ROOTLESS;
	if (is_current(v, m)) {
		if (v->lower_fd < 0)
			v->lower_fd =
			    overlay_mount_layers(v, v->open.layers, v->open.n_layers, "l", e);
		side->lower_fd = v->lower_fd;
		side->known = &v->known;
		return v->lower_fd < 0 ? -1 : 0;
	}
	if (s->other_fd >= 0) { /* neither lies on what is mounted now */
		if (!same_layers(v, s->at[0].top, m))
			return err_new(e, ERR_INVALID,
			               "both checkpoints lie on layers of another time");
	} else {
		s->other_fd = overlay_mount_layers(v, m->layers, m->n_layers, OTHER_PLACE, e);
	}
	side->lower_fd = s->other_fd;
	return s->other_fd < 0 ? -1 : 0;
}

int sides_of(struct vault *v, const struct manifest *from, const struct manifest *to,
             struct sides *out, struct err *e)
{
	known_trim(&v->known);
	out->at[0] = (struct side){ .top = from };
	out->at[1] = (struct side){ .top = to };
	if (open_layers(v, out, 0, e) < 0 || open_layers(v, out, 1, e) < 0)
		return -1;
	out->at[1].is_other = out->at[0].lower_fd != out->at[1].lower_fd;
	return 0;
}

int sides_open(struct vault *v, uint64_t from, uint64_t to, struct sides *out, struct err *e)
{
	*out = (struct sides){ .other_fd = -1 };
	if (load(v, from, to == VAULT_NOW ? 0 : to, &out->points[0], e) < 0 ||
	    load(v, to, from == VAULT_NOW ? 0 : from, &out->points[1], e) < 0)
		return -1;
	return sides_of(v, &out->points[0], &out->points[1], out, e);
}

int sides_look_again(struct vault *v, struct sides *s, struct err *e)
{
	struct manifest now = { 0 };
	struct scan how = { 0 };

	if (checkpoint_look(v, 0, &how, &now, e) < 0) {
		manifest_done(&now);
		return -1;
	}
	manifest_done(&s->points[0]);
	s->points[0] = now;
	s->at[0].top = &s->points[0];
	return 0;
}
