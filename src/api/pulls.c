/*
 * pulls.c - a pull or merge request for a branch of a workspace.
 */
#include "core/pull.h"

#include "api/handlers.h"
#include "core/details.h"

static void opened(void *arg, const struct pull_end *end)
{
	struct call *c = arg;

	if (end->fail)
		answer_fail(c, end->fail);
	else
		answer_json(c, end->is_new ? 201 : 200,
		            json_pack("{ss,sI,ss,so,so}", "url", end->url, "number",
		                      (json_int_t)end->number, "forge", end->forge, "branch",
		                      details_text(end->branch), "base", details_text(end->base)));
	call_unref(c);
}

void workspace_pull(struct call *c)
{
	static const char *const known[] = { "title", "body", "branch", "base", "forge",
		                             "api",   "cred", "draft",  NULL };
	struct wsx *w = call_workspace(c);
	struct pull_ask ask = { 0 };
	struct fail f = { 0 };
	const struct {
		const char *key, **text;
	} texts[] = { { "title", &ask.title }, { "body", &ask.text },   { "branch", &ask.branch },
		      { "base", &ask.base },   { "forge", &ask.forge }, { "api", &ask.api },
		      { "cred", &ask.cred } };

	if (!w)
		return;
	int r = members_known(c->body, known, &f);

	for (size_t i = 0; r == 0 && i < COUNT(texts); i++)
		r = member_text(c->body, texts[i].key, texts[i].text, &f);
	if (r == 0)
		r = member_bool(c->body, "draft", &ask.is_draft, &f);
	call_ref(c);
	if (r == 0)
		r = pull_start(w, &ask, opened, c, &f);
	if (r < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}
