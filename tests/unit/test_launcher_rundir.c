#include "launcher/rundir.h"

#include "test_launcher.h"

static char top[64], state[96], run[96];

static struct rundir_opts options(void)
{
	snprintf(top, sizeof top, "/tmp/test-rundir-XXXXXX");
	CHECK(mkdtemp(top));
	CHECK_INT(chmod(top, 0755), 0);
	snprintf(state, sizeof state, "%s/state", top);
	snprintf(run, sizeof run, "%s/run", top);
	return (struct rundir_opts){ .state = state,
		                     .run = run,
		                     .is_root = geteuid() == 0,
		                     .service_id = SERVER_ID,
		                     .api_fd = -1 };
}

static void clear(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", top, NULL);
		_exit(1);
	}
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static int refused(const struct rundir_opts *o, struct err *e)
{
	struct rundir d;
	int r = rundir_open(&d, o, e);

	rundir_done(&d, true);
	rundir_done(&d, true);
	return r;
}

static bool busy_in_child(const struct rundir_opts *o)
{
	int status = 0;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = { 0 };
		struct rundir d;

		_exit(rundir_open(&d, o, &e) < 0 && e.sys == EBUSY);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status) == 1;
}

TEST(an_empty_one_is_never_opened_and_closes_nothing)
{
	struct rundir none = { 0 };

	rundir_done(&none, true);
	CHECK(fcntl(0, F_GETFD) >= 0);
}

TEST(opened_closed_and_opened_again)
{
	struct rundir_opts o = options();

	for (int i = 0; i < 3; i++) {
		struct rundir d;
		struct err e = { 0 };

		CHECK_INT(rundir_open(&d, &o, &e), 0);
		CHECK(d.is_api_ours);
		CHECK(busy_in_child(&o));
		rundir_done(&d, true);
	}
	clear();
}

TEST(folders_that_are_not_ours_to_use_are_refused)
{
	struct err e = { 0 };
	struct rundir_opts o = options();

	o.state = "relative";
	CHECK_INT(refused(&o, &e), -1);
	o.state = state;
	CHECK_INT(chmod(run, 0777), 0); /* it was made before the state was looked at */
	CHECK_INT(refused(&o, &e), -1); /* anybody could replace the socket */
	CHECK_INT(chmod(run, 0755), 0);
	CHECK_INT(symlink("/tmp", state), 0);
	CHECK_INT(refused(&o, &e), -1);
	CHECK_INT(unlink(state), 0);
	CHECK_INT(refused(&o, &e), 0);
	if (geteuid() == 0) {
		CHECK_INT(chown(state, 54321, 54321), 0);
		CHECK_INT(refused(&o, &e), -1);
		CHECK(strstr(e.msg, "somebody else"));
	}
	clear();
}

TEST(a_folder_of_roots_is_handed_over_only_when_empty)
{
	struct err e = { 0 };
	struct rundir_opts o = options();
	struct stat st;
	char file[128];

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(mkdir(state, 0755), 0);
	snprintf(file, sizeof file, "%s/file", state);
	CHECK_INT(mknod(file, S_IFREG | 0644, 0), 0);
	CHECK_INT(refused(&o, &e), -1);
	CHECK_INT(stat(state, &st), 0);
	CHECK_INT(st.st_uid, 0);
	CHECK_INT(unlink(file), 0);
	CHECK_INT(refused(&o, &e), 0);
	CHECK_INT(stat(state, &st), 0);
	CHECK_INT(st.st_uid, 0);
	CHECK_INT(st.st_gid, SERVER_ID);
	CHECK_INT(st.st_mode, S_IFDIR | 01770);
	CHECK_INT(mknod(file, S_IFREG | 0644, 0), 0);
	CHECK_INT(refused(&o, &e), 0); /* the daemon's already */
	CHECK_INT(chmod(state, 0755), 0);
	CHECK_INT(refused(&o, &e), -1);
	CHECK_INT(chown(state, SERVER_ID, SERVER_ID), 0);
	CHECK_INT(chmod(state, 0700), 0);
	CHECK_INT(refused(&o, &e), 0); /* as daemons before had it */
	CHECK_INT(stat(state, &st), 0);
	CHECK_INT(st.st_uid, 0);
	CHECK_INT(st.st_mode, S_IFDIR | 01770);
	clear();
}

/* As the daemon, which may write to the state folder: 0 or the errno. */
static int as_daemon(int (*attempt)(void))
{
	int status = 0;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || os_set_ids(SERVER_ID, SERVER_ID) < 0)
			_exit(255);
		_exit(attempt() < 0 ? errno : 0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static int make_own(void)
{
	return mkdir("own", 0700);
}

static int swap_two(void)
{
	return renameat2(AT_FDCWD, "trees", AT_FDCWD, "blobs", RENAME_EXCHANGE);
}

static int swap_for_own(void)
{
	return renameat2(AT_FDCWD, "trees", AT_FDCWD, "own", RENAME_EXCHANGE);
}

static int move_away(void)
{
	return rename("trees", "gone");
}

static int remove_one(void)
{
	return rmdir("trees");
}

static int open_one(void)
{
	return open("trees", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_it_to_all(void)
{
	return chmod(".", 0777);
}

TEST(the_daemon_cannot_replace_what_workspaces_keep)
{
	static const struct {
		int (*attempt)(void);
		int error;
	} rows[] = { { make_own, 0 },          { swap_two, EPERM },   { swap_for_own, EPERM },
		     { move_away, EPERM },     { remove_one, EPERM }, { open_one, EACCES },
		     { open_it_to_all, EPERM } };
	struct err e = { 0 };
	struct rundir_opts o = options();

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(refused(&o, &e), 0);
	CHECK_INT(chdir(state), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# row %zu\n", i);
		CHECK_INT(as_daemon(rows[i].attempt), rows[i].error);
	}
	CHECK_INT(refused(&o, &e), 0);
	clear();
}

/* Whatever lies at that name and is not root's alone is refused. */
TEST(a_store_that_others_made_or_can_read_is_refused)
{
	static const struct {
		const char *name;
		uid_t owner;
		mode_t mode;
	} rows[] = { { "trees", SERVER_ID, 0700 },
		     { "blobs", 0, 0750 },
		     { "vol", 0, 0701 },
		     { "vol", 54321, 0700 } };
	struct err e = { 0 };

	if (geteuid() != 0)
		SKIP("needs root");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rundir_opts o = options();
		char path[128];

		CHECK_INT(refused(&o, &e), 0);
		snprintf(path, sizeof path, "%s/%s", state, rows[i].name);
		CHECK_INT(chown(path, rows[i].owner, 0), 0);
		CHECK_INT(chmod(path, rows[i].mode), 0);
		CHECK_INT(refused(&o, &e), -1);
		CHECK(strstr(e.msg, rows[i].name));
		CHECK_INT(rmdir(path), 0);
		CHECK_INT(symlink("/tmp", path), 0);
		CHECK_INT(refused(&o, &e), -1);
		clear();
	}
}

TEST(a_stale_socket_is_removed_and_another_file_is_not)
{
	struct err e = { 0 };
	struct rundir_opts o = options();

	CHECK_INT(mkdir(run, 0755), 0);
	AUTO(fd_close) int dir = open(run, O_PATH | O_CLOEXEC);
	int dead = os_listen_at(dir, "api.sock", SOCK_STREAM, 0600);
	fd_close(&dead);
	CHECK_INT(refused(&o, &e), 0);
	CHECK_INT(mknodat(dir, "api.sock", S_IFREG | 0600, 0), 0);
	CHECK_INT(refused(&o, &e), -1);
	CHECK(strstr(e.msg, "not a socket"));
	CHECK_INT(unlinkat(dir, "api.sock", 0), 0);
	clear();
}

TEST(a_socket_that_was_passed_is_used_and_not_removed)
{
	struct err e = { 0 };
	struct rundir_opts o = options();
	struct rundir d;

	AUTO(fd_close) int dir = open(top, O_PATH | O_CLOEXEC);
	int pair[2];
	CHECK_INT(os_socketpair(pair, SOCK_STREAM), 0);
	const int bad[] = { pair[0], os_listen_at(dir, "packets", SOCK_SEQPACKET, 0600),
		            open("/dev/null", O_RDWR | O_CLOEXEC) };
	for (size_t i = 0; i < COUNT(bad); i++) {
		o.api_fd = bad[i];
		CHECK_INT(rundir_open(&d, &o, &e), -1);
		CHECK(strstr(e.msg, "listening unix stream"));
		rundir_done(&d, true);
	}
	o.api_fd = os_listen_at(dir, "given.sock", SOCK_STREAM, 0600);
	CHECK_INT(rundir_open(&d, &o, &e), 0);
	CHECK(!d.is_api_ours);
	rundir_done(&d, true);
	CHECK_INT(faccessat(dir, "given.sock", F_OK, 0), 0);
	clear();
}

TEST(who_came_while_it_left_is_told_to_ask_again)
{
	struct rundir_opts o = options();
	struct err e = { 0 };
	struct rundir d;
	char said[1024] = "";

	CHECK_INT(rundir_open(&d, &o, &e), 0);
	AUTO(fd_close) int fd = os_connect_at(d.run_fd, "api.sock", SOCK_STREAM);
	AUTO(fd_close) int silent = os_connect_at(d.run_fd, "api.sock", SOCK_STREAM);
	CHECK(fd >= 0 && silent >= 0);
	CHECK_INT(os_send(fd, "GET / HTTP/1.1\r\n\r\n", 18, NULL, 0), 18);
	rundir_done(&d, true);
	for (int i = 0; i < 2; i++) {
		ssize_t n = recv(i ? silent : fd, said, sizeof said - 1, 0);

		CHECK(n > 0);
		said[n > 0 ? n : 0] = '\0';
		CHECK(strstr(said, "HTTP/1.1 503 ") == said && strstr(said, "\"retry_safe\":true"));
	}
	clear();
}
