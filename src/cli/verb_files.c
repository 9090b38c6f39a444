/*
 * verb_files.c - read, write, edit, grep, glob, ls: files of a sandbox, done by its file worker.
 *
 * Arguments are bytes, as names of files are: what is not UTF-8 travels in base64 (wire/tree.h).
 */
#include "cli/verbs.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/table.h"
#include "wire/base64.h"
#include "wire/escape.h"

#define PATH_BYTES_MAX (32u << 10)
#define TEXT_MAX (256u << 20)
#define PATCH_MAX (2u << 20)

/* ---- shared -------------------------------------------------------------------------- */

/* KEY as text, or KEY_base64. */
static void put_bytes(json_t *o, const char *key, const char *bytes, size_t n)
{
	json_t *text = json_stringn(bytes, n);
	char name[64];

	if (text) {
		json_object_set_new(o, key, text);
		return;
	}
	AUTO(str_done) struct str coded = { .max = 2 * n + 8 };
	base64_encode(bytes, n, &coded);
	snprintf(name, sizeof name, "%s_base64", key);
	json_object_set_new(o, name, json_string(str_text(&coded)));
}

static void put_text(json_t *o, const char *key, const char *text)
{
	if (text)
		put_bytes(o, key, text, strlen(text));
}

static void put_number(json_t *o, const char *key, const struct flag_number *n)
{
	if (n->is_set)
		json_object_set_new(o, key, json_integer((json_int_t)n->value));
}

static void put_switch(json_t *o, const char *key, bool is_on)
{
	if (is_on)
		json_object_set_new(o, key, json_true());
}

/* "/v1/sandboxes/ID/files/PATH?relative=1" of the first two words: a path is meant as a command of
 * the sandbox would mean it. */
static int file_path(struct verb_call *c, struct str *out, struct err *e)
{
	const char *place = place_of(&c->client, c->words.at[0], e);

	if (!place)
		return -1;
	const char *texts[] = { place, c->words.at[0],
		                place_path(place, c->words.n > 1 ? c->words.at[1] : "") };

	client_path(out, "/v1/{}/{}/files/{}?relative=1", texts);
	return 0;
}

/* The body of an answer to standard output; harmless when that is a terminal. */
static int show_body(struct client *c, const struct client_ask *ask, bool is_raw, struct err *e)
{
	struct escape x = { .keeps_lines = true };
	AUTO(str_done) struct str shown = { .max = TEXT_MAX };
	struct client_answer a;
	struct span piece;
	int r;

	if (is_raw || !isatty(STDOUT_FILENO))
		return client_fetch(c, ask, STDOUT_FILENO, e);
	if (client_begin(c, ask, &a, e) < 0 || client_check(c, &a, e) < 0)
		return -1;
	while ((r = client_read(c, &a, &piece, e)) > 0) {
		str_clear(&shown);
		escape_feed(&x, piece.at, piece.len, &shown);
		if (print_text(&shown, e) < 0)
			return -1;
	}
	str_clear(&shown);
	escape_end(&x, &shown);
	return r < 0 ? -1 : print_text(&shown, e);
}

/* The body is for a search: its path is the third word. */
static int post(struct verb_call *c, const char *verb, json_t *body, json_t **out, struct err *e)
{
	const char *texts[] = { place_of(&c->client, c->words.at[0], e), c->words.at[0], verb };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

	if (!texts[0]) {
		json_decref(body);
		return -1;
	}
	if (c->words.n > 2)
		put_text(body, "path", place_path(texts[0], c->words.at[2]));
	client_path(&path, "/v1/{}/{}/{}", texts);
	return client_call(&c->client, "POST", str_text(&path), body, out, e);
}

/* ---- read ---------------------------------------------------------------------------- */

struct read_opts {
	struct verb_opts common;
	const char *lines;
	bool is_raw;
};

static int print_lines(const json_t *answer, bool is_raw, struct err *e)
{
	const json_t *text = json_object_get(answer, "text");
	struct escape x = { .keeps_lines = true };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	const json_t *coded = json_object_get(answer, "base64");
	AUTO(str_done) struct str bytes = { .max = TEXT_MAX };

	if (text)
		str_addn(&bytes, json_string_value(text), json_string_length(text));
	else if (!base64_decode(json_string_value(coded), json_string_length(coded), &bytes))
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: base64");
	if (is_raw || !isatty(STDOUT_FILENO))
		return print_text(&bytes, e);
	escape_feed(&x, str_text(&bytes), bytes.len, &out);
	escape_end(&x, &out);
	return print_text(&out, e);
}

static int read_run(struct verb_call *c, struct err *e)
{
	static const char *const json[] = { "Accept", "application/json", NULL };
	const struct read_opts *x = c->opts;
	const char *texts[] = { x->lines };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *answer = NULL;

	if (file_path(c, &path, e) < 0)
		return -1;
	if (x->lines)
		client_path(&path, "&lines={}", texts);
	struct client_ask ask = { .method = "GET", .path = str_text(&path) };
	if (!x->lines && !x->common.is_json)
		return show_body(&c->client, &ask, x->is_raw, e);
	ask.headers = json;
	if (client_json(&c->client, &ask, &answer, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(answer), e)
	                         : print_lines(answer, x->is_raw, e);
}

/* clang-format off */
static const struct flag read_flags[] = {
	{ '\0', FLAG_TEXT,   "lines", offsetof(struct read_opts, lines), "FIRST-LAST", "only these lines, from 1 on", NULL },
	{ '\0', FLAG_SWITCH, "raw",   offsetof(struct read_opts, is_raw), NULL, "unchanged bytes also on a terminal", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_read = { .name = "read",
	                       .usage = "SANDBOX|WORKSPACE PATH [options]",
	                       .does = "a file's content",
	                       .more =
	                           "On a terminal, control characters are shown instead of obeyed.",
	                       .flags = read_flags,
	                       .n_flags = COUNT(read_flags),
	                       .words = "place",
	                       .opts_size = sizeof(struct read_opts),
	                       .words_min = 2,
	                       .words_max = 2,
	                       .run = read_run };

/* ---- write --------------------------------------------------------------------------- */

struct write_opts {
	struct verb_opts common;
	const char *from, *mode, *match;
	bool is_new;
};

static ssize_t read_source(void *arg, char *buf, size_t size, struct err *e)
{
	const int *fd = arg;
	ssize_t n;

	do
		n = read(*fd, buf, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(e, errno, "read the input") : n;
}

static int write_run(struct verb_call *c, struct err *e)
{
	const struct write_opts *x = c->opts;
	const char *texts[] = { x->mode };
	const char *headers[5] = { NULL };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *answer = NULL;
	AUTO(fd_close) int file = x->from ? open(x->from, O_RDONLY | O_CLOEXEC) : -1;
	int fd = x->from ? file : STDIN_FILENO;
	size_t n = 0;

	if (x->from && file < 0)
		return err_sys(e, errno, "open %s", x->from);
	if (file_path(c, &path, e) < 0)
		return -1;
	if (x->mode)
		client_path(&path, "&mode={}", texts);
	if (x->match) {
		headers[n++] = "If-Match";
		headers[n++] = x->match;
	}
	if (x->is_new) {
		headers[n++] = "If-None-Match";
		headers[n] = "*";
	}
	struct client_ask ask = { .method = "PUT",
		                  .path = str_text(&path),
		                  .headers = headers,
		                  .type = "application/octet-stream",
		                  .source = read_source,
		                  .arg = &fd };
	if (client_json(&c->client, &ask, &answer, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(answer), e) : 0;
}

/* clang-format off */
static const struct flag write_flags[] = {
	{ '\0', FLAG_TEXT,   "from",     offsetof(struct write_opts, from), "FILE", "this file's content, not standard input", NULL },
	{ '\0', FLAG_TEXT,   "mode",     offsetof(struct write_opts, mode), "MODE", "its permissions, octal", NULL },
	{ '\0', FLAG_TEXT,   "if-match", offsetof(struct write_opts, match), "HASH", "only when the file has this hash now", NULL },
	{ '\0', FLAG_SWITCH, "new",      offsetof(struct write_opts, is_new), NULL, "only when there is no such file", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_write = { .name = "write",
	                        .usage = "SANDBOX|WORKSPACE PATH [options] <FILE",
	                        .does = "standard input becomes a file, whole or not at all",
	                        .flags = write_flags,
	                        .n_flags = COUNT(write_flags),
	                        .words = "place",
	                        .opts_size = sizeof(struct write_opts),
	                        .words_min = 2,
	                        .words_max = 2,
	                        .run = write_run };

/* ---- edit ---------------------------------------------------------------------------- */

struct edit_opts {
	struct verb_opts common;
	bool is_all;
	const char *insert[2];
	const char *unified, *match;
};

static int read_patch(const char *name, struct str *out, struct err *e)
{
	bool is_stdin = strcmp(name, "-") == 0;
	AUTO(fd_close) int file = is_stdin ? -1 : open(name, O_RDONLY | O_CLOEXEC);
	int fd = is_stdin ? STDIN_FILENO : file;
	char buf[16384];
	ssize_t n;

	if (fd < 0)
		return err_sys(e, errno, "open %s", name);
	while ((n = read_source(&fd, buf, sizeof buf, e)) > 0)
		str_addn(out, buf, (size_t)n);
	if (n < 0)
		return -1;
	return out->overflow
	           ? err_new(e, ERR_LIMIT, "%s is larger than %u MiB", name, PATCH_MAX >> 20)
	           : 0;
}

static int edit_words(const struct verb_call *c, json_t *body, struct err *e)
{
	const struct edit_opts *x = c->opts;
	json_t *edit = json_object();

	json_object_set_new(body, "edits", json_pack("[o]", edit));
	if (c->words.n != 4)
		return err_new(e, ERR_INVALID, "OLD and NEW are needed: caisson edit %s",
		               c->verb->usage);
	put_text(edit, "old", c->words.at[2]);
	put_text(edit, "new", c->words.at[3]);
	put_switch(edit, "all", x->is_all);
	return 0;
}

static int edit_insert(const struct edit_opts *x, json_t *body, struct err *e)
{
	char *end = NULL;
	long long line = strtoll(x->insert[0], &end, 10);
	json_t *insert = json_object();

	json_object_set_new(body, "insert", insert);
	if (*end || end == x->insert[0])
		return err_new(e, ERR_INVALID, "--insert: \"%.32s\" is not a line", x->insert[0]);
	json_object_set_new(insert, "line", json_integer(line));
	put_text(insert, "text", x->insert[1]);
	return 0;
}

static int edit_body(const struct verb_call *c, json_t *body, struct err *e)
{
	const struct edit_opts *x = c->opts;
	AUTO(str_done) struct str patch = { .max = PATCH_MAX };

	if (!x->insert[0] && !x->unified)
		return edit_words(c, body, e);
	if (c->words.n != 2 || (x->insert[0] && x->unified))
		return err_new(e, ERR_INVALID, "either OLD NEW, or --insert, or --unified");
	if (x->insert[0])
		return edit_insert(x, body, e);
	if (read_patch(x->unified, &patch, e) < 0)
		return -1;
	put_bytes(body, "unified", str_text(&patch), patch.len);
	return 0;
}

static int show_text(const char *text, struct err *e)
{
	struct escape x = { .keeps_lines = true };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	escape_feed(&x, text, strlen(text), &out);
	escape_end(&x, &out);
	return print_text(&out, e);
}

static int edit_run(struct verb_call *c, struct err *e)
{
	const struct edit_opts *x = c->opts;
	const char *const headers[] = { x->match ? "If-Match" : NULL, x->match, NULL };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *body = json_object();
	AUTO(json_decrefp) json_t *answer = NULL;

	if (edit_body(c, body, e) < 0)
		return -1;
	AUTO(freep) char *text = json_dumps(body, JSON_COMPACT);
	if (file_path(c, &path, e) < 0)
		return -1;
	struct client_ask ask = { .method = "PATCH", .path = str_text(&path), .headers = headers };
	ask.body = span_of(text);
	if (client_json(&c->client, &ask, &answer, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(answer), e)
	                         : show_text(text_of(answer, "diff"), e);
}

/* clang-format off */
static const struct flag edit_flags[] = {
	{ '\0', FLAG_SWITCH, "all",      offsetof(struct edit_opts, is_all), NULL, "every place, not the only one", NULL },
	{ '\0', FLAG_TWO,    "insert",   offsetof(struct edit_opts, insert), "LINE TEXT", "put TEXT behind this line (0: at the beginning)", NULL },
	{ '\0', FLAG_TEXT,   "unified",  offsetof(struct edit_opts, unified), "FILE", "apply a unified diff; - is standard input", NULL },
	{ '\0', FLAG_TEXT,   "if-match", offsetof(struct edit_opts, match), "HASH", "only when the file has this hash now", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_edit = { .name = "edit",
	                       .usage = "SANDBOX|WORKSPACE PATH OLD NEW [options]",
	                       .does = "replace a text of a file; prints the difference",
	                       .more = "OLD must be there once, unless --all is given.",
	                       .flags = edit_flags,
	                       .n_flags = COUNT(edit_flags),
	                       .words = "place",
	                       .opts_size = sizeof(struct edit_opts),
	                       .words_min = 2,
	                       .words_max = 4,
	                       .run = edit_run };

/* ---- grep ---------------------------------------------------------------------------- */

struct grep_opts {
	struct verb_opts common;
	bool is_literal, ignores_case, is_multiline, with_ignored;
	struct flag_list globs;
	struct flag_number context, max;
};

static void add_line(struct str *out, const json_t *match, int64_t line, char mark,
                     const char *text)
{
	escape_text(text_of(match, "path"), out);
	str_addf(out, "%c%lld%c", mark, (long long)line, mark);
	escape_text(text, out);
	str_add(out, "\n");
}

static void add_context(struct str *out, const json_t *match, const char *key, int64_t first)
{
	const json_t *lines = json_object_get(match, key);

	for (size_t i = 0; i < json_array_size(lines); i++) {
		const char *text = json_string_value(json_array_get(lines, i));

		add_line(out, match, first + (int64_t)i, '-', text ? text : "");
	}
}

static int print_matches(const json_t *answer, bool has_context, struct err *e)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *list = json_object_get(answer, "matches"), *m;
	size_t i;

	json_array_foreach(list, i, m)
	{
		int64_t line = number_of(m, "line");
		int64_t before = (int64_t)json_array_size(json_object_get(m, "before"));

		if (has_context && i > 0)
			str_add(&out, "--\n");
		add_context(&out, m, "before", line - before);
		add_line(&out, m, line, ':', text_of(m, "text"));
		add_context(&out, m, "after", line + 1);
	}
	if (json_is_true(json_object_get(answer, "truncated")))
		fprintf(stderr, "caisson: there is more than these %zu\n", json_array_size(list));
	return print_text(&out, e);
}

static int grep_run(struct verb_call *c, struct err *e)
{
	const struct grep_opts *x = c->opts;
	AUTO(json_decrefp) json_t *answer = NULL;
	json_t *body = json_object();

	put_text(body, "pattern", c->words.at[1]);
	put_switch(body, "literal", x->is_literal);
	put_switch(body, "ignore_case", x->ignores_case);
	put_switch(body, "multiline", x->is_multiline);
	put_switch(body, "ignored", x->with_ignored);
	put_number(body, "context", &x->context);
	put_number(body, "max", &x->max);
	for (size_t i = 0; i < x->globs.len; i++) {
		if (i == 0)
			json_object_set_new(body, "glob", json_array());
		json_array_append_new(json_object_get(body, "glob"), json_string(x->globs.at[i]));
	}
	c->client.doing = "searching";
	if (post(c, "grep", body, &answer, e) < 0)
		return -1;
	int r = x->common.is_json ? print_json(json_incref(answer), e)
	                          : print_matches(answer, x->context.value > 0, e);
	if (r < 0)
		return -1;
	return json_array_size(json_object_get(answer, "matches")) > 0 ? 0 : 1;
}

/* clang-format off */
static const struct flag grep_flags[] = {
	{ 'F',  FLAG_SWITCH, "literal",     offsetof(struct grep_opts, is_literal), NULL, "PATTERN is a text, not an expression", NULL },
	{ 'i',  FLAG_SWITCH, "ignore-case", offsetof(struct grep_opts, ignores_case), NULL, "letters of either case", NULL },
	{ 'U',  FLAG_SWITCH, "multiline",   offsetof(struct grep_opts, is_multiline), NULL, "a match may cover several lines", NULL },
	{ 'C',  FLAG_NUMBER, "context",     offsetof(struct grep_opts, context), "N", "lines before and after", NULL },
	{ 'g',  FLAG_LIST,   "glob",        offsetof(struct grep_opts, globs), "GLOB", "only files of such a name", NULL },
	{ 'm',  FLAG_NUMBER, "max",         offsetof(struct grep_opts, max), "N", "at most so many matches (200)", NULL },
	{ '\0', FLAG_SWITCH, "ignored",     offsetof(struct grep_opts, with_ignored), NULL, "also what .gitignore names", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_grep = { .name = "grep",
	                       .usage = "SANDBOX|WORKSPACE PATTERN [PATH] [options]",
	                       .does = "search in files",
	                       .more = "Exit status: 0 found, 1 nothing found.",
	                       .flags = grep_flags,
	                       .n_flags = COUNT(grep_flags),
	                       .words = "place",
	                       .opts_size = sizeof(struct grep_opts),
	                       .words_min = 2,
	                       .words_max = 3,
	                       .refused = EXIT_OURS,
	                       .run = grep_run };

/* ---- glob ---------------------------------------------------------------------------- */

struct glob_opts {
	struct verb_opts common;
	bool with_ignored;
	const char *sort;
	struct flag_number max;
};

static int print_paths(const json_t *answer, struct err *e)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *list = json_object_get(answer, "paths"), *p;
	size_t i;

	json_array_foreach(list, i, p)
	{
		escape_text(json_is_string(p) ? json_string_value(p) : text_of(p, "path"), &out);
		str_add(&out, "\n");
	}
	if (json_is_true(json_object_get(answer, "truncated")))
		fprintf(stderr, "caisson: there is more than these %zu\n", json_array_size(list));
	return print_text(&out, e);
}

static int glob_run(struct verb_call *c, struct err *e)
{
	const struct glob_opts *x = c->opts;
	AUTO(json_decrefp) json_t *answer = NULL;
	json_t *body = json_object();

	put_text(body, "pattern", c->words.at[1]);
	put_text(body, "sort", x->sort);
	put_switch(body, "ignored", x->with_ignored);
	put_number(body, "max", &x->max);
	c->client.doing = "searching";
	if (post(c, "glob", body, &answer, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(answer), e) : print_paths(answer, e);
}

/* clang-format off */
static const struct flag glob_flags[] = {
	{ 'm',  FLAG_NUMBER, "max",     offsetof(struct glob_opts, max), "N", "at most so many", NULL },
	{ '\0', FLAG_TEXT,   "sort",    offsetof(struct glob_opts, sort), "ORDER", "mtime or path", "mtime path" },
	{ '\0', FLAG_SWITCH, "ignored", offsetof(struct glob_opts, with_ignored), NULL, "also what .gitignore names", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_glob = { .name = "glob",
	                       .usage = "SANDBOX|WORKSPACE PATTERN [PATH] [options]",
	                       .does = "find files by name",
	                       .flags = glob_flags,
	                       .n_flags = COUNT(glob_flags),
	                       .words = "place",
	                       .opts_size = sizeof(struct glob_opts),
	                       .words_min = 2,
	                       .words_max = 3,
	                       .run = glob_run };

/* ---- ls ------------------------------------------------------------------------------ */

struct ls_opts {
	struct verb_opts common;
	bool is_long, is_all;
	struct flag_number depth;
};

static void add_entry(struct table *t, const json_t *entry)
{
	AUTO(str_done) struct str name = { .max = PATH_BYTES_MAX };

	str_add(&name, text_of(entry, "path"));
	if (json_object_get(entry, "target"))
		str_addf(&name, " -> %s", text_of(entry, "target"));
	table_cell(t, text_of(entry, "type"));
	table_cell(t, text_of(entry, "mode"));
	table_cell(t, brief_bytes((uint64_t)number_of(entry, "bytes")).text);
	table_cell(t, brief_age(number_of(entry, "mtime_ms")).text);
	table_cell(t, str_text(&name));
}

static int print_entries(const json_t *answer, bool is_long, struct err *e)
{
	static const char *const heads[] = { "TYPE", "MODE", "SIZE", "AGE", "NAME", NULL };
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *entry;
	size_t i;

	table_init(&t, heads);
	json_array_foreach(json_object_get(answer, "entries"), i, entry)
	{
		if (is_long) {
			add_entry(&t, entry);
			continue;
		}
		escape_text(text_of(entry, "path"), &out);
		str_add(&out, strcmp(text_of(entry, "type"), "directory") == 0 ? "/\n" : "\n");
	}
	if (is_long)
		table_print(&t, terminal_width(), &out);
	if (json_is_true(json_object_get(answer, "truncated")))
		fprintf(stderr, "caisson: there is more than these\n");
	return print_text(&out, e);
}

static int ls_run(struct verb_call *c, struct err *e)
{
	const struct ls_opts *x = c->opts;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *answer = NULL;

	if (file_path(c, &path, e) < 0)
		return -1;
	str_add(&path, "&list=1");
	if (x->is_all)
		str_add(&path, "&hidden=1");
	if (x->depth.is_set)
		str_addf(&path, "&depth=%llu", (unsigned long long)x->depth.value);
	if (client_call(&c->client, "GET", str_text(&path), NULL, &answer, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(answer), e)
	                         : print_entries(answer, x->is_long, e);
}

/* clang-format off */
static const struct flag ls_flags[] = {
	{ 'l',  FLAG_SWITCH, "long",  offsetof(struct ls_opts, is_long), NULL, "type, permissions, size and age too", NULL },
	{ 'a',  FLAG_SWITCH, "all",   offsetof(struct ls_opts, is_all), NULL, "also names that begin with a dot", NULL },
	{ '\0', FLAG_NUMBER, "depth", offsetof(struct ls_opts, depth), "N", "so many folders deep (1)", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_ls = { .name = "ls",
	                     .usage = "SANDBOX|WORKSPACE [PATH] [options]",
	                     .does = "what is in a folder",
	                     .flags = ls_flags,
	                     .n_flags = COUNT(ls_flags),
	                     .words = "place",
	                     .opts_size = sizeof(struct ls_opts),
	                     .words_min = 1,
	                     .words_max = 2,
	                     .run = ls_run };
