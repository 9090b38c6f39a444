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

static const struct {
	const char *name, *text;
} links[] = {
	{ "ptmx", "pts/ptmx" },
	{ "fd", "/proc/self/fd" },
	{ "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" },
};

static int make_node(int dev_fd, const char *name, struct err *e)
{
	char host[32];
	int r = os_make_file(dev_fd, name, "", 0, 0666);

	if (r < 0)
		return err_sys(e, -r, "make /dev/%s", name);
	AUTO(fd_close) int target = os_openat(dev_fd, name, O_PATH | O_NOFOLLOW, 0);
	if (target < 0)
		return err_sys(e, -target, "open /dev/%s", name);
	snprintf(host, sizeof host, "/dev/%s", name);
	return place_clone(AT_FDCWD, host, target, 0, e);
}

static int make_pts(int dev_fd, struct err *e)
{
	int r = os_mkdirat(dev_fd, "pts", 0755);

	if (r < 0)
		return err_sys(e, -r, "make /dev/pts");
	AUTO(fd_close) int fs = os_fsopen("devpts");
	if (fs < 0)
		return err_sys(e, -fs, "open devpts");
	r = os_fsconfig_text(fs, "ptmxmode", "0666");
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

/* A folder image may have its own /dev: an empty one covers it. */
static int open_dev(struct build *b, struct err *e)
{
	int r = os_mkdirat(b->root_fd, "dev", 0755);

	if (r == 0)
		return place_dir(b, "dev", 0755, e);
	AUTO(fd_close) int below = place_dir(b, "dev", 0755, e);
	AUTO(fd_close) int fresh = below < 0 ? -1 : place_scratch(b, 0755, b->uid, b->uid, e);
	if (fresh < 0 || place_clone(fresh, "", below, 0, e) < 0)
		return -1;
	return place_dir(b, "dev", 0755, e);
}

int dev_make(struct build *b, struct err *e)
{
	AUTO(fd_close) int dev = open_dev(b, e);

	if (dev < 0)
		return -1;
	for (size_t i = 0; i < COUNT(nodes); i++)
		if (make_node(dev, nodes[i], e) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(links); i++) {
		int r = os_symlinkat(links[i].text, dev, links[i].name);

		if (r < 0)
			return err_sys(e, -r, "link /dev/%s", links[i].name);
	}
	int r = os_mkdirat(dev, "shm", 01777);
	if (r < 0)
		return err_sys(e, -r, "make /dev/shm");
	return make_pts(dev, e);
}
