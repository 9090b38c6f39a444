#include "os/unix.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fd.h"
#include "test.h"

static char top[64];

static int top_open(void)
{
	snprintf(top, sizeof top, "/tmp/test-unix-XXXXXX");
	CHECK(mkdtemp(top));
	int fd = open(top, O_PATH | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void top_remove(int fd, const char *name)
{
	CHECK_INT(unlinkat(fd, name, 0), 0);
	CHECK_INT(rmdir(top), 0);
}

static int connect_at(const char *name, int type)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof to.sun_path, "%s/%s", top, name);
	CHECK_INT(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

TEST(a_socket_has_its_mode_whatever_the_umask)
{
	static const mode_t masks[] = { 0, 022, 077, 0777 };

	for (size_t i = 0; i < COUNT(masks); i++) {
		AUTO(fd_close) int dir = top_open();
		struct stat st;

		umask(masks[i]);
		AUTO(fd_close) int fd = os_listen_at(dir, "s", SOCK_STREAM, 0600);
		CHECK(fd >= 0);
		CHECK_INT(fstatat(dir, "s", &st, 0), 0);
		CHECK_INT(st.st_mode, S_IFSOCK | 0600);
		CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
		CHECK_INT(umask(0), masks[i]);
		CHECK_INT(os_listen_at(dir, "s", SOCK_STREAM, 0600), -EADDRINUSE);
		top_remove(dir, "s");
	}
}

TEST(knocking_tells_the_living_from_the_dead)
{
	AUTO(fd_close) int dir = top_open();
	AUTO(fd_close) int fd = os_listen_at(dir, "s", SOCK_STREAM, 0600);

	CHECK_INT(os_knock_at(dir, "s", SOCK_STREAM), 0);
	CHECK_INT(os_knock_at(dir, "absent", SOCK_STREAM), -ENOENT);
	CHECK(os_knock_at(dir, "s", SOCK_SEQPACKET) < 0);
	fd_close(&fd);
	CHECK_INT(os_knock_at(dir, "s", SOCK_STREAM), -ECONNREFUSED);
	top_remove(dir, "s");
	char deep[200];
	memset(deep, 'x', sizeof deep - 1);
	deep[sizeof deep - 1] = '\0';
	CHECK_INT(os_knock_at(dir, deep, SOCK_STREAM), -ENAMETOOLONG);
	CHECK_INT(os_listen_at(dir, deep, SOCK_STREAM, 0600), -ENAMETOOLONG);
}

TEST(the_other_end_and_the_file_are_known)
{
	AUTO(fd_close) int dir = top_open();
	AUTO(fd_close) int fd = os_listen_at(dir, "s", SOCK_STREAM, 0600);
	AUTO(fd_close) int client = connect_at("s", SOCK_STREAM);
	AUTO(fd_close) int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	static struct os_peer peer;
	struct stat want, got;

	CHECK_INT(os_peer(accepted, &peer), 0);
	CHECK_INT(peer.uid, geteuid());
	CHECK_INT(peer.gid, getegid());
	CHECK_INT((int)peer.n_groups, getgroups(0, NULL));
	CHECK_INT(os_socket_option(fd, SO_ACCEPTCONN), 1);
	CHECK_INT(os_socket_option(accepted, SO_ACCEPTCONN), 0);
	CHECK_INT(os_socket_option(accepted, SO_DOMAIN), AF_UNIX);
	CHECK_INT(os_socket_option(dir, SO_DOMAIN), -EBADF); /* O_PATH */
	if (geteuid() == 0) {
		CHECK_INT(fstatat(dir, "s", &want, 0), 0);
		AUTO(fd_close) int file = os_bound_file(accepted);
		CHECK_INT(fstatat(file, "", &got, AT_EMPTY_PATH), 0);
		CHECK(want.st_ino == got.st_ino && want.st_dev == got.st_dev);
		CHECK_INT(fcntl(file, F_GETFD), FD_CLOEXEC);
		CHECK_INT(os_bound_file(client), -ENOENT);
	}
	top_remove(dir, "s");
}

TEST(a_notice_reaches_a_path_and_an_abstract_name)
{
	AUTO(fd_close) int dir = top_open();
	char path[96], name[96], got[32];

	snprintf(path, sizeof path, "%s/n", top);
	snprintf(name, sizeof name, "@%s", top);
	const char *const addresses[] = { path, name };
	for (size_t i = 0; i < COUNT(addresses); i++) {
		struct sockaddr_un at = { .sun_family = AF_UNIX };
		AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		size_t n = strlen(addresses[i]);

		memcpy(at.sun_path, addresses[i], n);
		if (at.sun_path[0] == '@')
			at.sun_path[0] = '\0';
		CHECK_INT(bind(fd, (struct sockaddr *)&at,
		               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
		          0);
		CHECK(os_notify(addresses[i], "READY=1") >= 0);
		CHECK_INT(recv(fd, got, sizeof got, 0), 7);
		CHECK(memcmp(got, "READY=1", 7) == 0);
	}
	CHECK_INT(os_notify("", "x"), -EINVAL);
	CHECK_INT(os_notify("relative", "x"), -EINVAL);
	CHECK_INT(os_notify("/absent/socket", "x"), -ENOENT);
	top_remove(dir, "n");
}

TEST(a_shared_lock_keeps_out_who_wants_it_alone)
{
	AUTO(fd_close) int dir = top_open();
	AUTO(fd_close) int a = openat(dir, "l", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	AUTO(fd_close) int b = openat(dir, "l", O_RDWR | O_CLOEXEC);
	struct flock alone = { .l_type = F_WRLCK, .l_start = 3, .l_len = 1 };

	CHECK_INT(os_lock_shared(a, 3), 0);
	CHECK_INT(os_lock_shared(b, 3), 0);
	CHECK_INT(fcntl(a, F_OFD_SETLK, &alone), -1);
	fd_close(&b);
	CHECK_INT(fcntl(a, F_OFD_SETLK, &alone), 0);
	AUTO(fd_close) int c = openat(dir, "l", O_RDWR | O_CLOEXEC);
	CHECK_INT(os_lock_shared(c, 4), 0);
	CHECK_INT(os_lock_shared(-1, 4), -EBADF);
	top_remove(dir, "l");
}

/* As seen by a child of its own. */
static int lock_in_child(int dir, int inherited)
{
	int status = 0;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = inherited >= 0 ? inherited : openat(dir, "l", O_RDWR | O_CLOEXEC);

		_exit(os_lock_process(fd) == -EAGAIN);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

TEST(a_lock_of_a_process_is_not_its_childrens)
{
	AUTO(fd_close) int dir = top_open();
	AUTO(fd_close) int fd = openat(dir, "l", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(os_lock_process(fd), 0);
	CHECK_INT(lock_in_child(dir, -1), 1);
	CHECK_INT(lock_in_child(dir, fd), 1); /* the same descriptor does not help */
	fd_close(&fd);
	CHECK_INT(lock_in_child(dir, -1), 0);
	top_remove(dir, "l");
}
