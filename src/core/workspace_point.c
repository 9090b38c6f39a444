/*
 * workspace_point.c - what a workspace is at some moment, kept.
 *
 * Everybody who has the mount stands still while the keeper copies what changed since the last
 * point: so it is one moment. Then they go on, and the row is written; later the disk has it too.
 */
#include <jansson.h>

#include "core/changed.h"
#include "core/files.h"
#include "core/notes.h"
#include "core/process.h"
#include "core/trees.h"
#include "core/workspace-internal.h"
#include "io/journal.h"

#define LEASE_MS 5000 /* for a point: without another word of ours everybody goes on then */
#define SYNC_MS 300   /* after the last point; the disk has many of them at once */

/* ---- stand still --------------------------------------------------------------------- */

/* Also who is paused: he could go on meanwhile. Ours, with nothing to do: it writes nothing. */
static bool must_freeze(const struct sbx *s)
{
	bool can = s->is_one_shot ? s->link.watch.fd >= 0 : s->link.is_ready;
	bool is_there = s->state == SANDBOX_RUNNING || s->state == SANDBOX_PAUSED;

	return can && is_there && !(s->is_service && files_are_idle(s));
}

static void freeze_done(struct wsx *w)
{
	void (*done)(struct wsx *, int) = w->freeze.done;

	w->freeze.done = NULL;
	if (w->freeze.error)
		ws_thaw(w);
	else
		timer_set(&w->core->timers, &w->freeze.again, w->freeze.lease_ms / 3);
	done(w, w->freeze.error);
}

void ws_freeze_again(struct timer *t)
{
	struct wsx *w = (struct wsx *)(void *)((char *)t - offsetof(struct wsx, freeze.again));

	for (struct sbx *s = w->attached; s; s = s->next_attached)
		if (s->hold == SBX_HOLD_FROZEN)
			(void)link_hold(&s->link, w->freeze.lease_ms); /* or it is lost */
	timer_set(&w->core->timers, t, w->freeze.lease_ms / 3);
}

void ws_freeze(struct wsx *w, uint32_t lease_ms, void (*done)(struct wsx *w, int error))
{
	w->freeze.n_waiting = 0;
	w->freeze.error = 0;
	w->freeze.done = done;
	w->freeze.lease_ms = lease_ms;
	for (struct sbx *s = w->attached; s; s = s->next_attached) {
		if (!must_freeze(s) || link_hold(&s->link, lease_ms) < 0)
			continue; /* who cannot be told is about to be lost */
		s->hold = SBX_HOLD_ASKED;
		w->freeze.n_waiting++;
	}
	if (w->freeze.n_waiting == 0)
		freeze_done(w);
}

/* It stands, it cannot, or it is no more. */
static void one_less(struct wsx *w, int error)
{
	w->freeze.error = error ? error : w->freeze.error;
	if (--w->freeze.n_waiting == 0 && w->freeze.done)
		freeze_done(w);
}

void wsx_on_frozen(struct sbx *s, int error)
{
	s->hold = error ? SBX_HOLD_NONE : SBX_HOLD_FROZEN;
	one_less(s->workspace, error);
}

void ws_thaw(struct wsx *w)
{
	timer_stop(&w->core->timers, &w->freeze.again);
	for (struct sbx *s = w->attached; s; s = s->next_attached) {
		if (s->hold == SBX_HOLD_FROZEN)
			(void)link_send(&s->link, CH_RELEASE, 0, NULL, 0); /* or it is lost */
		s->hold = SBX_HOLD_NONE;
	}
}

void wsx_detach(struct sbx *s)
{
	struct wsx *w = s->workspace;
	bool was_waited_for = s->hold == SBX_HOLD_ASKED;

	ws_forget_attach(s->attaching);
	s->attaching = NULL;
	if (!w || !s->is_attached)
		return;
	for (struct sbx **at = &w->attached; *at; at = &(*at)->next_attached) {
		if (*at == s) {
			*at = s->next_attached;
			break;
		}
	}
	s->is_attached = false;
	s->hold = SBX_HOLD_NONE;
	if (w->service == s)
		w->service = NULL;
	if (w->core->is_closing) { /* it lives on without us */
		w->has_sandboxes |= !s->is_service;
		return;
	}
	if (was_waited_for)
		one_less(w, 0);
	if (w->link == WSX_OPEN && !s->is_service) /* what it did before it died is a point too */
		wsx_point(w, &(struct wsx_point_ask){ .label = "the end of a sandbox" }, NULL,
		          NULL);
	else
		ws_pump(w); /* who waited for it to go */
}

bool ws_has_users(const struct wsx *w)
{
	for (const struct sbx *s = w->attached; s; s = s->next_attached)
		if (s != w->service || !files_are_idle(s))
			return true;
	return false;
}

bool ws_is_at_head(const struct wsx *w)
{
	return w->is_kept && !ws_has_users(w);
}

/* Who is at work, for a sentence. */
bool ws_has_processes(const struct wsx *w, struct str *names)
{
	bool is_any = false;

	for (const struct sbx *s = w->attached; s; s = s->next_attached)
		for (const struct px *p = s->processes; p; p = p->next) {
			if (p->has_end)
				continue;
			str_addf(names, "%s%s %.64s", is_any ? ", " : "", p->id, p->argv);
			is_any = true;
		}
	return is_any;
}

/* ---- keep ---------------------------------------------------------------------------- */

static void kept_all(struct ws_kept *k, const struct err *e)
{
	struct fail f = { 0 };

	if (e && ws_again(k->w, e))
		return;
	if (e)
		ws_fail(&f, e);
	if (!e && k->row.files == 0)
		k->row.num = 0;
	k->done(k->arg, k, e ? &f : NULL);
}

static void kept_again(void *arg, const struct vault_done *d, const struct err *e)
{
	(void)d;
	kept_all(arg, e);
}

static void keep_files(struct ws_kept *k, uint32_t flags, vault_done_fn *done)
{
	struct vault_packet p = { .head.type = V_CHECKPOINT,
		                  .point = { .number = (uint64_t)k->row.num,
		                             .before = (uint64_t)k->row.before,
		                             .flags = flags } };

	ws_ask(k->w, &p, -1, done, k);
}

static void kept_root(void *arg, const struct vault_done *d, const struct err *e)
{
	struct ws_kept *k = arg;
	bool is_root_only = !e && k->row.files == 0 && d->files > 0;

	if (!e) {
		k->root_files = (int64_t)d->files;
		k->row.files += (int64_t)d->files;
		k->row.bytes += (int64_t)d->bytes;
	}
	if (is_root_only)
		keep_files(k, VAULT_ALWAYS, kept_again);
	else
		kept_all(k, e);
}

/* Where there is a root, a point is one of both, whichever has changed. */
static void kept_files(void *arg, const struct vault_done *d, const struct err *e)
{
	struct ws_kept *k = arg;
	struct wsx *w = k->w;
	struct vault_packet p = { .head.type = V_CHECKPOINT };

	if (!e) {
		k->row.files = (int64_t)d->files;
		k->row.bytes = (int64_t)d->bytes;
	}
	if (e || !w->row.root_num) {
		kept_all(k, e);
		return;
	}
	k->row.root = (int64_t)trees_number(w->core);
	p.point = (struct vault_point){ .number = (uint64_t)k->row.root,
		                        .before = (uint64_t)ws_root_of(w, k->row.before),
		                        .flags = d->files > 0 ? VAULT_ALWAYS : 0 };
	ws_ask_root(w, &p, -1, kept_root, k);
}

void ws_keep(struct ws_kept *k, struct wsx *w, const struct wsx_point_ask *ask)
{
	id_make(k->id, ask->kind == POINT_SNAPSHOT ? "sn" : "cp");
	k->w = w;
	k->row = (struct point_row){ .id = k->id,
		                     .tenant = w->row.tenant,
		                     .workspace = w->row.id,
		                     .num = (int64_t)trees_number(w->core),
		                     .before = w->row.head,
		                     .stack = w->row.stack,
		                     .kind = ask->kind,
		                     .label = ask->label,
		                     .process = ask->process,
		                     .created_ms = core_now_ms(),
		                     .boot_id = w->core->boot_id };
	keep_files(k, 0, kept_files);
}

/* ---- on disk ------------------------------------------------------------------------- */

#define NO_POINT (-1) /* what there is without one */

struct harden {
	struct wsx *w;
	int64_t num;
	ws_stored_fn *done;
	void *arg;
};

static void hardened(void *arg, const struct store_answer *a)
{
	struct harden h = *(struct harden *)arg;
	struct fail f = { 0 };

	free(arg);
	h.w->n_hardening--;
	if (a->code != STORE_OK)
		fail_set(&f, FAIL_BACKEND_ERROR, "the point could not be recorded as durable");
	else if (h.num > h.w->hard_num)
		h.w->hard_num = h.num;
	if (h.done)
		h.done(h.arg, a->code == STORE_OK ? NULL : &f);
	wsx_unref(h.w);
}

int ws_harden(struct wsx *w, int64_t num, ws_stored_fn *done, void *arg, struct err *e)
{
	struct harden *h = mem_alloc(sizeof *h);

	*h = (struct harden){ w, num, done, arg };
	wsx_ref(w);
	w->n_hardening++;
	if (store_point_durable(
		w->core->store, w->row.id, num,
		(struct store_call){ .done = hardened, .arg = h, .is_durable = true }, e) == 0)
		return 0;
	w->n_hardening--;
	wsx_unref(w);
	free(h);
	return -1;
}

bool wsx_is_durable(const struct wsx *w, const struct point_row *row)
{
	return row->durable && (w->n_hardening == 0 || row->num <= w->hard_num);
}

struct sync_op {
	struct wsx *w;
	int64_t num;
};

static void synced(void *arg, const struct vault_done *d, const struct err *e)
{
	struct sync_op *s = arg;
	struct wsx *w = s->w;
	struct err full = { 0 };

	(void)d;
	if (e)
		journal(JOURNAL_WARN, e->msg, "workspace", w->row.id, NULL);
	else if ((s->num == NO_POINT || ws_harden(w, s->num, NULL, NULL, &full) == 0) &&
	         w->unsynced == s->num) {
		w->unsynced = 0;
		ws_forget_pending(w);
	}
	free(s);
	wsx_unref(w);
}

void ws_sync_fired(struct timer *t)
{
	struct wsx *w = (struct wsx *)(void *)((char *)t - offsetof(struct wsx, sync));
	struct vault_packet p = { .head.type = V_SYNC };

	if (w->unsynced == 0 || w->link != WSX_OPEN)
		return; /* the close of it does the same */
	struct sync_op *s = mem_alloc(sizeof *s);
	*s = (struct sync_op){ w, w->unsynced };
	wsx_ref(w);
	ws_ask_both(w, &p, &p, synced, s);
}

void ws_sync_soon(struct wsx *w, int64_t num)
{
	w->unsynced = num > 0 ? num : NO_POINT;
	timer_set(&w->core->timers, &w->sync, SYNC_MS);
}

/* ---- a point ------------------------------------------------------------------------- */

struct point_op {
	struct ws_op op; /* first */
	struct ws_kept kept;
	struct wsx_point_ask ask;
	char *label, *process;
	bool is_recorded, is_finding;
	wsx_point_fn *done;
	void *arg;
};

static void point_drop(struct ws_op *op)
{
	struct point_op *o = (struct point_op *)op;

	free(o->label);
	free(o->process);
	free(o);
}

static void point_end(struct point_op *o, const struct fail *f)
{
	struct wsx *w = o->op.w;
	struct point_row none = { .id = "" };

	wsx_ref(w);
	w->is_finding &= !o->is_finding;
	if (o->done)
		o->done(o->arg, w, f || o->kept.row.id == NULL ? &none : &o->kept.row, f);
	else if (f)
		journal(JOURNAL_WARN, f->detail, "workspace", w->row.id, NULL);
	ws_end(&o->op);
	wsx_unref(w);
	point_drop(&o->op);
}

static void point_failed(struct ws_op *op, const struct fail *f)
{
	struct point_op *o = (struct point_op *)op;

	op->w->is_finding &= !o->is_finding;
	if (o->done)
		o->done(o->arg, op->w, &(struct point_row){ .id = "" }, f);
	point_drop(op);
}

static void point_hardened(void *arg, const struct fail *f)
{
	struct point_op *o = arg;
	struct fail copy = f ? *f : (struct fail){ 0 };

	o->kept.row.durable = !f;
	point_end(o, f ? &copy : NULL);
}

static void point_synced(void *arg, const struct vault_done *d, const struct err *e)
{
	struct point_op *o = arg;
	struct wsx *w = o->op.w;
	struct fail f = { 0 };
	struct err full = { 0 };

	(void)d;
	if (e && ws_again(w, e))
		return;
	if (e)
		ws_fail(&f, e);
	else if (ws_harden(w, o->kept.row.num, point_hardened, o, &full) == 0)
		return;
	else
		fail_err(&f, &full);
	f.is_retry_safe = false; /* it is made */
	point_end(o, &f);
}

static void put_on_record(const struct point_op *o)
{
	const struct point_row *row = &o->kept.row;

	note_workspace(o->op.w, LEDGER_WORKSPACE_CHANGED, o->process,
	               json_pack("{ss,sI,sI,sI,ss?}", "point", row->id, "at", (json_int_t)row->num,
	                         "before", (json_int_t)row->before, "files", (json_int_t)row->files,
	                         "label", o->label));
	if (row->files > o->kept.root_files)
		changed_note(o->op.w, row, o->process);
}

static void point_stored(void *arg, const struct fail *f)
{
	struct point_op *o = arg;
	struct vault_packet p = { .head.type = V_SYNC };

	if (f) {
		point_end(o, f);
		return;
	}
	if (!o->is_recorded)
		put_on_record(o);
	o->is_recorded = true;
	if (o->kept.row.num > 0)
		ws_sync_soon(o->op.w, o->kept.row.num);
	if (o->ask.kind == POINT_SNAPSHOT && o->op.w->link == WSX_OPEN)
		ws_ask_both(o->op.w, &p, &p, point_synced, o);
	else
		point_end(o, NULL);
}

/* A snapshot of what is known already has its own name, and the number of that. */
static bool is_alias(struct point_op *o)
{
	struct wsx *w = o->op.w;

	if (o->ask.kind != POINT_SNAPSHOT)
		return false;
	o->kept.row.num = w->row.head;
	o->kept.row.before = o->kept.row.root = 0;
	o->kept.row.files = 0;
	if (w->row.head > 0) {
		AUTO(arena_done) struct arena a = { 0 };
		struct point_row old;
		struct err e = { 0 };

		if (store_point_by_num(w->core->store, w->row.head, &a, &old, &e) == 0) {
			o->kept.row.before = old.before;
			o->kept.row.root = ws_root_of(w, w->row.head);
		}
	}
	return true;
}

static void point_record(struct point_op *o)
{
	struct wsx *w = o->op.w;
	struct workspace_with with = { .point = &o->kept.row };
	uint32_t fields = WORKSPACE_SET_HEAD;
	struct fail f = { 0 };

	if (o->kept.row.num == 0 && o->ask.kind == POINT_SNAPSHOT && w->row.head == 0) {
		fail_set(&f, FAIL_CONFLICT, "nothing has changed yet: it is what \"base\" names");
		point_end(o, &f);
		return;
	}
	if (o->kept.row.num == 0 && !is_alias(o)) {
		o->kept.row.id = NULL;
		point_end(o, NULL);
		return;
	}
	if (o->ask.is_start && w->row.head == w->row.origin &&
	    o->kept.row.files == o->kept.root_files) {
		w->row.origin = o->kept.row.num; /* nobody has changed anything */
		fields |= WORKSPACE_SET_ORIGIN;
	}
	if (o->kept.row.num != w->row.head) {
		w->row.head = o->kept.row.num;
		w->row.rev++;
		ws_text(&w->ahead, "[]", &w->row.ahead);
	}
	ws_store(w, fields, with, point_stored, o);
}

static void point_kept(void *arg, struct ws_kept *k, const struct fail *f)
{
	struct point_op *o = arg;

	(void)k;
	ws_thaw(o->op.w);
	o->op.w->is_kept = !f && !ws_has_users(o->op.w);
	if (f)
		point_end(o, f);
	else
		point_record(o);
}

static void point_frozen(struct wsx *w, int error)
{
	struct point_op *o = (struct point_op *)w->first;
	struct fail f = { 0 };

	if (error) {
		fail_set(&f, FAIL_BUSY, "its processes cannot be stopped for a moment: %s",
		         strerror(error));
		point_end(o, &f);
		return;
	}
	ws_keep(&o->kept, w, &o->ask);
}

static void point_run(struct ws_op *op)
{
	struct point_op *o = (struct point_op *)op;

	if (o->is_recorded) { /* and only the disk does not have it yet */
		point_stored(o, NULL);
		return;
	}
	o->kept.done = point_kept;
	o->kept.arg = o;
	if (op->needs_vault && op->w->link == WSX_OPEN) {
		ws_freeze(op->w, LEASE_MS, point_frozen);
		return;
	}
	/* It is closed, and at its head. */
	id_make(o->kept.id, o->ask.kind == POINT_SNAPSHOT ? "sn" : "cp");
	o->kept.row = (struct point_row){ .id = o->kept.id,
		                          .tenant = op->w->row.tenant,
		                          .workspace = op->w->row.id,
		                          .stack = op->w->row.stack,
		                          .kind = o->ask.kind,
		                          .label = o->ask.label,
		                          .created_ms = core_now_ms(),
		                          .durable = 1,
		                          .boot_id = op->w->core->boot_id };
	point_record(o);
}

static struct point_op *point_new(const struct wsx *w, const struct wsx_point_ask *ask,
                                  wsx_point_fn *done, void *arg)
{
	struct point_op *o = mem_alloc(sizeof *o);
	bool is_there = w->link != WSX_CLOSED || !w->row.clean || w->first;

	*o = (struct point_op){ .op = { .run = point_run,
		                        .fail = point_failed,
		                        .drop = point_drop,
		                        .needs_vault =
		                            is_there && strcmp(w->row.mode, "read") != 0 },
		                .ask = *ask,
		                .done = done,
		                .arg = arg };
	o->ask.label = o->label = ask->label ? mem_strdup(ask->label) : NULL;
	o->ask.process = o->process = ask->process ? mem_strdup(ask->process) : NULL;
	return o;
}

void wsx_point(struct wsx *w, const struct wsx_point_ask *ask, wsx_point_fn *done, void *arg)
{
	ws_add(w, &point_new(w, ask, done, arg)->op);
}

void ws_keep_found(struct wsx *w)
{
	static const struct wsx_point_ask ask = { .label = "what was found" };

	struct point_op *o = point_new(w, &ask, NULL, NULL);

	o->is_finding = w->is_finding = true;
	ws_add_first(w, &o->op);
}

bool wsx_wants_point(const struct sbx *s)
{
	return s->is_attached && s->workspace->link == WSX_OPEN &&
	       strcmp(s->workspace->row.mode, "read") != 0 &&
	       (!s->spec.checkpoint || strcmp(s->spec.checkpoint, "off") != 0);
}

/* ---- names --------------------------------------------------------------------------- */

/* Its own point; or, when it changed nothing, where it found the workspace. */
static int left_by(const struct wsx *w, const char *process, struct arena *a, struct point_row *out)
{
	struct store *store = w->core->store;
	struct process_row row;
	struct err e = { 0 };

	if (store_point_by_process(store, w->row.tenant, process, a, out, &e) == 0)
		return 0;
	if (store_process_get(store, w->row.tenant, process, a, &row, &e) < 0 || !row.details)
		return -1;
	json_t *details = json_loads(row.details, 0, NULL);
	const json_t *left = json_object_get(details, "workspace");
	const char *id = json_string_value(json_object_get(left, "id"));
	int64_t at = json_integer_value(json_object_get(left, "at"));
	bool is_ours = id && strcmp(id, w->row.id) == 0;

	json_decref(details);
	if (!is_ours)
		return -1;
	return at == 0 ? 0 : store_point_by_num(store, at, a, out, &e);
}

int wsx_point_find(struct wsx *w, const char *name, struct arena *a, struct point_row *out,
                   struct fail *f)
{
	struct store *store = w->core->store;
	size_t n = strlen(name);
	struct err e = { 0 };
	int r = -1;

	*out = (struct point_row){ .id = "base", .stack = w->row.stack };
	bool is_head = strcmp(name, "head") == 0, is_origin = strcmp(name, "origin") == 0;
	int64_t num = is_head ? w->row.head : w->row.origin;

	if (strcmp(name, "base") == 0 || ((is_head || is_origin) && num == 0))
		return 0;
	if (is_head || is_origin)
		r = store_point_by_num(store, num, a, out, &e);
	else if (id_is(name, n, "cp") || id_is(name, n, "sn"))
		r = store_point_get(store, w->row.tenant, name, a, out, &e);
	else if (id_is(name, n, "px"))
		r = left_by(w, name, a, out);
	if (r < 0)
		return fail_set(f, FAIL_NOT_FOUND, "no such point: %.64s", name);
	return 0;
}
