/*
 * verb_git.c - what leaves a workspace by git: commit, merge, push, pulls, export.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/verbs.h"
#include "wire/escape.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (4u << 20)

struct git_opts {
	struct verb_opts common;
	const char *message, *author, *branch, *lease, *base, *out, *cred;
	const char *title, *text, *forge, *api;
	bool is_empty_fine, is_forced, is_draft;
};

static int set_text(json_t *o, const char *key, const char *text, struct err *e)
{
	if (text && json_object_set_new(o, key, json_string(text)) < 0)
		return err_new(e, ERR_INVALID, "%s: not UTF-8", key);
	return 0;
}

/* "Name <address>" */
static int set_author(json_t *body, const char *text, struct err *e)
{
	const char *open = text ? strchr(text, '<') : NULL,
		   *close = open ? strchr(open, '>') : NULL;

	if (!text)
		return 0;
	if (!close || close[1] || open == text)
		return err_new(e, ERR_INVALID, "--author: \"Name <address>\" is expected");
	size_t n = (size_t)(open - text);
	while (n > 0 && text[n - 1] == ' ')
		n--;
	json_t *author =
	    json_pack("{ss%,ss%}", "name", text, n, "email", open + 1, (size_t)(close - open - 1));
	return json_object_set_new(body, "author", author) < 0
	           ? err_new(e, ERR_INVALID, "--author: not UTF-8")
	           : 0;
}

/* POST to the workspace; the answer is printed with --json, else it is the caller's. */
static int ask(struct verb_call *c, const char *pattern, json_t *body, json_t **out, struct err *e)
{
	const struct git_opts *x = c->opts;
	const char *texts[] = { c->words.at[0] };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

	client_path(&path, pattern, texts);
	if (client_call(&c->client, "POST", str_text(&path), json_incref(body), out, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(*out), e) : 0;
}

static int print_line(const char *first, const char *second, struct err *e)
{
	AUTO(str_done) struct str text = { .max = TEXT_MAX };

	escape_text(first, &text);
	if (*second) {
		str_add(&text, " ");
		escape_text(second, &text);
	}
	str_add(&text, "\n");
	return print_text(&text, e);
}

static int commit_run(struct verb_call *c, struct err *e)
{
	const struct git_opts *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_object(), *made = NULL;
	json_t *paths = json_array();

	if (c->words.n > 1)
		json_object_set(body, "paths", paths);
	for (size_t i = 1; i < c->words.n; i++)
		json_array_append_new(paths, json_string(c->words.at[i]));
	json_decref(paths);
	if (!x->message)
		return err_new(e, ERR_INVALID, "-m MESSAGE is needed");
	if (x->is_empty_fine)
		json_object_set_new(body, "allow_empty", json_true());
	if (set_text(body, "message", x->message, e) < 0 || set_author(body, x->author, e) < 0 ||
	    ask(c, "/v1/workspaces/{}/commits", body, &made, e) < 0)
		return -1;
	return x->common.is_json ? 0 : print_line(text_of(made, "sha"), "", e);
}

static int merge_run(struct verb_call *c, struct err *e)
{
	const struct git_opts *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_object(), *made = NULL;
	const json_t *conflicts, *one;
	size_t i;

	if (set_text(body, "from", c->words.at[1], e) < 0 ||
	    ask(c, "/v1/workspaces/{}/merge", body, &made, e) < 0)
		return -1;
	conflicts = json_object_get(made, "conflicts");
	json_array_foreach(conflicts, i, one)
	{
		const char *path = text_of(one, "path");

		fprintf(stderr, "caisson: both have changed %s\n",
		        escape_brief(*path ? path : text_of(one, "base64")));
	}
	if (json_array_size(conflicts) > 0)
		return EXIT_REFUSED;
	return x->common.is_json ? 0 : print_line(text_of(made, "sha"), "", e);
}

static int push_run(struct verb_call *c, struct err *e)
{
	const struct git_opts *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_object(), *made = NULL;

	if (x->is_forced)
		json_object_set_new(body, "force_with_lease", json_true());
	if (set_text(body, "branch", x->branch, e) < 0 || set_text(body, "cred", x->cred, e) < 0 ||
	    set_text(body, "force_with_lease", x->lease, e) < 0 ||
	    ask(c, "/v1/workspaces/{}/push", body, &made, e) < 0)
		return -1;
	return x->common.is_json ? 0 : print_line(text_of(made, "remote"), text_of(made, "sha"), e);
}

static int pulls_run(struct verb_call *c, struct err *e)
{
	const struct git_opts *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_object(), *made = NULL;
	const struct {
		const char *key, *text;
	} texts[] = { { "title", x->title }, { "body", x->text },   { "branch", x->branch },
		      { "base", x->base },   { "forge", x->forge }, { "api", x->api },
		      { "cred", x->cred } };

	for (size_t i = 0; i < COUNT(texts); i++)
		if (set_text(body, texts[i].key, texts[i].text, e) < 0)
			return -1;
	if (x->is_draft)
		json_object_set_new(body, "draft", json_true());
	if (ask(c, "/v1/workspaces/{}/pulls", body, &made, e) < 0)
		return -1;
	return x->common.is_json ? 0 : print_line(text_of(made, "url"), "", e);
}

/* ---- export -------------------------------------------------------------------------- */

static const struct {
	const char *word, *pattern;
} formats[] = {
	{ "bundle", "/v1/workspaces/{}/export?format=bundle" },
	{ "patch", "/v1/workspaces/{}/export?format=patch" },
	{ "tar", "/v1/workspaces/{}/archive?format=tar&path=%2F" },
};

static const char *pattern_of(const char *word)
{
	for (size_t i = 0; i < COUNT(formats); i++)
		if (strcmp(formats[i].word, word) == 0)
			return formats[i].pattern;
	return NULL;
}

static int export_run(struct verb_call *c, struct err *e)
{
	const struct git_opts *x = c->opts;
	const char *texts[] = { c->words.at[0] }, *pattern = pattern_of(c->words.at[1]);
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(fd_close)
	int fd =
	    !x->out || !pattern ? -1 : open(x->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (!pattern)
		return err_new(e, ERR_INVALID, "caisson export %s", c->verb->usage);
	if (x->out && fd < 0)
		return err_sys(e, errno, "write %s", x->out);
	client_path(&path, pattern, texts);
	if (x->base) {
		str_add(&path, "&base=");
		client_path(&path, "{}", (const char *[]){ x->base });
	}
	const struct client_ask get = { .method = "GET", .path = str_text(&path) };
	return client_fetch(&c->client, &get, x->out ? fd : STDOUT_FILENO, e);
}

/* ---- rows ---------------------------------------------------------------------------- */

/* clang-format off */
static const struct flag commit_flags[] = {
	{ 'm',  FLAG_TEXT,   "message",     offsetof(struct git_opts, message), "TEXT", "what it is about", NULL },
	{ '\0', FLAG_TEXT,   "author",      offsetof(struct git_opts, author), "WHO", "\"Name <address>\"; agent unless given", NULL },
	{ '\0', FLAG_SWITCH, "allow-empty", offsetof(struct git_opts, is_empty_fine), NULL, "also when nothing has changed", NULL },
	FLAG_JSON,
};
static const struct flag merge_flags[] = {
	FLAG_JSON,
};
static const struct flag push_flags[] = {
	{ '\0', FLAG_TEXT,   "branch",           offsetof(struct git_opts, branch), "NAME", "that of the workspace unless given, or caisson/KEY", NULL },
	{ '\0', FLAG_TEXT,   "cred",             offsetof(struct git_opts, cred), "SECRET", "the secret that goes with it; that of the repository unless given", NULL },
	{ '\0', FLAG_SWITCH, "force-with-lease", offsetof(struct git_opts, is_forced), NULL, "over what was last seen there", NULL },
	{ '\0', FLAG_TEXT,   "over",             offsetof(struct git_opts, lease), "COMMIT", "over this commit, and over nothing else; \"\": only where nothing is", NULL },
	FLAG_JSON,
};
static const struct flag pulls_flags[] = {
	{ 't',  FLAG_TEXT,   "title",  offsetof(struct git_opts, title), "TEXT", "a line", NULL },
	{ '\0', FLAG_TEXT,   "body",   offsetof(struct git_opts, text), "TEXT", "what it is about", NULL },
	{ '\0', FLAG_TEXT,   "branch", offsetof(struct git_opts, branch), "NAME", "that was pushed; as of push unless given", NULL },
	{ '\0', FLAG_TEXT,   "base",   offsetof(struct git_opts, base), "NAME", "where it is to go; what HEAD of the repository is unless given", NULL },
	{ '\0', FLAG_TEXT,   "cred",   offsetof(struct git_opts, cred), "SECRET", "the secret that goes with it; that of the repository unless given", NULL },
	{ '\0', FLAG_TEXT,   "forge",  offsetof(struct git_opts, forge), "FORGE", "github or gitlab; by the host's name unless given", "github gitlab" },
	{ '\0', FLAG_TEXT,   "api",    offsetof(struct git_opts, api), "URL", "the base of its API; https://api.HOST, of GitLab https://HOST/api/v4, unless given", NULL },
	{ '\0', FLAG_SWITCH, "draft",  offsetof(struct git_opts, is_draft), NULL, "it is not ready", NULL },
	FLAG_JSON,
};
static const struct flag export_flags[] = {
	{ 'o',  FLAG_TEXT, "output", offsetof(struct git_opts, out), "FILE", "instead of standard output", NULL },
	{ '\0', FLAG_TEXT, "base",   offsetof(struct git_opts, base), "COMMIT", "only what came after it; what the workspace began with unless given", NULL },
};
/* clang-format on */

const struct verb cmd_commit = {
	.name = "commit",
	.usage = "WORKSPACE -m MESSAGE [PATH]...",
	.does = "commit the files of a workspace",
	.more = "All that is not ignored, or these PATHs. Nothing that lies in the workspace is "
		"executed for it: no hook, filter or setting. Prints the commit.",
	.flags = commit_flags,
	.n_flags = COUNT(commit_flags),
	.words = "workspace file",
	.opts_size = sizeof(struct git_opts),
	.words_min = 1,
	.words_max = SIZE_MAX,
	.run = commit_run
};

const struct verb cmd_merge = {
	.name = "merge",
	.usage = "WORKSPACE FROM",
	.does = "merge another workspace, or a commit, into a workspace",
	.more =
	    "FROM is a workspace, or a branch, tag or commit of the repository. What it has "
	    "committed is merged as commits, what it has not as files. When both have changed the "
	    "same lines, nothing is done, the files are named, and the status is 1.",
	.flags = merge_flags,
	.n_flags = COUNT(merge_flags),
	.words = "workspace",
	.opts_size = sizeof(struct git_opts),
	.words_min = 2,
	.words_max = 2,
	.run = merge_run
};

const struct verb cmd_push = {
	.name = "push",
	.usage = "WORKSPACE [--branch NAME]",
	.does = "push the commits of a workspace to its repository",
	.more = "From a sandbox that reaches that one host. Prints the branch and the commit.",
	.flags = push_flags,
	.n_flags = COUNT(push_flags),
	.words = "workspace",
	.opts_size = sizeof(struct git_opts),
	.words_min = 1,
	.words_max = 1,
	.run = push_run
};

const struct verb cmd_pulls = {
	.name = "pulls",
	.usage = "WORKSPACE --title TEXT [--cred SECRET]",
	.does = "open a pull or merge request for what was pushed",
	.more = "From a sandbox that reaches the forge's API. Prints its address; of a branch that "
		"has one already, that one's.",
	.flags = pulls_flags,
	.n_flags = COUNT(pulls_flags),
	.words = "workspace",
	.opts_size = sizeof(struct git_opts),
	.words_min = 1,
	.words_max = 1,
	.run = pulls_run
};

const struct verb cmd_export = {
	.name = "export",
	.usage = "WORKSPACE bundle|patch|tar [-o FILE]",
	.does = "what a workspace has, as a file",
	.more =
	    "bundle: its commits, for git fetch. patch: its commits, for git am. tar: its files.",
	.flags = export_flags,
	.n_flags = COUNT(export_flags),
	.words = "workspace",
	.opts_size = sizeof(struct git_opts),
	.words_min = 2,
	.words_max = 2,
	.run = export_run
};
