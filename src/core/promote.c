#include "core/promote.h"

#include "core/canary.h"
#include "core/gitscript.h"
#include "core/notes.h"

#define LOOK_MS (30ull * 60 * 1000)
#define LOOK_BYTES_MAX (64ull << 30) /* it goes nowhere */

struct look {
	struct wsx *w; /* a reference */
	const char *verb;
	struct canaries *canaries;
	struct canary_scan scan;
	const char *found; /* of `canaries` */
	promote_done_fn *done;
	void *arg;
};

int promote_refuse(const struct wsx *w, const char *verb, const char *canary, struct fail *f)
{
	note_workspace(w, LEDGER_SECRET_CANARY, NULL,
	               json_pack("{ss,ss}", "name", canary, "way", verb));
	return fail_set(f, FAIL_DENIED, "%s: the canary \"%s\" is in what would leave", verb,
	                canary);
}

static void look_end(struct look *l, const struct fail *f)
{
	l->done(l->arg, f);
	wsx_unref(l->w);
	canaries_free(l->canaries);
	free(l);
}

static void on_out(void *arg, const void *bytes, size_t n)
{
	struct look *l = arg;

	if (!l->found)
		l->found = canaries_look(l->canaries, &l->scan, (struct span){ bytes, n });
}

static void on_done(void *arg, const struct service_end *end)
{
	struct look *l = arg;
	struct fail f = { 0 };

	if (l->found)
		(void)promote_refuse(l->w, l->verb, l->found, &f);
	else
		git_explain(end, l->verb, &f);
	look_end(l, f.code == FAIL_NONE ? NULL : &f);
}

void promote_look(struct wsx *w, const struct promote_ask *ask, promote_done_fn *done, void *arg)
{
	struct canaries *canaries = canary_all(w->core, w->row.tenant);
	const char *base = ask->base ? ask->base : w->row.base_commit;
	const char *args[] = { base ? base : "", NULL };
	struct fail f = { 0 };

	if (!canaries) {
		done(arg, NULL);
		return;
	}
	struct look *l = mem_alloc(sizeof *l);
	const struct service_ask service = { .tenant = w->row.tenant,
		                             .script = ask->what == PROMOTE_FILES
		                                           ? git_script_look_files
		                                           : git_script_look_commits,
		                             .args = args,
		                             .workspace = w->row.id,
		                             .is_read_only = true,
		                             .timeout_ms = LOOK_MS,
		                             .out_max = LOOK_BYTES_MAX,
		                             .out = on_out,
		                             .done = on_done,
		                             .arg = l };

	*l = (struct look){
		.w = w, .verb = ask->verb, .canaries = canaries, .done = done, .arg = arg
	};
	wsx_ref(w);
	if (!service_start(w->core, &service, &f))
		look_end(l, &f);
}
