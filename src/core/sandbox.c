#include "core/sandbox-internal.h"

#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/enforced.h"
#include "core/files.h"
#include "core/gate.h"
#include "core/image.h"
#include "core/net.h"
#include "core/notes.h"
#include "core/policy.h"
#include "core/quota.h"
#include "core/secret.h"
#include "core/shells.h"
#include "core/tripped.h"
#include "engine/plan.h"
#include "io/journal.h"

#define CHANGE_MS 30000 /* a change that takes longer is given up */

/* ---- the object ---------------------------------------------------------------------- */

static void change_late(struct timer *t);

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
	sbx_drop_deleters(s);
	sbx_end_over(s);
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

	sbx_gone_on_record(s, &(struct store_answer){ .code = STORE_OK });
}

/* As if there were a row: an answer that frees it comes in the next turn, as from the store. */
static void update_service(struct sbx *s, struct store_call call)
{
	const struct store_answer ok = { .code = STORE_OK };

	if (call.done == sbx_gone_on_record) {
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
	s->change.is_recorded_last = false;
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

	s->change.is_busy = s->change.is_recorded_last = false;
	s->change.done = NULL;
	timer_stop(&s->core->timers, &s->timer);
	fd_close(&s->change.client_fd);
	sbx_end_over(s);
	if (done)
		done(s->change.arg, s, f);
	sbx_tell_deleters(s, f);
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

enum sandbox_state sbx_state_on_record(const struct sbx *s)
{
	return s->change.is_recorded_last ? s->change.before : s->state;
}

void sbx_change_done(struct sbx *s, enum sandbox_state state, uint32_t fields)
{
	s->change.before = s->state;
	s->change.is_recorded_last = true;
	s->state = state;
	s->reason[0] = '\0';
	sbx_update(s, fields | SANDBOX_SET_STATE,
	           (struct store_call){ .done = on_record, .arg = s });
}

/* Its monitor will say no more, so nobody waits for that. */
void sbx_hear_no_more(struct sbx *s)
{
	net_on_lost(s);
	gate_close(s);
	tripped_close(s);
	link_close(&s->link);
	wsx_detach(s);
	s->is_unsettled = false;
	s->probed_ms = 0;
	sbx_end_over(s);
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
	sbx_hear_no_more(s);
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

	if (sbx_end_late(s))
		return;
	fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
	if (s->state == SANDBOX_CREATING || s->state == SANDBOX_REPLACING) {
		sbx_kill(s);
		sbx_build_failed(s, &f);
		return;
	}
	s->is_killed = false; /* it may be tried again */
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
		return fail_unsent(f, &e);
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
	s->is_adopted = s->is_unsettled = s->is_killed = false; /* whatever was before it */
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
void sbx_end_with_work(struct sbx *s, const struct fail *f)
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
	sbx_end_with_work(s, &f);
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
	core_made(c, s->id);
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
