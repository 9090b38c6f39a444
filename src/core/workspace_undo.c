/*
 * workspace_undo.c - back and forth between points: undo, redo, restore.
 *
 * What is there now is kept first, so nothing is lost by it. Then either the keeper writes the
 * differences back through the mount, while everybody stands still; or, when that is much and
 * nobody is there, the workspace gets another top, which begins with that point: then only the row
 * changes. A row says what is pending before the keeper begins, and it is done again by whoever
 * finds that; done twice it is the same. It says so until the disk has all of it: what was written
 * back, or what a new top began with, may be torn after a loss of power.
 */
#include <jansson.h>

#include "core/notes.h"
#include "core/trees.h"
#include "core/workspace-internal.h"
#include "io/journal.h"

#define LEASE_MS 60000
#define LARGE_FILES 500 /* about 0.1 s of standing still */
#define STEPS_MAX 10000

struct restore_op {
	struct ws_op op; /* first */
	struct ws_kept kept;
	enum wsx_way way;
	uint64_t steps;
	char *name;
	bool may_end, has_ended;
	bool is_applying; /* the row says so: whoever opens the workspace next does it */
	size_t n_stopping;
	struct arena arena;
	struct point_row target; /* num 0: no change at all */
	json_t *ahead;
	int64_t now, root_now;     /* the numbers of what is there */
	struct workspace_with old; /* tops that give way */
	uint64_t n_differ;
	uint64_t n_known; /* files of the points on the way: a folder that goes is one entry, not
	                     one file */
	struct wsx_restored result;
	struct fail why; /* it is being taken back */
	wsx_restored_fn *done;
	void *arg;
};

static void op_free(struct restore_op *o)
{
	json_decref(o->ahead);
	arena_done(&o->arena);
	free(o->name);
	free(o);
}

static void restore_end(struct restore_op *o, const struct fail *f)
{
	struct wsx *w = o->op.w;

	wsx_ref(w);
	ws_thaw(w);
	if (!f)
		note_workspace(w, LEDGER_WORKSPACE_MOVED, NULL,
		               json_pack("{sI,sI,sI}", "from", (json_int_t)o->result.from, "to",
		                         (json_int_t)o->result.to, "files",
		                         (json_int_t)o->result.files));
	o->done(o->arg, w, f ? NULL : &o->result, f);
	ws_end(&o->op);
	wsx_unref(w);
	op_free(o);
}

static void restore_failed(struct ws_op *op, const struct fail *f)
{
	struct restore_op *o = (struct restore_op *)op;
	struct fail copy = *f;

	copy.is_retry_safe &= !o->is_applying; /* it will be done */
	o->done(o->arg, op->w, NULL, &copy);
	op_free(o);
}

static void restore_drop(struct ws_op *op)
{
	op_free((struct restore_op *)op);
}

/* ---- where to ------------------------------------------------------------------------ */

static void push(json_t *list, int64_t num)
{
	json_array_append_new(list, json_integer(num));
}

/* The next to be done again is the last of the list. */
static int plan_undo(struct restore_op *o, struct fail *f)
{
	struct wsx *w = o->op.w;
	struct point_list chain;
	struct err e = { 0 };
	size_t steps = o->steps ? (size_t)o->steps : 1, i = 0;
	size_t most = o->name || steps > STEPS_MAX ? STEPS_MAX : steps;

	if (store_point_chain(w->core->store, w->row.head, most, &o->arena, &chain, &e) < 0)
		return fail_err(f, &e);
	if (o->name) {
		while (i < chain.n &&
		       (!chain.rows[i].process || strcmp(chain.rows[i].process, o->name) != 0))
			i++;
		if (i == chain.n)
			return fail_set(f, FAIL_NOT_FOUND,
			                "%.64s changed nothing, or was undone already", o->name);
		steps = i + 1;
	}
	if (chain.n == 0)
		return fail_set(f, FAIL_CONFLICT, "there is nothing to undo");
	if (steps > chain.n)
		return fail_set(f, FAIL_CONFLICT, "there are only %zu steps to undo", chain.n);
	if (o->now != w->row.head)
		push(o->ahead, o->now);
	for (i = 0; i < steps; i++) {
		push(o->ahead, chain.rows[i].num);
		o->n_known += (uint64_t)chain.rows[i].files;
	}
	o->target.num = chain.rows[steps - 1].before;
	return 0;
}

static int plan_redo(struct restore_op *o, struct fail *f)
{
	size_t n = json_array_size(o->ahead), steps = o->steps ? (size_t)o->steps : 1;

	if (n == 0)
		return fail_set(f, FAIL_CONFLICT, "there is nothing to redo");
	if (steps > n)
		return fail_set(f, FAIL_CONFLICT, "there are only %zu steps to redo", n);
	o->target.num = json_integer_value(json_array_get(o->ahead, n - steps));
	for (size_t i = 0; i < steps; i++) {
		json_t *last = json_array_get(o->ahead, json_array_size(o->ahead) - 1);
		struct point_row row;
		struct err e = { 0 };

		if (store_point_by_num(o->op.w->core->store, json_integer_value(last), &o->arena,
		                       &row, &e) == 0)
			o->n_known += (uint64_t)row.files;
		json_array_remove(o->ahead, json_array_size(o->ahead) - 1);
	}
	return 0;
}

static int plan_restore(struct restore_op *o, struct fail *f)
{
	if (wsx_point_find(o->op.w, o->name, &o->arena, &o->target, f) < 0)
		return -1;
	json_array_clear(o->ahead);
	push(o->ahead, o->now);
	return 0;
}

/* A point of another workspace may have another image below its root. */
static int plan_root(struct restore_op *o, struct fail *f)
{
	struct wsx *w = o->op.w;
	struct workspace_row other;
	struct err e = { 0 };

	if (!w->row.root_num)
		o->target.root = 0;
	if (o->target.root == 0 || strcmp(o->target.workspace, w->row.id) == 0)
		return 0;
	if (store_workspace_by_id(w->core->store, o->target.workspace, &o->arena, &other, &e) < 0)
		return fail_err(f, &e);
	if (other.root_tree != w->row.root_tree)
		return fail_set(f, FAIL_CONFLICT, "the root of that point is of image %.128s",
		                other.root_image ? other.root_image : "?");
	return 0;
}

static int plan(struct restore_op *o, struct fail *f)
{
	static int (*const plans[])(struct restore_op *, struct fail *) = {
		[WSX_UNDO] = plan_undo, [WSX_REDO] = plan_redo, [WSX_RESTORE] = plan_restore
	};
	struct wsx *w = o->op.w;
	struct err e = { 0 };

	json_decref(o->ahead);
	o->ahead = json_loads(w->row.ahead, 0, NULL);
	if (plans[o->way](o, f) < 0)
		return -1;
	if (o->target.num == 0)
		o->target.stack = w->row.stack;
	else if (!o->target.stack &&
	         store_point_by_num(w->core->store, o->target.num, &o->arena, &o->target, &e) < 0)
		return fail_err(f, &e);
	o->result.from = w->row.head;
	o->result.to = o->target.num;
	return plan_root(o, f);
}

/* ---- the row ------------------------------------------------------------------------- */

/* Where it goes; back to where it was when that cannot be had. */
static char *pending_text(const struct restore_op *o, bool is_back, bool is_applied)
{
	int64_t to = is_back ? o->now : o->target.num;
	int64_t root_to = is_back ? o->root_now : o->target.root;
	json_t *j =
	    json_pack("{sI,sI,sI,sI,sO,sb,ss}", "to", (json_int_t)to, "now", (json_int_t)o->now,
	              "root_to", (json_int_t)root_to, "root_now", (json_int_t)o->root_now, "ahead",
	              o->ahead, "applied", is_applied, "boot", o->op.w->core->boot_id);
	char *text = json_dumps(j, JSON_COMPACT);

	json_decref(j);
	return text;
}

char *ws_unsynced_text(const struct core *c)
{
	json_t *j = json_pack("{sb,ss}", "applied", true, "boot", c->boot_id);
	char *text = json_dumps(j, JSON_COMPACT);

	json_decref(j);
	return text;
}

static void set_pending(struct wsx *w, const char *text)
{
	ws_text(&w->pending, text, &w->row.pending);
}

static void move_head(struct wsx *w, int64_t to, const json_t *ahead)
{
	char *text = json_dumps(ahead, JSON_COMPACT);

	w->row.head = to;
	w->row.rev++;
	ws_text(&w->ahead, text, &w->row.ahead);
	free(text);
}

/* ---- in place ------------------------------------------------------------------------ */

static struct vault_packet restore_packet(int64_t to, int64_t now, uint32_t flags)
{
	return (struct vault_packet){
		.head.type = V_RESTORE,
		.restore = { .to = (uint64_t)to, .now = (uint64_t)now, .flags = flags }
	};
}

static void applied_stored(void *arg, const struct fail *f)
{
	struct restore_op *o = arg;

	if (!f)
		ws_sync_soon(o->op.w, o->now);
	restore_end(o, f);
}

/* Half of it is done, and the row says that all of it will be: nobody may go on with that. Whoever
 * opens it next has to finish it first. */
static void abandon(struct wsx *w, const char *why)
{
	journal(JOURNAL_ERROR, "a restore is neither done nor taken back", "workspace", w->row.id,
	        "reason", why, NULL);
	vault_close(w->vault);
	vault_close(w->root);
	w->vault = w->root = NULL;
	w->link = WSX_CLOSED;
	ws_end_sandboxes(w);
}

static void taken_back_stored(void *arg, const struct fail *f)
{
	struct restore_op *o = arg;

	if (f)
		abandon(o->op.w, f->detail);
	restore_end(o, &o->why);
}

static void taken_back(void *arg, const struct vault_done *d, const struct err *e)
{
	struct restore_op *o = arg;
	struct wsx *w = o->op.w;

	(void)d;
	if (e) {
		if (w->vault)
			abandon(w, e->msg);
		restore_end(o, &o->why);
		return;
	}
	char *text = pending_text(o, true, true);
	set_pending(w, text);
	free(text);
	w->row.head = o->now;
	w->row.rev++;
	ws_store(w, WORKSPACE_SET_HEAD | WORKSPACE_SET_PENDING, (struct workspace_with){ 0 },
	         taken_back_stored, o);
}

/* The disk is full, say. If the keeper died it is still pending: done by whoever opens it next. */
static void take_back(struct restore_op *o, const struct err *e)
{
	struct wsx *w = o->op.w;
	struct vault_packet p = restore_packet(o->now, 0, 0);
	struct vault_packet root = restore_packet(o->root_now, 0, 0);

	ws_fail(&o->why, e);
	o->why.is_retry_safe = false;
	if (w->vault && vault_is_there(w->vault))
		ws_ask_both(w, &p, &root, taken_back, o);
	else
		restore_end(o, &o->why);
}

static void applied(void *arg, const struct vault_done *d, const struct err *e)
{
	struct restore_op *o = arg;
	struct wsx *w = o->op.w;

	if (e && ws_again(w, e))
		return;
	if (e) {
		take_back(o, e);
		return;
	}
	o->result.files = d->files;
	char *text = pending_text(o, false, true);
	set_pending(w, text);
	free(text);
	move_head(w, o->target.num, o->ahead);
	ws_store(w, WORKSPACE_SET_HEAD | WORKSPACE_SET_PENDING, (struct workspace_with){ 0 },
	         applied_stored, o);
}

static void apply(void *arg, const struct fail *f)
{
	struct restore_op *o = arg;
	struct vault_packet p = restore_packet(o->target.num, o->now, VAULT_STILL);
	struct vault_packet root = restore_packet(o->target.root, o->root_now, VAULT_STILL);

	o->is_applying = !f;
	if (f)
		restore_end(o, f);
	else
		ws_ask_both(o->op.w, &p, &root, applied, o);
}

static void in_place(struct restore_op *o)
{
	struct wsx *w = o->op.w;
	char *text = pending_text(o, false, false);
	struct workspace_with with = { .point = o->kept.row.num ? &o->kept.row : NULL };

	set_pending(w, text);
	free(text);
	ws_store_durably(w, WORKSPACE_SET_PENDING, with, apply, o);
}

/* ---- another top --------------------------------------------------------------------- */

static void swapped(void *arg, const struct fail *f)
{
	struct restore_op *o = arg;
	struct wsx *w = o->op.w;

	if (!f)
		ws_drop_tops(w->core, &o->old);
	restore_end(o, f);
}

/* The keeper is gone, and nobody has the mount: the next one makes what the row says. */
static void swap(void *arg, const struct fail *f)
{
	struct restore_op *o = arg;
	struct wsx *w = o->op.w;

	if (f) {
		restore_end(o, f);
		return;
	}
	o->old = (struct workspace_with){ .point = o->kept.row.num ? &o->kept.row : NULL };
	uint32_t fields = ws_new_tops(w, o->target.num, o->target.root, &o->old);

	w->row.clean = 1;
	ws_text(&w->stack, o->target.stack, &w->row.stack);
	move_head(w, o->target.num, o->ahead);
	char *text = ws_unsynced_text(w->core);
	set_pending(w, text);
	free(text);
	ws_store(w, fields | WORKSPACE_SET_HEAD | WORKSPACE_SET_CLEAN | WORKSPACE_SET_PENDING,
	         o->old, swapped, o);
}

/* ---- who is in the way --------------------------------------------------------------- */

static void restore_run(struct ws_op *op);

static void stopped(void *arg, struct sbx *s, const struct fail *f)
{
	struct restore_op *o = arg;

	(void)s;
	(void)f; /* one that is lost does not run either */
	if (--o->n_stopping == 0)
		restore_run(&o->op);
}

/* What they did until now is kept anew. */
static void end_processes(struct restore_op *o)
{
	struct wsx *w = o->op.w;
	struct sbx *next;
	struct fail f = { 0 };

	o->has_ended = true;
	ws_thaw(w);
	o->n_stopping = 1;
	for (struct sbx *s = w->attached; s; s = next) {
		next = s->next_attached;
		if (!s->is_service && s->processes) {
			o->n_stopping++;
			if (sbx_stop(s, stopped, o, &f) < 0)
				o->n_stopping--;
		}
	}
	stopped(o, NULL, NULL);
}

static bool has_others(const struct wsx *w)
{
	for (const struct sbx *s = w->attached; s; s = s->next_attached)
		if (!s->is_service)
			return true;
	return false;
}

/* How many differ is known. */
static void decide(struct restore_op *o)
{
	struct wsx *w = o->op.w;
	AUTO(str_done) struct str names = { .max = 256 };
	bool is_other = strcmp(o->target.stack, w->row.stack) != 0;
	struct fail f = { 0 };
	uint64_t files = o->n_differ > o->n_known ? o->n_differ : o->n_known;
	bool is_large = files > LARGE_FILES || is_other;

	o->result.files = files;
	if (is_large && !has_others(w)) {
		ws_thaw(w);
		ws_shut(w, false, swap, o);
	} else if (is_large && ws_has_processes(w, &names)) {
		if (o->may_end && !o->has_ended) {
			end_processes(o);
			return;
		}
		fail_set(&f, FAIL_BUSY, "%llu files differ, and processes are at work: %s",
		         (unsigned long long)files, str_text(&names));
		restore_end(o, &f);
	} else if (is_other) {
		fail_set(&f, FAIL_BUSY, "its layers are others; sandboxes have the present ones");
		restore_end(o, &f);
	} else {
		in_place(o);
	}
}

static void counted_root(void *arg, const struct vault_done *d, const struct err *e)
{
	struct restore_op *o = arg;
	struct fail f = { 0 };

	if (e && ws_again(o->op.w, e))
		return;
	const struct sbx *s = e || d->files == 0 ? NULL : ws_root_user(o->op.w, o->target.root);
	if (e)
		ws_fail(&f, e);
	else if (s)
		fail_set(&f, FAIL_BUSY,
		         "the root then was not yet that of sandbox %s: remove it first", s->id);
	if (f.code != FAIL_NONE) {
		restore_end(o, &f);
		return;
	}
	o->n_differ += d->files;
	decide(o);
}

static void counted(void *arg, const struct vault_done *d, const struct err *e)
{
	struct restore_op *o = arg;
	struct wsx *w = o->op.w;
	struct vault_packet p =
	    restore_packet(o->target.root, o->root_now, VAULT_COUNT | VAULT_STILL);
	struct fail f = { 0 };

	if (e && ws_again(w, e))
		return;
	if (e) {
		ws_fail(&f, e);
		restore_end(o, &f);
		return;
	}
	o->n_differ = d->files;
	if (w->row.root_num)
		ws_ask_root(w, &p, -1, counted_root, o);
	else
		decide(o);
}

/* How much it is; across layers nobody can say, and what is known to be much is. */
static void count(struct restore_op *o)
{
	struct wsx *w = o->op.w;
	bool is_other = strcmp(o->target.stack, w->row.stack) != 0;
	struct vault_packet p = restore_packet(o->target.num, o->now, VAULT_COUNT | VAULT_STILL);

	if (is_other || o->n_known > LARGE_FILES)
		counted(o, &(struct vault_done){ 0 }, NULL);
	else
		ws_ask(w, &p, -1, counted, o);
}

/* ---- the operation ------------------------------------------------------------------- */

static void present_kept(void *arg, struct ws_kept *k, const struct fail *f)
{
	struct restore_op *o = arg;
	struct fail bad = { 0 };

	if (f) {
		restore_end(o, f);
		return;
	}
	o->now = k->row.num ? k->row.num : o->op.w->row.head;
	o->root_now = k->row.num ? k->row.root : ws_root_of(o->op.w, o->now);
	if (plan(o, &bad) < 0)
		restore_end(o, &bad);
	else
		count(o);
}

static void restore_frozen(struct wsx *w, int error)
{
	static const struct wsx_point_ask ask = { .kind = POINT_UNDO };
	struct restore_op *o = (struct restore_op *)w->first;
	struct fail f = { 0 };

	if (error) {
		fail_set(&f, FAIL_BUSY, "its processes cannot be stopped for a moment: %s",
		         strerror(error));
		restore_end(o, &f);
		return;
	}
	ws_keep(&o->kept, w, &ask);
}

static void restore_run(struct ws_op *op)
{
	struct restore_op *o = (struct restore_op *)op;
	struct wsx *w = op->w;
	struct fail f = { 0 };

	if (o->is_applying) { /* it was pending, and was done when the next keeper came */
		restore_end(o, NULL);
		return;
	}
	o->kept = (struct ws_kept){ .done = present_kept, .arg = o };
	o->target = (struct point_row){ 0 };
	o->n_known = 0;
	if (w->link == WSX_OPEN && ws_is_at_head(w)) {
		present_kept(o, &o->kept, NULL);
		return;
	}
	if (w->link == WSX_OPEN) {
		ws_freeze(w, LEASE_MS, restore_frozen);
		return;
	}
	o->now = w->row.head; /* it is closed, and at its head */
	if (plan(o, &f) < 0) {
		restore_end(o, &f);
		return;
	}
	o->result.files = o->n_known;
	swap(o, NULL);
}

void wsx_restore(struct wsx *w, const struct wsx_restore *ask, wsx_restored_fn *done, void *arg)
{
	struct restore_op *o = mem_alloc(sizeof *o);
	bool is_open = w->link != WSX_CLOSED || !w->row.clean || w->first;

	*o = (struct restore_op){ .op = { .run = restore_run,
		                          .fail = restore_failed,
		                          .drop = restore_drop,
		                          .needs_vault = is_open },
		                  .way = ask->way,
		                  .steps = ask->steps,
		                  .may_end = ask->may_end,
		                  .name = ask->to ? mem_strdup(ask->to) : NULL,
		                  .done = done,
		                  .arg = arg };
	ws_add(w, &o->op);
}

/* ---- what a dead daemon, or a dead host, left ----------------------------------------- */

static bool is_applied(const json_t *pending)
{
	return json_is_true(json_object_get(pending, "applied"));
}

struct redo_op {
	struct wsx *w;
	json_t *pending;
	ws_stored_fn *done;
	void *arg;
};

static void redone_stored(void *arg, const struct fail *f)
{
	struct redo_op *o = arg;

	json_decref(o->pending);
	o->done(o->arg, f);
	free(o);
}

static void redone(void *arg, const struct vault_done *d, const struct err *e)
{
	struct redo_op *o = arg;
	struct wsx *w = o->w;
	struct fail f = { 0 };

	(void)d;
	if (e) {
		ws_fail(&f, e);
		redone_stored(o, &f);
		return;
	}
	if (!is_applied(o->pending))
		move_head(w, json_integer_value(json_object_get(o->pending, "to")),
		          json_object_get(o->pending, "ahead"));
	char *text = ws_unsynced_text(w->core);
	set_pending(w, text);
	free(text);
	ws_sync_soon(w, w->row.head);
	ws_store(w, WORKSPACE_SET_HEAD | WORKSPACE_SET_PENDING, (struct workspace_with){ 0 },
	         redone_stored, o);
}

static int64_t number_in(const json_t *pending, const char *key)
{
	return json_integer_value(json_object_get(pending, key));
}

void ws_redo_pending(struct wsx *w, ws_stored_fn *done, void *arg)
{
	struct redo_op *o = mem_alloc(sizeof *o);
	json_t *pending = json_loads(w->row.pending, 0, NULL);
	const char *boot = json_string_value(json_object_get(pending, "boot"));

	*o = (struct redo_op){ w, pending, done, arg };
	/* Applied, and the host has not lost its power since: it is as it was said to be. */
	if (is_applied(pending) && boot && strcmp(boot, w->core->boot_id) == 0) {
		ws_sync_soon(w, w->row.head);
		redone_stored(o, NULL);
		return;
	}
	/* What was applied may have points behind it by now that the disk has. */
	int64_t to = is_applied(pending) ? w->row.head : number_in(pending, "to");
	struct vault_packet p = restore_packet(to, number_in(pending, "now"), 0);
	struct vault_packet root =
	    restore_packet(ws_root_of(w, to), number_in(pending, "root_now"), 0);
	ws_ask_both(w, &p, &root, redone, o);
}

bool ws_is_cut_short(const struct workspace_row *row)
{
	json_t *pending = row->pending ? json_loads(row->pending, 0, NULL) : NULL;
	bool is_done = !row->pending || is_applied(pending);

	json_decref(pending);
	return !is_done;
}

/* All of it is on disk: also what was restored. */
void ws_forget_pending(struct wsx *w)
{
	json_t *pending = w->row.pending ? json_loads(w->row.pending, 0, NULL) : NULL;
	bool is_done = is_applied(pending);

	json_decref(pending);
	if (!is_done)
		return;
	set_pending(w, NULL);
	ws_store(w, WORKSPACE_SET_PENDING, (struct workspace_with){ 0 }, NULL, NULL);
}

size_t wsx_steps_ahead(const struct wsx *w)
{
	json_t *ahead = json_loads(w->row.ahead, 0, NULL);
	size_t n = json_array_size(ahead);

	json_decref(ahead);
	return n;
}
