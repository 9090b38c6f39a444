#include "core/tripped.h"

#include <jansson.h>

#include "core/approval.h"
#include "core/details.h"
#include "core/workspace.h"
#include "spec/trip.h"

#define ARGS_MAX (CHANNEL_TRIP_TEXT + 1)

struct tripped {
	struct tripped *next;
	struct sbx *sandbox;
	uint64_t ask;
	uint32_t num;
	bool is_own;
	char approval[ID_SIZE];
	char *what;
	const char *rule; /* of the spec */
};

/* ---- what a monitor says -------------------------------------------------------------- */

static bool read_trip(struct channel_trip *t, const void *bytes, size_t n)
{
	if (n != sizeof *t)
		return false;
	memcpy(t, bytes, sizeof *t);
	return t->text_len <= sizeof t->text &&
	       (t->text_len == 0 || t->text[t->text_len - 1] == '\0');
}

/* One canonical line; and the arguments one by one, for programs. */
static char *text_of(const struct channel_trip *t, json_t *argv)
{
	AUTO(freep) const char **list = mem_alloc(ARGS_MAX * sizeof *list);
	struct str text = { .max = 8ul * CHANNEL_TRIP_TEXT };
	size_t k = 0;

	for (size_t at = 0; at < t->text_len; at += strlen(t->text + at) + 1) {
		list[k++] = t->text + at;
		json_array_append_new(argv, details_text(t->text + at));
	}
	list[k] = NULL;
	str_add(&text, "run ");
	trip_text(list, &text);
	if (t->flags & TRIP_CUT) /* nobody knows the rest: no other one is the same */
		str_addf(&text, " ... (cut; process %u)", t->pid);
	return text.data;
}

static const char *rule_of(const struct sbx *s, uint32_t rule)
{
	return rule < s->spec.commands.len ? s->spec.commands.at[rule] : "gate.commands";
}

/* ---- their life ----------------------------------------------------------------------- */

static void tripped_free(struct tripped *t)
{
	struct tripped **at = &t->sandbox->tripped;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	free(t->what);
	free(t);
}

static struct tripped *find(const struct sbx *s, uint64_t ask)
{
	struct tripped *t = s->tripped;

	while (t && t->ask != ask)
		t = t->next;
	return t;
}

static void refused(const struct tripped *t, const char *reason)
{
	const struct details_refusal r = { t->what + strlen("run "), t->rule, reason, t->approval };
	struct px *p = px_by_num(t->sandbox, t->num);

	if (!p)
		return;
	details_refuse(&p->denials, &r);
	if (t->is_own)
		px_on_denied(p, reason, t->approval);
}

static void answer(const struct tripped *t, bool is_allowed)
{
	const struct gate_answer a = { .ask = t->ask, .is_allowed = is_allowed };

	(void)link_send(&t->sandbox->link, CH_TRIP_ANSWER, 0, &a, sizeof a); /* or it is dead */
}

static void decided(void *arg, const struct approval_row *row)
{
	struct tripped *t = arg;
	bool is_allowed = approval_is_allowed(row);
	struct px *p = px_by_num(t->sandbox, t->num);

	if (!is_allowed)
		refused(t, approval_state_name(row->state));
	else if (t->is_own && p)
		px_on_approved(p);
	answer(t, is_allowed);
	tripped_free(t);
}

static struct tripped *tripped_new(struct sbx *s, uint32_t num, const struct channel_trip *said,
                                   char *what)
{
	struct tripped *t = mem_alloc(sizeof *t);

	*t = (struct tripped){ .next = s->tripped,
		               .sandbox = s,
		               .ask = said->ask,
		               .num = num,
		               .is_own = said->flags & TRIP_OWN,
		               .what = what,
		               .rule = rule_of(s, said->rule) };
	s->tripped = t;
	return t;
}

static int ask(struct tripped *t, const struct channel_trip *said, const json_t *detail,
               struct fail *f)
{
	const struct sbx *s = t->sandbox;
	const struct px *p = px_by_num(t->sandbox, t->num);
	AUTO(str_done) struct str why = { .max = 512 };
	const struct approval_ask q = { .kind = APPROVAL_COMMAND,
		                        .tenant = s->tenant,
		                        .sandbox = s->id,
		                        .workspace = s->workspace ? s->workspace->row.id : NULL,
		                        .process = p ? p->id : NULL,
		                        .what = t->what,
		                        .why = str_text(&why),
		                        .suggestion = "leave it out of gate.commands in the spec",
		                        .detail = detail,
		                        .is_cut = said->flags & TRIP_CUT,
		                        .timeout_ms = said->left_ms > 0 ? said->left_ms : 1 };

	str_addf(&why, "%s matches gate.commands: %s",
	         t->is_own ? "the command" : "a program that a command starts", t->rule);
	return approval_ask(s->core, &q, decided, t, t->approval, f);
}

static void wait_for(const struct tripped *t, struct px *p)
{
	if (t->is_own)
		px_on_held(p);
	if (approval_find(p->core, t->approval)) /* else it is decided already */
		px_on_asked(p, t->approval);
}

void tripped_on(struct sbx *s, uint32_t num, const void *bytes, size_t n)
{
	static struct channel_trip said;
	struct fail f = { 0 };

	if (!read_trip(&said, bytes, n))
		return;
	json_t *argv = json_array();
	char *what = text_of(&said, argv);
	struct tripped *t = find(s, said.ask);
	struct px *p = px_by_num(s, num);

	if (t) { /* asked for already: it is late, or said twice */
		approval_cancel(s->core, t);
		tripped_free(t);
	}
	t = tripped_new(s, num, &said, what);
	json_t *detail =
	    json_pack("{so,ss,sb}", "argv", argv, "rule", t->rule, "inside", !t->is_own);

	if (said.flags & (TRIP_FULL | TRIP_LATE)) {
		refused(t, said.flags & TRIP_FULL ? "too many wait" : "expired");
		tripped_free(t);
	} else if (ask(t, &said, detail, &f) < 0) {
		refused(t, f.detail);
		answer(t, false);
		tripped_free(t);
	} else if (p) {
		wait_for(t, p);
	}
	json_decref(detail);
}

void tripped_over(struct sbx *s, const void *bytes, size_t n)
{
	struct gate_unask over;

	if (n != sizeof over)
		return;
	memcpy(&over, bytes, sizeof over);
	struct tripped *t = find(s, over.ask);

	if (!t)
		return;
	approval_cancel(s->core, t);
	tripped_free(t);
}

void tripped_recorded(struct px *p)
{
	for (const struct tripped *t = p->sandbox->tripped; t; t = t->next)
		if (t->num == p->num)
			wait_for(t, p);
}

void tripped_close(struct sbx *s)
{
	for (struct tripped *t = s->tripped, *next; t; t = next) {
		next = t->next;
		approval_cancel(s->core, t);
		tripped_free(t);
	}
}
