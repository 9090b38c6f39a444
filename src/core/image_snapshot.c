/*
 * image_snapshot.c - an image of what the root of a workspace's sandboxes was at some point.
 *
 *   point ─▷ two trees ─▷ the keeper of the store flattens: image and top, by links ─▷ named
 *
 * The one tree is the image, the other holds what the point held and is gone afterwards. Whoever
 * wrote to the root is a stranger: its /etc/passwd is read inside walls.
 */
#include "core/image.h"
#include "core/service.h"
#include "core/trees.h"
#include "core/workspace.h"
#include "io/journal.h"

#define PLACE "/run/caisson/image"
#define PASSWD_MAX (256u << 10)
#define TIME_MS 60000

struct image_taking {
	struct image_taking *next;
	struct core *core;
	struct wsx *w; /* a reference */
	char *name;
	bool is_replace;
	char point[ID_SIZE];
	uint64_t from;         /* the point of the root; 0: the image as it was */
	uint64_t tree, filled; /* 0: none yet */
	struct service *service;
	struct image_row row;
	char *passwd;
	struct fail fail;
	image_made_fn *done;
	void *arg;
};

static void taking_free(struct image_taking *t)
{
	struct image_taking **at = &t->core->takings;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	wsx_unref(t->w);
	free(t->name);
	free(t->passwd);
	free(t);
}

bool image_is_taken(const struct core *c, uint64_t tree)
{
	for (const struct image_taking *t = c->takings; t; t = t->next)
		if (t->tree == tree)
			return true;
	return false;
}

void image_takings_close(struct core *c)
{
	while (c->takings) {
		service_cancel(c->takings->service);
		taking_free(c->takings);
	}
}

static void end(struct image_taking *t)
{
	struct core *c = t->core;
	bool is_failed = t->fail.code != FAIL_NONE;

	if (t->filled)
		tree_remove(c, t->filled);
	if (is_failed && t->tree)
		tree_remove(c, t->tree);
	journal(JOURNAL_INFO,
	        is_failed ? "an image was not made" : "an image was made of a workspace", "image",
	        t->name, "workspace", t->w->row.id, "reason", is_failed ? t->fail.detail : NULL,
	        NULL);
	t->done(t->arg, is_failed ? NULL : &t->row, is_failed ? &t->fail : NULL);
	taking_free(t);
	images_sweep(c); /* what had the name before */
}

/* True: it ends here. */
static bool ends(struct image_taking *t, const struct fail *f)
{
	if (!f)
		return false;
	t->fail = *f;
	end(t);
	return true;
}

static void named(void *arg, const struct store_answer *a)
{
	struct image_taking *t = arg;

	if (a->code == STORE_EXISTS)
		fail_set(&t->fail, FAIL_EXISTS, "there is an image %s; replace it?", t->name);
	else if (a->code != STORE_OK)
		fail_set(&t->fail, FAIL_BACKEND_ERROR, "the image could not be stored");
	end(t);
}

static void users_read(void *arg, const struct service_end *e)
{
	struct image_taking *t = arg;
	struct err full = { 0 };

	t->service = NULL;
	if (e->fail.code != FAIL_NONE) {
		ends(t, &e->fail);
		return;
	}
	if (e->exit_code == 0 && !memchr(e->out, '\0', e->out_len)) {
		t->passwd = mem_alloc(e->out_len + 1);
		memcpy(t->passwd, e->out, e->out_len);
		t->row.passwd = t->passwd;
	}
	if (store_image_put(t->core->store, &t->row, t->is_replace,
	                    (struct store_call){ .done = named, .arg = t, .is_durable = true },
	                    &full) == 0)
		return;
	fail_unsent(&t->fail, &full);
	end(t);
}

/* Names of users; without a file of them there are none. A link could lead to another file. */
static const char read_users[] = "cd \"$1\"; [ ! -L etc ] && [ ! -L etc/passwd ] || exit 3;"
				 " exec head -c 200000 etc/passwd";

static void sealed(void *arg, uint64_t num, const struct fail *f)
{
	struct image_taking *t = arg;
	const struct maker_tree tree = { .tree = num, .at = PLACE, .is_read_only = true };
	const char *const args[] = { PLACE, NULL };
	const struct service_ask ask = { .tenant = t->w->row.tenant,
		                         .script = read_users,
		                         .args = args,
		                         .trees = &tree,
		                         .n_trees = 1,
		                         .client_fd = -1,
		                         .timeout_ms = TIME_MS,
		                         .out_max = PASSWD_MAX,
		                         .done = users_read,
		                         .arg = t };

	if (ends(t, f))
		return;
	t->service = service_start(t->core, &ask, &t->fail);
	if (!t->service)
		end(t);
}

static void flat(void *arg, uint64_t files, uint64_t bytes, const struct fail *f)
{
	struct image_taking *t = arg;

	if (ends(t, f))
		return;
	t->row = (struct image_row){ .tenant = t->w->row.tenant,
		                     .name = t->name,
		                     .tree = (int64_t)t->tree,
		                     .source = IMAGE_SNAPSHOT,
		                     .digest = t->point,
		                     .bytes = (int64_t)bytes,
		                     .files = (int64_t)files,
		                     .layers = t->from ? 2 : 1,
		                     .created_ms = core_now_ms() };
	tree_seal(t->core, t->tree, sealed, t);
}

static void flatten(struct image_taking *t)
{
	const struct tree_flat how = { .num = t->tree,
		                       .layer = (uint64_t)t->w->row.root_tree,
		                       .from = t->from,
		                       .filled = t->filled };

	tree_flatten(t->core, &how, flat, t);
}

static void filled_made(void *arg, uint64_t num, const struct fail *f)
{
	struct image_taking *t = arg;

	t->filled = f ? 0 : num;
	if (!ends(t, f))
		flatten(t);
}

static void tree_made(void *arg, uint64_t num, const struct fail *f)
{
	struct image_taking *t = arg;
	const struct tree_new more = { .tenant = t->w->row.tenant,
		                       .kind = "layer",
		                       .owner = t->name };

	t->tree = f ? 0 : num;
	if (ends(t, f))
		return;
	if (t->from)
		tree_make(t->core, &more, filled_made, t);
	else
		flatten(t);
}

static void begin(struct image_taking *t, const struct point_row *point)
{
	const struct tree_new tree = { .tenant = t->w->row.tenant,
		                       .kind = "image",
		                       .owner = t->name };

	snprintf(t->point, sizeof t->point, "%s", point->id);
	t->from = (uint64_t)point->root;
	tree_make(t->core, &tree, tree_made, t);
}

static void kept(void *arg, struct wsx *w, const struct point_row *point, const struct fail *f)
{
	struct image_taking *t = arg;

	(void)w;
	if (!ends(t, f))
		begin(t, point);
}

int image_snapshot(struct wsx *w, const struct image_ask *ask, const char *point,
                   image_made_fn *done, void *arg, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	const struct wsx_point_ask now = { .kind = POINT_SNAPSHOT, .label = ask->name };
	struct point_row at;
	struct core *c = w->core;

	if (image_check(c, ask, f) < 0)
		return -1;
	if (!w->row.root_num)
		return fail_set(f, FAIL_CONFLICT,
		                "the workspace keeps no root: its sandboxes have one with "
		                "checkpoint: all");
	if (point && wsx_point_find(w, point, &a, &at, f) < 0)
		return -1;
	if (point && at.workspace && strcmp(at.workspace, w->row.id) != 0)
		return fail_set(f, FAIL_INVALID, "%.64s is a point of another workspace", point);
	struct image_taking *t = mem_alloc(sizeof *t);

	*t = (struct image_taking){ .next = c->takings,
		                    .core = c,
		                    .w = w,
		                    .name = mem_strdup(ask->name),
		                    .is_replace = ask->is_replace,
		                    .done = done,
		                    .arg = arg };
	c->takings = t;
	wsx_ref(w);
	if (point)
		begin(t, &at);
	else
		wsx_point(w, &now, kept, t);
	return 0;
}
