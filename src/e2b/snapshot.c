/*
 * snapshot.c - a snapshot is a workspace of its own, a fork of the sandbox's, under a key by which
 * it is known. A sandbox that is made from it gets another fork.
 */
#include "core/details.h"
#include "core/template.h"
#include "core/workspace.h"
#include "e2b/e2b-internal.h"

#define KEY_PREFIX "e2b.snapshot."
#define TAG ":default"
#define KEY_SIZE 192
#define LIST_MOST 100

/* "name" is "name:default". False: no name that a snapshot could have. */
static bool key_of(const char *name, char out[KEY_SIZE])
{
	int n = snprintf(out, KEY_SIZE, KEY_PREFIX "%s%s", name, strchr(name, ':') ? "" : TAG);

	return *name && n < KEY_SIZE && key_is(out, (size_t)n);
}

struct wsx *snapshot_find(struct call *c, const char *name)
{
	char key[KEY_SIZE];
	struct fail f;

	return key_of(name, key) ? wsx_find(c->api->core, c->tenant, key, &f) : NULL;
}

/* ---- make ---------------------------------------------------------------------------- */

struct snapshot {
	struct call *call;
	char name[KEY_SIZE];
	bool is_named;
};

static json_t *print_snapshot(const char *name)
{
	return json_pack("{ss,s[s]}", "snapshotID", name, "names", name);
}

static void made(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	struct snapshot *o = arg;

	(void)ids;
	(void)n;
	if (f)
		answer_fail(o->call, f);
	else
		e2b_answer(o->call, 201, print_snapshot(o->name));
	call_unref(o->call);
	free(o);
}

void e2b_snapshot_make(struct call *c)
{
	struct sbx *s = e2b_sandbox(c);
	const char *name = "";
	char random[ID_SIZE], key[KEY_SIZE];
	struct fail f = { 0 };

	if (!s)
		return;
	id_make(random, "snp");
	int r = member_text(c->body, "name", &name, &f);
	if (r == 0 && !key_of(*name ? name : random + strlen("snp_"), key))
		r = fail_set(&f, FAIL_INVALID, "name: letters, digits and ._@-");
	if (r == 0 && (!s->workspace || !(s->life & LIFE_OWNS_WORK)))
		r = fail_set(&f, FAIL_UNENFORCEABLE, "the sandbox has no home folder that is kept");
	struct snapshot *o = mem_alloc(sizeof *o);
	*o = (struct snapshot){ .call = call_ref(c) };
	if (r == 0) {
		snprintf(o->name, sizeof o->name, "%s", key + strlen(KEY_PREFIX));
		r = wsx_fork(s->workspace, &(struct wsx_forks){ .n = 1, .key = key }, made, o, &f);
	}
	if (r < 0)
		made(o, NULL, 0, &f);
}

/* ---- look ---------------------------------------------------------------------------- */

/* The workspace of a sandbox, also of one that is gone. */
static const char *parent_of(struct call *c, const char *sandbox)
{
	struct sandbox_row row;
	char id[ID_SIZE];
	struct err e;

	if (!ident_in(span_of(sandbox), id) ||
	    store_sandbox_get(c->api->core->store, c->tenant, id, &c->arena, &row, &e) < 0)
		return NULL;
	return row.workspace;
}

static void answer_list(struct call *c, const struct workspace_list *list)
{
	const char *name = call_query(c, "name");
	char wanted[KEY_SIZE] = "";
	const char *extra[] = { "X-Next-Token", list->next, NULL };
	json_t *rows = json_array();

	if (name && !key_of(name, wanted))
		snprintf(wanted, sizeof wanted, "?"); /* nothing is called so */
	for (size_t i = 0; i < list->n; i++) {
		const char *key = list->rows[i].key;

		if (key && strncmp(key, KEY_PREFIX, strlen(KEY_PREFIX)) == 0 &&
		    (!name || strcmp(key, wanted) == 0))
			json_array_append_new(rows, print_snapshot(key + strlen(KEY_PREFIX)));
	}
	AUTO(freep) char *text = json_dumps(rows, JSON_COMPACT);
	json_decref(rows);
	c->is_answered = true;
	reply(c->r, 200, "application/json", text, strlen(text), list->next ? extra : NULL);
}

void e2b_snapshot_list(struct call *c)
{
	const char *sandbox = call_query(c, "sandboxID");
	struct workspace_query q = { .page = { .tenant = c->tenant,
		                               .cursor = call_query(c, "nextToken") } };
	struct workspace_list list = { 0 };
	uint64_t limit = LIST_MOST;
	struct fail f = { 0 };
	struct err e = { 0 };

	int r = query_number(c, "limit", &limit, &f);
	if (r == 0 && (limit < 1 || limit > LIST_MOST))
		r = fail_set(&f, FAIL_INVALID, "limit: 1 to %d", LIST_MOST);
	q.page.limit = limit;
	q.parent = sandbox ? parent_of(c, sandbox) : NULL;
	bool is_nobody = sandbox && !q.parent;
	if (r == 0 && !is_nobody &&
	    store_workspace_list(c->api->core->store, &q, &c->arena, &list, &e) < 0)
		r = fail_err(&f, &e);
	if (r < 0)
		answer_fail(c, &f);
	else
		answer_list(c, &list);
}

/* ---- as a template ------------------------------------------------------------------- */

void e2b_template_delete(struct call *c)
{
	struct wsx *w = snapshot_find(c, c->params[0]);
	struct fail f = { 0 };

	if (!w) {
		if (!template_drop(c, c->params[0]))
			e2b_refuse(c, 404, "the template was not found");
		return;
	}
	call_ref(c);
	if (wsx_delete(w, true, workspace_gone, c, &f) == 0)
		return;
	answer_fail(c, &f);
	call_unref(c);
}

void e2b_alias_get(struct call *c)
{
	const char *name = c->params[0];
	struct template_row row;
	struct fail f;

	if (strcmp(name, E2B_TEMPLATE) == 0 || snapshot_find(c, name))
		e2b_answer(c, 200,
		           json_pack("{so,sb}", "templateID", details_text(name), "public", 0));
	else if (template_find(c->api->core, c->tenant, name, &c->arena, &row, &f) == 0)
		e2b_answer(c, 200, json_pack("{ss,sb}", "templateID", row.id, "public", 0));
	else
		e2b_refuse(c, 404, "the template was not found");
}
