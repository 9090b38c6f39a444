#include "engine/skeleton.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "engine/copytree.h"
#include "test.h"

/* ---- a run folder for one test ----------------------------------------------------- */

static char folder[64];
static int run_fd = -1;

static void folder_make(void)
{
	snprintf(folder, sizeof folder, "/tmp/test-skeleton-XXXXXX");
	CHECK(mkdtemp(folder));
	run_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(run_fd >= 0);
}

static void folder_remove(void)
{
	fd_close(&run_fd);
	copytree_remove(AT_FDCWD, folder);
}

static int open_one(void)
{
	struct err e = { 0 };
	int fd = skeleton_open(run_fd, &e);

	if (fd < 0)
		CHECK_STR(e.msg, "");
	return fd;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	CHECK_INT(fstat(fd, &st), 0);
	return st.st_ino;
}

/* How many entries the run folder has, and the name of the last. */
static int count_entries(char *name, size_t size)
{
	DIR *dir = opendir(folder);
	int n = 0;

	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		if (d->d_name[0] == '.')
			continue;
		if (name)
			snprintf(name, size, "%s", d->d_name);
		n++;
	}
	closedir(dir);
	return n;
}

static bool exists(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void text_of(int dir, const char *name, char *out, size_t size)
{
	AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, out, size - 1);

	CHECK(n >= 0);
	out[n] = '\0';
}

/* ---- one and the same -------------------------------------------------------------- */

TEST(two_opens_give_the_same_folder)
{
	char name[64];

	folder_make();
	AUTO(fd_close) int a = open_one();
	AUTO(fd_close) int b = open_one();
	CHECK(a != b);
	CHECK(inode_of(a) == inode_of(b));
	CHECK(fcntl(a, F_GETFL) & O_PATH);
	CHECK_INT(fcntl(a, F_GETFD), FD_CLOEXEC);
	CHECK_INT(count_entries(name, sizeof name), 1);
	CHECK_INT(strncmp(name, "skeleton-", 9), 0);
	CHECK_INT(strspn(name + 9, "0123456789abcdef"), 16);
	folder_remove();
}

/* Waits until `start` ends, opens, writes the inode. */
static void maker(int start, int answer)
{
	char byte;

	(void)!read(start, &byte, 1);
	AUTO(fd_close) int fd = open_one();
	ino_t ino = inode_of(fd);

	_exit(write(answer, &ino, sizeof ino) == (ssize_t)sizeof ino ? 0 : 1);
}

TEST(concurrent_makers_agree_and_leave_nothing_else)
{
	enum { MAKERS = 8 };
	int start[2], answer[2], status;
	ino_t first = 0;

	folder_make();
	CHECK_INT(pipe2(start, O_CLOEXEC), 0);
	CHECK_INT(pipe2(answer, O_CLOEXEC), 0);
	fflush(NULL);
	for (int i = 0; i < MAKERS; i++) {
		if (fork() == 0) {
			fd_close(&start[1]);
			maker(start[0], answer[1]);
		}
	}
	fd_close(&start[0]);
	fd_close(&start[1]); /* go */
	fd_close(&answer[1]);
	for (int i = 0; i < MAKERS; i++) {
		ino_t ino = 0;

		CHECK_INT(read(answer[0], &ino, sizeof ino), sizeof ino);
		CHECK(i == 0 || ino == first);
		first = ino;
	}
	for (int i = 0; i < MAKERS; i++) {
		CHECK(wait(&status) > 0);
		CHECK_INT(status, 0);
	}
	fd_close(&answer[0]);
	CHECK_INT(count_entries(NULL, 0), 1);
	AUTO(fd_close) int fd = open_one();
	CHECK(inode_of(fd) == first);
	folder_remove();
}

/* A maker that was killed half-way; its number came back. */
TEST(what_a_dead_maker_left_is_not_used)
{
	char name[64];

	folder_make();
	snprintf(name, sizeof name, "skeleton-new.%d", getpid());
	CHECK_INT(mkdirat(run_fd, name, 0755), 0);
	AUTO(fd_close) int half = openat(run_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(mkdirat(half, "etc", 0755), 0);
	CHECK_INT(mkdirat(half, "junk", 0755), 0);
	AUTO(fd_close) int fd = open_one();
	CHECK(exists(fd, "etc/passwd"));
	CHECK(!exists(fd, "junk"));
	CHECK_INT(count_entries(NULL, 0), 1);
	folder_remove();
}

TEST(a_vanished_one_is_made_anew)
{
	char name[64], again[64];

	folder_make();
	int fd = open_one();
	fd_close(&fd);
	count_entries(name, sizeof name);
	copytree_remove(run_fd, name);
	AUTO(fd_close) int new = open_one();
	CHECK(exists(new, "etc/passwd"));
	CHECK_INT(count_entries(again, sizeof again), 1);
	CHECK_STR(again, name);
	folder_remove();
}

TEST(a_link_or_a_file_in_its_place_is_refused)
{
	char name[64];
	struct err e = { 0 };

	folder_make();
	int fd = open_one();
	fd_close(&fd);
	count_entries(name, sizeof name);
	copytree_remove(run_fd, name);
	CHECK_INT(symlinkat("/", run_fd, name), 0);
	CHECK_INT(skeleton_open(run_fd, &e), -1);
	CHECK(strstr(e.msg, name));
	CHECK_INT(unlinkat(run_fd, name, 0), 0);
	fd = openat(run_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	fd_close(&fd);
	CHECK_INT(skeleton_open(run_fd, &e), -1);
	folder_remove();
}

TEST(remove_all_takes_skeletons_and_nothing_else)
{
	folder_make();
	int fd = open_one();
	fd_close(&fd);
	CHECK_INT(mkdirat(run_fd, "skeleton-0123456789abcdef", 0755), 0);
	CHECK_INT(mkdirat(run_fd, "skeleton-new.1", 0755), 0);
	CHECK_INT(mkdirat(run_fd, "other", 0755), 0);
	skeleton_remove_all(run_fd);
	CHECK_INT(count_entries(NULL, 0), 1);
	CHECK(exists(run_fd, "other"));
	skeleton_remove_all(-1);
	folder_remove();
}

/* ---- contents ---------------------------------------------------------------------- */

TEST(has_the_names_that_programs_count_on)
{
	static const char *const folders[] = { "dev",        "dev/pts",   "dev/shm", "etc",
		                               "home/agent", "proc",      "root",    "run",
		                               "sys",        "tmp",       "usr",     "var/lib",
		                               "var/log",    "var/cache", "work" };
	static const char *const empty[] = { "dev/null",      "dev/zero",    "dev/full",
		                             "dev/random",    "dev/urandom", "dev/tty",
		                             "etc/machine-id" };
	char text[1024];
	struct stat st;

	folder_make();
	AUTO(fd_close) int fd = open_one();
	for (size_t i = 0; i < COUNT(folders); i++) {
		CHECK_INT(fstatat(fd, folders[i], &st, AT_SYMLINK_NOFOLLOW), 0);
		CHECK(S_ISDIR(st.st_mode));
	}
	for (size_t i = 0; i < COUNT(empty); i++) {
		CHECK_INT(fstatat(fd, empty[i], &st, AT_SYMLINK_NOFOLLOW), 0);
		CHECK(S_ISREG(st.st_mode) && st.st_size == 0);
	}
	text_of(fd, "etc/passwd", text, sizeof text);
	CHECK(strstr(text, "root:x:0:0:root:/root:/bin/sh\n"));
	CHECK(strstr(text, "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"));
	text_of(fd, "etc/hostname", text, sizeof text);
	CHECK_STR(text, "caisson\n");
	text_of(fd, "etc/hosts", text, sizeof text);
	CHECK(strstr(text, "127.0.0.1 localhost"));
	folder_remove();
}

TEST(system_folders_are_what_the_host_has)
{
	folder_make();
	AUTO(fd_close) int fd = open_one();
	AUTO(fd_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < skeleton_n_system_dirs; i++) {
		const char *name = skeleton_system_dirs[i];
		char theirs[256] = "", ours[256] = "";
		ssize_t n = readlinkat(root, name, theirs, sizeof theirs - 1);

		printf("# %s\n", name);
		CHECK_INT(exists(fd, name), exists(root, name));
		CHECK_INT(readlinkat(fd, name, ours, sizeof ours - 1), n);
		CHECK_STR(ours, theirs);
	}
	folder_remove();
}

static int check_mode(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)kind;
	(void)at;
	bool is_ok =
	    S_ISLNK(st->st_mode) || ((S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) &&
	                             !(st->st_mode & 07022) && (st->st_mode & 0444) == 0444);

	if (!is_ok)
		printf("# %s has mode %o\n", path, st->st_mode);
	return is_ok ? 0 : 1;
}

TEST(readable_by_all_writable_by_none_whatever_the_umask)
{
	static const mode_t masks[] = { 0, 022, 077, 0777 };

	for (size_t i = 0; i < COUNT(masks); i++) {
		folder_make();
		umask(masks[i]);
		AUTO(fd_close) int fd = open_one();
		char path[64];

		CHECK_INT(umask(022), masks[i]); /* it gave it back */
		snprintf(path, sizeof path, "/proc/self/fd/%d/.", fd);
		CHECK_INT(nftw(path, check_mode, 16, FTW_PHYS), 0);
		folder_remove();
	}
}

/* ---- with an /etc of the test's own ------------------------------------------------ */

static void write_text(const char *path, const char *text)
{
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK_INT(write(fd, text, strlen(text)), (long long)strlen(text));
}

/* In a mount namespace: the host's is not touched. */
static void own_etc(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		SKIP("needs root");
	CHECK_INT(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	CHECK_INT(mount("none", "/etc", "tmpfs", 0, "mode=0755"), 0);
	CHECK_INT(mkdir("/etc/ssl", 0755), 0);
	CHECK_INT(mkdir("/etc/ssl/certs", 0755), 0);
	CHECK_INT(mkdir("/etc/ssh", 0755), 0);
	CHECK_INT(mkdir("/etc/ssl/private", 0755), 0);
	CHECK_INT(mkdir("/etc/apt", 0755), 0);
	umask(022);
}

static int check_no_secret(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	char text[4096];

	(void)kind;
	(void)at;
	if (!S_ISREG(st->st_mode))
		return 0;
	text_of(AT_FDCWD, path, text, sizeof text);
	if (!strstr(text, "SECRET"))
		return 0;
	printf("# %s\n", path);
	return 1;
}

/* Readable by all and still not for the sandbox: only what is on the list is copied. */
TEST(what_is_not_on_the_list_stays_outside)
{
	static const char *const secrets[] = {
		"shadow",    "gshadow",  "passwd",      "group",         "sudoers",
		"hosts",     "hostname", "resolv.conf", "machine-id",    "gitconfig",
		"npmrc",     "pip.conf", "environment", "ssh/host_key",  "ssl/private/key",
		"krb5.conf", "fstab",    "motd",        "apt/auth.conf", "nsswitch.conf",
	};
	char path[64];

	own_etc();
	for (size_t i = 0; i < COUNT(secrets); i++) {
		snprintf(path, sizeof path, "/etc/%s", secrets[i]);
		write_text(path, "SECRET\n");
	}
	write_text("/etc/profile", "public\n");
	write_text("/etc/ssl/certs/ca.crt", "public\n");
	write_text("/etc/ssl/certs/key.pem", "SECRET\n");
	CHECK_INT(chmod("/etc/ssl/certs/key.pem", 0640), 0);
	folder_make();
	AUTO(fd_close) int fd = open_one();
	snprintf(path, sizeof path, "/proc/self/fd/%d/.", fd);
	CHECK_INT(nftw(path, check_no_secret, 16, FTW_PHYS), 0);
	CHECK(exists(fd, "etc/profile") && exists(fd, "etc/ssl/certs/ca.crt"));
	CHECK(!exists(fd, "etc/shadow") && !exists(fd, "etc/ssh"));
	CHECK(!exists(fd, "etc/ssl/certs/key.pem"));
	folder_remove();
}

TEST(a_changed_source_gives_another_name_and_the_old_one_stays)
{
	char text[64];

	own_etc();
	write_text("/etc/profile", "one\n");
	folder_make();
	AUTO(fd_close) int before = open_one();
	write_text("/etc/profile", "two, longer\n");
	AUTO(fd_close) int after = open_one();
	CHECK(inode_of(before) != inode_of(after));
	CHECK_INT(count_entries(NULL, 0), 2);
	text_of(before, "etc/profile", text, sizeof text);
	CHECK_STR(text, "one\n");
	text_of(after, "etc/profile", text, sizeof text);
	CHECK_STR(text, "two, longer\n");

	write_text("/etc/ssl/certs/new.crt", "x"); /* one more in a folder of the list */
	AUTO(fd_close) int more = open_one();
	CHECK(exists(more, "etc/ssl/certs/new.crt"));
	write_text("/etc/shadow", "x"); /* not a source */
	AUTO(fd_close) int same = open_one();
	CHECK(inode_of(same) == inode_of(more));
	folder_remove();
}

TEST(a_host_without_etc_is_an_error)
{
	AUTO(fd_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };

	if (geteuid() != 0)
		SKIP("needs root");
	folder_make();
	CHECK_INT(chroot(folder), 0);
	CHECK_INT(skeleton_open(run_fd, &e), -1);
	CHECK_STR(e.msg, "open the host's /etc: No such file or directory");
	CHECK_INT(fchdir(root), 0);
	CHECK_INT(chroot("."), 0);
	folder_remove();
}
