/*
 * hostimage.c - image `host`: the system folders of the machine, read-only, and nothing else.
 *
 * Ids of the host are not mapped inside, so what only the host's root may read stays
 * unreadable, also for root inside. In root mode with `profile: rootful` the folders are
 * overlays with mapped ids instead, so that packages can be installed over them.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "engine/build.h"
#include "os/file.h"
#include "os/mount.h"

#define READ_ONLY (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY)

static const char *const system_dirs[] = { "usr",   "bin",   "sbin",  "lib",
					   "lib32", "lib64", "libx32" };

/* On merged-/usr hosts all but the first are links; they are copied as such. */
static int copy_link(struct build *b, int host_fd, const char *name, struct err *e)
{
	char text[256];
	int r = os_readlinkat(host_fd, name, text, sizeof text);

	if (r >= 0)
		r = os_symlinkat(text, b->root_fd, name);
	return r < 0 ? err_sys(e, -r, "copy the link /%s", name) : 0;
}

static int show_dir(struct build *b, int host_fd, const char *name, struct err *e)
{
	AUTO(fd_close) int target = place_dir(b, name, 0755, e);

	if (target < 0)
		return -1;
	if (b->box->plan->rootful && strcmp(name, "usr") == 0 && b->box->image_tree_fd >= 0) {
		AUTO(fd_close) int spare = place_scratch(b, 0700, b->uid, b->uid, e);
		int r = spare < 0 ? -1 : os_move_mount(b->box->image_tree_fd, spare, "");

		if (spare < 0)
			return -1;
		if (r < 0)
			return err_sys(e, -r, "attach /usr");
		AUTO(fd_close) int tree =
			place_overlay(b, b->box->image_tree_fd, target,
				      (struct place_owner){ b->uid, b->uid, 0755 }, e);
		return tree < 0 ? -1 : 0;
	}
	return place_clone(host_fd, name, target, READ_ONLY, e);
}

int hostimage_make(struct build *b, struct err *e)
{
	AUTO(fd_close) int host = os_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);

	if (host < 0)
		return err_sys(e, -host, "open the host's root");
	for (size_t i = 0; i < COUNT(system_dirs); i++) {
		const char *name = system_dirs[i];
		struct stat st;
		int r = os_fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW);

		if (r == -ENOENT)
			continue;
		if (r < 0)
			return err_sys(e, -r, "stat /%s", name);
		r = S_ISLNK(st.st_mode) ? copy_link(b, host, name, e) : show_dir(b, host, name, e);
		if (r < 0)
			return -1;
	}
	return 0;
}
