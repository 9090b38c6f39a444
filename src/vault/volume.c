#include "vault/volume.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/loop.h"
#include "os/mount.h"
#include "os/node.h"
#include "os/proc.h"
#include "vault/blob.h"
#include "vault/names.h"
#include "vault/trees.h"

#define TRIES 64
#define LOCK_TRIES 10000 /* 20 s: a disk may be busy */
#define VOLUME_NAME_MAX 80

/* In the child: the vault's rights, the host's files. Only its standard descriptors stay. */
static _Noreturn void become_mke2fs(int folder_fd, const char *name, const char *inodes)
{
	static const char *const paths[] = { "/usr/sbin/mke2fs", "/sbin/mke2fs" };
	/* Its configuration has no say in what counts. */
	static const char features[] =
	    "none,has_journal,ext_attr,dir_index,filetype,extent,flex_bg,sparse_super,"
	    "large_file,huge_file,dir_nlink,extra_isize,metadata_csum,64bit";
	const char *const argv[] = { "mke2fs",
		                     "-q",
		                     "-F",
		                     "-t",
		                     "ext4",
		                     "-b",
		                     "4096",
		                     "-I",
		                     "256",
		                     "-m",
		                     "0",
		                     "-N",
		                     inodes,
		                     "-O",
		                     features,
		                     "-E",
		                     "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
		                     name,
		                     NULL };
	char *const env[] = { NULL };
	int r = os_fchdir(folder_fd);

	if (r >= 0)
		r = os_close_range(3, ~0u, 0);
	for (size_t i = 0; i < COUNT(paths) && r >= 0; i++)
		(void)os_execveat(AT_FDCWD, paths[i], (char *const *)(uintptr_t)argv, env, 0);
	_exit(127);
}

static int format(int folder_fd, const char *name, uint64_t inodes, struct err *e)
{
	char text[32];
	int status = 0;

	snprintf(text, sizeof text, "%llu", (unsigned long long)inodes);
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid < 0)
		return err_sys(e, -pid, "clone");
	if (pid == 0)
		become_mke2fs(folder_fd, name, text);
	int r = os_wait(pid, &status, NULL);
	if (r < 0)
		return err_sys(e, -r, "wait for mke2fs");
	if (status != 0)
		return err_new(e, ERR_INTERNAL, "mke2fs failed with %d; is e2fsprogs installed?",
		               WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}

static int make_sized(int folder_fd, const char *name, uint64_t bytes, struct err *e)
{
	AUTO(fd_close)
	int fd = os_openat(folder_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_ftruncate(fd, (off_t)bytes);

	return r < 0 ? err_sys(e, -r, "make a volume") : 0;
}

/* One for each size; whoever needs it first makes it, and it appears whole. */
static int open_template(int folder_fd, const struct vault_open *o, struct err *e)
{
	char name[VOLUME_NAME_MAX], temp[VOLUME_NAME_MAX + 32];

	snprintf(name, sizeof name, "template-%llu-%llu", (unsigned long long)o->bytes,
	         (unsigned long long)o->inodes);
	int fd = os_openat(folder_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd != -ENOENT)
		return fd < 0 ? err_sys(e, -fd, "open the template of volumes") : fd;
	snprintf(temp, sizeof temp, "tmp-%llu", (unsigned long long)o->workspace);
	if (make_sized(folder_fd, temp, o->bytes, e) < 0 ||
	    format(folder_fd, temp, o->inodes, e) < 0)
		return -1;
	int r = os_renameat2((struct os_names){ folder_fd, temp, folder_fd, name }, 0);
	fd = r < 0 ? r : os_openat(folder_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	return fd < 0 ? err_sys(e, -fd, "name the template of volumes") : fd;
}

static int make_image(int folder_fd, const struct vault_open *o, const char *name, struct err *e)
{
	char temp[VOLUME_NAME_MAX];
	AUTO(fd_close) int template = open_template(folder_fd, o, e);

	if (template <0)
		return -1;
	snprintf(temp, sizeof temp, "tmp-%s", name);
	AUTO(fd_close)
	int fd = os_openat(folder_fd, temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, -fd, "make a volume");
	if (blob_copy((struct blob_source){ .from = { template, 0 }, .size = o->bytes }, fd, e) < 0)
		return -1;
	int r = os_fsync(fd);
	if (r >= 0)
		r = os_renameat2((struct os_names){ folder_fd, temp, folder_fd, name }, 0);
	return r < 0 ? err_sys(e, -r, "name a volume") : 0;
}

static int open_image(int folder_fd, const struct vault_open *o, struct err *e)
{
	char name[TREE_NAME_MAX];

	trees_name(o->workspace, name);
	int fd = os_openat(folder_fd, name, O_RDWR | O_NOFOLLOW, 0);
	if (fd == -ENOENT) {
		if (make_image(folder_fd, o, name, e) < 0)
			return -1;
		fd = os_openat(folder_fd, name, O_RDWR | O_NOFOLLOW, 0);
	}
	return fd < 0 ? err_sys(e, -fd, "open the volume") : fd;
}

/* ---- as a device ------------------------------------------------------------------- */

static int open_loop(int dev_fd, const char *name)
{
	return os_openat(dev_fd, name, O_RDWR | O_NOFOLLOW, 0);
}

/* The device that has this file already: its descriptor, -ENOENT when there is none. */
static int find_loop(int dev_fd, const struct stat *image, char name[32], struct err *e)
{
	AUTO(names_done) struct names names = { 0 };

	if (names_read(dev_fd, &names, e) < 0)
		return -EIO;
	for (size_t i = 0; i < names.list.len; i++) {
		const char *text = names.list.at[i].text;
		dev_t dev;
		ino_t ino;

		if (strncmp(text, "loop", 4) != 0 || names.list.at[i].type != DT_BLK ||
		    strlen(text) >= 32)
			continue;
		AUTO(fd_close) int fd = open_loop(dev_fd, text);
		if (fd < 0 || os_loop_file(fd, &dev, &ino) < 0 || dev != image->st_dev ||
		    ino != image->st_ino)
			continue;
		snprintf(name, 32, "%s", text);
		return fd_take(&fd);
	}
	return -ENOENT;
}

/* Somebody else may have asked for a free one at the same time. */
static int take_loop(int dev_fd, int image_fd, char name[32], struct err *e)
{
	AUTO(fd_close) int control = os_openat(dev_fd, "loop-control", O_RDWR, 0);
	int r = control < 0 ? control : -EBUSY;

	for (int i = 0; i < TRIES && r == -EBUSY; i++) {
		int number = os_loop_free(control);

		if (number < 0)
			return err_sys(e, -number, "find a loop device");
		snprintf(name, 32, "loop%d", number);
		AUTO(fd_close) int fd = open_loop(dev_fd, name);
		r = fd < 0 ? fd : os_loop_attach(fd, image_fd);
		if (r >= 0)
			return fd_take(&fd);
	}
	return err_sys(e, -r, "take a loop device");
}

static int mount_device(const char *name, struct err *e)
{
	char path[64];
	AUTO(fd_close) int fs = os_fsopen("ext4");

	snprintf(path, sizeof path, "/dev/%s", name);
	int r = fs < 0 ? fs : os_fsconfig_text(fs, "source", path);
	/* Else a thread of the kernel would fill the sparse file with empty tables. */
	if (r >= 0)
		r = os_fsconfig_flag(fs, "noinit_itable");
	if (r >= 0)
		r = os_fsconfig_flag(fs, "discard");
	if (r >= 0)
		r = os_fsconfig_create(fs);
	int fd =
	    r < 0 ? r : os_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
	return fd < 0 ? err_sys(e, -fd, "mount the volume") : fd;
}

/* For as long as this vault lives; a second one would have to share the device. The one before may
 * have answered, and be about to end: its last unmount takes a while. */
static int lock_image(int image)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int r = os_lock_byte(image, 0);

	for (int i = 0; i < LOCK_TRIES && r == -EAGAIN; i++) {
		nanosleep(&pause, NULL);
		r = os_lock_byte(image, 0);
	}
	return r;
}

int volume_mount(struct vault *v, const struct vault_open *o, struct err *e)
{
	char name[32];
	struct stat st;
	AUTO(fd_close) int image = open_image(VAULT_VOLUMES_FD, o, e);

	if (image < 0)
		return -1;
	int r = lock_image(image);
	if (r < 0)
		return err_sys(e, r == -EAGAIN ? EBUSY : -r, "lock the volume");
	r = os_fstatat(image, "", &st, AT_EMPTY_PATH);
	AUTO(fd_close) int dev = r < 0 ? r : os_openat(AT_FDCWD, "/dev", O_RDONLY | O_DIRECTORY, 0);
	if (dev < 0)
		return err_sys(e, -dev, "open /dev");
	AUTO(fd_close) int loop = find_loop(dev, &st, name, e);
	if (loop == -ENOENT)
		loop = take_loop(dev, image, name, e);
	if (loop < 0)
		return -1;
	int fd = mount_device(name, e);
	if (fd >= 0)
		v->image_fd = fd_take(&image);
	return fd;
}

int volume_remove(const struct vault *v, uint64_t workspace, struct err *e)
{
	char name[TREE_NAME_MAX];

	trees_name(workspace, name);
	int r = os_unlinkat(v->volumes_fd, name);
	return r < 0 && r != -ENOENT ? err_sys(e, -r, "remove volume %s", name) : 0;
}
