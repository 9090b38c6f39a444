#include "core/image.h"

#include "core/template.h"
#include "core/trees.h"
#include "core/workspace.h"
#include "engine/plan.h"
#include "io/journal.h"
#include "spec/opts.h"

/* ---- names --------------------------------------------------------------------------- */

#define IMPORT "; another: caisson image import NAME FILE|oci:DIR"

/* "; did you mean ...?" of those that there are. */
static void unknown(struct core *c, const char *tenant, const char *name, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_list list = { 0 };
	struct err e = { 0 };

	if (store_image_list(c->store, tenant, &a, &list, &e) < 0)
		list.n = 0;
	const char **words = arena_alloc(&a, (list.n + 2) * sizeof *words);
	size_t n = 0;
	for (size_t i = 0; i < list.n; i++)
		if (!template_owns(list.rows[i].name))
			words[n++] = list.rows[i].name;
	words[n++] = "host";
	words[n] = NULL;
	const bool is_near = nearest(name, words) != NULL;

	fail_set(f, FAIL_NOT_FOUND, "image: there is no \"%.128s\"%s%s", name,
	         hint(name, words).text, is_near ? "" : IMPORT);
}

int image_find(struct core *c, const char *tenant, const char *name, struct arena *a,
               struct image_row *out, struct fail *f)
{
	struct err e = { 0 };

	if (store_image_get(c->store, tenant, name, a, out, &e) == 0)
		return 0;
	if (e.kind == ERR_NOT_FOUND)
		unknown(c, tenant, name, f);
	else
		fail_err(f, &e);
	return -1;
}

struct users {
	int64_t tree;
	bool with_spent;
	const struct sbx *found;
};

static bool has_tree(const struct sbx *s, int64_t tree)
{
	for (size_t i = 0; i < s->n_trees; i++)
		if ((int64_t)s->trees[i].tree == tree)
			return true;
	return (int64_t)s->image_tree == tree;
}

static void look_for_user(void *entry, void *arg)
{
	const struct sbx *s = entry;
	struct users *u = arg;

	if (has_tree(s, u->tree) && (u->with_spent || !s->is_spent))
		u->found = s;
}

/* A spent one has it for a moment still, and nobody can see it. */
static const struct sbx *user_of(struct core *c, int64_t tree, bool with_spent)
{
	struct users u = { .tree = tree, .with_spent = with_spent };

	roster_each(&c->sandboxes, look_for_user, &u);
	return u.found;
}

int image_remove(struct core *c, const char *tenant, const char *name, struct store_call call,
                 struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row row;
	struct workspace_row user;
	struct err e = { 0 };

	if (image_find(c, tenant, name, &a, &row, f) < 0)
		return -1;
	const struct sbx *s = user_of(c, row.tree, false);
	if (s)
		return fail_set(f, FAIL_BUSY, "image: sandbox %s has it", s->id);
	if (store_workspace_by_root(c->store, row.tree, &a, &user, &e) == 0)
		return fail_set(f, FAIL_BUSY, "image: the root of workspace %s is of it", user.id);
	if (store_image_drop(c->store, tenant, name, row.tree, call, &e) < 0)
		return fail_unsent(f, &e);
	return 0;
}

static void retired(void *core, const struct store_answer *a)
{
	(void)a;
	images_sweep(core);
}

int image_check_unused(struct core *c, const char *tenant, const char *name, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row row;
	struct err e = { 0 };
	bool is_there = store_image_get(c->store, tenant, name, &a, &row, &e) == 0;
	const struct sbx *s = is_there ? user_of(c, row.tree, false) : NULL;

	return s ? fail_set(f, FAIL_BUSY, "image: sandbox %s has it", s->id) : 0;
}

int image_retire(struct core *c, const char *tenant, const char *name, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row row;
	struct err e = { 0 };

	if (image_find(c, tenant, name, &a, &row, f) < 0)
		return -1;
	const struct sbx *s = user_of(c, row.tree, false);
	if (s)
		return fail_set(f, FAIL_BUSY, "image: sandbox %s has it", s->id);
	if (store_image_drop(c->store, tenant, name, row.tree,
	                     (struct store_call){ .done = retired, .arg = c }, &e) < 0)
		return fail_unsent(f, &e);
	return 0;
}

/* ---- who uses them ------------------------------------------------------------------- */

int image_ids(const struct sbx *s, const char *user, uint32_t *uid, uint32_t *gid, struct err *e)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row row = { 0 };
	struct err gone = { 0 };

	/* A name that was dropped meanwhile: its users are not known any more. */
	if (s->image_tree &&
	    store_image_get(s->core->store, s->tenant, s->spec.image, &a, &row, &gone) < 0)
		row.passwd = NULL;
	return plan_ids_in(user, row.passwd, uid, gid, e);
}

void images_sweep(struct core *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct number_list loose;
	struct err e = { 0 };

	if (c->is_closing)
		return;
	if (store_image_loose(c->store, &a, &loose, &e) < 0) {
		journal(JOURNAL_ERROR, e.msg, NULL);
		return;
	}
	for (size_t i = 0; i < loose.n; i++)
		if (!user_of(c, loose.at[i], true) && !image_is_coming(c, (uint64_t)loose.at[i]))
			tree_remove(c, (uint64_t)loose.at[i]);
}

int image_resolve(struct sbx *s, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row row = { 0 };
	uint64_t before = s->image_tree;

	if (image_name_is(s->spec.image) &&
	    image_find(s->core, s->tenant, s->spec.image, &a, &row, f) < 0)
		return -1;
	if (wsx_check_root(s, &row.tree, f) < 0)
		return -1;
	s->image_tree = (uint64_t)row.tree;
	if (before && before != s->image_tree)
		images_sweep(s->core);
	return 0;
}
