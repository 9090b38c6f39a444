/*
 * sandbox_heard.c - what a monitor tells of its sandbox, or its end does: proved, ready, failed,
 * stopped, frozen, ended, lost.
 */
#include "core/approval.h"
#include "core/canary.h"
#include "core/enforced.h"
#include "core/files.h"
#include "core/gate.h"
#include "core/image.h"
#include "core/sandbox-internal.h"
#include "core/tripped.h"
#include "core/workspace.h"
#include "io/journal.h"
#include "store/ports.h"

void sbx_on_proved(struct sbx *s, const void *bytes, size_t n)
{
	struct enforced_texts texts = { 0 };
	uint32_t walls;

	if (n != sizeof walls)
		return;
	memcpy(&walls, bytes, n);
	enforced_proved(s->core, &s->spec, walls, &texts);
	free(texts.note);
	if (s->enforced && strcmp(s->enforced, texts.by) == 0) {
		free(texts.by);
		return;
	}
	free(s->enforced);
	s->enforced = texts.by;
	sbx_update(s, SANDBOX_SET_ENFORCED, (struct store_call){ 0 });
}

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
		sbx_end_order(s, CH_STOP);
		break;
	case SANDBOX_DELETING:
	case SANDBOX_REPLACING:
		sbx_end_order(s, CH_CLOSE);
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

void sbx_gone_on_record(void *arg, const struct store_answer *a)
{
	struct sbx *s = arg;

	(void)a;
	struct fail f = s->change.fail;
	struct core *c = s->core;
	bool has_image = s->image_tree != 0;

	sbx_end_with_work(s, f.code == FAIL_NONE ? NULL : &f);
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
	           (struct store_call){ .done = sbx_gone_on_record, .arg = s });
}

void sbx_on_end(struct sbx *s, bool is_expired, const char *reason)
{
	sbx_hear_no_more(s);
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
	const char *why = sbx_why_lost(s);
	struct fail f = { 0 };

	sbx_hear_no_more(s);
	files_close(s);
	if (s->is_adopted)
		maker_clean(s->core, s->slot);
	if (s->state == SANDBOX_CREATING || s->state == SANDBOX_REPLACING) {
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "%s", why);
		f.is_retry_safe = true;
		sbx_build_failed(s, &f);
	} else if (s->state == SANDBOX_DELETING || s->is_one_shot) {
		if (s->is_one_shot)
			px_lose_all(s, PROCESS_LOST, why);
		sbx_be_gone(s, "deleted");
	} else {
		px_lose_all(s, PROCESS_LOST, why);
		sbx_set_state(s, SANDBOX_STOPPED,
		              s->is_killed
		                  ? "its monitor did not answer; what was ephemeral is lost"
		                  : "its monitor died; what was ephemeral is lost");
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "%s", why);
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
