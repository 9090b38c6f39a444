#include "engine/build.h"

#include <fcntl.h>
#include <linux/openat2.h>

#include "base/fd.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/mount.h"

int place_dir(struct build *b, const char *path, mode_t mode, struct err *e)
{
	const uint64_t resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
	int fd = os_openat2(b->root_fd, path, O_PATH | O_DIRECTORY, 0, resolve);

	if (fd == -ENOENT) {
		int r = os_mkdirat(b->root_fd, path, mode);

		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make /%s", path);
		fd = os_openat2(b->root_fd, path, O_PATH | O_DIRECTORY, 0, resolve);
	}
	if (fd == -ELOOP)
		return err_new(e, ERR_INVALID, "image: /%s is a symbolic link", path);
	if (fd == -ENOTDIR)
		return err_new(e, ERR_INVALID, "image: /%s is not a folder", path);
	return fd < 0 ? err_sys(e, -fd, "open /%s", path) : fd;
}

static int open_inside(struct build *b, const char *path, int flags)
{
	return os_openat2(b->root_fd, path, flags, 0644, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* mkdir -p of everything above the last name. Returns the parent. */
static int open_parent(struct build *b, char *path, char **name, struct err *e)
{
	*name = strrchr(path, '/') + 1;
	AUTO(fd_close) int dir = open_inside(b, "/", O_PATH | O_DIRECTORY);

	for (char *part = path + 1; dir >= 0 && part < *name;) {
		char *slash = strchr(part, '/');

		*slash = '\0';
		int r = os_mkdirat(dir, part, 0755);
		fd_close(&dir);
		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make %s", path);
		dir = open_inside(b, path, O_PATH | O_DIRECTORY);
		*slash = '/';
		part = slash + 1;
	}
	return dir < 0 ? err_sys(e, -dir, "open the parent of %s", path) : fd_take(&dir);
}

int place_target(struct build *b, const char *path, bool is_dir, struct err *e)
{
	char copy[PATH_TEXT_MAX];
	char *name;

	snprintf(copy, sizeof copy, "%s", path);
	AUTO(fd_close) int parent = open_parent(b, copy, &name, e);
	if (parent < 0)
		return -1;
	int r = is_dir ? os_mkdirat(parent, name, 0755) : os_make_file(parent, name, "", 0, 0644);
	if (r < 0 && r != -EEXIST)
		return err_sys(e, -r, "make %s", path);
	int fd = open_inside(b, path, O_PATH | (is_dir ? O_DIRECTORY : 0));
	return fd < 0 ? err_sys(e, -fd, "open %s", path) : fd;
}

int place_scratch(struct build *b, mode_t mode, uid_t uid, gid_t gid, struct err *e)
{
	char name[16];

	snprintf(name, sizeof name, "s%u", b->n_dirs++);
	int r = os_mkdirat(b->scratch_fd, name, mode);
	if (r >= 0)
		r = os_fchownat(b->scratch_fd, name, uid, gid);
	if (r < 0)
		return err_sys(e, -r, "make a scratch folder");
	AUTO(fd_close) int fd = os_openat(b->scratch_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open a scratch folder");
	/* The umask is 0 while building, so mkdir gave exactly `mode`. */
	return fd_take(&fd);
}

/* All of them, but in a test build that leaves out a wall. */
static unsigned int attrs_now(uint64_t attrs)
{
	if (fault_layer_off("nodev"))
		attrs &= ~(uint64_t)MOUNT_ATTR_NODEV;
	if (fault_layer_off("readonly"))
		attrs &= ~(uint64_t)MOUNT_ATTR_RDONLY;
	return (unsigned int)attrs;
}

int place_restrict(int tree_fd, uint64_t attrs, bool recursive)
{
	return os_mount_setattr(tree_fd, attrs_now(attrs), recursive);
}

static int clone_there(int source_dirfd, const char *path, int target_fd, uint64_t attrs,
                       struct err *e)
{
	/* A folder with mounts of the host below it cannot be taken without them: they are
	 * locked together by the user namespace, mount_namespaces(7). */
	AUTO(fd_close) int tree = os_open_tree(source_dirfd, path, false);
	if (tree == -EINVAL)
		tree = os_open_tree(source_dirfd, path, true);
	if (tree < 0)
		return err_sys(e, -tree, "clone %s", path);
	/* Folders of ours have their attributes already; those of the host are cut off from it. */
	int r = attrs ? place_restrict(tree, attrs, true) : 0;
	if (r < 0)
		return err_sys(e, -r, "restrict %s", path);
	r = os_move_mount(tree, target_fd, "");
	return r < 0 ? err_sys(e, -r, "mount %s", path) : fd_take(&tree);
}

int place_clone(int source_dirfd, const char *path, int target_fd, uint64_t attrs, struct err *e)
{
	AUTO(fd_close) int tree = clone_there(source_dirfd, path, target_fd, attrs, e);

	return tree < 0 ? -1 : 0;
}

int place_fresh(struct build *b, int target_fd, mode_t mode, uid_t uid, gid_t gid, struct err *e)
{
	AUTO(fd_close) int dir = place_scratch(b, mode, uid, gid, e);

	return dir < 0 ? -1 : place_clone(dir, "", target_fd, 0, e);
}

static int overlay_option(int fs_fd, const char *key, int dir_fd)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", dir_fd);
	return os_fsconfig_text(fs_fd, key, path);
}

int place_overlay(struct build *b, int lower_fd, int target_fd, struct place_owner owner,
                  struct err *e)
{
	AUTO(fd_close) int upper = place_scratch(b, owner.mode, owner.uid, owner.gid, e);

	return upper < 0 ? -1 : place_layers(b, lower_fd, upper, target_fd, e);
}

static int attach_overlay(int fs_fd, unsigned int attrs, int target_fd, struct err *e)
{
	AUTO(fd_close) int tree = os_fsmount(fs_fd, attrs_now(attrs));
	if (tree < 0)
		return err_sys(e, -tree, "mount overlay");
	int r = os_move_mount(tree, target_fd, "");
	return r < 0 ? err_sys(e, -r, "attach overlay") : fd_take(&tree);
}

int place_layers(struct build *b, int lower_fd, int upper_fd, int target_fd, struct err *e)
{
	AUTO(fd_close) int work = place_scratch(b, 0700, b->uid, b->gid, e);
	if (work < 0)
		return -1;
	AUTO(fd_close) int fs = os_fsopen("overlay");
	if (fs < 0)
		return err_sys(e, -fs, "open overlay");
	int r = overlay_option(fs, "lowerdir", lower_fd);
	if (r >= 0)
		r = overlay_option(fs, "upperdir", upper_fd);
	if (r >= 0)
		r = overlay_option(fs, "workdir", work);
	if (r >= 0)
		r = os_fsconfig_flag(fs, "userxattr");
	if (r >= 0)
		r = os_fsconfig_create(fs);
	return r < 0 ? err_sys(e, -r, "configure overlay")
	             : attach_overlay(fs, PLACE_SAFE, target_fd, e);
}

/* Without an upper the kernel wants two lower layers. */
static int lay_read_only(struct build *b, int fs_fd, int lower_fd, bool keeps_inodes)
{
	char layers[64];

	snprintf(layers, sizeof layers, "/proc/self/fd/%d:/proc/self/fd/%d", lower_fd, b->empty_fd);
	int r = os_fsconfig_text(fs_fd, "lowerdir", layers);
	/* Else files and folders have one device number, at the price of other inode numbers. */
	if (r >= 0)
		r = os_fsconfig_text(fs_fd, "xino", keeps_inodes ? "off" : "auto");
	if (r >= 0)
		r = os_fsconfig_flag(fs_fd, "userxattr");
	return r < 0 ? r : os_fsconfig_create(fs_fd);
}

int place_show(struct build *b, int lower_fd, int target_fd, struct place_shown *how, struct err *e)
{
	if (b->empty_fd < 0)
		b->empty_fd = place_scratch(b, 0755, b->uid, b->gid, e);
	if (b->empty_fd < 0)
		return -1;
	AUTO(fd_close) int fs = os_fsopen("overlay");
	if (fs < 0)
		return err_sys(e, -fs, "open overlay");
	int r =
	    fault_layer_off("inodes") ? -EINVAL : lay_read_only(b, fs, lower_fd, how->keeps_inodes);
	how->is_own = r >= 0;
	if (r == -EINVAL)
		return clone_there(lower_fd, "", target_fd, PLACE_READ_ONLY, e);
	return r < 0 ? err_sys(e, -r, "configure overlay")
	             : attach_overlay(fs, PLACE_READ_ONLY, target_fd, e);
}
