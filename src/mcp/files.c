/*
 * files.c - read, write, edit, glob, grep: one request each, and its answer to be read.
 */
#include "mcp/mcp-internal.h"

#define LINES 2000
#define MATCHES 2000
#define FOUND_LINES 500 /* unless another number is asked for */
#define AROUND 20       /* of lines, as the API has it */
#define ROOT "/work"

/* The workspace is the worker's root: /work/a is a. */
static const char *below(const char *path)
{
	size_t n = strlen(ROOT);

	if (strncmp(path, ROOT, n) == 0 && (path[n] == '/' || !path[n]))
		path += n;
	while (*path == '/')
		path++;
	return path;
}

/* Absolute, and not there. False: it was answered. */
static bool check_path(struct mcp *m, const char *path)
{
	size_t n = strlen(ROOT);

	if (path[0] != '/' || (strncmp(path, ROOT, n) == 0 && (path[n] == '/' || !path[n])))
		return true;
	mcp_fail(m, "invalid: %s is outside of " ROOT "; use the tool bash for it", path);
	return false;
}

static bool file_target(struct mcp *m, struct str *out, const char *query)
{
	const char *path = arg_text(m, "file_path", ""), *texts[] = { below(path) };

	if (!check_path(m, path) || !mcp_target(m, out, "/files/{}", texts))
		return false;
	str_add(out, query);
	return true;
}

/* ---- read ------------------------------------------------------------------------------ */

static void add_lines(struct str *o, const json_t *answer)
{
	const char *at = json_text(answer, "text");
	json_int_t n = json_integer_value(json_object_get(answer, "first"));

	while (*at) {
		size_t len = strcspn(at, "\n");
		bool has_cr = len > 0 && at[len - 1] == '\r';

		str_addf(o, "%6lld\t%.*s\n", (long long)n++, (int)(len - has_cr), at);
		at += len + (at[len] == '\n');
	}
}

static void was_read(struct mcp *m, int status, json_t *answer)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };
	json_int_t next = json_integer_value(json_object_get(answer, "next"));

	if (status >= 400 || !answer) {
		mcp_problem(m, status, answer);
		return;
	}
	if (strcmp(json_text(answer, "encoding"), "utf-8") != 0) {
		mcp_fail(m, "not_text: %s has %lld bytes that are not UTF-8",
		         arg_text(m, "file_path", ""),
		         (long long)json_integer_value(json_object_get(answer, "bytes")));
		return;
	}
	add_lines(&text, answer);
	if (text.len == 0)
		str_add(&text, "[no lines here]\n");
	if (next > 0)
		str_addf(&text, "[%lld lines in all; go on with offset %lld]\n",
		         (long long)json_integer_value(json_object_get(answer, "total_lines")),
		         (long long)next);
	mcp_say(m, &text, json_incref(answer));
}

void tool_read(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	const json_t *range = json_object_get(m->args, "view_range");
	int64_t first = arg_number(m, "offset", 1), n = arg_number(m, "limit", LINES);
	char query[64];

	if (range) {
		int64_t last = json_whole(json_array_get(range, 1));

		first = json_whole(json_array_get(range, 0));
		n = last < 0 ? LINES : last - first + 1;
	}
	if (first < 1 || n < 1) {
		mcp_fail(m, "invalid: lines count from 1");
		return;
	}
	snprintf(query, sizeof query, "?lines=%lld-%lld", (long long)first,
	         (long long)(first + n - 1));
	if (file_target(m, &target, query))
		mcp_ask_api(m, "GET", &target, NULL, was_read);
}

/* ---- write, edit ----------------------------------------------------------------------- */

static void was_written(struct mcp *m, int status, json_t *answer)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };

	if (status >= 400 || !answer) {
		mcp_problem(m, status, answer);
		return;
	}
	str_addf(&text, "%s %s, %lld bytes\n",
	         json_is_true(json_object_get(answer, "created")) ? "made" : "wrote",
	         arg_text(m, "file_path", ""),
	         (long long)json_integer_value(json_object_get(answer, "bytes")));
	mcp_say(m, &text, json_incref(answer));
}

void tool_write(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	const json_t *content = json_object_get(m->args, "content");

	if (!file_target(m, &target, ""))
		return;
	mcp_ask_with(m,
	             &(struct inner_ask){
			 .method = "PUT",
			 .target = str_text(&target),
			 .type = "application/octet-stream",
			 .body = { json_string_value(content), json_string_length(content) } },
	             was_written);
}

static void was_edited(struct mcp *m, int status, json_t *answer)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };

	if (status >= 400 || !answer) {
		mcp_problem(m, status, answer);
		return;
	}
	str_addf(&text, "replaced in %lld places\n%s",
	         (long long)json_integer_value(json_object_get(answer, "replaced")),
	         json_text(answer, "diff"));
	mcp_say(m, &text, json_incref(answer));
}

void tool_edit(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };

	if (!file_target(m, &target, ""))
		return;
	mcp_ask_api(m, "PATCH", &target,
	            json_pack("{s[{sO,sO,sb}]}", "edits", "old",
	                      json_object_get(m->args, "old_string"), "new",
	                      json_object_get(m->args, "new_string"), "all",
	                      arg_flag(m, "replace_all")),
	            was_edited);
}

/* ---- glob, grep ------------------------------------------------------------------------ */

static void add_paths(struct str *o, const json_t *paths)
{
	const json_t *p;
	size_t i;

	json_array_foreach(paths, i, p)
	{
		const char *path = json_string_value(p);

		if (path)
			str_addf(o, ROOT "/%s\n", below(path));
	}
}

static void was_globbed(struct mcp *m, int status, json_t *answer)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };

	if (status >= 400 || !answer) {
		mcp_problem(m, status, answer);
		return;
	}
	add_paths(&text, json_object_get(answer, "paths"));
	if (text.len == 0)
		str_add(&text, "[no such files]\n");
	if (json_is_true(json_object_get(answer, "truncated")))
		str_add(&text, "[there are more]\n");
	mcp_say(m, &text, json_incref(answer));
}

static bool add_where(struct mcp *m, json_t *body)
{
	const char *path = arg_text(m, "path", "");

	if (!check_path(m, path))
		return false;
	if (*below(path))
		json_object_set_new(body, "path", json_string(below(path)));
	return true;
}

void tool_glob(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	json_t *body = json_pack("{ss,si,ss}", "pattern", below(arg_text(m, "pattern", "")), "max",
	                         200, "sort", "mtime");

	if (add_where(m, body) && mcp_target(m, &target, "/glob", NULL))
		mcp_ask_api(m, "POST", &target, body, was_globbed);
	else
		json_decref(body);
}

/* What is said of an answer. The object says the same: many clients show it, and not the text. */
struct found {
	struct str *text;
	json_t *kept; /* matches that were said, or the first of each file */
	int64_t left; /* lines; below 0: there were more */
	size_t before, after;
	const char *mode;
	bool has_numbers;
	const char *path; /* of a file that is not yet said; NULL: none */
	json_int_t count; /* of it */
};

static void add_line(struct found *f, const json_t *match, json_int_t line, const char *text,
                     char mark)
{
	if (f->left-- <= 0)
		return;
	str_addf(f->text, ROOT "/%s%c", below(json_text(match, "path")), mark);
	if (f->has_numbers)
		str_addf(f->text, "%lld%c", (long long)line, mark);
	str_addf(f->text, "%s\n", text);
}

static void add_around(struct found *f, const json_t *match, const char *key, json_int_t first)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(match, key), i, v)
	{
		const char *text = json_string_value(v);

		add_line(f, match, first + (json_int_t)i, text ? text : "", '-');
	}
}

/* The API has as many lines before as after. */
static void trim(const struct found *f, const json_t *match)
{
	json_t *before = json_object_get(match, "before"), *after = json_object_get(match, "after");

	while (json_array_size(before) > f->before)
		json_array_remove(before, 0);
	while (json_array_size(after) > f->after)
		json_array_remove(after, json_array_size(after) - 1);
}

static void add_match(struct found *f, json_t *match)
{
	json_int_t line = json_integer_value(json_object_get(match, "line"));

	trim(f, match);
	if (f->left > 0)
		json_array_append(f->kept, match);
	add_around(f, match, "before",
	           line - (json_int_t)json_array_size(json_object_get(match, "before")));
	add_line(f, match, line, json_text(match, "text"), ':');
	add_around(f, match, "after", line + 1);
}

static void end_file(struct found *f)
{
	json_t *first = json_array_get(f->kept, json_array_size(f->kept) - 1);

	if (!f->path || f->left < 0)
		return;
	str_addf(f->text, ROOT "/%s", below(f->path));
	if (strcmp(f->mode, "count") == 0) {
		str_addf(f->text, ":%lld", (long long)f->count);
		json_object_set_new(first, "count", json_integer(f->count));
	}
	str_add(f->text, "\n");
}

static void add_file(struct found *f, json_t *match)
{
	const char *path = json_text(match, "path");

	if (f->path && strcmp(f->path, path) == 0) {
		f->count++;
		return;
	}
	end_file(f);
	f->path = path;
	f->count = 1;
	if (f->left-- > 0)
		json_array_append(f->kept, match);
}

static void add_found(struct found *f, const json_t *matches)
{
	bool has_content = strcmp(f->mode, "content") == 0;
	json_t *match;
	size_t i;

	json_array_foreach(matches, i, match)
	{
		if (has_content)
			add_match(f, match);
		else
			add_file(f, match);
	}
	end_file(f);
}

static size_t around(const struct mcp *m, const char *key)
{
	int64_t n = arg_number(m, key, arg_number(m, "-C", 0));

	return n < 0 ? 0 : n > AROUND ? AROUND : (size_t)n;
}

static void was_grepped(struct mcp *m, int status, json_t *answer)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };
	const json_t *n = json_object_get(m->args, "-n");
	struct found f = { .text = &text,
		           .left = arg_number(m, "head_limit", FOUND_LINES),
		           .before = around(m, "-B"),
		           .after = around(m, "-A"),
		           .mode = arg_text(m, "output_mode", "files_with_matches"),
		           .has_numbers = !n || json_is_true(n) };

	if (status >= 400 || !answer) {
		mcp_problem(m, status, answer);
		return;
	}
	f.kept = json_array();
	add_found(&f, json_object_get(answer, "matches"));
	if (text.len == 0)
		str_add(&text, "[no matches]\n");
	if (f.left < 0)
		json_object_set_new(answer, "truncated", json_true());
	if (json_is_true(json_object_get(answer, "truncated")))
		str_add(&text, "[there may be more]\n");
	json_object_set_new(answer, "matches", f.kept); /* f.path is gone with the others */
	mcp_say(m, &text, json_incref(answer));
}

void tool_grep(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	size_t before = around(m, "-B"), after = around(m, "-A");
	json_t *body =
	    json_pack("{ss,sb,sb,si}", "pattern", arg_text(m, "pattern", ""), "ignore_case",
	              arg_flag(m, "-i"), "multiline", arg_flag(m, "multiline"), "max", MATCHES);

	if (before > 0 || after > 0)
		json_object_set_new(body, "context",
		                    json_integer((json_int_t)(before > after ? before : after)));
	if (json_object_get(m->args, "glob"))
		json_object_set(body, "glob", json_object_get(m->args, "glob"));
	if (add_where(m, body) && mcp_target(m, &target, "/grep", NULL))
		mcp_ask_api(m, "POST", &target, body, was_grepped);
	else
		json_decref(body);
}
