/*
 * verb_life.c - the life of sandboxes: create, list, inspect, stop, start, pause, resume, replace,
 * extend, rm.
 */
#include "cli/verbs.h"

#include "base/limits.h"
#include "cli/policy.h"
#include "cli/registry.h"
#include "cli/table.h"
#include "wire/escape.h"

#define TEXT_MAX (64u << 20)
#define PATH_BYTES_MAX 8192

static int print_line(const char *text, struct err *e)
{
	AUTO(str_done) struct str line = { .max = 8192 };

	escape_text(text, &line);
	str_add(&line, "\n");
	return print_text(&line, e);
}

/* ---- create -------------------------------------------------------------------------- */

struct create {
	struct verb_opts common;
	struct spec spec;
	const char *key;
	struct flag_list labels;
	const char *ttl;
};

static void create_init(void *opts)
{
	struct create *x = opts;

	spec_init(&x->spec);
}

static void create_done(void *opts)
{
	struct create *x = opts;

	spec_done(&x->spec);
}

static int create_other(void *opts, int argc, char **argv, int *i, struct err *e)
{
	struct create *x = opts;

	return policy_flag(&x->spec, argc, argv, i, e);
}

static int add_labels(json_t *body, const struct flag_list *labels, struct err *e)
{
	json_t *all = json_object();

	json_object_set_new(body, "labels", all);
	for (size_t i = 0; i < labels->len; i++) {
		const char *equals = strchr(labels->at[i], '=');
		char name[NAME_TEXT_MAX];

		if (!equals || equals == labels->at[i] ||
		    (size_t)(equals - labels->at[i]) >= sizeof name)
			return err_new(e, ERR_INVALID, "--label: NAME=VALUE is expected");
		snprintf(name, sizeof name, "%.*s", (int)(equals - labels->at[i]), labels->at[i]);
		if (json_object_set_new(all, name, json_string(equals + 1)) < 0)
			return err_new(e, ERR_INVALID, "--label %s: not UTF-8", name);
	}
	return 0;
}

static int add_text(json_t *body, const char *key, const char *text, struct err *e)
{
	if (text && json_object_set_new(body, key, json_string(text)) < 0)
		return err_new(e, ERR_INVALID, "--%s: not UTF-8", key);
	return 0;
}

/* The spec as it was said, not resolved: a default is not a wish. */
static json_t *create_body(struct create *x, struct err *e)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };

	if (registry_expand(&x->spec, e) < 0 || spec_print(&x->spec, &text, e) < 0)
		return NULL; /* the daemon checks it, with the operator's defaults */
	json_t *body = json_loadb(str_text(&text), text.len, 0, NULL);
	if (add_text(body, "key", x->key, e) < 0 || add_text(body, "ttl", x->ttl, e) < 0 ||
	    (x->labels.len > 0 && add_labels(body, &x->labels, e) < 0)) {
		json_decref(body);
		return NULL;
	}
	return body;
}

static void warn_weak(const json_t *sandbox)
{
	AUTO(str_done) struct str fields = { .max = 1024 };
	const char *field;
	json_t *by;

	json_object_foreach(json_object_get(sandbox, "enforced"), field, by)
	{
		if (json_is_string(by) && strcmp(json_string_value(by), "none") == 0)
			str_addf(&fields, "%s%s", fields.len ? ", " : "", field);
	}
	if (fields.len > 0)
		fprintf(stderr, "caisson: not enforced here: %s\n",
		        escape_brief(str_text(&fields)));
}

static int create_run(struct verb_call *c, struct err *e)
{
	struct create *x = c->opts;
	AUTO(json_decrefp) json_t *sandbox = NULL;
	json_t *body = create_body(x, e);

	if (!body)
		return -1;
	c->client.doing = "making a sandbox";
	if (client_call(&c->client, "POST", "/v1/sandboxes", body, &sandbox, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(sandbox), e);
	warn_weak(sandbox);
	return print_line(text_of(sandbox, "id"), e);
}

/* clang-format off */
static const struct flag create_flags[] = {
	{ '\0', FLAG_TEXT, "key",   offsetof(struct create, key), "NAME", "a name of yours: the same one gives the same sandbox", NULL },
	{ '\0', FLAG_LIST, "label", offsetof(struct create, labels), "NAME=VALUE", "a label to find it by", NULL },
	{ '\0', FLAG_TEXT, "ttl",   offsetof(struct create, ttl), "DURATION", "remove it after this long", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_create = { .name = "create",
	                         .usage = "[options]",
	                         .does = "make a sandbox that lives on; prints its id",
	                         .flags = create_flags,
	                         .n_flags = COUNT(create_flags),
	                         .takes_spec = true,
	                         .opts_size = sizeof(struct create),
	                         .refused = EXIT_OURS,
	                         .init = create_init,
	                         .done = create_done,
	                         .other = create_other,
	                         .run = create_run };

/* ---- list ---------------------------------------------------------------------------- */

struct list {
	struct verb_opts common;
	bool is_quiet;
	const char *label;
};

static void add_sandbox(struct table *t, const json_t *s)
{
	table_cell(t, text_of(s, "id"));
	table_cell(t, text_of(s, "key"));
	table_cell(t, text_of(s, "state"));
	table_cellf(t, "%lld", (long long)number_of(s, "generation"));
	table_cellf(t, "%lld", (long long)number_of(s, "processes"));
	table_cell(t, brief_age(number_of(s, "created_ms")).text);
	table_cell(t, text_of(s, "reason"));
}

static int print_sandboxes(const json_t *list, bool is_quiet, struct err *e)
{
	static const char *const heads[] = { "ID",        "KEY", "STATE",  "GENERATION",
		                             "PROCESSES", "AGE", "REASON", NULL };
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *s;
	size_t i;

	table_init(&t, heads);
	json_array_foreach(list, i, s)
	{
		if (is_quiet)
			str_addf(&out, "%s\n", text_of(s, "id"));
		else
			add_sandbox(&t, s);
	}
	if (!is_quiet)
		table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static int list_run(struct verb_call *c, struct err *e)
{
	const struct list *x = c->opts;
	const char *texts[] = { x->label };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *list = NULL;

	client_path(&path, x->label ? "/v1/sandboxes?label={}" : "/v1/sandboxes", texts);
	if (fetch_list(&c->client, str_text(&path), "sandboxes", &list, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_pack("{sO}", "sandboxes", list), e);
	return print_sandboxes(list, x->is_quiet, e);
}

/* clang-format off */
static const struct flag list_flags[] = {
	{ 'q',  FLAG_SWITCH, "quiet", offsetof(struct list, is_quiet), NULL, "only their ids", NULL },
	{ '\0', FLAG_TEXT,   "label", offsetof(struct list, label), "NAME=VALUE", "only those with this label", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_list = { .name = "list",
	                       .usage = "[options]",
	                       .does = "the sandboxes",
	                       .flags = list_flags,
	                       .n_flags = COUNT(list_flags),
	                       .opts_size = sizeof(struct list),
	                       .run = list_run };

/* ---- inspect ------------------------------------------------------------------------- */

static int inspect_run(struct verb_call *c, struct err *e)
{
	const struct verb_opts *x = c->opts;
	const char *pattern =
	    strncmp(c->words.at[0], "px_", 3) == 0 ? "/v1/processes/{}" : "/v1/sandboxes/{}";
	AUTO(json_decrefp) json_t *o = NULL;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	if (sandbox_call(c, "GET", pattern, NULL, &o, e) < 0)
		return -1;
	if (x->is_json)
		return print_json(json_incref(o), e);
	AUTO(freep) char *text = json_dumps(o, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	str_addf(&out, "%s\n", text);
	return print_text(&out, e);
}

static const struct flag json_flags[] = { FLAG_JSON };

const struct verb cmd_inspect = { .name = "inspect",
	                          .usage = "SANDBOX|PROCESS [--json]",
	                          .does = "all that is known about a sandbox or a process",
	                          .flags = json_flags,
	                          .n_flags = COUNT(json_flags),
	                          .words = "sandbox",
	                          .opts_size = sizeof(struct verb_opts),
	                          .words_min = 1,
	                          .words_max = 1,
	                          .run = inspect_run };

/* ---- changes ------------------------------------------------------------------------- */

static int change_one(struct verb_call *c, const char *id, struct err *e)
{
	const struct verb_opts *x = c->opts;
	const char *texts[] = { id, c->verb->name };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *sandbox = NULL;

	client_path(&path, "/v1/sandboxes/{}/{}", texts);
	if (client_call(&c->client, "POST", str_text(&path), NULL, &sandbox, e) < 0)
		return -1;
	return x->is_json ? print_json(json_incref(sandbox), e) : 0;
}

static int change_run(struct verb_call *c, struct err *e)
{
	c->client.doing = c->verb->name;
	for (size_t i = 0; i < c->words.n; i++)
		if (change_one(c, c->words.at[i], e) < 0)
			return err_wrap(e, "%s", c->words.at[i]);
	return 0;
}

#define CHANGE(word, what)                                                                         \
	const struct verb cmd_##word = { .name = #word,                                            \
		                         .usage = "SANDBOX... [--json]",                           \
		                         .does = (what),                                           \
		                         .flags = json_flags,                                      \
		                         .n_flags = COUNT(json_flags),                             \
		                         .words = "sandbox",                                       \
		                         .opts_size = sizeof(struct verb_opts),                    \
		                         .words_min = 1,                                           \
		                         .words_max = SIZE_MAX,                                    \
		                         .run = change_run }

CHANGE(stop, "end all processes of a sandbox; its files stay");
CHANGE(start, "make a stopped sandbox usable again");
CHANGE(pause, "freeze a sandbox");
CHANGE(resume, "let a frozen sandbox go on");
CHANGE(replace, "new walls for a sandbox, with the same id and a new generation");

/* ---- extend -------------------------------------------------------------------------- */

struct extend {
	struct verb_opts common;
	const char *wall, *ttl;
};

static int extend_run(struct verb_call *c, struct err *e)
{
	const struct extend *x = c->opts;
	AUTO(json_decrefp) json_t *sandbox = NULL;
	json_t *body = json_object();

	if (add_text(body, "wall", x->wall, e) < 0 || add_text(body, "ttl", x->ttl, e) < 0) {
		json_decref(body);
		return -1;
	}
	if (sandbox_call(c, "POST", "/v1/sandboxes/{}/extend", body, &sandbox, e) < 0)
		return -1;
	const json_t *asked = json_object_get(sandbox, "approval");

	if (x->common.is_json)
		return print_json(json_incref(sandbox), e);
	if (asked)
		fprintf(stderr, "%s waits for a person\n", text_of(asked, "id"));
	return 0;
}

/* clang-format off */
static const struct flag extend_flags[] = {
	{ '\0', FLAG_TEXT, "wall", offsetof(struct extend, wall), "DURATION", "the wall limit, from now on", NULL },
	{ '\0', FLAG_TEXT, "ttl",  offsetof(struct extend, ttl), "DURATION", "remove it after this long from now", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_extend = { .name = "extend",
	                         .usage = "SANDBOX [--wall DURATION] [--ttl DURATION]",
	                         .does = "more time for a sandbox",
	                         .flags = extend_flags,
	                         .n_flags = COUNT(extend_flags),
	                         .words = "sandbox",
	                         .opts_size = sizeof(struct extend),
	                         .words_min = 1,
	                         .words_max = 1,
	                         .run = extend_run };

/* ---- rm ------------------------------------------------------------------------------ */

static int rm_run(struct verb_call *c, struct err *e)
{
	for (size_t i = 0; i < c->words.n; i++) {
		const char *texts[] = { c->words.at[i] };
		AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

		client_path(&path, "/v1/sandboxes/{}", texts);
		c->client.doing = "removing";
		if (client_call(&c->client, "DELETE", str_text(&path), NULL, NULL, e) < 0)
			return err_wrap(e, "%s", c->words.at[i]);
	}
	return 0;
}

const struct verb cmd_rm = { .name = "rm",
	                     .usage = "SANDBOX...",
	                     .does = "end everything in a sandbox and remove it",
	                     .words = "sandbox",
	                     .opts_size = sizeof(struct verb_opts),
	                     .words_min = 1,
	                     .words_max = SIZE_MAX,
	                     .run = rm_run };
