/*
 * workspace_life.c - workspaces come, are closed, forked, thrown away and found again.
 */
#include <jansson.h>

#include "core/flatten.h"
#include "core/gc.h"
#include "core/notes.h"
#include "core/trees.h"
#include "core/workspace-internal.h"
#include "io/journal.h"

#define CLOSE_TRIES 100 /* a mount goes a moment after the sandbox that had it */
#define CLOSE_AGAIN_MS 20

/* ---- create -------------------------------------------------------------------------- */

struct creating {
	struct core *core;
	char id[ID_SIZE], actor[ACTOR_SIZE];
	wsx_done_fn *done;
	void *arg;
};

/* Nothing was made: later there may be room. */
static void over_quota(struct fail *f, const struct err *e)
{
	fail_set(f, FAIL_QUOTA, "%s", e->msg);
	f->is_retry_safe = true;
}

static void created(void *arg, const struct store_answer *a)
{
	struct creating *o = arg;
	struct fail f = { 0 };
	struct wsx *w = a->code == STORE_OK ? ws_by_id(o->core, o->id) : NULL;

	if (a->code == STORE_EXISTS)
		fail_set(&f, FAIL_EXISTS, "a workspace with this key exists");
	else if (a->code == STORE_CONFLICT)
		over_quota(&f, a->err);
	else if (!w)
		fail_set(&f, FAIL_BACKEND_ERROR, "the workspace could not be stored");
	if (w)
		note_workspace_by(w, LEDGER_WORKSPACE_CREATED, o->actor,
		                  json_pack("{ss?,ss?,ss?,ss?}", "key", w->row.key, "repo",
		                            w->row.repo, "base", w->row.base_commit, "branch",
		                            w->row.branch));
	o->done(o->arg, w, w ? NULL : &f);
	free(o);
}

static void stack_of(const struct wsx_ask *ask, char out[64])
{
	const uint64_t empty = VAULT_EMPTY_TREE;
	const uint64_t *at = ask->n_layers ? ask->layers : &empty;
	size_t n = ask->n_layers ? ask->n_layers : 1;
	int len = snprintf(out, 64, "[%llu", (unsigned long long)at[0]);

	for (size_t i = 1; i < n; i++)
		len += snprintf(out + len, 64 - (size_t)len, ",%llu", (unsigned long long)at[i]);
	snprintf(out + len, 64 - (size_t)len, "]");
}

/* The operator's bound for one; as root it is held by a volume. */
static int bound_of(const struct core *c, const struct wsx_ask *ask, int64_t *bytes, struct fail *f)
{
	uint64_t most = c->config.disk.workspace;
	bool is_read = ask->mode && strcmp(ask->mode, "read") == 0;
	char text[32];

	*bytes = (int64_t)ask->disk_bytes;
	if (most && ask->disk_bytes > most) {
		quota_text(QUOTA_DISK, most, text);
		return fail_set(f, FAIL_QUOTA, "disk: %s is the most for a workspace", text);
	}
	if (most && !ask->disk_bytes && c->host.is_root && !is_read)
		*bytes = (int64_t)most;
	return 0;
}

int wsx_create(struct core *c, const struct wsx_ask *ask, wsx_done_fn *done, void *arg,
               struct fail *f)
{
	int64_t now = core_now_ms(), disk_bytes = 0;
	char stack[64];
	struct err e = { 0 };

	if (gc_admit(c, f) < 0 || bound_of(c, ask, &disk_bytes, f) < 0)
		return -1;
	struct creating *o = mem_alloc(sizeof *o);

	*o = (struct creating){ .core = c, .done = done, .arg = arg };
	snprintf(o->actor, sizeof o->actor, "%s", c->actor ? c->actor : "");
	id_make(o->id, "ws");
	core_made(c, o->id);
	stack_of(ask, stack);
	struct workspace_row row = { .id = o->id,
		                     .tenant = ask->tenant,
		                     .key = ask->key,
		                     .repo = ask->repo,
		                     .base = ask->base,
		                     .base_commit = ask->base_commit,
		                     .branch = ask->branch,
		                     .mode = ask->mode,
		                     .state = WORKSPACE_READY,
		                     .spec = ask->spec_text ? ask->spec_text : "{}",
		                     .num = (int64_t)trees_number(c),
		                     .top = (int64_t)trees_number(c),
		                     .stack = stack,
		                     .rev = 1,
		                     .clean = 1,
		                     .pin = ask->is_pinned,
		                     .ttl_ms = (int64_t)ask->ttl_ms,
		                     .expires_ms = ask->ttl_ms ? now + (int64_t)ask->ttl_ms : 0,
		                     .created_ms = now,
		                     .used_ms = now,
		                     .disk_bytes = disk_bytes,
		                     .inodes = (int64_t)ask->inodes };
	const struct workspace_batch batch = { &row, 1, c->config.quota.of[QUOTA_WORKSPACES] };

	if (store_workspace_insert_within(
		c->store, &batch, (struct store_call){ .done = created, .arg = o }, &e) == 0)
		return 0;
	free(o);
	return fail_err(f, &e);
}

/* ---- change -------------------------------------------------------------------------- */

struct change {
	struct wsx *w;
	wsx_done_fn *done;
	void *arg;
};

static void changed(void *arg, const struct fail *f)
{
	struct change *o = arg;

	o->done(o->arg, o->w, f);
	free(o);
}

static struct change *change_new(struct wsx *w, wsx_done_fn *done, void *arg)
{
	struct change *o = mem_alloc(sizeof *o);

	*o = (struct change){ w, done, arg };
	return o;
}

int wsx_change(struct wsx *w, const struct wsx_life *life, wsx_done_fn *done, void *arg,
               struct fail *f)
{
	uint32_t fields = WORKSPACE_SET_LIFE;

	if (life->has_pin)
		w->row.pin = life->is_pinned;
	if (life->has_ttl)
		w->row.ttl_ms = (int64_t)life->ttl_ms;
	w->row.expires_ms = w->row.ttl_ms ? core_now_ms() + w->row.ttl_ms : 0;
	if (life->spec_text) {
		ws_text(&w->spec, life->spec_text, &w->row.spec);
		fields |= WORKSPACE_SET_SPEC;
	}
	(void)f;
	ws_store(w, fields, (struct workspace_with){ 0 }, changed, change_new(w, done, arg));
	return 0;
}

bool wsx_is_dirty(const struct wsx *w)
{
	return w->row.head != w->row.origin;
}

/* ---- close --------------------------------------------------------------------------- */

void ws_end_sandboxes(struct wsx *w)
{
	struct sbx *next;

	for (struct sbx *s = w->attached; s; s = next) {
		struct fail f;

		next = s->next_attached;
		if (s->is_service)
			(void)sbx_delete(s, NULL, NULL, &f); /* or it is going already */
		else
			sbx_end_order(s, CH_CLOSE); /* it says when it is over */
	}
}

struct shutting {
	struct wsx *w;
	bool is_forced;
	ws_stored_fn *done;
	void *arg;
	struct timer timer;
	unsigned int tries;
};

static void shut_end(struct shutting *o, const struct fail *f)
{
	timer_stop(&o->w->core->timers, &o->timer);
	o->done(o->arg, f);
	free(o);
}

static void shut_try(struct timer *t);

static void shut_answered(void *arg, const struct vault_done *d, const struct err *e)
{
	struct shutting *o = arg;
	struct wsx *w = o->w;
	struct fail f = { 0 };

	(void)d;
	if (!e) {
		struct vault **which = w->vault ? &w->vault : &w->root;

		vault_close(*which);
		*which = NULL;
		shut_try(&o->timer);
	} else if (e->sys == EBUSY && o->tries++ < CLOSE_TRIES) {
		timer_set(&w->core->timers, &o->timer, CLOSE_AGAIN_MS);
	} else if (ws_again(w, e)) {
		free(o); /* its timer has fired */
	} else {
		ws_fail(&f, e);
		if (e->sys == EBUSY)
			fail_set(&f, FAIL_BUSY, "somebody still has the workspace");
		shut_end(o, &f);
	}
}

/* One that is being made cannot be ended yet: at the next try. */
static void shut_end_sandboxes(struct shutting *o)
{
	struct sbx *next;
	struct fail f;

	for (struct sbx *s = o->w->attached; s; s = next) {
		next = s->next_attached;
		if (s->is_service || o->is_forced)
			(void)sbx_delete(s, NULL, NULL, &f); /* or it is going already */
	}
}

/* Its sandbox of ours is gone first; others are in the way. One keeper, then the other. */
static void shut_try(struct timer *t)
{
	struct shutting *o =
	    (struct shutting *)(void *)((char *)t - offsetof(struct shutting, timer));
	struct vault_packet p = { .head.type = V_CLOSE };
	struct err e = { 0 };

	shut_end_sandboxes(o);
	if (o->w->attached) {
		err_sys(&e, EBUSY, "close");
		shut_answered(o, NULL, &e);
		return;
	}
	struct vault *next = o->w->vault ? o->w->vault : o->w->root;

	if (next) {
		vault_ask(next, &p, -1, shut_answered, o);
		return;
	}
	o->w->link = WSX_CLOSED;
	o->w->unsynced = 0;
	shut_end(o, NULL);
}

void ws_shut(struct wsx *w, bool is_forced, ws_stored_fn *done, void *arg)
{
	struct shutting *o = mem_alloc(sizeof *o);

	*o = (struct shutting){
		.w = w, .is_forced = is_forced, .done = done, .arg = arg, .timer.fired = shut_try
	};
	shut_try(&o->timer);
}

struct close_op {
	struct ws_op op; /* first */
	struct ws_kept kept;
	bool is_trash;  /* it goes there then; */
	bool is_forced; /* also with changes */
	bool was_open;
	bool is_unkept; /* no point could be made of what is there: it stays where it is */
	wsx_done_fn *done;
	void *arg;
};

static void close_end(struct close_op *o, const struct fail *f)
{
	struct wsx *w = o->op.w;

	wsx_ref(w);
	if (!f && o->is_trash && !w->is_scratch)
		note_workspace(w, LEDGER_WORKSPACE_REMOVED, NULL, NULL);
	if (o->done)
		o->done(o->arg, w, f);
	ws_end(&o->op);
	wsx_unref(w);
	free(o);
}

static void close_stored(void *arg, const struct fail *f)
{
	close_end(arg, f);
}

static void close_shut(void *arg, const struct fail *f)
{
	struct close_op *o = arg;
	struct wsx *w = o->op.w;
	uint32_t fields = WORKSPACE_SET_CLEAN | WORKSPACE_SET_PENDING;

	if (f) {
		close_end(o, f);
		return;
	}
	if (o->was_open && !o->is_unkept) { /* the keeper has synced what it had */
		w->row.clean = 1;
		ws_text(&w->pending, NULL, &w->row.pending);
	}
	if (o->is_trash) {
		w->row.state = WORKSPACE_TRASH;
		w->row.ended_ms = w->is_scratch ? 1 : core_now_ms();
		fields |= WORKSPACE_SET_STATE;
	}
	ws_store(w, fields, (struct workspace_with){ 0 }, close_stored, o);
}

static void close_synced(void *arg, const struct vault_done *d, const struct err *e)
{
	struct close_op *o = arg;
	struct wsx *w = o->op.w;
	struct fail f = { 0 };
	struct err full = { 0 };

	(void)d;
	if (e && ws_again(w, e))
		return;
	if (e) {
		ws_fail(&f, e);
		close_end(o, &f);
		return;
	}
	if (w->row.head > 0)
		(void)!ws_harden(w, w->row.head, NULL, NULL, &full); /* or at the next one */
	if (!o->is_trash && ws_has_users(w)) {                       /* since it was asked for */
		fail_set(&f, FAIL_BUSY, "somebody works with it again");
		close_end(o, &f);
		return;
	}
	ws_shut(w, o->is_forced, close_shut, o);
}

/* Only now it is known. */
static bool is_wanted(const struct close_op *o, struct fail *f)
{
	if (!o->is_trash || o->is_forced || !wsx_is_dirty(o->op.w))
		return false;
	fail_set(f, FAIL_CONFLICT, "the workspace has changes; force moves it to the trash anyway");
	return true;
}

static void close_recorded(void *arg, const struct fail *f)
{
	struct close_op *o = arg;
	struct vault_packet p = { .head.type = V_SYNC };
	struct fail wanted = { 0 };

	if (f)
		close_end(o, f);
	else if (is_wanted(o, &wanted))
		close_end(o, &wanted);
	else
		ws_ask_both(o->op.w, &p, &p, close_synced, o);
}

static void close_kept(void *arg, struct ws_kept *k, const struct fail *f)
{
	struct close_op *o = arg;
	struct wsx *w = o->op.w;

	/* Else a full disk, or a path that is too long, would keep it for ever. */
	o->is_unkept = f && o->is_trash && o->is_forced;
	if (f || k->row.num == 0) {
		close_recorded(o, o->is_unkept ? NULL : f);
		return;
	}
	w->row.head = k->row.num;
	w->row.rev++;
	ws_text(&w->ahead, "[]", &w->row.ahead);
	ws_store(w, WORKSPACE_SET_HEAD, (struct workspace_with){ .point = &k->row }, close_recorded,
	         o);
}

static void close_run(struct ws_op *op)
{
	static const struct wsx_point_ask ask = { .label = "what was left" };
	struct close_op *o = (struct close_op *)op;
	struct fail f = { 0 };

	if (op->w->link != WSX_OPEN) {
		close_shut(o, is_wanted(o, &f) ? &f : NULL);
		return;
	}
	o->was_open = true;
	o->kept = (struct ws_kept){ .done = close_kept, .arg = o };
	if (strcmp(op->w->row.mode, "read") == 0)
		close_recorded(o, NULL);
	else
		ws_keep(&o->kept, op->w, &ask);
}

static struct close_op *close_new(wsx_done_fn *done, void *arg)
{
	struct close_op *o = mem_alloc(sizeof *o);

	*o = (struct close_op){ .op = { .run = close_run }, .done = done, .arg = arg };
	return o;
}

void ws_close(struct wsx *w)
{
	ws_close_then(w, NULL, NULL);
}

void ws_close_then(struct wsx *w, wsx_done_fn *done, void *arg)
{
	ws_add(w, &close_new(done, arg)->op);
}

/* ---- the trash ----------------------------------------------------------------------- */

static void name_sandboxes(const struct wsx *w, struct str *names)
{
	for (const struct sbx *s = w->attached; s; s = s->next_attached)
		if (!s->is_service)
			str_addf(names, "%s%s", names->len ? ", " : "", s->id);
}

int wsx_delete(struct wsx *w, bool is_forced, wsx_done_fn *done, void *arg, struct fail *f)
{
	AUTO(str_done) struct str names = { .max = 256 };
	struct sbx *next;

	name_sandboxes(w, &names);
	if (names.len > 0 && !is_forced)
		return fail_set(f, FAIL_BUSY, "sandboxes work on it: %s", str_text(&names));
	for (struct sbx *s = is_forced ? w->attached : NULL; s; s = next) {
		struct fail ignored;

		next = s->next_attached;
		(void)sbx_delete(s, NULL, NULL, &ignored); /* whoever stays is in the way below */
	}
	struct close_op *o = close_new(done, arg);
	o->is_trash = true;
	o->is_forced = is_forced;
	ws_add(w, &o->op);
	return 0;
}

static void discarded(void *arg, struct wsx *w, const struct fail *f)
{
	(void)arg;
	(void)w;
	(void)f; /* its time to live is short */
}

/* Through the trash, where it has been for ages when somebody looks. */
void wsx_discard(struct wsx *w)
{
	struct fail f = { 0 };

	w->is_scratch = true;
	w->row.pin = 0;
	w->row.ttl_ms = w->row.expires_ms = 1; /* should we die before that, too */
	ws_store(w, WORKSPACE_SET_LIFE, (struct workspace_with){ 0 }, NULL, NULL);
	(void)!wsx_delete(w, true, discarded, NULL, &f);
	wsx_unref(w);
}

int wsx_untrash(struct core *c, const char *tenant, const char *id, wsx_done_fn *done, void *arg,
                struct fail *f)
{
	struct wsx *w = id_is(id, strlen(id), "ws") ? ws_by_id(c, id) : NULL;

	if (!w || strcmp(w->row.tenant, tenant) != 0 || w->row.state != WORKSPACE_TRASH)
		return fail_set(f, FAIL_NOT_FOUND, "no such workspace in the trash");
	w->row.state = WORKSPACE_READY;
	w->row.ended_ms = 0;
	ws_store(w, WORKSPACE_SET_STATE, (struct workspace_with){ 0 }, changed,
	         change_new(w, done, arg));
	return 0;
}

/* ---- forks --------------------------------------------------------------------------- */

struct fork_op {
	struct wsx *w;
	size_t n;
	int64_t ttl_ms;
	bool is_ours, is_scratch, is_bare;
	char actor[ACTOR_SIZE];
	char *key;
	char (*ids)[ID_SIZE];
	wsx_forked_fn *done;
	void *arg;
};

static void fork_end(struct fork_op *o, const struct fail *f)
{
	o->done(o->arg, (const char(*)[ID_SIZE])o->ids, o->n, f);
	wsx_unref(o->w);
	free(o->key);
	free(o->ids);
	free(o);
}

static void note_forks(const struct fork_op *o)
{
	json_t *ids = json_array();

	for (size_t i = 0; i < o->n; i++)
		json_array_append_new(ids, json_string(o->ids[i]));
	note_workspace_by(o->w, LEDGER_WORKSPACE_FORKED, o->actor, json_pack("{so}", "to", ids));
}

static void forked(void *arg, const struct store_answer *a)
{
	struct fork_op *o = arg;
	struct fail f = { 0 };

	if (a->code == STORE_EXISTS)
		fail_set(&f, FAIL_EXISTS, "a workspace with this key exists");
	else if (a->code == STORE_CONFLICT)
		over_quota(&f, a->err);
	else if (a->code != STORE_OK)
		fail_set(&f, FAIL_BACKEND_ERROR, "the forks could not be stored");
	else if (!o->is_scratch)
		note_forks(o);
	fork_end(o, a->code == STORE_OK ? NULL : &f);
}

/* Rows, and nothing else: what they show lies where it is. */
static void fork_from(struct fork_op *o, int64_t num, const char *stack)
{
	int64_t root = ws_root_of(o->w, num);
	AUTO(arena_done) struct arena a = { 0 };
	struct core *c = o->w->core;
	struct workspace_row *rows = arena_alloc(&a, o->n * sizeof *rows);
	int64_t now = core_now_ms();
	AUTO(freep) char *unsynced = num > 0 ? ws_unsynced_text(c) : NULL;
	struct err e = { 0 };
	struct fail f = { 0 };

	for (size_t i = 0; i < o->n; i++) {
		char *key = o->key ? arena_alloc(&a, strlen(o->key) + 24) : NULL;

		if (key && o->n == 1)
			snprintf(key, strlen(o->key) + 24, "%s", o->key);
		else if (key)
			snprintf(key, strlen(o->key) + 24, "%s-%zu", o->key, i + 1);
		id_make(o->ids[i], "ws");
		rows[i] = o->w->row;
		rows[i].id = o->ids[i];
		rows[i].key = key;
		rows[i].parent = o->w->row.id;
		rows[i].state = WORKSPACE_READY;
		rows[i].num = (int64_t)trees_number(c);
		rows[i].top = (int64_t)trees_number(c);
		rows[i].stack = stack;
		rows[i].begins = rows[i].origin = rows[i].head = num;
		if (o->is_bare) {
			rows[i].root_num = rows[i].root_top = rows[i].root_begins = 0;
			rows[i].root_tree = 0;
			rows[i].root_image = NULL;
		} else if (o->w->row.root_num) {
			rows[i].root_num = (int64_t)trees_number(c);
			rows[i].root_top = (int64_t)trees_number(c);
			rows[i].root_begins = root;
		}
		rows[i].ahead = "[]";
		rows[i].pending = unsynced;
		rows[i].rev = rows[i].clean = 1;
		rows[i].pin = 0;
		rows[i].created_ms = rows[i].used_ms = now;
		rows[i].ttl_ms = o->ttl_ms ? o->ttl_ms : rows[i].ttl_ms;
		rows[i].expires_ms = rows[i].ttl_ms ? now + rows[i].ttl_ms : 0;
	}
	const struct workspace_batch batch = { rows, o->n,
		                               o->is_ours ? 0
		                                          : c->config.quota.of[QUOTA_WORKSPACES] };

	if (store_workspace_insert_within(
		c->store, &batch, (struct store_call){ .done = forked, .arg = o }, &e) < 0) {
		fail_err(&f, &e);
		fork_end(o, &f);
	}
}

static void fork_kept(void *arg, struct wsx *w, const struct point_row *point, const struct fail *f)
{
	struct fork_op *o = arg;

	(void)point; /* with or without a new one: it is at its head */
	if (f)
		fork_end(o, f);
	else
		fork_from(o, w->row.head, w->row.stack);
}

int wsx_fork(struct wsx *w, const struct wsx_forks *forks, wsx_forked_fn *done, void *arg,
             struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct point_row at;

	if (forks->n == 0 || forks->n > WORKSPACE_FORKS_MAX)
		return fail_set(f, FAIL_INVALID, "n: 1 to %d", WORKSPACE_FORKS_MAX);
	if ((!forks->is_ours && gc_admit(w->core, f) < 0) ||
	    (forks->at && wsx_point_find(w, forks->at, &a, &at, f) < 0))
		return -1;
	if (flatten_holds(w)) /* what was read just now is about to change */
		return fail_set(f, FAIL_BUSY, "its layers are being exchanged: ask again");
	struct fork_op *o = mem_alloc(sizeof *o);
	*o = (struct fork_op){ .w = w, .n = forks->n, .done = done, .arg = arg };
	o->key = forks->key ? mem_strdup(forks->key) : NULL;
	o->ttl_ms = (int64_t)forks->ttl_ms;
	o->is_ours = forks->is_ours;
	o->is_scratch = forks->is_scratch;
	o->is_bare = forks->is_bare;
	snprintf(o->actor, sizeof o->actor, "%s", w->core->actor ? w->core->actor : "");
	o->ids = mem_alloc(forks->n * sizeof *o->ids);
	wsx_ref(w);
	if (forks->at)
		fork_from(o, at.num, at.stack);
	else if (w->link == WSX_CLOSED && w->row.clean && !w->first)
		fork_from(o, w->row.head, w->row.stack);
	else
		wsx_point(w, &(struct wsx_point_ask){ .label = "fork" }, fork_kept, o);
	return 0;
}
