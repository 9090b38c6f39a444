#include "core/workspace.h"

#include <assert.h>
#include <jansson.h>

#include "core/changed.h"
#include "core/flatten.h"
#include "core/trees.h"
#include "core/workspace-internal.h"
#include "io/journal.h"

#define IDLE_MS 10000 /* without a sandbox and a request: closed, then forgotten */

/* ---- the object ---------------------------------------------------------------------- */

static void idle_long(struct timer *t);

void ws_text(char **at, const char *text, const char **row)
{
	char *copy = text ? mem_strdup(text) : NULL;

	free(*at);
	*at = copy;
	*row = copy;
}

/* The texts that change have owners of their own; all others live in the arena. */
static void take_row(struct wsx *w, const struct workspace_row *row)
{
	const char **fixed[] = { &w->row.id,   &w->row.tenant, &w->row.node,        &w->row.key,
		                 &w->row.repo, &w->row.base,   &w->row.base_commit, &w->row.branch,
		                 &w->row.mode, &w->row.parent, &w->row.root_image };

	w->row = *row;
	for (size_t i = 0; i < COUNT(fixed); i++)
		*fixed[i] = *fixed[i] ? arena_strdup(&w->arena, *fixed[i]) : NULL;
	ws_text(&w->stack, row->stack, &w->row.stack);
	ws_text(&w->ahead, row->ahead, &w->row.ahead);
	ws_text(&w->pending, row->pending, &w->row.pending);
	ws_text(&w->spec, row->spec, &w->row.spec);
	ws_text(&w->reason, row->state_reason, &w->row.state_reason);
}

struct wsx *ws_load(struct core *c, const struct workspace_row *row)
{
	struct wsx *w = mem_alloc(sizeof *w);

	*w = (struct wsx){ .core = c };
	w->last = &w->first;
	w->idle.fired = idle_long;
	w->sync.fired = ws_sync_fired;
	w->freeze.again.fired = ws_freeze_again;
	take_row(w, row);
	w->entry.key = w->row.id;
	roster_add(&c->workspaces, &w->entry);
	timer_set(&c->timers, &w->idle, IDLE_MS);
	return w;
}

void ws_free(struct wsx *w)
{
	roster_remove(&w->core->workspaces, &w->entry);
	timer_stop(&w->core->timers, &w->idle);
	timer_stop(&w->core->timers, &w->sync);
	timer_stop(&w->core->timers, &w->freeze.again);
	vault_close(w->vault);
	vault_close(w->root);
	changed_close(w);
	for (struct ws_op *o = w->first, *next; o; o = next) { /* at the end of all */
		next = o->next;
		if (o->drop)
			o->drop(o);
		else
			free(o);
	}
	free(w->stack);
	free(w->ahead);
	free(w->pending);
	free(w->spec);
	free(w->reason);
	arena_done(&w->arena);
	free(w);
}

void wsx_ref(struct wsx *w)
{
	w->refs++;
}

static bool is_unused(const struct wsx *w)
{
	return w->refs == 0 && !w->first && !w->attached;
}

bool ws_is_idle(const struct wsx *w)
{
	return !w->first && !w->attached && w->link == WSX_CLOSED;
}

bool wsx_may_rest(const struct wsx *w)
{
	return !ws_has_users(w) && !w->first && !w->is_service_due && !w->is_default_due &&
	       w->link != WSX_OPENING && w->link != WSX_CLOSING;
}

/* A while after the last use of it. */
static void rest(struct wsx *w)
{
	if (is_unused(w))
		timer_set(&w->core->timers, &w->idle, IDLE_MS);
}

void wsx_unref(struct wsx *w)
{
	w->refs--;
	rest(w);
}

static void idle_long(struct timer *t)
{
	struct wsx *w = (struct wsx *)(void *)((char *)t - offsetof(struct wsx, idle));

	if (!is_unused(w))
		return; /* whoever uses it sets the timer again */
	if (w->link == WSX_CLOSED)
		ws_free(w);
	else
		ws_close(w);
}

struct wsx *ws_by_id(struct core *c, const char *id)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct workspace_row row;
	struct err e = { 0 };
	struct wsx *w = roster_find(&c->workspaces, id);

	if (w || store_workspace_by_id(c->store, id, &a, &row, &e) < 0)
		return w;
	return ws_load(c, &row);
}

struct wsx *wsx_find(struct core *c, const char *tenant, const char *name, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct workspace_row row;
	struct err e = { 0 };
	struct wsx *w = NULL;

	if (id_is(name, strlen(name), "ws"))
		w = ws_by_id(c, name);
	else if (key_is(name, strlen(name)) &&
	         store_workspace_by_key(c->store, tenant, name, &a, &row, &e) == 0)
		w = ws_by_id(c, row.id);
	if (w && strcmp(w->row.tenant, tenant) == 0 && w->row.state < WORKSPACE_TRASH)
		return w;
	fail_set(f, FAIL_NOT_FOUND, "no such workspace");
	return NULL;
}

/* ---- the row ------------------------------------------------------------------------- */

struct storing {
	struct wsx *w;
	ws_stored_fn *done;
	void *arg;
};

/* What the store refused did not happen: the object says again what the row says. */
static void reload(struct wsx *w)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct workspace_row row;
	struct err e = { 0 };

	if (store_workspace_by_id(w->core->store, w->row.id, &a, &row, &e) == 0)
		take_row(w, &row); /* the arena keeps what it had: this is rare */
	w->entry.key = w->row.id;
}

static void stored(void *arg, const struct store_answer *a)
{
	struct storing *s = arg;
	struct fail f = { 0 };

	if (a->code != STORE_OK) {
		journal(JOURNAL_ERROR, a->err->msg, "workspace", s->w->row.id, NULL);
		fail_set(&f, a->code == STORE_EXISTS ? FAIL_EXISTS : FAIL_BACKEND_ERROR,
		         "the workspace could not be stored: %s", a->err->msg);
		reload(s->w);
	}
	if (s->done)
		s->done(s->arg, f.code == FAIL_NONE ? NULL : &f);
	wsx_unref(s->w);
	free(s);
}

static void store_row(struct wsx *w, uint32_t fields, struct workspace_with with,
                      struct storing storing, bool is_durable)
{
	struct storing *s = mem_alloc(sizeof *s);
	struct store_call call = { .done = stored, .arg = s, .is_durable = is_durable };
	struct err e = { 0 };

	*s = storing;
	wsx_ref(w);
	if (store_workspace_update(w->core->store, &w->row, fields, with, call, &e) < 0)
		stored(s, &(struct store_answer){ .code = STORE_BROKEN, .err = &e });
}

void ws_store(struct wsx *w, uint32_t fields, struct workspace_with with, ws_stored_fn *done,
              void *arg)
{
	store_row(w, fields, with, (struct storing){ w, done, arg }, false);
}

void ws_store_durably(struct wsx *w, uint32_t fields, struct workspace_with with,
                      ws_stored_fn *done, void *arg)
{
	store_row(w, fields, with, (struct storing){ w, done, arg }, true);
}

/* ---- the keeper ---------------------------------------------------------------------- */

int ws_layers(const char *stack, uint64_t layers[VAULT_LAYERS_MAX])
{
	json_t *list = json_loads(stack, 0, NULL);
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n && i < VAULT_LAYERS_MAX; i++)
		layers[i] = (uint64_t)json_integer_value(json_array_get(list, i));
	json_decref(list);
	return n == 0 || n > VAULT_LAYERS_MAX ? -1 : (int)n;
}

static void fail_first(struct wsx *w, const struct fail *f)
{
	struct ws_op *o = w->first;

	w->first = o->next;
	if (!w->first)
		w->last = &w->first;
	o->fail(o, f);
}

/* Nobody can have the keeper: those who need it are told. */
static void open_failed(struct wsx *w, const struct fail *f)
{
	struct fail copy = *f;

	journal(JOURNAL_ERROR, copy.detail, "workspace", w->row.id, NULL);
	w->link = WSX_CLOSED;
	vault_close(w->vault);
	w->vault = NULL;
	vault_dismiss(w->root);
	w->root = NULL;
	wsx_ref(w);
	while (w->first && w->first->needs_vault && w->link == WSX_CLOSED)
		fail_first(w, &copy);
	ws_pump(w);
	wsx_unref(w);
}

/* The keeper before it died while we were not there. */
static void end_found(struct wsx *w)
{
	w->link = WSX_CLOSED;
	ws_end_sandboxes(w);
}

void ws_lost(struct wsx *w, struct vault **which, const struct err *e)
{
	struct fail f = { 0 };
	bool is_opening = w->link == WSX_OPENING;

	vault_close(*which);
	*which = NULL;
	w->link = WSX_CLOSED;
	if (w->is_again)
		w->is_again = w->is_busy = false;
	if (is_opening && e->sys == EBUSY && w->attached) {
		end_found(w);
		return;
	}
	if (is_opening) {
		ws_fail(&f, e);
		open_failed(w, &f);
		return;
	}
	journal(JOURNAL_ERROR, "the keeper of a workspace died", "workspace", w->row.id, NULL);
	ws_end_sandboxes(w); /* their mount is not the next one's */
	ws_pump(w);
}

static void vault_gone(void *arg, const struct err *e)
{
	struct wsx *w = arg;

	ws_lost(w, &w->vault, e);
}

static void open_settled(void *arg, const struct fail *f)
{
	struct wsx *w = arg;

	if (w->link != WSX_OPENING)
		return; /* it died meanwhile */
	if (f) {
		open_failed(w, f);
		return;
	}
	w->link = WSX_OPEN;
	/* Of a host that lost its power: its last points may be gone, and what they held is there.
	 */
	if (w->is_doubtful && !w->is_finding && strcmp(w->row.mode, "read") != 0)
		ws_keep_found(w);
	ws_pump(w);
}

static void all_there(void *arg, const struct fail *f)
{
	struct wsx *w = arg;

	if (w->link != WSX_OPENING)
		return; /* it died meanwhile */
	if (f && f->code == FAIL_BUSY && w->attached)
		end_found(w);
	else if (!f && w->row.pending)
		ws_redo_pending(w, open_settled, w);
	else
		open_settled(w, f);
}

static void vault_there(void *arg)
{
	struct wsx *w = arg;

	if (w->row.root_num)
		ws_root_open(w, all_there, w);
	else
		all_there(w, NULL);
}

static void open_vault(void *arg, const struct fail *f)
{
	struct wsx *w = arg;
	struct vault_open o = { .workspace = (uint64_t)w->row.num,
		                .from = (uint64_t)w->row.begins,
		                .bytes = (uint64_t)w->row.disk_bytes,
		                .inodes = (uint64_t)w->row.inodes };
	bool is_read_only = strcmp(w->row.mode, "read") == 0;
	int n = f ? -1 : ws_layers(w->row.stack, o.layers);
	struct fail bad = { 0 };

	if (n < 0) {
		fail_set(&bad, FAIL_BACKEND_ERROR, "%s",
		         f ? f->detail : "the stack of the workspace is broken");
		open_failed(w, &bad);
		return;
	}
	o.n_layers = (uint32_t)n;
	o.top = is_read_only ? 0 : (uint64_t)w->row.top;
	o.flags = (is_read_only ? VAULT_READ_ONLY : 0) |
	          (w->row.disk_bytes > 0 && !is_read_only ? VAULT_BOUNDED : 0);
	w->vault =
	    vault_open(w->core, &o,
	               (struct vault_owner){ .opened = vault_there, .gone = vault_gone, .arg = w });
}

/* Before anybody can write: from now on only a look tells whether it is at its head. */
static void open_begin(struct wsx *w)
{
	w->link = WSX_OPENING;
	w->is_found = w->is_kept = false;
	w->is_doubtful = !w->row.clean;
	w->row.clean = 0;
	w->row.used_ms = core_now_ms();
	w->row.expires_ms = w->row.ttl_ms ? w->row.used_ms + w->row.ttl_ms : 0;
	ws_store(w, WORKSPACE_SET_CLEAN | WORKSPACE_SET_USED, (struct workspace_with){ 0 },
	         open_vault, w);
}

void ws_fail(struct fail *f, const struct err *e)
{
	bool is_full = e->sys == ENOSPC || e->sys == EDQUOT;

	fail_set(f,
	         is_full                ? FAIL_QUOTA
	         : e->sys == EBUSY      ? FAIL_BUSY
	         : e->kind == ERR_LIMIT ? FAIL_TOO_LARGE
	                                : FAIL_BACKEND_ERROR,
	         "%s", e->msg);
	f->is_retry_safe = e->sys == EBUSY || e->sys == VAULT_DIED;
}

void ws_ask(struct wsx *w, const struct vault_packet *p, int fd, vault_done_fn *done, void *arg)
{
	struct err e = { 0 };

	if (w->vault) {
		vault_ask(w->vault, p, fd, done, arg);
		return;
	}
	err_new(&e, ERR_INTERNAL, "the keeper of the storage died");
	e.sys = VAULT_DIED;
	done(arg, NULL, &e);
}

/* ---- operations ---------------------------------------------------------------------- */

static void rest_shut(void *arg, const struct fail *f)
{
	struct wsx *w = arg;

	if (f)
		open_failed(w, f);
	else
		open_begin(w);
}

/* One that needs the keeper waits until those who had the mount of a dead one are gone, and then
 * until the other one of two has ended: it has the ids of the dead one. */
static bool must_wait(struct wsx *w)
{
	if (!w->first->needs_vault || w->link == WSX_OPEN)
		return false;
	if (w->link != WSX_CLOSED || (w->attached && !w->is_found))
		return true;
	if (w->vault || w->root) {
		w->link = WSX_CLOSING;
		ws_shut(w, false, rest_shut, w);
	} else {
		open_begin(w);
	}
	return true;
}

void ws_pump(struct wsx *w)
{
	if (w->is_busy || w->core->is_closing || flatten_holds(w))
		return;
	if (!w->first) {
		rest(w);
		return;
	}
	if (must_wait(w))
		return;
	w->is_busy = true;
	w->first->run(w->first);
}

void ws_add_first(struct wsx *w, struct ws_op *o)
{
	assert(!w->is_busy);
	o->w = w;
	o->next = w->first;
	w->first = o;
	if (!o->next)
		w->last = &o->next;
	timer_stop(&w->core->timers, &w->idle);
}

bool ws_again(struct wsx *w, const struct err *e)
{
	struct ws_op *o = w->first;

	if (e->sys != VAULT_DIED || !w->is_busy || o->is_second)
		return false;
	o->is_second = true;
	ws_thaw(w);
	if (w->link != WSX_CLOSED) { /* ws_lost() is next */
		w->is_again = true;
		return true;
	}
	w->is_busy = false;
	ws_pump(w);
	return true;
}

void ws_add(struct wsx *w, struct ws_op *o)
{
	if (w->core->actor)
		snprintf(o->actor, sizeof o->actor, "%s", w->core->actor);
	o->w = w;
	o->next = NULL;
	*w->last = o;
	w->last = &o->next;
	timer_stop(&w->core->timers, &w->idle);
	ws_pump(w);
}

void ws_end(struct ws_op *o)
{
	struct wsx *w = o->w;

	w->first = o->next;
	if (!w->first)
		w->last = &w->first;
	w->is_busy = false;
	wsx_ref(w);
	ws_pump(w);
	wsx_unref(w);
}

/* ---- settle -------------------------------------------------------------------------- */

struct settle {
	struct ws_op op; /* first */
	wsx_done_fn *done;
	void *arg;
};

static void settled(struct ws_op *op)
{
	struct settle *s = (struct settle *)op;
	struct wsx *w = op->w;
	struct settle copy = *s;

	wsx_ref(w);
	ws_end(op);
	free(s);
	copy.done(copy.arg, w, NULL);
	wsx_unref(w);
}

void wsx_settle(struct wsx *w, wsx_done_fn *done, void *arg)
{
	if (!w->first) {
		done(arg, w, NULL);
		return;
	}
	struct settle *s = mem_alloc(sizeof *s);
	*s = (struct settle){ .op = { .run = settled }, .done = done, .arg = arg };
	ws_add(w, &s->op);
}
