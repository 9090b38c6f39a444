/*
 * loosen.c - what a sandbox may have only when a person says so: looser rules for its network, more
 * wall time. The question lasts; when it is allowed, we do it.
 *
 * A sandbox that is being changed just then is tried again a few times. What comes to nothing in
 * the end is in the journal; the ledger has the decision, and no change of the policy after it.
 */
#include "core/approval.h"
#include "core/policy.h"
#include "core/workspace.h"
#include "io/journal.h"
#include "wire/jsondiff.h"

#define AGAIN_MS 500
#define SETTLE_MS 50
#define TRIES_MAX 100

struct loosening {
	struct timer timer; /* first */
	struct core *core;
	char approval[ID_SIZE], sandbox[ID_SIZE], tenant[TENANT_SIZE];
	json_t *detail;
	unsigned int tries;
};

static void over(struct loosening *l, const struct fail *f)
{
	if (f)
		journal(JOURNAL_WARN, "what was approved could not be done", "approval",
		        l->approval, "sandbox", l->sandbox, "reason", f->detail, NULL);
	approval_applied(l->core, l->approval);
	timer_stop(&l->core->timers, &l->timer);
	json_decref(l->detail);
	free(l);
}

static void changed(void *arg, struct sbx *s, const struct policy_changed *r, const struct fail *f)
{
	(void)s;
	(void)r;
	over(arg, f);
}

/* After a restart of ours its monitor may not have answered yet. */
static bool try_later(struct loosening *l, const struct sbx *s, const struct fail *f)
{
	bool is_soon = s && (s->is_unsettled || f->code == FAIL_BUSY);

	if (!is_soon || ++l->tries >= TRIES_MAX)
		return false;
	timer_set(&l->core->timers, &l->timer, s->is_unsettled ? SETTLE_MS : AGAIN_MS);
	return true;
}

/* A person approved of a difference: it is only made to the rules that it was shown for. */
static bool is_as_shown(const struct loosening *l, const struct sbx *s, struct fail *f)
{
	AUTO(json_decrefp) json_t *spec = json_loads(s->spec_text, 0, NULL);
	const json_t *now = json_object_get(spec, "net"), *then = json_object_get(l->detail, "now");

	if (json_equal(now, then) || (!now && !then))
		return true;
	fail_set(f, FAIL_CONFLICT, "the rules have changed since it was asked");
	return false;
}

static void try_rules(struct timer *t)
{
	struct loosening *l = (struct loosening *)(void *)t;
	struct fail f = { 0 };
	struct sbx *s = sbx_find(l->core, l->tenant, l->sandbox, &f);

	if (try_later(l, s, &f))
		return;
	if (s && is_as_shown(l, s, &f) &&
	    policy_change(s, json_object_get(l->detail, "net"), true, changed, l, &f) == 0)
		return;
	if (!try_later(l, s, &f))
		over(l, &f);
}

static void try_wall(struct timer *t)
{
	struct loosening *l = (struct loosening *)(void *)t;
	json_int_t wall = json_integer_value(json_object_get(l->detail, "wall_ms"));
	struct fail f = { 0 };
	struct sbx *s = sbx_find(l->core, l->tenant, l->sandbox, &f);

	if (try_later(l, s, &f))
		return;
	bool is_done = s && sbx_extend(s, (uint64_t)wall, 0, &f) == 0;

	over(l, is_done ? NULL : &f);
}

static void begin(struct core *c, const struct approval_row *row, void (*fired)(struct timer *t))
{
	struct loosening *l = mem_alloc(sizeof *l);

	*l = (struct loosening){ .timer.fired = fired,
		                 .core = c,
		                 .detail = json_loads(row->detail, 0, NULL) };
	snprintf(l->approval, sizeof l->approval, "%s", row->id);
	snprintf(l->sandbox, sizeof l->sandbox, "%s", row->sandbox ? row->sandbox : "");
	snprintf(l->tenant, sizeof l->tenant, "%s", row->tenant);
	timer_set(&c->timers, &l->timer, 0);
}

void policy_allowed(struct core *c, const struct approval_row *row)
{
	begin(c, row, try_rules);
}

void sbx_wall_allowed(struct core *c, const struct approval_row *row)
{
	begin(c, row, try_wall);
}

/* ---- asking --------------------------------------------------------------------------- */

static int ask(struct sbx *s, struct approval_ask *a, char id[ID_SIZE], struct fail *f)
{
	a->tenant = s->tenant;
	a->sandbox = s->id;
	a->workspace = s->workspace ? s->workspace->row.id : NULL;
	a->is_lasting = true;
	return approval_ask(s->core, a, NULL, NULL, id, f);
}

int policy_ask(struct sbx *s, const json_t *net, const char *why, char id[ID_SIZE], struct fail *f)
{
	AUTO(str_done) struct str what = { .max = 2ul * SPEC_BYTES_MAX };
	AUTO(json_decrefp) json_t *spec = json_loads(s->spec_text, 0, NULL);
	AUTO(json_decrefp) json_t *detail = json_pack("{sO}", "net", net);
	AUTO(json_decrefp) json_t *next = NULL;
	const json_t *now = json_object_get(spec, "net"), *line;
	size_t i;

	if (policy_next(s, net, &next, f) < 0)
		return -1;
	json_t *lines = json_difference(now, next);

	str_add(&what, "change the rules of its network: ");
	json_array_foreach(lines, i, line)
	    str_addf(&what, "%s%s", i > 0 ? ", " : "", json_string_value(line));
	json_object_set_new(detail, "difference", lines);
	json_object_set(detail, "now", json_object_get(spec, "net"));
	struct approval_ask a = {
		.kind = APPROVAL_POLICY, .what = str_text(&what), .why = why, .detail = detail
	};
	return ask(s, &a, id, f);
}

int sbx_ask_wall(struct sbx *s, uint64_t wall_ms, const char *why, char id[ID_SIZE], struct fail *f)
{
	AUTO(str_done) struct str what = { .max = STORE_TEXT_MAX };

	if (sbx_check_running(s, f) < 0)
		return -1;
	json_t *detail = json_pack("{sI}", "wall_ms", (json_int_t)wall_ms);

	str_addf(&what, "run for %llu ms more from now on", (unsigned long long)wall_ms);
	struct approval_ask a = {
		.kind = APPROVAL_WALL, .what = str_text(&what), .why = why, .detail = detail
	};
	int r = ask(s, &a, id, f);

	json_decref(detail);
	return r;
}
