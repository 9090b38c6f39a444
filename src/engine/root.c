/*
 * root.c - the root file system of a sandbox.
 *
 * One tmpfs, the scratch, bounds everything that can be written: its size is the disk limit,
 * its inode count the inode limit, and its pages count against the memory limit of whoever
 * wrote them. The root of the host image is a folder of it; the root of a folder image is an
 * overlay whose upper lies in it. Nothing is left to clean up: it dies with the namespace.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/build.h"
#include "os/file.h"
#include "os/mount.h"

#define SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

int root_scratch(struct build *b, struct err *e)
{
	const uint64_t *limits = b->box->plan->limits;
	char size[32], inodes[32];

	snprintf(size, sizeof size, "%llu", (unsigned long long)limits[LIMIT_DISK]);
	snprintf(inodes, sizeof inodes, "%llu", (unsigned long long)limits[LIMIT_INODES]);
	AUTO(fd_close) int fs = os_fsopen("tmpfs");
	if (fs < 0)
		return err_sys(e, -fs, "open tmpfs");
	int r = os_fsconfig_text(fs, "mode", "0700");
	if (r >= 0 && limits[LIMIT_DISK])
		r = os_fsconfig_text(fs, "size", size);
	if (r >= 0 && limits[LIMIT_INODES])
		r = os_fsconfig_text(fs, "nr_inodes", inodes);
	if (r >= 0)
		r = os_fsconfig_create(fs);
	if (r < 0)
		return err_sys(e, -r, "configure tmpfs of %s bytes, %s inodes", size, inodes);
	b->scratch_fd = os_fsmount(fs, SAFE);
	if (b->scratch_fd < 0)
		return err_sys(e, -b->scratch_fd, "mount tmpfs");
	/* Folders of it can be cloned only while it is attached: over the host's root, which
	 * our own path lookups do not notice and the switch of the root removes. */
	r = os_move_mount(b->scratch_fd, AT_FDCWD, "/");
	return r < 0 ? err_sys(e, -r, "attach tmpfs") : 0;
}

/* The descriptors of the plan belong to the host's mount namespace; mounts are made from what
 * our own namespace shows at the same place. It has to be the same folder still. */
static int reopen(int fd, struct err *e)
{
	char link[32], path[PATH_TEXT_MAX];
	struct stat then, now;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	int r = os_readlinkat(AT_FDCWD, link, path, sizeof path);
	if (r < 0)
		return err_sys(e, -r, "name a source");
	AUTO(fd_close) int again = os_openat(AT_FDCWD, path, O_PATH, 0);
	if (again < 0)
		return err_sys(e, -again, "open %s", path);
	if (os_fstatat(fd, "", &then, AT_EMPTY_PATH) < 0 ||
	    os_fstatat(again, "", &now, AT_EMPTY_PATH) < 0 || then.st_dev != now.st_dev ||
	    then.st_ino != now.st_ino)
		return err_new(e, ERR_INVALID, "%s was replaced meanwhile", path);
	return fd_take(&again);
}

/* A tree that can be a lower layer or a mount: the launcher's mapped clone in root mode,
 * attached to a spare folder, else the folder itself. */
static int source_tree(struct build *b, int tree_fd, int plan_fd, struct err *e)
{
	if (tree_fd < 0)
		return reopen(plan_fd, e);
	AUTO(fd_close) int spare = place_scratch(b, 0700, b->uid, b->uid, e);
	if (spare < 0)
		return -1;
	int r = os_move_mount(tree_fd, spare, "");
	if (r < 0)
		return err_sys(e, -r, "attach a source");
	int fd = dup(tree_fd);
	return fd < 0 ? err_sys(e, errno, "dup") : fd;
}

int root_image(struct build *b, struct err *e)
{
	const struct plan *p = b->box->plan;
	AUTO(fd_close) int dir = place_scratch(b, 0755, b->uid, b->uid, e);

	if (dir < 0)
		return -1;
	if (p->image == IMAGE_DIR) {
		AUTO(fd_close) int lower = source_tree(b, b->box->image_tree_fd, p->image_fd, e);

		if (lower >= 0)
			b->root_fd = place_overlay(
				b, lower, dir, (struct place_owner){ b->uid, b->uid, 0755 }, e);
		return lower < 0 || b->root_fd < 0 ? err_wrap(e, "image") : 0;
	}
	b->root_fd = os_open_tree(dir, "", false);
	if (b->root_fd < 0)
		return err_sys(e, -b->root_fd, "clone the root");
	int r = os_move_mount(b->root_fd, dir, "");
	if (r < 0)
		return err_sys(e, -r, "attach the root");
	return hostimage_make(b, e);
}

/* Folders that every program may count on. Mode 0 in `owner` means the building user. */
struct folder {
	const char *path;
	mode_t mode;
	bool is_users; /* belongs to the command's user */
	bool is_fresh; /* empty, whatever the image has there */
};

/* clang-format off */
static const struct folder folders[] = {
	{ "tmp",        01777, false, true  },
	{ "run",        0755,  true,  true  },
	{ "home",       0755,  false, false },
	{ "home/agent", 0755,  true,  true  },
	{ "root",       0700,  false, false },
	{ "var",        0755,  false, false },
	{ "var/tmp",    01777, false, true  },
	{ "var/lib",    0755,  false, false },
	{ "var/cache",  0755,  false, false },
	{ "var/log",    0755,  false, false },
	{ "opt",        0755,  false, false },
};
/* clang-format on */

static int make_folder(struct build *b, const struct folder *f, struct err *e)
{
	const struct plan *p = b->box->plan;
	uid_t uid = f->is_users ? p->uid : b->uid;
	gid_t gid = f->is_users ? p->gid : b->uid;
	int r = os_mkdirat(b->root_fd, f->path, f->mode);

	if (r == 0) {
		if (!f->is_users)
			return 0;
		r = os_fchownat(b->root_fd, f->path, uid, gid);
		return r < 0 ? err_sys(e, -r, "own /%s", f->path) : 0;
	}
	if (!f->is_fresh)
		return r == -EEXIST ? 0 : err_sys(e, -r, "make /%s", f->path);
	AUTO(fd_close) int target = place_dir(b, f->path, f->mode, e);
	AUTO(fd_close) int dir = target < 0 ? -1 : place_scratch(b, f->mode, uid, gid, e);
	return dir < 0 ? -1 : place_clone(dir, "", target, 0, e);
}

int root_folders(struct build *b, struct err *e)
{
	for (size_t i = 0; i < COUNT(folders); i++)
		if (make_folder(b, &folders[i], e) < 0)
			return -1;
	return 0;
}

static int mount_ephemeral(struct build *b, const char *at, struct err *e)
{
	const struct plan *p = b->box->plan;
	bool is_new = false;
	AUTO(fd_close) int target = place_target(b, at, true, &is_new, e);

	if (target < 0)
		return -1;
	if (is_new) {
		int r = os_fchownat(target, "", p->uid, p->gid);

		return r < 0 ? err_sys(e, -r, "own %s", at) : 0;
	}
	AUTO(fd_close) int dir = place_scratch(b, 0755, p->uid, p->gid, e);
	return dir < 0 ? -1 : place_clone(dir, "", target, 0, e);
}

static int mount_source(struct build *b, size_t i, const char *at, struct err *e)
{
	const struct plan *p = b->box->plan;
	const struct plan_mount *m = &p->mounts[i];
	AUTO(fd_close) int source = source_tree(b, b->box->mount_tree_fds[i], m->source_fd, e);
	AUTO(fd_close) int target = source < 0 ? -1 : place_target(b, at, m->is_dir, NULL, e);

	if (target < 0)
		return -1;
	if (m->kind == PLAN_RO)
		return place_clone(source, "", target, SAFE | MOUNT_ATTR_RDONLY, e);
	AUTO(fd_close) int tree =
		place_overlay(b, source, target, (struct place_owner){ p->uid, p->gid, 0755 }, e);
	return tree < 0 ? -1 : 0;
}

int root_mounts(struct build *b, struct err *e)
{
	const struct plan *p = b->box->plan;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const char *at = plan_text(p, p->mounts[i].at);
		int r = p->mounts[i].kind == PLAN_EPHEMERAL ? mount_ephemeral(b, at, e)
							    : mount_source(b, i, at, e);
		if (r < 0)
			return err_wrap(e, "fs at %s", at);
	}
	return 0;
}

/* Two mounts lie on the new root afterwards: the host's, and on that one the scratch, which was
 * attached there. Both go; the proof looks whether they did. */
int root_pivot(struct build *b, struct err *e)
{
	int r = os_fchdir(b->root_fd);

	if (r >= 0)
		r = os_pivot_root_here();
	for (int i = 0; i < 2 && r >= 0; i++)
		r = os_detach_here();
	if (r >= 0)
		r = os_chdir("/");
	if (r < 0)
		return err_sys(e, -r, "switch the root");
	return 0;
}
