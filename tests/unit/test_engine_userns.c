#include "engine/userns.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/mount.h"
#include "test.h"

static int count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void needs_root(void)
{
	if (geteuid() != 0)
		SKIP("needs root");
}

/* One line of a map, without the columns of the kernel. */
static void map_is(const char *path, struct userns_range want)
{
	struct userns_range got = { 0 };
	char text[256], more;

	CHECK(os_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	printf("# %s %s", path, text);
	CHECK_INT(sscanf(text, "%u %u %u %c", &got.inside, &got.outside, &got.count, &more), 3);
	CHECK_INT(got.inside, want.inside);
	CHECK_INT(got.outside, want.outside);
	CHECK_INT(got.count, want.count);
}

/* In a child that enters it: what it is inside, and what that is outside. */
static void check_maps(int ns, struct userns_range uids, struct userns_range gids)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_INT(setns(ns, CLONE_NEWUSER), 0);
		map_is("/proc/self/uid_map", uids);
		map_is("/proc/self/gid_map", gids);
		fflush(NULL);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

TEST(a_namespace_has_exactly_the_two_ranges)
{
	static const struct {
		struct userns_range uids, gids;
	} cases[] = {
		{ { 0, 0x70000000, 65535 }, { 0, 0x70000000, 65535 } },
		{ { 1000, 0x700003e8, 1 }, { 100, 0x70000064, 1 } },
		{ { 0, 0, 1 }, { 7, 8, 9 } },
	};

	needs_root();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err e = { 0 };
		AUTO(fd_close) int ns = userns_make(cases[i].uids, cases[i].gids, &e);

		CHECK_STR(e.msg, "");
		CHECK_INT(ioctl(ns, NS_GET_NSTYPE), CLONE_NEWUSER);
		CHECK_INT(fcntl(ns, F_GETFD), FD_CLOEXEC);
		check_maps(ns, cases[i].uids, cases[i].gids);
	}
}

/* The helper process and its descriptors are gone, whether it worked or not. */
TEST(making_one_leaves_no_process_and_no_descriptor)
{
	const struct userns_range good = { 0, 0x70000000, 10 }, bad = { 0, 0x70000000, 0 };
	struct err e = { 0 };

	needs_root();
	int before = count_open();
	int ns = userns_make(good, good, &e);
	CHECK(ns >= 0);
	fd_close(&ns);
	CHECK_INT(userns_make(bad, good, &e), -1);
	CHECK_STR(e.msg, "write uid_map: Invalid argument");
	CHECK_INT(userns_make(good, bad, &e), -1);
	CHECK_STR(e.msg, "write gid_map: Invalid argument");
	CHECK_INT(count_open(), before);
	CHECK_INT(waitpid(-1, NULL, 0), -1);
	CHECK_INT(errno, ECHILD);
}

/* ---- mounts ------------------------------------------------------------------------ */

/* A tmpfs of the test's own, in a mount namespace of its own: nothing to clean up. */
static int own_folder(void)
{
	AUTO(fd_close) int fs = os_fsopen("tmpfs");

	if (fs < 0 || unshare(CLONE_NEWNS) < 0)
		SKIP("needs root");
	CHECK_INT(os_mount_private(AT_FDCWD, "/"), 0);
	CHECK_INT(os_fsconfig_create(fs), 0);
	AUTO(fd_close) int tree = os_fsmount(fs, 0);
	CHECK(tree >= 0);
	CHECK_INT(os_move_mount(tree, AT_FDCWD, "/tmp"), 0);
	CHECK_INT(mkdir("/tmp/source", 0755), 0);
	int fd = open("/tmp/source", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void make_file(const char *path, uid_t uid, gid_t gid)
{
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK_INT(fchown(fd, uid, gid), 0);
}

static void owner_is(int dir, const char *name, uid_t uid, gid_t gid)
{
	struct stat st;

	printf("# %s\n", name);
	CHECK_INT(fstatat(dir, name, &st, 0), 0);
	CHECK_INT(st.st_uid, uid);
	CHECK_INT(st.st_gid, gid);
}

/* Only the owner of the source becomes the user inside; anybody else is nobody. */
TEST(a_mapped_tree_shows_the_mapped_owner_and_nobody_else)
{
	enum { NOBODY = 65534 };
	const struct userns_range uids = { 1234, 0x700003e8, 1 }, gids = { 5678, 0x700003e9, 1 };
	struct err e = { 0 };
	AUTO(fd_close) int source = own_folder();
	struct stat st;

	make_file("/tmp/source/theirs", 1234, 5678);
	make_file("/tmp/source/roots", 0, 0);
	make_file("/tmp/source/half", 1234, 0);
	AUTO(fd_close) int tree = userns_map_tree(source, uids, gids, &e);
	CHECK_STR(e.msg, "");
	CHECK_INT(fstatat(tree, "theirs", &st, 0), 0);
	if (st.st_uid == 1234)
		SKIP("needs a tmpfs whose ids can be mapped, Linux 6.3");
	owner_is(tree, "theirs", 0x700003e8, 0x700003e9);
	owner_is(tree, "roots", NOBODY, NOBODY);
	owner_is(tree, "half", 0x700003e8, NOBODY);
	owner_is(source, "theirs", 1234, 5678); /* on the host all is as it was */
}

TEST(a_file_system_that_cannot_map_is_shown_as_it_is)
{
	const struct userns_range all = { 0, 0x70000000, 65535 };
	struct err e = { 0 };

	needs_root();
	AUTO(fd_close) int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO(fd_close) int tree = userns_map_tree(proc, all, all, &e);
	CHECK_STR(e.msg, "");
	owner_is(tree, "1", 0, 0);
}

/* A detached tree: it is seen by nobody who does not have the descriptor. */
TEST(a_mapped_tree_is_a_clone_of_its_own)
{
	const struct userns_range all = { 0, 0x70000000, 65535 };
	struct err e = { 0 };
	AUTO(fd_close) int source = own_folder();
	char before[8192], after[8192];

	CHECK(os_read_file(AT_FDCWD, "/proc/self/mounts", before, sizeof before) > 0);
	AUTO(fd_close) int tree = userns_map_tree(source, all, all, &e);
	CHECK(tree >= 0 && tree != source);
	CHECK(os_read_file(AT_FDCWD, "/proc/self/mounts", after, sizeof after) > 0);
	CHECK_STR(after, before);
}

TEST(a_descriptor_that_is_no_mount_point_is_an_error)
{
	const struct userns_range all = { 0, 0x70000000, 65535 };
	struct err e = { 0 };
	int fds[2];

	needs_root();
	CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
	CHECK_INT(userns_map_tree(fds[0], all, all, &e), -1);
	CHECK_INT(strncmp(e.msg, "clone a source: ", 16), 0);
	CHECK_INT(userns_map_tree(-1, all, all, &e), -1);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

/* ---- the maps of a sandbox --------------------------------------------------------- */

/* A child in a user namespace of its own, as pid 1 of a sandbox is; the maps are written to it. */
static void check_box(const struct box *box, struct userns_range uids, struct userns_range gids,
                      const char *groups)
{
	struct err e = { 0 };
	char path[64], text[16];
	int ready[2];

	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		while (pause() < 0)
			;
	}
	fd_close(&ready[1]);
	bool is_there = read(ready[0], text, 1) == 1;

	fd_close(&ready[0]);
	if (!is_there)
		SKIP("needs user namespaces");
	if (userns_map(box, pid, &e) < 0)
		CHECK_STR(e.msg, "");
	snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
	map_is(path, uids);
	snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
	map_is(path, gids);
	snprintf(path, sizeof path, "/proc/%d/setgroups", pid);
	CHECK(os_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	text[strcspn(text, "\n")] = '\0';
	CHECK_STR(text, groups);
	CHECK_INT(userns_map(box, pid, &e), -1); /* once and for all */
	CHECK_INT(kill(pid, SIGKILL), 0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

TEST(root_mode_maps_a_whole_range_and_only_rootful_has_groups)
{
	const struct userns_range range = { 0, 0x70010000, BOX_IDS };
	struct plan plan = { .uid = 1000, .gid = 1000 };
	struct box box = { .plan = &plan, .is_root = true, .id_base = 0x70010000 };

	needs_root();
	check_box(&box, range, range, "deny");
	plan.rootful = true;
	check_box(&box, range, range, "allow");
}

TEST(rootless_maps_the_one_id_that_the_caller_has)
{
	struct plan plan = { .uid = 1000, .gid = 100, .rootful = true };
	struct box box = { .plan = &plan, .uid = geteuid(), .gid = getegid() };

	check_box(&box, (struct userns_range){ 1000, geteuid(), 1 },
	          (struct userns_range){ 100, getegid(), 1 }, "deny");
}
