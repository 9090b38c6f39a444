/*
 * dev.c - /dev: six nodes, an own devpts, and links. A user namespace cannot make devices: in root
 * mode the launcher makes them for each sandbox, rootless they are clones of the host's.
 */
#include "engine/dev.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "engine/build.h"
#include "os/caps.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/node.h"

#define NODE_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

static const struct {
	const char *name;
	unsigned int major, minor;
} nodes[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

/* ---- in the launcher ----------------------------------------------------------------- */

static int fill_nodes(int tree)
{
	mode_t old = umask(0);
	int r = 0;

	for (size_t i = 0; i < COUNT(nodes) && r >= 0; i++)
		r = os_mknodat(tree, nodes[i].name, S_IFCHR | 0666,
		               makedev(nodes[i].major, nodes[i].minor));
	umask(old);
	/* Read-only: a device can be written all the same, the times of its node cannot. */
	return r < 0 ? r : os_mount_setattr(tree, NODE_ATTRS | MOUNT_ATTR_RDONLY, false);
}

int dev_make_nodes(int *out, struct err *e)
{
	uint64_t effective = 0, permitted, inheritable;
	int r = os_caps_get(&effective, &permitted, &inheritable);

	*out = -1;
	if (r >= 0 && !(effective & CAP_BIT(CAP_MKNOD)))
		return 0;
	AUTO(fd_close) int fs = r < 0 ? r : os_fsopen("tmpfs");
	r = fs < 0 ? fs : os_fsconfig_text(fs, "mode", "0755");

	if (r >= 0)
		r = os_fsconfig_text(fs, "nr_inodes", "16");
	if (r >= 0)
		r = os_fsconfig_create(fs);
	AUTO(fd_close) int tree = r < 0 ? r : os_fsmount(fs, NODE_ATTRS);
	r = tree < 0 ? tree : fill_nodes(tree);
	if (r < 0)
		return err_sys(e, -r, "make the device nodes");
	*out = fd_take(&tree);
	return 0;
}

/* ---- in pid 1 ------------------------------------------------------------------------ */

static int make_node(struct build *b, int dev_fd, const char *name, struct err *e)
{
	AUTO(fd_close) int target = os_openat(dev_fd, name, O_PATH | O_NOFOLLOW, 0);

	if (target < 0)
		return err_sys(e, -target, "open /dev/%s", name);
	return place_clone(b->nodes_fd, name, target, 0, e);
}

/* A clone of the host's folder. */
static int host_nodes(void)
{
	AUTO(fd_close) int tree = os_open_tree(AT_FDCWD, "/dev", false);

	if (tree == -EINVAL) /* with what is mounted below, where that is locked to it */
		tree = os_open_tree(AT_FDCWD, "/dev", true);
	int r = tree < 0 ? tree : os_mount_setattr(tree, NODE_ATTRS | MOUNT_ATTR_RDONLY, true);
	return r < 0 ? r : fd_take(&tree);
}

/* The whole folder has the attributes; clones of its nodes inherit them. */
int dev_take_nodes(struct build *b, struct err *e)
{
	AUTO(fd_close) int spare = place_scratch(b, 0700, b->uid, b->gid, e);

	if (spare < 0)
		return -1;
	b->nodes_fd = b->box->nodes_tree_fd >= 0 ? fcntl(b->box->nodes_tree_fd, F_DUPFD_CLOEXEC, 3)
	                                         : host_nodes();
	int r = b->nodes_fd < 0 ? b->nodes_fd : os_move_mount(b->nodes_fd, spare, "");
	return r < 0 ? err_sys(e, -r, "take the device nodes") : 0;
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
		if (make_node(b, dev, nodes[i].name, e) < 0)
			return -1;
	AUTO(fd_close) int shm = os_openat(dev, "shm", O_PATH | O_DIRECTORY, 0);
	if (shm < 0)
		return err_sys(e, -shm, "open /dev/shm");
	return place_fresh(b, shm, 01777, b->uid, b->gid, e) < 0 ? -1 : make_pts(dev, e);
}
