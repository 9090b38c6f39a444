/*
 * verb_apply.c - apply: what a workspace has changed, into a folder of the caller's.
 */
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/apply_job.h"
#include "cli/verbs.h"
#include "wire/escape.h"

#define TEXT_MAX (64u << 20)

struct apply_opts {
	struct verb_opts common;
	const char *to, *at, *from;
	struct flag_list allow;
	const char *timeout;
	bool is_dry, is_sure, takes_ignored, asks_queue;
};

/* Where the caller's own programs keep what they have to know the next time. */
static int journals_path(char *out, size_t size, struct err *e)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n = -1;

	if (state && state[0] == '/')
		n = snprintf(out, size, "%s/caisson/apply", state);
	else if (home && home[0] == '/')
		n = snprintf(out, size, "%s/.local/state/caisson/apply", home);
	return n < 0 || (size_t)n >= size
	           ? err_new(e, ERR_INVALID,
	                     "neither XDG_STATE_HOME nor HOME says where the "
	                     "journal can be")
	           : 0;
}

/* Of this workspace to this folder. */
static int last_key(struct verb_call *c, const char *to, struct str *out, struct err *e)
{
	AUTO(json_decrefp) json_t *workspace = NULL;
	char path[PATH_MAX];

	if (!realpath(to, path))
		return err_sys(e, errno, "open %s", to);
	if (sandbox_call(c, "GET", "/v1/workspaces/{}", NULL, &workspace, e) < 0)
		return -1;
	str_addf(out, "%s %s", text_of(workspace, "id"), path);
	return 0;
}

/* What is applied is a state that stays, and can be found again. */
static int keep_point(struct verb_call *c, struct arena *arena, const char **out, struct err *e)
{
	AUTO(json_decrefp) json_t *point = NULL;

	if (sandbox_call(c, "POST", "/v1/workspaces/{}/snapshots",
	                 json_pack("{ss}", "label", "apply"), &point, e) < 0)
		return -1;
	*out = arena_strdup(arena, text_of(point, "id"));
	return 0;
}

/* ---- questions ----------------------------------------------------------------------- */

static bool can_ask(const struct apply_opts *x)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !x->common.is_json && !x->is_dry;
}

/* The first letter of a line, small; 0 at the end. */
static char read_letter(void)
{
	char line[256];

	if (!fgets(line, sizeof line, stdin))
		return 0;
	return (char)span_lower(line[0]);
}

/* One by one: yes, no (it is left out), or none of it. */
static bool ask_each(struct apply_job *j)
{
	for (size_t i = 0; i < j->change.n; i++) {
		struct apply_note *n = &j->notes[i];

		if (j->change.at[i].act == ACT_LEAVE || !n->later || n->is_allowed)
			continue;
		fprintf(stderr, "%s %s: %s. Take it? [y]es, [n]o: leave it out, [q]uit: ",
		        apply_act_name(j->change.at[i].act), escape_brief(j->change.at[i].path),
		        n->later);
		char c = read_letter();
		if (c == 'y')
			n->is_allowed = true;
		else if (c == 'n')
			apply_leave(j, i, "you said no");
		else
			return false;
	}
	return true;
}

static void answer_all(struct apply_job *j, bool is_yes)
{
	for (size_t i = 0; i < j->change.n; i++) {
		struct apply_note *n = &j->notes[i];

		if (j->change.at[i].act == ACT_LEAVE || !n->later || n->is_allowed)
			continue;
		n->is_allowed = is_yes;
		if (!is_yes)
			apply_leave(j, i, "you said no");
	}
}

/* Asks one question for all files that execute later, listed by reason. False: none of it. */
static bool ask_later(struct apply_job *j)
{
	AUTO(str_done) struct str list = { .max = TEXT_MAX };

	if (j->n_refused == 0)
		return true;
	apply_later_text(j, &list);
	fprintf(stderr,
	        "%sTake these %zu? [y]es, [n]o: leave them out, [e]ach: one by one, [q]uit: ",
	        str_text(&list), j->n_refused);
	char c = read_letter();
	bool is_answered = c == 'y' || c == 'n' || (c == 'e' && ask_each(j));

	if (c == 'y' || c == 'n')
		answer_all(j, c == 'y');
	apply_count(j);
	return is_answered;
}

static bool ask_all(const struct apply_job *j, const char *to)
{
	size_t n = 0;

	for (size_t i = 0; i < j->change.n; i++)
		n += j->change.at[i].act != ACT_NONE && j->change.at[i].act != ACT_LEAVE;
	if (n == 0)
		return true;
	fprintf(stderr, "Apply %zu changes to %s? [y/N] ", n, escape_brief(to));
	return read_letter() == 'y';
}

/* ---- the queue ----------------------------------------------------------------------- */

static json_t *queue_body(const struct apply_job *j, const struct apply_opts *x, const char *to)
{
	AUTO(str_done) struct str text = { .max = SIZE_MAX };
	json_t *files = json_array();
	char tree[TREE_HASH_TEXT];

	for (size_t i = 0; i < j->change.n; i++) {
		const struct apply_note *n = &j->notes[i];

		if (j->change.at[i].act == ACT_LEAVE || !n->later || n->is_allowed)
			continue;
		str_clear(&text);
		escape_text(j->change.at[i].path, &text);
		json_array_append_new(
		    files, json_pack("{ss,ss}", "path", str_text(&text), "why", n->later));
	}
	apply_tree(j, tree);
	str_clear(&text);
	escape_text(to, &text);
	json_t *body = json_pack("{ss,ss,ss,so}", "to", str_text(&text), "at", j->source.at, "tree",
	                         tree, "files", files);

	if (x->timeout)
		json_object_set_new(body, "timeout", json_string(x->timeout));
	return body;
}

struct queued {
	bool is_allowed;
};

/* The question, then what came of it. */
static int take_answer(void *arg, const json_t *approval, struct err *e)
{
	struct queued *q = arg;
	const char *state = text_of(approval, "state");

	(void)e;
	q->is_allowed = strcmp(state, "allowed") == 0;
	if (strcmp(state, "pending") == 0)
		fprintf(stderr,
		        "caisson: some of it executes later; waiting for approval %s "
		        "(caisson approve)\n",
		        escape_brief(text_of(approval, "id")));
	if (q->is_allowed || strcmp(state, "pending") == 0)
		return 0;
	fprintf(stderr, "caisson: approval %s: ", escape_brief(text_of(approval, "id")));
	fprintf(stderr, "%s\n", escape_brief(state));
	return 0;
}

/* All that execute later, in one question: yes to all of them or to none. */
static int ask_queue(struct apply_job *j, struct verb_call *c, const struct apply_opts *x,
                     struct err *e)
{
	const char *texts[] = { c->words.at[0] };
	AUTO(str_done) struct str path = { .max = PATH_MAX };
	struct queued q = { 0 };
	char to[PATH_MAX];

	if (!realpath(x->to, to))
		return err_sys(e, errno, "open %s", x->to);
	client_path(&path, "/v1/workspaces/{}/ask", texts);
	if (post_lines(&c->client, str_text(&path), queue_body(j, x, to), take_answer, &q, e) < 0)
		return -1;
	for (size_t i = 0; i < j->change.n && q.is_allowed; i++)
		j->notes[i].is_allowed |= j->notes[i].later != NULL;
	apply_count(j);
	return 0;
}

/* ---- the verb ------------------------------------------------------------------------ */

static int tell(const struct apply_job *j, const struct apply_opts *x, bool is_applied,
                struct err *e)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	if (x->common.is_json) {
		json_t *o = apply_json(j);

		json_object_set_new(o, "at", json_string(j->source.at));
		json_object_set_new(o, "applied", json_boolean(is_applied));
		return print_json(o, e);
	}
	if (!is_applied && !x->is_dry)
		return 0;
	apply_text(j, &out);
	return print_text(&out, e);
}

static void complain(const struct apply_job *j, const struct apply_opts *x)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	if (x->common.is_json)
		return;
	apply_complaints(j, &out);
	fputs(str_text(&out), stderr);
	if (j->n_refused > 0)
		fprintf(stderr,
		        "caisson: %zu of them execute later and need a yes: "
		        "--allow-exec PATTERN\n",
		        j->n_refused);
	if (j->n_conflicts > 0)
		fprintf(stderr, "caisson: %zu conflicts\n", j->n_conflicts);
}

/* On record before the first file is written, and how it went. */
static int put_on_record(struct apply_job *j, const struct apply_opts *x, const char *state,
                         const struct err *failed, struct err *e)
{
	AUTO(str_done) struct str path = { .max = PATH_MAX };
	AUTO(json_decrefp) json_t *answer = NULL;
	char to[PATH_MAX];
	json_t *body = json_pack("{ss,ss}", "at", j->source.at, "state", state);

	if (!realpath(x->to, to))
		snprintf(to, sizeof to, "%s", x->to);
	json_object_set_new(body, "to", json_string(escape_brief(to)));
	if (failed)
		json_object_set_new(body, "reason", json_string(escape_brief(failed->msg)));
	if (strcmp(state, "begun") == 0) {
		json_t *report = apply_json(j);

		json_object_set(body, "changes", json_object_get(report, "changes"));
		json_decref(report);
	}
	client_path(&path, "/v1/workspaces/{}/applied", &j->source.workspace);
	return client_call(j->source.client, "POST", str_text(&path), body, &answer, e);
}

/* What could not be put on record is not done. */
static int finish(struct apply_job *j, const struct apply_opts *x, struct err *e)
{
	struct err ignored = { 0 };

	if (apply_is_empty(j))
		return 0;
	if (put_on_record(j, x, "begun", NULL, e) < 0)
		return -1;
	if (apply_finish(j, e) < 0) {
		(void)!put_on_record(j, x, "failed", e,
		                     &ignored); /* it was begun, says the ledger */
		return -1;
	}
	return 0;
}

static int decide_and_do(struct apply_job *j, struct verb_call *c, const char *key, struct err *e)
{
	const struct apply_opts *x = c->opts;
	AUTO(str_done) struct str text = { .max = TEXT_MAX };

	if (x->asks_queue && !x->is_dry && j->n_conflicts == 0 && j->n_refused > 0 &&
	    ask_queue(j, c, x, e) < 0)
		return -1;
	if (can_ask(x) && j->n_conflicts == 0) {
		apply_text(j, &text);
		fputs(str_text(&text), stderr);
		bool is_fit = x->asks_queue ? j->n_refused == 0 : ask_later(j);

		if (!is_fit || (!x->is_sure && !ask_all(j, x->to))) {
			fputs("caisson: nothing was applied\n", stderr);
			return EXIT_REFUSED;
		}
	}
	bool is_fine = j->n_conflicts == 0 && j->n_refused == 0;
	bool is_applied = is_fine && !x->is_dry;

	complain(j, x);
	if (is_applied && finish(j, x, e) < 0)
		return err_wrap(e, "nothing was applied");
	if (is_applied && journal_remember(j->run.journals_fd, key, j->source.at, e) < 0)
		return err_wrap(e, "it was applied");
	if (is_applied && !apply_is_empty(j) && put_on_record(j, x, "done", NULL, e) < 0)
		return err_wrap(e, "it was applied");
	if (tell(j, x, is_applied, e) < 0)
		return -1;
	return is_fine ? 0 : EXIT_REFUSED;
}

static int go(struct apply_job *j, struct verb_call *c, const struct apply_opts *x, struct err *e)
{
	AUTO(str_done) struct str key = { .max = PATH_MAX + 64 };
	char journals[PATH_MAX], then[64];

	if (journals_path(journals, sizeof journals, e) < 0 ||
	    apply_open(&j->run, x->to, journals, x->is_dry, e) < 0 ||
	    last_key(c, x->to, &key, e) < 0 ||
	    (!x->at && keep_point(c, &j->list.arena, &j->source.at, e) < 0))
		return -1;
	int has_then = journal_last(j->run.journals_fd, str_text(&key), then, sizeof then, e);
	if (has_then < 0)
		return -1;
	j->source.then = has_then ? then : NULL;
	return apply_study(j, e) < 0 ? -1 : decide_and_do(j, c, str_text(&key), e);
}

static int apply_run_verb(struct verb_call *c, struct err *e)
{
	const struct apply_opts *x = c->opts;
	struct apply_job j;

	if (!x->to)
		return err_new(e, ERR_INVALID, "--to DIR is needed");
	apply_job_init(&j);
	j.source = (struct apply_source){ .client = &c->client,
		                          .workspace = c->words.at[0],
		                          .from = x->from ? x->from : "base",
		                          .at = x->at };
	j.allow = &x->allow;
	j.takes_ignored = x->takes_ignored;
	j.umask = umask(022);
	umask(j.umask);
	c->client.doing = "apply";
	int r = go(&j, c, x, e);
	apply_job_done(&j);
	return r;
}

/* clang-format off */
static const struct flag apply_flags[] = {
	{ '\0', FLAG_TEXT,   "to",         offsetof(struct apply_opts, to), "DIR", "the folder", NULL },
	{ '\0', FLAG_TEXT,   "at",         offsetof(struct apply_opts, at), "POINT", "as the workspace was then; as it is unless given", NULL },
	{ '\0', FLAG_TEXT,   "from",       offsetof(struct apply_opts, from), "POINT", "what the folder has; what the workspace began with unless given", NULL },
	{ '\0', FLAG_LIST,   "allow-exec", offsetof(struct apply_opts, allow), "PATTERN", "also these, although they execute later; * matches / too, but a git folder only with .git in the pattern", NULL },
	{ '\0', FLAG_SWITCH, "ask",        offsetof(struct apply_opts, asks_queue), NULL, "ask for those that execute later in the queue of approvals, and wait for the answer", NULL },
	{ '\0', FLAG_TEXT,   "timeout",    offsetof(struct apply_opts, timeout), "DURATION", "with --ask: no answer in this time is a no", NULL },
	{ '\0', FLAG_SWITCH, "ignored",    offsetof(struct apply_opts, takes_ignored), NULL, "also what git ignores", NULL },
	{ 'n',  FLAG_SWITCH, "dry-run",    offsetof(struct apply_opts, is_dry), NULL, "only say what would be done", NULL },
	{ 'y',  FLAG_SWITCH, "yes",        offsetof(struct apply_opts, is_sure), NULL, "do not ask whether to begin", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_apply = {
	.name = "apply",
	.usage = "WORKSPACE --to DIR [--allow-exec PATTERN]...",
	.does = "take what a workspace has changed to a folder of yours",
	.more =
	    "With your own rights, whole or not at all. A file has to be in DIR what it was when "
	    "the "
	    "workspace began, or what an earlier apply made of it; one that you have changed as "
	    "well "
	    "is merged, if it is text and not the same lines. Files that execute later (hooks, CI, "
	    "build files, settings of tools, editors and agents, new names with a dot in front, "
	    "links that lead out, what becomes executable) need a yes of their own: on a terminal "
	    "you are asked once for all of them, else name them with --allow-exec, or let somebody "
	    "else decide with --ask (caisson approve). The "
	    "workspace's git folder and what git ignores stay where they are. "
	    "Nothing of it is executed. With conflicts, or without a yes, nothing is done, and the "
	    "status is 1. An apply that was killed is undone by the next one.",
	.flags = apply_flags,
	.n_flags = COUNT(apply_flags),
	.words = "workspace",
	.opts_size = sizeof(struct apply_opts),
	.words_min = 1,
	.words_max = 1,
	.run = apply_run_verb
};
