#include "engine/hostpath.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "test.h"

static char top[64];

static const char *at(const char *rest)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", top, rest);
	return path;
}

static void tree_make(void)
{
	static const char *const dirs[] = { "a", "a/secret", "a/secret/deep", "a/open", "b" };

	snprintf(top, sizeof top, "/tmp/test-hostpath-XXXXXX");
	CHECK(mkdtemp(top));
	for (size_t i = 0; i < COUNT(dirs); i++)
		CHECK_INT(mkdir(at(dirs[i]), 0755), 0);
	CHECK_INT(mknod(at("a/secret/file"), S_IFREG | 0644, 0), 0);
	CHECK_INT(mknod(at("a/open/file"), S_IFREG | 0644, 0), 0);
	CHECK_INT(mkfifo(at("b/fifo"), 0644), 0);
}

static void tree_remove(void)
{
	static const char *const files[] = { "a/secret/file", "a/open/file", "b/fifo" };
	static const char *const dirs[] = { "a/secret/deep", "a/secret", "a/open", "a", "b", "" };

	for (size_t i = 0; i < COUNT(files); i++)
		CHECK_INT(unlink(at(files[i])), 0);
	for (size_t i = 0; i < COUNT(dirs); i++)
		CHECK_INT(rmdir(at(dirs[i])), 0);
}

static void forbid(struct hostpath_rules *rules, const char *path, bool above)
{
	struct err e = { 0 };
	AUTO(fd_close) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(hostpath_forbid(rules, fd, above, &e), 0);
}

static int check(const struct hostpath_rules *rules, const char *path, struct err *e)
{
	AUTO(fd_close) int fd = open(path, O_PATH | O_CLOEXEC);

	CHECK(fd >= 0);
	return hostpath_check(rules, fd, e);
}

TEST(itself_below_and_above_are_refused_and_neighbours_are_not)
{
	static const struct {
		const char *path;
		int with, without; /* with what is above, and without */
	} rows[] = {
		{ "a/secret", -1, -1 },
		{ "a/secret/deep", -1, -1 },
		{ "a/secret/file", -1, -1 },
		{ "a/secret/deep/..", -1, -1 },
		{ "a", -1, 0 },
		{ "", -1, 0 },
		{ "a/open", 0, 0 },
		{ "a/open/file", 0, 0 },
		{ "b", 0, 0 },
		{ "b/fifo", -1, -1 },
	};
	struct hostpath_rules with = { 0 }, without = { 0 };
	struct err e = { 0 };

	tree_make();
	forbid(&with, at("a/secret"), true);
	forbid(&without, at("a/secret"), false);
	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# %s\n", rows[i].path);
		CHECK_INT(check(&with, at(rows[i].path), &e), rows[i].with);
		CHECK_INT(check(&without, at(rows[i].path), &e), rows[i].without);
	}
	CHECK_INT(check(&with, "/", &e), -1);
	CHECK_INT(check(&with, "/tmp", &e), -1);
	CHECK_INT(check(&without, "/", &e), 0);
	CHECK_INT(e.kind, ERR_DENIED);
	tree_remove();
}

TEST(file_systems_of_the_kernel_are_refused)
{
	static const char *const paths[] = { "/proc", "/proc/self/status", "/sys", "/dev/pts" };
	const struct hostpath_rules none = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(paths); i++) {
		if (access(paths[i], F_OK) < 0)
			continue;
		printf("# %s\n", paths[i]);
		CHECK_INT(check(&none, paths[i], &e), -1);
		CHECK_INT(e.kind, ERR_DENIED);
	}
}

/* The name that the kernel gives leads nowhere any more. */
TEST(a_file_without_a_name_is_refused)
{
	const struct hostpath_rules none = { 0 };
	struct err e = { 0 };

	tree_make();
	AUTO(fd_close) int fd = open(at("a/open/file"), O_PATH | O_CLOEXEC);
	CHECK_INT(hostpath_check(&none, fd, &e), 0);
	char to[256];
	snprintf(to, sizeof to, "%s", at("a/open/other"));
	CHECK_INT(rename(at("a/open/file"), to), 0);
	CHECK_INT(hostpath_check(&none, fd, &e), 0); /* the kernel knows */
	CHECK_INT(unlink(to), 0);
	CHECK_INT(hostpath_check(&none, fd, &e), -1);
	CHECK_INT(mknod(at("a/open/file"), S_IFREG | 0644, 0), 0);
	tree_remove();
}

/* A forbidden folder is the same wherever it is mounted, and so is what lies in it. */
TEST(a_second_mount_of_it_changes_nothing)
{
	struct hostpath_rules rules = { 0 };
	struct err e = { 0 };

	if (geteuid() != 0)
		SKIP("needs root");
	tree_make();
	forbid(&rules, at("a/secret"), true);
	CHECK_INT(unshare(CLONE_NEWNS), 0);
	CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	char from[256];
	snprintf(from, sizeof from, "%s", at("a"));
	CHECK_INT(mount(from, at("b"), NULL, MS_BIND, NULL), 0);
	CHECK_INT(check(&rules, at("b/secret"), &e), -1);
	CHECK_INT(check(&rules, at("b/secret/deep"), &e), -1);
	CHECK_INT(check(&rules, at("b/secret/file"), &e), -1);
	CHECK_INT(check(&rules, at("b"), &e), -1);
	CHECK_INT(check(&rules, at("b/open"), &e), 0);
	/* A folder mounted on its own child: ".." of it is the same folder, and not the end. */
	CHECK_INT(umount(at("b")), 0);
	snprintf(from, sizeof from, "%s", at("a/secret"));
	CHECK_INT(mount(from, at("a/secret/deep"), NULL, MS_BIND, NULL), 0);
	struct hostpath_rules above = { 0 };
	forbid(&above, at("a"), false);
	CHECK_INT(check(&above, at("a/secret/deep"), &e), -1);
	CHECK_INT(umount(at("a/secret/deep")), 0);
	tree_remove();
}

/* Nobody's root leads to ours: the walk has no end, and that is a no. */
TEST(what_is_not_below_our_root_is_refused)
{
	const struct hostpath_rules none = { 0 };
	struct err e = { 0 };

	if (geteuid() != 0)
		SKIP("needs root");
	tree_make();
	AUTO(fd_close) int outside = open(at("a/open"), O_PATH | O_CLOEXEC);
	CHECK_INT(hostpath_check(&none, outside, &e), 0);
	AUTO(fd_close)
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, at("a"), 1 /* OPEN_TREE_CLONE */);
	CHECK(tree >= 0);
	AUTO(fd_close) int inside = openat(tree, "open", O_PATH | O_CLOEXEC);
	CHECK_INT(hostpath_check(&none, inside, &e), -1);
	tree_remove();
}
