/* The real caisson-vault, a launcher, and a daemon and monitors that do what a test says. */
#include "launcher/vaults.h"

#include "test_launcher.h"

#define WS 5
#define TOP 11

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

static const struct vault_open work = {
	.workspace = WS, .top = TOP, .n_layers = 1, .layers = { VAULT_EMPTY_TREE }
};

/* The daemon's socket to it. */
static int open_vault(struct fixture *f, struct vault_open o)
{
	order(f, L_VAULT, 3, &o, sizeof o, -1);
	int fd = next_message(f);

	if (packet.head.type == L_FAILED && packet.err.kind == ERR_NOT_FOUND)
		SKIP("needs caisson-vault beside the test");
	if (packet.head.type == L_FAILED)
		printf("# %s\n", packet.err.msg);
	CHECK_INT(packet.head.type, L_VAULTED);
	CHECK_INT(packet.head.tag, 3);
	return fd;
}

static struct vault_packet answer;

/* What it answers; V_TYPES when it hung up. */
static enum vault_type ask_vault(int fd, enum vault_type type, uint64_t number)
{
	struct vault_packet p = { .head = { .type = type, .tag = 9 } };
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	if (number)
		p.tree.number = number;
	p.head.len = (uint32_t)(vault_size(&p) - sizeof p.head);
	(void)send(fd, &p, vault_size(&p), MSG_NOSIGNAL);
	CHECK_INT(poll(&wait, 1, TEST_WAIT_MS), 1);
	ssize_t n = recv(fd, &answer, sizeof answer, 0);
	if (n <= 0)
		return V_TYPES;
	CHECK(vault_check(&answer, (size_t)n, 0));
	if (answer.head.type == V_FAILED)
		printf("# %s\n", answer.err.msg);
	return answer.head.type;
}

static void await_end(int fd)
{
	struct pollfd p = { .fd = fd };

	CHECK_INT(poll(&p, 1, TEST_WAIT_MS), 1);
	CHECK(p.revents & POLLHUP);
}

static int make_with(struct fixture *f, uint32_t flags, struct launch_made *out)
{
	struct launch_make m = { .n_mounts = 1, .flags = LAUNCH_KEPT };

	m.mounts[0] = (struct launch_mount){ .kind = LAUNCH_WORK, .tree = WS, .flags = flags };
	order_make(f, 78, m);
	int fd = expect(f, L_MADE, 78);

	*out = packet.made;
	return fd;
}

static void end_sandbox(struct fixture *f, int *channel)
{
	CHECK_INT(send(*channel, "x", 1, 0), 1);
	(void)expect(f, L_GONE, 0);
	fd_close(channel);
}

/* How many sockets there are in vt/; `name` is one of them. */
static int count_names(const struct fixture *f, char name[64])
{
	char path[192];

	snprintf(path, sizeof path, "%s/vt", f->run);
	DIR *dir = opendir(path);
	int n = 0;

	CHECK(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		if (d->d_name[0] != '.') {
			snprintf(name, 64, "%s", d->d_name);
			n++;
		}
	closedir(dir);
	return n;
}

static void await_names(const struct fixture *f, int want)
{
	char name[64];

	AWAIT(count_names(f, name) == want);
}

/* A child of the launcher. */
static pid_t vault_of(const struct fixture *f)
{
	char path[64], kids[512] = "", *save = NULL;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", f->launcher, f->launcher);
	CHECK(os_read_file(AT_FDCWD, path, kids, sizeof kids) > 0);
	for (char *kid = strtok_r(kids, " ", &save); kid; kid = strtok_r(NULL, " ", &save)) {
		char name[32] = "";

		snprintf(path, sizeof path, "/proc/%.10s/comm", kid);
		if (os_read_file(AT_FDCWD, path, name, sizeof name) > 0 &&
		    strcmp(name, "caisson-vault\n") == 0)
			return (pid_t)strtol(kid, NULL, 10);
	}
	CHECK(false);
	return 0;
}

TEST_BOTH(the_store_has_a_keeper_that_makes_trees)
{
	AUTO(fd_close) int vault = open_vault(f, (struct vault_open){ 0 });
	char path[192];

	CHECK_INT(ask_vault(vault, V_MAKE_TREE, 21), V_DONE);
	snprintf(path, sizeof path, "%s/trees/21/d", f->state);
	CHECK_INT(access(path, F_OK), 0);
	CHECK_INT(ask_vault(vault, V_CLOSE, 0), V_DONE);
	await_end(vault);
	await_names(f, 0);
}

TEST_BOTH(sandboxes_share_the_mount_and_the_ids_of_a_workspace)
{
	struct launch_made one, two;
	AUTO(fd_close) int vault = open_vault(f, work);
	AUTO(fd_close) int a = make_with(f, 0, &one);
	AUTO(fd_close) int b = make_with(f, LAUNCH_READ_ONLY, &two);
	char name[64];
	int number = -1;

	CHECK_INT(count_names(f, name), 1);
	CHECK_INT(sscanf(name, "5-%d.sock", &number), 1);
	int owner = f->is_root       ? (int)(slot_work_id(number) + VAULT_AGENT_ID)
	            : geteuid() == 0 ? USER_ID
	                             : (int)geteuid();
	CHECK_INT(ask_number(a, 'o'), owner);
	CHECK_INT(ask_number(b, 'o'), owner);
	CHECK(one.slot != two.slot);
	CHECK_INT(ask_vault(vault, V_CLOSE, 0), V_FAILED);
	CHECK_INT(answer.err.sys, EBUSY);
	end_sandbox(f, &a);
	CHECK_INT(ask_vault(vault, V_CLOSE, 0), V_FAILED);
	end_sandbox(f, &b);
	CHECK_INT(ask_vault(vault, V_CLOSE, 0), V_DONE);
	await_end(vault);
	await_names(f, 0);
}

/* A second workspace is the root of a sandbox: ids of the first, a number of its own. */
TEST_BOTH(a_root_has_the_ids_of_its_workspace_and_a_keeper_of_its_own)
{
	struct launch_make m = { .n_mounts = 1, .flags = LAUNCH_KEPT, .root = WS + 1 };
	struct vault_open root = work;
	char name[64];

	root.workspace = WS + 1;
	root.top = TOP + 1;
	root.ids_of = WS;
	order(f, L_VAULT, 5, &root, sizeof root, -1);
	(void)expect(f, L_FAILED, 5);
	CHECK_STR(packet.err.msg, "workspace 5 is not open");
	AUTO(fd_close) int first = open_vault(f, work);
	m.mounts[0] = (struct launch_mount){ .kind = LAUNCH_WORK, .tree = WS };
	order_make(f, 79, m);
	(void)expect(f, L_FAILED, 79);
	CHECK_STR(packet.err.msg, "fs: workspace 6 is not open");
	AUTO(fd_close) int second = open_vault(f, root);
	CHECK_INT(count_names(f, name), 2);
	order_make(f, 80, m);
	AUTO(fd_close) int box = expect(f, L_MADE, 80);
	CHECK_INT(ask_vault(first, V_CLOSE, 0), V_FAILED);
	CHECK_INT(answer.err.sys, EBUSY);
	CHECK_INT(ask_vault(second, V_CLOSE, 0), V_FAILED);
	CHECK_INT(answer.err.sys, EBUSY);
	end_sandbox(f, &box);
	CHECK_INT(ask_vault(first, V_CLOSE, 0), V_DONE); /* the other is none that has its mount */
	CHECK_INT(ask_vault(second, V_CLOSE, 0), V_DONE);
	await_end(second);
	await_names(f, 0);
}

TEST_BOTH(a_workspace_that_is_not_open_has_no_mount)
{
	struct launch_make m = { .n_mounts = 1 };

	m.mounts[0] = (struct launch_mount){ .kind = LAUNCH_WORK, .tree = WS };
	order_make(f, 4, m);
	(void)expect(f, L_FAILED, 4);
	CHECK_INT(packet.err.kind, ERR_NOT_FOUND);
	CHECK_STR(packet.err.msg, "fs: workspace 5 is not open");
}

TEST_BOTH(an_order_that_makes_no_sense_starts_nobody)
{
	struct vault_open rows[] = { work, work, work, work, work };

	rows[0].top = 0;
	rows[1].n_layers = 0;
	rows[2].flags = VAULT_OPEN_FLAGS + 1;
	rows[3].layers[0] = 0;
	rows[4].flags = VAULT_READ_ONLY; /* and a top */
	for (uint32_t i = 0; i < COUNT(rows); i++) {
		order(f, L_VAULT, i, &rows[i], sizeof rows[i], -1);
		(void)expect(f, L_FAILED, i);
		CHECK_STR(packet.err.msg, "that is no workspace");
	}
	await_names(f, 0);
	struct vault_open ours[] = { work, work, work };
	ours[0].id_base = 1;
	ours[1].n_ids = 1;
	ours[2].flags = VAULT_ROOTLESS;
	for (uint32_t i = 0; i < COUNT(ours); i++) {
		order(f, L_VAULT, i, &ours[i], sizeof ours[i], -1);
		(void)expect(f, L_FAILED, i);
		CHECK_STR(packet.err.msg, "launch: what is not the daemon's to say");
	}
}

/* What its keeper refuses is told, and it can be asked again. */
TEST_BOTH(a_workspace_that_cannot_be_opened_says_why)
{
	struct vault_open o = work;

	o.layers[0] = 999;
	for (uint32_t i = 0; i < 3; i++) {
		order(f, L_VAULT, i, &o, sizeof o, -1);
		(void)expect(f, L_FAILED, i);
		printf("# %s\n", packet.err.msg);
		CHECK(strstr(packet.err.msg, "999"));
	}
	AUTO(fd_close) int vault = open_vault(f, work);
	CHECK_INT(ask_vault(vault, V_CLOSE, 0), V_DONE);
}

/* The lock of a sandbox goes before its launcher can wait for it: the two come in any order. */
static int await_gone_and_vaulted(struct fixture *f, uint32_t tag)
{
	int vault = -1;

	for (bool is_gone = false; vault < 0 || !is_gone;) {
		int fd = next_message(f);

		is_gone |= packet.head.type == L_GONE;
		if (packet.head.type == L_FAILED && packet.err.sys == EBUSY) /* after 2 s */
			order(f, L_VAULT, tag, &work, sizeof work, -1);
		if (packet.head.type == L_FAILED || packet.head.type == L_GONE)
			continue;
		CHECK_INT(packet.head.type, L_VAULTED);
		CHECK_INT(packet.head.tag, tag);
		vault = fd;
	}
	return vault;
}

TEST_BOTH(a_keeper_that_dies_is_replaced_when_nobody_has_its_mount)
{
	struct launch_made made;
	AUTO(fd_close) int first = open_vault(f, work);
	AUTO(fd_close) int sandbox = make_with(f, 0, &made);

	CHECK_INT(kill(vault_of(f), SIGKILL), 0);
	await_end(first);
	order(f, L_VAULT, 5, &work, sizeof work, -1);
	(void)expect(f, L_FAILED, 5); /* after a while */
	CHECK_INT(packet.err.sys, EBUSY);
	await_names(f, 1);
	order(f, L_VAULT, 6, &work, sizeof work, -1); /* it waits for the sandbox */
	CHECK_INT(send(sandbox, "x", 1, 0), 1);
	AUTO(fd_close) int again = await_gone_and_vaulted(f, 6);
	fd_close(&sandbox);
	sandbox = make_with(f, 0, &made);
	end_sandbox(f, &sandbox);
	CHECK_INT(ask_vault(again, V_CLOSE, 0), V_DONE);
	await_names(f, 0);
}

TEST_BOTH(a_second_daemon_gets_the_same_keeper)
{
	AUTO(fd_close) int first = open_vault(f, work);
	pid_t pid = vault_of(f);

	daemon_exit(f, 9);
	(void)meet_daemon(f);
	AUTO(fd_close) int second = open_vault(f, work);
	await_end(first);
	CHECK_INT(vault_of(f), pid);
	CHECK_INT(ask_vault(second, V_CLOSE, 0), V_DONE);
}

TEST_BOTH(a_keeper_outlives_its_launcher_and_is_found_by_the_next)
{
	struct launch_made made;
	AUTO(fd_close) int first = open_vault(f, work);
	AUTO(fd_close) int sandbox = make_with(f, 0, &made);
	pid_t pid = vault_of(f);
	char before[64], after[64];

	CHECK_INT(count_names(f, before), 1);
	fd_close(&sandbox);
	CHECK_INT(kill(f->launcher, SIGKILL), 0);
	CHECK_INT(launcher_status(f), SIGKILL);
	daemon_exit(f, 0);
	fd_close(&f->api);
	start_launcher(f);
	(void)meet_daemon(f);
	AUTO(fd_close) int second = open_vault(f, work);
	await_end(first);
	CHECK_INT(count_names(f, after), 1);
	CHECK_STR(after, before);
	CHECK_INT(kill(pid, 0), 0);
	struct launch_made other;
	sandbox = make_with(f, 0, &other);
	end_sandbox(f, &sandbox);
	CHECK_INT(ask_vault(second, V_CLOSE, 0), V_FAILED); /* the first sandbox still has it */
	CHECK_INT(kill(made.pid, SIGKILL), 0);
	AWAIT(slot_is_free(f, made.slot));
	AWAIT(ask_vault(second, V_CLOSE, 0) == V_DONE);
	await_names(f, 0);
}

TEST_BOTH(a_hostile_monitor_with_a_workspace_keeps_nobody_from_his)
{
	struct launch_made made, other;
	struct vault_open second = work;
	AUTO(fd_close) int vault = open_vault(f, work);
	AUTO(fd_close) int hostile = make_with(f, 0, &made);

	CHECK_INT(ask_number(hostile, 'l'), 0);
	AUTO(fd_close) int sandbox = make_with(f, 0, &other);
	second.workspace = WS + 1;
	second.top = TOP + 1;
	AUTO(fd_close) int free_one = open_vault(f, second);
	CHECK_INT(ask_vault(free_one, V_CLOSE, 0), V_DONE);
	end_sandbox(f, &sandbox);
	CHECK_INT(ask_vault(vault, V_CLOSE, 0), V_FAILED);
	end_sandbox(f, &hostile);
	CHECK_INT(ask_vault(vault, V_CLOSE, 0), V_DONE);
	await_names(f, 0);
}

static int n_gone;

static void count_gone(const char *what, bool is_gone)
{
	CHECK_STR(what, "keeper of workspace 5");
	n_gone += is_gone;
}

static int sweep(const struct fixture *f, bool dry_run)
{
	struct err e = { 0 };
	char path[128];
	AUTO(fd_close) int run = open(f->run, O_PATH | O_CLOEXEC);

	snprintf(path, sizeof path, "%s/runtime/caisson", f->top);
	AUTO(fd_close)
	int host = f->is_root || geteuid() != 0 ? slot_run_dir(f->is_root, &e)
	                                        : open(path, O_PATH | O_CLOEXEC);
	AUTO(fd_close) int slots = slot_open(host, &e);
	n_gone = 0;
	return vaults_sweep(run, slots, dry_run, count_gone);
}

TEST_BOTH(gc_removes_the_name_of_a_dead_one_and_does_not_disturb_the_living)
{
	AUTO(fd_close) int vault = open_vault(f, work);
	pid_t pid = vault_of(f);

	CHECK_INT(sweep(f, false), 0);
	CHECK_INT(ask_vault(vault, V_MAKE_TREE, 33), V_DONE); /* it is asked as before */
	CHECK_INT(kill(f->launcher, SIGKILL), 0);
	CHECK_INT(launcher_status(f), SIGKILL);
	CHECK_INT(kill(pid, SIGKILL), 0);
	await_end(vault);
	AWAIT(sweep(f, true) > 0);
	CHECK_INT(n_gone, 0);
	await_names(f, 1);
	CHECK_INT(sweep(f, false), 1);
	CHECK_INT(n_gone, 1);
	await_names(f, 0);
	daemon_exit(f, 0);
}

/* Its name is left, and whoever comes next removes it. */
TEST_BOTH(what_died_with_its_launcher_is_swept)
{
	AUTO(fd_close) int vault = open_vault(f, work);
	pid_t pid = vault_of(f);

	CHECK_INT(kill(f->launcher, SIGKILL), 0);
	CHECK_INT(launcher_status(f), SIGKILL);
	CHECK_INT(kill(pid, SIGKILL), 0);
	await_end(vault);
	daemon_exit(f, 0);
	fd_close(&f->api);
	await_names(f, 1);
	start_launcher(f);
	(void)meet_daemon(f);
	await_names(f, 0);
}

TEST_BOTH(a_launcher_that_ends_in_order_takes_along_whom_nobody_needs)
{
	struct launch_made made;
	AUTO(fd_close) int store = open_vault(f, (struct vault_open){ 0 });
	AUTO(fd_close) int vault = open_vault(f, work);
	AUTO(fd_close) int sandbox = make_with(f, 0, &made);
	char name[64];

	daemon_exit(f, 0);
	CHECK_INT(launcher_status(f), 0);
	await_end(store);
	CHECK_INT(count_names(f, name), 1);
	CHECK(strncmp(name, "5-", 2) == 0);
	CHECK_INT(ask_vault(vault, V_CLOSE, 0), V_FAILED);
	CHECK_INT(answer.err.sys, EBUSY);
	CHECK_INT(kill(made.pid, SIGKILL), 0);
	AWAIT(slot_is_free(f, made.slot));
	AWAIT(ask_vault(vault, V_CLOSE, 0) == V_DONE);
	await_end(vault);
}
