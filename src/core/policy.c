#include "core/policy.h"

#include "base/limits.h"
#include "core/approval.h"
#include "core/gate.h"
#include "core/notes.h"
#include "core/secret.h"
#include "io/journal.h"
#include "spec/netdoc.h"

#define ANSWER_MS 15000 /* longer than a child of the gate takes to be replaced */

/* ---- before there is a sandbox -------------------------------------------------------- */

int policy_expand(const struct core *c, struct spec *spec, struct fail *f)
{
	struct err e = { 0 };

	return net_expand_config(spec, c->config.net, &e) < 0 ? fail_err(f, &e) : 0;
}

int policy_admit(const struct core *c, const struct net_spec *net, bool is_operator, struct fail *f)
{
	struct err e = { 0 };

	return net_admit(net, c->config.net, is_operator, &e) < 0 ? fail_err(f, &e) : 0;
}

int policy_document(const struct core *c, const struct net_spec *net, struct str *out,
                    struct err *e)
{
	return net_document(net, c->config.net, NULL, out, e);
}

/* Compiled as the gate does it. */
static int compile(const struct core *c, const struct net_spec *net, struct rules *out,
                   struct fail *f)
{
	AUTO(str_done) struct str doc = { .max = GATE_RULES_MAX + 1 };
	struct err e = { 0 };

	if (policy_document(c, net, &doc, &e) < 0 || rules_read(out, doc.data, doc.len, &e) < 0)
		return fail_err(f, &e);
	return 0;
}

/* ---- why ------------------------------------------------------------------------------ */

int policy_why(const struct sbx *s, const char *host, uint16_t port, struct policy_why *out,
               struct fail *f)
{
	AUTO(str_done) struct str rule = { .max = GATE_RULE_SIZE };
	AUTO(str_done) struct str narrowest = { .max = GATE_RULE_SIZE };
	AUTO(rules_done) struct rules rules = { 0 };

	if (compile(s->core, &s->spec.net, &rules, f) < 0)
		return -1;
	out->verdict = rules_explain(&rules, host, port, &rule, &narrowest);
	if (out->verdict.reason == GATE_NAME_BAD)
		return fail_set(f, FAIL_INVALID, "host: neither a name nor an address");
	snprintf(out->rule, sizeof out->rule, "%s", str_text(&rule));
	snprintf(out->narrowest, sizeof out->narrowest, "%s", str_text(&narrowest));
	return 0;
}

/* ---- a change ------------------------------------------------------------------------- */

/* While the gate has not said what it makes of it, the sandbox has the new rules, and these here
 * are the old ones. Who asked is told when the row has the new ones too: a daemon that dies must
 * not come back with the old. */
struct policy_pending {
	struct spec spec;
	char *spec_text;
	char actor[ACTOR_SIZE]; /* who asked, or "" */
	bool is_looser;
	struct policy_changed changed;
	policy_done_fn *done; /* NULL: who asked is gone, or was told that nobody answers */
	void *arg;
	struct timer late;
	struct sbx *sandbox; /* NULL: it is no more, and its row tells */
};

static void tell(struct policy_pending *p, const struct policy_changed *r, const struct fail *f)
{
	policy_done_fn *done = p->done;

	p->done = NULL;
	if (done)
		done(p->arg, p->sandbox, r, f);
}

static void leave(struct policy_pending *p)
{
	timer_stop(&p->sandbox->core->timers, &p->late);
	p->sandbox->pending = NULL;
	p->sandbox = NULL;
}

static void drop(struct policy_pending *p)
{
	if (p->sandbox)
		leave(p);
	spec_done(&p->spec);
	free(p->spec_text);
	free(p);
}

static void swap_rules(struct sbx *s, struct policy_pending *p)
{
	struct spec spec = s->spec;
	char *text = s->spec_text;

	s->spec = p->spec;
	s->spec_text = p->spec_text;
	p->spec = spec;
	p->spec_text = text;
}

static void gate_late(struct timer *t)
{
	struct policy_pending *p =
	    (struct policy_pending *)(void *)((char *)t - offsetof(struct policy_pending, late));
	struct fail f = { 0 };

	fail_set(&f, FAIL_SANDBOX_UNAVAILABLE,
	         "the gate does not answer; the next one will have these rules");
	tell(p, NULL, &f);
}

/* The gate has them, and as long as this daemon lives they hold. */
static void not_recorded(struct policy_pending *p, const char *why)
{
	struct fail f = { 0 };

	journal(JOURNAL_ERROR, why, NULL);
	fail_set(&f, FAIL_BACKEND_ERROR, "the rules hold, but could not be stored");
	tell(p, NULL, &f);
}

static void on_record(void *arg, const struct store_answer *a)
{
	struct policy_pending *p = arg;

	if (a->code == STORE_OK)
		tell(p, &p->changed, NULL);
	else
		not_recorded(p, a->err->msg);
	drop(p);
}

static void record(struct policy_pending *p)
{
	const struct sbx *s = p->sandbox;
	struct sandbox_row row = { .id = s->id,
		                   .spec = s->spec_text,
		                   .mem_bytes = (int64_t)s->needs.of[QUOTA_MEM],
		                   .cpu_milli = (int64_t)s->needs.of[QUOTA_CPU],
		                   .pids = (int64_t)s->needs.of[QUOTA_PIDS],
		                   .disk_bytes = (int64_t)s->needs.of[QUOTA_DISK] };
	struct store_call call = { .done = on_record, .arg = p };
	struct err e = { 0 };

	if (store_sandbox_update(s->core->store, &row, SANDBOX_SET_SPEC, call, &e) == 0)
		return;
	not_recorded(p, e.msg);
	drop(p);
}

void policy_close(struct sbx *s)
{
	struct policy_pending *p = s->pending;
	struct fail f = { 0 };

	if (!p)
		return;
	fail_set(&f, FAIL_CONFLICT, "the sandbox has ended");
	tell(p, NULL, &f);
	leave(p); /* the store has it still */
}

static void finish(struct policy_pending *p, const struct gate_ruled *r)
{
	struct sbx *s = p->sandbox;
	struct fail f = { 0 };

	if (r->is_refused) {
		swap_rules(s, p);
		fail_set(&f, FAIL_CONFLICT, "the old rules stay: %s", r->reason);
		tell(p, NULL, &f);
		drop(p);
		return;
	}
	p->changed = (struct policy_changed){ .generation = r->generation,
		                              .closed = r->closed,
		                              .is_looser = p->is_looser };
	approvals_of_changed(s->core, s->id);
	note_policy(s, p->actor, r->generation, p->is_looser);
	journal(JOURNAL_INFO, "the rules of a sandbox changed", "sandbox", s->id, "tenant",
	        s->tenant, "looser", p->is_looser ? "yes" : "no", NULL);
	record(p);
}

static void ruled(void *arg, const struct gate_ruled *r)
{
	static const struct gate_ruled over = { .is_refused = true,
		                                .reason = "the sandbox has ended" };

	finish(arg, r ? r : &over);
}

/* The spec as it was said, with another net; resolved again, and nothing else of it differs. */
static int next_spec(const struct sbx *s, const json_t *net, struct spec *spec, struct str *text,
                     struct fail *f)
{
	const struct core *c = s->core;
	AUTO(json_decrefp) json_t *doc = json_pack("{sO}", "net", net);
	AUTO(freep) char *change = json_dumps(doc, JSON_COMPACT);
	struct err e = { 0 };

	if (spec_json(spec, s->spec_text, strlen(s->spec_text), &e) < 0 ||
	    spec_json(spec, change, strlen(change), &e) < 0)
		return fail_err(f, &e);
	if (policy_expand(c, spec, f) < 0)
		return -1;
	if (spec_print(spec, text, &e) < 0)
		return fail_err(f, &e);
	spec_default(spec, c->config.defaults);
	spec_resolve(spec);
	(void)!spec_bound(spec, c->config.most, &e); /* accepted once: only net is new */
	secret_fill_env(s, spec);
	return 0;
}

int policy_next(const struct sbx *s, const json_t *net, json_t **out, struct fail *f)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	AUTO(spec_done) struct spec next;

	spec_init(&next);
	if (next_spec(s, net, &next, &text, f) < 0)
		return -1;
	AUTO(json_decrefp) json_t *doc = json_loads(str_text(&text), 0, NULL);

	*out = json_incref(json_object_get(doc, "net"));
	return 0;
}

/* May he? Everybody may take away; what lets more through is the operator's, or a person's who is
 * asked. Nobody is asked for what only the operator may open. */
static int judge(const struct sbx *s, const struct net_spec *next, bool is_operator,
                 bool *is_looser, struct fail *f)
{
	AUTO(rules_done) struct rules old = { 0 };
	AUTO(rules_done) struct rules new = { 0 };

	if (compile(s->core, &s->spec.net, &old, f) < 0 || compile(s->core, next, &new, f) < 0)
		return -1;
	*is_looser = !rules_tightens(&old, &new);
	if (*is_looser && policy_admit(s->core, next, is_operator, f) < 0)
		return -1;
	if (*is_looser && !is_operator)
		return fail_set(f, FAIL_APPROVAL_REQUIRED,
		                "these rules allow what the old ones did not: a person has to "
		                "approve of them");
	return 0;
}

static int send_rules(struct policy_pending *p, struct fail *f)
{
	struct sbx *s = p->sandbox;

	swap_rules(s, p);
	if (gate_send_rules(s, ruled, p, f) == 0) {
		timer_set(&s->core->timers, &p->late, ANSWER_MS);
		return 0;
	}
	swap_rules(s, p);
	drop(p);
	return -1;
}

int policy_change(struct sbx *s, const json_t *net, bool is_operator, policy_done_fn *done,
                  void *arg, struct fail *f)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	AUTO(spec_done) struct spec next;
	bool is_looser = false;

	spec_init(&next);
	if (s->pending || s->change.is_busy)
		return fail_set(f, FAIL_BUSY, "the sandbox is being changed");
	if (next_spec(s, net, &next, &text, f) < 0 ||
	    judge(s, &next.net, is_operator, &is_looser, f) < 0)
		return -1;
	bool is_live = s->link.watch.fd >= 0;

	if (is_live && !s->gate && next.net.mode != NET_DENY)
		return fail_set(f, FAIL_CONFLICT,
		                "the sandbox was made without a network: its rules can be changed "
		                "after it was stopped, and hold when it was replaced");
	struct policy_pending *p = mem_alloc(sizeof *p);

	*p = (struct policy_pending){ .spec = next,
		                      .spec_text = mem_strdup(str_text(&text)),
		                      .is_looser = is_looser,
		                      .done = done,
		                      .arg = arg,
		                      .late.fired = gate_late,
		                      .sandbox = s };
	spec_init(&next); /* moved */
	snprintf(p->actor, sizeof p->actor, "%s", s->core->actor ? s->core->actor : "");
	s->pending = p;
	if (is_live && s->gate)
		return send_rules(p, f);
	swap_rules(s, p);
	finish(p, &(struct gate_ruled){ 0 });
	return 0;
}
