/*
 * proof_tree.c - the part of the launch proof that pid 1 makes: the file system that it has built.
 *
 * In pid 1, in the new root, before anything else runs in it; with the rights of root inside, which
 * the way to a mount point may need.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "engine/build.h"
#include "engine/proof-internal.h"
#include "engine/skeleton.h"
#include "os/fault.h"
#include "os/file.h"

#define SAFE (ST_NODEV | ST_NOSUID)

static int look_at_root(const struct build *b, struct err *e)
{
	return proof_root(&b->box->host, e);
}

/* `*e` has which of the flags are missing at `path`. What the image does not have is no hole. */
static int look_at_mount(const char *path, long flags, struct err *e)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "look at %s", path);
	if ((fs.f_flags & flags) != flags)
		return err_new(e, ERR_INTERNAL, "%s is %s", path,
		               flags & ST_RDONLY ? "writable" : "mounted with devices or set-ids");
	return 0;
}

/* Every mount of the host's, and of the caller's. */
static int look_at_mounts(const struct build *b, bool is_of_writing, struct err *e)
{
	const struct plan *p = b->box->plan;
	const long flags = is_of_writing ? ST_RDONLY : SAFE;

	if ((!is_of_writing || b->box->is_plain) && look_at_mount("/", flags, e) < 0)
		return -1;
	for (size_t i = 0; i < skeleton_n_system_dirs && p->image == IMAGE_HOST; i++) {
		const char *name = skeleton_system_dirs[i];
		char path[64];

		if (is_of_writing && p->rootful)
			break; /* /usr is an overlay of the sandbox's own, and the others may lead
			          there */
		snprintf(path, sizeof path, "/%s", name);
		if (look_at_mount(path, flags, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < p->n_mounts; i++) {
		if (is_of_writing && !plan_is_read_only(&p->mounts[i]))
			continue;
		if (look_at_mount(plan_text(p, p->mounts[i].at), flags, e) < 0)
			return -1;
	}
	return 0;
}

static int look_at_writing(const struct build *b, struct err *e)
{
	return look_at_mounts(b, true, e);
}

static int look_at_devices(const struct build *b, struct err *e)
{
	return look_at_mounts(b, false, e);
}

/* One tmpfs, of which /tmp is a part. The kernel rounds its size up to pages. */
static int look_at_disk(const struct build *b, struct err *e)
{
	const uint64_t *limits = b->box->plan->limits;
	struct statfs fs;
	struct stat scratch, tmp;

	if (fstatfs(b->scratch_fd, &fs) < 0 || fstat(b->scratch_fd, &scratch) < 0 ||
	    stat("/tmp", &tmp) < 0)
		return err_sys(e, errno, "look at the scratch space");
	const uint64_t page = (uint64_t)fs.f_bsize, size = (uint64_t)fs.f_blocks * page;
	if (fs.f_type != TMPFS_MAGIC || scratch.st_dev != tmp.st_dev)
		return err_new(e, ERR_INTERNAL, "/tmp is not in the scratch space");
	if (limits[LIMIT_DISK] && (size == 0 || size >= limits[LIMIT_DISK] + page))
		return err_new(e, ERR_INTERNAL, "the scratch space is not bounded");
	if (limits[LIMIT_INODES] && (fs.f_files == 0 || fs.f_files > limits[LIMIT_INODES]))
		return err_new(e, ERR_INTERNAL, "its number of files is not bounded");
	return 0;
}

static int look_at_proc(const struct build *b, struct err *e)
{
	struct statfs fs;

	(void)b;
	if (statfs("/proc", &fs) < 0)
		return err_sys(e, errno, "look at /proc");
	if (fs.f_type != PROC_SUPER_MAGIC || !(fs.f_flags & ST_RDONLY))
		return err_new(e, ERR_INTERNAL, "/proc can be written to");
	return 0;
}

static int look_at_masks(const struct build *b, struct err *e)
{
	(void)b;
	return procfs_masks_hold(e);
}

static int look_at_nesting(const struct build *b, struct err *e)
{
	(void)b;
	for (size_t i = 0; i < NESTING_KINDS; i++) {
		char path[64], text[32];

		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", nesting_kinds[i]);
		int r = os_read_file(AT_FDCWD, path, text, sizeof text);
		if (r < 0)
			return err_sys(e, -r, "read %s", path);
		if (strcmp(text, "0\n") != 0)
			return err_new(e, ERR_INTERNAL, "a namespace of kind %s can be made",
			               nesting_kinds[i]);
	}
	return 0;
}

/* clang-format off */
static const struct {
	enum wall wall;
	int (*look)(const struct build *b, struct err *e);
} checks[] = {
	{ WALL_ROOT,           look_at_root },
	{ WALL_READ_ONLY,      look_at_writing },
	{ WALL_NODEV,          look_at_devices },
	{ WALL_DISK,           look_at_disk },
	{ WALL_PROC_READ_ONLY, look_at_proc },
	{ WALL_MASKS,          look_at_masks },
	{ WALL_NESTED,         look_at_nesting },
};
/* clang-format on */

int proof_tree(const struct build *b, uint32_t *proved, struct err *e)
{
	if (fault_layer_off("proof"))
		return 0;
	for (size_t i = 0; i < COUNT(checks); i++) {
		if (checks[i].look(b, e) < 0)
			return err_wrap(e, "%s", wall_name(checks[i].wall));
		*proved |= WALL_BIT(checks[i].wall);
	}
	return 0;
}
