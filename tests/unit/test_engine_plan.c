#include "engine/plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fd.h"
#include "engine/copytree.h"
#include "test.h"

/* ---- a plan from flags ------------------------------------------------------------- */

struct planned {
	struct spec spec;
	struct plan plan;
	struct err e;
	int r;
};

static void planned_done(struct planned *p)
{
	plan_done(&p->plan);
	spec_done(&p->spec);
}

/* `flags` are pairs of flag and value, ended by NULL. */
static void make(struct planned *p, const char *const *flags)
{
	*p = (struct planned){ 0 };
	spec_init(&p->spec);
	for (; *flags; flags += 2)
		if (spec_flag(&p->spec, flags[0], flags[1], &p->e) < 0)
			CHECK_STR(p->e.msg, "");
	if (spec_check(&p->spec, &p->e) < 0)
		CHECK_STR(p->e.msg, "");
	spec_resolve(&p->spec);
	p->r = plan_make(&p->plan, &p->spec, &p->e);
}

#define FLAGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void check_made(const struct planned *p)
{
	if (p->r < 0)
		CHECK_STR(p->e.msg, "");
}

static void check_refused(const struct planned *p, enum err_kind kind, const char *part)
{
	printf("# %s\n", p->e.msg);
	CHECK_INT(p->r, -1);
	CHECK_STR(err_kind_name(p->e.kind), err_kind_name(kind));
	if (!strstr(p->e.msg, part))
		CHECK_STR(p->e.msg, part);
}

static int count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- a folder for one test --------------------------------------------------------- */

static char folder[64];
static char paths[8][128];

/* A path in it; the last eight stay valid. */
static const char *in_folder(const char *prefix, const char *name)
{
	static size_t next;
	char *path = paths[next++ % COUNT(paths)];

	snprintf(path, sizeof paths[0], "%s%s/%s", prefix, folder, name);
	return path;
}

static void folder_make(void)
{
	snprintf(folder, sizeof folder, "/tmp/test-plan-XXXXXX");
	CHECK(mkdtemp(folder));
	CHECK_INT(chmod(folder, 0755), 0);
}

static void folder_remove(void)
{
	copytree_remove(AT_FDCWD, folder);
}

static void write_bytes(const char *name, const void *bytes, size_t n, mode_t mode)
{
	AUTO(fd_close)
	int fd = open(in_folder("", name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CHECK_INT(write(fd, bytes, n), (long long)n);
	CHECK_INT(fchmod(fd, mode), 0);
}

/* ---- users ------------------------------------------------------------------------- */

TEST(users_of_the_host_image)
{
	static const struct {
		const char *user;
		uint32_t uid, gid;
		bool is_known;
	} cases[] = {
		{ "agent", 1000, 1000, true },
		{ "root", 0, 0, true },
		{ "0", 0, 0, true },
		{ "123", 123, 123, true },
		{ "123:0", 123, 0, true },
		{ "0:7", 0, 7, true },
		{ "65534:65534", 65534, 65534, true },
		{ "daemon", 0, 0, false }, /* of the host; not of its image */
		{ "nobody", 0, 0, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(planned_done) struct planned p;

		make(&p, FLAGS("user", cases[i].user));
		if (!cases[i].is_known) {
			check_refused(&p, ERR_INVALID, "is not in the image");
			continue;
		}
		check_made(&p);
		CHECK_INT(p.plan.uid, cases[i].uid);
		CHECK_INT(p.plan.gid, cases[i].gid);
	}
}

TEST(ids_that_no_namespace_of_ours_has_are_refused)
{
	static const char *const users[] = { "65535", "65535:0", "0:65535", "4294967294" };

	for (size_t i = 0; i < COUNT(users); i++) {
		AUTO(planned_done) struct planned p;

		make(&p, FLAGS("user", users[i]));
		check_refused(&p, ERR_INVALID, "ids inside are 0 to 65534");
	}
}

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "#app:x:9:9:\n"
			     ":x:9:9:\n"
			     "\n"
			     "app\n"
			     "app:\n"
			     "app:x\n"
			     "app:x:9\n"
			     "app:x:9:\n"
			     "app:x::9:\n"
			     "app:x:nine:9:\n"
			     "app:x:9:nine:\n"
			     "app:x:-1:9:\n"
			     "app:x:+9:9:\n"
			     "app:x: 9:9:\n"
			     "app:x:09:9:\n"
			     "app:x:0x9:9:\n"
			     "app:x:9:9x:\n"
			     "app:x:4294967296:9:\n" /* 2^32, once root by wrapping */
			     "app:x:9:4294967295:\n"
			     "app:x:9:9\n" /* cut off: of 9, or of 900? */
			     "app:x:00000000000000000000000000000000000000000000000000:0:\n"
			     "apple:x:9:9:\n"
			     "ap:x:9:9:\n"
			     " app:x:9:9:\n"
			     "app :x:9:9:\n"
			     "app:x:33:34:the first good line:/srv:/bin/sh\n"
			     "app:x:9:9:\n"
			     "open::5:6:no password:/:/bin/sh\n"
			     "last:x:65534:65534:without a newline:/:/bin/sh";

TEST(users_of_a_folder_image_are_in_its_passwd)
{
	static const struct {
		const char *user;
		uint32_t uid, gid;
		bool is_known;
	} cases[] = {
		{ "root", 0, 0, true },         { "app", 33, 34, true },
		{ "last", 65534, 65534, true }, { "apple", 9, 9, true },
		{ "agent", 1000, 1000, true },  { "daemon", 0, 0, false },
		{ "open", 5, 6, true },         { "x", 0, 0, false },
		{ "77", 77, 77, true },
	};

	folder_make();
	CHECK_INT(mkdir(in_folder("", "etc"), 0755), 0);
	write_bytes("etc/passwd", passwd, sizeof passwd - 1, 0644);
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(planned_done) struct planned p;

		printf("# %s\n", cases[i].user);
		make(&p, FLAGS("image", in_folder("dir:", ""), "user", cases[i].user));
		CHECK_INT(p.r, cases[i].is_known ? 0 : -1);
		CHECK_INT(p.plan.uid, cases[i].uid);
		CHECK_INT(p.plan.gid, cases[i].gid);
	}
	folder_remove();
}

/* Refused, not taken from elsewhere, and above all not waited for. */
static void check_no_user(const char *why)
{
	AUTO(planned_done) struct planned p;

	printf("# %s\n", why);
	make(&p, FLAGS("image", in_folder("dir:", ""), "user", "root"));
	check_made(&p); /* root and agent are known without one */
	AUTO(planned_done) struct planned q;
	make(&q, FLAGS("image", in_folder("dir:", ""), "user", "daemon"));
	check_refused(&q, ERR_INVALID, "is not in the image");
}

TEST(a_passwd_that_is_no_file_of_the_image_has_no_users)
{
	static const char *const links[] = { "/etc/passwd", "../../../../../../etc/passwd",
		                             "/proc/self/root/etc/passwd", "passwd" };
	AUTO(freep) char *big = mem_alloc(1 << 20);

	folder_make();
	check_no_user("no /etc");
	CHECK_INT(symlink("/etc", in_folder("", "etc")), 0);
	check_no_user("/etc leads out");
	CHECK_INT(unlink(in_folder("", "etc")), 0);
	CHECK_INT(mkdir(in_folder("", "etc"), 0755), 0);
	for (size_t i = 0; i < COUNT(links); i++) {
		CHECK_INT(symlink(links[i], in_folder("", "etc/passwd")), 0);
		check_no_user(links[i]);
		CHECK_INT(unlink(in_folder("", "etc/passwd")), 0);
	}
	CHECK_INT(mkfifo(in_folder("", "etc/passwd"), 0644), 0);
	check_no_user("a fifo");
	CHECK_INT(unlink(in_folder("", "etc/passwd")), 0);
	CHECK_INT(mkdir(in_folder("", "etc/passwd"), 0755), 0);
	check_no_user("a folder");
	CHECK_INT(rmdir(in_folder("", "etc/passwd")), 0);
	write_bytes("etc/passwd", "", 0, 0644);
	check_no_user("empty");
	memset(big, 'a', 1 << 20); /* one line, no end */
	write_bytes("etc/passwd", big, 1 << 20, 0644);
	check_no_user("huge");
	write_bytes("etc/passwd", "a\0\ndaemon:x:1:1:\n", 17, 0644);
	check_no_user("behind a NUL");
	folder_remove();
}

/* ---- sources ----------------------------------------------------------------------- */

TEST(sources_are_opened_with_kind_and_owner)
{
	AUTO(planned_done) struct planned p;
	struct stat st, want;

	folder_make();
	write_bytes("file", "x", 1, 0644);
	if (geteuid() == 0)
		CHECK_INT(chown(in_folder("", "file"), 12, 34), 0);
	make(&p, FLAGS("fs", "ephemeral:/e", "fs", in_folder("ro:", "file:/f"), "fs",
	               in_folder("overlay:", ":/o")));
	check_made(&p);
	const struct plan_mount *m = p.plan.mounts;

	CHECK_INT(p.plan.n_mounts, 3);
	CHECK_INT(m[0].kind, PLAN_EPHEMERAL);
	CHECK_INT(m[0].source_fd, -1);
	CHECK(m[0].is_dir);
	CHECK_INT(m[1].kind, PLAN_RO);
	CHECK(!m[1].is_dir);
	CHECK_INT(m[2].kind, PLAN_OVERLAY);
	CHECK(m[2].is_dir);
	CHECK_INT(stat(in_folder("", "file"), &want), 0);
	CHECK_INT(fstat(m[1].source_fd, &st), 0);
	CHECK(st.st_ino == want.st_ino && m[1].uid == want.st_uid && m[1].gid == want.st_gid);
	for (size_t i = 1; i < 3; i++) {
		CHECK(fcntl(m[i].source_fd, F_GETFL) & O_PATH);
		CHECK_INT(fcntl(m[i].source_fd, F_GETFD), FD_CLOEXEC);
	}
	folder_remove();
}

static void make_socket(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	CHECK_INT(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
}

TEST(a_source_is_a_folder_or_a_file_that_exists)
{
	static const struct {
		const char *source;
		enum err_kind kind;
		const char *part;
	} cases[] = {
		{ "missing", ERR_NOT_FOUND, "/missing: No such file" },
		{ "file/below", ERR_INTERNAL, "Not a directory" },
		{ "socket", ERR_INVALID, "/socket is neither a folder nor a file" },
		{ "fifo", ERR_INVALID, "/fifo is neither a folder nor a file" },
		{ "dangling", ERR_NOT_FOUND, "/dangling: No such file" },
		{ "loop", ERR_INTERNAL, "Too many levels" },
	};

	folder_make();
	write_bytes("file", "x", 1, 0644);
	make_socket(in_folder("", "socket"));
	CHECK_INT(mkfifo(in_folder("", "fifo"), 0644), 0);
	CHECK_INT(symlink("nowhere", in_folder("", "dangling")), 0);
	CHECK_INT(symlink("loop", in_folder("", "loop")), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(planned_done) struct planned p;
		char fs[128];

		snprintf(fs, sizeof fs, "ro:%s/%s:/mnt/x", folder, cases[i].source);
		int before = count_open();
		make(&p, FLAGS("fs", "ro:/usr:/mnt/y", "fs", fs));
		check_refused(&p, cases[i].kind, cases[i].part);
		plan_done(&p.plan);
		CHECK_INT(count_open(), before);
	}
	folder_remove();
}

/* However the path is written, and whatever link leads there. */
TEST(a_file_system_of_the_kernel_is_no_source)
{
	static const char *const targets[] = { "/proc",   "/proc/self",  "/proc/self/root/proc",
		                               "/sys",    "/sys/kernel", "/proc/version",
		                               "/dev/pts" };

	folder_make();
	for (size_t i = 0; i < COUNT(targets); i++) {
		AUTO(planned_done) struct planned p, q;

		CHECK_INT(symlink(targets[i], in_folder("", "link")), 0);
		make(&p, FLAGS("fs", in_folder("ro:", "link:/mnt/x")));
		check_refused(&p, ERR_INVALID, "is a file system of the kernel");
		make(&q, FLAGS("image", in_folder("dir:", "link")));
		CHECK_INT(q.r, -1);
		CHECK_INT(unlink(in_folder("", "link")), 0);
	}
	CHECK_INT(symlink("/proc", in_folder("", "link")), 0);
	AUTO(planned_done) struct planned p;
	make(&p, FLAGS("fs", in_folder("ro:", "link/sys/kernel:/mnt/x"))); /* in the middle */
	check_refused(&p, ERR_INVALID, "is a file system of the kernel");
	folder_remove();
}

TEST(an_outer_mount_comes_before_what_lies_in_it)
{
	static const char *const want[] = { "/a", "/a-b", "/a/b", "/a/b/c", "/z" };
	AUTO(planned_done) struct planned p;

	make(&p, FLAGS("fs", "ephemeral:/z", "fs", "ephemeral:/a/b/c", "fs", "ephemeral:/a", "fs",
	               "ephemeral:/a-b", "fs", "ephemeral:/a/b"));
	check_made(&p);
	CHECK_INT(p.plan.n_mounts, COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++)
		CHECK_STR(plan_text(&p.plan, p.plan.mounts[i].at), want[i]);
}

TEST(only_a_folder_is_laid_over)
{
	AUTO(planned_done) struct planned p;

	folder_make();
	write_bytes("file", "x", 1, 0644);
	make(&p, FLAGS("fs", in_folder("overlay:", "file:/mnt/x")));
	check_refused(&p, ERR_INVALID, "is not a folder");
	folder_remove();
}

TEST(a_workspace_needs_what_is_not_here)
{
	AUTO(planned_done) struct planned p;

	make(&p, FLAGS("fs", "workspace:/work"));
	check_refused(&p, ERR_UNENFORCEABLE, "workspace:/work needs the daemon");
}

TEST(an_image_is_a_folder_that_exists)
{
	static const struct {
		const char *name;
		enum err_kind kind;
		const char *part;
	} cases[] = {
		{ "missing", ERR_NOT_FOUND, "image: open" },
		{ "file", ERR_INVALID, "is not a folder" },
		{ "fifo", ERR_INVALID, "is neither a folder nor a file" },
	};

	folder_make();
	write_bytes("file", "x", 1, 0644);
	CHECK_INT(mkfifo(in_folder("", "fifo"), 0644), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(planned_done) struct planned p;

		make(&p, FLAGS("image", in_folder("dir:", cases[i].name)));
		check_refused(&p, cases[i].kind, cases[i].part);
	}
	AUTO(planned_done) struct planned p;
	make(&p, FLAGS("image", in_folder("dir:", "")));
	check_made(&p);
	CHECK_INT(p.plan.image, IMAGE_DIR);
	CHECK(p.plan.image_fd >= 0);
	folder_remove();
}

/* In a child without rights: all groups and ids gone. */
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

static void try_sources(void)
{
	static const char *const refused[] = { "file", "dir", "dir/below", "list-only/file" };
	static const char *const taken[] = { "public", "list-only" };

	for (size_t i = 0; i < COUNT(refused); i++) {
		AUTO(planned_done) struct planned p;
		char fs[128];

		snprintf(fs, sizeof fs, "ro:%s/%s:/mnt/x", folder, refused[i]);
		make(&p, FLAGS("fs", fs));
		CHECK_INT(p.r, -1);
		CHECK_INT(p.e.sys, EACCES);
		CHECK(strstr(p.e.msg, refused[i]));
	}
	for (size_t i = 0; i < COUNT(taken); i++) {
		AUTO(planned_done) struct planned p;
		char fs[128];

		snprintf(fs, sizeof fs, "ro:%s/%s:/mnt/x", folder, taken[i]);
		make(&p, FLAGS("fs", fs));
		check_made(&p);
	}
}

TEST(what_the_caller_may_not_read_is_refused)
{
	if (geteuid() != 0)
		SKIP("needs root");
	folder_make();
	umask(0);
	write_bytes("file", "secret", 6, 0600);
	CHECK_INT(mkdir(in_folder("", "dir"), 0711), 0); /* may be passed, not read */
	CHECK_INT(mkdir(in_folder("", "dir/below"), 0700), 0);
	CHECK_INT(mkdir(in_folder("", "list-only"), 0744), 0);
	write_bytes("list-only/file", "x", 1, 0644);
	CHECK_INT(mkdir(in_folder("", "public"), 0755), 0);
	as_nobody(try_sources);
	folder_remove();
}

/* ---- the end ----------------------------------------------------------------------- */

TEST(done_gives_back_every_descriptor_and_may_come_twice)
{
	struct planned p;
	int before = count_open();

	make(&p, FLAGS("image", "dir:/usr", "fs", "ro:/usr:/mnt/a", "fs", "overlay:/usr:/mnt/b"));
	check_made(&p);
	CHECK_INT(count_open(), before + 3);
	planned_done(&p);
	plan_done(&p.plan);
	CHECK_INT(count_open(), before);
}

/* ---- in steps, for whoever may not open host paths --------------------------------- */

TEST(missing_paths_are_given_one_by_one)
{
	AUTO(spec_done) struct spec spec;
	AUTO(plan_done) struct plan p = { 0 };
	struct err e = { 0 };
	size_t which;

	folder_make();
	CHECK_INT(mkdir(in_folder("", "image"), 0755), 0);
	write_bytes("file", "x", 1, 0644);
	spec_init(&spec);
	CHECK_INT(spec_flag(&spec, "image", in_folder("dir:", "image"), &e), 0);
	CHECK_INT(spec_flag(&spec, "fs", "ephemeral:/b", &e), 0);
	CHECK_INT(spec_flag(&spec, "fs", "ro:/usr:/a", &e), 0);
	spec_resolve(&spec);
	CHECK_INT(plan_draft(&p, &spec, &e), 0);

	CHECK_STR(plan_missing(&p, &which), in_folder("", "image"));
	CHECK_INT(plan_give(&p, which, open(in_folder("", "image"), O_PATH | O_CLOEXEC), &e), 0);
	CHECK_STR(plan_missing(&p, &which), "/usr");
	CHECK_INT(plan_give(&p, which, open("/usr", O_PATH | O_CLOEXEC), &e), 0);
	CHECK_STR(plan_missing(&p, &which), NULL);
	CHECK_INT(plan_finish(&p, &spec, &e), 0);
	CHECK_INT(p.uid, 1000);
	CHECK_INT(p.n_mounts, 2);
	CHECK(p.mounts[0].is_dir && p.mounts[0].source_fd >= 0 && p.mounts[1].source_fd < 0);
	folder_remove();
}

/* What was opened for somebody is looked at all the same. */
TEST(what_is_given_may_be_refused)
{
	static const char *const given[] = { "/proc", "/dev/null", "/etc/passwd" };

	for (size_t i = 0; i < COUNT(given); i++) {
		AUTO(spec_done) struct spec spec;
		AUTO(plan_done) struct plan p = { 0 };
		struct err e = { 0 };
		size_t which;

		spec_init(&spec);
		CHECK_INT(spec_flag(&spec, "image", "dir:/usr", &e), 0);
		spec_resolve(&spec);
		CHECK_INT(plan_draft(&p, &spec, &e), 0);
		CHECK_STR(plan_missing(&p, &which), "/usr");
		CHECK_INT(plan_give(&p, which, open(given[i], O_PATH | O_CLOEXEC), &e), -1);
		printf("# %s\n", e.msg);
	}
}

TEST(a_plan_that_was_never_made_has_nothing_to_give_back)
{
	struct plan p = { 0 };

	plan_done(&p);
	CHECK(fcntl(0, F_GETFD) >= 0);
}
