#include "core/sandbox-internal.h"

#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/approval.h"
#include "core/canary.h"
#include "core/enforced.h"
#include "core/files.h"
#include "core/gate.h"
#include "core/image.h"
#include "core/maker.h"
#include "core/net.h"
#include "core/notes.h"
#include "core/policy.h"
#include "core/process.h"
#include "core/quota.h"
#include "core/secret.h"
#include "core/shells.h"
#include "core/tripped.h"
#include "core/workspace.h"
#include "engine/plan.h"
#include "io/journal.h"
#include "store/ports.h"

#define CHANGE_MS 30000 /* a change that takes longer is given up */

/* ---- the object ---------------------------------------------------------------------- */

static void change_late(struct timer *t);
static void gone_on_record(void *arg, const struct store_answer *a);

struct sbx *sbx_new(struct core *c)
{
	struct sbx *s = mem_alloc(sizeof *s);

	*s = (struct sbx){ .core = c, .slot = -1, .generation = 1, .change.client_fd = -1 };
	spec_init(&s->spec);
	link_init(&s->link, s);
	s->timer.fired = change_late;
	s->active_ms = core_mono_ms();
	return s;
}

void sbx_free(struct sbx *s)
{
	sbx_tell_askers(s, NULL);
	roster_remove(&s->core->sandboxes, &s->entry);
	timer_stop(&s->core->timers, &s->timer);
	files_close(s);
	wsx_detach(s);
	if (s->workspace)
		wsx_unref(s->workspace);
	shells_done(s);
	net_done(s);
	gate_close(s);
	tripped_close(s);
	policy_close(s);
	link_close(&s->link);
	fd_close(&s->change.client_fd);
	spec_done(&s->spec);
	free(s->key);
	free(s->labels);
	free(s->door);
	free(s->spec_text);
	free(s->enforced);
	free(s->note);
	for (size_t i = 0; i < s->n_trees; i++)
		free((char *)s->trees[i].at);
	free(s->trees);
	free(s);
}

struct sbx *sbx_find(struct core *c, const char *tenant, const char *name, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct sandbox_row row;
	struct err e = { 0 };
	struct sbx *s = NULL;

	if (id_is(name, strlen(name), "sb"))
		s = roster_find(&c->sandboxes, name);
	else if (key_is(name, strlen(name)) &&
	         store_sandbox_by_key(c->store, tenant, name, &a, &row, &e) == 0)
		s = roster_find(&c->sandboxes, row.id);
	if (!s || s->is_spent || s->is_service || strcmp(s->tenant, tenant) != 0) {
		fail_set(f, FAIL_NOT_FOUND, "no such sandbox");
		return NULL;
	}
	return s;
}

void sbx_touch(struct sbx *s)
{
	s->active_ms = core_mono_ms();
}

/* ---- the row ------------------------------------------------------------------------- */

static void told_later(struct timer *t)
{
	struct sbx *s = (struct sbx *)(void *)((char *)t - offsetof(struct sbx, timer));

	gone_on_record(s, &(struct store_answer){ .code = STORE_OK });
}

/* As if there were a row: an answer that frees it comes in the next turn, as from the store. */
static void update_service(struct sbx *s, struct store_call call)
{
	const struct store_answer ok = { .code = STORE_OK };

	if (call.done == gone_on_record) {
		s->timer.fired = told_later;
		timer_set(&s->core->timers, &s->timer, 0);
	} else if (call.done) {
		call.done(call.arg, &ok);
	}
}

void sbx_update(struct sbx *s, uint32_t fields, struct store_call call)
{
	if (fields & SANDBOX_SET_STATE)
		note_sandbox_state(s);
	if (s->is_service) {
		update_service(s, call);
		return;
	}
	struct sandbox_row row = { .id = s->id,
		                   .tenant = s->tenant,
		                   .generation = s->generation,
		                   .state = s->state,
		                   .state_reason = s->reason,
		                   .slot = s->slot,
		                   .boot_id = s->boot_id,
		                   .socket = s->socket_name,
		                   .enforced = s->enforced,
		                   .backend = s->spec.backend,
		                   .started_ms = s->started_ms,
		                   .ended_ms = core_now_ms(),
		                   .expires_ms = s->expires_ms,
		                   .image_tree = (int64_t)s->image_tree,
		                   .door = s->door };
	struct err e = { 0 };

	if (store_sandbox_update(s->core->store, &row, fields, call, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "sandbox", s->id, NULL);
}

void sbx_set_state(struct sbx *s, enum sandbox_state state, const char *reason)
{
	s->state = state;
	snprintf(s->reason, sizeof s->reason, "%s", reason);
	if (state == SANDBOX_STOPPED || state == SANDBOX_FAILED || state == SANDBOX_UNREACHABLE)
		journal(JOURNAL_WARN, "a sandbox changed by itself", "sandbox", s->id, "state",
		        sandbox_state_name(state), "reason", reason, NULL);
	sbx_update(s, SANDBOX_SET_STATE, (struct store_call){ 0 });
}

/* ---- changes ------------------------------------------------------------------------- */

int sbx_change_begin(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f)
{
	if (s->is_unsettled) {
		fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
		f->is_retry_safe = true;
		return -1;
	}
	if (s->change.is_busy)
		return fail_set(f, FAIL_BUSY, "the sandbox is %s", sandbox_state_name(s->state));
	s->change.fail = (struct fail){ 0 };
	s->change.is_busy = true;
	s->change.is_ready = s->change.is_kept = false;
	s->change.done = done;
	s->change.arg = arg;
	snprintf(s->change.actor, sizeof s->change.actor, "%s",
	         s->core->actor ? s->core->actor : "");
	timer_set(&s->core->timers, &s->timer, CHANGE_MS);
	return 0;
}

void sbx_change_end(struct sbx *s, const struct fail *f)
{
	sbx_done_fn *done = s->change.done;

	s->change.is_busy = false;
	s->change.done = NULL;
	timer_stop(&s->core->timers, &s->timer);
	fd_close(&s->change.client_fd);
	if (done)
		done(s->change.arg, s, f);
}

/* The row is told first: who gets the answer finds what it says. */
static void on_record(void *arg, const struct store_answer *a)
{
	struct sbx *s = arg;
	struct fail f = { 0 };

	if (a->code == STORE_OK) {
		sbx_change_end(s, NULL);
		return;
	}
	fail_set(&f, FAIL_BACKEND_ERROR, "the state could not be stored");
	sbx_change_end(s, &f);
}

void sbx_change_done(struct sbx *s, enum sandbox_state state, uint32_t fields)
{
	s->state = state;
	s->reason[0] = '\0';
	sbx_update(s, fields | SANDBOX_SET_STATE,
	           (struct store_call){ .done = on_record, .arg = s });
}

/* Its monitor will say no more, so nobody waits for that. */
static void hear_no_more(struct sbx *s)
{
	net_on_lost(s);
	gate_close(s);
	tripped_close(s);
	link_close(&s->link);
	wsx_detach(s);
	s->is_unsettled = false;
	if (!s->change.is_busy)
		timer_stop(&s->core->timers, &s->timer);
}

/* Nothing came of it. A new one goes, and its row keeps the reason; an old one has failed and may
 * be started again. */
void sbx_build_failed(struct sbx *s, const struct fail *f)
{
	struct fail copy = *f;
	bool is_new = s->started_ms == 0;

	px_lose_all(s, PROCESS_LOST, copy.detail);
	(void)link_send(&s->link, CH_CLOSE, 0, NULL, 0); /* if there is somebody */
	hear_no_more(s);
	if (is_new) { /* the caller is told when the row says so too */
		s->change.fail = copy;
		sbx_be_gone(s, copy.detail);
		return;
	}
	sbx_set_state(s, SANDBOX_FAILED, copy.detail);
	sbx_change_end(s, &copy);
}

static void change_late(struct timer *t)
{
	struct sbx *s = (struct sbx *)(void *)((char *)t - offsetof(struct sbx, timer));
	struct fail f = { 0 };

	fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
	if (s->state == SANDBOX_CREATING || s->state == SANDBOX_REPLACING) {
		sbx_build_failed(s, &f);
		return;
	}
	sbx_set_state(s, SANDBOX_UNREACHABLE, "its monitor does not answer");
	sbx_change_end(s, &f);
}

/* "agent", "root", a number, or a user of the image, which has to be open for that. */
int sbx_user_of(struct sbx *s, int image_fd, struct fail *f)
{
	bool is_later = image_fd < 0 && strncmp(s->spec.image, "dir:", 4) == 0;
	struct err e = { 0 };

	int r = s->image_tree ? image_ids(s, s->spec.user, &s->uid, &s->gid, &e)
	                      : plan_ids(s->spec.user, image_fd, &s->uid, &s->gid, &e);

	if (r < 0 && !is_later)
		return fail_err(f, &e);
	return 0;
}

/* ---- create -------------------------------------------------------------------------- */

static int insert(struct sbx *s, struct store_call call, struct fail *f)
{
	struct sandbox_row row = { .id = s->id,
		                   .tenant = s->tenant,
		                   .key = s->key,
		                   .generation = 1,
		                   .state = s->state,
		                   .spec = s->spec_text,
		                   .labels = s->labels,
		                   .enforced = s->enforced,
		                   .backend = s->spec.backend,
		                   .boot_id = s->boot_id,
		                   .socket = s->socket_name,
		                   .slot = s->slot,
		                   .created_ms = s->created_ms,
		                   .started_ms = s->started_ms,
		                   .expires_ms = s->expires_ms,
		                   .idle_ms = (int64_t)s->idle_ms,
		                   .mem_bytes = (int64_t)s->needs.of[QUOTA_MEM],
		                   .cpu_milli = (int64_t)s->needs.of[QUOTA_CPU],
		                   .pids = (int64_t)s->needs.of[QUOTA_PIDS],
		                   .disk_bytes = (int64_t)s->needs.of[QUOTA_DISK],
		                   .workspace = s->workspace ? s->workspace->row.id : NULL,
		                   .image_tree = (int64_t)s->image_tree,
		                   .life = s->life,
		                   .door = s->door };
	struct err e = { 0 };

	if (s->is_service)
		return 0;
	if (store_sandbox_insert(s->core->store, &row, call, &e) < 0)
		return fail_set(f, FAIL_BACKEND_ERROR, "the store is overloaded");
	return 0;
}

/* The launcher found nobody at the other end of a socket: of the monitor, or of the keeper. */
static void explain_make(const struct core *c, struct fail *f, const struct err *e,
                         bool has_workspace)
{
	struct err told = *e;

	enforced_advise(c, &told, true);
	fail_err(f, &told);
	if (e->sys != EPIPE && e->sys != ECONNRESET)
		return;
	fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "%s died",
	         has_workspace ? "the monitor of the sandbox or the keeper of its workspace"
	                       : "the monitor of the sandbox");
	f->is_retry_safe = true;
}

void sbx_made(void *arg, const struct launch_made *m, int channel_fd, const struct err *e)
{
	struct sbx *s = arg;
	struct fail f = { 0 };
	AUTO(fd_close) int fd = channel_fd;

	if (e) {
		explain_make(s->core, &f, e, s->workspace);
		sbx_build_failed(s, &f);
		return;
	}
	s->slot = m->slot;
	s->is_adopted = s->is_unsettled = false; /* whatever was before it */
	snprintf(s->socket_name, sizeof s->socket_name, "%s", m->name);
	int r = link_open(&s->link, &fd);
	if (r < 0) {
		link_refuse(fd);
		fail_set(&f, FAIL_BACKEND_ERROR, "too many open files");
		sbx_build_failed(s, &f);
		return;
	}
	if (gate_possible(s, &f) < 0) { /* now that there is a way to tell the monitor */
		sbx_build_failed(s, &f);
		return;
	}
	if (!s->is_one_shot) {
		gate_linked(s);
		return; /* it says when it is ready */
	}
	s->state = SANDBOX_RUNNING; /* the first command is built together with the walls */
	s->started_ms = core_now_ms();
	if (insert(s, (struct store_call){ .is_lazy = true }, &f) < 0) {
		sbx_build_failed(s, &f);
		return;
	}
	sbx_change_end(s, NULL);
	gate_linked(s); /* its command is told first */
}

/* It is over: what was nobody else's goes too. */
static void end_with_work(struct sbx *s, const struct fail *f)
{
	struct wsx *own = s->life & LIFE_OWNS_WORK ? s->workspace : NULL;

	if (own)
		wsx_ref(own);
	sbx_change_end(s, f);
	sbx_free(s);
	if (own)
		wsx_discard(own);
}

static void inserted(void *arg, const struct store_answer *a)
{
	struct sbx *s = arg;
	struct fail f = { 0 };

	if (a->code == STORE_OK) {
		sbx_build(s);
		return;
	}
	if (a->code == STORE_EXISTS)
		fail_set(&f, FAIL_EXISTS, "a sandbox with this key exists");
	else
		fail_unstored(&f, "the sandbox could not be stored", a->code == STORE_FULL);
	f.is_retry_safe = true;
	end_with_work(s, &f);
}

/* What may outlive us is on record before it exists. One that dies with us is recorded together
 * with its command. */
static int record(struct sbx *s, struct fail *f)
{
	if (s->is_one_shot || s->is_service)
		return 0;
	return insert(s, (struct store_call){ .done = inserted, .arg = s }, f);
}

static void copy_trees(struct sbx *s, const struct sbx_ask *ask)
{
	assert(!ask->n_trees || ask->n_trees + s->spec.fs.len < FS_ENTRIES_MAX);
	s->trees = ask->n_trees ? mem_alloc(ask->n_trees * sizeof *s->trees) : NULL;
	for (size_t i = 0; i < ask->n_trees; i++) {
		s->trees[i] = ask->trees[i];
		s->trees[i].at = mem_strdup(ask->trees[i].at);
	}
	s->n_trees = ask->n_trees;
}

/* What fs workspace:AT shows. */
static int find_workspace(struct sbx *s, struct fail *f)
{
	size_t n = 0;

	for (size_t i = 0; i < s->spec.fs.len; i++)
		n += s->spec.fs.at[i].kind == FS_WORKSPACE;
	if (n != (s->spec.workspace ? 1 : 0))
		return fail_set(f, FAIL_INVALID, "fs: %s",
		                n == 0   ? "the workspace is mounted nowhere; write workspace:AT"
		                : n == 1 ? "workspace:AT needs workspace, an id or a key"
		                         : "a workspace is mounted once");
	if (!s->spec.workspace)
		return 0;
	s->workspace = wsx_find(s->core, s->tenant, s->spec.workspace, f);
	if (!s->workspace)
		return fail_set(f, FAIL_NOT_FOUND, "workspace: there is no %.128s",
		                s->spec.workspace);
	wsx_ref(s->workspace);
	return 0;
}

struct sbx *sbx_create(struct core *c, const struct sbx_ask *ask, sbx_done_fn *done, void *arg,
                       struct fail *f)
{
	struct sbx *s = sbx_new(c);

	id_make(s->id, "sb");
	s->entry.key = s->id;
	snprintf(s->tenant, sizeof s->tenant, "%s", ask->tenant);
	snprintf(s->boot_id, sizeof s->boot_id, "%s", c->boot_id);
	s->key = ask->key ? mem_strdup(ask->key) : NULL;
	s->labels = mem_strdup(ask->labels ? ask->labels : "{}");
	s->door = ask->door ? mem_strdup(ask->door) : NULL;
	s->life = ask->life;
	s->spec = *ask->spec;
	spec_init(ask->spec); /* moved */
	s->spec_text = mem_strdup(ask->spec_text ? ask->spec_text : "{}");
	s->ttl_ms = ask->ttl_ms ? ask->ttl_ms : c->config.ttl_ms;
	s->idle_ms = ask->idle_ms;
	s->created_ms = core_now_ms();
	s->expires_ms = s->ttl_ms ? s->created_ms + (int64_t)s->ttl_ms : 0;
	s->is_one_shot = ask->is_one_shot;
	s->is_service = ask->is_service;
	s->is_work_read_only = ask->is_work_read_only;
	copy_trees(s, ask);
	s->needs = s->is_service ? (struct quota){ 0 } : quota_needs(&s->spec);
	if (quota_admit(c, s->tenant, &s->needs, f) < 0 || ledger_admit(c, f) < 0) {
		sbx_free(s);
		return NULL;
	}
	roster_add(&c->sandboxes, &s->entry);
	struct enforced_texts texts = { 0 };
	int judged = enforced_judge(c, &s->spec, &texts, f);
	s->enforced = texts.by;
	s->note = texts.note;
	if (judged < 0 || find_workspace(s, f) < 0 || secret_admit(s, f) < 0 ||
	    image_resolve(s, f) < 0 || sbx_user_of(s, -1, f) < 0 ||
	    sbx_change_begin(s, done, arg, f) < 0 || record(s, f) < 0) {
		sbx_free(s);
		return NULL;
	}
	if (ask->client_fd >= 0)
		s->change.client_fd = fcntl(ask->client_fd, F_DUPFD_CLOEXEC, 3);
	c->stats.creates++;
	note_sandbox_created(s);
	if (s->is_one_shot || s->is_service)
		sbx_build(s);
	return s;
}

/* ---- what the monitor says ------------------------------------------------------------ */

struct start {
	struct core *core;
	char id[ID_SIZE];
};

static void start_kept(void *arg, struct wsx *w, const struct point_row *point,
                       const struct fail *f)
{
	struct start *o = arg;
	struct sbx *s = roster_find(&o->core->sandboxes, o->id);

	(void)w;
	(void)point;
	free(o);
	if (!s || !s->change.is_busy || s->change.is_kept)
		return; /* it has died meanwhile */
	s->change.is_kept = true;
	if (f)
		sbx_build_failed(s, f);
	else
		sbx_on_ready(s);
}

/* The names that its mounts need are in a root that is kept: nobody goes back behind them while it
 * is there (workspace_root.c). */
static void keep_start(struct sbx *s)
{
	const struct wsx_point_ask ask = { .label = "the start of a sandbox",
		                           .process = s->id,
		                           .is_start = true };
	struct start *o = mem_alloc(sizeof *o);

	*o = (struct start){ .core = s->core };
	memcpy(o->id, s->id, sizeof o->id);
	wsx_point(s->workspace, &ask, start_kept, o);
}

void sbx_on_ready(struct sbx *s)
{
	bool is_made = s->state == SANDBOX_CREATING || s->state == SANDBOX_REPLACING;

	if (s->change.is_busy && is_made && !gate_is_up(s)) {
		s->change.is_ready = true;
		return;
	}
	if (s->change.is_busy && is_made && !s->change.is_kept && !s->is_one_shot &&
	    wsx_wants_root(s)) {
		keep_start(s);
		return;
	}
	if (s->change.is_busy && is_made) {
		s->started_ms = core_now_ms();
		journal(JOURNAL_INFO, "a sandbox runs", "sandbox", s->id, "tenant", s->tenant,
		        "key", s->key, NULL);
		sbx_change_done(s, SANDBOX_RUNNING,
		                SANDBOX_SET_STARTED | SANDBOX_SET_SLOT | SANDBOX_SET_GENERATION);
		canary_plant(s);
		return;
	}
	/* Found again after a restart of ours: it tells what happened meanwhile. */
	(void)link_send(&s->link, CH_SYNC, 0, NULL, 0);
	gate_found(s);
}

void sbx_on_gated(struct sbx *s)
{
	if (s->change.is_ready)
		sbx_on_ready(s);
}

/* Whoever waits gets the sentence. A command that runs already waits for a network in vain. */
void sbx_on_gate_failed(struct sbx *s, const struct fail *f)
{
	struct err e = { 0 };

	err_new(&e, ERR_INTERNAL, "%s", f->detail);
	if (s->state == SANDBOX_CREATING || s->state == SANDBOX_REPLACING) {
		sbx_build_failed(s, f);
		return;
	}
	for (struct px *p = s->processes, *next; p && s->is_one_shot; p = next) {
		next = p->next;
		px_on_fail(p, &e);
	}
	if (s->is_one_shot)
		(void)link_send(&s->link, CH_CLOSE, 0, NULL, 0);
}

/* All it knows has been told. Whoever is still called running in the store is nobody's. What was
 * under way when we died goes on. */
void sbx_on_settled(struct sbx *s)
{
	enum sandbox_state is = s->link.ready.is_frozen ? SANDBOX_PAUSED : SANDBOX_RUNNING;

	px_lose_unknown(s);
	s->is_unsettled = false;
	timer_stop(&s->core->timers, &s->timer);
	switch (s->state) {
	case SANDBOX_STOPPING:
		(void)link_send(&s->link, CH_STOP, 0, NULL, 0);
		break;
	case SANDBOX_DELETING:
	case SANDBOX_REPLACING:
		(void)link_send(&s->link, CH_CLOSE, 0, NULL, 0);
		break;
	case SANDBOX_CREATING:
	case SANDBOX_RUNNING:
	case SANDBOX_PAUSED:
	case SANDBOX_UNREACHABLE:
		if (s->state != is)
			sbx_set_state(s, is, "");
		break;
	case SANDBOX_STOPPED:
	case SANDBOX_FAILED:
	case SANDBOX_GONE:
	case SANDBOX_STATE_COUNT:
		break;
	}
}

void sbx_on_fail(struct sbx *s, const struct err *e)
{
	struct fail f = { 0 };

	fail_err(&f, e);
	if (s->state == SANDBOX_CREATING || s->state == SANDBOX_REPLACING) {
		sbx_build_failed(s, &f);
		return;
	}
	for (struct px *p = s->processes, *next; p; p = next) {
		next = p->next;
		px_on_fail(p, e);
	}
}

static void gone_on_record(void *arg, const struct store_answer *a)
{
	struct sbx *s = arg;

	(void)a;
	struct fail f = s->change.fail;
	struct core *c = s->core;
	bool has_image = s->image_tree != 0;

	end_with_work(s, f.code == FAIL_NONE ? NULL : &f);
	if (has_image)
		images_sweep(c);
}

/* Before its row says gone: whoever dies in between finds rows of a sandbox that still is. */
static void drop_ports(struct sbx *s)
{
	struct err e = { 0 };

	if (!s->has_ports && !s->is_adopted)
		return;
	if (store_port_drop(s->core->store, s->id, 0, (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "sandbox", s->id, NULL);
	if (s->core->on_gone.tell)
		s->core->on_gone.tell(s->core->on_gone.arg, s->id);
}

/* Nothing of it is left. */
void sbx_be_gone(struct sbx *s, const char *reason)
{
	approvals_of_gone(s->core, s->id);
	px_lose_all(s, PROCESS_KILLED, reason);
	drop_ports(s);
	files_close(s);
	link_close(&s->link);
	wsx_detach(s);
	journal(s->is_one_shot ? JOURNAL_DEBUG : JOURNAL_INFO, "a sandbox is gone", "sandbox",
	        s->id, "tenant", s->tenant, "reason", reason, NULL);
	if (s->state != SANDBOX_DELETING)
		sbx_set_state(s, SANDBOX_DELETING, reason);
	s->state = SANDBOX_GONE;
	snprintf(s->reason, sizeof s->reason, "%s", reason);
	roster_remove(&s->core->sandboxes, &s->entry);
	sbx_update(s, SANDBOX_SET_STATE | SANDBOX_SET_ENDED,
	           (struct store_call){ .done = gone_on_record, .arg = s });
}

void sbx_on_end(struct sbx *s, bool is_expired, const char *reason)
{
	hear_no_more(s);
	if (s->is_adopted)
		maker_clean(s->core, s->slot);
	if (s->state == SANDBOX_DELETING && !s->is_adopted && !s->is_one_shot)
		return; /* the launcher tells when nothing of it is left */
	if (s->state == SANDBOX_DELETING || s->is_one_shot || is_expired) {
		sbx_be_gone(s, is_expired ? reason : "deleted");
		return;
	}
	if (s->state == SANDBOX_REPLACING) {
		px_lose_all(s, PROCESS_KILLED, "the sandbox was replaced");
		s->generation++;
		s->next_num = 0;
		sbx_build(s);
		return;
	}
	px_lose_all(s, PROCESS_LOST, reason);
	sbx_set_state(s, SANDBOX_STOPPED, reason[0] ? reason : "it ended by itself");
}

/* The monitor died. Its processes died with it; how they ended nobody saw, unless a log says. */
void sbx_on_lost(struct sbx *s)
{
	struct fail f = { 0 };

	hear_no_more(s);
	files_close(s);
	if (s->is_adopted)
		maker_clean(s->core, s->slot);
	if (s->state == SANDBOX_CREATING || s->state == SANDBOX_REPLACING) {
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the monitor of the sandbox died");
		f.is_retry_safe = true;
		sbx_build_failed(s, &f);
	} else if (s->state == SANDBOX_DELETING || s->is_one_shot) {
		sbx_be_gone(s, "deleted");
	} else {
		px_lose_all(s, PROCESS_LOST, "the monitor of the sandbox died");
		sbx_set_state(s, SANDBOX_STOPPED, "its monitor died; what was ephemeral is lost");
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the monitor of the sandbox died");
		f.is_retry_safe =
		    true; /* of what was asked for nothing is left that would be done twice */
		if (s->change.is_busy)
			sbx_change_end(s, &f);
	}
}

struct gone {
	const char *socket_name;
	struct sbx *found;
};

static void is_it(void *entry, void *arg)
{
	struct sbx *s = entry;
	struct gone *g = arg;

	if (strcmp(s->socket_name, g->socket_name) == 0)
		g->found = s;
}

/* Mostly its last word has told already; here whoever could not be reached is known to be dead. */
void sbx_on_gone(struct core *c, const char *socket_name)
{
	struct gone g = { .socket_name = socket_name };

	roster_each(&c->sandboxes, is_it, &g);
	if (g.found && g.found->state == SANDBOX_DELETING) {
		sbx_be_gone(g.found, "deleted");
		return;
	}
	if (!g.found || g.found->link.watch.fd >= 0 || g.found->state != SANDBOX_UNREACHABLE)
		return;
	px_lose_all(g.found, PROCESS_LOST, "the monitor of the sandbox died");
	sbx_set_state(g.found, SANDBOX_STOPPED, "its monitor died; what was ephemeral is lost");
}

void sbx_on_stopped(struct sbx *s)
{
	if (s->state == SANDBOX_STOPPING)
		sbx_change_done(s, SANDBOX_STOPPED, 0);
}

void sbx_on_frozen(struct sbx *s, bool is_frozen, int error)
{
	struct fail f = { 0 };

	/* A paused one is also thawed to be stopped: that is the other change. */
	if (!s->change.is_busy || s->state != (is_frozen ? SANDBOX_RUNNING : SANDBOX_PAUSED))
		return;
	if (error) {
		fail_set(&f, FAIL_UNENFORCEABLE, "pause: %s",
		         error == ENOTSUP ? "this host has no freezer for it" : strerror(error));
		sbx_change_end(s, &f);
		return;
	}
	sbx_change_done(s, is_frozen ? SANDBOX_PAUSED : SANDBOX_RUNNING, 0);
}
