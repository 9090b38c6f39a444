#include "core/fsck.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/census.h"
#include "core/trees.h"
#include "core/workspace-internal.h"
#include "store/repos.h"
#include "store/trees.h"

#define LINES_MAX (64u << 20)

struct fsck {
	struct fsck *next;
	struct core *core;
	bool is_mending;
	int fd; /* the keeper's findings */
	json_t *findings;
	struct arena arena;
	const struct census *census;
	VEC(struct workspace_row) workspaces; /* but those that are gone */
	VEC(struct tree_row) trees;
	VEC(struct point_row) points;
	VEC(int64_t) tops;          /* sorted */
	VEC(int64_t) point_nums;    /* sorted */
	VEC(struct point_row) lost; /* the newest first: what nobody can read any more */
	size_t n_pending, n_trees;
	fsck_done_fn *done;
	void *arg;
};

static void fsck_free(struct fsck *f)
{
	json_decref(f->findings);
	vec_done(&f->workspaces);
	vec_done(&f->trees);
	vec_done(&f->points);
	vec_done(&f->tops);
	vec_done(&f->point_nums);
	vec_done(&f->lost);
	arena_done(&f->arena);
	fd_close(&f->fd);
	free(f);
}

static void unlink_one(struct fsck *f)
{
	struct fsck **at = &f->core->fscks;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
}

static void finish(struct fsck *f, const struct fail *why)
{
	size_t n_mended = 0, i;
	json_t *v;

	json_array_foreach(f->findings, i, v)
	{
		n_mended += json_is_true(json_object_get(v, "mended"));
	}
	json_t *report =
	    json_pack("{sO,sI,sI,sI,sI,sI}", "findings", f->findings, "found",
	              (json_int_t)json_array_size(f->findings), "mended", (json_int_t)n_mended,
	              "workspaces", (json_int_t)f->workspaces.len, "points",
	              (json_int_t)f->points.len, "trees", (json_int_t)f->n_trees);

	unlink_one(f);
	f->done(f->arg, why ? NULL : report, why);
	json_decref(report);
	fsck_free(f);
}

/* ---- findings ------------------------------------------------------------------------ */

/* Borrowed. */
static json_t *found(struct fsck *f, const char *kind, const char *id, const char *fmt, ...)
    PRINTF(4, 5);
static json_t *found(struct fsck *f, const char *kind, const char *id, const char *fmt, ...)
{
	char problem[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(problem, sizeof problem, fmt, args);
	va_end(args);
	json_t *o =
	    json_pack("{ss,ss,ss,sb}", "kind", kind, "id", id, "problem", problem, "mended", 0);
	json_array_append_new(f->findings, o);
	return o;
}

static json_t *found_num(struct fsck *f, const char *kind, uint64_t num, const char *problem)
{
	char id[24];

	snprintf(id, sizeof id, "%llu", (unsigned long long)num);
	return found(f, kind, id, "%s", problem);
}

static void set_mended(json_t *finding)
{
	json_object_set_new(finding, "mended", json_true());
}

/* One that is on its way. */
struct fix {
	struct fsck *f;
	json_t *finding;
	uint64_t tree;         /* it goes then */
	const char *workspace; /* whose row it is */
};

static struct fix *fix_new(struct fsck *f, json_t *finding)
{
	struct fix *x = mem_alloc(sizeof *x);

	*x = (struct fix){ .f = f, .finding = json_incref(finding) };
	f->n_pending++;
	return x;
}

static void one_less(struct fsck *f)
{
	if (--f->n_pending == 0)
		finish(f, NULL);
}

static void fix_end(struct fix *x, bool is_mended)
{
	struct fsck *f = x->f;

	if (is_mended)
		set_mended(x->finding);
	json_decref(x->finding);
	free(x);
	one_less(f);
}

static void fixed_by_keeper(void *arg, const struct vault_done *d, const struct err *e)
{
	(void)d;
	fix_end(arg, !e);
}

static void fixed_by_store(void *arg, const struct store_answer *a)
{
	fix_end(arg, a->code == STORE_OK);
}

static void fixed_tree(void *arg, const struct store_answer *a)
{
	struct fix *x = arg;

	if (a->code == STORE_OK)
		tree_remove(x->f->core, x->tree);
	fixed_by_store(arg, a);
}

static void fixed_workspace(void *arg, struct wsx *w, const struct fail *f)
{
	(void)w;
	fix_end(arg, !f);
}

static void fixed_by_point(void *arg, struct wsx *w, const struct point_row *p,
                           const struct fail *f)
{
	(void)w;
	(void)p;
	fix_end(arg, !f);
}

/* What is there becomes a point: else the next undo would go back beyond it. */
static void fixed_row(void *arg, const struct fail *f)
{
	struct fix *x = arg;
	struct wsx *w = f ? NULL : ws_by_id(x->f->core, x->workspace);

	if (w && strcmp(w->row.mode, "read") != 0)
		wsx_point(w, &(struct wsx_point_ask){ .label = "fsck" }, fixed_by_point, x);
	else
		fix_end(x, !f);
}

static void ask_keeper(struct fsck *f, json_t *finding, const struct vault_packet *p)
{
	if (f->is_mending)
		trees_ask(f->core, p, -1, fixed_by_keeper, fix_new(f, finding));
}

/* ---- known numbers ------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

static bool is_top(const struct fsck *f, int64_t num)
{
	return f->tops.len > 0 &&
	       bsearch(&num, f->tops.at, f->tops.len, sizeof num, by_number) != NULL;
}

static bool has_row(const struct fsck *f, int64_t num)
{
	return f->point_nums.len > 0 &&
	       bsearch(&num, f->point_nums.at, f->point_nums.len, sizeof num, by_number) != NULL;
}

/* They come in order of their numbers. */
static const struct tree_row *tree_of(const struct fsck *f, int64_t num)
{
	for (size_t i = 0; i < f->trees.len; i++)
		if (f->trees.at[i].num == num)
			return &f->trees.at[i];
	return NULL;
}

/* Of its files, or of its root. */
static const struct workspace_row *workspace_of(const struct fsck *f, uint64_t num)
{
	for (size_t i = 0; i < f->workspaces.len && num > 0; i++)
		if ((uint64_t)f->workspaces.at[i].num == num ||
		    (uint64_t)f->workspaces.at[i].root_num == num)
			return &f->workspaces.at[i];
	return NULL;
}

static bool is_open(const struct fsck *f, const struct workspace_row *row)
{
	const struct wsx *w = row ? roster_find(&f->core->workspaces, row->id) : NULL;

	return w && !ws_is_idle(w);
}

/* The checkpoint is there, and can be read. */
static bool is_kept(const struct fsck *f, int64_t num)
{
	const struct census_point *p = census_point(f->census, (uint64_t)num);

	return num == 0 || (p && !p->is_broken);
}

static bool is_lost(const struct fsck *f, int64_t num)
{
	for (size_t i = 0; i < f->lost.len; i++)
		if (f->lost.at[i].num == num)
			return true;
	return false;
}

/* And so is the row. */
static bool is_good(const struct fsck *f, int64_t num)
{
	return is_kept(f, num) && (num == 0 || has_row(f, num)) && !is_lost(f, num);
}

/* ---- the disk against the rows -------------------------------------------------------- */

static void check_folders(struct fsck *f)
{
	for (size_t i = 0; i < f->census->trees.len; i++) {
		const struct census_tree *t = &f->census->trees.at[i];
		const struct vault_packet p = { .head.type = V_REMOVE_TREE, .tree.number = t->num };

		if (t->num == VAULT_EMPTY_TREE || is_top(f, (int64_t)t->num) ||
		    tree_of(f, (int64_t)t->num))
			continue;
		ask_keeper(f, found_num(f, "tree", t->num, "a folder that no row names"), &p);
	}
	for (size_t i = 0; i < f->census->n_strays; i++)
		(void)found(f, "store", "trees", "something that is not ours lies among the trees");
}

static void check_volumes(struct fsck *f)
{
	for (size_t i = 0; i < f->census->volumes.len; i++) {
		const struct census_volume *v = &f->census->volumes.at[i];
		const struct workspace_row *w = workspace_of(f, v->num);
		const struct vault_packet p = { .head.type = V_REMOVE_VOLUME,
			                        .tree.number = v->num };

		if (w && w->disk_bytes > 0)
			continue;
		ask_keeper(f, found_num(f, "volume", v->num, "a volume that no workspace has"), &p);
	}
}

/* One of a workspace that is open may be on its way to its row. */
static void check_checkpoints(struct fsck *f)
{
	for (size_t i = 0; i < f->census->points.len; i++) {
		const struct census_point *c = &f->census->points.at[i];
		const struct vault_packet p = {
			.head.type = V_REMOVE_POINTS,
			.points = { .workspace = c->workspace, .from = c->num, .to = c->num }
		};

		if (c->is_broken || has_row(f, (int64_t)c->num) ||
		    is_open(f, workspace_of(f, c->workspace)))
			continue;
		ask_keeper(f, found_num(f, "point", c->num, "a checkpoint that no row names"), &p);
	}
}

static void check_numbers(struct fsck *f)
{
	uint64_t last = 0;

	if (f->census->trees.len > 0)
		last = f->census->trees.at[f->census->trees.len - 1].num;
	if (f->census->points.len > 0 && f->census->points.at[f->census->points.len - 1].num > last)
		last = f->census->points.at[f->census->points.len - 1].num;
	if (last < trees_next(f->core))
		return;
	json_t *o = found_num(f, "store", last, "the next number was given already");
	if (f->is_mending) {
		trees_skip(f->core, last);
		set_mended(o);
	}
}

/* ---- the rows against the disk -------------------------------------------------------- */

static bool must_be_sealed(const struct tree_row *t)
{
	return strcmp(t->kind, "repo") != 0 && strcmp(t->kind, "top") != 0;
}

/* A checkout that nothing lies on is made again when it is wanted. */
static void retire(struct fsck *f, const struct tree_row *t, json_t *finding)
{
	struct fix *x = f->is_mending ? fix_new(f, finding) : NULL;
	struct err e = { 0 };

	if (!x)
		return;
	x->tree = (uint64_t)t->num;
	if (store_tree_retire(f->core->store, t->num,
	                      (struct store_call){ .done = fixed_tree, .arg = x }, &e) < 0)
		fix_end(x, false);
}

static void check_tree_rows(struct fsck *f)
{
	for (size_t i = 0; i < f->trees.len; i++) {
		const struct tree_row *t = &f->trees.at[i];
		const struct census_tree *there = census_tree(f->census, (uint64_t)t->num);
		const struct vault_packet p = { .head.type = V_REMOVE_TREE,
			                        .tree.number = (uint64_t)t->num };

		if (t->state == TREE_TRASH && there && trees_are_idle(f->core))
			ask_keeper(
			    f, found_num(f, "tree", (uint64_t)t->num, "it is left in the trash"),
			    &p);
		if (t->state != TREE_READY)
			continue;
		if (!there)
			retire(f, t,
			       found(f, "tree", t->owner, "the folder of its %s %s is missing",
			             t->kind, t->key ? t->key : ""));
		else if (must_be_sealed(t) && !there->is_sealed)
			retire(f, t,
			       found(f, "tree", t->owner, "its %s %s is not sealed", t->kind,
			             t->key ? t->key : ""));
	}
}

static int by_newest(const void *a, const void *b)
{
	const struct point_row *x = a, *y = b;

	return (x->num < y->num) - (x->num > y->num);
}

static void lose_point(struct fsck *f, const struct point_row *row, const char *what)
{
	json_t *o =
	    found(f, "point", row->id, "%s is missing or broken; it is in the history of %s", what,
	          row->workspace);
	struct err e = { 0 };

	vec_push(&f->lost, *row);
	if (!f->is_mending)
		return;
	struct fix *x = fix_new(f, o);
	if (store_point_cut(f->core->store, row->num,
	                    (struct store_call){ .done = fixed_by_store, .arg = x }, &e) < 0)
		fix_end(x, false);
}

/* Rows of one number are neighbours then. */
static void check_point_rows(struct fsck *f)
{
	if (f->points.len > 1)
		qsort(f->points.at, f->points.len, sizeof *f->points.at, by_newest);
	for (size_t i = 0; i < f->points.len; i++) {
		const struct point_row *row = &f->points.at[i];
		bool is_known = i > 0 && f->points.at[i - 1].num == row->num;

		if (!is_known && !is_kept(f, row->num))
			lose_point(f, row, "its checkpoint");
		else if (!is_known && !is_kept(f, row->root))
			lose_point(f, row, "that of its root");
	}
}

/* ---- workspaces ---------------------------------------------------------------------- */

/* The last good one before it, of its own: what its row does not lead to any more. */
static int64_t fallback(const struct fsck *f, const struct workspace_row *w, int64_t num)
{
	for (size_t i = 0; i < f->points.len; i++) /* the newest first */
		if (f->points.at[i].num < num && strcmp(f->points.at[i].workspace, w->id) == 0 &&
		    is_good(f, f->points.at[i].num))
			return f->points.at[i].num;
	return 0;
}

static void note_nowhere(struct fsck *f, const struct workspace_row *w, int64_t num)
{
	if (num == 0 || has_row(f, num) || is_lost(f, num))
		return;
	vec_push(&f->lost, (struct point_row){ .num = num, .before = fallback(f, w, num) });
}

/* What it names must be there; `lost` has those that are not. */
static void check_references(struct fsck *f, const struct workspace_row *w)
{
	json_t *ahead = json_loads(w->ahead, 0, NULL), *v;
	const int64_t named[] = { w->head, w->begins, w->origin };
	size_t i, n_bad = 0;

	for (i = 0; i < COUNT(named); i++) {
		note_nowhere(f, w, named[i]);
		n_bad += !is_good(f, named[i]);
	}
	json_array_foreach(ahead, i, v)
	{
		note_nowhere(f, w, json_integer_value(v));
		n_bad += !is_good(f, json_integer_value(v));
	}
	json_decref(ahead);
	if (n_bad == 0)
		return;
	json_t *o =
	    found(f, "workspace", w->id, "it is at, or leads to, a point that is not there");
	if (!f->is_mending || is_open(f, w))
		return;
	if (f->lost.len > 1)
		qsort(f->lost.at, f->lost.len, sizeof *f->lost.at, by_newest);
	const struct point_list lost = { f->lost.at, f->lost.len, NULL };
	struct fix *x = fix_new(f, o);
	x->workspace = w->id;
	if (!wsx_forget_points(f->core, w, &lost, fixed_row, x))
		fix_end(x, false);
}

/* 0: one is missing. */
static bool has_layers(struct fsck *f, const struct workspace_row *w)
{
	uint64_t layers[VAULT_LAYERS_MAX];
	int n = ws_layers(w->stack, layers);

	if (n < 0)
		(void)found(f, "workspace", w->id, "its stack is no list of layers");
	for (int i = 0; i < n; i++) {
		const struct census_tree *t = census_tree(f->census, layers[i]);

		/* The empty one is made by whoever needs it. */
		if (layers[i] == VAULT_EMPTY_TREE || (t && t->is_sealed))
			continue;
		(void)found(f, "workspace", w->id, "layer %llu below it is %s",
		            (unsigned long long)layers[i], t ? "not sealed" : "missing");
		return false;
	}
	const struct census_tree *image = census_tree(f->census, (uint64_t)w->root_tree);
	if (w->root_num && !(image && image->is_sealed)) {
		(void)found(f, "workspace", w->id, "the image %s below its root is %s",
		            w->root_image, image ? "not sealed" : "missing");
		return false;
	}
	return n > 0;
}

static int64_t root_of(const struct fsck *f, int64_t num)
{
	for (size_t i = 0; i < f->points.len; i++)
		if (f->points.at[i].num == num)
			return f->points.at[i].root;
	return 0;
}

static bool has_top(const struct fsck *f, const struct workspace_row *w, int64_t num, int64_t top)
{
	return census_tree(f->census, (uint64_t)top) ||
	       (w->disk_bytes > 0 && census_volume(f->census, (uint64_t)num));
}

/* One that nobody has opened since its row says what it begins with has none yet. */
static bool has_files(struct fsck *f, const struct workspace_row *w)
{
	bool is_whole = has_top(f, w, w->num, w->top) || w->begins == w->head;
	bool is_root_whole = !w->root_num || has_top(f, w, w->root_num, w->root_top) ||
	                     w->root_begins == root_of(f, w->head);

	if ((is_whole && is_root_whole) || strcmp(w->mode, "read") == 0 || is_open(f, w))
		return true;
	json_t *o = found(f, "workspace", w->id, "its %s missing; its last point %s",
	                  is_whole ? "root is" : "files are",
	                  is_good(f, w->head) ? "has what they were then" : "is not there either");
	struct wsx *x = f->is_mending ? ws_by_id(f->core, w->id) : NULL;
	if (x && ws_is_idle(x) && is_good(f, w->head))
		wsx_begin_again(x, fixed_workspace, fix_new(f, o));
	return false;
}

static void check_pending(struct fsck *f, const struct workspace_row *w)
{
	if (!ws_is_cut_short(w) || is_open(f, w))
		return;
	json_t *o = found(f, "workspace", w->id, "a restore of it was cut short");
	struct wsx *x = f->is_mending ? ws_by_id(f->core, w->id) : NULL;
	if (x)
		wsx_point(x, &(struct wsx_point_ask){ .label = "fsck" }, fixed_by_point,
		          fix_new(f, o));
}

static void check_repo(struct fsck *f, const struct workspace_row *w)
{
	struct repo_row row;
	struct err e = { 0 };

	if (w->repo &&
	    store_repo_get(f->core->store, w->tenant, w->repo, &f->arena, &row, &e) < 0 &&
	    e.kind == ERR_NOT_FOUND)
		(void)found(f, "workspace", w->id, "its repository %s is not there", w->repo);
}

static void check_workspaces(struct fsck *f)
{
	for (size_t i = 0; i < f->workspaces.len; i++) {
		const struct workspace_row *w = &f->workspaces.at[i];

		check_references(f, w);
		check_repo(f, w);
		if (has_layers(f, w) && has_files(f, w))
			check_pending(f, w);
	}
}

/* ---- all of it ----------------------------------------------------------------------- */

static void take_workspace(struct fsck *f, const struct workspace_row *row)
{
	vec_push(&f->workspaces, *row);
	vec_push(&f->tops, row->top);
	if (row->root_num)
		vec_push(&f->tops, row->root_top);
}

static int load_workspaces(struct fsck *f, struct err *e)
{
	struct workspace_query q = { .page = { .is_all_tenants = true,
		                               .is_oldest_first = true,
		                               .limit = STORE_LIST_MAX },
		                     .states = (1u << WORKSPACE_GONE) - 1 };
	struct workspace_list list;

	do {
		if (store_workspace_list(f->core->store, &q, &f->arena, &list, e) < 0)
			return -1;
		for (size_t i = 0; i < list.n; i++)
			take_workspace(f, &list.rows[i]);
		q.page.cursor = list.next;
	} while (list.next);
	if (f->tops.len > 1)
		qsort(f->tops.at, f->tops.len, sizeof *f->tops.at, by_number);
	return 0;
}

static void take_tree(struct fsck *f, const struct tree_row *row)
{
	vec_push(&f->trees, *row);
}

static int load_trees(struct fsck *f, struct err *e)
{
	struct tree_list list;

	for (enum tree_state s = 0; s < TREE_STATE_COUNT; s++) {
		if (store_tree_in(f->core->store, s, &f->arena, &list, e) < 0)
			return -1;
		for (size_t i = 0; i < list.n; i++)
			take_tree(f, &list.rows[i]);
	}
	return 0;
}

static void take_point(struct fsck *f, const struct point_row *row)
{
	vec_push(&f->points, *row);
	vec_push(&f->point_nums, row->num);
	if (row->root)
		vec_push(&f->point_nums, row->root);
}

static int load_points(struct fsck *f, struct err *e)
{
	struct point_list list = { 0 };
	int64_t seq = 0;

	do {
		if (store_point_after(f->core->store, seq, &f->arena, &list, e) < 0)
			return -1;
		for (size_t i = 0; i < list.n; i++) {
			take_point(f, &list.rows[i]);
			seq = list.rows[i].seq;
		}
	} while (list.n == STORE_LIST_MAX);
	if (f->point_nums.len > 1)
		qsort(f->point_nums.at, f->point_nums.len, sizeof(int64_t), by_number);
	return 0;
}

static void counted(void *arg, const struct census *census, const struct fail *why)
{
	static void (*const checks[])(struct fsck *) = {
		check_folders,   check_volumes,    check_checkpoints, check_numbers,
		check_tree_rows, check_point_rows, check_workspaces,
	};
	struct fsck *f = arg;
	struct fail bad = { 0 };
	struct err e = { 0 };

	if (why) {
		finish(f, why);
		return;
	}
	f->census = census;
	if (load_workspaces(f, &e) < 0 || load_trees(f, &e) < 0 || load_points(f, &e) < 0) {
		fail_err(&bad, &e);
		finish(f, &bad);
		return;
	}
	f->n_trees = census->trees.len;
	f->n_pending = 1;
	for (size_t i = 0; i < COUNT(checks); i++)
		checks[i](f);
	f->census = NULL; /* another one may be taken while the rest is under way */
	one_less(f);
}

/* {"blob":NAME,"problem":…,"points":[…],"mended":"again"}; a wrong one that went is still a loss.
 * A checkpoint that was set aside is told of with its row. */
static void take_line(struct fsck *f, const json_t *line)
{
	const char *blob = json_string_value(json_object_get(line, "blob"));
	const char *point = json_string_value(json_object_get(line, "checkpoint"));
	const char *problem = json_string_value(json_object_get(line, "problem"));
	const char *how = json_string_value(json_object_get(line, "mended"));

	if (!problem || (!blob && !point))
		return;
	json_t *o = found(f, blob ? "blob" : "checkpoint", blob ? blob : point, "%s%s", problem,
	                  how && strcmp(how, "removed") == 0 ? ", and is removed" : "");
	if (how && strcmp(how, "removed") != 0)
		set_mended(o);
	json_t *points = json_object_get(line, "points");
	if (points)
		json_object_set(o, "points", points);
}

static int take_lines(struct fsck *f, struct err *e)
{
	off_t len = lseek(f->fd, 0, SEEK_END);

	if (len < 0 || len > LINES_MAX)
		return err_new(e, ERR_LIMIT, "there are too many findings");
	AUTO(freep) char *text = mem_alloc((size_t)len + 1);
	if (pread(f->fd, text, (size_t)len, 0) != len)
		return err_new(e, ERR_INTERNAL, "the findings cannot be read");
	text[len] = '\0';
	for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
		json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);

		take_line(f, line);
		json_decref(line);
	}
	return 0;
}

static void verified(void *arg, const struct vault_done *d, const struct err *why)
{
	struct fsck *f = arg;
	struct fail bad = { 0 };
	struct err e = { 0 };

	(void)d;
	if (why || take_lines(f, &e) < 0) {
		fail_err(&bad, why ? why : &e);
		finish(f, &bad);
		return;
	}
	census_take(f->core, counted, f);
}

void fsck_run(struct core *c, bool is_mending, fsck_done_fn *done, void *arg)
{
	struct fsck *f = mem_alloc(sizeof *f);
	struct vault_packet p = { .head.type = is_mending ? V_MEND : V_VERIFY };
	struct err e = { 0 };
	struct fail bad = { 0 };

	*f = (struct fsck){ .next = c->fscks,
		            .core = c,
		            .is_mending = is_mending,
		            .fd = memfd_create("findings", MFD_CLOEXEC),
		            .findings = json_array(),
		            .done = done,
		            .arg = arg };
	c->fscks = f;
	if (store_check(c->store, &e) < 0)
		(void)found(f, "store", "database", "%s", e.msg);
	if (f->fd < 0) {
		fail_set(&bad, FAIL_BACKEND_ERROR, "too many open files");
		finish(f, &bad);
		return;
	}
	trees_ask(c, &p, f->fd, verified, f);
}

void fsck_close(struct core *c)
{
	struct fsck *next;

	for (struct fsck *f = c->fscks; f; f = next) {
		next = f->next;
		fsck_free(f);
	}
	c->fscks = NULL;
}
