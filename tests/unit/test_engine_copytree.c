#include "engine/copytree.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "test.h"

/* ---- two folders for one test ------------------------------------------------------ */

static char folder[64];
static int from_fd = -1, to_fd = -1;

static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static void folder_make(void)
{
	snprintf(folder, sizeof folder, "/tmp/test-copytree-XXXXXX");
	umask(0);
	CHECK(mkdtemp(folder));
	CHECK_INT(chmod(folder, 0755), 0);
	AUTO(fd_close) int dir = open_dir(AT_FDCWD, folder);
	CHECK_INT(mkdirat(dir, "from", 0755), 0);
	CHECK_INT(mkdirat(dir, "to", 0777), 0);
	from_fd = open_dir(dir, "from");
	to_fd = open_dir(dir, "to");
}

static void folder_remove(void)
{
	fd_close(&from_fd);
	fd_close(&to_fd);
	copytree_remove(AT_FDCWD, folder);
	CHECK_INT(access(folder, F_OK), -1);
}

static void write_text(int dir, const char *name, const char *text, mode_t mode)
{
	AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CHECK_INT(write(fd, text, strlen(text)), (long long)strlen(text));
}

static bool exists(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The mode of an entry, 0 when there is none. */
static mode_t mode_of(int dir, const char *name)
{
	struct stat st = { 0 };

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode : 0;
}

static void text_is(int dir, const char *name, const char *want)
{
	AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[64] = "";

	CHECK_INT(read(fd, text, sizeof text - 1), (long long)strlen(want));
	CHECK_STR(text, want);
}

static void copy(const char *name)
{
	struct err e = { 0 };

	if (copytree(from_fd, to_fd, name, &e) < 0)
		CHECK_STR(e.msg, "");
}

/* ---- copying ----------------------------------------------------------------------- */

TEST(files_links_and_folders_are_copied_as_what_they_are)
{
	char text[16] = "";

	folder_make();
	CHECK_INT(mkdirat(from_fd, "d", 0755), 0);
	CHECK_INT(mkdirat(from_fd, "d/sub", 0755), 0);
	write_text(from_fd, "d/file", "text", 0644);
	write_text(from_fd, "d/empty", "", 0644);
	write_text(from_fd, "d/program", "#!", 0755);
	write_text(from_fd, "d/sub/deep", "x", 0444);
	CHECK_INT(symlinkat("file", from_fd, "d/link"), 0);
	copy("d");
	text_is(to_fd, "d/file", "text");
	text_is(to_fd, "d/empty", "");
	text_is(to_fd, "d/sub/deep", "x");
	CHECK_INT(mode_of(to_fd, "d"), S_IFDIR | 0755);
	CHECK_INT(mode_of(to_fd, "d/file"), S_IFREG | 0644);
	CHECK_INT(mode_of(to_fd, "d/program"), S_IFREG | 0755);
	CHECK_INT(mode_of(to_fd, "d/sub/deep"), S_IFREG | 0644);
	CHECK_INT(readlinkat(to_fd, "d/link", text, sizeof text), 4);
	CHECK_STR(text, "file");
	folder_remove();
}

/* Set-id bits would come back to life in the copy; sticky and write bits mean nothing there. */
TEST(odd_mode_bits_are_not_copied)
{
	folder_make();
	write_text(from_fd, "suid", "x", 0755);
	CHECK_INT(fchmodat(from_fd, "suid", 06777, 0), 0);
	CHECK_INT(mkdirat(from_fd, "d", 0755), 0);
	CHECK_INT(fchmodat(from_fd, "d", 07777, 0), 0);
	copy("suid");
	copy("d");
	CHECK_INT(mode_of(to_fd, "suid"), S_IFREG | 0755);
	CHECK_INT(mode_of(to_fd, "d"), S_IFDIR | 0755);
	folder_remove();
}

TEST(a_link_is_copied_by_its_text_and_never_followed)
{
	static const char *const texts[] = { "/etc/shadow", "../../../../etc", "dangling", "." };
	char text[64];

	folder_make();
	for (size_t i = 0; i < COUNT(texts); i++) {
		char name[16];

		snprintf(name, sizeof name, "link%zu", i);
		CHECK_INT(symlinkat(texts[i], from_fd, name), 0);
		copy(name);
		CHECK(S_ISLNK(mode_of(to_fd, name)));
		ssize_t n = readlinkat(to_fd, name, text, sizeof text - 1);
		CHECK_INT(n, (long long)strlen(texts[i]));
		CHECK_INT(memcmp(text, texts[i], (size_t)n), 0);
	}
	folder_remove();
}

TEST(what_not_everybody_may_read_is_left_out)
{
	static const mode_t modes[] = { 0600, 0640, 0660, 0700, 0750, 0771, 0000 };

	folder_make();
	CHECK_INT(mkdirat(from_fd, "d", 0755), 0);
	for (size_t i = 0; i < COUNT(modes); i++) {
		char name[16];

		snprintf(name, sizeof name, "d/%zu", i);
		write_text(from_fd, name, "secret", modes[i]);
	}
	write_text(from_fd, "d/public", "x", 0644);
	copy("d");
	for (size_t i = 0; i < COUNT(modes); i++) {
		char name[16];

		snprintf(name, sizeof name, "d/%zu", i);
		CHECK(!exists(to_fd, name));
	}
	CHECK(exists(to_fd, "d/public"));
	folder_remove();
}

/* A public file in a private folder is private. */
TEST(a_folder_that_not_everybody_may_enter_is_left_out)
{
	static const mode_t modes[] = { 0700, 0750, 0751, 0754, 0771 };

	folder_make();
	CHECK_INT(mkdirat(from_fd, "d", 0755), 0);
	for (size_t i = 0; i < COUNT(modes); i++) {
		char name[16], file[32];

		snprintf(name, sizeof name, "d/%zu", i);
		snprintf(file, sizeof file, "%s/file", name);
		CHECK_INT(mkdirat(from_fd, name, modes[i]), 0);
		write_text(from_fd, file, "secret", 0644);
	}
	copy("d");
	for (size_t i = 0; i < COUNT(modes); i++) {
		char file[32];

		snprintf(file, sizeof file, "d/%zu/file", i);
		CHECK(!exists(to_fd, file));
	}
	folder_remove();
}

/* None of them is opened: a fifo would wait for a writer. */
TEST(sockets_fifos_and_devices_are_left_out)
{
	folder_make();
	CHECK_INT(mkdirat(from_fd, "d", 0755), 0);
	CHECK_INT(mkfifoat(from_fd, "d/fifo", 0666), 0);
	CHECK_INT(mknodat(from_fd, "d/socket", S_IFSOCK | 0666, 0), 0);
	bool has_device = mknodat(from_fd, "d/device", S_IFCHR | 0666, 0x103) == 0;

	printf("# %s a device\n", has_device ? "with" : "without");
	copy("d");
	CHECK(exists(to_fd, "d"));
	CHECK(!exists(to_fd, "d/fifo") && !exists(to_fd, "d/socket"));
	CHECK(!exists(to_fd, "d/device"));
	folder_remove();
}

TEST(a_file_too_large_to_be_a_setting_is_left_out)
{
	enum { MAX = 4 << 20 };

	folder_make();
	write_text(from_fd, "fits", "", 0644);
	write_text(from_fd, "large", "", 0644);
	AUTO(fd_close) int fits = openat(from_fd, "fits", O_WRONLY | O_CLOEXEC);
	AUTO(fd_close) int large = openat(from_fd, "large", O_WRONLY | O_CLOEXEC);
	CHECK_INT(ftruncate(fits, MAX), 0);
	CHECK_INT(ftruncate(large, MAX + 1), 0);
	copy("fits");
	copy("large");
	struct stat st;
	CHECK_INT(fstatat(to_fd, "fits", &st, 0), 0);
	CHECK_INT(st.st_size, MAX);
	CHECK(!exists(to_fd, "large"));
	folder_remove();
}

TEST(absent_is_fine_and_leaves_nothing)
{
	static const char *const names[] = { "absent", "absent/below", "file/below" };

	folder_make();
	write_text(from_fd, "file", "x", 0644);
	for (size_t i = 0; i < COUNT(names); i++) {
		copy(names[i]);
		CHECK(!exists(to_fd, names[i]));
	}
	folder_remove();
}

TEST(a_name_may_have_a_folder_part_that_both_sides_have)
{
	struct err e = { 0 };

	folder_make();
	CHECK_INT(mkdirat(from_fd, "ssl", 0755), 0);
	CHECK_INT(mkdirat(from_fd, "ssl/certs", 0755), 0);
	write_text(from_fd, "ssl/certs/ca", "x", 0644);
	write_text(from_fd, "ssl/other", "x", 0644);
	CHECK_INT(copytree(from_fd, to_fd, "ssl/certs", &e), -1); /* not on the other side */
	CHECK_INT(e.sys, ENOENT);
	CHECK_INT(mkdirat(to_fd, "ssl", 0755), 0);
	copy("ssl/certs");
	text_is(to_fd, "ssl/certs/ca", "x");
	CHECK(!exists(to_fd, "ssl/other"));
	folder_remove();
}

TEST(what_is_there_is_an_error_and_stays)
{
	static const struct {
		const char *name;
		int error;
	} rows[] = { { "file", EEXIST }, { "link", EEXIST }, { "dir", ENOTDIR } };

	folder_make();
	write_text(from_fd, "file", "new", 0644);
	CHECK_INT(symlinkat("new", from_fd, "link"), 0);
	CHECK_INT(mkdirat(from_fd, "dir", 0755), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		write_text(to_fd, rows[i].name, "old", 0644);
		CHECK_INT(copytree(from_fd, to_fd, rows[i].name, &e), -1);
		CHECK_INT(e.sys, rows[i].error);
		text_is(to_fd, rows[i].name, "old");
	}
	folder_remove();
}

TEST(a_folder_that_is_there_is_added_to)
{
	struct err e = { 0 };

	folder_make();
	CHECK_INT(mkdirat(from_fd, "dir", 0755), 0);
	write_text(from_fd, "dir/new", "new", 0644);
	write_text(from_fd, "file", "x", 0644);
	CHECK_INT(mkdirat(to_fd, "dir", 0755), 0);
	write_text(to_fd, "dir/old", "old", 0644);
	CHECK_INT(copytree(from_fd, to_fd, ".", &e), 0);
	text_is(to_fd, "dir/new", "new");
	text_is(to_fd, "dir/old", "old");
	text_is(to_fd, "file", "x");
	copytree_remove(to_fd, ".");
	CHECK(!exists(to_fd, "dir"));
	CHECK(!exists(to_fd, "file"));
	/* Not through a link: it may lead anywhere. */
	CHECK_INT(symlinkat("/tmp", to_fd, "dir"), 0);
	CHECK_INT(copytree(from_fd, to_fd, "dir", &e), -1);
	folder_remove();
}

/* d0/d1/.../d11, with a file f in each. */
TEST(depth_is_bounded)
{
	enum { LEVELS = 12, FOLLOWED = 8 };
	char path[64] = "", name[80];

	folder_make();
	for (int i = 0; i < LEVELS; i++) {
		size_t len = strlen(path);

		snprintf(path + len, sizeof path - len, "%sd%d", i ? "/" : "", i);
		CHECK_INT(mkdirat(from_fd, path, 0755), 0);
		snprintf(name, sizeof name, "%s/f", path);
		write_text(from_fd, name, "x", 0644);
	}
	copy("d0");
	path[0] = '\0';
	for (int i = 0; i <= FOLLOWED; i++) {
		size_t len = strlen(path);

		snprintf(path + len, sizeof path - len, "%sd%d", i ? "/" : "", i);
		snprintf(name, sizeof name, "%s/f", path);
		printf("# %s\n", path);
		CHECK(exists(to_fd, path));
		CHECK_INT(exists(to_fd, name), i < FOLLOWED);
	}
	snprintf(name, sizeof name, "%s/d%d", path, FOLLOWED + 1);
	CHECK(!exists(to_fd, name));
	folder_remove();
}

/* In a child without rights. */
static void as_nobody(void (*run)(void))
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setresgid(54321, 54321, 54321) < 0 ||
		    setresuid(54321, 54321, 54321) < 0)
			_exit(TEST_SKIPPED);
		run();
		fflush(NULL);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static void copy_d(void)
{
	copy("d");
}

TEST(a_folder_that_the_caller_may_not_read_does_not_fail_the_rest)
{
	if (geteuid() != 0)
		SKIP("needs root");
	folder_make();
	CHECK_INT(mkdirat(from_fd, "d", 0755), 0);
	CHECK_INT(mkdirat(from_fd, "d/closed", 0700), 0);
	write_text(from_fd, "d/closed/f", "x", 0644);
	write_text(from_fd, "d/open", "x", 0644);
	as_nobody(copy_d);
	CHECK(exists(to_fd, "d/open"));
	CHECK(!exists(to_fd, "d/closed/f"));
	folder_remove();
}

/* ---- removing ---------------------------------------------------------------------- */

TEST(remove_never_follows_a_link)
{
	folder_make();
	CHECK_INT(mkdirat(from_fd, "victim", 0755), 0);
	write_text(from_fd, "victim/f", "x", 0644);
	CHECK_INT(mkdirat(to_fd, "d", 0755), 0);
	CHECK_INT(symlinkat("../../from/victim", to_fd, "d/link"), 0);
	CHECK_INT(symlinkat("../from/victim", to_fd, "top"), 0);
	CHECK_INT(symlinkat("../from/victim/f", to_fd, "file"), 0);
	copytree_remove(to_fd, "d");
	copytree_remove(to_fd, "top");
	copytree_remove(to_fd, "file");
	CHECK(!exists(to_fd, "d") && !exists(to_fd, "top") && !exists(to_fd, "file"));
	CHECK(exists(from_fd, "victim/f"));
	folder_remove();
}

static void remove_link(void)
{
	copytree_remove(from_fd, "link");
}

/* Whoever may not unlink a link does not go on behind it. */
TEST(remove_does_not_enter_a_link_that_stays)
{
	if (geteuid() != 0)
		SKIP("needs root");
	folder_make();
	CHECK_INT(mkdirat(to_fd, "victim", 0777), 0);
	write_text(to_fd, "victim/f", "x", 0666);
	CHECK_INT(symlinkat("../to/victim", from_fd, "link"), 0);
	as_nobody(remove_link);
	CHECK(exists(from_fd, "link"));
	CHECK(exists(to_fd, "victim/f"));
	folder_remove();
}

TEST(remove_takes_every_kind_and_many)
{
	folder_make();
	CHECK_INT(mkdirat(to_fd, "d", 0755), 0);
	CHECK_INT(mkfifoat(to_fd, "d/fifo", 0600), 0);
	CHECK_INT(mknodat(to_fd, "d/socket", S_IFSOCK | 0600, 0), 0);
	CHECK_INT(symlinkat("d", to_fd, "d/loop"), 0);
	for (int i = 0; i < 3000; i++) { /* more than one getdents */
		char name[32];

		snprintf(name, sizeof name, "d/%d", i);
		write_text(to_fd, name, "", 0400);
	}
	copytree_remove(to_fd, "d");
	CHECK(!exists(to_fd, "d"));
	folder_remove();
}

TEST(remove_goes_deeper_than_copy)
{
	char path[256] = "d";

	folder_make();
	for (int i = 0; i < 64; i++) {
		size_t len = strlen(path);

		CHECK_INT(mkdirat(to_fd, path, 0755), 0);
		snprintf(path + len, sizeof path - len, "/d");
	}
	copytree_remove(to_fd, "d");
	CHECK(!exists(to_fd, "d"));
	folder_remove();
}

TEST(remove_of_nothing_is_fine)
{
	folder_make();
	copytree_remove(to_fd, "absent");
	copytree_remove(to_fd, "absent/below");
	copytree_remove(-1, "absent");
	folder_remove();
}
