#include "launcher/server.h"

#include <time.h>

#include "test_launcher.h"

/* As root and rootless; as a user only the second. */
static void each_mode(void (*body)(struct fixture *f))
{
	for (int is_root = geteuid() == 0; is_root >= 0; is_root--) {
		struct fixture f;

		fixture_start(&f, is_root);
		body(&f);
		fixture_end(&f);
	}
}

#define TEST_BOTH(name)                                                                            \
	static void name##_in(struct fixture *f);                                                  \
	TEST(name)                                                                                 \
	{                                                                                          \
		each_mode(name##_in);                                                              \
	}                                                                                          \
	static void name##_in(struct fixture *f)

static long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void sock_path(const struct fixture *f, const char *name, char out[192])
{
	snprintf(out, 192, "%s/sb/%s", f->run, name);
}

/* ---- the daemon ---------------------------------------------------------------------- */

static const char *status_of(const struct hello *h, const char *key)
{
	static char line[128];
	const char *at = strstr(h->status, key);

	CHECK(at);
	snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
	return line;
}

TEST(the_daemon_has_no_rights_and_five_descriptors)
{
	struct fixture f;

	if (geteuid() != 0)
		SKIP("needs root");
	fixture_start(&f, true);
	daemon_exit(&f, 1);
	struct hello h = meet_daemon(&f);
	CHECK_INT(h.uid, SERVER_ID);
	CHECK_INT(h.n_fds, 5);
	static const char *const lines[] = {
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000", "NoNewPrivs:\t1",
		"SigBlk:\t0000000000000000"
	};
	for (size_t i = 0; i < COUNT(lines); i++) {
		char key[16];

		snprintf(key, sizeof key, "%.*s", (int)strcspn(lines[i], ":"), lines[i]);
		CHECK_STR(status_of(&h, key), lines[i]);
	}
	CHECK(strcmp(status_of(&h, "Groups:"), "Groups:\t ") == 0);
	fixture_end(&f);
}

TEST_BOTH(folders_and_sockets_have_owners_and_modes)
{
	uid_t id = f->is_root ? SERVER_ID : geteuid() == 0 ? USER_ID : geteuid();
	uid_t ours = f->is_root ? 0 : id;
	const struct {
		const char *path;
		mode_t mode;
		uid_t uid;
	} rows[] = {
		{ "state", S_IFDIR | (f->is_root ? 01770 : 0700), ours },
		{ "state/trees", S_IFDIR | 0700, ours },
		{ "state/blobs", S_IFDIR | 0700, ours },
		{ "state/vol", S_IFDIR | 0700, ours },
		{ "run", S_IFDIR | 0711, ours },
		{ "run/sb", S_IFDIR | (f->is_root ? 0750 : 0700), ours },
		{ "run/api.sock", S_IFSOCK | 0600, id },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char path[192];
		struct stat st;

		snprintf(path, sizeof path, "%s/%s", f->top, rows[i].path);
		CHECK_INT(stat(path, &st), 0);
		CHECK_INT(st.st_mode, rows[i].mode);
		CHECK_INT(st.st_uid, rows[i].uid);
	}
}

TEST_BOTH(a_daemon_that_dies_is_started_again_and_sandboxes_live_on)
{
	struct launch_made made, other;
	AUTO(fd_close) int channel = make(f, LAUNCH_KEPT, &made);
	AUTO(fd_close) int second = make(f, LAUNCH_KEPT, &other);
	char path[192];

	sock_path(f, made.name, path);
	daemon_exit(f, 9);
	CHECK_INT(recv(f->channel, &packet, sizeof packet, 0), 0); /* the launcher knows */
	CHECK_INT(send(second, "x", 1, 0), 1);                     /* it ends without a daemon */
	struct hello h = meet_daemon(f);
	CHECK(h.pid > 0);
	(void)expect(f, L_GONE, 0);
	CHECK_INT(packet.gone.slot, other.slot);
	CHECK_STR(packet.gone.name, other.name);
	CHECK_INT(packet.gone.status, 7 << 8);
	AUTO(fd_close) int again = connect_to(path, SOCK_SEQPACKET);
	CHECK(again >= 0);
	CHECK(ask_fds(again) > 0);
	CHECK_INT(send(again, "x", 1, 0), 1);
	(void)expect(f, L_GONE, 0);
	CHECK_INT(packet.gone.pid, made.pid);
}

TEST(restarts_wait_longer_each_time)
{
	struct fixture f;
	long long before = now_us();

	fixture_start(&f, geteuid() == 0);
	for (int i = 0; i < 3; i++) {
		daemon_exit(&f, 9);
		(void)meet_daemon(&f);
	}
	CHECK(now_us() - before >= (100 + 200 + 400) * 1000ll);
	fixture_end(&f);
}

TEST_BOTH(an_orderly_end_ends_the_launcher_and_spares_what_is_kept)
{
	struct launch_made kept, other;
	char api[128];
	AUTO(fd_close) int a = make(f, LAUNCH_KEPT, &kept);
	AUTO(fd_close) int b = make(f, 0, &other);

	fd_close(&b); /* as the daemon's end does */
	daemon_exit(f, 0);
	CHECK_INT(launcher_status(f), 0);
	snprintf(api, sizeof api, "%s/api.sock", f->run);
	CHECK_INT(access(api, F_OK), -1);
	AWAIT(slot_is_free(f, other.slot));
	CHECK(!slot_is_free(f, kept.slot));
	CHECK(ask_fds(a) > 0);
	CHECK_INT(kill(kept.pid, SIGKILL), 0);
}

TEST(a_daemon_that_knows_its_options_to_be_wrong_is_not_started_again)
{
	struct fixture f;

	fixture_start(&f, geteuid() == 0);
	daemon_exit(&f, 125);
	CHECK_INT(launcher_status(&f), 125 << 8);
	fixture_end(&f);
}

TEST(signals_are_passed_on)
{
	static const struct {
		int sig;
		bool is_end;
	} rows[] = { { SIGTERM, true }, { SIGINT, true }, { SIGHUP, false } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct fixture f;

		fixture_start(&f, geteuid() == 0);
		CHECK_INT(kill(f.launcher, rows[i].sig), 0);
		if (rows[i].is_end)
			CHECK_INT(launcher_status(&f),
			          0); /* the daemon died of it, as it was told */
		else
			(void)meet_daemon(&f); /* it died of that, which was not asked for */
		fixture_end(&f);
	}
}

TEST(a_socket_that_somebody_else_answers_on_is_not_taken_away)
{
	struct fixture f;

	fixture_start(&f, geteuid() == 0);
	CHECK_INT(kill(f.launcher, SIGKILL), 0);
	CHECK_INT(launcher_status(&f), SIGKILL);
	start_launcher(&f); /* we have f.api */
	CHECK_INT(launcher_status(&f), 125 << 8);
	daemon_exit(&f, 0);
	fixture_end(&f);
}

TEST_BOTH(two_launchers_do_not_share_a_run_folder)
{
	struct fixture other = *f;

	start_launcher(&other);
	CHECK_INT(launcher_status(&other), 3 << 8);
}

/* ---- what is asked for ---------------------------------------------------------------- */

TEST_BOTH(the_host_is_described)
{
	order(f, L_HOST, 5, NULL, 0, -1);
	(void)expect(f, L_HOSTED, 5);
	CHECK_INT(packet.host.is_root, f->is_root);
	CHECK_INT(packet.host.net_error, 0);
	CHECK(strchr(packet.host.release, '.'));
	CHECK_INT(packet.host.by[LAUNCH_IO], 0);
}

TEST_BOTH(the_gate_is_started_when_it_is_asked_for)
{
	char byte;

	order(f, L_GATE, 6, NULL, 0, -1);
	AUTO(fd_close) int one = next_message(f);
	if (packet.head.type == L_FAILED && packet.err.kind == ERR_NOT_FOUND)
		SKIP("needs caisson-gate beside the test");
	CHECK_INT(packet.head.type, L_GATED);
	CHECK_INT(packet.head.tag, 6);
	order(f, L_GATE, 7, NULL, 0, -1);
	AUTO(fd_close) int two = expect(f, L_GATED, 7);
	CHECK_INT(send(one, "?", 1, MSG_NOSIGNAL), 1); /* not a word that a child knows */
	CHECK_INT(recv(one, &byte, 1, 0), 0);
	CHECK_INT(recv(two, &byte, 1, MSG_DONTWAIT), -1);
	CHECK_INT(errno, EAGAIN);
}

TEST(what_is_not_an_order_is_refused_and_the_next_one_answered)
{
	struct fixture f;
	struct launch_head heads[] = {
		{ .type = L_TYPES },
		{ .type = L_GONE },
		{ .type = L_MADE },
		{ .type = L_CLEAN },
		{ .type = L_SWEEP, .len = 4 },
		{ .type = L_SWEEP, .zero = 1 },
		{ .type = ~0u },
	};

	fixture_start(&f, geteuid() == 0);
	for (size_t i = 0; i < COUNT(heads); i++) {
		heads[i].tag = 1000 + (uint32_t)i;
		CHECK_INT(os_send(f.channel, &heads[i], sizeof heads[i], NULL, 0), sizeof heads[i]);
		(void)expect(&f, L_FAILED, heads[i].tag);
		CHECK_INT(packet.err.kind, ERR_INVALID);
	}
	CHECK_INT(os_send(f.channel, "abc", 3, NULL, 0), 3);
	(void)expect(&f, L_FAILED, 0);
	const int extra[] = { 0, 1, 2 }; /* more descriptors than any order has */
	heads[0] = (struct launch_head){ .type = L_SWEEP, .tag = 8 };
	CHECK_INT(os_send(f.channel, &heads[0], sizeof heads[0], extra, 3), sizeof heads[0]);
	(void)expect(&f, L_FAILED, 8);
	order(&f, L_HOST, 9, NULL, 0, -1);
	(void)expect(&f, L_HOSTED, 9);
	fixture_end(&f);
}

TEST_BOTH(a_kept_sandbox_can_be_reached_again_and_a_killed_monitor_leaves_nothing)
{
	struct launch_made made;
	struct stat st;
	char path[192];
	int channel = make(f, LAUNCH_KEPT, &made);

	sock_path(f, made.name, path);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_mode, S_IFSOCK | 0600);
	fd_close(&channel);
	AUTO(fd_close) int again = connect_to(path, SOCK_SEQPACKET);
	CHECK(ask_fds(again) > 0);
	CHECK(!slot_is_free(f, made.slot));
	CHECK_INT(kill(made.pid, SIGKILL), 0);
	(void)expect(f, L_GONE, 0);
	CHECK_INT(packet.gone.slot, made.slot);
	CHECK_INT(packet.gone.pid, made.pid);
	CHECK_INT(packet.gone.status, SIGKILL);
	CHECK_INT(access(path, F_OK), -1);
	AWAIT(slot_is_free(f, made.slot));
}

TEST_BOTH(a_sandbox_that_is_not_kept_ends_with_its_client)
{
	struct launch_made made;
	int channel = make(f, 0, &made);
	char path[192];

	sock_path(f, made.name, path);
	CHECK_INT(access(path, F_OK), -1);
	fd_close(&channel);
	(void)expect(f, L_GONE, 0);
	CHECK_INT(packet.gone.slot, made.slot);
	CHECK_INT(packet.gone.status, 0);
}

/* A copy of another one's lock or channel would keep it alive. */
TEST_BOTH(a_monitor_has_nothing_of_its_neighbours)
{
	enum { N = 8 };
	struct launch_made made[N];
	int channels[N], first = 0;

	for (int i = 0; i < N; i++) {
		channels[i] = make(f, LAUNCH_KEPT, &made[i]);
		int n = ask_fds(channels[i]);

		first = i == 0 ? n : first;
		CHECK_INT(n, first);
	}
	CHECK_INT(kill(made[0].pid, SIGKILL), 0);
	(void)expect(f, L_GONE, 0);
	CHECK_INT(packet.gone.slot, made[0].slot);
	AWAIT(slot_is_free(f, made[0].slot)); /* and not only when its neighbours end */
	for (int i = 0; i < N; i++) {
		if (i > 0)
			CHECK_INT(kill(made[i].pid, SIGKILL), 0);
		fd_close(&channels[i]);
	}
	for (int i = 1; i < N; i++)
		(void)expect(f, L_GONE, 0);
}

TEST_BOTH(a_hundred_at_once_have_different_slots)
{
	enum { N = 100 };
	static bool is_taken[LAUNCH_SLOTS];
	int channels[N];
	long long before = now_us();

	memset(is_taken, 0, sizeof is_taken);
	for (uint32_t i = 0; i < N; i++)
		order_make(f, i, (struct launch_make){ .flags = 0 });
	for (uint32_t i = 0; i < N; i++) {
		channels[i] = expect(f, L_MADE, i);
		CHECK(!is_taken[packet.made.slot]);
		is_taken[packet.made.slot] = true;
	}
	printf("# %d made in %lld us\n", N, now_us() - before);
	for (int i = 0; i < N; i++)
		fd_close(&channels[i]);
	for (int i = 0; i < N; i++) {
		(void)expect(f, L_GONE, 0);
		CHECK(is_taken[packet.gone.slot]);
		is_taken[packet.gone.slot] = false;
	}
}

/* ---- trees --------------------------------------------------------------------------- */

static void make_tree(const struct fixture *f, const char *name, uid_t owner)
{
	char path[192];

	snprintf(path, sizeof path, "%s/trees/%s", f->state, name);
	CHECK_INT(mkdir(path, 0755), 0);
	if (geteuid() == 0)
		CHECK_INT(chown(path, f->is_root ? owner : USER_ID, f->is_root ? owner : USER_ID),
		          0);
}

static struct launch_make with_tree(uint64_t number, uint32_t flags)
{
	struct launch_make m = { .n_mounts = 1 };

	m.mounts[0] = (struct launch_mount){ .kind = LAUNCH_TREE, .tree = number, .flags = flags };
	return m;
}

TEST_BOTH(a_tree_is_mounted_by_its_number_and_mapped_as_a_whole)
{
	make_tree(f, "7", 0);
	make_tree(f, "7/d", 1000);
	make_tree(f, "8", 0);
	make_tree(f, "8/d", 0);
	make_tree(f, "8/sealed", 0);
	const struct {
		struct launch_make make;
		const char *error;
		uint32_t owner; /* inside */
	} rows[] = {
		{ with_tree(7, 0), "", 1000 },
		{ with_tree(7, LAUNCH_READ_ONLY), "", 1000 },
		{ with_tree(8, LAUNCH_READ_ONLY), "", 0 },
		{ with_tree(8, 0), "fs: tree 8 is sealed: it can only be read", 0 },
		{ with_tree(9, 0), "fs: tree 9 does not exist", 0 },
		{ { .image_tree = 8 }, "", 0 },
		{ { .image_tree = 7 }, "image: tree 7 is not sealed: it is no image yet", 0 },
		{ { .image_tree = UINT64_MAX },
		  "image: tree 18446744073709551615 does not exist",
		  0 },
	};

	for (uint32_t i = 0; i < COUNT(rows); i++) {
		order_make(f, i, rows[i].make);
		AUTO(fd_close) int channel = next_message(f);

		CHECK_INT(packet.head.tag, i);
		CHECK_STR(packet.head.type == L_FAILED ? packet.err.msg : "", rows[i].error);
		if (channel < 0)
			continue;
		uint32_t base = SLOT_ID_BASE + (uint32_t)packet.made.slot * SLOT_ID_COUNT;
		if (rows[i].make.n_mounts) /* without root pid 1 mounts it, as it is */
			CHECK_INT(ask_number(channel, 'o'),
			          f->is_root ? (int)(base + rows[i].owner) : -1);
		fd_close(&channel);
		(void)expect(f, L_GONE, 0);
	}
}

/* ---- the launcher itself dies --------------------------------------------------------- */

/* The slots of root are those of the host: a launcher of another test may be sweeping this one. */
static bool is_cleaned(struct fixture *f, struct launch_slot slot)
{
	order(f, L_CLEAN, 3, &slot, sizeof slot, -1);
	(void)expect(f, L_DONE, 3);
	return packet.done.count == 1;
}

TEST_BOTH(a_sandbox_outlives_its_launcher_and_the_next_one_respects_it)
{
	struct launch_made made, other;
	char path[192];
	int channel = make(f, LAUNCH_KEPT, &made);

	fd_close(&channel);
	CHECK_INT(kill(f->launcher, SIGKILL), 0);
	CHECK_INT(launcher_status(f), SIGKILL);
	CHECK_INT(recv(f->channel, &packet, sizeof packet, 0), 0); /* the daemon sees it */
	start_launcher(f);
	struct pollfd knock = { .fd = f->api, .events = POLLIN };
	CHECK_INT(poll(&knock, 1, TEST_WAIT_MS), 1);
	usleep(50000); /* the old daemon still answers: the new launcher waits for it */
	daemon_exit(f, 0);
	fd_close(&f->api);
	(void)meet_daemon(f);

	struct launch_slot slot = { made.slot };
	order(f, L_CLEAN, 1, &slot, sizeof slot, -1);
	(void)expect(f, L_DONE, 1);
	CHECK_INT(packet.done.count, 0);
	order(f, L_SWEEP, 2, NULL, 0, -1);
	(void)expect(f, L_DONE, 2);
	sock_path(f, made.name, path);
	int again = connect_to(path, SOCK_SEQPACKET);
	CHECK(ask_fds(again) > 0);
	channel = make(f, 0, &other);
	CHECK(other.slot != made.slot);
	fd_close(&channel);
	(void)expect(f, L_GONE, 0);

	CHECK_INT(kill(made.pid, SIGKILL), 0);
	CHECK_INT(recv(again, &packet, 1, 0), 0);
	fd_close(&again);
	/* Its descriptors are closed one by one: the lock may go a moment later. */
	AWAIT(slot_is_free(f, made.slot));
	AWAIT(is_cleaned(f, slot));
	CHECK_INT(access(path, F_OK), -1);
}

/* ---- a monitor that does not answer ---------------------------------------------------- */

static uint32_t killed(struct fixture *f, const struct launch_made *made, const char *name)
{
	struct launch_kill kill = { .slot = made->slot };

	snprintf(kill.name, sizeof kill.name, "%s", name);
	order(f, L_KILL, 9, &kill, sizeof kill, -1);
	(void)expect(f, L_DONE, 9);
	return packet.done.count;
}

TEST_BOTH(a_monitor_that_stands_still_is_killed_by_slot_and_name)
{
	struct launch_made made;
	int channel = make(f, LAUNCH_KEPT, &made);
	char other[LAUNCH_NAME_MAX];

	CHECK_INT(kill(made.pid, SIGSTOP), 0);
	snprintf(other, sizeof other, "%s", made.name);
	other[strlen(other) - 1] ^= 1;
	CHECK_INT(killed(f, &made, other), 0); /* the slot of another one: control */
	CHECK_INT(kill(made.pid, 0), 0);
	CHECK_INT(killed(f, &made, made.name), 1);
	(void)expect(f, L_GONE, 0);
	CHECK_INT(packet.gone.status, SIGKILL);
	CHECK_INT(killed(f, &made, made.name), 0);
	fd_close(&channel);
}

TEST_BOTH(a_launcher_that_comes_later_kills_it_too)
{
	struct launch_made made;
	char path[192];
	int channel = make(f, LAUNCH_KEPT, &made);

	CHECK(ask_fds(channel) > 0);
	CHECK_INT(kill(made.pid, SIGSTOP), 0);
	CHECK_INT(kill(f->launcher, SIGKILL), 0);
	CHECK_INT(launcher_status(f), SIGKILL);
	CHECK_INT(recv(f->channel, &packet, sizeof packet, 0), 0);
	daemon_exit(f, 0);
	fd_close(&f->api);
	start_launcher(f);
	(void)meet_daemon(f);
	CHECK(!slot_is_free(f, made.slot));
	CHECK_INT(killed(f, &made, made.name), 1);
	fd_close(&channel);
	AWAIT(slot_is_free(f, made.slot));
	AWAIT(is_cleaned(f, (struct launch_slot){ made.slot }));
	sock_path(f, made.name, path);
	CHECK_INT(access(path, F_OK), -1);
}

TEST_BOTH(leftovers_are_swept_at_the_start)
{
	struct launch_made made;
	char path[192];
	int channel = make(f, LAUNCH_KEPT, &made);

	CHECK(ask_fds(channel) > 0);
	CHECK_INT(kill(f->launcher, SIGKILL), 0);
	CHECK_INT(launcher_status(f), SIGKILL);
	CHECK_INT(kill(made.pid, SIGKILL), 0);
	CHECK_INT(recv(channel, &packet, 1, 0), 0);
	fd_close(&channel);
	daemon_exit(f, 0);
	fd_close(&f->api);
	AWAIT(slot_is_free(f, made.slot));
	start_launcher(f);
	(void)meet_daemon(f);
	sock_path(f, made.name, path);
	AWAIT(access(path, F_OK) < 0);
	if (f->is_root) {
		snprintf(path, sizeof path, "/sys/fs/cgroup/memory/caisson/%d", made.slot);
		AWAIT(access(path, F_OK) < 0);
	}
}

/* `caisson gc` takes away what all use only when nobody is there to use it. */
TEST(the_common_part_stays_while_a_launcher_or_a_sandbox_lives)
{
	struct fixture f;

	fixture_start(&f, false);
	struct launch_made made;
	int channel = make(&f, LAUNCH_KEPT, &made);
	char path[128];

	CHECK(ask_fds(channel) > 0);
	snprintf(path, sizeof path, "%s/runtime/caisson", f.top);
	AUTO(fd_close) int run = open(path, O_PATH | O_CLOEXEC);
	struct err e = { 0 };
	AUTO(fd_close) int slots = slot_open(run, &e);
	AUTO(fd_close) int gate = slot_share(slots, &e);
	CHECK(!slot_alone(slots, gate));
	CHECK_INT(ask_number(channel, 'l'), 0);
	daemon_exit(&f, 0);
	CHECK_INT(launcher_status(&f), 0);
	CHECK(!slot_alone(slots, gate));
	CHECK_INT(os_lock_byte(gate, 0), 0); /* the monitor has its number, and not the gate */
	CHECK_INT(os_unlock_byte(gate, 0), 0);
	CHECK_INT(kill(made.pid, SIGKILL), 0);
	CHECK_INT(recv(channel, &packet, 1, 0), 0);
	fd_close(&channel);
	AWAIT(slot_alone(slots, gate));
	fixture_end(&f);
}

/* ---- a monitor that fell ----------------------------------------------------------------- */

TEST_BOTH(a_hostile_monitor_keeps_nobody_from_a_slot)
{
	struct launch_made made, other;
	AUTO(fd_close) int hostile = make(f, LAUNCH_KEPT, &made);

	CHECK_INT(ask_number(hostile, 'l'), 0);
	for (int i = 0; i < 20; i++) {
		AUTO(fd_close) int channel = make(f, 0, &other);

		CHECK(other.slot != made.slot);
		fd_close(&channel);
		(void)expect(f, L_GONE, 0);
	}
	CHECK(!slot_is_free(f, made.slot));
	CHECK_INT(send(hostile, "x", 1, 0), 1);
	(void)expect(f, L_GONE, 0);
	AWAIT(slot_is_free(f, made.slot));
}
