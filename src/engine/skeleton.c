#include "engine/skeleton.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/copytree.h"
#include "os/file.h"

#define FORMAT 6 /* counts up when the same sources shall give another skeleton */
#define PREFIX "skeleton-"

const char *const skeleton_system_dirs[] = {
	"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"
};
const size_t skeleton_n_system_dirs = COUNT(skeleton_system_dirs);

static const char *const dirs[] = {
	"dev",
	"dev/pts",
	"dev/shm",
	"empty",
	"etc",
	"etc/ssl",
	"etc/ssl/certs",
	"home",
	"home/agent",
	"opt",
	"proc",
	"root",
	"run",
	"sys",
	"sys/devices",
	"sys/devices/system",
	"sys/devices/system/cpu",
	"tmp",
	"var",
	"var/cache",
	"var/lib",
	"var/log",
	"work",
};

static const struct {
	const char *path, *text;
} links[] = {
	{ "dev/ptmx", "pts/ptmx" },
	{ "dev/fd", "/proc/self/fd" },
	{ "dev/stdin", "/proc/self/fd/0" },
	{ "dev/stdout", "/proc/self/fd/1" },
	{ "dev/stderr", "/proc/self/fd/2" },
	{ "etc/mtab", "/proc/self/mounts" },
	{ "var/tmp", "../tmp" },
	{ "var/run", "../run" },
};

static const struct {
	const char *path, *text;
} files[] = {
	{ "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
	                "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"
	                "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost caisson\n::1 localhost\n" },
	{ "etc/hostname", "caisson\n" },
	{ "etc/resolv.conf", "# no name server: net is denied\n" },
	{ "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "etc/machine-id", "" },
	/* Of a sandbox with a network: the gate, which answers at once or is about to be replaced.
	 */
	{ "resolv.conf", "nameserver 198.18.0.1\noptions timeout:2 attempts:3\n" },
	{ "dev/null", "" },
	{ "dev/zero", "" },
	{ "dev/full", "" },
	{ "dev/random", "" },
	{ "dev/urandom", "" },
	{ "dev/tty", "" },
};

/* The part of the host's /etc that is public and read by tools at start. Not here on purpose:
 * anything that can hold a token (gitconfig, npmrc, pip.conf, apt), keys, accounts, machine-id,
 * or names of this network. Only what everybody may read is copied. */
static const char *const from_etc[] = {
	"alternatives",    "bash.bashrc",     "crypto-policies", "debian_version",  "fonts",
	"inputrc",         "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "ld.so.cache",
	"localtime",       "maven",           "mime.types",      "os-release",      "pki",
	"profile",         "protocols",       "services",        "shells",          "ssl/certs",
	"ssl/openssl.cnf", "timezone",
};

/* ---- the name ---------------------------------------------------------------------- */

/* FNV-1a over words: no adversary chooses these numbers; a changed source gives another name. */
static uint64_t mix(uint64_t h, uint64_t word)
{
	return (h ^ word) * 0x100000001b3u;
}

static uint64_t mix_entry(uint64_t h, int dirfd, const char *name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return mix(h, 1);
	h = mix(mix(h, st.st_ino), st.st_mode);
	h = mix(mix(h, (uint64_t)st.st_size), (uint64_t)st.st_mtim.tv_sec);
	return mix(h, (uint64_t)st.st_mtim.tv_nsec);
}

static int count_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static void make_name(int root_fd, int etc_fd, char *out, size_t size)
{
	uint64_t h = mix(mix(0xcbf29ce484222325u, FORMAT), (uint64_t)count_cpus());

	h = mix(h, geteuid());
	for (size_t i = 0; i < COUNT(skeleton_system_dirs); i++)
		h = mix_entry(h, root_fd, skeleton_system_dirs[i]);
	for (size_t i = 0; i < COUNT(from_etc); i++)
		h = mix_entry(h, etc_fd, from_etc[i]);
	snprintf(out, size, PREFIX "%016llx", (unsigned long long)h);
}

/* ---- the contents ------------------------------------------------------------------ */

int skeleton_make_dirs(int fd, struct err *e)
{
	for (size_t i = 0; i < COUNT(dirs); i++) {
		int r = os_mkdirat(fd, dirs[i], 0755);

		if (r < 0)
			return err_sys(e, -r, "make %s", dirs[i]);
	}
	return 0;
}

static int make_tables(int fd, struct err *e)
{
	if (skeleton_make_dirs(fd, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(files); i++) {
		int r = os_make_file(fd, files[i].path, files[i].text, strlen(files[i].text), 0644);

		if (r < 0)
			return err_sys(e, -r, "write %s", files[i].path);
	}
	for (size_t i = 0; i < COUNT(links); i++) {
		int r = os_symlinkat(links[i].text, fd, links[i].path);

		if (r < 0)
			return err_sys(e, -r, "link %s", links[i].path);
	}
	return 0;
}

/* On merged-/usr hosts all but the first are links. */
static int make_system_dirs(int fd, int root_fd, struct err *e)
{
	for (size_t i = 0; i < COUNT(skeleton_system_dirs); i++) {
		const char *name = skeleton_system_dirs[i];
		char text[256];
		int r = os_readlinkat(root_fd, name, text, sizeof text);

		if (r == -ENOENT)
			continue;
		if (r == -EINVAL) /* not a link */
			r = os_mkdirat(fd, name, 0755);
		else if (r >= 0)
			r = os_symlinkat(text, fd, name);
		if (r < 0)
			return err_sys(e, -r, "make %s", name);
	}
	return 0;
}

static int make_cpu_files(int fd, struct err *e)
{
	static const char *const names[] = { "online", "possible", "present" };
	char range[32];
	int n = snprintf(range, sizeof range, "0-%d\n", count_cpus() - 1);

	for (size_t i = 0; i < COUNT(names); i++) {
		char path[64];

		snprintf(path, sizeof path, "sys/devices/system/cpu/%s", names[i]);
		int r = os_make_file(fd, path, range, (size_t)n, 0444);
		if (r < 0)
			return err_sys(e, -r, "write %s", path);
	}
	return 0;
}

static int fill(int fd, int root_fd, int etc_fd, struct err *e)
{
	if (make_tables(fd, e) < 0 || make_system_dirs(fd, root_fd, e) < 0 ||
	    make_cpu_files(fd, e) < 0)
		return -1;
	AUTO(fd_close) int etc = os_openat(fd, "etc", O_RDONLY | O_DIRECTORY, 0);
	if (etc < 0)
		return err_sys(e, -etc, "open etc");
	for (size_t i = 0; i < COUNT(from_etc); i++)
		if (copytree(etc_fd, etc, from_etc[i], e) < 0)
			return err_wrap(e, "copy /etc/%s", from_etc[i]);
	return 0;
}

/* Made under a name of our own and renamed when whole: a reader sees all of it or nothing. */
static int make(int run_fd, const char *name, int root_fd, int etc_fd, struct err *e)
{
	char temporary[64];
	mode_t mask = umask(0);

	snprintf(temporary, sizeof temporary, PREFIX "new.%d", getpid());
	copytree_remove(run_fd, temporary);
	int r = os_mkdirat(run_fd, temporary, 0755);
	AUTO(fd_close) int fd = r < 0 ? r : os_openat(run_fd, temporary, O_RDONLY | O_DIRECTORY, 0);
	r = fd < 0 ? err_sys(e, -fd, "make %s", temporary) : fill(fd, root_fd, etc_fd, e);
	umask(mask);
	/* Somebody else was faster: theirs is the same. */
	if (r == 0 && renameat2(run_fd, temporary, run_fd, name, 1 /* RENAME_NOREPLACE */) < 0 &&
	    errno != EEXIST)
		r = err_sys(e, errno, "rename %s", temporary);
	copytree_remove(run_fd, temporary);
	return r;
}

int skeleton_open(int run_fd, struct err *e)
{
	char name[64];
	AUTO(fd_close) int root = os_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	AUTO(fd_close) int etc = root < 0 ? root : os_openat(root, "etc", O_PATH | O_DIRECTORY, 0);

	if (etc < 0)
		return err_sys(e, -etc, "open the host's /etc");
	make_name(root, etc, name, sizeof name);
	int fd = os_openat(run_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd == -ENOENT) {
		if (make(run_fd, name, root, etc, e) < 0)
			return -1;
		fd = os_openat(run_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	return fd < 0 ? err_sys(e, -fd, "open %s", name) : fd;
}

void skeleton_remove_all(int run_fd)
{
	int fd = os_openat(run_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		if (strncmp(d->d_name, PREFIX, strlen(PREFIX)) == 0)
			copytree_remove(run_fd, d->d_name);
	if (dir)
		closedir(dir);
}
