#include "tree/unpack.h"

#include <linux/fs.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/call.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/sys.h"
#include "tree/walk.h"

/* Directories meet directories, everything else meets anything but a directory. */
static int check_entry(struct dest *over, const struct walk_entry *entry, struct err *e)
{
	const char *name;
	struct stat st;
	int dir_fd = dest_parent(over, entry->path, &name, e);

	if (dir_fd < 0)
		return -1;
	int r = os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "stat %s", entry->path);
	if (r == 0 && !!S_ISDIR(st.st_mode) != (entry->type == DT_DIR))
		return fail(e, TREE_CONFLICT, "%s: a directory meets something else", entry->path);
	/* Made now, so that all below can be looked at. It stays empty when the rest fails. */
	return entry->type == DT_DIR && r < 0 ? dest_mkdir(over, entry->path, e) : 0;
}

static int move_entry(struct dest *over, const struct walk_entry *entry, struct err *e)
{
	const char *name;

	if (entry->type == DT_DIR)
		return 0;
	int dir_fd = dest_parent(over, entry->path, &name, e);
	if (dir_fd < 0)
		return -1;
	int r = os_renameat2((struct os_names){ entry->dir_fd, entry->name, dir_fd, name }, 0);
	return r < 0 ? err_sys(e, -r, "unpack %s", entry->path) : 0;
}

static int for_all(struct unpack *u, struct dest *over,
                   int (*each)(struct dest *, const struct walk_entry *, struct err *))
{
	AUTO(walk_done) struct walk w = { .fd = -1 };
	const struct walk_how how = {
		.with_hidden = true, .with_git = true, .with_temp = true, .is_strict = true
	};
	struct walk_entry entry;
	int fd = os_openat(u->dest.root_fd, ".", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return err_sys(u->e, -fd, "open what was unpacked");
	int r = walk_open(&w, fd, how, u->e);
	while (r >= 0 && (r = walk_next(&w, &entry, u->e)) > 0)
		r = each(over, &entry, u->e);
	return r;
}

static int merge(struct unpack *u, int target_fd)
{
	AUTO(dest_done) struct dest over = { .dir_fd = -1, .dir = { .max = TREE_WALK_PATH_MAX } };

	over.root_fd = os_openat(target_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (over.root_fd < 0)
		return err_sys(u->e, -over.root_fd, "open %s", u->call->path);
	if (for_all(u, &over, check_entry) < 0)
		return -1;
	return for_all(u, &over, move_entry);
}

/* Over a directory that is there. */
static int unpack_over(struct unpack *u, int target_fd)
{
	if (dest_open(&u->dest, target_fd, u->e) < 0)
		return err_wrap(u->e, "%s", u->call->path);
	return u->all(u) < 0 ? -1 : merge(u, target_fd);
}

/* As a new directory. */
static int unpack_new(struct unpack *u, int parent_fd, const char *name)
{
	if (dest_open(&u->dest, parent_fd, u->e) < 0)
		return err_wrap(u->e, "%s", u->call->path);
	if (u->all(u) < 0)
		return -1;
	int r = os_fchmod(u->dest.root_fd, 0755);
	if (r == 0)
		r = os_renameat2((struct os_names){ parent_fd, u->dest.temp, parent_fd, name },
		                 RENAME_NOREPLACE);
	if (r < 0)
		return err_sys(u->e, -r, "make directory %s", u->call->path);
	u->dest.temp[0] = '\0';
	return 0;
}

int unpack_run(struct unpack *u)
{
	struct call *c = u->call;
	AUTO(place_done) struct place p = { .dir_fd = -1 };
	AUTO(fd_close) int fd = root_open_dir(c->conn->root_fd, c->path, u->e);
	const struct place_how how = { .follow = true, .make_parents = true };

	if (fd < 0 && fail_code(u->e) != TREE_NOT_FOUND)
		return -1;
	if (fd < 0 && root_place(c->conn->root_fd, c->path, how, &p, u->e) < 0)
		return -1;
	*u->e = (struct err){ 0 };
	int r = fd >= 0 ? unpack_over(u, fd) : unpack_new(u, p.dir_fd, p.name);
	AUTO(json_drop) json_t *j = json_object();
	json_put_bytes(j, "path", span_of(c->path));
	json_put_number(j, "files", u->dest.files);
	json_put_number(j, "bytes", u->dest.bytes);
	dest_done(&u->dest); /* while the folder that it lies in is open */
	return r < 0 ? -1 : call_answer(c, j, u->e);
}
