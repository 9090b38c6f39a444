#include "launcher/opener.h"

#include "test_launcher.h"

/* ---- connections ---------------------------------------------------------------------- */

/* A connection to the API by a client with these ids, as its server sees it. The client lives
 * until the test ends. */
static int client_of(struct fixture *f, uid_t uid, gid_t extra, int *client_end)
{
	char path[128];
	int fds[2];

	snprintf(path, sizeof path, "%s/api.sock", f->run);
	CHECK_INT(os_socketpair(fds, SOCK_STREAM), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		/* The socket is closed to others: root opens it to this user for the test. */
		if (geteuid() == 0 && (setgroups(1, &extra) < 0 || os_set_ids(uid, uid) < 0))
			_exit(1);
		int fd = connect_to(path, SOCK_STREAM);

		if (os_send(fds[1], "c", 1, &fd, 1) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	char byte;
	size_t n = 1;
	int end = -1;
	CHECK_INT(os_recv(fds[0], &byte, 1, &end, &n), 1);
	CHECK_INT(n, 1);
	if (client_end)
		*client_end = end;
	else
		close(end);
	close(fds[0]);
	close(fds[1]);
	int server_end = accept4(f->api, NULL, NULL, SOCK_CLOEXEC);
	CHECK(server_end >= 0);
	return server_end;
}

static void open_to_all(const struct fixture *f)
{
	char path[128];

	snprintf(path, sizeof path, "%s/api.sock", f->run);
	CHECK_INT(chmod(path, 0666), 0);
}

static void check_opened(struct fixture *f, const char *path, int client)
{
	printf("# %s\n", path);
	lend_first(f, path, client);
	order_open(f, 6, LAUNCH_ANY, path, client);
	AUTO(fd_close) int fd = expect(f, L_OPENED, 6);
	CHECK(fcntl(fd, F_GETFL) & O_PATH);
}

static void check_denied(struct fixture *f, const char *path, int client)
{
	printf("# %s\n", path);
	lend_first(f, path, client);
	order_open(f, 6, LAUNCH_ANY, path, client);
	CHECK_INT(expect(f, L_FAILED, 6), -1);
	printf("#   %s\n", packet.err.msg);
}

/* ---- whose rights ---------------------------------------------------------------------- */

/* Sockets whose other end the kernel calls root, and which any process without rights can get. */
TEST(only_a_connection_that_was_accepted_at_our_socket_lends_rights)
{
	struct fixture f;
	int pair[2], client_end;

	fixture_start(&f, true);
	open_to_all(&f);
	AUTO(fd_close) int top = open(f.top, O_PATH | O_CLOEXEC);
	AUTO(fd_close) int other = os_listen_at(top, "other.sock", SOCK_STREAM, 0666);
	char path[128];
	snprintf(path, sizeof path, "%s/other.sock", f.top);
	AUTO(fd_close) int to_other = connect_to(path, SOCK_STREAM);
	AUTO(fd_close) int at_other = accept4(other, NULL, NULL, SOCK_CLOEXEC);
	AUTO(fd_close) int server_end = client_of(&f, USER_ID, USER_ID, &client_end);
	CHECK_INT(os_socketpair(pair, SOCK_STREAM), 0);
	AUTO(fd_close) int packets = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	AUTO(fd_close) int inet = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO(fd_close) int file = open("/", O_RDONLY | O_CLOEXEC);
	const int bad[] = { other, to_other, at_other, client_end, pair[0],
		            f.api, packets,  inet,     file };

	check_opened(&f, "/usr", server_end);
	for (size_t i = 0; i < COUNT(bad); i++) {
		printf("# socket %zu\n", i);
		check_denied(&f, "/usr", bad[i]);
		CHECK_INT(packet.err.kind, ERR_DENIED);
	}
	close(client_end);
	close(pair[0]);
	close(pair[1]);
	fixture_end(&f);
}

TEST(a_client_that_is_gone_lends_nothing)
{
	struct fixture f;
	char path[128];

	fixture_start(&f, geteuid() == 0);
	snprintf(path, sizeof path, "%s/api.sock", f.run);
	int client = connect_to(path, SOCK_STREAM);
	AUTO(fd_close) int server_end = accept4(f.api, NULL, NULL, SOCK_CLOEXEC);
	check_opened(&f, "/usr", server_end);
	fd_close(&client);
	check_denied(&f, "/usr", server_end);
	fixture_end(&f);
}

struct right {
	const char *name;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uid_t as;
	gid_t group;
	bool is_dir, is_opened;
};

TEST(a_path_is_opened_with_the_clients_own_rights)
{
	/* clang-format off */
	static const struct right rows[] = {
		{ "root's",          0700, 0,       0,     0,       0,     true,  true },
		{ "root's secret",   0700, 0,       0,     USER_ID, 7,     true,  false },
		{ "own",             0700, USER_ID, 7,     USER_ID, 7,     true,  true },
		{ "another user's",  0700, 54322,   54322, USER_ID, 7,     true,  false },
		{ "of a group",      0750, 0,       4242,  USER_ID, 4242,  true,  true },
		{ "of another",      0750, 0,       4242,  USER_ID, 4243,  true,  false },
		{ "not to enter",    0744, 0,       0,     USER_ID, 7,     true,  false },
		{ "public",          0755, 0,       0,     USER_ID, 7,     true,  true },
		{ "file",            0644, 0,       0,     USER_ID, 7,     false, true },
		{ "secret file",     0600, 0,       0,     USER_ID, 7,     false, false },
		{ "own file",        0400, USER_ID, 0,     USER_ID, 7,     false, true },
	};
	/* clang-format on */
	struct fixture f;

	fixture_start(&f, true);
	open_to_all(&f);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct right *r = &rows[i];
		char path[128];

		snprintf(path, sizeof path, "%s/%s", f.top, r->name);
		if (r->is_dir)
			CHECK_INT(mkdir(path, 0700), 0);
		else
			CHECK_INT(mknod(path, S_IFREG | 0600, 0), 0);
		CHECK_INT(chown(path, r->uid, r->gid), 0);
		CHECK_INT(chmod(path, r->mode), 0);
		AUTO(fd_close) int client = client_of(&f, r->as, r->group, NULL);
		if (r->is_opened)
			check_opened(&f, path, client);
		else
			check_denied(&f, path, client);
		if (r->is_opened)
			CHECK_INT(packet.opened.is_dir, r->is_dir);
	}
	fixture_end(&f);
}

TEST(rootless_only_the_user_himself_has_a_say)
{
	struct fixture f;

	fixture_start(&f, false);
	if (geteuid() == 0) {
		open_to_all(&f);
		AUTO(fd_close) int client = client_of(&f, 54399, 54399, NULL);
		check_denied(&f, "/usr", client);
	}
	AUTO(fd_close) int own = client_of(&f, geteuid() == 0 ? USER_ID : geteuid(), 0, NULL);
	check_opened(&f, "/usr", own);
	fixture_end(&f);
}

TEST(an_id_of_a_sandbox_opens_nothing)
{
	struct fixture f;

	fixture_start(&f, true);
	open_to_all(&f);
	AUTO(fd_close) int inside = client_of(&f, SLOT_ID_BASE + 1000, 7, NULL);
	check_denied(&f, "/usr", inside);
	AUTO(fd_close)
	int last = client_of(&f, SLOT_ID_BASE + SLOT_COUNT * SLOT_ID_COUNT - 1, 7, NULL);
	check_denied(&f, "/usr", last);
	AUTO(fd_close)
	int after = client_of(&f, SLOT_ID_BASE + SLOT_COUNT * SLOT_ID_COUNT, 7, NULL);
	check_opened(&f, "/usr", after);
	fixture_end(&f);
}

/* ---- what nobody is shown ---------------------------------------------------------------- */

static const char *below(const struct fixture *f, const char *rest)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", f->top, rest);
	return path;
}

TEST(folders_of_ours_and_of_the_kernel_are_refused_whatever_the_path)
{
	struct fixture f;

	fixture_start(&f, true);
	static const char *const direct[] = { "/",
		                              "/proc",
		                              "/proc/self",
		                              "/proc/1/root",
		                              "/sys",
		                              "/sys/kernel",
		                              "/dev",
		                              "/dev/null",
		                              "/dev/shm/..",
		                              "/run/caisson",
		                              "/run/caisson/slots",
		                              "/run",
		                              "/tmp",
		                              "//proc/./",
		                              "/usr/../proc" };
	static const char *const own[] = { "state",        "run",     "run/sb", "run/launcher.lock",
		                           "run/api.sock", "",        ".",      "state/..",
		                           "l/proc",       "l/state", "l/lock", "l/root" };
	static const struct {
		const char *name, *to;
	} links[] = { { "l/proc", "/proc" },
		      { "l/state", "../state" },
		      { "l/lock", "../run/launcher.lock" },
		      { "l/root", "/" },
		      { "l/usr", "/usr" } };

	CHECK_INT(mkdir(below(&f, "l"), 0755), 0);
	for (size_t i = 0; i < COUNT(links); i++)
		CHECK_INT(symlink(links[i].to, below(&f, links[i].name)), 0);
	AUTO(fd_close) int client = client_of(&f, 0, 0, NULL);
	for (size_t i = 0; i < COUNT(direct); i++)
		check_denied(&f, direct[i], client);
	for (size_t i = 0; i < COUNT(own); i++)
		check_denied(&f, below(&f, own[i]), client);
	check_opened(&f, below(&f, "l/usr"), client);
	check_opened(&f, below(&f, "l"), client);
	check_opened(&f, "/usr/bin/env", client);
	check_opened(&f, "/usr", client);
	check_denied(&f, "/absent", client);
	CHECK_INT(packet.err.kind, ERR_NOT_FOUND);
	fixture_end(&f);
}

TEST(what_was_asked_for_is_what_is_opened)
{
	struct fixture f;

	fixture_start(&f, geteuid() == 0);
	AUTO(fd_close) int client = client_of(&f, geteuid(), 0, NULL);
	lend_first(&f, "/usr", client);
	lend_first(&f, "/usr/bin/env", client);
	order_open(&f, 1, LAUNCH_FILE, "/usr", client);
	(void)expect(&f, L_FAILED, 1);
	order_open(&f, 2, LAUNCH_DIR, "/usr/bin/env", client);
	(void)expect(&f, L_FAILED, 2);
	order_open(&f, 3, LAUNCH_DIR, "/usr", client);
	AUTO(fd_close) int fd = expect(&f, L_OPENED, 3);
	struct stat want, got;
	CHECK_INT(stat("/usr", &want), 0);
	CHECK_INT(fstatat(fd, "", &got, AT_EMPTY_PATH), 0);
	CHECK(want.st_dev == got.st_dev && want.st_ino == got.st_ino);
	fixture_end(&f);
}

/* ---- what the client has lent -------------------------------------------------------------- */

static int open_it(struct fixture *f, const char *path, int client)
{
	order_open(f, 6, LAUNCH_ANY, path, client);
	AUTO(fd_close) int fd = next_message(f);
	return packet.head.type == L_OPENED ? 0 : -1;
}

/* Root has typed `caisson ps`; the daemon has been taken over and has that connection. */
TEST(a_daemon_opens_nothing_that_the_client_has_not_lent)
{
	struct fixture f;

	if (geteuid() != 0)
		SKIP("needs root");
	fixture_start(&f, true);
	open_to_all(&f);
	CHECK_INT(mknod(below(&f, "canary"), S_IFREG | 0600, 0), 0);
	AUTO(fd_close) int client = client_of(&f, 0, 0, NULL);
	CHECK_INT(open_it(&f, below(&f, "canary"), client), -1);
	CHECK_INT(packet.err.kind, ERR_DENIED);
	CHECK_INT(open_it(&f, "/etc", client), -1);

	int lent = lend(&f, 0, LEND_ONCE, below(&f, "canary"));
	CHECK(lent >= 0);
	CHECK_INT(open_it(&f, below(&f, "canary"), client), 0);
	CHECK_INT(open_it(&f, below(&f, ".//canary/"), client), -1); /* no folder, but lent */
	CHECK_INT(packet.err.sys, ENOTDIR);
	CHECK_INT(open_it(&f, "/etc", client), -1);
	fd_close(&lent);
	for (int i = 0; i < 500 && open_it(&f, below(&f, "canary"), client) == 0; i++)
		usleep(10000); /* the child that has the connection sees its end */
	CHECK_INT(open_it(&f, below(&f, "canary"), client), -1);
	fixture_end(&f);
}

TEST(what_one_user_lends_is_not_lent_by_another)
{
	struct fixture f;

	if (geteuid() != 0)
		SKIP("needs root");
	fixture_start(&f, true);
	open_to_all(&f);
	AUTO(fd_close) int lent = lend(&f, USER_ID, LEND_KEEP, "/usr");
	CHECK(lent >= 0);
	AUTO(fd_close) int root = client_of(&f, 0, 0, NULL);
	AUTO(fd_close) int user = client_of(&f, USER_ID, USER_ID, NULL);
	CHECK_INT(open_it(&f, "/usr", root), -1);
	CHECK_INT(open_it(&f, "/usr", user), 0);
	fixture_end(&f);
}

TEST(what_is_lent_to_keep_outlives_the_connection_and_the_launcher)
{
	struct fixture f;
	struct stat st;

	if (geteuid() != 0)
		SKIP("needs root");
	fixture_start(&f, true);
	int lent = lend(&f, 0, LEND_KEEP, "/usr");
	fd_close(&lent);
	CHECK_INT(stat(below(&f, "state/lent"), &st), 0);
	CHECK(st.st_uid == 0 && (st.st_mode & 07777) == 0600);
	daemon_exit(&f, 0);
	CHECK_INT(launcher_status(&f), 0);
	start_launcher(&f);
	(void)meet_daemon(&f);
	AUTO(fd_close) int client = client_of(&f, 0, 0, NULL);
	CHECK_INT(open_it(&f, "/usr", client), 0);
	CHECK_INT(open_it(&f, "/usr/bin", client), -1);
	fixture_end(&f);
}

TEST(hostile_words_at_the_lending_socket_lend_nothing)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
		{ "", 0 },
		{ "k", 1 },
		{ "x\5\0\0\0/usr", 10 },
		{ "k\5\0\0\0/usr", 9 },
		{ "k\4\0\0\0/usr", 9 },
		{ "k\4\0\0\0usr", 9 },
		{ "k\0\0\0\0", 5 },
		{ "k\377\377\377\377/usr", 10 },
		{ "k\0\0\2\0/usr", 10 },
		{ "k\12\0\0\0/usr\0/etc", 14 },
		{ "GET / HTTP/1.1\r\n\r\n", 18 },
	};
	struct fixture f;

	if (geteuid() != 0)
		SKIP("needs root");
	fixture_start(&f, true);
	AUTO(fd_close) int client = client_of(&f, 0, 0, NULL);
	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# row %zu\n", i);
		CHECK_INT(lend_bytes(&f, 0, (struct lend_words){ rows[i].bytes, rows[i].n, true }),
		          -1);
	}
	CHECK_INT(open_it(&f, "/usr", client), -1);
	AUTO(fd_close) int lent = lend(&f, 0, LEND_ONCE, "/usr");
	CHECK_INT(open_it(&f, "/usr", client), 0);
	fixture_end(&f);
}

/* ---- tokens ------------------------------------------------------------------------------ */

TEST(without_a_connection_only_the_operators_list_is_reached)
{
	struct fixture f;
	char top[128];

	fixture_start(&f, geteuid() == 0);
	check_denied(&f, "/usr", -1); /* the list is empty */
	daemon_exit(&f, 0);
	CHECK_INT(launcher_status(&f), 0);

	snprintf(top, sizeof top, "%s/given", f.top);
	CHECK_INT(mkdir(top, 0755), 0);
	CHECK_INT(mkdir(below(&f, "given/a"), 0755), 0);
	CHECK_INT(mkdir(below(&f, "given2"), 0755), 0);
	CHECK_INT(symlink("/usr", below(&f, "given/out")), 0);
	CHECK_INT(symlink("../state", below(&f, "given/up")), 0);
	CHECK_INT(symlink("a", below(&f, "given/in")), 0);
	f.host_path = top;
	start_launcher(&f);
	(void)meet_daemon(&f);
	static const char *const good[] = { "given", "given/", "given/a", "given/in",
		                            "given/a/../a" };
	static const char *const bad[] = { "given2",   "given/out",       "given/up",
		                           "given/..", "given/../given2", "giv",
		                           "state",    "given/absent" };
	for (size_t i = 0; i < COUNT(good); i++)
		check_opened(&f, below(&f, good[i]), -1);
	for (size_t i = 0; i < COUNT(bad); i++)
		check_denied(&f, below(&f, bad[i]), -1);
	fixture_end(&f);
}

/* ---- tickets ----------------------------------------------------------------------------- */

static uint32_t open_ticket(struct fixture *f, const char *path, int client)
{
	lend_first(f, path, client);
	order_open(f, 6, LAUNCH_ANY, path, client);
	AUTO(fd_close) int fd = expect(f, L_OPENED, 6);
	return packet.opened.ticket;
}

static struct launch_make with_mount(uint32_t kind, uint32_t ticket)
{
	return (struct launch_make){ .n_mounts = 1, .mounts = { { kind, ticket, 0 } } };
}

TEST(a_ticket_is_good_for_one_sandbox_of_one_daemon)
{
	struct fixture f;

	fixture_start(&f, geteuid() == 0);
	AUTO(fd_close) int client = client_of(&f, geteuid(), 0, NULL);
	uint32_t ticket = open_ticket(&f, "/usr", client);
	uint32_t file = open_ticket(&f, "/usr/bin/env", client);
	uint32_t other = open_ticket(&f, "/usr", client);

	order_make(&f, 1, with_mount(LAUNCH_RO, ticket));
	AUTO(fd_close) int channel = expect(&f, L_MADE, 1);
	order_make(&f, 2, with_mount(LAUNCH_RO, ticket));
	(void)expect(&f, L_FAILED, 2);
	CHECK(strstr(packet.err.msg, "void"));
	order_make(&f, 3, with_mount(LAUNCH_OVERLAY, file));
	(void)expect(&f, L_FAILED, 3);
	order_make(&f, 4, with_mount(LAUNCH_RO, 12345));
	(void)expect(&f, L_FAILED, 4);
	order_make(&f, 5, (struct launch_make){ .image = 12345 });
	(void)expect(&f, L_FAILED, 5);
	daemon_exit(&f, 9);
	(void)meet_daemon(&f);
	fd_close(&channel); /* not earlier: the old daemon might be told of the end, and die */
	(void)expect(&f, L_GONE, 0);
	order_make(&f, 7, with_mount(LAUNCH_RO, other));
	(void)expect(&f, L_FAILED, 7);
	fixture_end(&f);
}

TEST(tickets_that_nobody_uses_are_dropped_and_cost_no_more_descriptors)
{
	struct fixture f;

	fixture_start(&f, geteuid() == 0);
	AUTO(fd_close) int client = client_of(&f, geteuid(), 0, NULL);
	uint32_t first = open_ticket(&f, "/usr", client);
	for (int i = 1; i < LAUNCH_TICKETS; i++)
		(void)open_ticket(&f, "/usr", client);
	order_make(&f, 1, with_mount(LAUNCH_RO, first));
	int channel = expect(&f, L_MADE, 1);
	uint32_t second = first + 1;
	(void)open_ticket(&f, "/usr", client);
	(void)open_ticket(&f, "/usr", client);
	order_make(&f, 2, with_mount(LAUNCH_RO, second));
	(void)expect(&f, L_FAILED, 2);
	fd_close(&channel);
	(void)expect(&f, L_GONE, 0);
	fixture_end(&f);
}

TEST(many_paths_at_once_are_all_answered)
{
	struct fixture f;

	fixture_start(&f, geteuid() == 0);
	AUTO(fd_close) int client = client_of(&f, geteuid(), 0, NULL);
	int opened = 0, failed = 0;
	lend_first(&f, "/usr", client);
	for (uint32_t i = 0; i < 200; i++)
		order_open(&f, i, LAUNCH_ANY, "/usr", client);
	for (int i = 0; i < 200; i++) {
		AUTO(fd_close) int fd = next_message(&f);
		*(packet.head.type == L_OPENED ? &opened : &failed) += 1;
	}
	printf("# %d opened, %d refused: too many at once\n", opened, failed);
	CHECK(opened >= 64);
	CHECK_INT(opened + failed, 200);
	fixture_end(&f);
}
