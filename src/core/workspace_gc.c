/*
 * workspace_gc.c - what ends by itself, and what a dead host left.
 *
 * Nobody's workspace is first in the trash. After its time there its top goes, and with it the
 * points that no other history leads through.
 */
#include <jansson.h>

#include "core/flatten.h"
#include "core/gc.h"
#include "core/image.h"
#include "core/trees.h"
#include "core/workspace-internal.h"
#include "io/journal.h"

#define BOOT_FACT "boot" /* of the last daemon */

#define POINTS_AT_A_TIME 200
#define SWEEP_MS 60000 /* points that nobody needs are looked for so often */

/* ---- over ---------------------------------------------------------------------------- */

static void expired(void *arg, struct wsx *w, const struct fail *f)
{
	(void)arg;
	journal(f ? JOURNAL_WARN : JOURNAL_INFO,
	        f ? f->detail : "a workspace was not used for its time", "workspace", w->row.id,
	        NULL);
}

static void volume_removed(void *arg, const struct vault_done *d, const struct err *e)
{
	struct wsx *w = arg;

	(void)d;
	if (e) /* fsck finds it */
		journal(JOURNAL_WARN, e->msg, "workspace", w->row.id, NULL);
	wsx_unref(w);
}

static void gone(void *arg, const struct fail *f)
{
	struct wsx *w = arg;

	const struct workspace_with old = { .trash = w->row.top, .root_trash = w->row.root_top };

	if (!f)
		ws_drop_tops(w->core, &old);
	if (!f && w->row.root_num)
		images_sweep(w->core); /* an image that it was the last to need */
	if (!f && w->row.disk_bytes > 0)
		ws_remove_volumes(w, volume_removed, w);
	else
		wsx_unref(w);
}

/* Out of the trash, for ever. */
static void end_one(struct core *c, const char *id)
{
	struct wsx *w = ws_by_id(c, id);

	if (!w || !ws_is_idle(w) || w->row.state != WORKSPACE_TRASH)
		return; /* at the next look */
	w->row.state = WORKSPACE_GONE;
	w->row.ended_ms = core_now_ms();
	wsx_ref(w);
	ws_store(w, WORKSPACE_SET_STATE,
	         (struct workspace_with){ .trash = w->row.top, .root_trash = w->row.root_top },
	         gone, w);
}

void wsx_end_trash(struct core *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct workspace_list list = { 0 };
	struct err e = { 0 };

	if (store_workspace_trashed(c->store, core_now_ms() - (int64_t)c->config.keep_trash_ms, &a,
	                            &list, &e) < 0)
		return;
	for (size_t i = 0; i < list.n; i++)
		end_one(c, list.rows[i].id);
	if (list.n > 0 || core_mono_ms() - c->swept_ms >= SWEEP_MS) {
		c->swept_ms = core_mono_ms();
		trees_drop_points(c, POINTS_AT_A_TIME);
	}
}

/* We died between the end of a sandbox and that of what goes with it. */
void wsx_end_orphans(struct core *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct workspace_list list = { 0 };
	struct err e = { 0 };

	if (store_workspace_orphaned(c->store, &a, &list, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, NULL);
	for (size_t i = 0; i < list.n; i++) {
		struct wsx *w = ws_by_id(c, list.rows[i].id);

		if (!w)
			continue;
		wsx_ref(w);
		wsx_discard(w);
	}
}

void wsx_look(struct core *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct workspace_list list = { 0 };
	struct err e = { 0 };
	struct fail f = { 0 };

	if (store_workspace_expired(c->store, core_now_ms(), &a, &list, &e) == 0)
		for (size_t i = 0; i < list.n; i++) {
			struct wsx *w = ws_by_id(c, list.rows[i].id);

			/* One that somebody works with is used. */
			if (w && !w->attached && !w->first && w->refs == 0)
				(void)!wsx_delete(w, true, expired, NULL, &f);
		}
	wsx_end_trash(c);
	gc_look(c);
	flatten_look(c);
}

/* ---- without its files --------------------------------------------------------------- */

struct evict_op {
	struct ws_op op; /* first */
	bool is_lost;    /* they are not there: it begins with its last point */
	struct workspace_with old;
	wsx_done_fn *done;
	void *arg;
};

static void evict_end(struct evict_op *o, const struct fail *f)
{
	struct wsx *w = o->op.w;

	wsx_ref(w);
	o->done(o->arg, w, f);
	ws_end(&o->op);
	wsx_unref(w);
	free(o);
}

static void evict_emptied(void *arg, const struct vault_done *d, const struct err *e)
{
	struct fail f = { 0 };

	(void)d;
	if (e)
		ws_fail(&f, e);
	evict_end(arg, e ? &f : NULL);
}

/* Still within the operation: nobody opens it while its volume goes. */
static void evict_stored(void *arg, const struct fail *f)
{
	struct evict_op *o = arg;
	struct wsx *w = o->op.w;

	if (!f)
		ws_drop_tops(w->core, &o->old);
	if (!f && w->row.disk_bytes > 0)
		ws_remove_volumes(w, evict_emptied, o);
	else
		evict_end(o, f);
}

/* Without files nothing is left to be finished: it is at its head. */
static void evict_run(struct ws_op *op)
{
	struct evict_op *o = (struct evict_op *)op;
	struct wsx *w = op->w;
	struct fail f = { 0 };
	bool is_settled = o->is_lost || (w->row.clean && !w->row.pending);

	if (w->link != WSX_CLOSED || w->attached || !is_settled || w->row.state == WORKSPACE_GONE) {
		fail_set(&f, FAIL_BUSY, "somebody works with it again");
		evict_end(o, &f);
		return;
	}
	uint32_t fields = ws_new_tops(w, w->row.head, ws_root_of(w, w->row.head), &o->old);

	w->row.clean = 1;
	ws_text(&w->pending, NULL, &w->row.pending);
	ws_store(w, fields | WORKSPACE_SET_CLEAN | WORKSPACE_SET_PENDING, o->old, evict_stored, o);
}

static struct evict_op *evict_new(wsx_done_fn *done, void *arg)
{
	struct evict_op *o = mem_alloc(sizeof *o);

	*o = (struct evict_op){ .op = { .run = evict_run }, .done = done, .arg = arg };
	return o;
}

void wsx_begin_again(struct wsx *w, wsx_done_fn *done, void *arg)
{
	struct evict_op *o = evict_new(done, arg);

	o->is_lost = true;
	ws_add(w, &o->op);
}

static void evict_closed(void *arg, struct wsx *w, const struct fail *f)
{
	struct evict_op *o = arg;

	if (!f) {
		ws_add(w, &o->op);
		return;
	}
	o->done(o->arg, w, f);
	free(o);
}

static void evict_kept(void *arg, struct wsx *w, const struct point_row *p, const struct fail *f)
{
	(void)p;
	if (f)
		evict_closed(arg, w, f);
	else
		ws_close_then(w, evict_closed, arg);
}

void wsx_evict(struct wsx *w, wsx_done_fn *done, void *arg)
{
	struct evict_op *o = evict_new(done, arg);

	if (w->link == WSX_CLOSED && w->row.clean)
		ws_add(w, &o->op);
	else
		wsx_point(w, &(struct wsx_point_ask){ .label = "what was left" }, evict_kept, o);
}

/* ---- after a loss of power ----------------------------------------------------------- */

/* The nearest point before it that is on disk. */
static int64_t safe_before(const struct point_list *lost, int64_t num)
{
	for (size_t i = 0; num > 0 && i < lost->n; i++) /* the newest first: once is enough */
		if (lost->rows[i].num == num)
			num = lost->rows[i].before;
	return num;
}

static bool is_lost(const struct point_list *lost, int64_t num)
{
	return safe_before(lost, num) != num;
}

static char *safe_ahead(const struct point_list *lost, const char *text)
{
	json_t *old = json_loads(text, 0, NULL), *kept = json_array(), *v;
	size_t i;

	json_array_foreach(old, i, v)
	{
		if (!is_lost(lost, json_integer_value(v)))
			json_array_append(kept, v);
	}
	char *safe = json_dumps(kept, JSON_COMPACT);
	json_decref(old);
	json_decref(kept);
	return safe;
}

/* What was to be restored, if that is lost: what the disk has of it. NULL: it is not. */
static char *safe_pending(const struct point_list *lost, const char *text)
{
	json_t *j = text ? json_loads(text, 0, NULL) : NULL, *ahead = json_object_get(j, "ahead");
	int64_t to = json_integer_value(json_object_get(j, "to"));
	char *safe = NULL;

	if (is_lost(lost, to)) {
		json_object_set_new(j, "to", json_integer(safe_before(lost, to)));
		json_array_clear(ahead); /* they are about what is lost, or came after it */
		safe = json_dumps(j, JSON_COMPACT);
	}
	json_decref(j);
	return safe;
}

/* Its tree is what the disk has; only its history is shorter than it was. */
int wsx_forget_points(struct core *c, const struct workspace_row *row,
                      const struct point_list *lost, ws_stored_fn *done, void *arg)
{
	int64_t begins = safe_before(lost, row->begins), head = safe_before(lost, row->head),
		origin = safe_before(lost, row->origin);
	AUTO(freep) char *ahead = safe_ahead(lost, row->ahead);
	AUTO(freep) char *pending = safe_pending(lost, row->pending);

	if (begins == row->begins && head == row->head && origin == row->origin && !pending &&
	    strcmp(ahead, row->ahead) == 0)
		return 0;
	struct wsx *w = ws_by_id(c, row->id);
	if (!w)
		return 0;
	journal(JOURNAL_WARN, "points of a workspace were lost", "workspace", row->id, NULL);
	if (head != row->head)
		w->row.clean = 0; /* its files may say more than that point does */
	if (begins != row->begins)
		w->row.root_begins = ws_root_of(w, begins);
	w->row.begins = begins;
	w->row.head = head;
	w->row.origin = origin;
	w->row.rev++;
	ws_text(&w->ahead, ahead, &w->row.ahead);
	if (pending)
		ws_text(&w->pending, pending, &w->row.pending);
	ws_store(w,
	         WORKSPACE_SET_STACK | WORKSPACE_SET_HEAD | WORKSPACE_SET_ORIGIN |
	             WORKSPACE_SET_CLEAN | WORKSPACE_SET_PENDING | WORKSPACE_SET_ROOT,
	         (struct workspace_with){ 0 }, done, arg);
	return 1;
}

/* The newest points of it that are not lost. */
static struct trees_last last_kept(struct core *c, const struct workspace_row *row,
                                   const struct point_list *lost)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct store_page page = { .is_all_tenants = true, .limit = STORE_LIST_MAX };
	struct trees_last last = { 0 };
	struct point_list list;
	struct err e = { 0 };

	if (store_point_list(c->store, row->id, &page, &a, &list, &e) < 0)
		return (struct trees_last){ INT64_MAX - 1, INT64_MAX - 1 }; /* nothing goes */
	for (size_t i = 0; i < list.n; i++) {
		if (is_lost(lost, list.rows[i].num))
			continue;
		last.num = list.rows[i].num > last.num ? list.rows[i].num : last.num;
		last.root = list.rows[i].root > last.root ? list.rows[i].root : last.root;
	}
	return last;
}

/* Another boot than that of the last daemon: what was not on disk then is lost. */
static bool is_new_boot(struct core *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	const char *text = NULL;
	struct err e = { 0 };

	if (store_meta_get(c->store, BOOT_FACT, &a, &text, &e) < 0)
		return false;
	bool is_new = text && strcmp(text, c->boot_id) != 0;

	if (!text || is_new)
		(void)!store_meta_set(c->store, BOOT_FACT, c->boot_id, (struct store_call){ 0 },
		                      &e);
	return is_new;
}

static void recover_points(struct core *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	bool is_rebooted = is_new_boot(c);
	struct workspace_query q = { .page = { .is_all_tenants = true,
		                               .is_oldest_first = true,
		                               .limit = STORE_LIST_MAX },
		                     .states = (1u << WORKSPACE_GONE) - 1 };
	struct workspace_list list;
	struct point_list lost;
	struct err e = { 0 };

	if (store_point_volatile(c->store, c->boot_id, &a, &lost, &e) < 0 ||
	    (lost.n == 0 && !is_rebooted))
		return;
	do {
		if (store_workspace_list(c->store, &q, &a, &list, &e) < 0)
			return;
		for (size_t i = 0; i < list.n; i++) {
			const struct workspace_row *row = &list.rows[i];

			if (!row->clean)
				trees_drop_after(c, row, last_kept(c, row, &lost));
			(void)wsx_forget_points(c, row, &lost, NULL, NULL);
		}
		q.page.cursor = list.next;
	} while (list.next);
	/* Behind what the histories are from now on, in the same queue. */
	for (size_t i = 0; i < lost.n; i++)
		(void)!store_point_cut(c->store, lost.rows[i].num, (struct store_call){ 0 }, &e);
}

/* ---- start and end ------------------------------------------------------------------- */

static void nothing(void *arg, struct wsx *w, const struct point_row *point, const struct fail *f)
{
	(void)arg;
	(void)w;
	(void)point;
	(void)f; /* it is on record in the journal, and tried again by whoever comes next */
}

/* Whoever lives may be in the middle of a restore: the keeper is found, and it is finished. */
static void find_keeper(void *entry, void *arg)
{
	struct wsx *w = entry;

	(void)arg;
	if (w->attached)
		wsx_point(w, &(struct wsx_point_ask){ .label = "a restart of the daemon" }, nothing,
		          NULL);
}

void wsx_recover(struct core *c)
{
	recover_points(c);
	trees_recover(c);
	roster_each(&c->workspaces, find_keeper, NULL);
}

/* A keeper that nobody needs does not stay for its minute. */
static void free_one(void *entry, void *arg)
{
	struct wsx *w = entry;

	(void)arg;
	struct vault **keepers[] = { &w->vault, &w->root };

	for (size_t i = 0; i < COUNT(keepers); i++) {
		if (!w->has_sandboxes)
			vault_dismiss(*keepers[i]);
		else
			vault_close(*keepers[i]);
		*keepers[i] = NULL;
	}
	ws_free(w);
}

void wsx_close_all(struct core *c)
{
	roster_each(&c->workspaces, free_one, NULL);
	roster_done(&c->workspaces);
}
