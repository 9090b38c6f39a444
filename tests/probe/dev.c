/*
 * dev.c - DEV: device nodes and terminals.
 */
#include "probe.h"

#include <fcntl.h>
#include <fts.h>
#include <linux/kd.h>
#include <linux/vt.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	mode_t type;
	unsigned int major, minor;
} nodes[] = {
	{ "mem", S_IFCHR, 1, 1 },    { "kmsg", S_IFCHR, 1, 11 },  { "sda", S_IFBLK, 8, 0 },
	{ "kvm", S_IFCHR, 10, 232 }, { "tun", S_IFCHR, 10, 200 }, { "loop0", S_IFBLK, 7, 0 },
};

/* Arguments: a folder to make nodes in, then nodes that somebody else made. */
static int dev_01(void)
{
	char op[64], path[512];

	for (size_t i = 0; i < COUNT(nodes); i++) {
		snprintf(op, sizeof op, "mknod-%s", nodes[i].name);
		snprintf(path, sizeof path, "%s/%s", arg(0) ? arg(0) : "/tmp", nodes[i].name);
		attempt(op,
		        mknod(path, nodes[i].type | 0666, makedev(nodes[i].major, nodes[i].minor)),
		        NULL);
		(void)unlink(path);
	}
	for (int i = 1; arg(i); i++) {
		snprintf(op, sizeof op, "ready-made-%d", i);
		attempt(op, open(arg(i), O_RDONLY | O_NONBLOCK | O_CLOEXEC), NULL);
	}
	return 0;
}

/* A verb: everything below /dev, one line each, for the golden listing. */
static int devices(void)
{
	char *roots[] = { (char *)(uintptr_t) "/dev", NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

	for (FTSENT *e; fts && (e = fts_read(fts));) {
		char to[256] = "";

		if (e->fts_level == 0 || e->fts_info == FTS_DP || e->fts_info == FTS_DC)
			continue;
		mode_t mode = e->fts_statp->st_mode;

		if (S_ISLNK(mode))
			printf("%s -> %.*s\n", e->fts_path,
			       (int)readlink(e->fts_path, to, sizeof to), to);
		else if (S_ISDIR(mode))
			printf("%s/\n", e->fts_path);
		else
			printf("%s %s %u:%u %03o\n", e->fts_path, S_ISCHR(mode) ? "char" : "other",
			       major(e->fts_statp->st_rdev), minor(e->fts_statp->st_rdev),
			       mode & 07777u);
	}
	if (fts)
		fts_close(fts);
	return 0;
}

static int dev_03(void)
{
	static const char *const paths[] = {
		"/dev/kvm",         "/dev/fuse",        "/dev/net/tun",      "/dev/mem",
		"/dev/port",        "/dev/loop0",       "/dev/loop-control", "/dev/vhost-net",
		"/dev/vhost-vsock", "/dev/nvidia0",     "/dev/dri/card0",    "/dev/vfio/vfio",
		"/dev/sda",         "/dev/vda",         "/dev/console",      "/dev/tty0",
		"/dev/kmsg",        "/dev/userfaultfd", "/dev/uinput",
	};

	for (size_t i = 0; i < COUNT(paths); i++)
		attempt(paths[i], open(paths[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
		        NULL);
	return 0;
}

static long try_sti(void)
{
	return ioctl(0, TIOCSTI, "x");
}

/* The kernel looks at the low 32 bits of the request only; so must a filter. */
static long try_sti_high_bits(void)
{
	return syscall(SYS_ioctl, 0, 0x100000000ul | TIOCSTI, "x");
}

static long try_linux(void)
{
	return ioctl(0, TIOCLINUX, "\6"); /* asks for the shift state */
}

static long try_setd(void)
{
	return ioctl(0, TIOCSETD, &(int){ 0 });
}

static long try_cons(void)
{
	return ioctl(0, TIOCCONS, 0);
}

static long try_kd(void)
{
	return ioctl(0, KDGKBMODE, &(int){ 0 });
}

static long try_vt(void)
{
	struct vt_stat s;

	return ioctl(0, VT_GETSTATE, &s);
}

static long try_steal(void)
{
	setsid();
	return ioctl(0, TIOCSCTTY, 1);
}

/* Runs with a pty of its own as stdin. */
static int dev_05(void)
{
	static const struct try tries[] = {
		{ "tiocsti", try_sti, { 0 } },
		{ "tiocsti-high-bits", try_sti_high_bits, { 0 } },
		{ "tioclinux", try_linux, { 0 } },
		{ "tiocsetd", try_setd, { 0 } },
		{ "tioccons", try_cons, { EBUSY } },
		{ "kdgkbmode", try_kd, { 0 } },
		{ "vt-getstate", try_vt, { 0 } },
		{ "steal-tty", try_steal, { 0 } },
	};

	if (!isatty(0))
		return -1;
	return attempt_all(tries, COUNT(tries));
}

/* Arguments: MiB to write into /dev/shm. */
static int dev_07(void)
{
	struct statvfs v;
	long mib = arg_number(0, 8);
	int fd = open("/dev/shm/caisson-fill", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (statvfs("/dev/shm", &v) < 0 || fd < 0)
		return -1;
	report("nosuid", 0, !(v.f_flag & ST_NOSUID), "flags %#lx", v.f_flag);
	report("nodev", 0, !(v.f_flag & ST_NODEV), "flags %#lx", v.f_flag);
	long done = fill_file(fd, mib);
	int err = errno;

	(void)unlink("/dev/shm/caisson-fill");
	close(fd);
	report("fill", done < mib ? err : 0, done == mib, "%ld of %ld MiB", done, mib);
	attempt("mqueue", access("/dev/mqueue", F_OK), NULL);
	return 0;
}

static int dev_08(void)
{
	attempt("kmsg", open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), NULL);
	attempt("proc-kmsg", open("/proc/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), NULL);
	attempt("dev-log", access("/dev/log", F_OK), NULL);
	attempt("syslog-size", klogctl(10, NULL, 0), NULL);
	attempt("syslog-clear", syscall(SYS_syslog, 12345, NULL, 0), (const int[]){ EINVAL, 0 });
	return 0;
}

const struct row dev_rows[] = {
	{ "DEV-01", dev_01 },
	{ "DEV-03", dev_03 },
	{ "DEV-05", dev_05 },
	{ "DEV-07", dev_07 },
	{ "DEV-08", dev_08 },
	{ "devices", devices },
	{ 0 },
};
