/*
 * dev.c - /dev: six nodes, an own devpts, and links. Nodes are the host's, by clone: a user
 * namespace cannot make devices, and none but these has a name inside.
 */
#include <fcntl.h>

#include "base/fd.h"
#include "engine/build.h"
#include "os/file.h"
#include "os/mount.h"

static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };

static int make_node(struct build *b, int dev_fd, const char *name, struct err *e)
{
	AUTO(fd_close) int target = os_openat(dev_fd, name, O_PATH | O_NOFOLLOW, 0);

	if (target < 0)
		return err_sys(e, -target, "open /dev/%s", name);
	return place_clone(b->host_dev_fd, name, target, 0, e);
}

/* One clone of the host's folder gets the attributes; clones of its nodes inherit them. */
int dev_take_host(struct build *b, struct err *e)
{
	AUTO(fd_close) int spare = place_scratch(b, 0700, b->uid, b->gid, e);
	AUTO(fd_close) int tree = spare < 0 ? -1 : os_open_tree(AT_FDCWD, "/dev", false);

	if (spare < 0)
		return -1;
	if (tree == -EINVAL) /* with what is mounted below, where that is locked to it */
		tree = os_open_tree(AT_FDCWD, "/dev", true);
	/* Read-only: a device can be written all the same, the times of its node cannot. */
	uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
	int r = tree < 0 ? tree : os_mount_setattr(tree, attrs, true);
	if (r >= 0)
		r = os_move_mount(tree, spare, "");
	if (r < 0)
		return err_sys(e, -r, "clone the host's /dev");
	b->host_dev_fd = fd_take(&tree);
	return 0;
}

static int make_pts(int dev_fd, struct err *e)
{
	AUTO(fd_close) int fs = os_fsopen("devpts");

	if (fs < 0)
		return err_sys(e, -fs, "open devpts");
	int r = os_fsconfig_text(fs, "ptmxmode", "0666");
	if (r >= 0)
		r = os_fsconfig_text(fs, "mode", "0620");
	if (r >= 0)
		r = os_fsconfig_create(fs);
	if (r < 0)
		return err_sys(e, -r, "configure devpts");
	AUTO(fd_close) int tree = os_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (tree < 0)
		return err_sys(e, -tree, "mount devpts");
	r = os_move_mount(tree, dev_fd, "pts");
	return r < 0 ? err_sys(e, -r, "attach devpts") : 0;
}

int dev_make(struct build *b, struct err *e)
{
	AUTO(fd_close) int below = place_dir(b, "dev", 0755, e);

	if (below < 0 || place_clone(b->skeleton_fd, "dev", below, PLACE_READ_ONLY, e) < 0)
		return -1;
	AUTO(fd_close) int dev = place_dir(b, "dev", 0755, e); /* what lies there now */
	if (dev < 0)
		return -1;
	for (size_t i = 0; i < COUNT(nodes); i++)
		if (make_node(b, dev, nodes[i], e) < 0)
			return -1;
	AUTO(fd_close) int shm = os_openat(dev, "shm", O_PATH | O_DIRECTORY, 0);
	if (shm < 0)
		return err_sys(e, -shm, "open /dev/shm");
	return place_fresh(b, shm, 01777, b->uid, b->gid, e) < 0 ? -1 : make_pts(dev, e);
}
