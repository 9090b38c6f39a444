#include "base/fd.h"
#include "vault/fill.h"
#include "vault/harden.h"
#include "vault/overlay.h"
#include "vault/pack.h"
#include "vault/points.h"
#include "vault/trees.h"
#include "vault/verbs.h"
#include "vault/volume.h"

static int mount_all(struct vault *v, int userns_fd, struct vault_opened *out, struct err *e)
{
	const struct vault_open *o = &v->open;
	struct stack s = { o->top, o->layers, o->n_layers };

	if (!(o->flags & VAULT_ROOTLESS)) {
		if (userns_fd < 0)
			return err_new(e, ERR_INVALID, "no user namespace came with the order");
		if (den_map_ids(v, userns_fd, e) < 0)
			return -1;
	}
	if (trees_drop_others(v, o, e) < 0)
		return -1;
	if (o->top) {
		int made =
		    fill_top(v, &(struct fill){ o->top, o->from, o->layers, o->n_layers }, e);

		if (made < 0)
			return -1;
		out->is_new = (uint32_t)made;
		/* A new stack over it that nobody came to know of (vault/relayer.c). */
		if (trees_unseal(v, o->top, e) < 0)
			return -1;
	}
	return overlay_mount(v, s, e);
}

/* Whatever it began from. */
static bool is_same(const struct vault *v, const struct vault_open *b)
{
	const struct vault_open *a = &v->open;

	return a->workspace == b->workspace && a->top == b->top && a->flags == b->flags &&
	       a->id_base == b->id_base && a->n_ids == b->n_ids &&
	       trees_same_stack(v, (struct stack_of){ a->layers, a->n_layers },
	                        (struct stack_of){ b->layers, b->n_layers });
}

int open_workspace(struct vault *v, const struct vault_open *o, int userns_fd,
                   struct vault_opened *out, struct err *e)
{
	if (v->is_open) {
		if (!is_same(v, o))
			return err_new(e, ERR_INVALID, "another workspace is open here");
		return 0;
	}
	AUTO(fd_close) int volume = -1;
	if (o->flags & VAULT_BOUNDED) {
		volume = volume_mount(v, o, e);
		if (volume < 0)
			return -1;
	}
	v->open = *o;
	if (den_enter(v, volume, e) < 0 || points_open(v, e) < 0 || pack_open(v, e) < 0 ||
	    trees_check_empty(v, e) < 0 || pack_load(v, e) < 0)
		return -1;
	if (o->workspace && mount_all(v, userns_fd, out, e) < 0)
		return -1;
	if (harden_open(v, e) < 0)
		return -1;
	v->is_open = true;
	return 0;
}

int verb_make_tree(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                   struct err *e)
{
	(void)fd;
	int made = trees_make(v, ask->tree.number, e);

	done->files = made > 0;
	return made;
}

/* The top of what is open is sealed by V_RELAYER alone. */
static int check_not_top(const struct vault *v, uint64_t number, struct err *e)
{
	if (v->open.top && number == v->open.top)
		return err_sys(e, EBUSY, "tree %llu is the top", (unsigned long long)number);
	return 0;
}

int verb_seal_tree(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                   struct err *e)
{
	(void)fd;
	(void)done;
	if (check_not_top(v, ask->tree.number, e) < 0)
		return -1;
	return trees_seal(v, ask->tree.number, e);
}

int verb_remove_tree(struct vault *v, const struct vault_packet *ask, int fd,
                     struct vault_done *done, struct err *e)
{
	(void)fd;
	(void)done;
	if (check_not_top(v, ask->tree.number, e) < 0)
		return -1;
	return trees_remove(v, ask->tree.number, e);
}

int verb_remove_volume(struct vault *v, const struct vault_packet *ask, int fd,
                       struct vault_done *done, struct err *e)
{
	(void)fd;
	(void)done;
	if (ask->tree.number == v->open.workspace)
		return err_sys(e, EBUSY, "the workspace is open");
	return volume_remove(v, ask->tree.number, e);
}
