/*
 * procfs.c - /proc and the small part of /sys that programs ask for.
 *
 * /proc is new, read-only, and shows a process only its own user's processes. What tells of
 * the host is covered by /dev/null or an empty folder. /sys is not mounted: the skeleton has the
 * few files that name the processors.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "engine/build.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/mount.h"

/* Not here: /proc/stat, vmstat, loadavg, uptime, meminfo, cpuinfo, version. Programs that are used
 * inside read them (top, free, vmstat, make, runtimes of languages) and fail without. */
static const char *const masked_files[] = {
	"cmdline",  "config.gz",   "diskstats",  "interrupts",  "kallsyms",      "kcore",
	"keys",     "key-users",   "locks",      "modules",     "latency_stats", "partitions",
	"softirqs", "sched_debug", "timer_list", "timer_stats",
};

static const char *const masked_dirs[] = {
	"acpi", "asound", "bus", "fs", "pressure", "scsi",
};

static const char boot_id[] = "sys/kernel/random/boot_id";

static int mask_files(struct build *b, int proc_fd, struct err *e)
{
	for (size_t i = 0; i < COUNT(masked_files); i++) {
		AUTO(fd_close) int target = os_openat(proc_fd, masked_files[i], O_PATH, 0);

		if (target == -ENOENT)
			continue;
		if (target < 0)
			return err_sys(e, -target, "open /proc/%s", masked_files[i]);
		if (place_clone(b->nodes_fd, "null", target, 0, e) < 0)
			return err_wrap(e, "mask /proc/%s", masked_files[i]);
	}
	return 0;
}

/* One of its own for each life of a sandbox: the host's would tell which of them share it. */
static int mask_boot_id(struct build *b, int proc_fd, struct err *e)
{
	AUTO(fd_close) int target = os_openat(proc_fd, boot_id, O_PATH, 0);
	unsigned char r[16];
	char text[40];

	if (target < 0)
		return target == -ENOENT ? 0 : err_sys(e, -target, "open boot_id");
	int got = os_random(r, sizeof r);
	if (got < 0)
		return err_sys(e, -got, "make a boot_id");
	int n = snprintf(text, sizeof text,
	                 "%02x%02x%02x%02x-%02x%02x-4%01x%02x-8%01x%02x-%02x%02x%02x%02x%02x%02x\n",
	                 r[0], r[1], r[2], r[3], r[4], r[5], r[6] & 15u, r[7], r[8] & 15u, r[9],
	                 r[10], r[11], r[12], r[13], r[14], r[15]);
	int made = os_make_file(b->scratch_fd, "boot_id", text, (size_t)n, 0444);
	if (made < 0)
		return err_sys(e, -made, "write boot_id");
	return place_clone(b->scratch_fd, "boot_id", target, PLACE_READ_ONLY, e);
}

static int mask_dirs(struct build *b, int proc_fd, struct err *e)
{
	for (size_t i = 0; i < COUNT(masked_dirs); i++) {
		AUTO(fd_close) int target = os_openat(proc_fd, masked_dirs[i], O_PATH, 0);

		if (target == -ENOENT)
			continue;
		if (target < 0)
			return err_sys(e, -target, "open /proc/%s", masked_dirs[i]);
		if (place_clone(b->skeleton_fd, "empty", target,
		                PLACE_READ_ONLY | MOUNT_ATTR_NOEXEC, e) < 0)
			return err_wrap(e, "mask /proc/%s", masked_dirs[i]);
	}
	return 0;
}

int procfs_make(struct build *b, struct err *e)
{
	unsigned int attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	AUTO(fd_close) int target = place_dir(b, "proc", 0555, e);
	if (target < 0)
		return -1;
	AUTO(fd_close) int fs = os_fsopen("proc");
	if (fs < 0)
		return err_sys(e, -fs, "open proc");
	/* Not "invisible": that shows all to group 0 of the host, which a caller may belong to. */
	int r = fault_layer_off("hidepid") ? 0 : os_fsconfig_text(fs, "hidepid", "ptraceable");
	if (r >= 0)
		r = os_fsconfig_create(fs);
	if (r < 0)
		return err_sys(e, -r, "configure proc");
	if (!fault_layer_off("procro"))
		attrs |= MOUNT_ATTR_RDONLY;
	AUTO(fd_close) int proc = os_fsmount(fs, attrs);
	if (proc == -EPERM)
		return err_new(e, ERR_INTERNAL,
		               "mount proc: Operation not permitted (this host covers parts of its "
		               "own /proc, so the kernel shows no new one)");
	if (proc < 0)
		return err_sys(e, -proc, "mount proc");
	r = os_move_mount(proc, target, "");
	if (r < 0)
		return err_sys(e, -r, "attach proc");
	if (fault_layer_off("masks"))
		return 0;
	if (mask_files(b, proc, e) < 0 || mask_boot_id(b, proc, e) < 0)
		return -1;
	return mask_dirs(b, proc, e);
}

/* A file is the null device, a folder and boot_id are not of this file system; or it is not there.
 */
int procfs_masks_hold(struct err *e)
{
	char path[64];

	for (size_t i = 0; i < COUNT(masked_files); i++) {
		struct stat st;

		snprintf(path, sizeof path, "/proc/%s", masked_files[i]);
		if (stat(path, &st) == 0 && (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)))
			return err_new(e, ERR_INTERNAL, "%s is not covered", path);
	}
	for (size_t i = 0; i <= COUNT(masked_dirs); i++) {
		struct statfs fs;

		snprintf(path, sizeof path, "/proc/%s",
		         i < COUNT(masked_dirs) ? masked_dirs[i] : boot_id);
		if (statfs(path, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
			return err_new(e, ERR_INTERNAL, "%s is not covered", path);
	}
	return 0;
}

int sysfs_make(struct build *b, struct err *e)
{
	AUTO(fd_close) int target = place_dir(b, "sys", 0755, e);

	return target < 0 ? -1 : place_clone(b->skeleton_fd, "sys", target, PLACE_READ_ONLY, e);
}
