/*
 * copy.c - files and trees get a second name, or another one.
 *
 * A copy is made under a secret name and then renamed: it is there whole or not at all. Modes are
 * kept, owners are the worker's; links are copied as links; what is no file, directory or link is
 * left out and counted.
 */
#include <linux/fs.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/dest.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/remove.h"
#include "tree/sys.h"
#include "tree/verbs.h"
#include "tree/walk.h"

struct transfer {
	const char *from, *to;
	bool overwrite;
	struct place source, target;
	uint64_t skipped;
	struct dest dest;
};

static void transfer_done(struct transfer *t)
{
	dest_done(&t->dest);
	place_done(&t->source);
	place_done(&t->target);
}

static int copy_file(struct call *c, struct transfer *t, const struct walk_entry *entry,
                     struct err *e)
{
	const char *name;
	struct stat st;
	AUTO(fd_close)
	int from =
	    os_openat(entry->dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	if (from < 0)
		return err_sys(e, -from, "open %s", entry->path);
	int r = sys_fstat(from, &st);
	if (r < 0 || !S_ISREG(st.st_mode))
		return fail(e, TREE_CONFLICT, "%s changed during the call", entry->path);
	if ((uint64_t)st.st_size > TREE_STREAM_MAX) /* before the first of its bytes is copied */
		return fail(e, TREE_TOO_LARGE, "%s has %lld bytes", entry->path,
		            (long long)st.st_size);
	int dir_fd = dest_parent(&t->dest, entry->path, &name, e);
	if (dir_fd < 0)
		return -1;
	AUTO(fd_close)
	int to = os_openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (to < 0)
		return err_sys(e, -to, "create %s", entry->path);
	if (dest_copy(&t->dest, from, to, c, e) < 0)
		return err_wrap(e, "%s", entry->path);
	t->dest.files++;
	r = os_fchmod(to, st.st_mode & 0777);
	return r < 0 ? err_sys(e, -r, "set the mode of %s", entry->path) : 0;
}

static int copy_link(struct transfer *t, const struct walk_entry *entry, struct err *e)
{
	char text[PATH_TEXT_MAX];
	const char *name;
	int r = os_readlinkat(entry->dir_fd, entry->name, text, sizeof text);

	if (r < 0)
		return err_sys(e, -r, "read link %s", entry->path);
	int dir_fd = dest_parent(&t->dest, entry->path, &name, e);
	if (dir_fd < 0)
		return -1;
	r = os_symlinkat(text, dir_fd, name);
	t->dest.files++;
	return r < 0 ? err_sys(e, -r, "make link %s", entry->path) : 0;
}

/* On leaving, so that a directory which may not be written can still be filled. */
static int set_dir_mode(struct transfer *t, const struct walk_entry *entry, struct err *e)
{
	const char *name;
	struct stat st;
	int r = os_fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		return err_sys(e, -r, "stat %s", entry->path);
	int dir_fd = dest_parent(&t->dest, entry->path, &name, e);
	if (dir_fd < 0)
		return -1;
	AUTO(fd_close) int fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	r = fd < 0 ? fd : os_fchmod(fd, st.st_mode & 0777);
	return r < 0 ? err_sys(e, -r, "set the mode of %s", entry->path) : 0;
}

/* The copy may lie inside of what is copied. */
static bool is_copy_itself(const struct transfer *t, const struct walk_entry *entry)
{
	struct stat st;

	return entry->type == DT_DIR &&
	       os_fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == t->dest.root.st_ino && st.st_dev == t->dest.root.st_dev;
}

static int copy_entry(struct call *c, struct transfer *t, struct walk *w,
                      const struct walk_entry *entry, struct err *e)
{
	if (entry->is_leave)
		return is_copy_itself(t, entry) ? 0 : set_dir_mode(t, entry, e);
	if (is_copy_itself(t, entry)) {
		walk_skip(w);
		return 0;
	}
	if (entry->type == DT_DIR)
		return dest_mkdir(&t->dest, entry->path, e);
	if (entry->type == DT_REG)
		return copy_file(c, t, entry, e);
	if (entry->type == DT_LNK)
		return copy_link(t, entry, e);
	t->skipped++;
	return 0;
}

static int copy_tree(struct call *c, struct transfer *t, mode_t mode, struct err *e)
{
	AUTO(walk_done) struct walk w = { .fd = -1 };
	const struct walk_how how = { .call = c,
		                      .with_hidden = true,
		                      .with_git = true,
		                      .with_temp = true,
		                      .with_leave = true,
		                      .is_strict = true };
	struct walk_entry entry;
	int fd =
	    os_openat(t->source.dir_fd, t->source.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0)
		return err_sys(e, -fd, "open %s", t->from);
	int r = walk_open(&w, fd, how, e);
	while (r >= 0 && (r = walk_next(&w, &entry, e)) > 0)
		r = copy_entry(c, t, &w, &entry, e);
	if (r < 0)
		return -1;
	r = os_fchmod(t->dest.root_fd, mode & 0777);
	return r < 0 ? err_sys(e, -r, "set the mode of %s", t->to) : 0;
}

/* The new tree, or the one entry in it, gets its name. */
static int settle(struct transfer *t, bool is_dir, struct err *e)
{
	struct dest *d = &t->dest;
	struct os_names names = { is_dir ? d->parent_fd : d->root_fd,
		                  is_dir ? d->temp : t->source.name, t->target.dir_fd,
		                  t->target.name };
	int r = os_renameat2(names, t->overwrite ? 0 : RENAME_NOREPLACE);

	if (r < 0)
		return err_sys(e, -r, "rename to %s", t->to);
	if (is_dir)
		d->temp[0] = '\0';
	return 0;
}

static int copy_any(struct call *c, struct transfer *t, struct err *e)
{
	struct stat st;
	int r = os_fstatat(t->source.dir_fd, t->source.name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		return err_sys(e, -r, "stat %s", t->from);
	if (dest_open(&t->dest, t->target.dir_fd, e) < 0)
		return err_wrap(e, "%s", t->to);
	const struct walk_entry entry = { .dir_fd = t->source.dir_fd,
		                          .name = t->source.name,
		                          .path = t->source.name };
	if (S_ISDIR(st.st_mode))
		r = copy_tree(c, t, st.st_mode, e);
	else if (S_ISREG(st.st_mode))
		r = copy_file(c, t, &entry, e);
	else if (S_ISLNK(st.st_mode))
		r = copy_link(t, &entry, e);
	else
		return fail(e, TREE_INVALID, "%s is not a file, directory or link", t->from);
	return r < 0 ? -1 : settle(t, S_ISDIR(st.st_mode), e);
}

static int begin(struct call *c, struct transfer *t, struct err *e)
{
	static const struct field fields[] = {
		{ "from", offsetof(struct transfer, from), FIELD_PATH, true },
		{ "to", offsetof(struct transfer, to), FIELD_PATH, true },
		{ "overwrite", offsetof(struct transfer, overwrite), FIELD_BOOL, false },
	};
	AUTO(json_drop) json_t *body = call_body_json(c, e);
	char from[PATH_TEXT_MAX], to[PATH_TEXT_MAX];

	if (!body ||
	    json_read(body, (struct fields){ fields, COUNT(fields) }, t, &c->arena, e) < 0 ||
	    root_join(c->path, t->from, from, e) < 0 || root_join(c->path, t->to, to, e) < 0)
		return -1;
	if (root_place(c->conn->root_fd, from, (struct place_how){ 0 }, &t->source, e) < 0)
		return -1;
	return root_place(c->conn->root_fd, to, (struct place_how){ .make_parents = true },
	                  &t->target, e);
}

static int end(struct call *c, const struct transfer *t, bool with_counts, struct err *e)
{
	AUTO(json_drop) json_t *j = json_object();

	json_put_bytes(j, "from", span_of(t->from));
	json_put_bytes(j, "to", span_of(t->to));
	if (with_counts) {
		json_put_number(j, "files", t->dest.files);
		json_put_number(j, "bytes", t->dest.bytes);
		json_put_number(j, "skipped", t->skipped);
	}
	return call_answer(c, j, e);
}

#define TRANSFER_NONE                                                                              \
	{                                                                                          \
		.source = { .dir_fd = -1 }, .target = { .dir_fd = -1 }, .dest = {                  \
			.root_fd = -1,                                                             \
			.dir_fd = -1                                                               \
		}                                                                                  \
	}

int verb_copy(struct call *c, struct err *e)
{
	AUTO(transfer_done) struct transfer t = TRANSFER_NONE;

	if (begin(c, &t, e) < 0 || copy_any(c, &t, e) < 0)
		return -1;
	return end(c, &t, true, e);
}

int verb_move(struct call *c, struct err *e)
{
	AUTO(transfer_done) struct transfer t = TRANSFER_NONE;

	if (begin(c, &t, e) < 0)
		return -1;
	struct os_names names = { t.source.dir_fd, t.source.name, t.target.dir_fd, t.target.name };
	int r = os_renameat2(names, t.overwrite ? 0 : RENAME_NOREPLACE);
	if (r < 0 && r != -EXDEV)
		return err_sys(e, -r, "move %s to %s", t.from, t.to);
	if (r == -EXDEV &&
	    (copy_any(c, &t, e) < 0 ||
	     remove_tree(t.source.dir_fd, t.source.name, (struct remove_how){ .call = c }, e) < 0))
		return -1;
	return end(c, &t, false, e);
}
