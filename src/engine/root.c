/*
 * root.c - the root file system of a sandbox.
 *
 * One tmpfs, the scratch, bounds everything that can be written: its size is the disk limit,
 * its inode count the inode limit, and its pages count against the memory limit of whoever
 * wrote them. The root is an overlay of the image (the skeleton for image `host`) below and a
 * folder of the scratch above, or the image alone where nobody could tell the difference. Nothing
 * is left to clean up: it dies with the namespace. With `checkpoint: all` the root is a mount of a
 * keeper's instead (docs/decisions/0032-the-root-is-kept.md), and the scratch bounds the rest.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/build.h"
#include "engine/skeleton.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/mount.h"

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
	if (r >= 0 && limits[LIMIT_DISK] && !fault_layer_off("disk"))
		r = os_fsconfig_text(fs, "size", size);
	if (r >= 0 && limits[LIMIT_INODES])
		r = os_fsconfig_text(fs, "nr_inodes", inodes);
	if (r >= 0)
		r = os_fsconfig_create(fs);
	if (r < 0)
		return err_sys(e, -r, "configure tmpfs of %s bytes, %s inodes", size, inodes);
	b->scratch_fd = os_fsmount(fs, PLACE_SAFE);
	if (b->scratch_fd < 0)
		return err_sys(e, -b->scratch_fd, "mount tmpfs");
	/* Folders of it can be cloned only while it is attached: on /sys, which nobody needs any
	 * more and which goes with the host's root. */
	r = os_move_mount(b->scratch_fd, AT_FDCWD, "/sys");
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
int root_source(struct build *b, int tree_fd, int plan_fd, struct err *e)
{
	if (tree_fd < 0)
		return reopen(plan_fd, e);
	AUTO(fd_close) int spare = place_scratch(b, 0700, b->uid, b->gid, e);
	if (spare < 0)
		return -1;
	int r = os_move_mount(tree_fd, spare, "");
	if (r < 0)
		return err_sys(e, -r, "attach a source");
	int fd = dup(tree_fd);
	return fd < 0 ? err_sys(e, errno, "dup") : fd;
}

/* All sandboxes have the same skeleton: each sees it by inodes of its own. */
int root_skeleton(struct build *b, struct err *e)
{
	struct place_shown how = { 0 };

	b->layer_fd = root_source(b, b->box->skeleton_tree_fd, b->box->skeleton_fd, e);
	AUTO(fd_close) int spare = b->layer_fd < 0 ? -1 : place_scratch(b, 0700, b->uid, b->gid, e);
	if (spare < 0)
		return -1;
	b->skeleton_fd = place_show(b, b->layer_fd, spare, &how, e);
	return b->skeleton_fd < 0 ? -1 : 0;
}

/* Where a mount finds a new folder of the scratch below it, whose names it makes itself. */
static bool is_in_fresh(const char *at)
{
	static const char *const fresh[] = { "run/", "tmp/" };

	for (size_t i = 0; i < COUNT(fresh); i++)
		if (strncmp(at, fresh[i], strlen(fresh[i])) == 0)
			return true;
	return false;
}

bool root_is_plain(const struct plan *p, int skeleton_fd)
{
	struct stat st;

	if (p->image != IMAGE_HOST || p->rootful)
		return false;
	for (size_t i = 0; i < p->n_mounts; i++) {
		const char *at = plan_text(p, p->mounts[i].at) + 1;

		if (is_in_fresh(at))
			continue;
		int r = os_fstatat(skeleton_fd, at, &st, AT_SYMLINK_NOFOLLOW);
		/* Any other trouble: the mount that needs the name will meet it again. */
		if (r == -ENOENT || r == -ENOTDIR ||
		    (r >= 0 && S_ISDIR(st.st_mode) != p->mounts[i].is_dir))
			return false;
	}
	return true;
}

static int plain_root(struct build *b, int dir_fd, struct err *e)
{
	b->root_fd = os_open_tree(b->skeleton_fd, "", false);
	if (b->root_fd < 0)
		return err_sys(e, -b->root_fd, "clone the image");
	int r = os_mount_setattr(b->root_fd, PLACE_READ_ONLY, false);
	if (r >= 0)
		r = os_move_mount(b->root_fd, dir_fd, "");
	return r < 0 ? err_sys(e, -r, "attach the image") : 0;
}

/* Before Linux 6.3 the ids of a tmpfs cannot be mapped. Where the run folder is one, the skeleton
 * belongs to nobody inside, and root inside could make nothing in its folders: so the upper has
 * them as well. */
static int host_image(struct build *b, int dir_fd, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int upper = place_scratch(b, 0755, b->uid, b->gid, e);

	if (upper < 0)
		return -1;
	int r = os_fstatat(b->layer_fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "stat the image");
	if (st.st_uid != b->uid && skeleton_make_dirs(upper, e) < 0)
		return -1;
	b->root_fd = place_layers(b, b->layer_fd, upper, dir_fd, e);
	return b->root_fd < 0 ? -1 : 0;
}

/* What is written to it stays with its keeper, and so do the names that mounts need. */
static int kept_root(struct build *b, int dir_fd, struct err *e)
{
	AUTO(fd_close) int root = dup(b->box->image_tree_fd);
	int r = root < 0 ? -errno : place_restrict(root, PLACE_SAFE, false);

	if (r >= 0)
		r = os_move_mount(root, dir_fd, "");
	if (r < 0)
		return err_sys(e, -r, "attach the root");
	b->root_fd = fd_take(&root);
	return 0;
}

int root_image(struct build *b, struct err *e)
{
	const struct plan *p = b->box->plan;
	AUTO(fd_close) int dir = place_scratch(b, 0755, b->uid, b->gid, e);

	if (dir < 0)
		return -1;
	if (b->box->is_plain)
		return plain_root(b, dir, e);
	if (p->image == IMAGE_HOST)
		return host_image(b, dir, e);
	if (p->image == IMAGE_ROOT)
		return kept_root(b, dir, e);
	AUTO(fd_close) int lower = root_source(b, b->box->image_tree_fd, p->image_fd, e);
	if (lower < 0)
		return -1;
	b->root_fd = place_overlay(b, lower, dir, (struct place_owner){ b->uid, b->gid, 0755 }, e);
	return b->root_fd < 0 ? -1 : 0;
}

/* Image `host`: the system folders of the machine, read-only. Ids of the host are not mapped
 * inside, so what only the host's root may read stays unreadable, also for root inside. In root
 * mode with `profile: rootful` /usr is an overlay with mapped ids instead, for installs. */
static int show_system_dir(struct build *b, int host_fd, const char *name, struct err *e)
{
	AUTO(fd_close) int target = place_dir(b, name, 0755, e);

	if (target < 0)
		return -1;
	if (b->box->image_tree_fd < 0 || strcmp(name, "usr") != 0)
		return show_host_dir(b, host_fd, name, target, e);
	AUTO(fd_close) int lower = root_source(b, b->box->image_tree_fd, -1, e);
	AUTO(fd_close)
	int tree = lower < 0 ? -1
	                     : place_overlay(b, lower, target,
	                                     (struct place_owner){ b->uid, b->gid, 0755 }, e);
	return tree < 0 ? -1 : 0;
}

int root_system(struct build *b, struct err *e)
{
	if (b->box->plan->image != IMAGE_HOST)
		return 0;
	AUTO(fd_close) int host = os_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	if (host < 0)
		return err_sys(e, -host, "open the host's root");
	for (size_t i = 0; i < skeleton_n_system_dirs; i++) {
		const char *name = skeleton_system_dirs[i];
		struct stat st;

		int r = os_fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW);
		if (r < 0 && r != -ENOENT)
			return err_sys(e, -r, "stat /%s", name);
		if (r < 0 || !S_ISDIR(st.st_mode))
			continue; /* the skeleton has the link */
		if (show_system_dir(b, host, name, e) < 0)
			return -1;
	}
	return 0;
}

/* Writable places that every program may count on: empty, whatever the image has there. */
struct folder {
	const char *path;
	mode_t mode;
	bool is_users; /* belongs to the command's user, else to the builder */
};

/* clang-format off */
static const struct folder folders[] = {
	{ "tmp",        01777, false },
	{ "run",        0755,  true  },
	{ "home/agent", 0755,  true  },
	{ "root",       0700,  false },
};
/* clang-format on */

/* What a folder image must have, or gets: as folders, not as links to somewhere. */
static const char *const parents[] = { "etc", "home", "var" };

int root_folders(struct build *b, struct err *e)
{
	const struct plan *p = b->box->plan;

	for (size_t i = 0; i < COUNT(parents) && p->image != IMAGE_HOST; i++) {
		AUTO(fd_close) int fd = place_dir(b, parents[i], 0755, e);

		if (fd < 0)
			return -1;
	}
	for (size_t i = 0; i < COUNT(folders); i++) {
		const struct folder *f = &folders[i];

		if (strcmp(f->path, "root") == 0 && p->uid != 0)
			continue;

		AUTO(fd_close) int target = place_dir(b, f->path, 0755, e);
		if (target < 0 || place_fresh(b, target, f->mode, f->is_users ? p->uid : b->uid,
		                              f->is_users ? p->gid : b->gid, e) < 0)
			return -1;
	}
	return 0;
}

/* The image has none, or a link to where the host has a program for it. */
static int make_resolver(struct build *b, struct err *e)
{
	AUTO(fd_close) int etc = place_dir(b, "etc", 0755, e);

	if (etc < 0)
		return -1;
	int r = os_unlinkat(etc, "resolv.conf");
	if (r >= 0 || r == -ENOENT)
		r = os_make_file(etc, "resolv.conf", "", 0, 0644);
	return r < 0 ? err_sys(e, -r, "make /etc/resolv.conf") : 0;
}

/* What the image says about this would be about another network. */
int root_resolver(struct build *b, struct err *e)
{
	struct stat st;

	if (!b->box->plan->has_net)
		return 0;
	int r = os_fstatat(b->root_fd, "etc/resolv.conf", &st, AT_SYMLINK_NOFOLLOW);
	if ((r < 0 || !S_ISREG(st.st_mode)) && make_resolver(b, e) < 0)
		return -1;
	AUTO(fd_close) int target = place_target(b, "/etc/resolv.conf", false, e);
	return target < 0 ? -1
	                  : place_clone(b->skeleton_fd, "resolv.conf", target, PLACE_READ_ONLY, e);
}

static int mount_ephemeral(struct build *b, const char *at, struct err *e)
{
	const struct plan *p = b->box->plan;
	AUTO(fd_close) int target = place_target(b, at, true, e);

	return target < 0 ? -1 : place_fresh(b, target, 0755, p->uid, p->gid, e);
}

static int mount_source(struct build *b, size_t i, const char *at, struct err *e)
{
	const struct plan *p = b->box->plan;
	const struct plan_mount *m = &p->mounts[i];
	int tree_fd = b->box->mount_tree_fds[i];
	AUTO(fd_close) int target = place_target(b, at, m->is_dir, e);

	if (target < 0)
		return -1;
	if (plan_is_shown(m))
		return show_mount(b, i, target, e);
	uint64_t attrs = plan_is_read_only(m) ? PLACE_READ_ONLY : PLACE_SAFE;
	if (m->kind != PLAN_OVERLAY && tree_fd >= 0) {
		int r = place_restrict(tree_fd, attrs, false);

		if (r >= 0)
			r = os_move_mount(tree_fd, target, "");
		return r < 0 ? err_sys(e, -r, "attach") : 0;
	}
	AUTO(fd_close) int source = root_source(b, tree_fd, m->source_fd, e);
	if (source < 0)
		return -1;
	if (m->kind != PLAN_OVERLAY)
		return place_clone(source, "", target, attrs, e);
	AUTO(fd_close)
	int tree =
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

/* The command's process is in this namespace already, with the same root: the kernel moves it
 * along, pivot_root(2). The proof looks whether it did. */
int root_pivot(struct build *b, struct err *e)
{
	int r = os_fchdir(b->root_fd);

	if (r >= 0 && !fault_layer_off("root"))
		r = os_pivot_root_here();
	return r < 0 ? err_sys(e, -r, "pivot") : 0;
}

int root_leave(struct build *b, struct err *e)
{
	int r = fault_layer_off("root") ? 0 : os_detach_here();

	(void)b;
	if (r >= 0)
		r = os_chdir("/");
	return r < 0 ? err_sys(e, -r, "detach") : 0;
}
