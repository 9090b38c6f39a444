#include "cli/verb.h"

#include <signal.h>
#include <unistd.h>

#include "spec/opts.h"
#include "wire/escape.h"

#define PATH_MAX_BYTES (64u << 10)
#define ROWS_MAX 100000

const struct verb *verb_find(const struct verb_table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->at[i]->name, name) == 0)
			return t->at[i];
	return NULL;
}

int verb_unknown(const struct verb_table *t, const char *name)
{
	AUTO(freep) const char **names = mem_alloc((t->n + 1) * sizeof *names);

	for (size_t i = 0; i < t->n; i++)
		names[i] = t->at[i]->name;
	names[t->n] = NULL;
	const char *near = nearest(name, names);
	const char *shown = escape_brief(name);

	if (near)
		fprintf(stderr, "caisson: unknown command %.64s; did you mean %s?\n", shown, near);
	else
		fprintf(stderr, "caisson: unknown command %.64s; `caisson help` lists them\n",
		        shown);
	return EXIT_OURS;
}

/* ---- running one --------------------------------------------------------------------- */

static int fail(const struct err *e, int status)
{
	fprintf(stderr, "caisson: %s\n", escape_brief(e->msg));
	return status;
}

static int check_words(const struct verb *v, const struct words *w, struct err *e)
{
	if (w->n >= v->words_min && w->n <= v->words_max)
		return 0;
	return err_new(e, ERR_INVALID, "%s: caisson %s %s",
	               w->n < v->words_min ? "something is missing" : "too many words", v->name,
	               v->usage);
}

static int show_help(const struct verb *v)
{
	AUTO(str_done) struct str text = { .max = 256u << 10 };
	struct err e = { 0 };

	verb_help(v, &text);
	return print_text(&text, &e) < 0 ? fail(&e, EXIT_OURS) : 0;
}

/* The sentence in any case; with --json the daemon's object too. */
static int refuse(const struct verb *v, const struct verb_call *c, const struct err *e)
{
	const struct verb_opts *opts = c->opts;
	struct err unprinted = { 0 };

	if (!c->client.problem) /* it was not the daemon who said no */
		return fail(e, EXIT_OURS);
	if (opts->is_json && print_json(json_incref(c->client.problem), &unprinted) < 0)
		return fail(&unprinted, EXIT_OURS);
	if (e->kind == ERR_INTERNAL)
		return fail(e, EXIT_OURS);
	return fail(e, v->refused ? v->refused : EXIT_REFUSED);
}

static int run(const struct verb *v, struct verb_call *c)
{
	struct err e = { 0 };

	client_init(&c->client);
	int status = v->run(c, &e);
	if (status < 0)
		status = refuse(v, c, &e);
	client_done(&c->client);
	return status;
}

int verb_main(const struct verb *v, int argc, char **argv)
{
	struct flag_table table = { .at = v->flags,
		                    .n = v->n_flags,
		                    .other = v->other,
		                    .words_before = v->words_before,
		                    .takes_spec = v->takes_spec,
		                    .takes_config = v->takes_config };
	AUTO(freep) void *opts = mem_alloc(v->opts_size);
	struct verb_call call = { .verb = v, .opts = opts };
	struct err e = { 0 };

	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error like another, and has a status */
	if (v->init)
		v->init(opts);
	int r = flags_parse(&table, argc, argv, opts, &call.words, &e);
	if (r == 0)
		r = check_words(v, &call.words, &e);
	int status = r < 0 ? fail(&e, EXIT_OURS) : r > 0 ? show_help(v) : run(v, &call);
	flags_done(&table, opts);
	if (v->done)
		v->done(opts);
	return status;
}

/* ---- for verbs ----------------------------------------------------------------------- */

int print_text(const struct str *text, struct err *e)
{
	if (text->overflow)
		return err_new(e, ERR_LIMIT, "too much to print");
	return write_all(STDOUT_FILENO, str_text(text), text->len, e);
}

int print_json(json_t *value, struct err *e)
{
	AUTO(freep)
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	AUTO(str_done) struct str line = { .max = SIZE_MAX / 4 };

	json_decref(value);
	str_addf(&line, "%s\n", text ? text : "null");
	return print_text(&line, e);
}

const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

int64_t number_of(const json_t *o, const char *key)
{
	return (int64_t)json_integer_value(json_object_get(o, key));
}

static void add_cursor(struct str *path, const char *cursor)
{
	const char *texts[] = { cursor };

	client_path(path, strchr(str_text(path), '?') ? "&cursor={}" : "?cursor={}", texts);
}

int fetch_list(struct client *c, const char *path, const char *name, json_t **out, struct err *e)
{
	AUTO(json_decrefp) json_t *all = json_array();
	AUTO(str_done) struct str next = { .max = PATH_MAX_BYTES };

	str_add(&next, path);
	for (;;) {
		AUTO(json_decrefp) json_t *page = NULL;

		if (client_call(c, "GET", str_text(&next), NULL, &page, e) < 0)
			return -1;
		json_array_extend(all, json_object_get(page, name));
		const char *cursor = text_of(page, "next");
		if (!*cursor || json_array_size(all) > ROWS_MAX)
			break;
		str_clear(&next);
		str_add(&next, path);
		add_cursor(&next, cursor);
	}
	*out = json_incref(all);
	return 0;
}

struct raw_lines {
	int (*line)(void *arg, struct span line, struct err *e);
	void *arg;
};

/* Whole lines of what has come; the rest stays. */
static int take_lines(const struct raw_lines *l, struct str *in, struct err *e)
{
	size_t at = 0;
	const char *end;

	while ((end = memchr(str_text(in) + at, '\n', in->len - at))) {
		size_t n = (size_t)(end - (in->data + at));

		if (l->line(l->arg, (struct span){ in->data + at, n }, e) < 0)
			return -1;
		at += n + 1;
	}
	if (in->overflow)
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: a long line");
	if (at > 0) {
		in->len -= at;
		memmove(in->data, in->data + at, in->len);
	}
	return 0;
}

static int read_lines(struct client *c, const struct client_ask *ask, const struct raw_lines *l,
                      struct err *e)
{
	AUTO(str_done) struct str in = { .max = LINE_BYTES_MAX };
	struct client_answer a;
	struct span piece;
	int r;

	if (client_begin(c, ask, &a, e) < 0 || client_check(c, &a, e) < 0)
		return -1;
	while ((r = client_read(c, &a, &piece, e)) > 0) {
		str_addn(&in, piece.at, piece.len);
		if (take_lines(l, &in, e) < 0)
			return -1;
	}
	return r;
}

static const char *const line_headers[] = { "Accept", "application/x-ndjson", NULL };

int fetch_raw_lines(struct client *c, const char *path,
                    int (*line)(void *arg, struct span line, struct err *e), void *arg,
                    struct err *e)
{
	const struct client_ask ask = { .method = "GET", .path = path, .headers = line_headers };
	const struct raw_lines l = { line, arg };

	return read_lines(c, &ask, &l, e);
}

struct lines {
	int (*line)(void *arg, const json_t *value, struct err *e);
	void *arg;
};

static int take_line(void *arg, struct span line, struct err *e)
{
	const struct lines *l = arg;
	AUTO(json_decrefp) json_t *value = json_loadb(line.at, line.len, JSON_ALLOW_NUL, NULL);

	if (!value)
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: a line");
	return l->line(l->arg, value, e);
}

int fetch_lines(struct client *c, const char *path,
                int (*line)(void *arg, const json_t *value, struct err *e), void *arg,
                struct err *e)
{
	struct lines l = { line, arg };

	return fetch_raw_lines(c, path, take_line, &l, e);
}

int post_lines(struct client *c, const char *path, json_t *body,
               int (*line)(void *arg, const json_t *value, struct err *e), void *arg, struct err *e)
{
	AUTO(freep) char *text = json_dumps(body, JSON_COMPACT);
	const struct client_ask ask = {
		.method = "POST", .path = path, .headers = line_headers, .body = span_of(text)
	};
	struct lines l = { line, arg };
	const struct raw_lines raw = { take_line, &l };

	json_decref(body);
	return read_lines(c, &ask, &raw, e);
}

const char *place_of(struct client *c, const char *name, struct err *e)
{
	static const char *const places[] = { "sandboxes", "workspaces" };

	if (strncmp(name, "ws_", 3) == 0)
		return places[1];
	for (size_t i = 0; i < COUNT(places) && strncmp(name, "sb_", 3) != 0; i++) {
		const char *texts[] = { places[i], name };
		AUTO(str_done) struct str path = { .max = PATH_MAX_BYTES };

		client_path(&path, "/v1/{}/{}", texts);
		if (client_call(c, "GET", str_text(&path), NULL, NULL, e) == 0)
			return places[i];
		if (e->kind != ERR_NOT_FOUND)
			return NULL;
		*e = (struct err){ 0 };
	}
	return places[0]; /* which says itself that there is none */
}

const char *place_path(const char *place, const char *path)
{
	static const char folder[] = "/work";
	size_t n = strlen(folder);

	if (place[0] != 'w' || strncmp(path, folder, n) != 0 || (path[n] && path[n] != '/'))
		return path;
	return path[n] ? path + n + 1 : "";
}

int sandbox_call(struct verb_call *c, const char *method, const char *pattern, json_t *body,
                 json_t **out, struct err *e)
{
	const char *texts[] = { c->words.at[0] };
	AUTO(str_done) struct str path = { .max = PATH_MAX_BYTES };

	client_path(&path, pattern, texts);
	return client_call(&c->client, method, str_text(&path), body, out, e);
}
