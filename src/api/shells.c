/*
 * shells.c - /v1/sandboxes/{id}/shells: the named shells of a sandbox. They are made by exec.
 */
#include "core/shells.h"
#include "api/handlers.h"

static json_t *print_shell(struct sbx *s, const struct shl *sh)
{
	const struct px *p = shells_busy(s, sh->name);
	bool lives = sh->lives && sh->generation == s->generation && s->link.watch.fd >= 0;
	json_t *o = json_pack("{ss,ss,sI}", "name", sh->name, "state",
	                      p       ? "busy"
	                      : lives ? "idle"
	                              : "ended",
	                      "restarts", (json_int_t)sh->restarts);

	json_object_set_new(o, "process", p ? json_string(p->id) : json_null());
	json_object_set_new(o, "cwd", sh->cwd ? json_string(sh->cwd) : json_null());
	return o;
}

void shell_list(struct call *c)
{
	struct sbx *s = call_sandbox(c);
	json_t *rows;

	if (!s)
		return;
	rows = json_array();
	for (const struct shl *sh = shells_list(s); sh; sh = sh->next)
		json_array_append_new(rows, print_shell(s, sh));
	answer_json(c, 200, json_pack("{so}", "shells", rows));
}

void shell_delete(struct call *c)
{
	struct sbx *s = call_sandbox(c);
	struct fail f = { 0 };

	if (!s)
		return;
	call_ref(c);
	if (shells_delete(s, c->params[1], (struct store_call){ .done = answer_dropped, .arg = c },
	                  &f) < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}
