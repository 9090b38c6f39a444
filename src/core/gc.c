#include "core/gc.h"

#include "core/census.h"
#include "core/trees.h"
#include "core/workspace-internal.h"
#include "io/journal.h"
#include "store/trees.h"

#define LOOK_MS 5000         /* at least so long between two looks of our own, */
#define LOOK_SHARE 50        /* and so many times what one takes */
#define LAYER_AGE_MS 60000   /* a checkout that was just made is about to be used */
#define POINTS_COUNTED 10000 /* in a report */

struct gc_job {
	struct gc_job *next;
	struct core *core;
	bool is_dry;
	struct evict_marks marks;
	VEC(struct evict_item) items;
	size_t at; /* the one that is on its way */
	uint64_t freed;
	struct arena arena;
	gc_done_fn *done;
	void *arg;
};

static void job_free(struct gc_job *j)
{
	vec_done(&j->items);
	arena_done(&j->arena);
	free(j);
}

static void job_unlink(struct gc_job *j)
{
	struct gc_job **at = &j->core->gc_jobs;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
}

static void job_end(struct gc_job *j, const struct fail *f)
{
	struct gc_report r = { .is_dry = j->is_dry,
		               .marks = j->marks,
		               .items = j->items.at,
		               .n = j->items.len,
		               .freed = j->freed };

	j->core->is_evicting = false;
	job_unlink(j);
	j->done(j->arg, f ? NULL : &r, f);
	job_free(j);
}

/* ---- what there is ------------------------------------------------------------------- */

static bool is_kept(const struct census *census, int64_t num)
{
	const struct census_point *kept = census_point(census, (uint64_t)num);

	return num == 0 || (kept && !kept->is_broken);
}

static bool is_saved(struct core *c, const struct census *census, const struct workspace_row *row)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct point_row point;
	struct err e = { 0 };

	if (row->head == 0)
		return true;
	return store_point_by_num(c->store, row->head, &a, &point, &e) == 0 && point.durable &&
	       is_kept(census, point.num) && is_kept(census, point.root);
}

static void add_workspace(struct gc_job *j, const struct census *census,
                          const struct workspace_row *stored)
{
	struct core *c = j->core;
	const struct wsx *w = roster_find(&c->workspaces, stored->id);
	const struct workspace_row *row = w ? &w->row : stored;
	struct census_use use = census_use(census, row);
	int64_t grace = core_now_ms() - (int64_t)c->config.keep_trash_ms;
	bool is_trashed = row->state == WORKSPACE_TRASH;
	struct evict_item i = { .kind = EVICT_TOP,
		                .num = (uint64_t)row->num,
		                .bytes = use.top,
		                .used_ms = row->used_ms,
		                .is_pinned = row->pin && !is_trashed,
		                .is_trashed = is_trashed,
		                .is_open = w && !wsx_may_rest(w),
		                .is_changed = row->head != row->origin,
		                .is_closed = row->clean && !row->pending,
		                .is_saved = is_saved(c, census, row) };

	if (is_trashed && row->ended_ms <= grace) {
		i.kind = EVICT_TRASH;
		i.bytes = use.unique;
	}
	snprintf(i.id, sizeof i.id, "%s", row->id);
	snprintf(i.key, sizeof i.key, "%s", row->key ? row->key : "");
	vec_push(&j->items, i);
}

static int add_workspaces(struct gc_job *j, const struct census *census, struct err *e)
{
	struct workspace_query q = { .page = { .is_all_tenants = true,
		                               .is_oldest_first = true,
		                               .limit = STORE_LIST_MAX },
		                     .states = (1u << WORKSPACE_GONE) - 1 };
	struct workspace_list list;

	do {
		if (store_workspace_list(j->core->store, &q, &j->arena, &list, e) < 0)
			return -1;
		for (size_t i = 0; i < list.n; i++)
			add_workspace(j, census, &list.rows[i]);
		q.page.cursor = list.next;
	} while (list.next);
	return 0;
}

static void add_layer(struct gc_job *j, const struct census *census, const struct tree_row *row)
{
	const struct census_tree *tree = census_tree(census, (uint64_t)row->num);
	struct evict_item item = { .kind = EVICT_LAYER,
		                   .num = (uint64_t)row->num,
		                   .bytes = tree ? tree->bytes : 0,
		                   .used_ms = row->created_ms };

	snprintf(item.id, sizeof item.id, "%s", row->owner);
	snprintf(item.key, sizeof item.key, "%.128s", row->key ? row->key : "");
	vec_push(&j->items, item);
}

/* None while somebody is about to stand on one. */
static int add_layers(struct gc_job *j, const struct census *census, struct err *e)
{
	struct tree_list list;

	if (j->core->askings || j->core->layer_jobs)
		return 0;
	if (store_tree_unused(j->core->store, core_now_ms() - LAYER_AGE_MS, &j->arena, &list, e) <
	    0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		add_layer(j, census, &list.rows[i]);
	return 0;
}

static int add_points(struct gc_job *j, struct err *e)
{
	struct point_list list;

	if (store_point_useless(j->core->store, POINTS_COUNTED, &j->arena, &list, e) < 0)
		return -1;
	struct evict_item item = { .kind = EVICT_POINTS };

	snprintf(item.id, sizeof item.id, "%zu%s", list.n, list.n == POINTS_COUNTED ? "+" : "");
	if (list.n > 0)
		vec_push(&j->items, item);
	return 0;
}

/* ---- one after the other ------------------------------------------------------------- */

static void go_on(struct gc_job *j);

static void item_done(struct gc_job *j, const struct fail *f)
{
	struct evict_item *i = &j->items.at[j->at++];

	if (f)
		i->failed = arena_strdup(&j->arena, f->detail);
	else
		j->freed += i->bytes;
	go_on(j);
}

static void top_gone(void *arg, struct wsx *w, const struct fail *f)
{
	if (!f)
		journal(JOURNAL_INFO, "the store is full: files of a workspace were removed",
		        "workspace", w->row.id, NULL);
	item_done(arg, f);
}

static void layer_retired(void *arg, const struct store_answer *a)
{
	struct gc_job *j = arg;
	struct fail f = { 0 };

	if (a->code == STORE_OK) {
		tree_remove(j->core, j->items.at[j->at].num);
		item_done(j, NULL);
		return;
	}
	fail_err(&f, a->err);
	item_done(j, &f);
}

static void drop_layer(struct gc_job *j)
{
	struct err e = { 0 };
	struct fail f = { 0 };

	if (j->core->askings || j->core->layer_jobs) {
		fail_set(&f, FAIL_BUSY, "a checkout is being made");
		item_done(j, &f);
		return;
	}
	j->core->is_evicting = true; /* until it is on record: who wants one waits */
	if (store_tree_retire(j->core->store, (int64_t)j->items.at[j->at].num,
	                      (struct store_call){ .done = layer_retired, .arg = j }, &e) == 0)
		return;
	fail_err(&f, &e);
	item_done(j, &f);
}

static void drop_top(struct gc_job *j)
{
	struct wsx *w = ws_by_id(j->core, j->items.at[j->at].id);
	struct fail f = { 0 };

	if (w && wsx_may_rest(w)) {
		wsx_evict(w, top_gone, j);
		return;
	}
	fail_set(&f, FAIL_BUSY, "somebody works with it again");
	item_done(j, &f);
}

/* Trash and points go in the background; who asks again sees less. */
static void drop_over(struct gc_job *j)
{
	j->core->swept_ms = 0;
	wsx_end_trash(j->core);
	item_done(j, NULL);
}

static void go_on(struct gc_job *j)
{
	static void (*const drops[])(struct gc_job *) = { [EVICT_TRASH] = drop_over,
		                                          [EVICT_LAYER] = drop_layer,
		                                          [EVICT_TOP] = drop_top,
		                                          [EVICT_POINTS] = drop_over };

	j->core->is_evicting = false;
	while (j->at < j->items.len && !j->items.at[j->at].is_going)
		j->at++;
	if (j->at < j->items.len)
		drops[j->items.at[j->at].kind](j);
	else
		job_end(j, NULL);
}

static void counted(void *arg, const struct census *census, const struct fail *why)
{
	struct gc_job *j = arg;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (why) {
		job_end(j, why);
		return;
	}
	j->marks = evict_marks(&j->core->config.disk, census->total);
	if (add_layers(j, census, &e) < 0 || add_workspaces(j, census, &e) < 0 ||
	    add_points(j, &e) < 0) {
		fail_err(&f, &e);
		job_end(j, &f);
		return;
	}
	uint64_t freed = evict_plan(j->items.at, j->items.len, &j->marks);

	if (j->is_dry) {
		j->freed = freed;
		job_end(j, NULL);
	} else {
		go_on(j);
	}
}

void gc_run(struct core *c, bool is_dry, gc_done_fn *done, void *arg)
{
	struct gc_job *j = mem_alloc(sizeof *j);

	*j = (struct gc_job){
		.next = c->gc_jobs, .core = c, .is_dry = is_dry, .done = done, .arg = arg
	};
	c->gc_jobs = j;
	census_take(c, counted, j);
}

/* ---- bounds -------------------------------------------------------------------------- */

int gc_admit(const struct core *c, struct fail *f)
{
	char used[32], max[32];

	if (!c->config.disk.max || !c->census || c->census->total < c->config.disk.max)
		return 0;
	quota_text(QUOTA_DISK, c->census->total, used);
	quota_text(QUOTA_DISK, c->config.disk.max, max);
	fail_set(f, FAIL_QUOTA, "store: workspaces take %s, and %s is the most", used, max);
	f->is_retry_safe = true;
	return -1;
}

int gc_check_workspace(const struct wsx *w, struct fail *f)
{
	uint64_t most = w->core->config.disk.workspace;
	uint64_t bytes = census_use(w->core->census, &w->row).top;
	char used[32], max[32];

	if (!most || w->row.disk_bytes > 0 || bytes <= most)
		return 0;
	quota_text(QUOTA_DISK, bytes, used);
	quota_text(QUOTA_DISK, most, max);
	fail_set(f, FAIL_QUOTA, "workspace: its files take %s, and %s is the most", used, max);
	f->is_retry_safe = true;
	return -1;
}

static void looked(void *arg, const struct gc_report *r, const struct fail *f)
{
	struct core *c = arg;

	c->gc_looked_ms = core_mono_ms();
	if (f)
		journal(JOURNAL_WARN, f->detail, NULL);
	else if (r->marks.max && r->marks.used > r->marks.high + r->freed)
		journal(JOURNAL_WARN,
		        "the store is above its high mark, and nothing more can be removed", NULL);
}

void gc_look(struct core *c)
{
	uint64_t pause = c->census ? c->census->took_ms * LOOK_SHARE : 0;
	bool is_bounded = c->config.disk.max || (c->config.disk.workspace && !c->host.is_root);

	if (pause < LOOK_MS)
		pause = LOOK_MS;
	if (is_bounded && !c->gc_jobs && (!c->census || core_mono_ms() - c->gc_looked_ms >= pause))
		gc_run(c, false, looked, c);
}

void gc_close(struct core *c)
{
	struct gc_job *next;

	for (struct gc_job *j = c->gc_jobs; j; j = next) {
		next = j->next;
		job_free(j);
	}
	c->gc_jobs = NULL;
}
