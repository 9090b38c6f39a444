/*
 * approval_text.c - what an approval is in words: as it is stored, as the ledger has it, as the API
 * and webhooks have it.
 */
#include "core/approval-internal.h"

#include "core/details.h"
#include "wire/escape.h"
#include "wire/hash.h"

#define TEXT_MAX (STORE_TEXT_MAX - 128) /* what is cut says so, and what was cut has a hash */
#define WHOLE_MAX (32u << 10)           /* of a text that is cut: all of it, beside it */
#define CUT "cut"

/* ---- texts ------------------------------------------------------------------------------- */

/* Bytes of a character that was cut do not stay. */
static size_t whole(const char *text, size_t n)
{
	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* Foreign text as a person may see it, on one line. */
static char *escaped(struct arena *a, const char *text)
{
	AUTO(str_done) struct str out = { .max = 16ul * strlen(text) + 1 };

	escape_text(text, &out);
	return arena_strdup(a, str_text(&out));
}

/* The same with a hash of all of `text` in the place of what does not fit into a row. */
static const char *shortened(struct arena *a, const char *text, const char *shown)
{
	char sum[TREE_HASH_TEXT];
	size_t n = strlen(shown);

	if (n <= TEXT_MAX)
		return shown;
	hash_of(span_of(text), sum);
	n = whole(shown, TEXT_MAX);
	char *cut = arena_strndup(a, shown, n + sizeof sum + 16);

	snprintf(cut + n, sizeof sum + 16, "... (sha256:%s)", sum);
	return cut;
}

const char *approval_plain(struct arena *a, const char *text)
{
	return text && text[0] ? shortened(a, text, escaped(a, text)) : NULL;
}

const char *approval_what(struct arena *a, const struct approval_ask *ask, json_t *detail)
{
	if (!ask->what || !ask->what[0])
		return NULL;
	const char *shown = escaped(a, ask->what), *what = shortened(a, ask->what, shown);

	if (what != shown || ask->is_cut)
		json_object_set_new(detail, CUT, json_true());
	if (what != shown && !ask->is_cut && strlen(shown) <= WHOLE_MAX)
		json_object_set_new(detail, "what", json_string(shown));
	return what;
}

int approval_was_seen(const struct approval_row *row, const char *seen, struct fail *f)
{
	AUTO(json_decrefp) json_t *detail = json_loads(row->detail ? row->detail : "{}", 0, NULL);
	const char *text = json_string_value(json_object_get(detail, "what"));
	char sum[TREE_HASH_TEXT];

	if (!json_is_true(json_object_get(detail, CUT)))
		return 0;
	if (!text)
		return fail_set(f, FAIL_INVALID,
		                "%s is too long to be shown whole: it can only be denied", row->id);
	hash_of(span_of(text), sum);
	if (!seen || strcmp(seen, sum) != 0)
		return fail_set(f, FAIL_INVALID,
		                "seen: what is cut in this question: show detail.what to who "
		                "decides, and send its SHA-256 with the decision");
	return 0;
}

const char *approval_copy(struct arena *a, const char *text)
{
	return text && text[0] ? arena_strdup(a, text) : NULL;
}

void approval_copy_row(struct arena *a, struct approval_row *to, const struct approval_row *from)
{
	*to = *from;
	const char **const texts[] = { &to->id,      &to->tenant, &to->node,  &to->kind,
		                       &to->sandbox, &to->what,   &to->why,   &to->workspace,
		                       &to->process, &to->detail, &to->scope, &to->suggestion,
		                       &to->actor,   &to->note,   &to->reason };

	for (size_t i = 0; i < COUNT(texts); i++)
		*texts[i] = approval_copy(a, *texts[i]);
}

/* ---- what the ledger hears --------------------------------------------------------------- */

static struct ledger_who who_is(const struct approval_row *r)
{
	return (struct ledger_who){ .tenant = r->tenant,
		                    .sandbox = r->sandbox,
		                    .workspace = r->workspace,
		                    .process = r->process,
		                    .actor = r->actor };
}

static void set_text(json_t *o, const char *key, const char *text)
{
	if (text)
		json_object_set_new(o, key, details_text(text));
}

json_t *approval_record(const struct approval_row *r)
{
	json_t *o = json_pack("{ss,ss,ss}", "approval", r->id, "of", r->kind, "state",
	                      approval_state_name(r->state));

	set_text(o, "what", r->what);
	set_text(o, "why", r->why);
	set_text(o, "scope", r->scope);
	set_text(o, "note", r->note);
	set_text(o, "reason", r->reason);
	if (r->expires_ms)
		json_object_set_new(o, "expires_ms", json_integer(r->expires_ms));
	if (r->state == APPROVAL_PENDING)
		json_object_set_new(o, "until_ms", json_integer(r->until_ms));
	else
		json_object_set_new(o, "asked_ms", json_integer(r->created_ms));
	return o;
}

/* A sandbox that is gone has no chain any more. */
struct ledger_who approval_who(const struct core *c, const struct approval_row *r)
{
	struct ledger_who who = who_is(r);

	if (who.sandbox && !roster_find(&c->sandboxes, who.sandbox))
		who.sandbox = NULL;
	return who;
}

/* ---- the API ------------------------------------------------------------------------------ */

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *time_or_null(int64_t ms)
{
	return ms ? json_integer(ms) : json_null();
}

json_t *approval_json(const struct approval_row *r)
{
	json_t *detail = json_loads(r->detail ? r->detail : "{}", 0, NULL);
	json_t *o = json_pack("{ss,sI,ss,ss,ss}", "id", r->id, "rev", (json_int_t)r->rev, "state",
	                      approval_state_name(r->state), "kind", r->kind, "tenant", r->tenant);
	const struct {
		const char *key;
		json_t *value;
	} rest[] = { { "sandbox", text_or_null(r->sandbox) },
		     { "workspace", text_or_null(r->workspace) },
		     { "process", text_or_null(r->process) },
		     { "what", json_string(r->what) },
		     { "why", text_or_null(r->why) },
		     { "suggestion", text_or_null(r->suggestion) },
		     { "detail", detail ? detail : json_object() },
		     { "created_ms", json_integer(r->created_ms) },
		     { "until_ms", json_integer(r->until_ms) },
		     { "scope", text_or_null(r->scope) },
		     { "expires_ms", time_or_null(r->expires_ms) },
		     { "actor", text_or_null(r->actor) },
		     { "note", text_or_null(r->note) },
		     { "reason", text_or_null(r->reason) },
		     { "decided_ms", time_or_null(r->decided_ms) },
		     { "applied_ms", time_or_null(r->applied_ms) } };

	for (size_t i = 0; i < COUNT(rest); i++)
		json_object_set_new(o, rest[i].key, rest[i].value);
	return o;
}
