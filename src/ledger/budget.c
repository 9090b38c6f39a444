#include "ledger/budget.h"

/* clang-format off */
static const bool is_bounded[LEDGER_KINDS] = {
	[LEDGER_EXEC_STARTED] = true,    [LEDGER_EXEC_ENDED] = true,  [LEDGER_EXEC_OUTPUT] = true,
	[LEDGER_PROCESS_STARTED] = true, [LEDGER_NET_LOOKUP] = true,
	[LEDGER_NET_CONNECTION] = true,  [LEDGER_NET_REQUEST] = true, [LEDGER_WORKSPACE_CHANGED] = true,
};
/* clang-format on */

static struct budget_place *place_of(struct budget *b, const char *sandbox)
{
	uint32_t v = 2166136261u;

	for (; *sandbox; sandbox++)
		v = (v ^ (unsigned char)*sandbox) * 16777619u;
	return &b->places[v % BUDGET_PLACES];
}

static bool has_left(struct budget *b, const char *sandbox, int64_t now_ms)
{
	struct budget_place *p = place_of(b, sandbox);
	int64_t back = now_ms > p->at_ms ? (now_ms - p->at_ms) * BUDGET_RATE / 1000 : 0;

	if (back > 0 || p->spent == 0) {
		p->spent -= back < p->spent ? (uint32_t)back : p->spent;
		p->at_ms = now_ms;
	}
	if (p->spent >= (b->burst ? b->burst : BUDGET_BURST))
		return false;
	p->spent++;
	return true;
}

static struct budget_sum *sum_of(struct budget *b, const struct ledger_event *ev)
{
	const char *sandbox = b->sums.len < BUDGET_SUMS_MAX ? ev->sandbox : "";

	for (size_t i = 0; i < b->sums.len; i++) {
		struct budget_sum *s = &b->sums.at[i];

		if (s->kind == ev->kind &&
		    (strcmp(s->sandbox, ev->sandbox) == 0 || (!*sandbox && !*s->sandbox)))
			return s;
	}
	struct budget_sum s = { .kind = ev->kind };

	snprintf(s.sandbox, sizeof s.sandbox, "%s", sandbox);
	if (*sandbox)
		snprintf(s.tenant, sizeof s.tenant, "%s", ev->tenant ? ev->tenant : "");
	vec_push(&b->sums, s);
	return &b->sums.at[b->sums.len - 1];
}

bool budget_take(struct budget *b, const struct ledger_event *ev, int64_t now_ms)
{
	if (!is_bounded[ev->kind] || !ev->sandbox || !ev->sandbox[0] ||
	    has_left(b, ev->sandbox, now_ms))
		return true;
	struct budget_sum *s = sum_of(b, ev);

	s->from_ms = s->count ? s->from_ms : now_ms;
	s->to_ms = now_ms;
	s->count++;
	return false;
}

void budget_done(struct budget *b)
{
	vec_done(&b->sums);
}
