#include "os/file.h"

#include <linux/openat2.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "test.h"

/* ---- a folder for one test --------------------------------------------------------- */

static char folder[64];

static int folder_open(void)
{
	snprintf(folder, sizeof folder, "/tmp/test-os-file-XXXXXX");
	CHECK(mkdtemp(folder));
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

/* With what is in it, the deepest first. */
static void folder_remove(int dir, const char *const *names)
{
	for (; *names; names++)
		if (unlinkat(dir, *names, 0) < 0)
			CHECK_INT(unlinkat(dir, *names, AT_REMOVEDIR), 0);
	CHECK_INT(rmdir(folder), 0);
}
#define REMOVE(dir, ...)                                                                           \
	folder_remove(dir, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void file_is(int dir, const char *name, const char *want)
{
	char text[64];

	CHECK_INT(os_read_file(dir, name, text, sizeof text), (long long)strlen(want));
	CHECK_STR(text, want);
}

/* ---- reading ----------------------------------------------------------------------- */

TEST(read_file_takes_what_fits_and_ends_it)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *want;
	} cases[] = {
		{ "", 8, "" },
		{ "abc", 8, "abc" },
		{ "1234567", 8, "1234567" },
		{ "12345678", 8, "1234567" },
		{ "123456789", 8, "1234567" },
		{ "abc", 1, "" },
	};
	AUTO(fd_close) int dir = folder_open();

	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[16];

		memset(text, '#', sizeof text);
		CHECK_INT(os_make_file(dir, "f", cases[i].bytes, strlen(cases[i].bytes), 0600), 0);
		CHECK_INT(os_read_file(dir, "f", text, cases[i].size),
		          (long long)strlen(cases[i].want));
		CHECK_STR(text, cases[i].want);
		CHECK_INT(text[cases[i].size], '#');
		CHECK_INT(os_unlinkat(dir, "f"), 0);
	}
	REMOVE(dir);
}

/* /proc gives a page at a time, a pipe what is there. */
TEST(read_file_goes_on_until_the_end)
{
	static char text[1 << 20];
	AUTO(fd_close) int fd = memfd_create("test", MFD_CLOEXEC);
	char path[32];
	int pipe_fds[2];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	CHECK_INT(ftruncate(fd, 300000), 0);
	CHECK_INT(os_read_file(AT_FDCWD, path, text, sizeof text), 300000);

	CHECK_INT(os_pipe(pipe_fds, 0), 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 3; i++) {
			(void)!write(pipe_fds[1], "abc", 3);
			usleep(2000);
		}
		_exit(0);
	}
	fd_close(&pipe_fds[1]);
	snprintf(path, sizeof path, "/proc/self/fd/%d", pipe_fds[0]);
	file_is(AT_FDCWD, path, "abcabcabc");
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	fd_close(&pipe_fds[0]);
}

TEST(read_file_says_why_not)
{
	char text[8];

	CHECK_INT(os_read_file(AT_FDCWD, "/absent", text, sizeof text), -ENOENT);
	CHECK_INT(os_read_file(AT_FDCWD, "/", text, sizeof text), -EISDIR);
	CHECK_INT(os_read_file(-1, "x", text, sizeof text), -EBADF);
}

TEST(readlink_is_terminated_or_refused_never_cut)
{
	AUTO(fd_close) int dir = folder_open();
	char text[16];

	CHECK_INT(os_symlinkat("1234567", dir, "link"), 0);
	CHECK_INT(os_readlinkat(dir, "link", text, 7), -ENAMETOOLONG);
	CHECK_INT(os_readlinkat(dir, "link", text, 8), 7);
	CHECK_STR(text, "1234567");
	CHECK_INT(os_readlinkat(dir, ".", text, sizeof text), -EINVAL);
	CHECK_INT(os_readlinkat(dir, "absent", text, sizeof text), -ENOENT);
	REMOVE(dir, "link");
}

/* ---- making ------------------------------------------------------------------------ */

TEST(make_file_never_touches_what_is_there)
{
	AUTO(fd_close) int dir = folder_open();

	CHECK_INT(os_make_file(dir, "victim", "old", 3, 0600), 0);
	CHECK_INT(os_symlinkat("victim", dir, "link"), 0);
	CHECK_INT(os_symlinkat("nowhere", dir, "dangling"), 0);
	CHECK_INT(os_make_file(dir, "victim", "new", 3, 0600), -EEXIST);
	CHECK_INT(os_make_file(dir, "link", "new", 3, 0600), -EEXIST);
	CHECK_INT(os_make_file(dir, "dangling", "new", 3, 0600), -EEXIST);
	CHECK_INT(faccessat(dir, "nowhere", F_OK, 0), -1);
	file_is(dir, "victim", "old");
	REMOVE(dir, "victim", "link", "dangling");
}

TEST(make_file_has_the_bytes_and_the_mode)
{
	AUTO(fd_close) int dir = folder_open();
	struct stat st;

	umask(022);
	CHECK_INT(os_make_file(dir, "f", "a\0b", 3, 0666), 0);
	CHECK_INT(os_fstatat(dir, "f", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_INT(st.st_mode & 07777, 0644);
	CHECK_INT(st.st_size, 3);
	CHECK_INT(os_make_file(dir, "empty", NULL, 0, 0600), 0);
	CHECK_INT(os_fstatat(dir, "empty", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_INT(st.st_size, 0);
	REMOVE(dir, "f", "empty");
}

TEST(write_file_never_creates)
{
	AUTO(fd_close) int dir = folder_open();

	CHECK_INT(os_write_file(dir, "f", "x"), -ENOENT);
	CHECK_INT(os_make_file(dir, "f", "abc", 3, 0600), 0);
	CHECK_INT(os_write_file(dir, "f", "x"), 0);
	file_is(dir, "f", "xbc"); /* nor truncates: control files do not need it */
	REMOVE(dir, "f");
}

TEST(write_all_outlasts_short_writes)
{
	enum { BYTES = 1 << 20 };
	AUTO(freep) char *bytes = mem_alloc(BYTES);
	int fds[2];
	size_t got = 0;

	CHECK_INT(os_pipe(fds, 0), 0);
	pid_t pid = fork();
	if (pid == 0) {
		fd_close(&fds[0]);
		_exit(os_write_all(fds[1], bytes, BYTES) == 0 ? 0 : 1);
	}
	fd_close(&fds[1]);
	for (ssize_t n = 1; n > 0; got += (size_t)n)
		n = read(fds[0], bytes, 10007);
	CHECK_INT(got, BYTES);
	int status;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	fd_close(&fds[0]);
}

TEST(write_all_says_why_not)
{
	AUTO(fd_close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	CHECK_INT(os_write_all(full, "x", 1), -ENOSPC);
	CHECK_INT(os_write_all(-1, "x", 1), -EBADF);
	CHECK_INT(os_write_all(-1, "x", 0), 0);
}

TEST(mkdir_and_rmdir_answer_with_errno)
{
	AUTO(fd_close) int dir = folder_open();

	CHECK_INT(os_mkdirat(dir, "d", 0700), 0);
	CHECK_INT(os_mkdirat(dir, "d", 0700), -EEXIST);
	CHECK_INT(os_mkdirat(dir, "d/e", 0700), 0);
	CHECK_INT(os_rmdirat(dir, "d"), -ENOTEMPTY);
	CHECK_INT(os_unlinkat(dir, "d"), -EISDIR);
	CHECK_INT(os_rmdirat(dir, "d/e"), 0);
	CHECK_INT(os_rmdirat(dir, "d"), 0);
	CHECK_INT(os_rmdirat(dir, "d"), -ENOENT);
	REMOVE(dir);
}

/* ---- descriptors ------------------------------------------------------------------- */

TEST(every_descriptor_is_close_on_exec)
{
	int fds[] = { os_openat(AT_FDCWD, "/", O_RDONLY, 0),
		      os_openat2(AT_FDCWD, "/", O_RDONLY, 0, 0), -1, -1 };

	CHECK_INT(os_pipe(&fds[2], O_NONBLOCK), 0);
	for (size_t i = 0; i < COUNT(fds); i++) {
		CHECK_INT(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		fd_close(&fds[i]);
	}
}

TEST(dup3_survives_exec_unless_told)
{
	CHECK_INT(os_dup3(0, 100, 0), 100);
	CHECK_INT(fcntl(100, F_GETFD), 0);
	CHECK_INT(os_dup3(0, 100, O_CLOEXEC), 100);
	CHECK_INT(fcntl(100, F_GETFD), FD_CLOEXEC);
	CHECK_INT(os_close_range(100, 200, 0), 0);
	CHECK_INT(fcntl(100, F_GETFD), -1);
}

/* What place.c and plan.c build on. */
TEST(openat2_holds_to_its_resolve_flags)
{
	static const struct {
		const char *path;
		uint64_t resolve;
		int want; /* 0: opens */
	} cases[] = {
		{ "d/f", 0, 0 },
		{ "to-d/f", 0, 0 },
		{ "to-d/f", RESOLVE_NO_SYMLINKS, -ELOOP },
		{ "d/to-f", RESOLVE_NO_SYMLINKS, -ELOOP },
		{ "d/f", RESOLVE_NO_SYMLINKS, 0 },
		{ "to-root", 0, 0 },
		{ "to-root", RESOLVE_BENEATH, -EXDEV },
		{ "../..", RESOLVE_BENEATH, -EXDEV },
		{ "d/../d/f", RESOLVE_BENEATH, 0 },
		{ "/d/f", RESOLVE_BENEATH, -EXDEV },
		{ "/d/f", RESOLVE_IN_ROOT, 0 },
		{ "../../../d/f", RESOLVE_IN_ROOT, 0 },
		{ "to-passwd", 0, 0 },
		{ "to-passwd", RESOLVE_IN_ROOT, -ENOENT }, /* /etc/passwd of the folder */
	};
	AUTO(fd_close) int dir = folder_open();

	CHECK_INT(os_mkdirat(dir, "d", 0700), 0);
	CHECK_INT(os_make_file(dir, "d/f", "x", 1, 0600), 0);
	CHECK_INT(os_symlinkat("d", dir, "to-d"), 0);
	CHECK_INT(os_symlinkat("f", dir, "d/to-f"), 0);
	CHECK_INT(os_symlinkat("/", dir, "to-root"), 0);
	CHECK_INT(os_symlinkat("/etc/passwd", dir, "to-passwd"), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(fd_close)
		int fd = os_openat2(dir, cases[i].path, O_PATH, 0, cases[i].resolve);

		printf("# %s\n", cases[i].path);
		CHECK_INT(fd < 0 ? fd : 0, cases[i].want);
	}
	REMOVE(dir, "d/to-f", "d/f", "d", "to-d", "to-root", "to-passwd");
}

/* openat2 refuses a mode without O_CREAT; the wrapper only passes it with. */
TEST(openat2_uses_the_mode_only_to_create)
{
	AUTO(fd_close) int dir = folder_open();
	struct stat st;

	umask(0);
	AUTO(fd_close) int made = os_openat2(dir, "f", O_WRONLY | O_CREAT | O_EXCL, 0640, 0);
	CHECK(made >= 0);
	CHECK_INT(os_fstatat(made, "", &st, AT_EMPTY_PATH), 0);
	CHECK_INT(st.st_mode & 07777, 0640);
	AUTO(fd_close) int again = os_openat2(dir, "f", O_RDONLY, 0640, 0);
	CHECK(again >= 0);
	REMOVE(dir, "f");
}

TEST(statfs_type_by_path_and_by_descriptor)
{
	enum { PROC_MAGIC = 0x9fa0 };
	AUTO(fd_close) int proc = os_openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);
	int64_t type = 0;

	CHECK_INT(os_statfs_type(-1, "/proc", &type), 0);
	CHECK_INT(type, PROC_MAGIC);
	type = 0;
	CHECK_INT(os_statfs_type(proc, NULL, &type), 0);
	CHECK_INT(type, PROC_MAGIC);
	type = 7;
	CHECK_INT(os_statfs_type(-1, "/absent", &type), -ENOENT);
	CHECK_INT(type, 7);
}

/* ---- byte locks -------------------------------------------------------------------- */

/* The same file again, as a description of its own. */
static int open_again(int fd, int how)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, how | O_CLOEXEC);
	CHECK(again >= 0);
	return again;
}

static int reopen(int fd)
{
	return open_again(fd, O_RDWR);
}

TEST(a_byte_has_one_holder_and_its_neighbours_are_free)
{
	AUTO(fd_close) int a = memfd_create("locks", MFD_CLOEXEC);
	AUTO(fd_close) int b = reopen(a);

	CHECK_INT(os_lock_byte(a, 5), 0);
	CHECK_INT(os_lock_byte(b, 5), -EAGAIN);
	CHECK_INT(os_lock_byte(b, 4), 0);
	CHECK_INT(os_lock_byte(b, 6), 0);
	CHECK_INT(os_lock_byte(a, 5), 0); /* its own: again */
	CHECK_INT(os_unlock_byte(a, 5), 0);
	CHECK_INT(os_lock_byte(b, 5), 0);
	CHECK_INT(os_lock_byte(a, 5), -EAGAIN);
}

TEST(locked_means_by_another)
{
	AUTO(fd_close) int a = memfd_create("locks", MFD_CLOEXEC);
	AUTO(fd_close) int b = reopen(a);

	AUTO(fd_close) int to_read = open_again(a, O_RDONLY);

	CHECK_INT(os_any_locked(b), 0);
	CHECK_INT(os_lock_byte(a, 1), 0);
	CHECK_INT(os_any_locked(a), 0);
	CHECK_INT(os_any_locked(b), 1);
	CHECK_INT(os_any_locked(to_read), 1);
	CHECK_INT(os_unlock_byte(a, 1), 0);
	CHECK_INT(os_lock_byte(a, 1 << 20), 0); /* any byte */
	CHECK_INT(os_any_locked(to_read), 1);
	CHECK_INT(os_any_locked(-1), -EBADF);
}

/* Not so with the locks of POSIX, which any close() in the process drops. */
TEST(a_lock_stays_until_the_last_copy_of_the_descriptor_goes)
{
	AUTO(fd_close) int a = memfd_create("locks", MFD_CLOEXEC);
	AUTO(fd_close) int b = reopen(a);
	AUTO(fd_close) int copy = dup(a);
	int other = reopen(a);

	CHECK_INT(os_lock_byte(a, 0), 0);
	fd_close(&other);
	CHECK_INT(os_any_locked(b), 1);
	fd_close(&a);
	CHECK_INT(os_any_locked(b), 1);
	fd_close(&copy);
	CHECK_INT(os_any_locked(b), 0);
}
