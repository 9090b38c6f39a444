/*
 * workspace_look.c - who works with a workspace: sandboxes that have its mount, and requests that
 * look at it.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/gc.h"
#include "core/process.h"
#include "core/reserve.h"
#include "core/workspace-internal.h"

#define SERVICE_IDLE_MS 60000
#define DEFAULT_IDLE_MS 900000

/* ---- attach -------------------------------------------------------------------------- */

struct attach_op {
	struct ws_op op; /* first */
	struct sbx *s;   /* NULL: it has gone meanwhile */
	wsx_done_fn *done;
	void *arg;
};

static void hang_on(struct wsx *w, struct sbx *s)
{
	s->next_attached = w->attached;
	w->attached = s;
	s->is_attached = true;
	w->is_kept = false;
	if (!s->is_service)
		reserve_watch(w->core);
}

static void attach_end(void *arg, const struct fail *f)
{
	struct attach_op *op = arg, o = *op;
	struct wsx *w = op->op.w;
	struct fail copy = f ? *f : (struct fail){ 0 };

	if (o.s)
		o.s->attaching = NULL;
	if (o.s && !f)
		hang_on(w, o.s);
	wsx_ref(w);
	ws_end(&op->op);
	free(op);
	if (o.s)
		o.done(o.arg, w, f ? &copy : NULL);
	wsx_unref(w);
}

static void attach_run(struct ws_op *op)
{
	struct attach_op *o = (struct attach_op *)op;
	struct fail f = { 0 };

	if (op->w->row.state >= WORKSPACE_TRASH)
		fail_set(&f, FAIL_NOT_FOUND, "the workspace was deleted meanwhile");
	else if (o->s && !o->s->is_service) /* ours may, or nobody could remove a file */
		(void)!(gc_check_workspace(op->w, &f) < 0 || reserve_check(op->w, &f) < 0);
	if (f.code != FAIL_NONE)
		attach_end(o, &f);
	else if (o->s && wsx_wants_root(o->s))
		ws_root_attach(op->w, o->s, attach_end, o);
	else
		attach_end(o, NULL);
}

static void attach_failed(struct ws_op *op, const struct fail *f)
{
	struct attach_op o = *(struct attach_op *)op;
	struct wsx *w = op->w;

	if (o.s)
		o.s->attaching = NULL;
	free(op);
	if (o.s)
		o.done(o.arg, w, f);
}

void wsx_attach(struct wsx *w, struct sbx *s, wsx_done_fn *done, void *arg)
{
	struct attach_op *o = mem_alloc(sizeof *o);

	*o = (struct attach_op){
		.op = { .run = attach_run, .fail = attach_failed, .needs_vault = true },
		.s = s,
		.done = done,
		.arg = arg
	};
	s->attaching = o;
	ws_add(w, &o->op);
}

void ws_forget_attach(struct attach_op *o)
{
	if (o)
		o->s = NULL;
}

void wsx_adopt(struct sbx *s, const char *id)
{
	struct wsx *w = ws_by_id(s->core, id);

	if (!w)
		return; /* the row of its workspace is gone: it is told so at its next start */
	s->workspace = w;
	wsx_ref(w);
	if (sandbox_state_is_live(s->state) || s->state == SANDBOX_STOPPED) {
		hang_on(w, s);
		w->is_found = true;
	}
}

/* ---- sandboxes of its own ------------------------------------------------------------ */

struct ws_waiter {
	struct ws_waiter *next;
	sbx_done_fn *done;
	void *arg;
};

static void wait_for(struct ws_waiter **list, sbx_done_fn *done, void *arg)
{
	struct ws_waiter *n = mem_alloc(sizeof *n);

	*n = (struct ws_waiter){ *list, done, arg };
	*list = n;
}

static void tell_all(struct ws_waiter **list, struct sbx *s, const struct fail *f)
{
	struct ws_waiter *next, *all = *list;

	*list = NULL;
	for (struct ws_waiter *n = all; n; n = next) {
		next = n->next;
		n->done(n->arg, s, f);
		free(n);
	}
}

static void service_made(void *arg, struct sbx *s, const struct fail *f)
{
	struct wsx *w = arg;

	w->service = f ? NULL : s;
	w->is_service_due = false;
	tell_all(&w->service_waiters, s, f);
	wsx_unref(w);
}

/* With the default limits, as far as this host can hold them. */
static const char service_spec[] = "{\"fs\":\"workspace:/work\"}";

static int spec_of(const struct wsx *w, const char *json, struct spec *spec, struct str *text,
                   struct fail *f)
{
	const struct core *c = w->core;
	struct err e = { 0 };

	if (spec_json(spec, json, strlen(json), &e) < 0)
		return fail_err(f, &e);
	spec->workspace = arena_strdup(&spec->arena, w->row.id);
	if (text && spec_print(spec, text, &e) < 0)
		return fail_err(f, &e);
	spec_default(spec, c->config.defaults);
	spec_resolve(spec);
	if (spec_bound(spec, c->config.most, &e) < 0 || spec_check(spec, &e) < 0)
		return fail_err(f, &e);
	return 0;
}

void wsx_service(struct wsx *w, sbx_done_fn *done, void *arg)
{
	AUTO(spec_done) struct spec spec;
	struct fail f = { 0 };
	struct sbx_ask ask = { .tenant = w->row.tenant,
		               .spec = &spec,
		               .idle_ms = SERVICE_IDLE_MS,
		               .client_fd = -1,
		               .is_service = true };

	spec_init(&spec);
	if (w->service && w->service->state == SANDBOX_RUNNING && w->service->is_attached) {
		done(arg, w->service, NULL);
		return;
	}
	wait_for(&w->service_waiters, done, arg);
	if (w->is_service_due)
		return;
	w->is_service_due = true;
	wsx_ref(w);
	if (spec_of(w, service_spec, &spec, NULL, &f) < 0 ||
	    !sbx_create(w->core, &ask, service_made, w, &f))
		service_made(w, NULL, &f);
}

static void default_made(void *arg, struct sbx *s, const struct fail *f)
{
	struct wsx *w = arg;

	w->is_default_due = false;
	tell_all(&w->default_waiters, s, f);
	wsx_unref(w);
}

/* Found by its key, as anybody could. */
static int default_start(struct wsx *w, int client_fd, struct fail *f)
{
	AUTO(spec_done) struct spec spec;
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	char key[ID_SIZE + 16];
	struct fail none;

	spec_init(&spec);
	snprintf(key, sizeof key, "default:%s", w->row.id);
	struct sbx *s = sbx_find(w->core, w->row.tenant, key, &none);
	if (s && s->state == SANDBOX_RUNNING && sbx_check_running(s, f) == 0) {
		default_made(w, s, NULL);
		return 0;
	}
	if (s)
		return sbx_start(s, default_made, w, f);
	if (spec_of(w, w->row.spec, &spec, &text, f) < 0)
		return -1;
	struct sbx_ask ask = { .tenant = w->row.tenant,
		               .key = key,
		               .spec = &spec,
		               .spec_text = str_text(&text),
		               .idle_ms = DEFAULT_IDLE_MS,
		               .client_fd = client_fd };
	return sbx_create(w->core, &ask, default_made, w, f) ? 0 : -1;
}

void wsx_default(struct wsx *w, int client_fd, sbx_done_fn *done, void *arg)
{
	struct fail f = { 0 };

	wait_for(&w->default_waiters, done, arg);
	if (w->is_default_due)
		return;
	w->is_default_due = true;
	wsx_ref(w);
	if (default_start(w, client_fd, &f) < 0)
		default_made(w, NULL, &f);
}

/* ---- changes, usage ------------------------------------------------------------------ */

struct look_op {
	struct ws_op op; /* first */
	struct vault_packet packet;
	bool is_root;
	int fd;
	wsx_changes_fn *changes; /* one of the two */
	wsx_usage_fn *usage;
	void *arg;
};

static void look_tell(struct look_op *o, const struct vault_done *d, const struct fail *f)
{
	struct wsx *w = o->op.w;

	if (o->changes)
		o->changes(o->arg, w, f ? -1 : o->fd, f);
	else if (f || !d)
		o->usage(o->arg, w, NULL, f);
	else
		o->usage(o->arg, w, &(struct wsx_usage){ d->bytes, d->files, d->kept, d->shared },
		         NULL);
}

static void look_done(void *arg, const struct vault_done *d, const struct err *e)
{
	struct look_op *o = arg;
	struct wsx *w = o->op.w;
	struct fail f = { 0 };

	if (e && ws_again(w, e))
		return;
	if (e)
		ws_fail(&f, e);
	wsx_ref(w);
	look_tell(o, d, e ? &f : NULL);
	ws_end(&o->op);
	wsx_unref(w);
	fd_close(&o->fd);
	free(o);
}

static void look_failed(struct ws_op *op, const struct fail *f)
{
	struct look_op *o = (struct look_op *)op;

	look_tell(o, NULL, f);
	fd_close(&o->fd);
	free(o);
}

static void look_run(struct ws_op *op)
{
	struct look_op *o = (struct look_op *)op;

	if (op->is_second && o->fd >= 0) { /* without what a dead one wrote; or it says so */
		fd_close(&o->fd);
		o->fd = memfd_create("changes", MFD_CLOEXEC);
	}
	if (o->usage)
		ws_ask_both(op->w, &o->packet, &o->packet, look_done, o);
	else if (o->is_root)
		ws_ask_root(op->w, &o->packet, o->fd, look_done, o);
	else
		ws_ask(op->w, &o->packet, o->fd, look_done, o);
}

static struct look_op *look_new(void *arg)
{
	struct look_op *o = mem_alloc(sizeof *o);

	*o = (struct look_op){ .op = { .run = look_run, .fail = look_failed, .needs_vault = true },
		               .fd = -1,
		               .arg = arg };
	return o;
}

int wsx_changes(struct wsx *w, const struct wsx_between *between, wsx_changes_fn *done, void *arg,
                struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct point_row first, last = { .stack = w->row.stack };
	const char *to = between->to;

	if (wsx_point_find(w, between->from, &a, &first, f) < 0 ||
	    (to && wsx_point_find(w, to, &a, &last, f) < 0))
		return -1;
	if (strcmp(first.stack, w->row.stack) != 0 || strcmp(last.stack, w->row.stack) != 0)
		return fail_set(f, FAIL_CONFLICT, "these points have other layers than it has now");
	if (between->is_root && !w->row.root_num)
		return fail_set(f, FAIL_CONFLICT,
		                "the workspace keeps no root: its sandboxes have "
		                "one with checkpoint: all");
	struct look_op *o = look_new(arg);
	o->changes = done;
	o->is_root = between->is_root;
	o->packet.head.type = V_CHANGES;
	o->packet.between.from = (uint64_t)(o->is_root ? first.root : first.num);
	o->packet.between.to = (uint64_t)(o->is_root ? last.root : last.num);
	if (!to)
		o->packet.between.to = VAULT_NOW;
	o->packet.between.flags = between->is_plain ? VAULT_PLAIN : 0;
	o->fd = memfd_create("changes", MFD_CLOEXEC);
	if (o->fd < 0) {
		free(o);
		return fail_set(f, FAIL_BACKEND_ERROR, "too many open files");
	}
	ws_add(w, &o->op);
	return 0;
}

void wsx_usage(struct wsx *w, wsx_usage_fn *done, void *arg)
{
	struct look_op *o = look_new(arg);

	o->usage = done;
	o->packet.head.type = V_USAGE;
	ws_add(w, &o->op);
}
