#include "cli/apply_job.h"

#include <unistd.h>

#include "apply/host.h"
#include "base/fd.h"
#include "wire/later.h"

#define TEXT_BYTES_MAX (1u << 20) /* of a file that is merged; one request has three */
#define KEPT_BYTES_MAX (64u << 20)
#define FIRST_BYTES_MAX (16u << 20) /* fetched before it is known what git ignores */

void apply_job_init(struct apply_job *j)
{
	*j = (struct apply_job){ 0 };
	apply_init(&j->run);
}

void apply_job_done(struct apply_job *j)
{
	for (size_t i = 0; j->notes && i < j->change.n; i++) {
		for (size_t k = 0; k < APPLY_SIDES; k++)
			str_done(&j->notes[i].version[k]);
		str_done(&j->notes[i].merged);
	}
	free(j->notes);
	str_done(&j->ignored);
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

static bool is_allowed(const struct apply_job *j, const char *path)
{
	return later_is_allowed(path, j->allow->at, j->allow->len);
}

/* ---- what is left out ---------------------------------------------------------------- */

struct names {
	const char **at; /* sorted */
	size_t len, cap;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void names_sort(const struct str *text, struct names *out)
{
	for (size_t at = 0; at < text->len; at += strlen(text->data + at) + 1)
		vec_push(out, text->data + at);
	if (out->len > 1)
		qsort(out->at, out->len, sizeof *out->at, by_text);
}

static bool names_have(const struct names *x, const char *name)
{
	return x->len > 0 && bsearch(&name, x->at, x->len, sizeof *x->at, by_text);
}

/* It, or a folder that it lies in. */
static bool is_ignored(const struct names *x, const char *path)
{
	AUTO(str_done) struct str folder = { .max = PATH_MAX };

	if (names_have(x, path))
		return true;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		str_clear(&folder);
		str_addn(&folder, path, (size_t)(slash - path) + 1);
		if (names_have(x, str_text(&folder)))
			return true;
	}
	str_clear(&folder);
	str_addf(&folder, "%s/", path);
	return names_have(x, str_text(&folder));
}

/* The workspace's own git folder says nothing to another one. */
static void leave_git(struct apply_job *j)
{
	for (size_t i = 0; i < j->change.n; i++) {
		const char *path = j->change.at[i].path;

		if (later_is_git(span_of(path)) && !is_allowed(j, path))
			apply_leave(j, i, "it is of git's own folder");
	}
}

/* What is ignored was made by a build; a file that it began with never is. */
static void leave_ignored(struct apply_job *j)
{
	struct names x = { 0 };

	names_sort(&j->ignored, &x);
	for (size_t i = 0; i < j->change.n && x.len > 0; i++) {
		const struct apply_entry *entry = &j->change.at[i];

		if (entry->act != ACT_LEAVE && entry->base.type == NODE_NONE &&
		    is_ignored(&x, entry->path))
			apply_leave(j, i, "git ignores it");
	}
	vec_done(&x);
}

static int read_names(void *arg, const char *path, const struct apply_node *node, apply_body *read,
                      void *from, struct err *e)
{
	(void)node;
	return path ? 0 : apply_read_names(read, from, arg, e);
}

/* Before the files themselves, if these may be many for nothing. */
static int ask_ignored(struct apply_job *j, struct err *e)
{
	const struct apply_paths none = { 0 };
	uint64_t bytes = 0;

	for (size_t i = 0; i < j->change.n; i++)
		if (j->change.at[i].act != ACT_LEAVE && j->change.at[i].base.type == NODE_NONE)
			bytes += j->change.at[i].bytes;
	if (j->takes_ignored || bytes <= FIRST_BYTES_MAX)
		return 0;
	if (apply_fetch(&j->source, j->source.at, &none, read_names, &j->ignored, e) < 0)
		return -1;
	leave_ignored(j);
	return 0;
}

/* ---- the sides ----------------------------------------------------------------------- */

struct side {
	struct apply_job *job;
	enum apply_side which;
};

static const char *point_of(const struct apply_job *j, enum apply_side which)
{
	const char *const points[] = { [APPLY_BASE] = j->source.from,
		                       [APPLY_HEAD] = j->source.at,
		                       [APPLY_THEN] = j->source.then };

	return points[which];
}

static struct apply_node *node_of(const struct side *s, struct apply_entry *e)
{
	struct apply_node *const nodes[] = { [APPLY_BASE] = &e->base,
		                             [APPLY_HEAD] = &e->head,
		                             [APPLY_THEN] = &note_of(s->job, e)->then };

	return nodes[s->which];
}

static bool *bytes_of(const struct side *s, struct apply_entry *e)
{
	bool *const flags[] = { [APPLY_BASE] = &e->has_base_bytes,
		                [APPLY_HEAD] = &e->has_head_bytes,
		                [APPLY_THEN] = &note_of(s->job, e)->has_then_bytes };

	return flags[s->which];
}

/* A short one is wanted again: to be merged, to be written, to be looked into. */
static void keep(const struct side *s, struct apply_note *note, struct str *text)
{
	if (text->overflow || s->job->kept + text->len > KEPT_BYTES_MAX || note->is_kept[s->which])
		return;
	s->job->kept += text->len;
	note->version[s->which] = *text;
	note->is_kept[s->which] = true;
	*text = (struct str){ 0 };
}

/* Compared with what the folder has, while it comes. */
static int read_file(const struct side *s, struct apply_entry *entry, apply_body *read, void *from,
                     struct err *e)
{
	AUTO(str_done) struct str text = { .max = TEXT_BYTES_MAX };
	struct host_compare compare;
	struct hash hash;
	const void *bytes;
	long n;

	hash_init(&hash);
	host_compare_begin(s->job->run.root_fd, entry, &compare);
	while ((n = read(from, &bytes, e)) > 0) {
		host_compare_feed(&compare, bytes, (size_t)n);
		hash_add(&hash, (struct span){ bytes, (size_t)n });
		str_addn(&text, bytes, (size_t)n);
	}
	int is_same = host_compare_end(&compare);
	if (is_same < 0)
		return err_sys(e, -is_same, "read %s", entry->path);
	*bytes_of(s, entry) = is_same;
	if (s->which == APPLY_HEAD)
		hash_text(&hash, note_of(s->job, entry)->hash);
	if (n == 0)
		keep(s, note_of(s->job, entry), &text);
	return (int)n;
}

static int read_side(void *arg, const char *path, const struct apply_node *node, apply_body *read,
                     void *from, struct err *e)
{
	const struct side *s = arg;
	struct apply_entry *entry = path ? apply_find(&s->job->change, path) : NULL;

	if (!path && s->which == APPLY_HEAD && s->job->ignored.len == 0 && !s->job->takes_ignored)
		return apply_read_names(read, from, &s->job->ignored, e);
	if (!path)
		return 0;
	if (!entry)
		return err_new(e, ERR_INTERNAL, "the daemon sends a file that nobody asked for");
	*node_of(s, entry) = *node;
	if (node->target)
		node_of(s, entry)->target = arena_strdup(&s->job->list.arena, node->target);
	note_of(s->job, entry)->is_seen[s->which] = true;
	return node->type == NODE_FILE ? read_file(s, entry, read, from, e) : 0;
}

static void add_path(struct apply_paths *paths, const char *path)
{
	vec_push(paths, path);
}

static int check_seen(const struct apply_job *j, enum apply_side which,
                      const struct apply_paths *paths, struct err *e)
{
	for (size_t i = 0; i < paths->len; i++)
		if (!note_of(j, apply_find(&j->change, paths->at[i]))->is_seen[which])
			return err_new(e, ERR_INTERNAL, "the daemon did not send all files");
	return 0;
}

/* Of base and head, until it has come, FILE means that it is there. */
static int fetch_side(struct apply_job *j, enum apply_side which, struct err *e)
{
	struct side side = { j, which };
	struct apply_paths paths = { 0 };
	int r = 0;

	for (size_t i = 0; i < j->change.n; i++) {
		struct apply_entry *entry = &j->change.at[i];

		if (entry->act != ACT_LEAVE && node_of(&side, entry)->type == NODE_FILE)
			add_path(&paths, entry->path);
	}
	if (paths.len > 0)
		r = apply_fetch(&j->source, point_of(j, which), &paths, read_side, &side, e);
	if (r == 0)
		r = check_seen(j, which, &paths, e);
	vec_done(&paths);
	return r;
}

/* ---- what was applied before --------------------------------------------------------- */

static bool is_unsettled(const struct apply_entry *entry)
{
	return entry->act == ACT_MERGE || entry->act == ACT_CONFLICT || entry->is_reverted;
}

/* A folder that has what an earlier apply wrote has not been changed by anybody else: that is then
 * what it is compared with. */
static void compare_then(struct apply_job *j, struct apply_entry *entry)
{
	const struct apply_note *note = note_of(j, entry);

	if (!is_unsettled(entry))
		return;
	if (!apply_is_same(&note->then, &entry->host, note->has_then_bytes)) {
		if (entry->is_reverted)
			entry->act = ACT_NONE;
		return;
	}
	entry->base = note->then;
	entry->has_base_bytes = note->has_then_bytes;
	entry->is_mode_only = false;
	apply_decide(&j->change, entry, j->umask);
}

static int look_back(struct apply_job *j, struct err *e)
{
	struct side side = { j, APPLY_THEN };
	struct apply_paths paths = { 0 };
	int r = 0;

	for (size_t i = 0; j->source.then && i < j->change.n; i++)
		if (j->change.at[i].act != ACT_LEAVE && is_unsettled(&j->change.at[i]))
			add_path(&paths, j->change.at[i].path);
	if (paths.len > 0)
		r = apply_fetch(&j->source, j->source.then, &paths, read_side, &side, e);
	for (size_t i = 0; r == 0 && i < paths.len; i++)
		compare_then(j, apply_find(&j->change, paths.at[i]));
	vec_done(&paths);
	return r;
}

/* ---- merges -------------------------------------------------------------------------- */

static void meet(struct apply_entry *entry, const char *why)
{
	entry->act = ACT_CONFLICT;
	entry->why = why;
}

/* With what was applied before between them, else with what it began with. */
static int join(struct apply_job *j, struct apply_note *note, const struct str *ours,
                int64_t *conflicts, struct err *e)
{
	struct apply_three three = { &note->version[APPLY_THEN], ours, &note->version[APPLY_HEAD] };
	int r = 0;

	note->merged.max = (size_t)TEXT_BYTES_MAX * 4;
	if (note->is_kept[APPLY_THEN])
		r = apply_join(&j->source, &three, &note->merged, conflicts, e);
	if (r != 0)
		return r;
	three.base = &note->version[APPLY_BASE];
	return apply_join(&j->source, &three, &note->merged, conflicts, e);
}

static int merge_one(struct apply_job *j, struct apply_entry *entry, struct err *e)
{
	struct apply_note *note = note_of(j, entry);
	AUTO(str_done) struct str ours = { .max = TEXT_BYTES_MAX };
	bool is_here = note->is_kept[APPLY_BASE] && note->is_kept[APPLY_HEAD] &&
	               note->is_kept[APPLY_THEN] == note->is_seen[APPLY_THEN];
	int64_t conflicts;

	if (host_read(j->run.root_fd, entry->path, &ours, e) < 0)
		return -1;
	if (!is_here || ours.overflow) {
		meet(entry, "changed here and there, and too large to be merged");
		return 0;
	}
	int r = join(j, note, &ours, &conflicts, e);
	if (r == 0)
		meet(entry, conflicts > 0 ? "the same lines were changed here and there"
		                          : "changed here and there, and no text");
	return r < 0 ? -1 : 0;
}

static int merge_all(struct apply_job *j, struct err *e)
{
	for (size_t i = 0; i < j->change.n; i++)
		if (j->change.at[i].act == ACT_MERGE && merge_one(j, &j->change.at[i], e) < 0)
			return -1;
	return 0;
}

/* ---- what executes later ------------------------------------------------------------- */

/* Its text, if it is here: at NULL else. */
static struct span text_of_side(const struct apply_note *note, enum apply_side which)
{
	const struct str *text = &note->version[which];

	return note->is_kept[which] ? (struct span){ str_text(text), text->len }
	                            : (struct span){ NULL, 0 };
}

static void look_later(struct apply_job *j, struct apply_entry *entry)
{
	struct apply_note *note = note_of(j, entry);
	bool is_file = entry->head.type == NODE_FILE;
	struct later_file f = {
		.path = span_of(entry->act == ACT_MODE ? "-" : entry->path),
		.mode = is_file ? later_mode(entry->mode) : 0,
		.is_new = entry->host.type == NODE_NONE,
		.was_executable = entry->host.type == NODE_FILE && (entry->host.mode & 0100),
		.target = is_file ? NULL : entry->head.target,
		.before = text_of_side(note, note->is_seen[APPLY_THEN] ? APPLY_THEN : APPLY_BASE),
		.after = entry->act == ACT_MERGE
		             ? (struct span){ str_text(&note->merged), note->merged.len }
		             : text_of_side(note, APPLY_HEAD),
	};

	if (!apply_act_writes(entry->act))
		return;
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

static void hash_entry(struct hash *h, const struct apply_entry *entry, const struct apply_note *n)
{
	AUTO(str_done) struct str line = { .max = PATH_MAX * 3ul };
	char merged[TREE_HASH_TEXT];

	if (entry->act == ACT_MERGE)
		hash_of((struct span){ str_text(&n->merged), n->merged.len }, merged);
	str_addf(&line, "%s %04o %s %s", apply_act_name(entry->act), (unsigned int)entry->mode,
	         entry->act == ACT_MERGE ? merged : n->hash,
	         entry->head.target ? entry->head.target : "");
	str_addn(&line, "", 1);
	str_add(&line, entry->path);
	str_addn(&line, "", 1);
	hash_add(h, (struct span){ str_text(&line), line.len });
}

void apply_tree(const struct apply_job *j, char out[TREE_HASH_TEXT])
{
	struct hash h;

	hash_init(&h);
	for (size_t i = 0; i < j->change.n; i++)
		if (j->change.at[i].act != ACT_NONE && j->change.at[i].act != ACT_LEAVE)
			hash_entry(&h, &j->change.at[i], &j->notes[i]);
	hash_text(&h, out);
}

int apply_study(struct apply_job *j, struct err *e)
{
	if (apply_fetch_list(&j->source, &j->list, e) < 0)
		return -1;
	j->change = (struct apply_change){ j->list.list.at, j->list.list.len };
	j->notes = mem_alloc((j->change.n + 1) * sizeof *j->notes);
	memset(j->notes, 0, (j->change.n + 1) * sizeof *j->notes);
	if (j->change.n == 0)
		return 0;
	leave_git(j);
	if (ask_ignored(j, e) < 0)
		return -1;
	for (size_t i = 0; i < j->change.n; i++)
		if (host_look(j->run.root_fd, &j->change.at[i], &j->list.arena, e) < 0)
			return -1;
	if (fetch_side(j, APPLY_HEAD, e) < 0)
		return -1;
	leave_ignored(j);
	if (fetch_side(j, APPLY_BASE, e) < 0)
		return -1;
	for (size_t i = 0; i < j->change.n; i++)
		if (j->change.at[i].act != ACT_LEAVE && !j->change.at[i].is_reverted)
			apply_decide(&j->change, &j->change.at[i], j->umask);
	if (look_back(j, e) < 0 || merge_all(j, e) < 0)
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
	char text[TREE_HASH_TEXT];
	struct hash hash;
	const void *bytes;
	long n;

	if (!note || note->op == 0)
		return 0;
	const struct apply_op *op = &j->run.ops.list.at[note->op - 1];
	if (node->type != NODE_FILE)
		return err_new(e, ERR_INTERNAL, "the daemon sends something else than before");
	AUTO(fd_close) int fd = apply_stage_file(&j->run, op, e);
	if (fd < 0)
		return -1;
	hash_init(&hash);
	while ((n = read(from, &bytes, e)) > 0) {
		hash_add(&hash, (struct span){ bytes, (size_t)n });
		if (write_all(fd, bytes, (size_t)n, e) < 0)
			return -1;
	}
	hash_text(&hash, text);
	if (n == 0 && strcmp(text, note->hash) != 0) /* that is what was said yes to */
		return err_new(e, ERR_INTERNAL, "the daemon sends something else than before");
	return (int)n;
}

/* From what is here; 1: it has to be fetched. */
static int stage_kept(struct apply_job *j, size_t i, struct err *e)
{
	const struct apply_op *op = &j->run.ops.list.at[i];

	if (op->kind != OP_CREATE && op->kind != OP_REPLACE)
		return 0;
	struct apply_note *note = note_of(j, op->entry);
	note->op = i + 1;
	if (op->entry->act == ACT_MERGE)
		return stage_bytes(j, op, &note->merged, e);
	if (op->entry->head.type == NODE_LINK)
		return apply_stage_link(&j->run, op, op->entry->head.target, e);
	if (note->is_kept[APPLY_HEAD])
		return stage_bytes(j, op, &note->version[APPLY_HEAD], e);
	return 1;
}

static int stage_all(struct apply_job *j, struct err *e)
{
	struct apply_paths paths = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < j->run.ops.list.len; i++) {
		r = stage_kept(j, i, e);
		if (r > 0)
			add_path(&paths, j->run.ops.list.at[i].path);
	}
	if (r >= 0 && paths.len > 0)
		r = apply_fetch(&j->source, j->source.at, &paths, stage_one, j, e);
	vec_done(&paths);
	return r < 0 ? -1 : 0;
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
