/*
 * What the package cache can still do, asked of the kernel by a child that reports through a pipe.
 */
#include "cache/harden.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "test.h"

static int report[2];

static void say(const char *what, long r)
{
	dprintf(report[1], "%s %s\n", what, r < 0 ? strerrorname_np(errno) : "ok");
}

static void try_all(int dir)
{
	char *const argv[] = { NULL };
	int fd = openat(dir, "tmp.1", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	say("make", fd);
	say("write", pwrite(fd, "x", 1, 0));
	say("sync", fdatasync(fd));
	say("rename", renameat(dir, "tmp.1", dir, "a"));
	say("unlink", unlinkat(dir, "a", 0));
	say("folder", mkdirat(dir, "b", 0700));
	say("link", syscall(SYS_symlinkat, "/etc", dir, "c"));
	say("up", openat(dir, "../caisson-test-up", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	say("hosts", open("/etc/hosts", O_RDONLY | O_CLOEXEC));
	say("passwd", open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	say("chmod", fchmod(fd, 0777));
	say("tcp", socket(AF_INET, SOCK_STREAM, 0));
	say("unix", socket(AF_UNIX, SOCK_STREAM, 0));
	say("listen", listen(fd, 1));
	say("fork", fork());
	say("execve", execve("/bin/true", argv, argv));
	say("kill", kill(1, 0));
}

TEST(its_own_folder_and_nothing_else)
{
	static char text[4096];
	char dir_name[] = "/tmp/caisson-test-XXXXXX";
	struct err e = { 0 };
	size_t n = 0;
	ssize_t r;

	CHECK(mkdtemp(dir_name));
	AUTO(fd_close) int dir = open(dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(pipe2(report, O_CLOEXEC), 0);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		if (harden_cache(dir, &e) < 0)
			dprintf(report[1], "%s\n", e.msg);
		else
			try_all(dir);
		_exit(0);
	}
	fd_close(&report[1]);
	while ((r = read(report[0], text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)r;
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_STR(text,
	          "make ok\nwrite ok\nsync ok\nrename ok\nunlink ok\nfolder ok\nlink ENOSYS\n"
	          "up EACCES\nhosts ok\npasswd EACCES\nchmod ENOSYS\ntcp ok\nunix EAFNOSUPPORT\n"
	          "listen ENOSYS\nfork ENOSYS\nexecve ENOSYS\nkill ENOSYS\n");
	CHECK_INT(unlinkat(dir, "b", AT_REMOVEDIR), 0);
	CHECK_INT(rmdir(dir_name), 0);
}
