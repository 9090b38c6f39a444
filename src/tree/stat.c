/*
 * stat.c - what an entry is, and what is in a directory.
 */
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/blob.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/ops.h"
#include "tree/sys.h"
#include "tree/verbs.h"
#include "tree/walk.h"
#include "wire/hash.h"

static const char *type_name(mode_t mode)
{
	static const struct {
		mode_t type;
		const char *name;
	} names[] = {
		{ S_IFREG, "file" },   { S_IFDIR, "directory" }, { S_IFLNK, "symlink" },
		{ S_IFIFO, "fifo" },   { S_IFSOCK, "socket" },   { S_IFCHR, "device" },
		{ S_IFBLK, "device" },
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		if ((mode & S_IFMT) == names[i].type)
			return names[i].name;
	}
	return "unknown";
}

/* `name` "" is dir_fd itself, which then is an O_PATH descriptor. */
static json_t *describe(int dir_fd, const char *name, struct span path, const struct stat *st)
{
	json_t *j = json_object();
	char text[PATH_TEXT_MAX];

	json_put_bytes(j, "path", path);
	json_put_text(j, "type", type_name(st->st_mode));
	json_put_number(j, "bytes", (uint64_t)st->st_size);
	snprintf(text, sizeof text, "%04o", (unsigned int)(st->st_mode & 07777));
	json_put_text(j, "mode", text);
	json_put(
	    j, "mtime_ms",
	    json_integer((json_int_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000));
	json_put_number(j, "uid", st->st_uid);
	json_put_number(j, "gid", st->st_gid);
	if (S_ISLNK(st->st_mode) && os_readlinkat(dir_fd, name, text, sizeof text) >= 0)
		json_put_bytes(j, "target", span_of(text));
	return j;
}

json_t *stat_entry(int dir_fd, const char *name, struct span path)
{
	struct stat st;

	if (os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return NULL;
	return describe(dir_fd, name, path, &st);
}

/* What a link leads to, inside the root; a dangling one to nothing. */
static void add_behind(const struct call *c, const char *path, json_t *to)
{
	struct err ignored;
	struct stat st;
	char mode[8];
	AUTO(fd_close) int fd = root_open(c->conn->root_fd, path, O_PATH, &ignored);

	if (fd < 0 || sys_fstat(fd, &st) < 0)
		return;
	json_t *j = json_object();
	snprintf(mode, sizeof mode, "%04o", (unsigned int)(st.st_mode & 07777));
	json_put_text(j, "type", type_name(st.st_mode));
	json_put_text(j, "mode", mode);
	json_put(to, "behind", j);
}

/* `path` from the root. What cannot be read is not there. */
static void add_detail(const struct call *c, const char *path, json_t *to)
{
	const char *type = json_string_value(json_object_get(to, "type"));
	struct err ignored;
	struct stat st;

	if (strcmp(type, "symlink") == 0)
		add_behind(c, path, to);
	if (strcmp(type, "file") != 0)
		return;
	AUTO(fd_close) int fd = root_open_file(c->conn->root_fd, path, &st, &ignored);
	if (fd >= 0)
		mark_print(fd, to);
}

static int add_hash(struct call *c, const char *path, json_t *to, struct err *e)
{
	AUTO(blob_done) struct blob text = { 0 };
	char hash[TREE_HASH_TEXT];
	struct stat st;
	AUTO(fd_close) int fd = root_open_file(c->conn->root_fd, path, &st, e);

	if (fd < 0)
		return -1;
	if (blob_read(&text, fd, &st, TREE_WHOLE_MAX, e) < 0)
		return err_wrap(e, "%s", path);
	hash_of(blob_span(&text), hash);
	json_put_text(to, "hash", hash);
	return 0;
}

int op_stat(struct call *c, const char *path, bool with_hash, json_t **out, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int fd = root_open(c->conn->root_fd, path, O_PATH | O_NOFOLLOW, e);

	if (fd < 0)
		return -1;
	int r = sys_fstat(fd, &st);
	if (r < 0)
		return err_sys(e, -r, "stat %s", path);
	AUTO(json_drop) json_t *j = describe(fd, "", span_of(path), &st);
	if (c->flags & TREE_DETAIL)
		add_detail(c, path, j);
	if (with_hash && S_ISREG(st.st_mode) && add_hash(c, path, j, e) < 0)
		return -1;
	*out = json_incref(j);
	return 0;
}

int verb_stat(struct call *c, struct err *e)
{
	AUTO(json_drop) json_t *j = NULL;

	if (op_stat(c, c->path, c->flags & TREE_HASH, &j, e) < 0)
		return -1;
	return call_answer(c, j, e);
}

static int add_text(struct call *c, const char *text, struct err *e)
{
	return call_add(c, span_of(text), e);
}

/* Entries until the end or a ceiling; *is_cut says which. */
static int add_entries(struct call *c, struct walk *w, size_t max, bool *is_cut, struct err *e)
{
	struct walk_entry entry;
	char path[PATH_TEXT_MAX];
	size_t n = 0;
	int r;

	while ((r = walk_next(w, &entry, e)) > 0) {
		AUTO(json_drop) json_t *j = NULL;

		if (n == max || c->sent_bytes > TREE_JSON_MAX) {
			*is_cut = true;
			return 0;
		}
		j = stat_entry(entry.dir_fd, entry.name, span_of(entry.path));
		if (j && c->flags & TREE_DETAIL && root_join(c->path, entry.path, path, e) == 0)
			add_detail(c, path, j);
		if (j && ((n++ > 0 && add_text(c, ",", e) < 0) || call_add_json(c, j, e) < 0))
			return -1;
	}
	return r;
}

int verb_list(struct call *c, struct err *e)
{
	AUTO(walk_done) struct walk w = { .fd = -1 };
	struct walk_how how = { .call = c,
		                .depth = c->req.depth > 0 ? c->req.depth : 1,
		                .with_hidden = c->flags & TREE_HIDDEN,
		                .with_git = true };
	size_t max = c->req.max > 0 ? c->req.max : TREE_ENTRIES_DEFAULT;
	AUTO(str_done) struct str end = { .max = 256 };
	bool is_cut = false;
	int fd = root_open_dir(c->conn->root_fd, c->path, e);

	if (fd < 0 || walk_open(&w, fd, how, e) < 0 || add_text(c, "{\"entries\":[", e) < 0)
		return -1;
	if (add_entries(c, &w, max < TREE_ENTRIES_MAX ? max : TREE_ENTRIES_MAX, &is_cut, e) < 0)
		return -1;
	str_addf(&end, "],\"truncated\":%s,\"unreadable\":%zu}", is_cut ? "true" : "false",
	         w.unreadable);
	c->answer.is_cut = is_cut;
	return add_text(c, str_text(&end), e);
}
