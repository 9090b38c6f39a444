#include "core/promote.h"

#include "core/gitscript.h"
#include "core/notes.h"

#define LOOK_MS (30ull * 60 * 1000)
#define LOOK_BYTES_MAX (64ull << 30) /* it goes nowhere */
#define PIECE_MAX (16u << 20)

struct look {
	struct wsx *w; /* a reference */
	const char *verb;
	struct promote_bar bar;
	struct scanner *scanner;
	promote_done_fn *done;
	void *arg;
};

/* ---- judging ------------------------------------------------------------------------- */

static int judge_canary(const struct wsx *w, const char *verb, const struct scanner *s,
                        struct fail *f)
{
	const char *name = scanner_canary(s);

	if (!name)
		return 0;
	note_workspace(w, LEDGER_SECRET_CANARY, NULL,
	               json_pack("{ss,ss}", "name", name, "way", verb));
	return fail_set(f, FAIL_DENIED, "%s: the canary \"%s\" is in what would leave", verb, name);
}

static void note_secret(const struct wsx *w, const char *verb, const struct scanner *s,
                        bool is_refused)
{
	note_workspace(w, LEDGER_SECRET_MASKED, NULL,
	               json_pack("{ss,ss,sI,sb}", "name", scanner_secret(s), "way", verb, "hits",
	                         (json_int_t)scanner_hits(s), "refused", is_refused));
}

int promote_judge(const struct wsx *w, const char *verb, const struct scanner *s,
                  struct promote_bar bar, struct fail *f)
{
	if (bar.has_canaries && judge_canary(w, verb, s, f) < 0)
		return -1;
	if (!bar.has_secrets || !scanner_secret(s))
		return 0;
	note_secret(w, verb, s, true);
	return fail_set(f, FAIL_DENIED, "%s: the value of the secret \"%s\" is in what would leave",
	                verb, scanner_secret(s));
}

void promote_note_masked(const struct wsx *w, const char *verb, const struct scanner *s)
{
	if (scanner_secret(s))
		note_secret(w, verb, s, false);
}

/* ---- looking ------------------------------------------------------------------------- */

static void look_end(struct look *l, const struct fail *f)
{
	scanner_again(l->scanner);
	l->done(l->arg, f);
	wsx_unref(l->w);
	free(l);
}

static void on_out(void *arg, const void *bytes, size_t n)
{
	AUTO(str_done) struct str unused = { .max = PIECE_MAX };
	struct look *l = arg;

	scanner_feed(l->scanner, (struct span){ bytes, n }, &unused);
}

static void on_done(void *arg, const struct service_end *end)
{
	struct look *l = arg;
	struct fail f = { 0 };

	if (promote_judge(l->w, l->verb, l->scanner, l->bar, &f) == 0)
		git_explain(end, l->verb, &f);
	look_end(l, f.code == FAIL_NONE ? NULL : &f);
}

void promote_look(struct wsx *w, const struct promote_ask *ask, promote_done_fn *done, void *arg)
{
	const char *args[] = { w->row.base_commit ? w->row.base_commit : "", NULL };
	struct look *l = mem_alloc(sizeof *l);
	struct fail f = { 0 };
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

	*l = (struct look){ .w = w,
		            .verb = ask->verb,
		            .bar = ask->bar,
		            .scanner = ask->scanner,
		            .done = done,
		            .arg = arg };
	wsx_ref(w);
	if (!service_start(w->core, &service, &f))
		look_end(l, &f);
}
