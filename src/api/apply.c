/*
 * apply.c - files that execute later: who takes them to a folder of his own asks here first.
 *
 * Two lines are answered, the question and what came of it. Who hangs up does not ask any more, and
 * the question is withdrawn. Files and folder are the caller's words; the hash of all that he would
 * write is in the question, so that a decision is about that and nothing else.
 */
#include "api/handlers.h"
#include "api/print.h"
#include "core/approval.h"
#include "core/workspace.h"
#include "wire/hash.h"

#define FILES_MAX 1000
#define LINE_MAX_BYTES (STORE_DETAIL_MAX * 4ul)
#define WHAT_MAX (1u << 20)

struct asking_apply {
	struct call *call;
	struct core *core;
};

static void put(struct call *c, const struct approval_row *row)
{
	json_t *o = approval_json(row);
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);
	AUTO(str_done) struct str line = { .max = LINE_MAX_BYTES };

	json_decref(o);
	str_addf(&line, "%s\n", text);
	(void)reply_write(c->r, str_text(&line), line.len); /* two of them: they have room */
}

static void decided(void *arg, const struct approval_row *row)
{
	const struct asking_apply *q = arg;
	struct call *c = q->call;

	if (!c->r || c->is_answered)
		return;
	put(c, row);
	c->is_answered = true;
	reply_end(c->r);
}

static void over(struct call *c)
{
	struct asking_apply *q = c->state;

	approval_cancel(q->core, q);
	call_unref(q->call);
	free(q);
}

/* ---- the question --------------------------------------------------------------------- */

static bool is_hash(const char *text)
{
	return strlen(text) == TREE_HASH_TEXT - 1 &&
	       strspn(text, "0123456789abcdef") == TREE_HASH_TEXT - 1;
}

static const char *why_of(const json_t *files, size_t i)
{
	return json_string_value(json_object_get(json_array_get(files, i), "why"));
}

/* "REASON: NAME, NAME", when `first` is the first file with that reason. */
static void say_group(const json_t *files, size_t first, struct str *what)
{
	const char *why = why_of(files, first), *between = ": ";

	for (size_t i = 0; i < first; i++)
		if (strcmp(why_of(files, i), why) == 0)
			return;
	str_addf(what, "%s%s", first > 0 ? "; " : "", why);
	for (size_t i = first; i < json_array_size(files); i++) {
		if (strcmp(why_of(files, i), why) != 0)
			continue;
		str_addf(what, "%s%s", between,
		         json_string_value(json_object_get(json_array_get(files, i), "path")));
		between = ", ";
	}
}

static int take_files(const json_t *files, struct str *what, struct fail *f)
{
	size_t n = json_array_size(files), i;
	const json_t *file;

	if (n == 0 || n > FILES_MAX)
		return fail_set(f, FAIL_INVALID, "files: a list of 1 to %d", FILES_MAX);
	json_array_foreach(files, i, file)
	{
		const char *path = json_string_value(json_object_get(file, "path"));

		if (!path || !json_is_string(json_object_get(file, "why")) ||
		    json_object_size(file) != 2)
			return fail_set(f, FAIL_INVALID, "files[%zu]: path and why", i);
	}
	json_array_foreach(files, i, file) say_group(files, i, what);
	return what->overflow ? fail_set(f, FAIL_TOO_LARGE, "files: too many names") : 0;
}

static int take(struct call *c, struct approval_ask *ask, struct str *what, struct fail *f)
{
	static const char *const known[] = { "to", "at", "tree", "files", "timeout", NULL };
	const char *to = "", *at = "", *tree = "";

	if (members_known(c->body, known, f) < 0 || member_text(c->body, "to", &to, f) < 0 ||
	    member_text(c->body, "at", &at, f) < 0 || member_text(c->body, "tree", &tree, f) < 0 ||
	    member_duration(c->body, "timeout", &ask->timeout_ms, f) < 0)
		return -1;
	if (to[0] != '/' || strlen(to) > PATH_TEXT_MAX)
		return fail_set(f, FAIL_INVALID, "to: an absolute path");
	if (!is_hash(tree))
		return fail_set(f, FAIL_INVALID, "tree: a SHA-256, in small hex digits");
	if (ask->timeout_ms > APPROVAL_MS_MAX)
		return fail_set(f, FAIL_INVALID, "timeout: a week is the most");
	str_addf(what, "apply to %s, tree %s: ", to, tree);
	return take_files(json_object_get(c->body, "files"), what, f);
}

static int begin(struct call *c, const struct wsx *w, char id[ID_SIZE], struct fail *f)
{
	AUTO(str_done) struct str what = { .max = WHAT_MAX };
	struct approval_ask ask = { .kind = APPROVAL_APPLY,
		                    .tenant = w->row.tenant,
		                    .workspace = w->row.id,
		                    .why = "files that execute later, in a folder of the host",
		                    .suggestion = "caisson apply --allow-exec PATTERN",
		                    .detail = c->body };

	if (take(c, &ask, &what, f) < 0)
		return -1;
	ask.what = str_text(&what);
	return approval_ask(c->api->core, &ask, decided, c->state, id, f);
}

void workspace_ask(struct call *c)
{
	const struct wsx *w = call_workspace(c);
	struct asking_apply *q = w ? mem_alloc(sizeof *q) : NULL;
	struct fail f = { 0 };
	char id[ID_SIZE];

	if (!w)
		return;
	*q = (struct asking_apply){ .call = c, .core = c->api->core };
	c->state = q;
	if (begin(c, w, id, &f) < 0) {
		c->state = NULL;
		free(q);
		answer_fail(c, &f);
		return;
	}
	call_ref(c);
	c->over = over;
	reply_begin(c->r, 200, "application/x-ndjson", -1,
	            (const char *[]){ "Cache-Control", "no-store", NULL });
	const struct approval_row *row = approval_find(c->api->core, id);

	if (row) /* else it was decided before: that is the only line */
		put(c, row);
}
