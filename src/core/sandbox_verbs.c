/*
 * sandbox_verbs.c - what a caller may do with a sandbox, and what becomes of one after a restart.
 */
#include <fcntl.h>

#include "core/files.h"
#include "core/maker.h"
#include "core/net.h"
#include "core/process.h"
#include "core/quota.h"
#include "core/reserve.h"
#include "core/sandbox-internal.h"
#include "core/secret.h"
#include "core/workspace.h"
#include "io/journal.h"

#define ANSWER_MS 5000 /* for a monitor to say who it is */

/* ---- verbs --------------------------------------------------------------------------- */

int sbx_refuse_state(const struct sbx *s, const char *verb, struct fail *f)
{
	return fail_set(f, FAIL_CONFLICT, "cannot %s: the sandbox is %s%s%s", verb,
	                sandbox_state_name(s->state), s->reason[0] ? ": " : "", s->reason);
}

bool sbx_is_there(const struct sbx *s)
{
	return !s->is_spent && !s->is_service && s->state != SANDBOX_DELETING &&
	       s->state != SANDBOX_GONE && s->state != SANDBOX_FAILED;
}

int sbx_check_running(struct sbx *s, struct fail *f)
{
	if (s->state == SANDBOX_UNREACHABLE || s->is_unsettled) {
		fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
		f->is_retry_safe = true;
		return -1;
	}
	if (s->state != SANDBOX_RUNNING)
		return sbx_refuse_state(s, "work in it", f);
	sbx_touch(s);
	return 0;
}

static int order(struct sbx *s, enum channel_type type, struct fail *f)
{
	struct fail late = { 0 };

	if (link_send(&s->link, type, 0, NULL, 0) == 0)
		return 0;
	fail_set(&late, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
	late.is_retry_safe = true;
	*f = late;
	s->change.done = NULL; /* the caller is told right here */
	sbx_change_end(s, NULL);
	return -1;
}

int sbx_stop(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f)
{
	if (s->state != SANDBOX_RUNNING && s->state != SANDBOX_PAUSED)
		return sbx_refuse_state(s, "stop", f);
	if (sbx_change_begin(s, done, arg, f) < 0)
		return -1;
	if (s->state == SANDBOX_PAUSED)
		(void)link_send(&s->link, CH_THAW, 0, NULL, 0);
	sbx_set_state(s, SANDBOX_STOPPING, "");
	files_close(s);
	if (s->link.watch.fd < 0)
		return order(s, CH_STOP, f);
	sbx_end_order(s, CH_STOP);
	return 0;
}

/* Its walls still stand, or they are built anew. */
int sbx_start(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f)
{
	if (s->state != SANDBOX_STOPPED && s->state != SANDBOX_FAILED)
		return sbx_refuse_state(s, "start", f);
	if (quota_readmit(s, f) < 0 || (s->workspace && reserve_check(s->workspace, f) < 0) ||
	    sbx_change_begin(s, done, arg, f) < 0)
		return -1;
	if (s->workspace)
		reserve_watch(s->core);
	sbx_set_state(s, SANDBOX_CREATING, "");
	if (s->link.watch.fd >= 0) {
		sbx_change_done(s, SANDBOX_RUNNING, 0);
		return 0;
	}
	s->generation++;
	s->next_num = 0;
	sbx_build(s);
	return 0;
}

int sbx_pause(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f)
{
	if (s->state != SANDBOX_RUNNING)
		return sbx_refuse_state(s, "pause", f);
	if (!s->link.ready.can_freeze)
		return fail_set(f, FAIL_UNENFORCEABLE, "pause: this host has no freezer for it");
	return sbx_change_begin(s, done, arg, f) < 0 ? -1 : order(s, CH_FREEZE, f);
}

int sbx_resume(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f)
{
	if (s->state != SANDBOX_PAUSED)
		return sbx_refuse_state(s, "resume", f);
	return sbx_change_begin(s, done, arg, f) < 0 ? -1 : order(s, CH_THAW, f);
}

/* Never on doubt: who cannot be reached may still be at work. */
int sbx_replace(struct sbx *s, int client_fd, sbx_done_fn *done, void *arg, struct fail *f)
{
	if (s->state != SANDBOX_RUNNING && s->state != SANDBOX_PAUSED &&
	    s->state != SANDBOX_STOPPED && s->state != SANDBOX_FAILED)
		return sbx_refuse_state(s, "replace", f);
	if (quota_readmit(s, f) < 0 || sbx_change_begin(s, done, arg, f) < 0)
		return -1;
	s->change.client_fd = client_fd < 0 ? -1 : fcntl(client_fd, F_DUPFD_CLOEXEC, 3);
	sbx_set_state(s, SANDBOX_REPLACING, "");
	files_close(s);
	if (s->link.watch.fd >= 0) {
		sbx_end_order(s, CH_CLOSE);
		return 0;
	}
	s->generation++;
	s->next_num = 0;
	sbx_build(s);
	return 0;
}

int sbx_extend(struct sbx *s, uint64_t wall_ms, uint64_t ttl_ms, struct fail *f)
{
	if (sbx_check_running(s, f) < 0)
		return -1;
	if (ttl_ms) {
		s->ttl_ms = ttl_ms;
		s->expires_ms = core_now_ms() + (int64_t)ttl_ms;
		sbx_update(s, SANDBOX_SET_EXPIRES, (struct store_call){ 0 });
	}
	if (wall_ms && link_send(&s->link, CH_EXTEND, 0, &wall_ms, sizeof wall_ms) < 0)
		return fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
	return 0;
}

bool sbx_end_due(struct sbx *s)
{
	struct fail f = { 0 };
	bool is_up = s->state == SANDBOX_RUNNING || s->state == SANDBOX_PAUSED;

	if (s->at_end == AT_END_KEEP || s->change.is_busy)
		return false;
	if (s->at_end == AT_END_DELETE)
		return sbx_delete(s, NULL, NULL, &f) == 0; /* refused: tried again */
	s->at_end = AT_END_KEEP;
	if (is_up && sbx_stop(s, NULL, NULL, &f) < 0)
		s->at_end = AT_END_STOP;
	return false;
}

void sbx_end_after(struct sbx *s, int at_end)
{
	if (at_end > s->at_end)
		s->at_end = at_end;
	(void)sbx_end_due(s); /* else at the next look */
}

void sbx_rest(struct sbx *s)
{
	s->expires_ms = 0;
	sbx_update(s, SANDBOX_SET_EXPIRES, (struct store_call){ 0 });
}

void sbx_set_door(struct sbx *s, const char *door)
{
	free(s->door);
	s->door = mem_strdup(door);
	sbx_update(s, SANDBOX_SET_DOOR, (struct store_call){ 0 });
}

/* ---- usage --------------------------------------------------------------------------- */

struct sbx_asker {
	struct sbx_asker *next;
	sbx_usage_fn *done;
	void *arg;
};

int sbx_usage(struct sbx *s, sbx_usage_fn *done, void *arg, struct fail *f)
{
	if (link_send(&s->link, CH_USAGE, 0, NULL, 0) < 0)
		return fail_set(f, FAIL_CONFLICT, "the sandbox is %s",
		                sandbox_state_name(s->state));
	struct sbx_asker *a = mem_alloc(sizeof *a);
	*a = (struct sbx_asker){ s->askers, done, arg };
	s->askers = a;
	return 0;
}

void sbx_tell_askers(struct sbx *s, const struct channel_usage *u)
{
	while (s->askers) {
		struct sbx_asker *a = s->askers;

		s->askers = a->next;
		a->done(a->arg, u);
		free(a);
	}
}

void sbx_on_usage(struct sbx *s, const void *bytes, size_t n)
{
	struct channel_usage u;

	if (n != sizeof u)
		return;
	memcpy(&u, bytes, sizeof u);
	sbx_tell_askers(s, &u);
}

/* ---- after a restart of ours ---------------------------------------------------------- */

struct sbx *sbx_adopt(struct core *c, const struct sandbox_row *row)
{
	struct sbx *s = sbx_new(c);
	struct err e = { 0 };
	struct fail f = { 0 };

	snprintf(s->id, sizeof s->id, "%s", row->id);
	snprintf(s->tenant, sizeof s->tenant, "%s", row->tenant);
	snprintf(s->boot_id, sizeof s->boot_id, "%s", row->boot_id ? row->boot_id : "");
	snprintf(s->socket_name, sizeof s->socket_name, "%s", row->socket ? row->socket : "");
	snprintf(s->reason, sizeof s->reason, "%s", row->state_reason ? row->state_reason : "");
	s->entry.key = s->id;
	s->key = row->key ? mem_strdup(row->key) : NULL;
	s->labels = mem_strdup(row->labels ? row->labels : "{}");
	s->door = row->door ? mem_strdup(row->door) : NULL;
	s->life = (uint32_t)row->life;
	s->spec_text = mem_strdup(row->spec);
	s->enforced = mem_strdup(row->enforced ? row->enforced : "{}");
	s->generation = row->generation;
	s->state = row->state;
	s->slot = (int)row->slot;
	s->is_adopted = true;
	s->image_tree = (uint64_t)row->image_tree;
	s->created_ms = row->created_ms;
	s->started_ms = row->started_ms;
	s->expires_ms = row->expires_ms;
	s->idle_ms = (uint64_t)row->idle_ms;
	/* What was accepted once is accepted again, unless the program has changed its mind. */
	if (spec_json(&s->spec, row->spec, strlen(row->spec), &e) < 0)
		journal(JOURNAL_ERROR, "the spec of a sandbox is not understood", "sandbox", s->id,
		        "reason", e.msg, NULL);
	spec_default(&s->spec, c->config.defaults);
	spec_resolve(&s->spec);
	/* What it names was accepted once, and stays so under bounds that came later. */
	(void)!spec_bound(&s->spec, c->config.most, &e);
	s->needs = (struct quota){ .of = { [QUOTA_SANDBOXES] = 1,
		                           [QUOTA_CPU] = (uint64_t)row->cpu_milli,
		                           [QUOTA_MEM] = (uint64_t)row->mem_bytes,
		                           [QUOTA_PIDS] = (uint64_t)row->pids,
		                           [QUOTA_DISK] = (uint64_t)row->disk_bytes } };
	(void)sbx_user_of(s, -1, &f);
	roster_add(&c->sandboxes, &s->entry);
	if (row->workspace)
		wsx_adopt(s, row->workspace);
	secret_fill_env(s, &s->spec);
	return s;
}

/* What was under way is settled towards the safe side: nothing is left of a creation or a deletion
 * whose monitor is dead. */
void sbx_settle_dead(struct sbx *s, const char *reason)
{
	net_on_lost(s);
	wsx_detach(s);
	switch (s->state) {
	case SANDBOX_CREATING:
		sbx_be_gone(s, "the daemon was restarted while it was made");
		break;
	case SANDBOX_DELETING:
		sbx_be_gone(s, "deleted");
		break;
	case SANDBOX_RUNNING:
	case SANDBOX_PAUSED:
	case SANDBOX_STOPPING:
	case SANDBOX_REPLACING:
	case SANDBOX_UNREACHABLE:
		sbx_set_state(s, SANDBOX_STOPPED, reason);
		break;
	case SANDBOX_FAILED:
	case SANDBOX_STOPPED:
	case SANDBOX_GONE:
	case SANDBOX_STATE_COUNT:
		break;
	}
}

/* It has an open door; whether somebody is behind it, it has to show. */
void sbx_await(struct sbx *s)
{
	s->is_unsettled = true;
	timer_set(&s->core->timers, &s->timer, ANSWER_MS);
}
