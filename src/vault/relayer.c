/*
 * relayer.c - another top, or another stack, under the same workspace.
 *
 * A mount that a sandbox has cannot be exchanged from here, so nobody may have it; who comes next
 * gets the new one. When the new stack has the old top as a layer, its overlay is made read-only:
 * that is refused while anybody could write, and holds for all who might still have it. Else it is
 * just left, and goes when the answer is on its way, because the kernel syncs it then.
 */
#include "base/fd.h"
#include "os/mount.h"
#include "vault/fill.h"
#include "vault/overlay.h"
#include "vault/trees.h"
#include "vault/verbs.h"

static bool has_layer(const struct vault_relayer *r, uint64_t number)
{
	for (uint32_t i = 0; i < r->n_layers; i++)
		if (r->layers[i] == number)
			return true;
	return false;
}

static int seal_top(struct vault *v, struct err *e)
{
	int r = os_set_read_only(v->work_fd, true);

	if (r < 0)
		return err_sys(e, -r, "make the top read-only");
	return trees_seal(v, v->open.top, e);
}

static int mount_new(struct vault *v, const struct vault_relayer *r, struct err *e)
{
	struct fill f = { r->new_top, r->from, r->layers, r->n_layers };

	if (fill_top(v, &f, e) < 0)
		return -1;
	overlay_set_aside(v);
	if (overlay_mount(v, (struct stack){ r->new_top, r->layers, r->n_layers }, e) < 0)
		return -1;
	fd_close(&v->lower_fd);
	known_forget(&v->known);
	(void)os_umount_lazy("l"); /* of our namespace alone; fine when it is not there */
	return 0;
}

/* What was open is open again, or this vault is of no use. */
static int go_back(struct vault *v, struct err *e)
{
	struct err ignored = { 0 };

	if (v->old_fd >= 0)
		overlay_take_back(v);
	if (os_set_read_only(v->work_fd, false) < 0 || trees_unseal(v, v->open.top, &ignored) < 0) {
		v->loop.is_done = true;
		return err_wrap(e, "the top cannot be written any more");
	}
	return -1;
}

int verb_relayer(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                 struct err *e)
{
	const struct vault_relayer *r = &ask->relayer;

	(void)fd;
	(void)done;
	if (!v->open.top || r->new_top == v->open.top)
		return err_new(e, ERR_INVALID, "there is no top, or it is the same");
	if (vault_has_sandbox(v))
		return err_sys(e, EBUSY, "a sandbox has the workspace");
	if (has_layer(r, v->open.top) && seal_top(v, e) < 0)
		return go_back(v, e);
	if (mount_new(v, r, e) < 0)
		return go_back(v, e);
	v->open.top = r->new_top;
	v->open.from = r->from;
	v->open.n_layers = r->n_layers;
	memcpy(v->open.layers, r->layers, sizeof v->open.layers);
	manifest_done(&v->index);
	return 0;
}
