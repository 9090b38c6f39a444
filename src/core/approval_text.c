/*
 * approval_text.c - what an approval is in words: as it is stored, as the ledger has it, as the API
 * and webhooks have it.
 */
#include "core/approval-internal.h"

#include "core/details.h"
#include "wire/hash.h"
#include "wire/utf8.h"

#define TEXT_MAX (STORE_TEXT_MAX - 128) /* what is cut says so, and what was cut has a hash */

/* ---- texts ------------------------------------------------------------------------------- */

static void add_shown(struct str *out, const char *text, bool is_utf8)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p < ' ' || *p == 0x7f || (*p >= 0x80 && !is_utf8)) {
			str_addf(out, "\\x%02x", *p);
		} else if (*p == 0xc2 && p[1] < 0xa0) { /* C1: control characters too */
			str_addf(out, "\\u00%02x", p[1]);
			p++;
		} else {
			str_addn(out, p, 1);
		}
	}
}

/* Bytes of a character that was cut do not stay. */
static size_t whole(const char *text, size_t n)
{
	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* Foreign text as it may stand in a line; NULL of none. */
const char *approval_plain(struct arena *a, const char *text)
{
	AUTO(str_done) struct str out = { .max = 8ul * STORE_TEXT_MAX };
	struct utf8 check = { 0 };
	char sum[TREE_HASH_TEXT];

	if (!text || !text[0])
		return NULL;
	bool is_utf8 = utf8_feed(&check, text, strlen(text)) && utf8_is_whole(&check);

	add_shown(&out, text, is_utf8);
	if (out.len <= TEXT_MAX && !out.overflow)
		return arena_strdup(a, str_text(&out));
	hash_of(span_of(text), sum);
	size_t n = whole(str_text(&out), TEXT_MAX);
	char *cut = arena_strndup(a, str_text(&out), n + sizeof sum + 16);

	snprintf(cut + n, sizeof sum + 16, "... (sha256:%s)", sum);
	return cut;
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
