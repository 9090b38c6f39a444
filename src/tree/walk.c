#include "tree/walk.h"

#include "base/arena.h"
#include "base/fd.h"
#include "os/file.h"
#include "tree/call.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/sys.h"
#include "tree/undo.h"

struct walk_name {
	const char *text;
	unsigned char type;
};

struct walk_level {
	struct arena arena;
	VEC(struct walk_name) names;
	size_t next, bytes, path_len;
	dev_t dev;
	ino_t ino;
	bool has_rules;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct walk_name *)a)->text, ((const struct walk_name *)b)->text);
}

static bool is_wanted(const struct walk *w, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	if (!w->how.with_temp && strncmp(name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0)
		return false;
	if (!w->how.with_git && strcmp(name, ".git") == 0)
		return false;
	return w->how.with_hidden || name[0] != '.';
}

static void add_name(struct walk_level *l, const struct dirent64 *d)
{
	const char *text = arena_strdup(&l->arena, d->d_name);

	l->bytes += strlen(text) + sizeof(struct walk_name);
	vec_push(&l->names, (struct walk_name){ text, d->d_type });
}

static int add_names(struct walk *w, struct walk_level *l, const char *buf, size_t n, struct err *e)
{
	for (size_t at = 0; at < n;) {
		const struct dirent64 *d = (const void *)(buf + at);

		at += d->d_reclen;
		if (!is_wanted(w, d->d_name))
			continue;
		add_name(l, d);
		if (w->names_bytes + l->bytes > TREE_NAMES_MAX)
			return fail(e, TREE_TOO_LARGE, "too many names in %s", str_text(&w->path));
	}
	return 0;
}

static int read_names(struct walk *w, struct walk_level *l, struct err *e)
{
	_Alignas(struct dirent64) char buf[32 << 10];

	for (;;) {
		int n = os_getdents(w->fd, buf, sizeof buf);

		if (n == 0 || n == -ENOENT) /* removed meanwhile */
			break;
		if (n < 0)
			return err_sys(e, -n, "read directory %s", str_text(&w->path));
		if (add_names(w, l, buf, (size_t)n, e) < 0 || call_check(w->how.call, e) < 0)
			return -1;
	}
	if (l->names.len > 1)
		qsort(l->names.at, l->names.len, sizeof l->names.at[0], compare_names);
	return 0;
}

static void level_done(struct walk *w, struct walk_level *l)
{
	if (l->has_rules)
		ignore_pop(w->how.ignore);
	w->names_bytes -= l->bytes;
	arena_done(&l->arena);
	vec_done(&l->names);
}

/* w->fd has become a new directory. */
static int push_level(struct walk *w, struct err *e)
{
	struct walk_level l = { .path_len = w->path.len };
	struct stat st;
	int r = sys_fstat(w->fd, &st);

	if (r < 0)
		return err_sys(e, -r, "stat %s", str_text(&w->path));
	l.dev = st.st_dev;
	l.ino = st.st_ino;
	if (w->how.ignore) {
		ignore_push(w->how.ignore, w->fd, str_text(&w->path));
		l.has_rules = true;
	}
	r = read_names(w, &l, e);
	w->names_bytes += l.bytes;
	if (r < 0) {
		level_done(w, &l);
		return -1;
	}
	vec_push(&w->levels, l);
	return 0;
}

int walk_open(struct walk *w, int dir_fd, struct walk_how how, struct err *e)
{
	*w = (struct walk){ .how = how, .fd = dir_fd, .path = { .max = TREE_WALK_PATH_MAX } };
	return push_level(w, e);
}

static void cut_path(struct walk *w, size_t len)
{
	w->path.len = len;
	w->path.overflow = false;
	if (w->path.data)
		w->path.data[len] = '\0';
}

static void set_path(struct walk *w, size_t base_len, const char *name)
{
	cut_path(w, base_len);
	if (base_len > 0)
		str_add(&w->path, "/");
	str_add(&w->path, name);
}

/* Into the directory that was returned last. 0 when that cannot be. */
static int go_down(struct walk *w, struct err *e)
{
	const struct walk_level *l = &w->levels.at[w->levels.len - 1];
	const char *name = l->names.at[l->next - 1].text;
	bool is_too_deep =
	    (w->levels.len >= TREE_DEPTH_MAX && !w->how.is_endless) || w->path.overflow;
	int fd =
	    is_too_deep ? -ELOOP : os_openat(w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (is_too_deep && w->how.is_strict)
		return fail(e, TREE_TOO_LARGE, "more than %d folders, one in the other",
		            TREE_DEPTH_MAX);
	if (fd < 0 && w->how.is_strict)
		return err_sys(e, -fd, "open %s", str_text(&w->path));
	if (fd < 0) {
		w->unreadable++;
		w->is_too_deep |= is_too_deep;
		return 0;
	}
	fd_close(&w->fd);
	w->fd = fd;
	return push_level(w, e) < 0 ? -1 : 1;
}

/* Back to the directory before. */
static int go_up(struct walk *w, struct err *e)
{
	struct walk_level *l = &w->levels.at[w->levels.len - 1];
	struct stat st;

	level_done(w, l);
	w->levels.len--;
	if (w->levels.len == 0)
		return 0;
	l--;
	int fd = os_openat(w->fd, "..", O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(e, -fd, "leave %s", str_text(&w->path));
	fd_close(&w->fd);
	w->fd = fd;
	int r = sys_fstat(fd, &st);
	if (r < 0 || st.st_dev != l->dev || st.st_ino != l->ino)
		return fail(e, TREE_CONFLICT, "%s was moved during the call", str_text(&w->path));
	cut_path(w, l->path_len);
	return 0;
}

static unsigned char find_type(const struct walk *w, const struct walk_name *name)
{
	struct stat st;

	if (name->type != DT_UNKNOWN)
		return name->type;
	if (os_fstatat(w->fd, name->text, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

/* The entry at which level `l` stands; it has been taken already. */
static void show(struct walk *w, struct walk_level *l, bool is_leave, struct walk_entry *out)
{
	struct walk_name *name = &l->names.at[l->next - 1];

	set_path(w, l->path_len, name->text);
	name->type = find_type(w, name);
	*out = (struct walk_entry){
		.dir_fd = w->fd,
		.name = name->text,
		.path = str_text(&w->path),
		.depth = w->levels.len,
		.type = name->type,
		.is_leave = is_leave,
	};
}

static bool may_go_down(const struct walk *w, const struct walk_entry *entry)
{
	return entry->type == DT_DIR && (w->how.depth == 0 || entry->depth < w->how.depth);
}

static bool is_ignored(const struct walk *w, const struct walk_entry *entry)
{
	return w->how.ignore && ignore_has(w->how.ignore, entry->path, entry->type == DT_DIR);
}

/* Moves to where the next entry is: down, up, or nowhere. 1 when *out is a directory left. */
static int settle(struct walk *w, struct walk_entry *out, struct err *e)
{
	if (w->may_go_down) {
		w->may_go_down = false;
		int r = go_down(w, e);

		if (r != 0)
			return r < 0 ? -1 : 0;
		if (w->how.with_leave) {
			show(w, &w->levels.at[w->levels.len - 1], true, out);
			return 1;
		}
	}
	while (w->levels.len > 0) {
		struct walk_level *l = &w->levels.at[w->levels.len - 1];

		if (l->next < l->names.len)
			return 0;
		if (go_up(w, e) < 0)
			return -1;
		if (w->levels.len > 0 && w->how.with_leave) {
			show(w, &w->levels.at[w->levels.len - 1], true, out);
			return 1;
		}
	}
	return 0;
}

int walk_next(struct walk *w, struct walk_entry *out, struct err *e)
{
	for (;;) {
		if (call_check(w->how.call, e) < 0)
			return -1;
		int r = settle(w, out, e);

		if (r != 0)
			return r;
		if (w->levels.len == 0)
			return 0;
		struct walk_level *l = &w->levels.at[w->levels.len - 1];
		if (l->next == l->names.len)
			continue; /* an empty directory was entered */
		l->next++;
		show(w, l, false, out);
		if (is_ignored(w, out))
			continue;
		w->may_go_down = may_go_down(w, out);
		return 1;
	}
}

void walk_skip(struct walk *w)
{
	w->may_go_down = false;
}

void walk_done(struct walk *w)
{
	while (w->levels.len > 0)
		level_done(w, &w->levels.at[--w->levels.len]);
	vec_done(&w->levels);
	str_done(&w->path);
	fd_close(&w->fd);
}
