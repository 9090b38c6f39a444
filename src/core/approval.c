#include "core/approval-internal.h"

#include "core/hook.h"
#include "core/policy.h"
#include "io/journal.h"

#define REJOIN_MS 15000 /* for who asked the daemon before us to ask again */
#define STANDS_MS_MAX (10ull * 365 * 86400 * 1000)

/* Who waits: for the answer, or for his decision to be on record. */
struct waiter {
	struct waiter *next;
	approval_done_fn *done;
	approval_decided_fn *decided;
	void *arg;
};

struct approval {
	struct roster_entry entry; /* first; the key is row.id */
	struct core *core;
	struct arena arena;
	struct approval_row row;
	struct waiter *askers, *deciders;
	struct timer timer;
	uint64_t until_ms; /* monotonic */
	bool is_deciding;  /* on its way to the ledger and the store */
	bool is_over;      /* and only the store does not know yet */
};

/* What was decided before: told in the next turn of the loop. */
struct told {
	struct timer timer; /* first */
	struct core *core;
	struct told *next;
	struct arena arena;
	struct approval_row row;
	struct waiter waiter; /* without a function: cancelled */
};

struct approvals {
	struct roster open;
	struct told *told;
	struct approval_watch *watches;
};

static approval_effect_fn *const effects[APPROVAL_KINDS] = {
	[APPROVAL_POLICY] = policy_allowed,
	[APPROVAL_WALL] = sbx_wall_allowed,
};

static approval_effect_fn *effect_of(const struct approval_row *row)
{
	enum approval_kind kind = approval_kind_of(row->kind);

	return kind < APPROVAL_KINDS ? effects[kind] : NULL;
}

bool approval_is_allowed(const struct approval_row *row)
{
	return row->state == APPROVAL_ALLOWED;
}

/* ---- the ledger --------------------------------------------------------------------------- */

static void note(struct core *c, enum ledger_kind kind, const struct approval_row *r)
{
	const struct ledger_who who = approval_who(c, r);

	ledger_note(c, kind, &who, approval_record(r));
}

/* ---- who waits --------------------------------------------------------------------------- */

static void wait_for(struct waiter **list, const struct waiter *w)
{
	struct waiter *copy = mem_alloc(sizeof *copy);

	*copy = *w;
	copy->next = *list;
	*list = copy;
}

/* One by one: who is told may cancel others. */
static void tell(struct waiter **list, const struct approval_row *row, const struct fail *f)
{
	while (*list) {
		struct waiter *first = *list, w = *first;

		*list = w.next;
		free(first);
		if (w.done)
			w.done(w.arg, row);
		if (w.decided)
			w.decided(w.arg, row, f);
	}
}

static bool leave(struct waiter **list, const void *arg)
{
	bool has_left = false;

	for (struct waiter **at = list; *at;) {
		struct waiter *w = *at;

		if (w->arg != arg) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
		has_left = true;
	}
	return has_left;
}

static void tell_watches(struct core *c)
{
	struct approval_watch *next;

	for (struct approval_watch *w = c->approvals->watches; w; w = next) {
		next = w->next;
		w->changed(w);
	}
}

void approval_watch_add(struct core *c, struct approval_watch *w)
{
	w->next = c->approvals->watches;
	c->approvals->watches = w;
}

void approval_watch_remove(struct core *c, struct approval_watch *w)
{
	for (struct approval_watch **at = c->approvals ? &c->approvals->watches : NULL; at && *at;
	     at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			return;
		}
	}
}

/* ---- told in the next turn --------------------------------------------------------------- */

static void told_free(struct told *t)
{
	struct told **at = &t->core->approvals->told;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	timer_stop(&t->core->timers, &t->timer);
	arena_done(&t->arena);
	free(t);
}

static void told_fired(struct timer *timer)
{
	struct told *t = (struct told *)(void *)timer;
	struct waiter w = t->waiter;

	if (w.done)
		w.done(w.arg, &t->row);
	if (w.decided)
		w.decided(w.arg, &t->row, NULL);
	told_free(t);
}

static void tell_soon(struct core *c, const struct approval_row *row, const struct waiter *w)
{
	struct told *t = mem_alloc(sizeof *t);

	*t = (struct told){
		.timer.fired = told_fired, .core = c, .next = c->approvals->told, .waiter = *w
	};
	approval_copy_row(&t->arena, &t->row, row);
	c->approvals->told = t;
	timer_set(&c->timers, &t->timer, 0);
}

/* ---- life -------------------------------------------------------------------------------- */

static void timer_fired(struct timer *t);

static struct approval *approval_new(struct core *c, const struct approval_row *row)
{
	struct approval *a = mem_alloc(sizeof *a);
	int64_t left = row->until_ms - core_now_ms();

	*a = (struct approval){ .core = c, .timer.fired = timer_fired };
	approval_copy_row(&a->arena, &a->row, row);
	a->entry.key = a->row.id;
	a->until_ms = core_mono_ms() + (left > 0 ? (uint64_t)left : 0);
	roster_add(&c->approvals->open, &a->entry);
	return a;
}

static void approval_free(struct approval *a)
{
	roster_remove(&a->core->approvals->open, &a->entry);
	timer_stop(&a->core->timers, &a->timer);
	arena_done(&a->arena);
	free(a);
}

static void wait_on(struct approval *a)
{
	uint64_t now = core_mono_ms();

	timer_set(&a->core->timers, &a->timer, a->until_ms > now ? a->until_ms - now : 0);
}

/* The store has numbered the change. */
static void learn_rev(struct approval *a)
{
	AUTO(arena_done) struct arena arena = { 0 };
	struct approval_row row;
	struct err e = { 0 };

	if (store_approval_get(a->core->store, NULL, a->row.id, &arena, &row, &e) == 0)
		a->row.rev = row.rev;
}

static void end_stored(void *arg, const struct store_answer *answer)
{
	struct approval *a = arg;
	struct core *c = a->core;

	if (answer->code != STORE_OK)
		journal(JOURNAL_ERROR, "the end of an approval is not on record", "approval",
		        a->row.id, "reason", answer->err->msg, NULL);
	learn_rev(a);
	hook_tell(c, &a->row);
	approval_free(a);
	tell_watches(c);
}

/* Nobody decided. That is a no, and needs nobody's leave. */
static void end(struct approval *a, enum approval_state state, const char *reason)
{
	struct store_call call = { .done = end_stored, .arg = a };
	struct err e = { 0 };

	if (a->is_over || a->is_deciding)
		return;
	a->is_over = true;
	a->row.state = state;
	a->row.reason = arena_strdup(&a->arena, reason);
	a->row.decided_ms = core_now_ms();
	timer_stop(&a->core->timers, &a->timer);
	note(a->core, LEDGER_APPROVAL_DECIDED, &a->row);
	tell(&a->askers, &a->row, NULL);
	if (store_approval_decide(a->core->store, &a->row, call, &e) == 0)
		return;
	journal(JOURNAL_ERROR, e.msg, "approval", a->row.id, NULL);
	approval_free(a); /* the next daemon finds it, and ends it again */
}

static void timer_fired(struct timer *t)
{
	struct approval *a =
	    (struct approval *)(void *)((char *)t - offsetof(struct approval, timer));

	if (core_mono_ms() >= a->until_ms)
		end(a, APPROVAL_EXPIRED, "nobody answered in time");
	else if (!a->askers && !a->row.lasting)
		end(a, APPROVAL_WITHDRAWN, "the daemon was restarted, and nobody asks any more");
	else
		wait_on(a);
}

/* ---- asking ------------------------------------------------------------------------------ */

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

struct search {
	const struct approval_row *like;
	bool is_single;
	struct approval *same;
	size_t n_sandbox, n_tenant;
};

static void compare(void *entry, void *arg)
{
	struct approval *a = entry;
	struct search *s = arg;
	const struct approval_row *like = s->like;

	if (a->is_over || strcmp(a->row.tenant, like->tenant) != 0)
		return;
	s->n_tenant++;
	if (!is_same(a->row.sandbox, like->sandbox))
		return;
	s->n_sandbox += like->sandbox != NULL;
	if (is_same(a->row.workspace, like->workspace) && strcmp(a->row.kind, like->kind) == 0 &&
	    strcmp(a->row.what, like->what) == 0 &&
	    (!s->is_single || strcmp(a->row.detail, like->detail) == 0))
		s->same = a;
}

static void inserted(void *arg, const struct store_answer *answer)
{
	struct approval *a = arg;
	struct core *c = a->core;

	if (answer->code == STORE_OK) {
		learn_rev(a);
		if (!a->is_over && !a->is_deciding)
			hook_tell(c, &a->row);
		tell_watches(c);
		return;
	}
	if (a->is_over || a->is_deciding)
		return; /* that finds the same */
	journal(JOURNAL_ERROR, "an approval could not be stored", "reason", answer->err->msg, NULL);
	a->is_over = true;
	a->row.state = APPROVAL_WITHDRAWN;
	a->row.reason = "it could not be stored";
	tell(&a->askers, &a->row, NULL);
	approval_free(a);
}

/* The row of what is asked; its texts lie in the arena. */
static void row_of(const struct approval_ask *ask, struct arena *a, struct approval_row *out)
{
	uint64_t ms = ask->timeout_ms ? ask->timeout_ms : APPROVAL_MS;
	int64_t now = core_now_ms();
	AUTO(json_decrefp)
	json_t *detail = ask->detail ? json_deep_copy(ask->detail) : json_object();

	*out =
	    (struct approval_row){ .tenant = ask->tenant,
		                   .state = APPROVAL_PENDING,
		                   .kind = approval_kind_name(ask->kind),
		                   .sandbox = approval_copy(a, ask->sandbox),
		                   .workspace = approval_copy(a, ask->workspace),
		                   .process = approval_copy(a, ask->process),
		                   .what = approval_what(a, ask, detail),
		                   .why = approval_plain(a, ask->why),
		                   .suggestion = approval_plain(a, ask->suggestion),
		                   .lasting = ask->is_lasting,
		                   .created_ms = now,
		                   .until_ms =
		                       now + (int64_t)(ms < APPROVAL_MS_MAX ? ms : APPROVAL_MS_MAX),
		                   .decided_ms = now };
	AUTO(freep) char *text = json_dumps(detail, JSON_COMPACT | JSON_ENSURE_ASCII);

	out->detail = arena_strdup(a, text);
}

/* Somebody decided it before: whoever asks the same gets the same answer. */
static bool is_covered(struct core *c, const struct approval_row *like, const struct waiter *w,
                       char id[ID_SIZE])
{
	AUTO(arena_done) struct arena a = { 0 };
	struct approval_row found;
	struct err e = { 0 };

	if (store_approval_standing(c->store, like, &a, &found, &e) < 0) {
		if (e.kind != ERR_NOT_FOUND)
			journal(JOURNAL_ERROR, e.msg, NULL);
		return false;
	}
	snprintf(id, ID_SIZE, "%s", found.id);
	if (w->done)
		tell_soon(c, &found, w);
	return true;
}

static void join(struct approval *a, const struct waiter *w, char id[ID_SIZE])
{
	snprintf(id, ID_SIZE, "%s", a->row.id);
	if (w->done)
		wait_for(&a->askers, w);
	if (!a->is_deciding)
		wait_on(a);
}

static int ask_new(struct core *c, struct approval_row *row, const struct waiter *w,
                   char id[ID_SIZE], struct fail *f)
{
	struct err e = { 0 };

	if (ledger_admit(c, f) < 0)
		return -1;
	id_make(id, "ap");
	row->id = id;
	row->decided_ms = 0;
	struct approval *a = approval_new(c, row);
	struct store_call call = { .done = inserted, .arg = a };

	if (store_approval_insert(c->store, row, call, &e) < 0) {
		approval_free(a);
		return fail_err(f, &e);
	}
	note(c, LEDGER_APPROVAL_ASKED, &a->row);
	journal(JOURNAL_DEBUG, "an approval is asked for", "approval", id, "kind", row->kind, NULL);
	join(a, w, id);
	return 0;
}

int approval_ask(struct core *c, const struct approval_ask *ask, approval_done_fn *done, void *arg,
                 char id[ID_SIZE], struct fail *f)
{
	AUTO(arena_done) struct arena arena = { 0 };
	const struct waiter w = { .done = done, .arg = arg };
	struct approval_row row;

	row_of(ask, &arena, &row);
	if (!row.what || (!done && !ask->is_lasting))
		return fail_set(f, FAIL_INVALID, "what is asked for, and who waits for it?");
	if (is_covered(c, &row, &w, id))
		return 0;
	struct search s = { .like = &row, .is_single = ask->is_single };

	roster_each(&c->approvals->open, compare, &s);
	if (s.same) {
		join(s.same, &w, id);
		return 0;
	}
	if (s.n_sandbox >= APPROVALS_PER_SANDBOX || s.n_tenant >= APPROVALS_PER_TENANT)
		return fail_set(f, FAIL_QUOTA, "%zu approvals wait already",
		                s.n_sandbox >= APPROVALS_PER_SANDBOX ? s.n_sandbox : s.n_tenant);
	return ask_new(c, &row, &w, id, f);
}

/* ---- who goes ---------------------------------------------------------------------------- */

struct gathered {
	const void *arg;
	const char *sandbox;
	VEC(char *) ids;
};

static void end_all(struct core *c, struct gathered *g, const char *reason)
{
	for (size_t i = 0; i < g->ids.len; i++) {
		struct approval *a = roster_find(&c->approvals->open, g->ids.at[i]);

		if (a)
			end(a, APPROVAL_WITHDRAWN, reason);
		free(g->ids.at[i]);
	}
	vec_done(&g->ids);
}

static void gather_left(void *entry, void *arg)
{
	struct approval *a = entry;
	struct gathered *g = arg;

	leave(&a->deciders, g->arg);
	if (leave(&a->askers, g->arg) && !a->askers && !a->row.lasting)
		vec_push(&g->ids, mem_strdup(a->row.id));
}

void approval_cancel(struct core *c, const void *arg)
{
	struct gathered g = { .arg = arg };

	if (!c->approvals)
		return;
	for (struct told *t = c->approvals->told; t; t = t->next)
		if (t->waiter.arg == arg)
			t->waiter = (struct waiter){ 0 };
	roster_each(&c->approvals->open, gather_left, &g);
	end_all(c, &g, "nobody waits for it any more");
}

static void gather_of(void *entry, void *arg)
{
	struct approval *a = entry;
	struct gathered *g = arg;

	if (is_same(a->row.sandbox, g->sandbox))
		vec_push(&g->ids, mem_strdup(a->row.id));
}

void approvals_of_gone(struct core *c, const char *sandbox)
{
	struct gathered g = { .sandbox = sandbox };

	if (!c->approvals || c->is_closing)
		return;
	roster_each(&c->approvals->open, gather_of, &g);
	end_all(c, &g, "the sandbox is gone");
}

static void gather_rules_of(void *entry, void *arg)
{
	struct approval *a = entry;

	if (strcmp(a->row.kind, approval_kind_name(APPROVAL_POLICY)) == 0)
		gather_of(entry, arg);
}

void approvals_of_changed(struct core *c, const char *sandbox)
{
	struct gathered g = { .sandbox = sandbox };

	if (!c->approvals || c->is_closing)
		return;
	roster_each(&c->approvals->open, gather_rules_of, &g);
	end_all(c, &g, "the rules have changed since it was asked");
}

const struct approval_row *approval_find(const struct core *c, const char *id)
{
	const struct approval *a = roster_find(&c->approvals->open, id);

	return a ? &a->row : NULL;
}

/* ---- deciding ---------------------------------------------------------------------------- */

/* As it was before; whoever wants to may decide again. */
static void undecide(struct approval *a, const char *why)
{
	struct fail f = { 0 };

	fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "nothing was decided: %s", why);
	f.is_retry_safe = true;
	a->is_deciding = false;
	a->row.state = APPROVAL_PENDING;
	a->row.scope = a->row.actor = a->row.note = a->row.reason = NULL;
	a->row.decided_ms = a->row.expires_ms = 0;
	tell(&a->deciders, &a->row, &f);
	wait_on(a);
}

static void decision_stored(void *arg, const struct store_answer *answer)
{
	struct approval *a = arg;
	struct core *c = a->core;

	if (answer->code != STORE_OK) {
		journal(JOURNAL_ERROR, answer->err->msg, "approval", a->row.id, NULL);
		undecide(a, "the store does not take it");
		return;
	}
	a->is_over = true;
	learn_rev(a);
	journal(JOURNAL_INFO, "an approval is decided", "approval", a->row.id, "state",
	        approval_state_name(a->row.state), "actor", a->row.actor, NULL);
	if (effect_of(&a->row) && approval_is_allowed(&a->row))
		effect_of (&a->row)(c, &a->row);
	tell(&a->deciders, &a->row, NULL);
	tell(&a->askers, &a->row, NULL);
	hook_tell(c, &a->row);
	approval_free(a);
	tell_watches(c);
}

static void applied(void *arg, const struct store_answer *answer)
{
	(void)answer; /* then it is done once more after a restart, which changes nothing */
	tell_watches(arg);
}

void approval_applied(struct core *c, const char *id)
{
	struct store_call call = { .done = applied, .arg = c };
	struct err e = { 0 };

	if (c->store && store_approval_applied(c->store, id, core_now_ms(), call, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "approval", id, NULL);
}

static void decision_noted(void *arg, bool is_on_disk)
{
	struct approval *a = arg;
	struct store_call call = { .done = decision_stored, .arg = a, .is_durable = true };
	struct err e = { 0 };

	if (!is_on_disk) {
		undecide(a, "the ledger does not take it");
		return;
	}
	if (store_approval_decide(a->core->store, &a->row, call, &e) == 0)
		return;
	journal(JOURNAL_ERROR, e.msg, "approval", a->row.id, NULL);
	undecide(a, "the store does not take it");
}

static bool is_so_decided(const struct approval_row *row, const struct approval_answer *answer)
{
	return row->state == (answer->is_allowed ? APPROVAL_ALLOWED : APPROVAL_DENIED) &&
	       is_same(row->scope, approval_scope_name(answer->scope));
}

static int say_late(const struct approval_row *row, struct fail *f)
{
	return fail_set(f, FAIL_CONFLICT, "%s is %s%s%.200s: nothing was changed", row->id,
	                approval_state_name(row->state), row->reason ? ", " : "",
	                row->reason ? row->reason : "");
}

static int check_answer(const struct approval_answer *answer, const struct approval_row *row,
                        struct fail *f)
{
	if (answer->scope != FOR_ONCE && effect_of(row))
		return fail_set(f, FAIL_INVALID, "scope: this is decided once");
	if (answer->scope == FOR_ONCE && answer->for_ms)
		return fail_set(f, FAIL_INVALID, "for: what is decided once does not stand");
	if (answer->for_ms > STANDS_MS_MAX)
		return fail_set(f, FAIL_INVALID, "for: at most ten years");
	if (answer->scope == FOR_SANDBOX && !row->sandbox)
		return fail_set(f, FAIL_INVALID, "scope: it is not a sandbox that asks");
	if (answer->scope == FOR_WORKSPACE && !row->workspace)
		return fail_set(f, FAIL_INVALID, "scope: who asks has no workspace");
	return answer->is_allowed ? approval_was_seen(row, answer->seen, f) : 0;
}

static int64_t stands_until(const struct approval_answer *answer, int64_t now_ms)
{
	if (answer->scope == FOR_ONCE)
		return 0;
	return now_ms + (int64_t)(answer->for_ms ? answer->for_ms : APPROVAL_STANDS_MS);
}

static void begin(struct approval *a, const struct approval_answer *answer)
{
	a->row.state = answer->is_allowed ? APPROVAL_ALLOWED : APPROVAL_DENIED;
	a->row.scope = approval_scope_name(answer->scope);
	a->row.actor = approval_copy(&a->arena, answer->actor);
	a->row.note = approval_plain(&a->arena, answer->note);
	a->row.decided_ms = core_now_ms();
	a->row.expires_ms = stands_until(answer, a->row.decided_ms);
	a->is_deciding = true;
	timer_stop(&a->core->timers, &a->timer);
	const struct ledger_who who = approval_who(a->core, &a->row);

	ledger_commit(a->core, LEDGER_APPROVAL_DECIDED, &who, approval_record(&a->row),
	              decision_noted, a);
}

/* One that the store has: it is over. */
static int decide_again(struct core *c, const struct approval_answer *answer,
                        const struct waiter *w, struct fail *f)
{
	AUTO(arena_done) struct arena arena = { 0 };
	struct approval_row row;
	struct err e = { 0 };

	if (store_approval_get(c->store, answer->tenant, answer->id, &arena, &row, &e) < 0)
		return e.kind == ERR_NOT_FOUND
		           ? fail_set(f, FAIL_NOT_FOUND, "there is no such approval")
		           : fail_err(f, &e);
	if (!is_so_decided(&row, answer))
		return say_late(&row, f);
	tell_soon(c, &row, w);
	return 0;
}

int approval_decide(struct core *c, const struct approval_answer *answer, approval_decided_fn *done,
                    void *arg, struct fail *f)
{
	const struct waiter w = { .decided = done, .arg = arg };
	struct approval *a = roster_find(&c->approvals->open, answer->id);

	if (a && answer->tenant && strcmp(a->row.tenant, answer->tenant) != 0)
		return fail_set(f, FAIL_NOT_FOUND, "there is no such approval");
	if (!a)
		return decide_again(c, answer, &w, f);
	if ((a->is_over || a->is_deciding) && !is_so_decided(&a->row, answer))
		return say_late(&a->row, f);
	if (a->is_over) {
		tell_soon(c, &a->row, &w);
		return 0;
	}
	if (!a->is_deciding) {
		if (check_answer(answer, &a->row, f) < 0)
			return -1;
		begin(a, answer);
	}
	wait_for(&a->deciders, &w);
	return 0;
}

/* ---- begin and end of the daemon --------------------------------------------------------- */

static void take_up(struct core *c, const struct approval_row *row)
{
	struct approval *a = approval_new(c, row);
	uint64_t now = core_mono_ms();
	uint64_t left = a->until_ms > now ? a->until_ms - now : 0;

	if (!row->lasting && left > REJOIN_MS)
		left = REJOIN_MS;
	timer_set(&c->timers, &a->timer, left);
	hook_tell(c, &a->row); /* the daemon before us may not have come to it */
}

/* Allowed, and then the daemon died. */
static int apply_rest(struct core *c, enum approval_kind kind, struct err *e)
{
	AUTO(arena_done) struct arena arena = { 0 };
	struct approval_query q = { .page = { .is_all_tenants = true, .limit = STORE_LIST_MAX },
		                    .states = 1u << APPROVAL_ALLOWED,
		                    .kind = approval_kind_name(kind),
		                    .is_unapplied_only = true };
	struct approval_list list;

	if (store_approval_list(c->store, &q, &arena, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		effects[kind](c, &list.rows[i]);
	return 0;
}

void approvals_ready(struct core *c)
{
	struct err e = { 0 };

	for (enum approval_kind k = 0; k < APPROVAL_KINDS; k++)
		if (effects[k] && apply_rest(c, k, &e) < 0)
			journal(JOURNAL_ERROR, e.msg, NULL);
}

int approvals_open(struct core *c, struct err *e)
{
	AUTO(arena_done) struct arena arena = { 0 };
	struct approval_query q = { .page = { .is_all_tenants = true,
		                              .is_oldest_first = true,
		                              .limit = STORE_LIST_MAX },
		                    .states = 1u << APPROVAL_PENDING };
	struct approval_list list;

	c->approvals = mem_alloc(sizeof *c->approvals);
	hook_open(c);
	do {
		if (store_approval_list(c->store, &q, &arena, &list, e) < 0)
			return -1;
		for (size_t i = 0; i < list.n; i++)
			take_up(c, &list.rows[i]);
		q.page.cursor = list.next;
	} while (list.next);
	return 0;
}

static void drop(void *entry, void *arg)
{
	struct approval *a = entry;

	(void)arg;
	while (a->askers)
		leave(&a->askers, a->askers->arg);
	while (a->deciders)
		leave(&a->deciders, a->deciders->arg);
	approval_free(a);
}

void approvals_close(struct core *c)
{
	if (!c->approvals)
		return;
	hook_close(c);
	for (struct told *t = c->approvals->told, *next; t; t = next) {
		next = t->next;
		told_free(t);
	}
	roster_each(&c->approvals->open, drop, NULL);
	roster_done(&c->approvals->open);
	free(c->approvals);
	c->approvals = NULL;
}
