#include "cli/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "test.h"

static char top[] = "/tmp/caisson-pack.XXXXXX";

static void make_top(void)
{
	CHECK(mkdtemp(top) != NULL);
	CHECK_INT(chdir(top), 0);
	umask(022);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_top(void)
{
	nftw(top, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), (long long)strlen(text));
	close(fd);
}

static const char *get(const char *path)
{
	static char buf[256];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n < 0 ? "(none)" : buf;
}

struct source {
	int fd;
	char buf[4096];
};

static long from_fd(void *arg, const void **bytes, struct err *e)
{
	struct source *s = arg;
	ssize_t n = read(s->fd, s->buf, sizeof s->buf);

	*bytes = s->buf;
	return n < 0 ? err_sys(e, errno, "read") : (long)n;
}

static int unpack(const char *archive, const char *into, struct unpacked *got, struct err *e)
{
	struct source s = { .fd = open(archive, O_RDONLY) };
	AUTO(fd_close) int dir = -1;

	mkdir(into, 0755);
	dir = open(into, O_RDONLY | O_DIRECTORY);
	CHECK(s.fd >= 0 && dir >= 0);
	int r = unpack_folder(dir, from_fd, &s, got, e);
	close(s.fd);
	return r;
}

TEST(a_folder_goes_there_and_back)
{
	struct unpacked got;
	struct err e = { 0 };
	struct stat st;

	make_top();
	CHECK_INT(mkdir("in", 0755) | mkdir("in/sub", 0750) | mkdir("in/empty", 0755), 0);
	put("in/a", "hello");
	put("in/sub/b \xff\n", "bytes");
	put("in/run", "#!/bin/sh\n");
	CHECK_INT(chmod("in/run", 04755), 0);
	CHECK_INT(symlink("../a", "in/sub/link") | mkfifo("in/fifo", 0600), 0);
	int fd = open("x.tar", O_WRONLY | O_CREAT, 0600);
	CHECK_INT(pack_folder("in//", fd, &e), 0);
	close(fd);
	CHECK_INT(unpack("x.tar", "out", &got, &e), 0);
	CHECK_INT((long long)got.files, 3);
	CHECK_INT((long long)got.left_out, 0);
	CHECK_STR(get("out/a"), "hello");
	CHECK_STR(get("out/sub/b \xff\n"), "bytes");
	CHECK_STR(get("out/sub/link"), "hello");
	CHECK(lstat("out/empty", &st) == 0 && S_ISDIR(st.st_mode));
	CHECK(lstat("out/run", &st) == 0 && (st.st_mode & 07777) == 0755);
	CHECK(lstat("out/fifo", &st) < 0);
	/* Again, over what is there. */
	put("out/a", "old");
	CHECK_INT(unpack("x.tar", "out", &got, &e), 0);
	CHECK_STR(get("out/a"), "hello");
	remove_top();
}

TEST(what_cannot_be_read_is_an_error)
{
	struct err e = { 0 };
	char byte;
	int fds[2];

	CHECK_INT(pipe2(fds, O_NONBLOCK), 0);
	CHECK_INT(pack_folder("/nonexistent", fds[1], &e), -1);
	CHECK(strstr(e.msg, "No such file") != NULL);
	CHECK(read(fds[0], &byte, 1) < 0); /* also no end of an archive */
}

struct row {
	const char *name;
	mode_t type;
	const char *link, *hard;
};

static void write_archive(const struct row *rows, size_t n)
{
	struct archive *a = archive_write_new();

	archive_write_set_format_pax_restricted(a);
	CHECK_INT(archive_write_open_filename(a, "x.tar"), ARCHIVE_OK);
	for (size_t i = 0; i < n; i++) {
		struct archive_entry *entry = archive_entry_new();

		archive_entry_set_pathname(entry, rows[i].name);
		archive_entry_set_mode(entry, rows[i].type | 0777);
		archive_entry_set_size(entry, rows[i].type == S_IFREG && !rows[i].hard ? 4 : 0);
		if (rows[i].link)
			archive_entry_set_symlink(entry, rows[i].link);
		if (rows[i].hard)
			archive_entry_set_hardlink(entry, rows[i].hard);
		CHECK(archive_write_header(a, entry) >= ARCHIVE_WARN);
		if (rows[i].type == S_IFREG && !rows[i].hard)
			CHECK_INT(archive_write_data(a, "evil", 4), 4);
		archive_entry_free(entry);
	}
	archive_write_close(a);
	archive_write_free(a);
}

TEST(a_hostile_archive_stays_in_its_folder)
{
	static const struct {
		struct row rows[2];
		int result;
		int left_out;
	} tries[] = {
		{ { { "/abs", S_IFREG, NULL, NULL } }, -1, 0 },
		{ { { "../up", S_IFREG, NULL, NULL } }, -1, 0 },
		{ { { "a/../../up", S_IFREG, NULL, NULL } }, -1, 0 },
		/* Links that lead out are not made, and what is written behind one lands inside. */
		{ { { "l", S_IFLNK, "..", NULL }, { "l/up", S_IFREG, NULL, NULL } }, 0, 1 },
		{ { { "l", S_IFLNK, "/tmp", NULL }, { "l/up", S_IFREG, NULL, NULL } }, 0, 1 },
		{ { { "l", S_IFLNK, "a/../..", NULL } }, 0, 1 },
		{ { { "d/l", S_IFLNK, "../..", NULL } }, 0, 1 },
		/* One that stays is made; nothing is written through it. */
		{ { { "l", S_IFLNK, "d", NULL }, { "l/x", S_IFREG, NULL, NULL } }, -1, 0 },
		{ { { "l", S_IFLNK, "secret", NULL }, { "l", S_IFREG, NULL, NULL } }, 0, 0 },
		{ { { "dev", S_IFCHR, NULL, NULL }, { "pipe", S_IFIFO, NULL, NULL } }, 0, 2 },
		{ { { "h", S_IFREG, NULL, "/etc/passwd" } }, 0, 1 },
	};

	make_top();
	for (size_t i = 0; i < COUNT(tries); i++) {
		struct unpacked got;
		struct err e = { 0 };
		char into[16];
		struct stat st;

		put("secret", "untouched");
		snprintf(into, sizeof into, "out%zu", i);
		write_archive(tries[i].rows, tries[i].rows[1].name ? 2 : 1);
		CHECK_INT(unpack("x.tar", into, &got, &e), tries[i].result);
		if (tries[i].result == 0)
			CHECK_INT((long long)got.left_out, tries[i].left_out);
		CHECK(lstat("up", &st) < 0 && lstat("/tmp/up", &st) < 0 && lstat("/abs", &st) < 0);
		CHECK_STR(get("secret"), "untouched");
	}
	remove_top();
}

TEST(an_archive_that_is_cut_is_an_error)
{
	static const struct row rows[] = { { "a", S_IFREG, NULL, NULL } };
	struct unpacked got;
	struct err e = { 0 };

	make_top();
	write_archive(rows, 1);
	CHECK_INT(truncate("x.tar", 514), 0);
	CHECK_INT(unpack("x.tar", "out", &got, &e), -1);
	put("x.tar", "this is no archive");
	CHECK_INT(unpack("x.tar", "out", &got, &e), -1);
	remove_top();
}
