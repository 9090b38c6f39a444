/*
 * git.c - what leaves a workspace by git: commits, merges, pushes; patches, bundles and files as
 * they were at a point; and three versions of a file made one.
 */
#include "core/git.h"

#include <fcntl.h>
#include <unistd.h>

#include "api/handlers.h"
#include "api/print.h"
#include "base/fd.h"
#include "core/details.h"
#include "os/extent.h"
#include "wire/base64.h"

#define PIECE (64u << 10)

/* ---- answers ------------------------------------------------------------------------- */

static json_t *print_conflicts(const struct git_end *end)
{
	json_t *list = json_array();
	size_t n;

	for (size_t at = 0; at < end->conflicts_len; at += n + 1) {
		n = strlen(end->conflicts + at);
		if (n > 0) {
			json_t *o = json_object();

			print_bytes(o, "path", end->conflicts + at, n);
			json_array_append_new(list, o);
		}
	}
	return list;
}

static void ended(void *arg, const struct git_end *end)
{
	struct call *c = arg;

	if (end->fail) {
		answer_fail(c, end->fail);
	} else if (end->conflicts_len > 0) {
		answer_json(c, 200, json_pack("{so}", "conflicts", print_conflicts(end)));
	} else {
		json_t *o = json_pack("{ss}", "sha", end->sha);

		if (end->tree[0])
			json_object_set_new(o, "tree", json_string(end->tree));

		if (end->remote[0])
			json_object_set_new(o, "remote", details_text(end->remote));
		answer_json(c, 200, o);
	}
	call_unref(c);
}

static void start(struct call *c, struct wsx *w, const struct git_ask *ask, git_done_fn *done,
                  void *arg)
{
	struct fail f = { 0 };

	call_ref(c);
	if (git_start(w, ask, done, arg, &f) == 0)
		return;
	answer_fail(c, &f);
	call_unref(c);
}

/* ---- a file as an answer ------------------------------------------------------------- */

struct sending {
	struct call *call;
	int fd;
	uint64_t at, bytes;
};

static void send_on(struct sending *s)
{
	char buf[PIECE];
	bool has_room = true;

	while (s->call->r && has_room && s->at < s->bytes) {
		int n = os_pread(s->fd, buf, sizeof buf, (off_t)s->at);

		if (n <= 0) { /* shorter than announced: the client sees that */
			s->at = s->bytes;
			break;
		}
		s->at += (uint64_t)n;
		has_room = reply_write(s->call->r, buf, (size_t)n);
	}
	if (s->call->r && s->at >= s->bytes) {
		s->call->is_answered = true;
		reply_end(s->call->r);
	}
}

static void on_room(struct request *r)
{
	send_on(((struct call *)r->route)->state);
}

static void send_over(struct call *c)
{
	struct sending *s = c->state;

	fd_close(&s->fd);
	call_unref(s->call);
	free(s);
}

static void send_file(struct call *c, const struct git_end *end, const char *type)
{
	struct sending *s = mem_alloc(sizeof *s);

	*s = (struct sending){ .call = call_ref(c),
		               .fd = fcntl(end->fd, F_DUPFD_CLOEXEC, 3),
		               .bytes = end->bytes };
	c->state = s;
	c->over = send_over;
	c->r->on_room = on_room;
	reply_begin(c->r, 200, type, (int64_t)s->bytes,
	            (const char *[]){ "Cache-Control", "no-store", NULL });
	send_on(s);
}

static void filed(struct call *c, const struct git_end *end, const char *type)
{
	if (end->fail)
		answer_fail(c, end->fail);
	else if (c->r)
		send_file(c, end, type);
	call_unref(c);
}

static void patched(void *arg, const struct git_end *end)
{
	filed(arg, end, "text/x-patch");
}

static void taken(void *arg, const struct git_end *end)
{
	filed(arg, end, "application/x-tar");
}

static void bundled(void *arg, const struct git_end *end)
{
	filed(arg, end, "application/x-git-bundle");
}

/* ---- verbs --------------------------------------------------------------------------- */

/* A list of texts, NULL-terminated in the call's arena. */
static int member_list(struct call *c, const char *key, const char *const **out, struct fail *f)
{
	const json_t *list = json_object_get(c->body, key);
	size_t n = json_array_size(list);

	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) || n > GIT_PATHS_MAX)
		return fail_set(f, FAIL_INVALID, "%s: a list of at most %d texts is expected", key,
		                GIT_PATHS_MAX);
	const char **texts = arena_alloc(&c->arena, (n + 1) * sizeof *texts);
	for (size_t i = 0; i < n; i++) {
		texts[i] = json_string_value(json_array_get(list, i));
		if (!texts[i])
			return fail_set(f, FAIL_INVALID, "%s: texts are expected", key);
	}
	*out = n > 0 ? texts : NULL;
	return 0;
}

static int take_author(const struct call *c, struct git_ask *ask, struct fail *f)
{
	const json_t *author = json_object_get(c->body, "author");

	if (!author || json_is_null(author))
		return 0;
	if (!json_is_object(author) ||
	    members_known(author, (const char *const[]){ "name", "email", NULL }, f) < 0 ||
	    member_text(author, "name", &ask->name, f) < 0 ||
	    member_text(author, "email", &ask->email, f) < 0)
		return f->code != FAIL_NONE
		           ? -1
		           : fail_set(f, FAIL_INVALID, "author: name and email are expected");
	return 0;
}

void workspace_commit(struct call *c)
{
	static const char *const known[] = { "message", "paths", "author", "allow_empty", NULL };
	struct wsx *w = call_workspace(c);
	struct git_ask ask = { .verb = GIT_COMMIT };
	struct fail f = { 0 };

	if (!w)
		return;
	if (members_known(c->body, known, &f) < 0 ||
	    member_text(c->body, "message", &ask.message, &f) < 0 ||
	    member_bool(c->body, "allow_empty", &ask.is_empty_fine, &f) < 0 ||
	    member_list(c, "paths", &ask.paths, &f) < 0 || take_author(c, &ask, &f) < 0)
		answer_fail(c, &f);
	else
		start(c, w, &ask, ended, c);
}

void workspace_merge(struct call *c)
{
	static const char *const known[] = { "from", NULL };
	struct wsx *w = call_workspace(c);
	struct git_ask ask = { .verb = GIT_MERGE };
	struct fail f = { 0 };

	if (!w)
		return;
	if (members_known(c->body, known, &f) < 0 ||
	    member_text(c->body, "from", &ask.from, &f) < 0)
		answer_fail(c, &f);
	else
		start(c, w, &ask, ended, c);
}

/* true: over what the mirror last saw; a commit: over that; "": only where nothing is. */
static int take_lease(const struct call *c, struct git_ask *ask, struct fail *f)
{
	const json_t *lease = json_object_get(c->body, "force_with_lease");

	if (json_is_string(lease))
		ask->lease = json_string_value(lease);
	else if (json_is_true(lease))
		ask->is_forced = true;
	else if (lease && !json_is_null(lease) && !json_is_false(lease))
		return fail_set(f, FAIL_INVALID, "force_with_lease: true, or the hash of a commit");
	return 0;
}

void workspace_push(struct call *c)
{
	static const char *const known[] = { "branch", "force_with_lease", "cred", NULL };
	struct wsx *w = call_workspace(c);
	struct git_ask ask = { .verb = GIT_PUSH };
	struct fail f = { 0 };

	if (!w)
		return;
	if (members_known(c->body, known, &f) < 0 ||
	    member_text(c->body, "branch", &ask.branch, &f) < 0 ||
	    member_text(c->body, "cred", &ask.cred, &f) < 0 || take_lease(c, &ask, &f) < 0)
		answer_fail(c, &f);
	else
		start(c, w, &ask, ended, c);
}

void workspace_patch(struct call *c, struct wsx *w)
{
	const char *base = call_query(c, "base");
	const char *path = call_query(c, "path");
	const char **paths = arena_alloc(&c->arena, 2 * sizeof *paths);
	struct git_ask ask = { .verb = GIT_PATCH, .paths = path ? paths : NULL };

	const char *to = call_query(c, "to");

	paths[0] = path;
	if (to && git_sha_is(to, strlen(to)) && !path) {
		ask.verb = GIT_BETWEEN;
		ask.until = to;
	} else {
		ask.at = to;
	}
	if (base && git_sha_is(base, strlen(base)))
		ask.base = base;
	else if (ask.verb == GIT_PATCH &&
	         ((base && strcmp(base, "base") != 0) || !w->row.base_commit))
		ask.since = base ? base : "base";
	start(c, w, &ask, patched, c);
}

void workspace_export(struct call *c)
{
	struct wsx *w = call_workspace(c);
	const char *format = call_query(c, "format");
	struct git_ask ask = { .base = call_query(c, "base") };
	struct fail f = { 0 };

	if (!w)
		return;
	bool is_bundle = format && strcmp(format, "bundle") == 0;
	if (!is_bundle && (!format || strcmp(format, "patch") != 0)) {
		fail_set(&f, FAIL_INVALID, "format: \"bundle\" or \"patch\"");
		answer_fail(c, &f);
		return;
	}
	ask.verb = is_bundle ? GIT_BUNDLE : GIT_MAILS;
	start(c, w, &ask, is_bundle ? bundled : patched, c);
}

/* ---- applied somewhere --------------------------------------------------------------- */

static void tree_known(void *arg, const struct git_end *end)
{
	struct call *c = arg;

	if (end->fail)
		answer_fail(c, end->fail);
	else
		answer_json(c, 200, json_pack("{ss}", "tree", end->tree));
	call_unref(c);
}

static int check_changes(const json_t *changes, struct fail *f)
{
	static const char *const known[] = { "path",        "path_base64",    "action", "mode",
		                             "mode_before", "executes_later", NULL };
	const json_t *one;
	size_t i;

	if (!json_is_array(changes))
		return fail_set(f, FAIL_INVALID, "changes: a list is expected");
	json_array_foreach(changes, i, one)
	{
		const char *text = NULL;

		if (!json_is_object(one) || members_known(one, known, f) < 0)
			return fail_set(f, FAIL_INVALID, "changes: path and action are expected");
		for (size_t k = 0; known[k]; k++)
			if (member_text(one, known[k], &text, f) < 0)
				return -1;
	}
	return 0;
}

static int applied_parse(const struct call *c, json_t *record, const char **at, struct fail *f)
{
	static const char *const known[] = { "at", "to", "state", "reason", "changes", NULL };
	static const char *const states[] = { "begun", "done", "failed" };
	const char *to = NULL, *state = NULL, *reason = NULL;
	const json_t *changes = json_object_get(c->body, "changes");
	bool is_known = false;

	if (members_known(c->body, known, f) < 0 || member_text(c->body, "at", at, f) < 0 ||
	    member_text(c->body, "to", &to, f) < 0 ||
	    member_text(c->body, "state", &state, f) < 0 ||
	    member_text(c->body, "reason", &reason, f) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(states) && state; i++)
		is_known |= strcmp(state, states[i]) == 0;
	if (!*at || !to || strlen(to) > PATH_TEXT_MAX || !is_known ||
	    (reason && strlen(reason) > PATH_TEXT_MAX))
		return fail_set(f, FAIL_INVALID,
		                "at, to, and state, which is begun, done or failed, are needed");
	json_object_set_new(record, "to", details_text(to));
	json_object_set_new(record, "state", json_string(state));
	if (reason)
		json_object_set_new(record, "reason", details_text(reason));
	if (changes && check_changes(changes, f) < 0)
		return -1;
	if (changes)
		print_names(record, changes);
	return 0;
}

/* Git says which tree that is: of that the caller is not believed. */
void workspace_applied(struct call *c)
{
	AUTO(json_decrefp) json_t *record = json_object();
	struct wsx *w = call_workspace(c);
	struct git_ask ask = { .verb = GIT_TREE, .record = record };
	struct fail f = { 0 };

	if (!w)
		return;
	if (applied_parse(c, record, &ask.at, &f) < 0)
		answer_fail(c, &f);
	else
		start(c, w, &ask, tree_known, c);
}

/* ---- files at a point ---------------------------------------------------------------- */

/* Nothing in it leads out of the folder that it is below. */
static bool is_below(const char *path, size_t n)
{
	if (n == 0 || path[0] == '/' || memchr(path, '\0', n))
		return false;
	for (size_t at = 0, part; at <= n; at += part + 1) {
		const char *end = memchr(path + at, '/', n - at);

		part = end ? (size_t)(end - path) - at : n - at;
		if (part == 0 || (part == 1 && path[at] == '.') ||
		    (part == 2 && memcmp(path + at, "..", 2) == 0))
			return false;
	}
	return true;
}

static int add_name(struct str *out, const char *path, size_t n, struct fail *f)
{
	if (!is_below(path, n))
		return fail_set(f, FAIL_INVALID, "paths: names below the workspace's folder");
	str_add(out, "./");
	str_addn(out, path, n);
	str_addn(out, "", 1);
	return 0;
}

/* Of both lists: a name that is no text comes as base64. */
static int add_names(const json_t *body, struct str *out, struct fail *f)
{
	const json_t *plain = json_object_get(body, "paths"),
		     *coded = json_object_get(body, "paths_base64"), *one;
	AUTO(str_done) struct str name = { .max = BODY_JSON_MAX };
	size_t i;

	json_array_foreach(plain, i, one)
	{
		if (!json_is_string(one) ||
		    add_name(out, json_string_value(one), json_string_length(one), f) < 0)
			return fail_set(f, FAIL_INVALID,
			                "paths: names below the workspace's folder");
	}
	json_array_foreach(coded, i, one)
	{
		str_clear(&name);
		if (!json_is_string(one) ||
		    !base64_decode(json_string_value(one), json_string_length(one), &name) ||
		    add_name(out, str_text(&name), name.len, f) < 0)
			return fail_set(f, FAIL_INVALID,
			                "paths_base64: names below the workspace's folder");
	}
	return 0;
}

void workspace_take(struct call *c)
{
	static const char *const known[] = { "at", "paths", "paths_base64", NULL };
	AUTO(str_done) struct str names = { .max = (size_t)BODY_JSON_MAX * 2 };
	struct wsx *w = call_workspace(c);
	struct git_ask ask = { .verb = GIT_TAKE };
	struct fail f = { 0 };

	if (!w)
		return;
	if (members_known(c->body, known, &f) < 0 || member_text(c->body, "at", &ask.at, &f) < 0 ||
	    add_names(c->body, &names, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	ask.input = str_text(&names);
	ask.input_len = names.len;
	start(c, w, &ask, taken, c);
}

/* ---- three versions of a file -------------------------------------------------------- */

static json_t *print_joined(const struct git_end *end)
{
	AUTO(str_done) struct str text = { .max = BODY_JSON_MAX }, coded = { .max = SIZE_MAX };
	char buf[PIECE];
	int n;

	for (uint64_t at = 0; at < end->bytes; at += (uint64_t)n) {
		n = os_pread(end->fd, buf, sizeof buf, (off_t)at);
		if (n <= 0)
			return NULL;
		str_addn(&text, buf, (size_t)n);
	}
	if (end->is_conflict)
		return json_pack("{si}", "conflicts", (int)strtol(str_text(&text), NULL, 10));
	base64_encode(str_text(&text), text.len, &coded);
	return text.overflow ? NULL : json_pack("{ss}", "merged", str_text(&coded));
}

static void joined(void *arg, const struct git_end *end)
{
	struct call *c = arg;
	json_t *o = end->fail ? NULL : print_joined(end);
	struct fail f = { 0 };

	if (end->fail) {
		answer_fail(c, end->fail);
	} else if (o) {
		answer_json(c, 200, o);
	} else {
		fail_set(&f, FAIL_TOO_LARGE, "merge: what came of it is too large");
		answer_fail(c, &f);
	}
	call_unref(c);
}

void workspace_join(struct call *c)
{
	static const char *const known[] = { "base", "ours", "theirs", NULL };
	AUTO(str_done) struct str all = { .max = BODY_JSON_MAX };
	struct wsx *w = call_workspace(c);
	struct git_ask ask = { .verb = GIT_JOIN };
	struct fail f = { 0 };
	size_t ends[3];

	if (!w)
		return;
	if (members_known(c->body, known, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	for (size_t i = 0; i < COUNT(ends); i++) {
		const json_t *one = json_object_get(c->body, known[i]);

		if (!json_is_string(one) ||
		    !base64_decode(json_string_value(one), json_string_length(one), &all)) {
			fail_set(&f, FAIL_INVALID, "%s: base64 is expected", known[i]);
			answer_fail(c, &f);
			return;
		}
		ends[i] = all.len;
	}
	ask.input = str_text(&all);
	ask.input_len = all.len;
	ask.base_len = ends[0];
	ask.ours_len = ends[1] - ends[0];
	start(c, w, &ask, joined, c);
}
