/*
 * verb_ps.c - ps, logs, kill: what was executed, what it wrote, and its end.
 */
#include "cli/verbs.h"

#include <unistd.h>

#include "cli/table.h"
#include "wire/base64.h"
#include "wire/escape.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (64u << 20)
#define LINE_MAX_BYTES (4u << 20) /* one event; the daemon keeps them below one MiB */

/* ---- ps ------------------------------------------------------------------------------ */

struct ps {
	struct verb_opts common;
	bool is_all, is_quiet;
	const char *label;
};

static bool is_alive(const json_t *process)
{
	static const char *const alive[] = { "running", "queued", "awaiting_approval" };

	for (size_t i = 0; i < COUNT(alive); i++)
		if (strcmp(text_of(process, "state"), alive[i]) == 0)
			return true;
	return false;
}

/* The arguments with a space between them, as one would type them. */
static void join_command(const json_t *process, struct str *out)
{
	const json_t *cmd = json_object_get(process, "cmd");

	for (size_t i = 0; i < json_array_size(cmd); i++) {
		const char *word = json_string_value(json_array_get(cmd, i));

		str_addf(out, "%s%s", i ? " " : "", word ? word : "?");
	}
}

static void add_process(struct table *t, const json_t *p, bool with_sandbox)
{
	AUTO(str_done) struct str command = { .max = TEXT_MAX };
	const json_t *code = json_object_get(p, "exit_code");
	int64_t sig = number_of(p, "signal");

	join_command(p, &command);
	table_cell(t, text_of(p, "id"));
	if (with_sandbox)
		table_cell(t, text_of(p, "sandbox"));
	table_cell(t, text_of(p, "state"));
	if (json_is_integer(code))
		table_cellf(t, "%lld", (long long)json_integer_value(code));
	else if (sig > 0)
		table_cellf(t, "SIG%s", sigabbrev_np((int)sig) ? sigabbrev_np((int)sig) : "?");
	else
		table_cell(t, NULL);
	table_cell(t, brief_age(number_of(p, "created_ms")).text);
	table_cell(t, text_of(p, "label"));
	table_cell(t, str_text(&command));
}

static int print_processes(const json_t *list, const struct ps *x, bool with_sandbox, struct err *e)
{
	static const char *const wide[] = { "ID",  "SANDBOX", "STATE",   "EXIT",
		                            "AGE", "LABEL",   "COMMAND", NULL };
	static const char *const narrow[] = {
		"ID", "STATE", "EXIT", "AGE", "LABEL", "COMMAND", NULL
	};
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *p;
	size_t i;

	table_init(&t, with_sandbox ? wide : narrow);
	json_array_foreach(list, i, p)
	{
		if (!x->is_all && !is_alive(p))
			continue;
		if (x->is_quiet)
			str_addf(&out, "%s\n", text_of(p, "id"));
		else
			add_process(&t, p, with_sandbox);
	}
	if (!x->is_quiet)
		table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

/* Records know the id; the caller may have said the key. */
static int ps_path(struct verb_call *c, struct str *path, struct err *e)
{
	const struct ps *x = c->opts;
	AUTO(json_decrefp) json_t *sandbox = NULL;

	if (c->words.n > 0 && sandbox_call(c, "GET", "/v1/sandboxes/{}", NULL, &sandbox, e) < 0)
		return -1;
	const char *texts[] = { text_of(sandbox, "id"), x->label };
	str_add(path, "/v1/processes");
	if (sandbox)
		client_path(path, "?sandbox={}", texts);
	if (x->label)
		client_path(path, sandbox ? "&label={}" : "?label={}", texts + 1);
	return 0;
}

static int ps_run(struct verb_call *c, struct err *e)
{
	const struct ps *x = c->opts;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *list = NULL;

	if (ps_path(c, &path, e) < 0)
		return -1;
	if (fetch_list(&c->client, str_text(&path), "processes", &list, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_pack("{sO}", "processes", list), e);
	return print_processes(list, x, c->words.n == 0, e);
}

/* clang-format off */
static const struct flag ps_flags[] = {
	{ 'a',  FLAG_SWITCH, "all",   offsetof(struct ps, is_all), NULL, "those that have ended too", NULL },
	{ 'q',  FLAG_SWITCH, "quiet", offsetof(struct ps, is_quiet), NULL, "only their ids", NULL },
	{ '\0', FLAG_TEXT,   "label", offsetof(struct ps, label), "TEXT", "only those with this label", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_ps = { .name = "ps",
	                     .usage = "[SANDBOX] [options]",
	                     .does = "processes: running ones, or all that ever ran",
	                     .flags = ps_flags,
	                     .n_flags = COUNT(ps_flags),
	                     .words = "sandbox",
	                     .opts_size = sizeof(struct ps),
	                     .words_max = 1,
	                     .run = ps_run };

/* ---- logs ---------------------------------------------------------------------------- */

struct logs {
	struct verb_opts common;
	bool is_followed, is_stderr, is_raw;
	struct flag_number after;
};

struct printer {
	const struct logs *opts;
	struct escape escapes[2]; /* of standard output, of standard error */
	struct str bytes, shown;
};

/* What is for a terminal is made harmless: the bytes are from inside, and nobody attached. */
static int show(struct printer *p, bool is_err, struct err *e)
{
	int fd = is_err && !p->opts->is_stderr ? STDERR_FILENO : STDOUT_FILENO;

	if (p->opts->is_raw || !isatty(fd))
		return write_all(fd, str_text(&p->bytes), p->bytes.len, e);
	str_clear(&p->shown);
	escape_feed(&p->escapes[is_err], str_text(&p->bytes), p->bytes.len, &p->shown);
	return write_all(fd, str_text(&p->shown), p->shown.len, e);
}

static int show_event(struct printer *p, const json_t *event, struct err *e)
{
	const json_t *data = json_object_get(event, "data");
	const json_t *coded = json_object_get(event, "base64");
	bool is_err = strcmp(text_of(event, "stream"), "stderr") == 0;
	int64_t skipped = number_of(event, "skipped");

	if (strcmp(text_of(event, "type"), "output") != 0 || (p->opts->is_stderr && !is_err))
		return 0;
	if (skipped > 0)
		fprintf(stderr, "caisson: %lld bytes of output were not kept\n",
		        (long long)skipped);
	str_clear(&p->bytes);
	if (data)
		str_addn(&p->bytes, json_string_value(data), json_string_length(data));
	else if (!base64_decode(json_string_value(coded), json_string_length(coded), &p->bytes))
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: base64");
	return show(p, is_err, e);
}

static int show_line(void *arg, const json_t *event, struct err *e)
{
	struct printer *p = arg;

	if (p->opts->common.is_json)
		return print_json(json_deep_copy(event), e);
	return show_event(p, event, e);
}

static int logs_run(struct verb_call *c, struct err *e)
{
	const struct logs *x = c->opts;
	char after[32];
	const char *texts[] = { c->words.at[0], after };
	struct printer p = { .opts = x,
		             .escapes = { { .keeps_lines = true }, { .keeps_lines = true } },
		             .bytes = { .max = LINE_MAX_BYTES },
		             .shown = { .max = (size_t)8 * LINE_MAX_BYTES } };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

	snprintf(after, sizeof after, "%llu", (unsigned long long)x->after.value);
	client_path(&path, "/v1/processes/{}/events?after={}", texts);
	if (x->is_followed)
		str_add(&path, "&follow=1");
	int r = fetch_lines(&c->client, str_text(&path), show_line, &p, e);
	str_done(&p.bytes);
	str_done(&p.shown);
	return r;
}

/* clang-format off */
static const struct flag logs_flags[] = {
	{ 'f',  FLAG_SWITCH, "follow", offsetof(struct logs, is_followed), NULL, "go on until it ends", NULL },
	{ '\0', FLAG_NUMBER, "after",  offsetof(struct logs, after), "SEQ", "only what was written after this position", NULL },
	{ '\0', FLAG_SWITCH, "stderr", offsetof(struct logs, is_stderr), NULL, "only standard error, on standard output", NULL },
	{ '\0', FLAG_SWITCH, "raw",    offsetof(struct logs, is_raw), NULL, "unchanged bytes also on a terminal", NULL },
	{ '\0', FLAG_SWITCH, "json",   offsetof(struct verb_opts, is_json), NULL, "the API's events, one on a line", NULL },
};
/* clang-format on */

const struct verb cmd_logs = { .name = "logs",
	                       .usage = "PROCESS [options]",
	                       .does = "what a process wrote",
	                       .more =
	                           "On a terminal, control characters are shown instead of obeyed.",
	                       .flags = logs_flags,
	                       .n_flags = COUNT(logs_flags),
	                       .words = "process",
	                       .opts_size = sizeof(struct logs),
	                       .words_min = 1,
	                       .words_max = 1,
	                       .run = logs_run };

/* ---- kill ---------------------------------------------------------------------------- */

struct kill_opts {
	struct verb_opts common;
	const char *sig;
	bool is_tree;
};

static json_t *signal_json(const char *text)
{
	char *end = NULL;
	long number = strtol(text, &end, 10);

	return end != text && *end == '\0' ? json_integer(number) : json_string(text);
}

static int kill_one(struct verb_call *c, const char *id, struct err *e)
{
	const struct kill_opts *x = c->opts;
	const char *texts[] = { id };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *process = NULL;
	json_t *body = NULL;

	client_path(&path, x->sig ? "/v1/processes/{}/signal" : "/v1/processes/{}", texts);
	if (x->sig)
		body = json_pack("{so*,ss}", "sig", signal_json(x->sig), "scope",
		                 x->is_tree ? "tree" : "process");
	if (client_call(&c->client, x->sig ? "POST" : "DELETE", str_text(&path), body, &process,
	                e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(process), e) : 0;
}

static int kill_run(struct verb_call *c, struct err *e)
{
	const struct kill_opts *x = c->opts;

	if (x->is_tree && !x->sig)
		return err_new(e, ERR_INVALID, "--tree is for -s; without a signal the tree ends");
	for (size_t i = 0; i < c->words.n; i++)
		if (kill_one(c, c->words.at[i], e) < 0)
			return err_wrap(e, "%s", c->words.at[i]);
	return 0;
}

/* clang-format off */
static const struct flag kill_flags[] = {
	{ 's',  FLAG_TEXT,   "signal", offsetof(struct kill_opts, sig), "SIG", "send this one, and nothing else", "HUP INT QUIT KILL USR1 USR2 TERM CONT STOP TSTP" },
	{ '\0', FLAG_SWITCH, "tree",   offsetof(struct kill_opts, is_tree), NULL, "with -s: to everything that it started", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_kill = { .name = "kill",
	                       .usage = "PROCESS... [options]",
	                       .does = "end a process and all it started",
	                       .more = "TERM first, and after a while KILL.",
	                       .flags = kill_flags,
	                       .n_flags = COUNT(kill_flags),
	                       .words = "process",
	                       .opts_size = sizeof(struct kill_opts),
	                       .words_min = 1,
	                       .words_max = SIZE_MAX,
	                       .run = kill_run };
