#include "core/git.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/details.h"
#include "core/gitscript.h"
#include "core/ledger.h"
#include "core/promote.h"
#include "core/repo.h"
#include "os/file.h"
#include "wire/hash.h"

#define GIT_MS (30ull * 60 * 1000)
#define ANSWER_BYTES 4096
#define PIECE_MAX (16u << 20) /* of output, and what was held of it */
#define SCRATCH_MS 600000     /* of what a daemon that dies leaves behind */

/* One request on its way; what it needs is copied. */
struct git_op {
	struct core *core;
	struct wsx *w;       /* a reference */
	struct wsx *source;  /* MERGE from another workspace: a reference, or NULL */
	struct wsx *begun;   /* of these two the one that began as the other was; or NULL */
	struct wsx *scratch; /* as it began: a reference, until it was packed */
	enum git_verb verb;
	struct arena arena;
	const char *args[GIT_PATHS_MAX + 6];
	size_t n_args;
	const char *input;
	char *bytes; /* or that, n_bytes of it: ours */
	size_t n_bytes;
	const char *at, *since; /* TAKE, PATCH */
	bool is_packed;         /* PATCH: out_fd has what `since` was */
	bool is_forced;
	const char *branch, *lease, *cred;
	struct repo_row repo; /* id "": none */
	struct git_url url;
	int out_fd; /* -1: what it prints is small */
	uint64_t n_out;
	bool is_full; /* the file takes no more */
	bool is_conflict;
	char sha[GIT_SHA_SIZE], tree[GIT_SHA_SIZE];
	char actor[ACTOR_SIZE];
	json_t *record;     /* TREE: ours */
	struct hash digest; /* BUNDLE, MAILS: of all bytes */
	char *conflicts;
	size_t conflicts_len;
	struct scanner *scanner; /* what is looked for in it; NULL: nothing */
	bool is_scanned;         /* what is kept goes through it */
	struct fail fail;
	git_done_fn *done;
	void *arg;
};

/* clang-format off */
static const struct {
	const char *script, *what;
	bool is_writing, is_large;
	enum ledger_kind kind; /* LEDGER_KINDS: it changes nothing */
	enum promote_what look; /* at what, before anything is done */
	struct promote_bar bar; /* what it may not have */
	bool is_scanned;        /* what it prints; secrets in it are masked */
} verbs[] = {
	[GIT_COMMIT] = { git_script_commit, "commit", true, false, LEDGER_GIT_COMMITTED, PROMOTE_FILES, { true, true }, false },
	[GIT_MERGE] = { git_script_merge, "merge", true, false, LEDGER_GIT_MERGED, PROMOTE_NOTHING, { false, false }, false },
	[GIT_PUSH] = { git_script_push, "push", false, false, LEDGER_GIT_PUSHED, PROMOTE_COMMITS, { true, true }, false },
	/* For who has to judge it: a canary is shown. */
	[GIT_PATCH] = { git_script_patch, "patch", false, true, LEDGER_KINDS, PROMOTE_NOTHING, { false, false }, true },
	[GIT_BETWEEN] = { git_script_between, "patch", false, true, LEDGER_KINDS, PROMOTE_NOTHING, { false, false }, true },
	[GIT_BUNDLE] = { git_script_bundle, "bundle", false, true, LEDGER_EXPORTED, PROMOTE_COMMITS, { true, true }, false },
	[GIT_MAILS] = { git_script_mails, "patch", false, true, LEDGER_EXPORTED, PROMOTE_COMMITS, { true, false }, true },
	[GIT_TAKE] = { git_script_take, "take", false, true, LEDGER_KINDS, PROMOTE_NOTHING, { true, true }, true },
	[GIT_TREE] = { git_script_tree, "apply", false, false, LEDGER_APPLIED, PROMOTE_NOTHING, { false, false }, false },
	[GIT_JOIN] = { git_script_join, "merge", false, true, LEDGER_KINDS, PROMOTE_NOTHING, { false, false }, false },
};
/* clang-format on */

/* ---- the end ------------------------------------------------------------------------- */

static void op_free(struct git_op *o)
{
	wsx_unref(o->w);
	if (o->source)
		wsx_unref(o->source);
	if (o->scratch)
		wsx_discard(o->scratch);
	fd_close(&o->out_fd);
	free(o->conflicts);
	free(o->bytes);
	scanner_free(o->scanner);
	json_decref(o->record);
	arena_done(&o->arena);
	free(o);
}

static void finish(struct git_op *o)
{
	const struct git_end end = { .sha = o->sha,
		                     .tree = o->tree,
		                     .remote = o->branch ? o->branch : "",
		                     .conflicts = o->conflicts,
		                     .conflicts_len = o->conflicts_len,
		                     .is_conflict = o->is_conflict,
		                     .fd = o->out_fd,
		                     .bytes = o->n_out,
		                     .fail = o->fail.code == FAIL_NONE ? NULL : &o->fail };

	o->done(o->arg, &end);
	op_free(o);
}

/* It is done; whoever asked hears of it when the ledger has it on disk. */
static void on_disk(void *arg, bool is_on_disk)
{
	struct git_op *o = arg;

	if (!is_on_disk)
		fail_set(&o->fail, FAIL_BACKEND_ERROR,
		         "%s: it is done, and the ledger could not record it", verbs[o->verb].what);
	finish(o);
}

/* What was accepted is its tree; a branch is told of where there is one. */
static json_t *record_of(struct git_op *o)
{
	json_t *data = o->record ? json_incref(o->record) : json_object();
	const struct {
		const char *key, *text;
	} texts[] = { { "commit", o->sha },
		      { "tree", o->tree },
		      { "base", o->w->row.base_commit },
		      { "branch", o->branch },
		      { "host", o->verb == GIT_PUSH ? o->url.host : NULL },
		      { "point", o->at } };

	for (size_t i = 0; i < COUNT(texts); i++)
		if (texts[i].text && texts[i].text[0])
			json_object_set_new(data, texts[i].key, details_text(texts[i].text));
	if (o->verb == GIT_PUSH)
		json_object_set_new(data, "forced", json_boolean(o->is_forced || o->lease));
	if (verbs[o->verb].kind == LEDGER_EXPORTED) {
		char sha256[LEDGER_HASH_SIZE];

		hash_text(&o->digest, sha256);
		json_object_set_new(data, "format", json_string(verbs[o->verb].what));
		json_object_set_new(data, "bytes", json_integer((json_int_t)o->n_out));
		json_object_set_new(data, "sha256", json_string(sha256));
	}
	return data;
}

static void put_on_record(struct git_op *o)
{
	const struct ledger_who who = { .tenant = o->w->row.tenant,
		                        .workspace = o->w->row.id,
		                        .actor = o->actor };
	bool is_done = o->fail.code == FAIL_NONE && o->conflicts_len == 0;

	if (!is_done || verbs[o->verb].kind == LEDGER_KINDS) {
		finish(o);
		return;
	}
	ledger_commit(o->core, verbs[o->verb].kind, &who, record_of(o), on_disk, o);
}

/* What was written is told of with the state that can be gone back to. */
static void pointed(void *arg, struct wsx *w, const struct point_row *point, const struct fail *f)
{
	(void)w;
	(void)point;
	(void)f; /* the commit is made; a point that is not is made with the next command */
	put_on_record(arg);
}

/* The mirror hears of what we pushed at once: others may begin there, and a lease is what it knows.
 */
static void refreshed(void *arg, const struct repo_end *end)
{
	(void)end; /* it is pushed, whether or not we can look */
	put_on_record(arg);
}

static void conclude(struct git_op *o)
{
	struct fail ignored = { 0 };
	const struct wsx_point_ask point = { .kind = POINT_AUTO, .label = verbs[o->verb].what };

	bool is_done = o->fail.code == FAIL_NONE && o->conflicts_len == 0;

	if (is_done && verbs[o->verb].is_writing)
		wsx_point(o->w, &point, pointed, o);
	else if (!is_done || o->verb != GIT_PUSH ||
	         repo_refresh(o->core, &o->repo, -1, refreshed, o, &ignored) < 0)
		put_on_record(o);
}

static void take_hash(char out[GIT_SHA_SIZE], const char *text)
{
	size_t n = strcspn(text, " \n");

	if (git_sha_is(text, n))
		snprintf(out, GIT_SHA_SIZE, "%.*s", (int)n, text);
}

/* "COMMIT\nTREE\n" on standard output; where that is something else "tree COMMIT TREE" is the last
 * line of the other. */
static void take_hashes(struct git_op *o, const struct service_end *end)
{
	const char *text = end->out ? end->out : "", *last = NULL;

	if (verbs[o->verb].is_large) {
		for (const char *at = end->complaint; (at = strstr(at, "tree ")); at++)
			last = at;
		text = last ? last + strlen("tree ") : "";
	}
	size_t n = strcspn(text, " \n");

	take_hash(o->sha, text);
	if (text[n])
		take_hash(o->tree, text + n + 1);
}

static void keep(struct git_op *o, const void *bytes, size_t n)
{
	if (verbs[o->verb].kind == LEDGER_EXPORTED)
		hash_add(&o->digest, (struct span){ bytes, n });
	if (!o->is_full && pwrite(o->out_fd, bytes, n, (off_t)o->n_out) != (ssize_t)n)
		o->is_full = true;
	o->n_out += n;
}

static void keep_out(void *arg, const void *bytes, size_t n)
{
	struct git_op *o = arg;
	AUTO(str_done) struct str clean = { .max = PIECE_MAX };

	if (o->is_scanned)
		scanner_feed(o->scanner, (struct span){ bytes, n }, &clean);
	if (o->is_scanned)
		keep(o, str_text(&clean), clean.len);
	else
		keep(o, bytes, n);
}

/* All was printed, and has been seen. */
static void scan_end(struct git_op *o)
{
	AUTO(str_done) struct str rest = { .max = PIECE_MAX };
	const char *what = verbs[o->verb].what;

	if (!o->is_scanned)
		return;
	scanner_flush(o->scanner, &rest);
	keep(o, str_text(&rest), rest.len);
	if (promote_judge(o->w, what, o->scanner, verbs[o->verb].bar, &o->fail) == 0)
		promote_note_masked(o->w, what, o->scanner);
}

static void ran(void *arg, const struct service_end *end)
{
	struct git_op *o = arg;

	if (end->fail.code == FAIL_NONE && end->exit_code == GIT_EXIT_CONFLICT &&
	    end->out_len > 0) {
		o->conflicts = mem_alloc(end->out_len + 1);
		memcpy(o->conflicts, end->out, end->out_len);
		o->conflicts[end->out_len] = '\0';
		o->conflicts_len = end->out_len;
	} else if (end->fail.code == FAIL_NONE && end->exit_code == GIT_EXIT_CONFLICT &&
	           o->verb == GIT_JOIN) {
		o->is_conflict = true;
	} else {
		git_explain(end, verbs[o->verb].what, &o->fail);
	}
	scan_end(o);
	if (o->is_full && o->fail.code == FAIL_NONE)
		fail_set(&o->fail, FAIL_QUOTA, "%s: the disk is full", verbs[o->verb].what);
	if (o->fail.code == FAIL_NONE)
		take_hashes(o, end);
	conclude(o);
}

/* ---- the work ------------------------------------------------------------------------ */

static int open_out(struct git_op *o)
{
	o->out_fd = openat(o->core->logs_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (o->out_fd < 0)
		fail_set(&o->fail, FAIL_BACKEND_ERROR, "no file can be made: %s", strerror(errno));
	return o->out_fd;
}

/* `input_fd` (0: none) has what the script reads; taken. */
static void run(struct git_op *o, int input_fd)
{
	bool is_large = verbs[o->verb].is_large;
	const struct wsx *w = o->scratch ? o->scratch : o->w;
	char net[GATE_NAME_SIZE + 8];

	snprintf(net, sizeof net, "%s:%u", o->url.host, o->url.port);
	const struct service_ask ask = { .tenant = o->w->row.tenant,
		                         .script = verbs[o->verb].script,
		                         .args = o->args,
		                         .workspace = o->verb == GIT_JOIN ? NULL : w->row.id,
		                         .is_read_only = !verbs[o->verb].is_writing,
		                         .net = o->verb == GIT_PUSH ? net : NULL,
		                         .input = o->bytes ? o->bytes : o->input,
		                         .cred = o->cred ? o->cred : o->repo.cred,
		                         .input_fd = input_fd,
		                         .input_len = input_fd > 0 ? o->n_out
		                                      : o->bytes   ? o->n_bytes
		                                      : o->input   ? strlen(o->input)
		                                                   : 0,
		                         .timeout_ms = GIT_MS,
		                         .out_max = is_large ? GIT_OUT_MAX : GIT_CONFLICTS_MAX,
		                         .out = is_large ? keep_out : NULL,
		                         .done = ran,
		                         .arg = o };

	o->n_out = 0;
	o->is_scanned = verbs[o->verb].is_scanned && o->scanner;
	if ((is_large && open_out(o) < 0) || !service_start(o->core, &ask, &o->fail))
		conclude(o);
}

/* ---- merge: two workspaces have two ranges of ids, so one after the other ------------- */

static void pack(struct git_op *o, struct wsx *w, int input_fd);
static void begin_patch(struct git_op *o);

static void packed(void *arg, const struct service_end *end)
{
	struct git_op *o = arg;
	bool is_first = o->scratch != NULL;

	git_explain(end, "merge", &o->fail);
	if (o->is_full && o->fail.code == FAIL_NONE)
		fail_set(&o->fail, FAIL_QUOTA, "merge: the disk is full");
	if (is_first)
		wsx_discard(o->scratch);
	o->scratch = NULL;
	if (o->fail.code != FAIL_NONE)
		finish(o);
	else if (o->verb == GIT_PATCH)
		begin_patch(o);
	else if (is_first)
		pack(o, o->source, fd_take(&o->out_fd));
	else
		run(o, fd_take(&o->out_fd));
}

/* `input_fd` (0: none) has what was packed before; taken. */
static void pack(struct git_op *o, struct wsx *w, int input_fd)
{
	const char *args[] = { w->row.base_commit ? w->row.base_commit : "", NULL };
	const struct service_ask ask = { .tenant = w->row.tenant,
		                         .script = o->verb == GIT_PATCH ? git_script_point
		                                                        : git_script_pack,
		                         .args = args,
		                         .workspace = w->row.id,
		                         .is_read_only = true,
		                         .input_fd = input_fd,
		                         .input_len = input_fd > 0 ? o->n_out : 0,
		                         .timeout_ms = GIT_MS,
		                         .out_max = GIT_OUT_MAX,
		                         .out = keep_out,
		                         .done = packed,
		                         .arg = o };

	o->n_out = 0;
	if (open_out(o) < 0 || !service_start(o->core, &ask, &o->fail))
		finish(o);
}

static void begun(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	struct git_op *o = arg;

	if (f)
		o->fail = *f;
	else if (n == 1)
		o->scratch = wsx_find(o->core, o->w->row.tenant, ids[0], &o->fail);
	if (!o->scratch) {
		finish(o);
		return;
	}
	wsx_ref(o->scratch);
	if (o->verb == GIT_TAKE || o->verb == GIT_TREE ||
	    (o->verb == GIT_PATCH && (o->is_packed || !o->since)))
		run(o, o->is_packed ? fd_take(&o->out_fd) : 0);
	else
		pack(o, o->scratch, 0);
}

/* What it was cannot change while it is read. */
static void show(struct git_op *o, const char *point)
{
	const struct wsx_forks then = {
		.n = 1, .at = point, .ttl_ms = SCRATCH_MS, .is_scratch = true
	};

	if (wsx_fork(o->w, &then, begun, o, &o->fail) < 0)
		finish(o);
}

/* First the point that it begins with, then the one that it leads to. */
static void begin_patch(struct git_op *o)
{
	if (o->since && o->out_fd < 0) {
		show(o, o->since);
		return;
	}
	o->is_packed = o->out_fd >= 0;
	if (o->at)
		show(o, o->at);
	else
		run(o, o->is_packed ? fd_take(&o->out_fd) : 0);
}

/* Commits tell what both have in common, but not of files that were never committed. */
static void pack_both(struct git_op *o)
{
	const struct wsx_forks as_it_began = {
		.n = 1, .at = "origin", .ttl_ms = SCRATCH_MS, .is_scratch = true, .is_ours = true
	};

	if (!o->begun)
		pack(o, o->source, 0);
	else if (wsx_fork(o->begun, &as_it_began, begun, o, &o->fail) < 0)
		finish(o);
}

static struct wsx *which_begun(const struct git_op *o)
{
	const struct workspace_row *a = &o->w->row, *b = &o->source->row;

	if (b->parent && strcmp(b->parent, a->id) == 0)
		return o->source;
	if (a->parent && strcmp(a->parent, b->id) == 0)
		return o->w;
	bool are_siblings = a->parent && b->parent && strcmp(a->parent, b->parent) == 0;

	return are_siblings && a->origin == b->origin ? o->source : NULL;
}

static void resolved(void *arg, const struct service_end *end)
{
	struct git_op *o = arg;
	size_t n = strcspn(end->out, "\n");

	git_explain(end, "merge", &o->fail);
	if (o->fail.code == FAIL_NONE && !git_sha_is(end->out, n))
		fail_set(&o->fail, FAIL_BACKEND_ERROR, "merge: git said something else");
	if (o->fail.code != FAIL_NONE) {
		finish(o);
		return;
	}
	AUTO(str_done) struct str input = { .max = ANSWER_BYTES };

	str_addf(&input, "%.*s\n-\n-\n", (int)n, end->out);
	o->input = arena_strdup(&o->arena, str_text(&input));
	run(o, 0);
}

/* A name of the mirror means what it means there. */
static void resolve(struct git_op *o, const char *name)
{
	const struct maker_tree mirror = { .tree = (uint64_t)o->repo.tree,
		                           .at = GIT_MIRROR,
		                           .is_read_only = true };
	const char *args[] = { name, NULL };
	const struct service_ask ask = { .tenant = o->w->row.tenant,
		                         .script = git_script_resolve,
		                         .args = args,
		                         .trees = &mirror,
		                         .n_trees = 1,
		                         .timeout_ms = GIT_MS,
		                         .out_max = ANSWER_BYTES,
		                         .done = resolved,
		                         .arg = o };

	if (!service_start(o->core, &ask, &o->fail))
		finish(o);
}

/* ---- what is asked ------------------------------------------------------------------- */

static void add_arg(struct git_op *o, const char *text)
{
	o->args[o->n_args++] = arena_strdup(&o->arena, text);
	o->args[o->n_args] = NULL;
}

static int add_paths(struct git_op *o, const char *const *paths, struct fail *f)
{
	for (size_t i = 0; paths && paths[i]; i++) {
		if (i >= GIT_PATHS_MAX)
			return fail_set(f, FAIL_INVALID, "paths: more than %d", GIT_PATHS_MAX);
		if (!paths[i][0] || paths[i][0] == '/')
			return fail_set(f, FAIL_INVALID,
			                "paths: names below the workspace's folder");
		add_arg(o, paths[i]);
	}
	return 0;
}

static int take_commit(struct git_op *o, const struct git_ask *ask, struct fail *f)
{
	const char *name = ask->name ? ask->name : "agent";
	const char *email = ask->email ? ask->email : "agent@localhost";

	if (!ask->message || strspn(ask->message, " \t\r\n") == strlen(ask->message))
		return fail_set(f, FAIL_INVALID, "message: it is needed");
	if (strlen(ask->message) > GIT_MESSAGE_MAX)
		return fail_set(f, FAIL_TOO_LARGE, "message: more than %u bytes", GIT_MESSAGE_MAX);
	if (!git_person_is(name) || !git_person_is(email))
		return fail_set(f, FAIL_INVALID, "author: a name and an address, each on one line");
	add_arg(o, name);
	add_arg(o, email);
	add_arg(o, ask->is_empty_fine ? "1" : "0");
	o->input = arena_strdup(&o->arena, ask->message);
	return add_paths(o, ask->paths, f);
}

static int take_base(struct git_op *o, const struct git_ask *ask, struct fail *f)
{
	const char *base = ask->base ? ask->base : o->w->row.base_commit;

	if (base && !git_sha_is(base, strlen(base)))
		return fail_set(f, FAIL_INVALID, "base: the hash of a commit is expected");
	o->since = ask->since ? arena_strdup(&o->arena, ask->since) : NULL;
	o->at = ask->at ? arena_strdup(&o->arena, ask->at) : NULL;
	add_arg(o, o->since ? "-" : base ? base : "");
	return add_paths(o, ask->paths, f);
}

static int take_between(struct git_op *o, const struct git_ask *ask, struct fail *f)
{
	if (!ask->until || !git_sha_is(ask->until, strlen(ask->until)))
		return fail_set(f, FAIL_INVALID, "to: the hash of a commit is expected");
	if (take_base(o, ask, f) < 0)
		return -1;
	add_arg(o, ask->until);
	return 0;
}

static int take_push(struct git_op *o, const struct git_ask *ask, struct fail *f)
{
	AUTO(str_done) struct str made = { .max = GIT_REF_MAX + 16 };
	const char *branch = ask->branch ? ask->branch : o->w->row.branch;
	struct err e = { 0 };

	if (!o->repo.id)
		return fail_set(f, FAIL_CONFLICT, "push: the workspace is of no repository");
	if (git_url_read(o->repo.url, &o->url, &e) < 0)
		return fail_err(f, &e);
	if (o->url.is_folder)
		return fail_set(f, FAIL_UNENFORCEABLE,
		                "push: %s is a folder of the host, which no sandbox writes to; use "
		                "export",
		                o->repo.url);
	if (!branch) {
		str_addf(&made, "caisson/%s", o->w->row.key ? o->w->row.key : o->w->row.id);
		branch = str_text(&made);
	}
	if (!git_ref_is(branch) || strncmp(branch, "refs/", 5) == 0)
		return fail_set(f, FAIL_INVALID, "branch: not a name for a branch");
	if (ask->lease && ask->lease[0] && !git_sha_is(ask->lease, strlen(ask->lease)))
		return fail_set(f, FAIL_INVALID, "force_with_lease: true, or the hash of a commit");
	o->branch = arena_strdup(&o->arena, branch);
	o->is_forced = ask->is_forced;
	o->lease = ask->lease ? arena_strdup(&o->arena, ask->lease) : NULL;
	o->cred = ask->cred ? arena_strdup(&o->arena, ask->cred) : NULL;
	add_arg(o, o->url.text);
	add_arg(o, o->branch);
	return 0;
}

static int take_merge(struct git_op *o, const struct git_ask *ask, struct fail *f)
{
	if (!ask->from)
		return fail_set(f, FAIL_INVALID, "from: a workspace or a commit is needed");
	struct wsx *source = wsx_find(o->core, o->w->row.tenant, ask->from, f);

	if (source == o->w)
		return fail_set(f, FAIL_INVALID, "from: it is the workspace itself");
	if (source) {
		o->source = source;
		wsx_ref(source);
		o->begun = which_begun(o);
		return 0;
	}
	if (id_is(ask->from, strlen(ask->from), "ws"))
		return -1;
	if (!o->repo.id || !git_ref_is(ask->from))
		return fail_set(f, FAIL_NOT_FOUND, "from: no such workspace");
	o->branch = arena_strdup(&o->arena, ask->from);
	return 0;
}

static int take_bytes(struct git_op *o, const struct git_ask *ask, struct fail *f)
{
	char text[24];

	if (ask->base_len > ask->input_len || ask->ours_len > ask->input_len - ask->base_len)
		return fail_set(f, FAIL_INVALID, "merge: more was announced than came");
	o->bytes = mem_alloc(ask->input_len + 1);
	o->n_bytes = ask->input_len;
	if (ask->input_len > 0)
		memcpy(o->bytes, ask->input, ask->input_len);
	o->at = ask->at ? arena_strdup(&o->arena, ask->at) : NULL;
	snprintf(text, sizeof text, "%zu", ask->base_len);
	add_arg(o, text);
	snprintf(text, sizeof text, "%zu", ask->ours_len);
	add_arg(o, text);
	return 0;
}

static int take_tree(struct git_op *o, const struct git_ask *ask, struct fail *f)
{
	if (!ask->at)
		return fail_set(f, FAIL_INVALID, "at: the point that is applied is needed");
	o->at = arena_strdup(&o->arena, ask->at);
	o->record = json_deep_copy(ask->record);
	add_arg(o, o->w->row.base_commit ? o->w->row.base_commit : "");
	return 0;
}

static int take(struct git_op *o, const struct git_ask *ask, struct fail *f)
{
	switch (ask->verb) {
	case GIT_COMMIT:
		return take_commit(o, ask, f);
	case GIT_MERGE:
		return take_merge(o, ask, f);
	case GIT_PUSH:
		return take_push(o, ask, f);
	case GIT_PATCH:
	case GIT_BUNDLE:
	case GIT_MAILS:
		return take_base(o, ask, f);
	case GIT_BETWEEN:
		return take_between(o, ask, f);
	case GIT_TREE:
		return take_tree(o, ask, f);
	case GIT_TAKE:
	case GIT_JOIN:
		return take_bytes(o, ask, f);
	}
	return -1;
}

/* The lease is what the mirror last saw, unless the caller says what he saw. */
static void leased(void *arg, const struct service_end *end)
{
	struct git_op *o = arg;
	size_t n = strcspn(end->out, "\n");
	char lease[GIT_SHA_SIZE] = "-"; /* it was not there */

	if (end->fail.code == FAIL_NONE && end->exit_code == 0 && git_sha_is(end->out, n))
		snprintf(lease, sizeof lease, "%.*s", (int)n, end->out);
	add_arg(o, lease);
	run(o, 0);
}

static void look_at_lease(struct git_op *o)
{
	AUTO(str_done) struct str ref = { .max = GIT_REF_MAX + 16 };
	const struct maker_tree mirror = { .tree = (uint64_t)o->repo.tree,
		                           .at = GIT_MIRROR,
		                           .is_read_only = true };

	str_addf(&ref, "refs/heads/%s", o->branch);
	const char *args[] = { str_text(&ref), NULL };
	const struct service_ask ask = { .tenant = o->w->row.tenant,
		                         .script = git_script_resolve,
		                         .args = args,
		                         .trees = &mirror,
		                         .n_trees = 1,
		                         .timeout_ms = GIT_MS,
		                         .out_max = ANSWER_BYTES,
		                         .done = leased,
		                         .arg = o };

	if (!service_start(o->core, &ask, &o->fail))
		finish(o);
}

static void begin_clear(struct git_op *o)
{
	if (o->verb == GIT_PUSH && o->is_forced && !o->lease) {
		look_at_lease(o);
		return;
	}
	if (o->verb == GIT_PUSH)
		add_arg(o, !o->lease ? "" : o->lease[0] ? o->lease : "-");
	if (o->verb == GIT_MERGE && o->source)
		pack_both(o);
	else if (o->verb == GIT_TAKE || o->verb == GIT_TREE)
		show(o, o->at);
	else if (o->verb == GIT_PATCH)
		begin_patch(o);
	else if (o->verb == GIT_MERGE)
		resolve(o, o->branch);
	else
		run(o, 0);
}

static void looked(void *arg, const struct fail *f)
{
	struct git_op *o = arg;

	if (!f) {
		begin_clear(o);
		return;
	}
	o->fail = *f;
	finish(o);
}

/* What is looked for is known; NULL: nothing. */
static void scanner_opened(void *arg, struct scanner *s, const struct fail *f)
{
	struct git_op *o = arg;
	const struct promote_ask ask = { .what = verbs[o->verb].look,
		                         .verb = verbs[o->verb].what,
		                         .bar = verbs[o->verb].bar,
		                         .scanner = s };

	o->scanner = s;
	if (f || !s || ask.what == PROMOTE_NOTHING)
		looked(o, f);
	else
		promote_look(o->w, &ask, looked, o);
}

static void begin(struct git_op *o)
{
	if (verbs[o->verb].look != PROMOTE_NOTHING || verbs[o->verb].is_scanned)
		scanner_open(o->core, o->w->row.tenant, scanner_opened, o);
	else
		begin_clear(o);
}

int git_start(struct wsx *w, const struct git_ask *ask, git_done_fn *done, void *arg,
              struct fail *f)
{
	struct git_op *o = mem_alloc(sizeof *o);
	struct err e = { 0 };

	*o = (struct git_op){
		.core = w->core, .w = w, .verb = ask->verb, .out_fd = -1, .done = done, .arg = arg
	};
	snprintf(o->actor, sizeof o->actor, "%s", w->core->actor ? w->core->actor : "");
	hash_init(&o->digest);
	wsx_ref(w);
	if (w->row.repo &&
	    store_repo_get(w->core->store, w->row.tenant, w->row.repo, &o->arena, &o->repo, &e) < 0)
		o->repo = (struct repo_row){ 0 };
	if (verbs[ask->verb].is_writing && strcmp(w->row.mode, "read") == 0)
		fail_set(f, FAIL_PERMISSION_DENIED, "%s: the workspace can only be read",
		         verbs[ask->verb].what);
	else if (take(o, ask, f) == 0) {
		begin(o);
		return 0;
	}
	op_free(o);
	return -1;
}
