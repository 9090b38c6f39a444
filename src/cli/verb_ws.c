/*
 * verb_ws.c - workspaces: ws ls, show, rm, restore-trash, pin; up, fork.
 */
#include "cli/verbs.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/pack.h"
#include "cli/policy.h"
#include "cli/registry.h"
#include "cli/table.h"
#include "wire/escape.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (64u << 20)

static int print_line(const char *text, struct err *e)
{
	AUTO(str_done) struct str line = { .max = 8192 };

	escape_text(text, &line);
	str_add(&line, "\n");
	return print_text(&line, e);
}

static int put_text(json_t *o, const char *key, const char *text, struct err *e)
{
	if (text && json_object_set_new(o, key, json_string(text)) < 0)
		return err_new(e, ERR_INVALID, "%s: not UTF-8", key);
	return 0;
}

/* ---- ws ------------------------------------------------------------------------------ */

struct ws {
	struct verb_opts common;
	bool is_quiet, is_trash, is_forced, has_usage;
	const char *ttl;
};

static void add_workspace(struct table *t, const json_t *w)
{
	const json_t *usage = json_object_get(w, "usage");

	table_cell(t, text_of(w, "id"));
	table_cell(t, text_of(w, "key"));
	table_cell(t, text_of(w, "state"));
	table_cell(t, json_is_true(json_object_get(w, "dirty")) ? "changed" : "");
	table_cellf(t, "%lld", (long long)number_of(w, "rev"));
	table_cellf(t, "%zu", json_array_size(json_object_get(w, "sandboxes")));
	table_cell(t, json_is_true(json_object_get(w, "pin")) ? "yes" : "");
	table_cell(t, brief_age(number_of(w, "created_ms")).text);
	table_cell(t, text_of(w, "parent"));
	if (!usage)
		return;
	table_cell(t, brief_bytes((uint64_t)number_of(usage, "unique")).text);
	table_cell(t, brief_bytes((uint64_t)number_of(usage, "shared")).text);
}

static int print_workspaces(const json_t *list, bool is_quiet, struct err *e)
{
	static const char *const plain[] = { "ID",        "KEY", "STATE", "CHANGES", "REV",
		                             "SANDBOXES", "PIN", "AGE",   "PARENT",  NULL };
	static const char *const full[] = { "ID",     "KEY",       "STATE",  "CHANGES",
		                            "REV",    "SANDBOXES", "PIN",    "AGE",
		                            "PARENT", "UNIQUE",    "SHARED", NULL };
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *w;
	size_t i;

	table_init(&t, json_object_get(json_array_get(list, 0), "usage") ? full : plain);
	json_array_foreach(list, i, w)
	{
		if (is_quiet)
			str_addf(&out, "%s\n", text_of(w, "id"));
		else
			add_workspace(&t, w);
	}
	if (!is_quiet)
		table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static int ws_list(struct verb_call *c, struct err *e)
{
	const struct ws *x = c->opts;
	AUTO(json_decrefp) json_t *list = NULL;
	static const char *const paths[2][2] = {
		{ "/v1/workspaces", "/v1/workspaces?usage=1" },
		{ "/v1/workspaces?trash=1", "/v1/workspaces?trash=1&usage=1" },
	};
	const char *path = paths[x->is_trash][x->has_usage];

	if (fetch_list(&c->client, path, "workspaces", &list, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_pack("{sO}", "workspaces", list), e);
	return print_workspaces(list, x->is_quiet, e);
}

static int ws_info(struct verb_call *c, struct err *e)
{
	const struct ws *x = c->opts;
	const char *texts[] = { c->words.at[1] };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *w = NULL;

	client_path(&path, "/v1/workspaces/{}?usage=1", texts);
	if (client_call(&c->client, "GET", str_text(&path), NULL, &w, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(w), e);
	AUTO(freep) char *text = json_dumps(w, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	str_addf(&out, "%s\n", text);
	return print_text(&out, e);
}

/* One request for each of the words; what it says is for --json. */
static int each(struct verb_call *c, const char *method, const char *pattern, const json_t *body,
                struct err *e)
{
	const struct ws *x = c->opts;

	for (size_t i = 1; i < c->words.n; i++) {
		const char *texts[] = { c->words.at[i] };
		AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
		AUTO(json_decrefp) json_t *w = NULL;
		bool is_delete = strcmp(method, "DELETE") == 0;

		client_path(&path, pattern, texts);
		if (client_call(&c->client, method, str_text(&path),
		                body ? json_deep_copy(body) : NULL, is_delete ? NULL : &w, e) < 0)
			return err_wrap(e, "%s", c->words.at[i]);
		if (x->common.is_json && w && print_json(json_incref(w), e) < 0)
			return -1;
	}
	return 0;
}

static int ws_rm(struct verb_call *c, struct err *e)
{
	const struct ws *x = c->opts;

	return each(c, "DELETE", x->is_forced ? "/v1/workspaces/{}?force=1" : "/v1/workspaces/{}",
	            NULL, e);
}

static int ws_untrash(struct verb_call *c, struct err *e)
{
	return each(c, "POST", "/v1/workspaces/{}/restore-trash", NULL, e);
}

static int ws_keep(struct verb_call *c, bool is_pinned, struct err *e)
{
	const struct ws *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_pack("{sb}", "pin", is_pinned);

	if (put_text(body, "ttl", x->ttl, e) < 0)
		return -1;
	return each(c, "PATCH", "/v1/workspaces/{}", body, e);
}

static int ws_pin(struct verb_call *c, struct err *e)
{
	return ws_keep(c, true, e);
}

static int ws_unpin(struct verb_call *c, struct err *e)
{
	return ws_keep(c, false, e);
}

static int ws_run(struct verb_call *c, struct err *e)
{
	static const struct {
		const char *name;
		size_t words_min, words_max;
		int (*run)(struct verb_call *c, struct err *e);
	} actions[] = {
		{ "ls", 1, 1, ws_list },
		{ "info", 2, 2, ws_info },
		{ "show", 2, 2, ws_info },
		{ "rm", 2, SIZE_MAX, ws_rm },
		{ "restore-trash", 2, SIZE_MAX, ws_untrash },
		{ "pin", 2, SIZE_MAX, ws_pin },
		{ "unpin", 2, SIZE_MAX, ws_unpin },
	};

	for (size_t i = 0; i < COUNT(actions); i++)
		if (strcmp(actions[i].name, c->words.at[0]) == 0 &&
		    c->words.n >= actions[i].words_min && c->words.n <= actions[i].words_max)
			return actions[i].run(c, e);
	return err_new(e, ERR_INVALID, "caisson ws %s", c->verb->usage);
}

/* clang-format off */
static const struct flag ws_flags[] = {
	{ 'q',  FLAG_SWITCH, "quiet", offsetof(struct ws, is_quiet), NULL, "ls: only their ids", NULL },
	{ '\0', FLAG_SWITCH, "trash", offsetof(struct ws, is_trash), NULL, "ls: those in the trash", NULL },
	{ '\0', FLAG_SWITCH, "usage", offsetof(struct ws, has_usage), NULL, "ls: with what they have on disk, alone and shared", NULL },
	{ 'f',  FLAG_SWITCH, "force", offsetof(struct ws, is_forced), NULL, "rm: although it has changes, or sandboxes, which are ended", NULL },
	{ '\0', FLAG_TEXT,   "ttl",   offsetof(struct ws, ttl), "DURATION", "unpin: to the trash after this long without use", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_ws = {
	.name = "ws",
	.usage = "ls | show WS | rm WS... | restore-trash ID... | pin WS... | unpin WS...",
	.does = "the workspaces: durable trees",
	.more =
	    "A workspace survives its sandboxes, restarts and crashes. What is removed lies in the "
	    "trash for a day; there it is found by its id.",
	.flags = ws_flags,
	.n_flags = COUNT(ws_flags),
	.words = "[ls show info rm restore-trash pin unpin]",
	.opts_size = sizeof(struct ws),
	.words_min = 1,
	.words_max = SIZE_MAX,
	.run = ws_run
};

/* ---- up ------------------------------------------------------------------------------ */

struct up {
	struct verb_opts common;
	struct spec spec;
	const char *task, *from, *mode, *ttl, *branch;
	bool is_pinned;
	char *repo, *base; /* of REPO@REF, or NULL */
	char key[96];
};

static void up_init(void *opts)
{
	spec_init(&((struct up *)opts)->spec);
}

static void up_done(void *opts)
{
	struct up *x = opts;

	spec_done(&x->spec);
	free(x->repo);
	free(x->base);
}

static int up_other(void *opts, int argc, char **argv, int *i, struct err *e)
{
	return policy_flag(&((struct up *)opts)->spec, argc, argv, i, e);
}

static json_t *up_body(struct up *x, struct err *e)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	AUTO(str_done) struct str none = { .max = SPEC_BYTES_MAX };
	AUTO(spec_done) struct spec empty;
	json_t *body = json_object();

	spec_init(&empty);
	if (registry_expand(&x->spec, e) < 0 || spec_print(&x->spec, &text, e) < 0 ||
	    spec_print(&empty, &none, e) < 0 || put_text(body, "mode", x->mode, e) < 0 ||
	    put_text(body, "ttl", x->ttl, e) < 0 || put_text(body, "repo", x->repo, e) < 0 ||
	    put_text(body, "base", x->base, e) < 0 || put_text(body, "branch", x->branch, e) < 0) {
		json_decref(body);
		return NULL;
	}
	if (x->is_pinned)
		json_object_set_new(body, "pin", json_true());
	if (strcmp(str_text(&text), str_text(&none)) != 0) /* else the stored one holds */
		json_object_set_new(body, "spec", json_loadb(str_text(&text), text.len, 0, NULL));
	return body;
}

/* A folder is packed on the way; a file is an archive already. It is unpacked behind walls. */
static int import(struct verb_call *c, const char *id, const char *from, struct err *e)
{
	const char *texts[] = { id };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(fd_close) int fd = open(from, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %s", from);
	client_path(&path, "/v1/workspaces/{}/archive", texts);
	struct client_ask ask = { .method = "PUT",
		                  .path = str_text(&path),
		                  .type = "application/x-tar",
		                  .source = file_source,
		                  .arg = &fd };
	c->client.doing = "importing";
	if (S_ISDIR(st.st_mode))
		return pack_send(&c->client, &ask, (struct pack_what){ from, NULL }, NULL, e);
	return client_json(&c->client, &ask, NULL, e);
}

/* REPO@REF: a key, an id, a URL, or a folder by whatever name. */
static void take_repo(struct up *x, const char *word)
{
	AUTO(freep) char *name = mem_strdup(word);
	char *at = strrchr(name, '@');

	if (at) {
		*at = '\0';
		x->base = mem_strdup(at + 1);
	}
	x->repo = name[0] == '.' || name[0] == '/' ? realpath(name, NULL) : NULL;
	if (!x->repo)
		x->repo = mem_strdup(name);
}

/* Of one that has no name of the caller's: what it is of, and chance. */
static void make_task(struct up *x)
{
	const char *last = strrchr(x->repo, '/');
	unsigned int chance[2] = { 0 };
	int n = 0;

	(void)!getrandom(chance, sizeof chance, 0);
	for (last = last ? last + 1 : x->repo; *last && n < 40; last++)
		if ((*last >= 'a' && *last <= 'z') || (*last >= '0' && *last <= '9') ||
		    (*last >= 'A' && *last <= 'Z'))
			x->key[n++] = *last;
	snprintf(x->key + n, sizeof x->key - (size_t)n, "-%08x", chance[0]);
	x->task = x->key + (n == 0);
}

static int up_run(struct verb_call *c, struct err *e)
{
	struct up *x = c->opts;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *w = NULL;

	if (c->words.n > 0)
		take_repo(x, c->words.at[0]);
	if (!x->task && !x->repo)
		return err_new(e, ERR_INVALID, "--task is needed: a name for the work");
	if (!x->task)
		make_task(x);
	if (x->repo && repo_prepare(&c->client, x->repo, e) < 0)
		return -1;
	const char *texts[] = { x->task };
	json_t *body = up_body(x, e);
	if (!body)
		return -1;
	client_path(&path, "/v1/workspaces/{}", texts);
	c->client.doing = "making a workspace";
	if (client_call(&c->client, "PUT", str_text(&path), body, &w, e) < 0)
		return -1;
	bool is_new = number_of(w, "rev") == 1 && !json_is_true(json_object_get(w, "dirty"));
	if (x->from && !is_new)
		return err_new(e, ERR_INVALID, "%s has been worked on: nothing is imported into it",
		               text_of(w, "id"));
	if (x->from && import(c, text_of(w, "id"), x->from, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(w), e) : print_line(text_of(w, "id"), e);
}

/* clang-format off */
static const struct flag up_flags[] = {
	{ '\0', FLAG_TEXT,   "task", offsetof(struct up, task), "KEY", "a name of yours: the same one gives the same workspace", NULL },
	{ '\0', FLAG_TEXT,   "branch", offsetof(struct up, branch), "NAME", "a new branch for its commits; REF unless given", NULL },
	{ '\0', FLAG_TEXT,   "from", offsetof(struct up, from), "DIR|TAR", "what it begins with", NULL },
	{ '\0', FLAG_TEXT,   "mode", offsetof(struct up, mode), "edit|read", "read: nobody can write to it", "edit read" },
	{ '\0', FLAG_TEXT,   "ttl",  offsetof(struct up, ttl), "DURATION", "to the trash after this long without use", NULL },
	{ '\0', FLAG_SWITCH, "pin",  offsetof(struct up, is_pinned), NULL, "it never expires", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_up = { .name = "up",
	                     .usage = "[REPO[@REF]] [--task KEY] [--from DIR|TAR] [options]",
	                     .does = "get a workspace or make it; prints its id",
	                     .more =
	                         "REPO is a repository (`caisson repo`), a URL or a folder with "
	                         "one; REF a branch, tag or commit. The options of a spec are for "
	                         "the sandbox that its commands "
	                         "run in by default (`caisson exec`).",
	                     .flags = up_flags,
	                     .n_flags = COUNT(up_flags),
	                     .takes_spec = true,
	                     .words_max = 1,
	                     .opts_size = sizeof(struct up),
	                     .refused = EXIT_OURS,
	                     .init = up_init,
	                     .done = up_done,
	                     .other = up_other,
	                     .run = up_run };

/* ---- fork ---------------------------------------------------------------------------- */

struct fork_opts {
	struct verb_opts common;
	struct flag_number n;
	const char *key, *at;
};

static int fork_run(struct verb_call *c, struct err *e)
{
	const struct fork_opts *x = c->opts;
	AUTO(json_decrefp) json_t *made = NULL;
	json_t *body = json_object();

	if (x->n.is_set)
		json_object_set_new(body, "n", json_integer((json_int_t)x->n.value));
	if (put_text(body, "key", x->key, e) < 0 || put_text(body, "at", x->at, e) < 0) {
		json_decref(body);
		return -1;
	}
	c->client.doing = "forking";
	if (sandbox_call(c, "POST", "/v1/workspaces/{}/fork", body, &made, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(made), e);
	return print_workspaces(json_object_get(made, "workspaces"), true, e);
}

/* clang-format off */
static const struct flag fork_flags[] = {
	{ 'n',  FLAG_NUMBER, NULL,  offsetof(struct fork_opts, n), "N", "so many (1)", NULL },
	{ '\0', FLAG_TEXT,   "key", offsetof(struct fork_opts, key), "KEY", "a name of yours; of several KEY-1, KEY-2, ...", NULL },
	{ '\0', FLAG_TEXT,   "at",  offsetof(struct fork_opts, at), "POINT", "begin with this point instead of what is there now", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_fork = { .name = "fork",
	                       .usage = "WORKSPACE [-n N] [--key KEY] [--at POINT]",
	                       .does =
	                           "more workspaces that begin as this one is; prints their ids",
	                       .more =
	                           "Nothing is copied: it takes milliseconds, whatever the size.",
	                       .flags = fork_flags,
	                       .n_flags = COUNT(fork_flags),
	                       .words = "workspace",
	                       .opts_size = sizeof(struct fork_opts),
	                       .words_min = 1,
	                       .words_max = 1,
	                       .run = fork_run };
