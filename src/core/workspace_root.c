/*
 * workspace_root.c - the root of a workspace's sandboxes, kept with it: `checkpoint: all`.
 *
 * It is a second stack beside that of the files: the tree of an image, and a top (docs/decisions/
 * 0032-the-root-is-kept.md). It has a keeper of its own, with the ids of the first. Once there, it
 * is open whenever the workspace is; a keeper that dies takes the other with it (workspace.c).
 * The first sandbox that asks for it makes it, and says what image it is of.
 */
#include "core/trees.h"
#include "core/workspace-internal.h"

bool wsx_wants_root(const struct sbx *s)
{
	return s->workspace && !s->is_service && s->spec.checkpoint &&
	       strcmp(s->spec.checkpoint, "all") == 0;
}

/* ---- who may have it ------------------------------------------------------------------ */

static int refuse(enum fail_code code, const char *why, struct fail *f)
{
	return fail_set(f, code, "checkpoint: all (%s)", why);
}

int wsx_check_root(const struct sbx *s, int64_t *tree, struct fail *f)
{
	bool is_asked = s->spec.checkpoint && strcmp(s->spec.checkpoint, "all") == 0;

	if (!is_asked || s->is_service)
		return 0;
	if (!s->workspace)
		return refuse(FAIL_INVALID,
		              "what is undone belongs to a workspace, and there is none", f);
	const struct workspace_row *row = &s->workspace->row;

	if (strcmp(row->mode, "read") == 0)
		return refuse(FAIL_INVALID, "a workspace that can only be read has no points", f);
	if (!s->core->host.is_root)
		return refuse(FAIL_UNENFORCEABLE,
		              "nobody inside can write to the root: that takes profile: rootful, "
		              "and a daemon of root's",
		              f);
	if (*tree == 0)
		return refuse(FAIL_UNENFORCEABLE,
		              "the root of image host and of dir: is the host's own; import one: "
		              "caisson image import",
		              f);
	if (row->root_num && strcmp(row->root_image, s->spec.image) != 0)
		return fail_set(f, FAIL_CONFLICT,
		                "checkpoint: all (the root of this workspace is of image %.128s)",
		                row->root_image);
	if (row->root_num)
		*tree = row->root_tree; /* whatever the name means by now */
	return 0;
}

/* ---- its keeper ------------------------------------------------------------------------ */

static void tell(struct wsx *w, const struct fail *f)
{
	ws_stored_fn *done = w->root_done;

	w->root_done = NULL;
	if (done)
		done(w->root_arg, f);
}

static void opened(void *arg)
{
	tell(arg, NULL);
}

static void gone(void *arg, const struct err *e)
{
	struct wsx *w = arg;
	struct fail f = { 0 };

	if (!w->root_done) {
		ws_lost(w, &w->root, e);
		return;
	}
	vault_close(w->root);
	w->root = NULL;
	ws_fail(&f, e);
	tell(w, &f);
}

void ws_root_open(struct wsx *w, ws_stored_fn *done, void *arg)
{
	const struct workspace_row *row = &w->row;
	struct vault_open o = { .workspace = (uint64_t)row->root_num,
		                .ids_of = (uint64_t)row->num,
		                .top = (uint64_t)row->root_top,
		                .from = (uint64_t)row->root_begins,
		                .bytes = (uint64_t)row->disk_bytes,
		                .inodes = (uint64_t)row->inodes,
		                .flags = row->disk_bytes > 0 ? VAULT_BOUNDED : 0,
		                .n_layers = 1,
		                .layers = { (uint64_t)row->root_tree } };

	w->root_done = done;
	w->root_arg = arg;
	w->root = vault_open(w->core, &o,
	                     (struct vault_owner){ .opened = opened, .gone = gone, .arg = w });
}

/* ---- the first time -------------------------------------------------------------------- */

struct making {
	struct wsx *w;
	ws_stored_fn *done;
	void *arg;
};

/* A workspace has a root whose keeper can be had, or none. */
static void made(void *arg, const struct fail *f)
{
	struct making *m = arg;
	struct wsx *w = m->w;

	if (f) {
		w->row.root_num = w->row.root_top = w->row.root_tree = 0;
		w->row.root_image = NULL;
		ws_store(w, WORKSPACE_SET_ROOT, (struct workspace_with){ 0 }, NULL, NULL);
	}
	m->done(m->arg, f);
	free(m);
}

static void recorded(void *arg, const struct fail *f)
{
	struct making *m = arg;

	if (f)
		made(m, f);
	else
		ws_root_open(m->w, made, m);
}

static void make(struct wsx *w, const struct sbx *s, ws_stored_fn *done, void *arg)
{
	struct making *m = mem_alloc(sizeof *m);

	*m = (struct making){ w, done, arg };
	w->row.root_num = (int64_t)trees_number(w->core);
	w->row.root_top = (int64_t)trees_number(w->core);
	w->row.root_begins = 0;
	w->row.root_tree = (int64_t)s->image_tree;
	w->row.root_image = arena_strdup(&w->arena, s->spec.image);
	ws_store(w, WORKSPACE_SET_ROOT, (struct workspace_with){ 0 }, recorded, m);
}

void ws_root_attach(struct wsx *w, const struct sbx *s, ws_stored_fn *done, void *arg)
{
	struct fail f = { 0 };

	if (!w->row.root_num) {
		make(w, s, done, arg);
	} else if ((uint64_t)w->row.root_tree != s->image_tree) { /* another was faster */
		fail_set(&f, FAIL_CONFLICT,
		         "checkpoint: all (the root of this workspace is of image %.128s)",
		         w->row.root_image);
		done(arg, &f);
	} else {
		done(arg, NULL);
	}
}

/* ---- its points ------------------------------------------------------------------------ */

int64_t ws_root_of(const struct wsx *w, int64_t num)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct point_row row = { 0 };
	struct err e = { 0 };

	if (num == 0 || store_point_by_num(w->core->store, num, &a, &row, &e) < 0)
		return 0;
	/* A fork of files alone (wsx_forks.is_bare): what it has of its parent's is not its root.
	 */
	if (w->row.root_begins == 0 && row.workspace && strcmp(row.workspace, w->row.id) != 0)
		return 0;
	return row.root;
}

/* The names that its mounts need came into the root when it was built: before that it cannot be
 * taken back under it. Who goes back in history has the later numbers ahead. */
const struct sbx *ws_root_user(const struct wsx *w, int64_t root)
{
	for (const struct sbx *s = w->attached; s; s = s->next_attached) {
		AUTO(arena_done) struct arena a = { 0 };
		struct point_row start;
		struct err e = { 0 };

		if (wsx_wants_root(s) &&
		    store_point_by_process(w->core->store, s->tenant, s->id, &a, &start, &e) == 0 &&
		    root < start.root)
			return s;
	}
	return NULL;
}

struct both {
	struct wsx *w;
	struct vault_packet second;
	struct vault_done sum;
	vault_done_fn *done;
	void *arg;
};

static void second_done(void *arg, const struct vault_done *d, const struct err *e)
{
	struct both *b = arg;

	if (!e) {
		b->sum.files += d->files;
		b->sum.bytes += d->bytes;
		b->sum.kept += d->kept;
		b->sum.shared += d->shared;
	}
	b->done(b->arg, e ? NULL : &b->sum, e);
	free(b);
}

static void first_done(void *arg, const struct vault_done *d, const struct err *e)
{
	struct both *b = arg;

	if (e || !b->w->row.root_num) {
		b->done(b->arg, d, e);
		free(b);
		return;
	}
	b->sum = *d;
	ws_ask_root(b->w, &b->second, -1, second_done, b);
}

void ws_ask_root(struct wsx *w, const struct vault_packet *p, int fd, vault_done_fn *done,
                 void *arg)
{
	struct err e = { 0 };

	if (w->root) {
		vault_ask(w->root, p, fd, done, arg);
		return;
	}
	err_new(&e, ERR_INTERNAL, "the keeper of the root died");
	e.sys = VAULT_DIED;
	done(arg, NULL, &e);
}

void ws_ask_both(struct wsx *w, const struct vault_packet *first, const struct vault_packet *second,
                 vault_done_fn *done, void *arg)
{
	struct both *b = mem_alloc(sizeof *b);

	*b = (struct both){ .w = w, .second = *second, .done = done, .arg = arg };
	ws_ask(w, first, -1, first_done, b);
}

/* ---- tops ------------------------------------------------------------------------------ */

uint32_t ws_new_tops(struct wsx *w, int64_t begins, int64_t root, struct workspace_with *with)
{
	with->trash = w->row.top;
	w->row.top = (int64_t)trees_number(w->core);
	w->row.begins = begins;
	if (!w->row.root_num)
		return WORKSPACE_SET_STACK;
	with->root_trash = w->row.root_top;
	w->row.root_top = (int64_t)trees_number(w->core);
	w->row.root_begins = root;
	return WORKSPACE_SET_STACK | WORKSPACE_SET_ROOT;
}

void ws_drop_tops(struct core *c, const struct workspace_with *with)
{
	tree_remove(c, (uint64_t)with->trash);
	if (with->root_trash)
		tree_remove(c, (uint64_t)with->root_trash);
}

/* ---- the volumes that both may lie in --------------------------------------------------- */

static void root_volume_removed(void *arg, const struct vault_done *d, const struct err *e)
{
	struct both *b = arg;
	struct vault_packet p = { .head.type = V_REMOVE_VOLUME,
		                  .tree.number = (uint64_t)b->w->row.num };

	(void)d;
	if (e)
		b->done(b->arg, NULL, e);
	else
		trees_ask(b->w->core, &p, -1, b->done, b->arg);
	free(b);
}

void ws_remove_volumes(struct wsx *w, vault_done_fn *done, void *arg)
{
	struct both *b = mem_alloc(sizeof *b);
	struct vault_packet p = { .head.type = V_REMOVE_VOLUME,
		                  .tree.number = (uint64_t)w->row.root_num };

	*b = (struct both){ .w = w, .done = done, .arg = arg };
	if (w->row.root_num)
		trees_ask(w->core, &p, -1, root_volume_removed, b);
	else
		root_volume_removed(b, NULL, NULL);
}
