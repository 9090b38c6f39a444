#include "cli/apply_job.h"

#include <fnmatch.h>
#include <unistd.h>

#include "apply/host.h"
#include "base/fd.h"
#include "wire/later.h"

#define MERGE_BYTES_MAX (1u << 20) /* of each of three versions; one request has them all */

void apply_job_init(struct apply_job *j)
{
	*j = (struct apply_job){ 0 };
	apply_init(&j->run);
}

void apply_job_done(struct apply_job *j)
{
	for (size_t i = 0; j->notes && i < j->change.n; i++) {
		str_done(&j->notes[i].base);
		str_done(&j->notes[i].head);
		str_done(&j->notes[i].merged);
	}
	free(j->notes);
	vec_done(&j->list.list);
	arena_done(&j->list.arena);
	apply_done(&j->run);
}

static struct apply_note *note_of(const struct apply_job *j, const struct apply_entry *e)
{
	return &j->notes[e - j->change.at];
}

void apply_leave(struct apply_job *j, size_t i, const char *why)
{
	j->change.at[i].act = ACT_LEAVE;
	j->change.at[i].why = why;
}

/* A * of a pattern matches slashes too. */
static bool is_allowed(const struct apply_job *j, const char *path)
{
	for (size_t i = 0; i < j->allow->len; i++)
		if (fnmatch(j->allow->at[i], path, 0) == 0)
			return true;
	return false;
}

/* ---- what is left out ---------------------------------------------------------------- */

struct ignored {
	struct str text;
	VEC(const char *) names; /* sorted */
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void ignored_sort(struct ignored *x)
{
	for (size_t at = 0; at < x->text.len; at += strlen(x->text.data + at) + 1)
		vec_push(&x->names, x->text.data + at);
	if (x->names.len > 1)
		qsort(x->names.at, x->names.len, sizeof *x->names.at, by_text);
}

static bool ignored_has(const struct ignored *x, const char *name)
{
	return x->names.len > 0 &&
	       bsearch(&name, x->names.at, x->names.len, sizeof *x->names.at, by_text);
}

/* It, or a folder that it lies in. */
static bool is_ignored(const struct ignored *x, const char *path)
{
	AUTO(str_done) struct str folder = { .max = PATH_MAX };

	if (ignored_has(x, path))
		return true;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		str_clear(&folder);
		str_addn(&folder, path, (size_t)(slash - path) + 1);
		if (ignored_has(x, str_text(&folder)))
			return true;
	}
	str_clear(&folder);
	str_addf(&folder, "%s/", path);
	return ignored_has(x, str_text(&folder));
}

/* The workspace's own git folder says nothing to another one; what is ignored was made by a build.
 * A file that it began with is never ignored. */
static int leave_out(struct apply_job *j, struct err *e)
{
	struct ignored x = { 0 };
	int r = j->takes_ignored ? 0 : apply_fetch_ignored(&j->source, &x.text, e);

	ignored_sort(&x);
	for (size_t i = 0; r == 0 && i < j->change.n; i++) {
		struct apply_entry *entry = &j->change.at[i];

		if (later_is_git(span_of(entry->path)) && !is_allowed(j, entry->path))
			apply_leave(j, i, "it is of git's own folder");
		else if (entry->base.type == NODE_NONE && is_ignored(&x, entry->path))
			apply_leave(j, i, "git ignores it");
	}
	vec_done(&x.names);
	str_done(&x.text);
	return r;
}

/* ---- both sides ---------------------------------------------------------------------- */

struct side {
	struct apply_job *job;
	bool is_head;
};

static struct apply_node *node_of(struct apply_entry *e, bool is_head)
{
	return is_head ? &e->head : &e->base;
}

/* Compared with what the folder has, while it comes; kept if its text decides. */
static int read_file(struct side *s, struct apply_entry *entry, apply_body *read, void *from,
                     struct err *e)
{
	struct apply_note *note = note_of(s->job, entry);
	AUTO(str_done) struct str text = { .max = LATER_READ_MAX };
	bool is_kept = later_reads(span_of(entry->path)), is_same;
	struct host_compare compare;
	const void *bytes;
	long n;

	host_compare_begin(s->job->run.root_fd, entry, &compare);
	while ((n = read(from, &bytes, e)) > 0) {
		host_compare_feed(&compare, bytes, (size_t)n);
		if (is_kept)
			str_addn(&text, bytes, (size_t)n);
	}
	is_same = host_compare_end(&compare);
	*(s->is_head ? &entry->has_head_bytes : &entry->has_base_bytes) = is_same;
	if (n == 0 && is_kept && !text.overflow)
		*(s->is_head ? &note->after : &note->before) =
		    (struct span){ arena_strndup(&s->job->list.arena, str_text(&text), text.len),
			           text.len };
	return (int)n;
}

static int read_side(void *arg, const char *path, const struct apply_node *node, apply_body *read,
                     void *from, struct err *e)
{
	struct side *s = arg;
	struct apply_entry *entry = path ? apply_find(&s->job->change, path) : NULL;

	if (!path)
		return 0;
	if (!entry)
		return err_new(e, ERR_INTERNAL, "the daemon sends a file that nobody asked for");
	*node_of(entry, s->is_head) = *node;
	if (node->target)
		node_of(entry, s->is_head)->target =
		    arena_strdup(&s->job->list.arena, node->target);
	*(s->is_head ? &note_of(s->job, entry)->is_head_seen
	             : &note_of(s->job, entry)->is_base_seen) = true;
	return node->type == NODE_FILE ? read_file(s, entry, read, from, e) : 0;
}

static int fetch_side(struct apply_job *j, bool is_head, struct err *e)
{
	struct side side = { j, is_head };
	struct apply_paths paths = { 0 };
	int r = 0;

	for (size_t i = 0; i < j->change.n; i++) {
		struct apply_entry *entry = &j->change.at[i];

		if (entry->act != ACT_LEAVE && node_of(entry, is_head)->type == NODE_FILE)
			vec_push(&paths, entry->path);
	}
	if (paths.len > 0)
		r = apply_fetch(&j->source, is_head ? j->source.at : j->source.from, &paths,
		                read_side, &side, e);
	for (size_t i = 0; r == 0 && i < paths.len; i++) {
		const struct apply_note *note = note_of(j, apply_find(&j->change, paths.at[i]));

		if (!(is_head ? note->is_head_seen : note->is_base_seen))
			r = err_new(e, ERR_INTERNAL, "the daemon did not send all files");
	}
	vec_done(&paths);
	return r;
}

/* ---- merges -------------------------------------------------------------------------- */

static int read_version(void *arg, const char *path, const struct apply_node *node,
                        apply_body *read, void *from, struct err *e)
{
	const struct side *s = arg;
	struct apply_entry *entry = path ? apply_find(&s->job->change, path) : NULL;
	const void *bytes;
	long n;

	(void)node;
	if (!entry || entry->act != ACT_MERGE)
		return 0;
	struct apply_note *note = note_of(s->job, entry);
	struct str *out = s->is_head ? &note->head : &note->base;
	out->max = MERGE_BYTES_MAX;
	while ((n = read(from, &bytes, e)) > 0)
		str_addn(out, bytes, (size_t)n);
	return (int)n;
}

static void meet(struct apply_entry *entry, const char *why)
{
	entry->act = ACT_CONFLICT;
	entry->why = why;
}

static int merge_one(struct apply_job *j, struct apply_entry *entry, struct err *e)
{
	struct apply_note *note = note_of(j, entry);
	AUTO(str_done) struct str ours = { .max = MERGE_BYTES_MAX };
	const struct apply_three three = { &note->base, &ours, &note->head };
	int64_t conflicts;

	if (host_read(j->run.root_fd, entry->path, &ours, e) < 0)
		return -1;
	if (ours.overflow || note->base.overflow || note->head.overflow) {
		meet(entry, "changed here and there, and too large to be merged");
		return 0;
	}
	note->merged.max = (size_t)MERGE_BYTES_MAX * 4;
	int r = apply_join(&j->source, &three, &note->merged, &conflicts, e);
	if (r == 0)
		meet(entry, conflicts > 0 ? "the same lines were changed here and there"
		                          : "changed here and there, and no text");
	return r < 0 ? -1 : 0;
}

static int merge_all(struct apply_job *j, struct err *e)
{
	struct side base = { j, false }, head = { j, true };
	struct apply_paths paths = { 0 };
	int r = 0;

	for (size_t i = 0; i < j->change.n; i++)
		if (j->change.at[i].act == ACT_MERGE)
			vec_push(&paths, j->change.at[i].path);
	if (paths.len > 0 &&
	    (apply_fetch(&j->source, j->source.from, &paths, read_version, &base, e) < 0 ||
	     apply_fetch(&j->source, j->source.at, &paths, read_version, &head, e) < 0))
		r = -1;
	for (size_t i = 0; r == 0 && i < paths.len; i++)
		r = merge_one(j, apply_find(&j->change, paths.at[i]), e);
	vec_done(&paths);
	return r;
}

/* ---- what executes later ------------------------------------------------------------- */

static void look_later(struct apply_job *j, struct apply_entry *entry)
{
	struct apply_note *note = note_of(j, entry);
	bool is_file = entry->head.type == NODE_FILE;
	struct later_file f = {
		.path = span_of(entry->act == ACT_MODE ? "-" : entry->path),
		.mode = is_file ? entry->mode : 0,
		.was_executable = entry->host.type == NODE_FILE && (entry->host.mode & 0100),
		.target = is_file ? NULL : entry->head.target,
		.before = note->before,
		.after = entry->act == ACT_MERGE
		             ? (struct span){ str_text(&note->merged), note->merged.len }
		             : note->after,
	};

	if (!apply_act_writes(entry->act))
		return;
	if (entry->act == ACT_MODE && (entry->host.mode & 06000) == (entry->mode & 06000))
		f.mode &= 01777; /* it has them already */
	note->later = later_why(&f);
	note->is_allowed = note->later && is_allowed(j, entry->path);
}

void apply_count(struct apply_job *j)
{
	j->n_conflicts = j->n_refused = 0;
	for (size_t i = 0; i < j->change.n; i++) {
		const struct apply_entry *entry = &j->change.at[i];
		const struct apply_note *note = &j->notes[i];

		j->n_conflicts += entry->act == ACT_CONFLICT;
		j->n_refused += entry->act != ACT_LEAVE && note->later != NULL && !note->is_allowed;
	}
}

int apply_study(struct apply_job *j, struct err *e)
{
	if (apply_fetch_list(&j->source, &j->list, e) < 0)
		return -1;
	j->change = (struct apply_change){ j->list.list.at, j->list.list.len };
	j->notes = mem_alloc((j->change.n + 1) * sizeof *j->notes);
	memset(j->notes, 0, (j->change.n + 1) * sizeof *j->notes);
	if (leave_out(j, e) < 0)
		return -1;
	for (size_t i = 0; i < j->change.n; i++)
		if (host_look(j->run.root_fd, &j->change.at[i], &j->list.arena, e) < 0)
			return -1;
	if (fetch_side(j, false, e) < 0 || fetch_side(j, true, e) < 0)
		return -1;
	for (size_t i = 0; i < j->change.n; i++)
		if (j->change.at[i].act != ACT_LEAVE)
			apply_decide(&j->change, &j->change.at[i], j->umask);
	if (merge_all(j, e) < 0)
		return -1;
	for (size_t i = 0; i < j->change.n; i++)
		look_later(j, &j->change.at[i]);
	apply_count(j);
	return 0;
}

/* ---- doing it ------------------------------------------------------------------------ */

static int stage_bytes(struct apply_job *j, const struct apply_op *op, const struct str *bytes,
                       struct err *e)
{
	AUTO(fd_close) int fd = apply_stage_file(&j->run, op, e);

	return fd < 0 ? -1 : write_all(fd, str_text(bytes), bytes->len, e);
}

static int stage_one(void *arg, const char *path, const struct apply_node *node, apply_body *read,
                     void *from, struct err *e)
{
	struct apply_job *j = arg;
	const struct apply_entry *entry = path ? apply_find(&j->change, path) : NULL;
	const struct apply_note *note = entry ? note_of(j, entry) : NULL;
	const void *bytes;
	long n;

	if (!note || note->op == 0)
		return 0;
	const struct apply_op *op = &j->run.ops.list.at[note->op - 1];
	if (node->type != entry->head.type ||
	    (node->target && strcmp(node->target, entry->head.target) != 0))
		return err_new(e, ERR_INTERNAL, "the daemon sends something else than before");
	if (node->type == NODE_LINK)
		return apply_stage_link(&j->run, op, node->target, e);
	AUTO(fd_close) int fd = apply_stage_file(&j->run, op, e);
	if (fd < 0)
		return -1;
	while ((n = read(from, &bytes, e)) > 0)
		if (write_all(fd, bytes, (size_t)n, e) < 0)
			return -1;
	return (int)n;
}

static int stage_all(struct apply_job *j, struct err *e)
{
	struct apply_paths paths = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < j->run.ops.list.len; i++) {
		const struct apply_op *op = &j->run.ops.list.at[i];

		if (op->kind != OP_CREATE && op->kind != OP_REPLACE)
			continue;
		note_of(j, op->entry)->op = i + 1;
		if (op->entry->act == ACT_MERGE)
			r = stage_bytes(j, op, &note_of(j, op->entry)->merged, e);
		else
			vec_push(&paths, op->path);
	}
	if (r == 0 && paths.len > 0)
		r = apply_fetch(&j->source, j->source.at, &paths, stage_one, j, e);
	vec_done(&paths);
	return r;
}

int apply_finish(struct apply_job *j, struct err *e)
{
	apply_steps(&j->change, j->umask, &j->run.ops);
	if (j->run.ops.list.len == 0)
		return 0;
	if (apply_begin(&j->run, e) < 0)
		return -1;
	if (stage_all(j, e) < 0) {
		apply_abandon(&j->run);
		return -1;
	}
	return apply_commit(&j->run, e);
}
