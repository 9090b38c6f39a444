/*
 * prc.c - PRC: what /proc and /sys give away and let be written.
 *
 * Files are opened for writing and closed again; the one write is of the value just read.
 */
#include "probe.h"

#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static long try_core_pattern(void)
{
	char value[256];
	long n = slurp("/proc/sys/kernel/core_pattern", value, sizeof value);
	int fd = n < 0 ? -1 : open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : write(fd, value, (size_t)n);
}

static int prc_01(void)
{
	static const struct try write_same = { "core_pattern", try_core_pattern, { 0 } };
	struct rlimit core;
	int status = 0;

	attempt_forked(&write_same);
	getrlimit(RLIMIT_CORE, &core);
	report("core-limit", 0, core.rlim_max > 1, /* 1: core(5), piped patterns */ "%llu",
	       (unsigned long long)core.rlim_max);
	pid_t pid = fork();

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ core.rlim_max, core.rlim_max });
		abort();
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	report("core-dumped", 0, WCOREDUMP(status), "status %#x", status);
	return 0;
}

/* With 0 a core_pattern that is a program is run, with the dump on its standard input: core(5). */
static bool sets_core_limit(bool is_by_prlimit, rlim_t to)
{
	struct rlimit want = { to, to }, is = { 0 };
	long r =
	    is_by_prlimit ? prlimit(0, RLIMIT_CORE, &want, NULL) : setrlimit(RLIMIT_CORE, &want);

	return getrlimit(RLIMIT_CORE, &is) == 0 && r == 0 && is.rlim_cur == to;
}

static long try_core_setrlimit(void)
{
	return errno = 0, sets_core_limit(false, 0) ? 0 : -1;
}

static long try_core_prlimit(void)
{
	return errno = 0, sets_core_limit(true, 0) ? 0 : -1;
}

static long try_core_prlimit_old(void)
{
	struct rlimit want = { 0, 0 }, old;

	return prlimit(0, RLIMIT_CORE, &want, &old);
}

static long use_core_limit(void)
{
	struct rlimit is;

	return prlimit(0, RLIMIT_CORE, NULL, &is);
}

static int prc_13(void)
{
	static const struct try tries[] = {
		{ "core-setrlimit", try_core_setrlimit, { 0 } },
		{ "core-prlimit", try_core_prlimit, { 0 } },
		{ "core-prlimit-old", try_core_prlimit_old, { 0 } },
		{ "use-core-limit", use_core_limit, { 0 } },
	};

	return attempt_all(tries, COUNT(tries));
}

struct walk {
	const char *const *names; /* only these; NULL: all */
	int tried, opened, err;
	char first[256];
};

static bool name_matches(const struct walk *w, const char *name)
{
	if (!w->names)
		return true;
	for (const char *const *n = w->names; *n; n++)
		if (strcmp(*n, name) == 0)
			return true;
	return false;
}

/* Plain files in memory that look like the kernel's are the sandbox's own affair. */
static bool is_kernel_file(const char *path)
{
	struct stat st;
	struct statfs fs;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && statfs(path, &fs) == 0 &&
	       fs.f_type != TMPFS_MAGIC && fs.f_type != OVERLAYFS_SUPER_MAGIC;
}

static void walk_for_write(const char *root, struct walk *w)
{
	char *roots[] = { (char *)(uintptr_t)root, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);

	for (FTSENT *e; fts && (e = fts_read(fts));) {
		/* Per-process folders are ours to write, and endless. */
		if (e->fts_level == 1 && strcmp(root, "/proc") == 0 &&
		    (e->fts_name[0] <= '9' || strstr(e->fts_name, "self")))
			fts_set(fts, e, FTS_SKIP);
		if (e->fts_info == FTS_D || e->fts_info == FTS_DP || e->fts_info == FTS_SL ||
		    !name_matches(w, e->fts_name))
			continue;
		if (!is_kernel_file(e->fts_path))
			continue;
		w->tried++;
		if (open_for_write(e->fts_path) < 0) {
			w->err = errno;
			continue;
		}
		if (w->opened++ == 0)
			snprintf(w->first, sizeof w->first, "%s", e->fts_path);
	}
	if (fts)
		fts_close(fts);
}

static void report_walk(const char *op, const char *root, const char *const *names)
{
	struct walk w = { .names = names, .err = ENOENT };

	walk_for_write(root, &w);
	report(op, w.opened ? 0 : w.err, w.opened > 0, "%d of %d open %s", w.opened, w.tried,
	       w.first);
}

/* Arguments: roots. */
static int prc_02(void)
{
	static const char *const names[] = { "release_agent", "notify_on_release", "uevent_helper",
		                             "modprobe",      "core_pattern",      "register",
		                             "poweroff_cmd",  "cgroup.procs",      NULL };

	for (int i = 0; arg(i); i++)
		report_walk(arg(i), arg(i), names);
	return 0;
}

static int prc_03(void)
{
	attempt("sysrq-trigger", open_for_write("/proc/sysrq-trigger"), NULL);
	attempt("sysrq-mask", open_for_write("/proc/sys/kernel/sysrq"), NULL);
	return 0;
}

/* Open when a single byte comes out. */
static void report_readable(const char *path)
{
	char bytes[4096];
	long n = slurp(path, bytes, sizeof bytes);

	report(path, n < 0 ? errno : 0, n > 0, "%ld bytes", n);
}

static void report_kallsyms(void)
{
	char text[4096];
	long n = slurp("/proc/kallsyms", text, sizeof text);
	bool zero = n <= 0 || strncmp(text, "0000000000000000", 16) == 0;

	report("/proc/kallsyms", n < 0 ? errno : 0, !zero, "%.16s", n > 0 ? text : " ");
}

static int prc_04(void)
{
	static const char *const paths[] = {
		"/proc/kcore",
		"/proc/keys",
		"/proc/key-users",
		"/proc/timer_list",
		"/proc/timer_stats",
		"/proc/sched_debug",
		"/proc/latency_stats",
		"/proc/scsi/scsi",
		"/proc/acpi/wakeup",
		"/proc/asound/version",
		"/proc/interrupts",
		"/proc/config.gz",
		"/proc/diskstats",
		"/proc/locks",
		"/proc/modules",
		"/proc/partitions",
		"/proc/softirqs",
		"/proc/pressure/cpu",
		"/proc/bus/pci/devices",
		"/proc/kmsg",
		"/proc/kpagecount",
		"/proc/slabinfo",
		"/proc/vmallocinfo",
		"/sys/firmware/acpi/tables/DSDT",
		"/sys/firmware/memmap/0/start",
		"/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj",
		"/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
	};

	for (size_t i = 0; i < COUNT(paths); i++)
		report_readable(paths[i]);
	report_kallsyms();
	return 0;
}

/* PRC-05 and PRC-06. Arguments: roots. */
static int walk_roots(void)
{
	for (int i = 0; arg(i); i++)
		report_walk(arg(i), arg(i), NULL);
	return 0;
}

static void read_of_pid(const char *pid, const char *file)
{
	char path[64], bytes[64];

	snprintf(path, sizeof path, "/proc/%s/%s", pid, file);
	long n = slurp(path, bytes, sizeof bytes);

	report(file, n < 0 ? errno : 0, n > 0, "%ld bytes of pid %s", n, pid);
}

/* Argument: a pid that belongs to somebody else. */
static int prc_10(void)
{
	const char *pid = arg(0) ? arg(0) : "1";
	char path[64], link[256];
	static const char *const files[] = { "environ", "cmdline", "maps", "status", "auxv" };
	static const char *const links[] = { "exe", "cwd", "root", "fd/0" };

	for (size_t i = 0; i < COUNT(files); i++)
		read_of_pid(pid, files[i]);
	for (size_t i = 0; i < COUNT(links); i++) {
		snprintf(path, sizeof path, "/proc/%s/%s", pid, links[i]);
		attempt(links[i], readlink(path, link, sizeof link), NULL);
	}
	return 0;
}

static void report_mac(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), found = 0;
	struct if_nameindex *all = if_nameindex();

	for (struct if_nameindex *i = all; i && i->if_name; i++) {
		struct ifreq r = { 0 };

		snprintf(r.ifr_name, sizeof r.ifr_name, "%s", i->if_name);
		if (ioctl(fd, SIOCGIFHWADDR, &r) == 0)
			found += memcmp(r.ifr_hwaddr.sa_data, "\0\0\0\0\0\0", 6) != 0;
	}
	if (all)
		if_freenameindex(all);
	close(fd);
	report("mac-address", 0, found > 0, "%d", found);
}

/* Arguments: the host's name, then strings that identify it. Open when a source has one. */
static int prc_11(void)
{
	static const char *const sources[] = {
		"/etc/machine-id",
		"/var/lib/dbus/machine-id",
		"/etc/hostname",
		"/etc/hosts",
		"/proc/sys/kernel/hostname",
		"/proc/sys/kernel/random/boot_id",
		"/proc/cmdline",
		"/sys/class/dmi/id/product_uuid",
		"/sys/class/dmi/id/board_serial",
		"/proc/partitions",
		"/proc/diskstats",
		"/proc/version",
		"/proc/self/mountinfo",
		"/proc/self/cgroup",
		"/etc/resolv.conf",
		"/etc/passwd",
		"/proc/net/unix",
		"/proc/net/route",
		"/proc/net/arp",
	};
	char text[65536];
	struct utsname u;

	for (size_t i = 0; i < COUNT(sources); i++) {
		long n = slurp(sources[i], text, sizeof text);
		const char *hit = NULL;

		for (int a = 1; n > 0 && !hit && arg(a); a++)
			hit = strstr(text, arg(a)) ? arg(a) : NULL;
		report(sources[i], n < 0 ? errno : 0, hit != NULL, "%s", hit ? hit : " ");
	}
	uname(&u);
	report("uname", 0, arg(0) && strcmp(u.nodename, arg(0)) == 0, "%s", u.nodename);
	report_mac();
	return 0;
}

const struct row prc_rows[] = {
	{ "PRC-01", prc_01 },
	{ "PRC-02", prc_02 },
	{ "PRC-03", prc_03 },
	{ "PRC-04", prc_04 },
	{ "PRC-05", walk_roots },
	{ "PRC-06", walk_roots },
	{ "PRC-10", prc_10 },
	{ "PRC-11", prc_11 },
	{ "PRC-12", prc_11 },
	{ "PRC-13", prc_13 },
	{ 0 },
};
