/*
 * verb_repo.c - mirrors of repositories: add, ls, refresh, rm.
 */
#include <stdlib.h>

#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "wire/escape.h"
#include "wire/git.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (4u << 20)

struct repo_opts {
	struct verb_opts common;
	struct flag_list refs;
	const char *refresh, *cred;
};

/* ---- how far it is -------------------------------------------------------------------- */

struct news {
	json_t *last;
	struct str line; /* of the terminal */
};

static int take_news(void *arg, const json_t *value, struct err *e)
{
	struct news *n = arg;
	const char *words = text_of(value, "progress");

	(void)e;
	json_decref(n->last);
	n->last = json_deep_copy(value);
	if (*words) {
		str_clear(&n->line);
		escape_text(words, &n->line);
		progress_show(str_text(&n->line), 0);
	}
	return 0;
}

/* Until nothing is under way: the repository as it is then. */
static int follow(struct client *c, const char *name, json_t **out, struct err *e)
{
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	const char *texts[] = { name };
	struct news news = { .line = { .max = 1024 } };

	client_path(&path, "/v1/repos/{}?follow=1", texts);
	int r = fetch_lines(c, str_text(&path), take_news, &news, e);
	str_done(&news.line);
	progress_end();
	*out = news.last;
	return r;
}

/* ---- add ------------------------------------------------------------------------------ */

static int add_body(const struct repo_opts *x, const char *url, json_t **out, struct err *e)
{
	AUTO(json_decrefp) json_t *body = json_object();
	json_t *refs = json_array();
	int r = json_object_set_new(body, "url", json_string(url));

	for (size_t i = 0; i < x->refs.len; i++)
		r |= json_array_append_new(refs, json_string(x->refs.at[i]));
	if (x->refs.len > 0)
		json_object_set(body, "refs", refs);
	json_decref(refs);
	if (x->cred)
		r |= json_object_set_new(body, "cred", json_string(x->cred));
	if (x->refresh)
		r |= json_object_set_new(body, "refresh", json_string(x->refresh));
	if (r < 0)
		return err_new(e, ERR_INVALID, "not UTF-8");
	*out = json_incref(body);
	return 0;
}

static int print_one(const struct repo_opts *x, json_t *repo, struct err *e)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	if (x->common.is_json)
		return print_json(json_incref(repo), e);
	str_addf(&out, "%s %s\n", text_of(repo, "key"), text_of(repo, "id"));
	return print_text(&out, e);
}

/* Asked for, then looked after until it is there or has failed: that is in its state. */
static int mirror(struct client *c, const char *key, json_t *body, json_t **out, struct err *e)
{
	const char *texts[] = { key };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *repo = NULL;

	client_path(&path, "/v1/repos/{}?wait=0", texts);
	if (client_call(c, "PUT", str_text(&path), json_incref(body), &repo, e) < 0)
		return -1;
	if (strcmp(text_of(repo, "state"), "cloning") != 0) {
		*out = json_incref(repo);
		return 0;
	}
	return follow(c, text_of(repo, "id"), out, e);
}

/* A folder by its whole name: the daemon has another working folder. */
static int add(struct verb_call *c, struct err *e)
{
	const struct repo_opts *x = c->opts;
	AUTO(freep)
	char *folder = strstr(c->words.at[1], "://") ? NULL : realpath(c->words.at[1], NULL);
	const char *url = folder ? folder : c->words.at[1];
	AUTO(json_decrefp) json_t *body = NULL, *repo = NULL;
	struct git_url u;
	char key[64];

	if (git_url_read(url, &u, e) < 0 || add_body(x, url, &body, e) < 0)
		return -1;
	git_url_key(&u, key, sizeof key);
	if (mirror(&c->client, c->words.n > 2 ? c->words.at[2] : key, body, &repo, e) < 0)
		return -1;
	if (strcmp(text_of(repo, "state"), "failed") != 0)
		return print_one(x, repo, e);
	fprintf(stderr, "caisson: %s\n", escape_brief(text_of(repo, "reason")));
	return EXIT_REFUSED;
}

/* Of a URL or a folder that is new: mirrored, with progress. What else is wrong with it is said by
 * whoever uses it. */
int repo_prepare(struct client *c, const char *url, struct err *e)
{
	const char *texts[] = { url };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *body = NULL, *repo = NULL;
	const struct repo_opts none = { 0 };
	struct err unknown = { 0 };
	struct git_url u;
	char key[64];

	if (git_url_read(url, &u, &unknown) < 0)
		return 0; /* a key or an id */
	client_path(&path, "/v1/repos/{}", texts);
	if (client_call(c, "GET", str_text(&path), NULL, &repo, &unknown) == 0)
		return 0;
	git_url_key(&u, key, sizeof key);
	if (add_body(&none, url, &body, e) < 0)
		return -1;
	(void)!mirror(c, key, body, &repo, &unknown);
	return 0;
}

/* ---- ls, refresh, rm ------------------------------------------------------------------ */

static void add_row(struct table *t, const json_t *repo)
{
	table_cell(t, text_of(repo, "key"));
	table_cell(t, text_of(repo, "id"));
	table_cell(t, text_of(repo, "state"));
	table_cell(t, brief_age(number_of(repo, "fetched_ms")).text);
	table_cell(t, text_of(repo, "head"));
	table_cell(t, text_of(repo, "url"));
}

static int list(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "KEY", "ID", "STATE", "FETCHED", "HEAD", "URL", NULL };
	const struct repo_opts *x = c->opts;
	AUTO(table_clear) struct table t = { 0 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *repo;
	size_t i;

	if (fetch_list(&c->client, "/v1/repos", "repos", &all, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_pack("{sO}", "repos", all), e);
	table_init(&t, heads);
	json_array_foreach(all, i, repo) add_row(&t, repo);
	table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static int refresh(struct verb_call *c, struct err *e)
{
	const struct repo_opts *x = c->opts;

	for (size_t i = 1; i < c->words.n; i++) {
		const char *texts[] = { c->words.at[i] };
		AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
		AUTO(str_done) struct str out = { .max = TEXT_MAX };
		AUTO(json_decrefp) json_t *repo = NULL;

		client_path(&path, "/v1/repos/{}/refresh", texts);
		c->client.doing = "fetching";
		if (client_call(&c->client, "POST", str_text(&path), json_object(), &repo, e) < 0)
			return err_wrap(e, "%s", c->words.at[i]);
		const char *old = text_of(repo, "old"), *new = text_of(repo, "new");
		if (x->common.is_json) {
			if (print_json(json_incref(repo), e) < 0)
				return -1;
			continue;
		}
		str_addf(&out, "%s %s %.12s%s%.12s\n", text_of(repo, "key"), text_of(repo, "head"),
		         old, strcmp(old, new) == 0 || !*old ? "" : "..",
		         strcmp(old, new) == 0 ? "" : new);
		if (print_text(&out, e) < 0)
			return -1;
	}
	return 0;
}

static int drop(struct verb_call *c, struct err *e)
{
	for (size_t i = 1; i < c->words.n; i++) {
		const char *texts[] = { c->words.at[i] };
		AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

		client_path(&path, "/v1/repos/{}", texts);
		if (client_call(&c->client, "DELETE", str_text(&path), NULL, NULL, e) < 0)
			return err_wrap(e, "%s", c->words.at[i]);
	}
	return 0;
}

static int repo_run(struct verb_call *c, struct err *e)
{
	static const struct {
		const char *name;
		size_t words_min, words_max;
		int (*run)(struct verb_call *c, struct err *e);
	} actions[] = { { "add", 2, 3, add },
		        { "ls", 1, 1, list },
		        { "refresh", 2, SIZE_MAX, refresh },
		        { "rm", 2, SIZE_MAX, drop } };

	for (size_t i = 0; i < COUNT(actions); i++)
		if (strcmp(actions[i].name, c->words.at[0]) == 0 &&
		    c->words.n >= actions[i].words_min && c->words.n <= actions[i].words_max)
			return actions[i].run(c, e);
	return err_new(e, ERR_INVALID, "caisson repo %s", c->verb->usage);
}

/* clang-format off */
static const struct flag repo_flags[] = {
	{ '\0', FLAG_LIST, "ref",     offsetof(struct repo_opts, refs), "PATTERN", "add: what is mirrored, such as refs/pull/*/head; branches and tags unless given", NULL },
	{ '\0', FLAG_TEXT, "cred",    offsetof(struct repo_opts, cred), "SECRET", "add: the secret that goes with its requests (caisson secret)", NULL },
	{ '\0', FLAG_TEXT, "refresh", offsetof(struct repo_opts, refresh), "WHEN", "add: before a branch is used: always, manual, or when the last fetch is older than this", "always manual" },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_repo = {
	.name = "repo",
	.usage = "add URL|DIR [KEY] | ls | refresh REPO... | rm REPO...",
	.does = "mirrors of repositories, cloned once for all workspaces",
	.more =
	    "A mirror has every commit and is never edited. Clone and fetch run in a sandbox "
	    "that reaches that one host; a folder is read with your own rights. REPO is a key or "
	    "an id.",
	.flags = repo_flags,
	.n_flags = COUNT(repo_flags),
	.words = "[add ls refresh rm]",
	.opts_size = sizeof(struct repo_opts),
	.words_min = 1,
	.words_max = SIZE_MAX,
	.run = repo_run
};
