/*
 * den.c - a mount namespace whose root holds the vault's folders and nothing else.
 *
 * The overlay is made by names relative to it, by mount(2): layers by descriptor came with Linux
 * 6.13 and detached ones with 6.15, this works since 5.19 and shows no path of the host in
 * /proc/mounts of a sandbox.
 */
#include <sched.h>
#include <sys/prctl.h>

#include <linux/securebits.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"
#include "vault/vault-internal.h"

static const struct folder {
	int fd;
	const char *at;
	size_t offset; /* in struct vault */
} folders[] = {
	{ VAULT_TREES_FD, "t", offsetof(struct vault, trees_fd) },
	{ VAULT_BLOBS_FD, "b", offsetof(struct vault, blobs_fd) },
	{ VAULT_VOLUMES_FD, "v", offsetof(struct vault, volumes_fd) },
};

static const char *const places[] = { "t", "m", "b", "v", "x", "y", "w", "u", "l", "k" };

static int write_own_map(const char *file, unsigned int id)
{
	char line[64];

	snprintf(line, sizeof line, "%u %u 1\n", id, id);
	return os_write_file(AT_FDCWD, file, line);
}

/* Without rights: a user namespace in which we may mount. Ids stay what they are. */
static int leave_rootless(struct vault *v, struct err *e)
{
	int r = os_unshare(CLONE_NEWUSER | CLONE_NEWNS);

	if (r >= 0)
		r = os_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (r >= 0)
		r = write_own_map("/proc/self/gid_map", v->gid);
	if (r >= 0)
		r = write_own_map("/proc/self/uid_map", v->uid);
	return r < 0 ? err_sys(e, -r, "make a user namespace") : 0;
}

static int leave_host(struct vault *v, struct err *e)
{
	int r = os_unshare(CLONE_NEWNS);

	if (r == -EPERM)
		return leave_rootless(v, e);
	return r < 0 ? err_sys(e, -r, "make a mount namespace") : 0;
}

/* A descriptor that came from elsewhere is of a mount of elsewhere, which cannot be cloned here:
 * found again by its name, and it must be the same. */
static int clone_folder(int fd, struct err *e)
{
	char link[32], path[PATH_MAX];
	struct stat given, found;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	int r = os_readlinkat(AT_FDCWD, link, path, sizeof path);
	AUTO(fd_close) int tree = r < 0 ? r : os_open_tree(AT_FDCWD, path, false);
	if (tree < 0)
		return err_sys(e, -tree, "clone a folder of the store");
	r = os_fstatat(fd, "", &given, AT_EMPTY_PATH);
	if (r >= 0)
		r = os_fstatat(tree, "", &found, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "look at a folder of the store");
	if (given.st_dev != found.st_dev || given.st_ino != found.st_ino)
		return err_new(e, ERR_INTERNAL, "a folder of the store is not what its name says");
	return fd_take(&tree);
}

static int make_root(struct err *e)
{
	AUTO(fd_close) int fs = os_fsopen("tmpfs");
	int r = fs < 0 ? fs : os_fsconfig_text(fs, "mode", "0700");

	if (r >= 0)
		r = os_fsconfig_text(fs, "size", "64k");
	if (r >= 0)
		r = os_fsconfig_create(fs);
	AUTO(fd_close)
	int root = r < 0 ? r : os_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (root < 0)
		return err_sys(e, -root, "make a root");
	for (size_t i = 0; i < COUNT(places) && r >= 0; i++)
		r = os_mkdirat(root, places[i], 0700);
	if (r >= 0)
		r = os_move_mount(root, AT_FDCWD, "/");
	return r < 0 ? err_sys(e, -r, "mount a root") : fd_take(&root);
}

static int change_root(int root, const int *trees, struct err *e)
{
	int r = os_fchdir(root);

	for (size_t i = 0; i < COUNT(folders) && r >= 0; i++)
		r = os_move_mount(trees[i], root, folders[i].at);
	if (r >= 0)
		r = os_pivot_root_here();
	if (r >= 0)
		r = os_detach_here();
	if (r >= 0)
		r = os_chdir("/");
	return r < 0 ? err_sys(e, -r, "change the root") : 0;
}

static int open_folders(struct vault *v, struct err *e)
{
	for (size_t i = 0; i < COUNT(folders); i++) {
		int fd = os_openat(AT_FDCWD, folders[i].at, O_RDONLY | O_DIRECTORY, 0);

		if (fd < 0)
			return err_sys(e, -fd, "open a folder of the store");
		*(int *)(void *)((char *)v + folders[i].offset) = fd;
		(void)close(folders[i].fd);
	}
	return 0;
}

static int attach_volume(struct vault *v, int volume_fd, struct err *e)
{
	if (volume_fd < 0)
		return 0;
	int r = os_move_mount(volume_fd, AT_FDCWD, "x");

	if (r >= 0)
		r = os_openat(AT_FDCWD, "x", O_RDONLY | O_DIRECTORY, 0);
	if (r < 0)
		return err_sys(e, -r, "attach the volume");
	v->volume_fd = r;
	return 0;
}

int den_enter(struct vault *v, int volume_fd, struct err *e)
{
	int trees[COUNT(folders)];

	v->uid = getuid();
	v->gid = getgid();
	if (leave_host(v, e) < 0)
		return -1;
	int r = os_mount_private(AT_FDCWD, "/");
	if (r < 0)
		return err_sys(e, -r, "make mounts private");
	for (size_t i = 0; i < COUNT(folders); i++) {
		trees[i] = clone_folder(folders[i].fd, e);
		if (trees[i] < 0)
			return -1; /* the program ends */
	}
	AUTO(fd_close) int root = make_root(e);
	if (root < 0 || change_root(root, trees, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(folders); i++)
		fd_close(&trees[i]);
	/* Else a change of the id that makes files would change what may be done. */
	r = v->uid == 0 ? os_prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) : 0;
	if (r < 0)
		return err_sys(e, -r, "set securebits");
	return open_folders(v, e) < 0 ? -1 : attach_volume(v, volume_fd, e);
}

static int map_one(const char *from, const char *to, int userns_fd, struct err *e)
{
	AUTO(fd_close) int tree = os_open_tree(AT_FDCWD, from, false);
	int r = tree < 0 ? tree : os_mount_idmap(tree, userns_fd);

	if (r >= 0)
		r = os_move_mount(tree, AT_FDCWD, to);
	return r < 0 ? err_sys(e, -r, "map the ids of the trees") : 0;
}

int den_map_ids(const struct vault *v, int userns_fd, struct err *e)
{
	if (map_one("t", "m", userns_fd, e) < 0)
		return -1;
	return v->volume_fd < 0 ? 0 : map_one("x", "y", userns_fd, e);
}

uint32_t den_id(const struct vault *v, uint32_t inside)
{
	return v->open.flags & VAULT_ROOTLESS ? inside : v->open.id_base + inside;
}

int den_as(const struct vault *v, uint32_t uid, uint32_t gid, struct err *e)
{
	if (v->open.flags & VAULT_ROOTLESS)
		return 0;
	int r = os_set_fsids(den_id(v, uid), den_id(v, gid));
	return r < 0 ? err_sys(e, -r, "take an id of the workspace") : 0;
}

void den_as_self(const struct vault *v)
{
	if (!(v->open.flags & VAULT_ROOTLESS))
		(void)os_set_fsids(v->uid, v->gid);
}
