#include "apply/plan.h"

#include <sys/stat.h>

#include "wire/fold.h"
#include "wire/later.h"

/* ---- names --------------------------------------------------------------------------- */

/* Our own folder, however a file system spells it. */
static bool is_stage_name(struct span part)
{
	static const char own[] = APPLY_STAGE;
	struct fold_name name;

	if (part.len > FOLD_NAME_MAX)
		return false;
	fold_name(part, &name);
	return name.n >= sizeof own - 1 && memcmp(name.text, own, sizeof own - 1) == 0;
}

bool apply_path_is(const char *path)
{
	for (const char *part = path;; part++) {
		size_t n = strcspn(part, "/");

		if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && memcmp(part, "..", 2) == 0))
			return false;
		if (is_stage_name((struct span){ part, n }))
			return false;
		part += n;
		if (!*part)
			return true;
	}
}

struct apply_entry *apply_find(const struct apply_change *c, const char *path)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(path, c->at[middle].path);

		if (order == 0)
			return &c->at[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* A folder that it lies in comes instead of what is in the way. */
static bool is_way_cleared(const struct apply_change *c, const char *path)
{
	char folder[4096];
	size_t n = strlen(path);

	if (n >= sizeof folder)
		return false;
	memcpy(folder, path, n + 1);
	for (char *slash = strrchr(folder, '/'); slash; slash = strrchr(folder, '/')) {
		*slash = '\0';
		const struct apply_entry *e = apply_find(c, folder);

		if (e && e->act == ACT_TO_DIR)
			return true;
	}
	return false;
}

/* ---- one of them --------------------------------------------------------------------- */

static bool is_x(mode_t mode)
{
	return mode & 0100;
}

bool apply_is_same(const struct apply_node *a, const struct apply_node *host, bool has_bytes)
{
	if (a->type != host->type)
		return false;
	if (a->type == NODE_LINK)
		return strcmp(a->target, host->target) == 0;
	if (a->type == NODE_FILE)
		return has_bytes && is_x(a->mode) == is_x(host->mode);
	return true;
}

static mode_t with_x(mode_t mode, bool is_executable)
{
	return is_executable ? mode | 0100 | ((mode & 0444) >> 2) : mode & ~(mode_t)0111;
}

/* Mode of a file whose bytes come from the workspace: executable as whichever side has changed that
 * says; a new file gets what the caller's umask leaves. The host's own setuid bit does not stay on
 * bytes that a sandbox wrote. */
static mode_t final_mode(const struct apply_entry *e, mode_t umask)
{
	bool has_host = e->host.type == NODE_FILE, has_base = e->base.type == NODE_FILE;
	bool is_executable = is_x(e->head.mode);

	if (!has_host)
		return ((is_executable ? 0777u : 0666u) & ~umask) | (is_executable ? 0100u : 0);
	if (has_base && is_x(e->base.mode) == is_executable)
		is_executable = is_x(e->host.mode);
	return later_mode(with_x(e->host.mode, is_executable));
}

static void set(struct apply_entry *e, enum apply_act act, const char *why)
{
	e->act = act;
	e->why = why;
}

static void decide_gone(struct apply_entry *e)
{
	bool was_dir = e->base.type == NODE_DIR;

	if (e->host.type == NODE_NONE)
		set(e, ACT_NONE, NULL);
	else if (apply_is_same(&e->base, &e->host, e->has_base_bytes))
		set(e, was_dir ? ACT_RMDIR : ACT_DELETE, NULL);
	else
		set(e, ACT_CONFLICT, "changed here, deleted there");
}

static void decide_dir(struct apply_entry *e)
{
	if (e->host.type == NODE_DIR)
		set(e, ACT_NONE, NULL);
	else if (e->host.type == NODE_NONE)
		set(e, e->base.type == NODE_DIR ? ACT_NONE : ACT_MKDIR, NULL);
	else if (apply_is_same(&e->base, &e->host, e->has_base_bytes))
		set(e, ACT_TO_DIR, NULL);
	else
		set(e, ACT_CONFLICT, "something else is here, a folder there");
}

/* All three are files, and the host has neither the one nor the other. A file that keeps the host's
 * bytes keeps the host's special bits too. */
static void decide_files(struct apply_entry *e)
{
	if (!e->has_head_bytes && !e->is_mode_only) {
		set(e, e->has_base_bytes ? ACT_REPLACE : ACT_MERGE, NULL);
		return;
	}
	e->mode |= e->host.mode & ~later_mode(e->host.mode) & 07777;
	set(e, e->mode == (e->host.mode & 07777) ? ACT_NONE : ACT_MODE, NULL);
}

static void decide_file(struct apply_entry *e)
{
	enum node_type host = e->host.type;
	bool are_files =
	    e->base.type == NODE_FILE && host == NODE_FILE && e->head.type == NODE_FILE;

	if (apply_is_same(&e->head, &e->host, e->has_head_bytes))
		set(e, ACT_NONE, NULL);
	else if (are_files)
		decide_files(e);
	else if (host == NODE_NONE && e->base.type != NODE_NONE && e->base.type != NODE_DIR)
		set(e, ACT_CONFLICT, "deleted here, changed there");
	else if (host == NODE_NONE)
		set(e, ACT_CREATE, NULL);
	else if (host == NODE_DIR && e->base.type == NODE_DIR)
		set(e, ACT_FROM_DIR, NULL);
	else if (apply_is_same(&e->base, &e->host, e->has_base_bytes))
		set(e, ACT_REPLACE, NULL);
	else
		set(e, ACT_CONFLICT,
		    e->base.type == NODE_NONE ? "new here and there, and not the same"
		                              : "changed here and there");
}

void apply_decide(const struct apply_change *c, struct apply_entry *e, mode_t umask)
{
	if (e->host.type == NODE_BLOCKED && is_way_cleared(c, e->path))
		e->host.type = NODE_NONE;
	if (e->host.type == NODE_BLOCKED && e->head.type == NODE_NONE)
		e->host.type = NODE_NONE; /* gone with its folder */
	if (e->head.type == NODE_FILE)
		e->mode = final_mode(e, umask);

	if (e->head.type == NODE_OTHER || e->base.type == NODE_OTHER)
		set(e, ACT_LEAVE, "neither file nor folder nor link");
	else if (e->host.type == NODE_BLOCKED)
		set(e, ACT_CONFLICT, "a folder that it lies in is something else here");
	else if (e->host.type == NODE_ELSEWHERE)
		set(e, ACT_CONFLICT, "another file system is mounted here");
	else if (e->host.type == NODE_OTHER)
		set(e, ACT_CONFLICT, "neither file nor folder nor link here");
	else if (e->head.type == NODE_NONE)
		decide_gone(e);
	else if (e->head.type == NODE_DIR)
		decide_dir(e);
	else
		decide_file(e);
}

const char *apply_act_name(enum apply_act act)
{
	static const char *const words[] = {
		[ACT_NONE] = "none",       [ACT_CREATE] = "create",    [ACT_REPLACE] = "write",
		[ACT_MERGE] = "merge",     [ACT_MODE] = "mode",        [ACT_DELETE] = "delete",
		[ACT_MKDIR] = "mkdir",     [ACT_TO_DIR] = "to-folder", [ACT_RMDIR] = "rmdir",
		[ACT_FROM_DIR] = "create", [ACT_LEAVE] = "left-out",   [ACT_CONFLICT] = "conflict",
	};
	_Static_assert(COUNT(words) == ACTS, "an act has no name");

	return words[act];
}

bool apply_act_writes(enum apply_act act)
{
	return act == ACT_CREATE || act == ACT_REPLACE || act == ACT_MERGE || act == ACT_MODE ||
	       act == ACT_FROM_DIR;
}

/* ---- steps --------------------------------------------------------------------------- */

struct steps {
	struct apply_ops *out;
	const struct apply_change *change;
	mode_t umask;
};

static void add(struct steps *s, enum op_kind kind, struct apply_entry *e, const char *path)
{
	mode_t mode = 0777u & ~s->umask;
	struct apply_op op = { .kind = kind,
		               .path = path,
		               .entry = e,
		               .number = (uint32_t)s->out->list.len,
		               .before = e ? e->was.mode & 07777 : 0,
		               .after = kind == OP_MKDIR ? mode
		                        : e              ? e->mode
		                                         : 0,
		               .ino_old = e ? e->was.ino : 0,
		               .is_needed = kind == OP_RMDIR && e->act == ACT_FROM_DIR };

	vec_push(&s->out->list, op);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct folders {
	const char **at;
	size_t len, cap;
};

/* Those of a new name, which the host may have removed. */
static void gather_above(const struct steps *s, const char *path, struct folders *out)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		vec_push(out, arena_strndup(&s->out->arena, path, (size_t)(slash - path)));
}

static void gather_folders(const struct steps *s, const struct apply_entry *e, struct folders *out)
{
	bool is_new = e->act == ACT_CREATE || e->act == ACT_FROM_DIR || e->act == ACT_MKDIR;

	if (is_new)
		gather_above(s, e->path, out);
	if (e->act == ACT_MKDIR || e->act == ACT_TO_DIR)
		vec_push(out, e->path);
}

static void add_folders(struct steps *s)
{
	struct folders all = { 0 };

	for (size_t i = 0; i < s->change->n; i++)
		gather_folders(s, &s->change->at[i], &all);
	if (all.len > 1)
		qsort(all.at, all.len, sizeof *all.at, by_text);
	for (size_t i = 0; i < all.len; i++)
		if (i == 0 || strcmp(all.at[i - 1], all.at[i]) != 0)
			add(s, OP_MKDIR, NULL, all.at[i]);
	vec_done(&all);
}

static void add_all(struct steps *s, enum op_kind kind, unsigned int acts)
{
	for (size_t i = 0; i < s->change->n; i++)
		if (acts & (1u << s->change->at[i].act))
			add(s, kind, &s->change->at[i], s->change->at[i].path);
}

static void add_backwards(struct steps *s, enum op_kind kind, unsigned int acts)
{
	for (size_t i = s->change->n; i-- > 0;)
		if (acts & (1u << s->change->at[i].act))
			add(s, kind, &s->change->at[i], s->change->at[i].path);
}

void apply_steps(const struct apply_change *c, mode_t umask, struct apply_ops *out)
{
	struct steps s = { .out = out, .change = c, .umask = umask };

	add_all(&s, OP_REMOVE, 1u << ACT_DELETE | 1u << ACT_TO_DIR);
	add_backwards(&s, OP_RMDIR, 1u << ACT_RMDIR | 1u << ACT_FROM_DIR);
	add_folders(&s);
	add_all(&s, OP_CREATE, 1u << ACT_CREATE | 1u << ACT_FROM_DIR);
	add_all(&s, OP_REPLACE, 1u << ACT_REPLACE | 1u << ACT_MERGE);
	add_all(&s, OP_MODE, 1u << ACT_MODE);
}

void apply_ops_done(struct apply_ops *ops)
{
	vec_done(&ops->list);
	arena_done(&ops->arena);
}
