/*
 * show.c - folders and files of the host that are shown read-only.
 *
 * A clone of a folder has the folder's own inodes: who watches, locks or leases them inside meets
 * the host's programs, and a socket or FIFO there leads to them although the mount is read-only. An
 * overlay without an upper has inodes of its own. It keeps every name that it has looked up, also
 * one that was not there, so the monitor makes it look again (docs/decisions/0056-own-inodes.md).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/build.h"
#include "engine/hostpath.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/sock.h"

int show_host_dir(struct build *b, int host_fd, const char *name, int target_fd, struct err *e)
{
	struct place_shown how = { 0 };
	AUTO(fd_close) int lower = os_openat(host_fd, name, O_PATH | O_DIRECTORY, 0);

	if (lower < 0)
		return err_sys(e, -lower, "open /%s", name);
	AUTO(fd_close) int tree = place_show(b, lower, target_fd, &how, e);
	return tree < 0 ? err_wrap(e, "/%s", name) : 0;
}

/* Hands the monitor what it needs to make the overlay look up names again. */
static int follow_source(struct build *b, int mount_fd, struct err *e)
{
	static const char letter = GIFT_LIVE;
	AUTO(fd_close) int fs = os_fspick(mount_fd);
	int r = fs < 0 ? fs : os_send(b->io.report_fd, &letter, 1, &fs, 1);

	return r < 0 ? err_sys(e, -r, "follow changes of the host") : 0;
}

static int show_folder(struct build *b, const struct plan_mount *m, int tree_fd, int target_fd,
                       struct err *e)
{
	struct place_shown how = { .keeps_inodes = true };
	AUTO(fd_close) int source = root_source(b, tree_fd, m->source_fd, e);
	AUTO(fd_close) int tree = source < 0 ? -1 : place_show(b, source, target_fd, &how, e);

	if (tree < 0)
		return -1;
	/* A tree of the store is sealed: it never changes. */
	return m->kind == PLAN_RO && how.is_own ? follow_source(b, tree, e) : 0;
}

/* Overlay takes folders only: the file is cloned out of an overlay of its folder. */
static int show_from_folder(struct build *b, const struct plan_mount *m, int dir_fd, int target_fd,
                            struct err *e)
{
	struct place_shown how = { .keeps_inodes = true };
	char name[NAME_MAX + 1];
	struct stat then, now;

	if (hostpath_name(m->source_fd, name, sizeof name, e) < 0)
		return -1;
	AUTO(fd_close) int spare = place_scratch(b, 0700, b->uid, b->gid, e);
	AUTO(fd_close) int tree = spare < 0 ? -1 : place_show(b, dir_fd, spare, &how, e);
	if (tree < 0)
		return -1;
	int r = os_fstatat(tree, name, &now, AT_SYMLINK_NOFOLLOW);
	if (r >= 0)
		r = os_fstatat(m->source_fd, "", &then, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "stat %s", name);
	if (now.st_ino != then.st_ino || !S_ISREG(now.st_mode))
		return err_new(e, ERR_INVALID, "%s was replaced meanwhile", name);
	return place_clone(tree, name, target_fd, PLACE_READ_ONLY, e);
}

/* Root mode: the launcher has mapped the folder, or the file alone where its folder is closed to
 * the builder. */
static int show_mapped_file(struct build *b, const struct plan_mount *m, int tree_fd, int target_fd,
                            struct err *e)
{
	struct stat st;
	int r = os_fstatat(tree_fd, "", &st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "stat a source");
	if (S_ISDIR(st.st_mode)) {
		AUTO(fd_close) int dir = root_source(b, tree_fd, -1, e);

		return dir < 0 ? -1 : show_from_folder(b, m, dir, target_fd, e);
	}
	r = place_restrict(tree_fd, PLACE_READ_ONLY, false);
	if (r >= 0)
		r = os_move_mount(tree_fd, target_fd, "");
	return r < 0 ? err_sys(e, -r, "attach") : 0;
}

static int show_file(struct build *b, const struct plan_mount *m, int tree_fd, int target_fd,
                     struct err *e)
{
	if (tree_fd >= 0)
		return show_mapped_file(b, m, tree_fd, target_fd, e);
	AUTO(fd_close) int dir = hostpath_folder(m->source_fd, e);
	AUTO(fd_close) int again = dir < 0 ? -1 : root_source(b, -1, dir, e);
	if (again < 0)
		return -1;
	if (hostpath_is_open_to(dir, m->uid, m->gid))
		return show_from_folder(b, m, again, target_fd, e);
	AUTO(fd_close) int file = root_source(b, -1, m->source_fd, e);
	return file < 0 ? -1 : place_clone(file, "", target_fd, PLACE_READ_ONLY, e);
}

int show_mount(struct build *b, size_t i, int target_fd, struct err *e)
{
	const struct plan_mount *m = &b->box->plan->mounts[i];
	int tree_fd = b->box->mount_tree_fds[i];

	return m->is_dir ? show_folder(b, m, tree_fd, target_fd, e)
	                 : show_file(b, m, tree_fd, target_fd, e);
}
