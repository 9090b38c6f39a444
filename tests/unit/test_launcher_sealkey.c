#include "launcher/sealkey.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "test.h"

static int folder(void)
{
	char path[] = "/tmp/sealkey-XXXXXX";

	CHECK(mkdtemp(path));
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0 && rmdir(path) == 0 && mkdir(path, 0700) == 0);
	close(fd);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void clean(int dir)
{
	char path[PATH_MAX], link[64];

	snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
	ssize_t n = readlink(link, path, sizeof path - 1);

	CHECK(n > 0);
	path[n] = '\0';
	(void)unlinkat(dir, "gate.key", 0);
	CHECK_INT(rmdir(path), 0);
}

static int read_key(int fd, char text[128])
{
	int n = os_pread(fd, text, 127, 0);

	CHECK(n >= 0);
	text[n] = '\0';
	return n;
}

TEST(made_once_and_then_the_same)
{
	AUTO(fd_close) int dir = folder();
	char one[128], two[128];
	struct stat st;
	struct err e = { 0 };
	AUTO(fd_close) int first = sealkey_open(dir, NULL, &e);
	AUTO(fd_close) int second = sealkey_open(dir, NULL, &e);

	CHECK(first >= 0 && second >= 0);
	CHECK_INT(read_key(first, one), 65);
	(void)read_key(second, two);
	CHECK_STR(one, two);
	CHECK_INT((long long)strspn(one, "0123456789abcdef"), 64);
	CHECK_INT(fstatat(dir, "gate.key", &st, 0), 0);
	CHECK_INT(st.st_mode & 07777, 0600);
	CHECK_INT(faccessat(dir, "gate.key.new", F_OK, 0), -1);
	clean(dir);
}

/* The daemon may write to the folder: what it puts there is no key. */
TEST(a_file_that_is_open_to_others_or_no_file_is_refused)
{
	AUTO(fd_close) int dir = folder();
	struct err e = { 0 };
	int fd = openat(dir, "gate.key", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && fchmod(fd, 0640) == 0);
	close(fd);
	CHECK_INT(sealkey_open(dir, NULL, &e), -1);
	CHECK(strstr(e.msg, "open to others"));
	CHECK_INT(unlinkat(dir, "gate.key", 0), 0);
	CHECK_INT(symlinkat("/etc/passwd", dir, "gate.key"), 0);
	CHECK_INT(sealkey_open(dir, NULL, &e), -1);
	clean(dir);
}

TEST(from_a_variable_or_not_at_all)
{
	char text[128];
	struct err e = { 0 };

	CHECK_INT(setenv("SEAL_TEST", "0011", 1), 0);
	CHECK_INT(sealkey_open(-1, "env:SEAL_TEST", &e), -1);
	CHECK_INT(sealkey_take("env:SEAL_TEST", &e), 0);
	CHECK(!getenv("SEAL_TEST"));
	AUTO(fd_close) int fd = sealkey_open(-1, "env:SEAL_TEST", &e);
	AUTO(fd_close) int again = sealkey_open(-1, "env:SEAL_TEST", &e);

	CHECK_INT(read_key(again, text), 4);
	CHECK_INT(read_key(fd, text), 4);
	CHECK_STR(text, "0011");
	CHECK_INT(sealkey_take("env:SEAL_TEST_NOT", &e), 0);
	CHECK_INT(sealkey_take(NULL, &e), 0);
	CHECK_INT(sealkey_open(-1, "keyring:caisson-no-such-key", &e), -1);
	CHECK_INT(sealkey_open(-1, "file:/x", &e), -1);
	CHECK(strstr(e.msg, "env:NAME"));
}
