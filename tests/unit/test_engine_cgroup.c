#include "engine/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "engine/cgroup-internal.h"
#include "os/file.h"
#include "os/proc.h"
#include "test.h"

static const uint64_t no_limits[LIMIT_COUNT];
static const struct cgroup_leaf no_leaf = { .fd = -1 };

/* ---- pure -------------------------------------------------------------------------- */

TEST(paths_lie_below_caisson_and_the_name)
{
	static const struct {
		const char *base, *name, *rest, *want;
	} cases[] = {
		{ "/sys/fs/cgroup", "7", "box/pids.max", "/sys/fs/cgroup/caisson/7/box/pids.max" },
		{ "/sys/fs/cgroup/cpu,cpuacct", "4094", "",
		  "/sys/fs/cgroup/cpu,cpuacct/caisson/4094/" },
		{ "/cg/user.slice", "0", "tasks", "/cg/user.slice/caisson/0/tasks" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cgroup cg = { .n_trees = 1 };
		char path[CGROUP_PATH_MAX];

		snprintf(cg.name, sizeof cg.name, "%s", cases[i].name);
		snprintf(cg.trees[0].path, sizeof cg.trees[0].path, "%s", cases[i].base);
		cgroup_path(&cg, &cg.trees[0], cases[i].rest, path);
		CHECK_STR(path, cases[i].want);
	}
}

TEST(the_longest_path_fits)
{
	struct cgroup cg = { .name = "123456789012345", .n_trees = 1 };
	char path[CGROUP_PATH_MAX];

	memset(cg.trees[0].path, 'x', sizeof cg.trees[0].path - 1);
	cgroup_path(&cg, &cg.trees[0], "box/memory.memsw.limit_in_bytes", path);
	CHECK_STR(strstr(path, "/caisson/"),
	          "/caisson/123456789012345/box/memory.memsw.limit_in_bytes");
}

TEST(limits_are_written_in_box_on_v2)
{
	CHECK_STR(cgroup_leaf(&(struct cgroup_tree){ .is_v2 = true }), "box/");
	CHECK_STR(cgroup_leaf(&(struct cgroup_tree){ .is_v2 = false }), "");
}

TEST(a_controller_has_the_mechanism_of_its_hierarchy)
{
	static const struct cgroup cg = {
		.trees = { { .is_shared = true },
		           { .controllers = 1u << CG_MEMORY },
		           { .is_v2 = true, .controllers = 1u << CG_PIDS } },
		.n_trees = 3,
	};

	CHECK_STR(cgroup_mechanism(&cg, CG_MEMORY), "cgroup1");
	CHECK_STR(cgroup_mechanism(&cg, CG_PIDS), "cgroup2");
	CHECK_STR(cgroup_mechanism(&cg, CG_CPU), NULL);
	CHECK(cgroup_has(&cg, CG_MEMORY) && cgroup_has(&cg, CG_PIDS) && !cgroup_has(&cg, CG_CPU));
	CHECK(cgroup_tree_of(&cg, CG_PIDS) == &cg.trees[2]);
}

/* What the launcher sends is where the monitor puts it. */
TEST(keys_go_round)
{
	const struct cgroup host = {
		.trees = { { .is_shared = true, .tasks_fd = 90 },
		           { .is_v2 = true, .controllers = 1u << CG_PIDS, .tasks_fd = -1 } },
		.n_trees = 2,
		.box_fd = 93,
		.mon_fd = 94,
	};
	struct cgroup monitor = host;
	int keys[CGROUP_KEYS_MAX], received[] = { 101, 102 };

	CHECK_INT(cgroup_keys(&host, keys, CGROUP_KEYS_MAX), 1);
	CHECK_INT(keys[0], 93);
	CHECK_INT(cgroup_keys(&host, keys, 0), 0);
	CHECK_INT(cgroup_take_keys(&monitor, received, 1), 0);
	CHECK_INT(monitor.trees[0].tasks_fd, 90);
	CHECK_INT(monitor.box_fd, 101);
	CHECK_INT(monitor.mon_fd, 94);
	CHECK_INT(cgroup_take_keys(&monitor, received, 2), -EPROTO);
	CHECK_INT(cgroup_take_keys(&monitor, received, 0), -EPROTO);
}

TEST(a_host_without_cgroups_needs_nothing)
{
	struct cgroup cg = { .box_fd = -1, .mon_fd = -1 };
	struct err e = { 0 };
	struct cgroup_usage u;
	pid_t pid;

	CHECK_INT(cgroup_prepare(&cg, "0", &e), 0);
	CHECK_INT(cgroup_make(&cg, 1, &e), 0);
	CHECK_INT(cgroup_limit(&cg, (uint64_t[LIMIT_COUNT]){ [LIMIT_MEM] = 1 << 20 }, &e), 0);
	CHECK_INT(cgroup_join_shared(&cg, &e), 0);
	CHECK_INT(cgroup_join(&cg, &no_leaf, &e), 0);
	CHECK_INT(cgroup_members(&cg, &pid, 1), 0);
	CHECK_INT(cgroup_kill(&cg, 0), 0);
	cgroup_usage(&cg, &u);
	CHECK_INT(u.cpu_ms + u.mem_peak + u.pids_denied + cgroup_oom_kills(&cg), 0);
	CHECK(!cgroup_any(&cg));
	CHECK_INT(cgroup_remove(&cg), 0);
	cgroup_done(&cg);
	cgroup_done(&cg);
}

/* ---- what the host has ------------------------------------------------------------- */

static void read_text(const char *path, char *out, size_t size)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = '\0';
}

TEST(root_finds_what_is_mounted)
{
	static const char *const names[] = {
		[CG_CPU] = "cpu", [CG_MEMORY] = "memory", [CG_PIDS] = "pids"
	};
	char all[256], path[64], word[16];
	struct cgroup cg;
	struct stat st;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(cgroup_find(&cg, true), 0);
	read_text("/sys/fs/cgroup/cgroup.controllers", all + 1, sizeof all - 1);
	all[0] = ' ';
	for (enum cgroup_controller c = 0; c < CG_CONTROLLERS; c++) {
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s", names[c]);
		snprintf(word, sizeof word, " %s", names[c]);
		printf("# %s by %s\n", names[c],
		       cgroup_has(&cg, c) ? cgroup_mechanism(&cg, c) : "nothing");
		CHECK_INT(cgroup_has(&cg, c), stat(path, &st) == 0 || strstr(all, word));
	}
	for (size_t i = 0; i < cg.n_trees; i++) {
		CHECK_INT(cg.trees[i].is_shared, cg.trees[i].controllers == 0);
		CHECK_INT(cg.trees[i].tasks_fd, -1);
	}
	CHECK(cg.box_fd == -1 && cg.mon_fd == -1);
}

TEST(others_are_never_given_v1)
{
	struct cgroup cg;

	CHECK_INT(cgroup_find(&cg, false), 0);
	CHECK(cg.n_trees <= 1);
	CHECK(cg.n_trees == 0 || cg.trees[0].is_v2);
}

/* ---- in the real tree, under a name that no slot has ------------------------------- */

/* "x<pid>": what an aborted run of this program left goes before we start. */
static void sweep_dead(const char *name, void *arg)
{
	struct cgroup cg = *(struct cgroup *)arg;
	char *end;
	long pid = name[0] == 'x' ? strtol(name + 1, &end, 10) : 0;

	if (pid <= 0 || *end || kill((pid_t)pid, 0) == 0)
		return;
	snprintf(cg.name, sizeof cg.name, "%s", name);
	if (cgroup_kill(&cg, 1000) == 0)
		(void)cgroup_remove(&cg);
}

static void make_group(struct cgroup *cg, const uint64_t *limits)
{
	int keys[CGROUP_KEYS_MAX];
	struct err e = { 0 };
	char name[16];

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(cgroup_find(cg, true), 0);
	if (!cgroup_has(cg, CG_PIDS) || !cgroup_has(cg, CG_MEMORY) || !cgroup_has(cg, CG_CPU))
		SKIP("needs the cgroup controllers cpu, memory and pids");
	cgroup_each_name(cg, sweep_dead, cg);
	snprintf(name, sizeof name, "x%d", getpid());
	if (cgroup_prepare(cg, name, &e) < 0 || cgroup_make(cg, 12345, &e) < 0 ||
	    cgroup_limit(cg, limits, &e) < 0)
		CHECK_STR(e.msg, "");
	size_t n = cgroup_keys(cg, keys, COUNT(keys));
	CHECK_INT(cgroup_take_keys(cg, keys, n), 0);
}

static void end_group(struct cgroup *cg)
{
	CHECK_INT(cgroup_kill(cg, TEST_WAIT_MS), 0);
	CHECK_INT(cgroup_remove(cg), 0);
	cgroup_done(cg);
}

/* A child of ours, born in the group, that runs `code`. */
static pid_t start_inside(const struct cgroup *cg, int (*code)(void))
{
	struct err e = { 0 };
	int ready[2];
	char byte = 0;

	fflush(NULL);
	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	int pid = os_clone((struct clone_opts){ .cgroup_fd = cg->box_fd });
	CHECK(pid >= 0);
	if (pid == 0) {
		struct cgroup own = *cg;

		if (cgroup_join_shared(&own, &e) < 0 || cgroup_join(cg, &no_leaf, &e) < 0 ||
		    write(ready[1], "x", 1) != 1)
			_exit(99);
		_exit(code());
	}
	fd_close(&ready[1]);
	CHECK_INT(read(ready[0], &byte, 1), 1);
	fd_close(&ready[0]);
	return pid;
}

static int sleep_on(void)
{
	while (pause() < 0)
		;
	return 0;
}

static int status_of(pid_t pid)
{
	int status = -1;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	return status;
}

static void file_of(const struct cgroup *cg, enum cgroup_controller c, const char *v1,
                    const char *v2, char out[64])
{
	const struct cgroup_tree *t = cgroup_tree_of(cg, c);
	char name[64], path[CGROUP_PATH_MAX];

	snprintf(name, sizeof name, "%s%s", cgroup_leaf(t), t->is_v2 ? v2 : v1);
	cgroup_path(cg, t, name, path);
	read_text(path, out, 64);
	out[strcspn(out, "\n")] = '\0';
}

static size_t count_folders(const struct cgroup *cg)
{
	size_t n = 0;

	for (size_t i = 0; i < cg->n_trees; i++) {
		char path[CGROUP_PATH_MAX];

		cgroup_path(cg, &cg->trees[i], "", path);
		n += access(path, F_OK) == 0;
	}
	return n;
}

static void check_monitors_bounds(const struct cgroup *cg)
{
	static const char *const rows[][2] = { { "mon/cpu.max", "150000 100000\n" },
		                               { "mon/memory.max", "268435456\n" },
		                               { "mon/pids.max", "256\n" } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		char path[CGROUP_PATH_MAX], text[64];

		cgroup_path(cg, cgroup_tree_of(cg, CG_CPU), rows[i][0], path);
		read_text(path, text, sizeof text);
		CHECK_STR(text, rows[i][1]);
	}
}

/* Pid 1 of a sandbox is in this group of v1 and counted beside the commands. */
static uint64_t and_pid_1(const struct cgroup *cg, uint64_t pids)
{
	return pids + !cgroup_tree_of(cg, CG_PIDS)->is_v2;
}

TEST(limits_are_written_and_the_end_leaves_no_folder)
{
	const uint64_t limits[LIMIT_COUNT] = {
		[LIMIT_MEM] = 64 << 20, [LIMIT_PIDS] = 33, [LIMIT_CPU] = 1500
	};
	struct cgroup cg;
	char text[64];

	make_group(&cg, limits);
	CHECK(count_folders(&cg) > 0);
	file_of(&cg, CG_MEMORY, "memory.limit_in_bytes", "memory.max", text);
	CHECK_STR(text, "67108864");
	file_of(&cg, CG_PIDS, "pids.max", "pids.max", text);
	CHECK_INT(strtoull(text, NULL, 10), and_pid_1(&cg, 33));
	file_of(&cg, CG_CPU, "cpu.cfs_quota_us", "cpu.max", text);
	CHECK_STR(text, cgroup_tree_of(&cg, CG_CPU)->is_v2 ? "150000 100000" : "150000");
	if (cgroup_tree_of(&cg, CG_CPU)->is_v2) /* monitor and pid 1 have bounds of their own */
		check_monitors_bounds(&cg);
	end_group(&cg);
	CHECK_INT(count_folders(&cg), 0);
	CHECK_INT(cgroup_remove(&cg), 0); /* nothing left to remove */
}

TEST(no_limit_writes_none)
{
	struct cgroup cg;
	char text[64];

	make_group(&cg, no_limits);
	file_of(&cg, CG_PIDS, "pids.max", "pids.max", text);
	CHECK_STR(text, "max");
	end_group(&cg);
}

TEST(a_value_that_the_kernel_refuses_is_named)
{
	const uint64_t limits[LIMIT_COUNT] = { [LIMIT_PIDS] = 1ull << 40 };
	struct err e = { 0 };
	struct cgroup cg;

	make_group(&cg, no_limits);
	CHECK_INT(cgroup_limit(&cg, limits, &e), -1);
	CHECK_STR(e.msg, cgroup_tree_of(&cg, CG_PIDS)->is_v2
	                     ? "write 1099511627776 to pids.max: Invalid argument"
	                     : "write 1099511627777 to pids.max: Invalid argument");
	end_group(&cg);
}

TEST(members_are_listed_killed_and_only_then_the_folders_go)
{
	enum { CHILDREN = 5 };
	pid_t children[CHILDREN], members[16];
	struct cgroup cg;

	make_group(&cg, no_limits);
	for (int i = 0; i < CHILDREN; i++)
		children[i] = start_inside(&cg, sleep_on);
	CHECK_INT(cgroup_members(&cg, members, COUNT(members)), CHILDREN);
	CHECK_INT(cgroup_members(&cg, members, 2), 2);
	CHECK(cgroup_remove(&cg) > 0);
	CHECK_INT(cgroup_members(&cg, members, COUNT(members)), CHILDREN); /* untouched */
	CHECK_INT(cgroup_kill(&cg, TEST_WAIT_MS), 0);
	for (int i = 0; i < CHILDREN; i++)
		CHECK_INT(status_of(children[i]), SIGKILL);
	CHECK_INT(cgroup_members(&cg, members, COUNT(members)), 0);
	end_group(&cg);
}

static int fork_until_denied(void)
{
	for (int i = 0; i < 64; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return errno == EAGAIN ? i : 98;
		if (pid == 0)
			sleep_on();
	}
	return 97;
}

TEST(pids_limit_denies_the_next_fork_and_counts_it)
{
	const uint64_t limits[LIMIT_COUNT] = { [LIMIT_PIDS] = 4 };
	struct cgroup_usage u;
	struct cgroup cg;

	make_group(&cg, limits);
	CHECK_INT(WEXITSTATUS(status_of(start_inside(&cg, fork_until_denied))), and_pid_1(&cg, 3));
	cgroup_usage(&cg, &u);
	CHECK_INT(u.pids_denied, 1);
	end_group(&cg);
}

static int touch_memory(void)
{
	enum { BYTES = 256 << 20 };
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < BYTES; i += 4096)
		((volatile char *)p)[i] = 1;
	return 0;
}

TEST(pid_1_is_no_member_that_is_listed_and_joins_by_lent_tasks)
{
	pid_t members[16];
	struct cgroup cg;
	int fds[CGROUP_KEYS_MAX];

	make_group(&cg, no_limits);
	pid_t one = start_inside(&cg, sleep_on), other = start_inside(&cg, sleep_on);
	CHECK_INT(cgroup_members(&cg, members, COUNT(members)), 2);
	cg.init_pid = one;
	CHECK_INT(cgroup_members(&cg, members, COUNT(members)), 1);
	CHECK_INT(members[0], other);
	CHECK_INT(cgroup_members(&cg, members, 1), 1); /* whoever comes first in the list */
	CHECK_INT(members[0], other);
	size_t n = cgroup_lend(&cg, fds, COUNT(fds));
	CHECK(n > 0 || cgroup_tree_of(&cg, CG_MEMORY)->is_v2);
	pid_t third = fork();
	if (third == 0) {
		struct err e = { 0 };

		if (n > 0 && cgroup_join_lent(fds, n) < 0)
			_exit(1);
		_exit(n > 0 && cgroup_membership_holds(&cg, cgroup_controllers(&cg), &e) < 0 ? 2
		                                                                             : 0);
	}
	CHECK_INT(status_of(third), 0);
	cg.init_pid = 0;
	CHECK_INT(cgroup_kill(&cg, TEST_WAIT_MS), 0);
	CHECK_INT(status_of(one), SIGKILL);
	CHECK_INT(status_of(other), SIGKILL);
	end_group(&cg);
}

TEST(memory_limit_kills_and_counts_it)
{
	const uint64_t limits[LIMIT_COUNT] = { [LIMIT_MEM] = 16 << 20 };
	struct cgroup_usage u;
	struct cgroup cg;

	make_group(&cg, limits);
	CHECK_INT(cgroup_oom_kills(&cg), 0);
	CHECK_INT(status_of(start_inside(&cg, touch_memory)), SIGKILL);
	/* v2 ends the whole group and counts its first victim twice */
	CHECK(cgroup_oom_kills(&cg) >= 1);
	cgroup_usage(&cg, &u);
	printf("# peak %llu\n", (unsigned long long)u.mem_peak);
	CHECK(u.mem_peak <= 16 << 20);
	end_group(&cg);
}

/* A launcher that was killed: its members live, its folders stand. */
TEST(a_leftover_is_killed_and_replaced_by_make)
{
	const uint64_t limits[LIMIT_COUNT] = { [LIMIT_PIDS] = 7 };
	struct cgroup dead, cg;
	pid_t members[4];
	char text[64];

	make_group(&dead, limits);
	pid_t child = start_inside(&dead, sleep_on);
	cgroup_done(&dead);

	make_group(&cg, no_limits);
	CHECK_INT(status_of(child), SIGKILL);
	CHECK_INT(cgroup_members(&cg, members, COUNT(members)), 0);
	file_of(&cg, CG_PIDS, "pids.max", "pids.max", text);
	CHECK_STR(text, "max"); /* and not what the dead one had */
	end_group(&cg);
}

/* Every hierarchy that we know of shows the child below caisson/. */
static int leave_the_top(void)
{
	struct cgroup cg;
	char text[4096], *save = NULL;
	int outside = 0;

	if (cgroup_find(&cg, true) < 0)
		return 99;
	read_text("/proc/self/cgroup", text, sizeof text);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *list = strchr(line, ':') + 1;
		char path[96];

		snprintf(path, sizeof path, "/sys/fs/cgroup/%.*s", (int)strcspn(list, ":"), list);
		for (size_t i = 0; i < cg.n_trees; i++)
			outside += !cg.trees[i].is_v2 && strcmp(cg.trees[i].path, path) == 0 &&
			           !strstr(line, "/caisson");
	}
	return outside;
}

TEST(who_joins_stands_at_the_top_of_no_v1_hierarchy)
{
	struct cgroup cg;

	make_group(&cg, no_limits);
	CHECK_INT(status_of(start_inside(&cg, leave_the_top)), 0);
	end_group(&cg);
}

/* Launchers that end remove caisson/ wherever nobody is in it, and those that start need it. */
TEST(what_another_launcher_removes_meanwhile_is_made_again)
{
	struct cgroup cg = { .trees = { { .is_shared = true, .is_devices = true, .tasks_fd = -1 } },
		             .n_trees = 1 };
	char *top = cg.trees[0].path;
	struct err e = { 0 };
	int failed = 0;

	if (geteuid() != 0 || access("/sys/fs/cgroup/devices/tasks", W_OK) < 0)
		SKIP("needs root, and devices by cgroup v1");
	snprintf(top, sizeof cg.trees[0].path, "/sys/fs/cgroup/devices/x%d", getpid());
	CHECK_INT(mkdir(top, 0755), 0);
	fflush(NULL);
	pid_t remover = fork();
	if (remover == 0)
		for (;; usleep(1000))
			cgroup_remove_base(&cg);
	for (int i = 0; i < 500; i++) {
		bool has_failed = cgroup_prepare(&cg, "0", &e) < 0 ||
		                  (usleep(100), cgroup_join_shared(&cg, &e) < 0);

		failed += has_failed;
		CHECK_INT(os_write_file(AT_FDCWD, "/sys/fs/cgroup/devices/tasks", "0"), 0);
		fd_close(&cg.trees[0].tasks_fd);
		failed += cgroup_live_in(&cg) < 0;
		CHECK_INT(os_write_file(AT_FDCWD, "/sys/fs/cgroup/devices/tasks", "0"), 0);
		cg.is_born_in = false;
	}
	CHECK_INT(kill(remover, SIGKILL), 0);
	CHECK_INT(waitpid(remover, NULL, 0), remover);
	cgroup_remove_base(&cg);
	CHECK_INT(rmdir(top), 0);
	printf("# %s\n", e.msg);
	CHECK_INT(failed, 0);
}

TEST(a_monitor_is_born_though_another_launcher_removes_its_group)
{
	struct cgroup cg = { .trees = { { .is_shared = true, .is_v2 = true, .tasks_fd = -1 } },
		             .n_trees = 1,
		             .box_fd = -1,
		             .mon_fd = -1 };
	char *top = cg.trees[0].path;
	struct err e = { 0 };

	if (geteuid() != 0 || access("/sys/fs/cgroup/unified/cgroup.procs", W_OK) < 0)
		SKIP("needs root, and cgroup v2 beside v1");
	snprintf(top, sizeof cg.trees[0].path, "/sys/fs/cgroup/unified/x%d", getpid());
	CHECK_INT(mkdir(top, 0755), 0);
	fflush(NULL);
	CHECK_INT(cgroup_prepare(&cg, "0", &e), 0);
	cgroup_remove_base(&cg);
	int pid = cgroup_clone(&cg);
	if (pid == 0)
		_exit(7);
	int born = pid; /* told when all is removed again */
	if (pid > 0)
		CHECK_INT(status_of(pid), 7 << 8);
	cgroup_remove_base(&cg);
	CHECK_INT(rmdir(top), 0);
	cgroup_done(&cg);
	CHECK(born > 0);
}

struct seen {
	const char *name;
	int count;
};

static void count_name(const char *name, void *arg)
{
	struct seen *seen = arg;

	seen->count += strcmp(name, seen->name) == 0;
}

TEST(a_folder_is_found_once_per_hierarchy)
{
	struct cgroup cg;
	struct seen seen = { cg.name, 0 };

	make_group(&cg, no_limits);
	CHECK(cgroup_any(&cg));
	cgroup_each_name(&cg, count_name, &seen);
	CHECK_INT(seen.count, (int)count_folders(&cg));
	end_group(&cg);
	seen.count = 0;
	cgroup_each_name(&cg, count_name, &seen);
	CHECK_INT(seen.count, 0);
}

/* ---- a monitor that was taken over -------------------------------------------------- */

enum { MONITOR_UID = 12345 }; /* make_group() hands the group to it */

static pid_t start_victim(uid_t uid)
{
	fflush(NULL);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		if (uid && os_set_ids(uid, uid) < 0)
			_exit(99);
		_exit(sleep_on());
	}
	return pid;
}

/* What a process of the monitor's id and without rights gets for writing `victim` to `fd`, or to
 * the file that it opens as cgroup_take_keys() does: 0 or an errno. */
static int move_as_monitor(const struct cgroup *cg, int fd, pid_t victim)
{
	char text[16];
	int n = snprintf(text, sizeof text, "%d", victim);

	fflush(NULL);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		char path[CGROUP_PATH_MAX];
		struct cgroup own = { .trees = { *cgroup_tree_of(cg, CG_PIDS) }, .n_trees = 1 };

		snprintf(own.name, sizeof own.name, "%s", cg->name);
		cgroup_path(&own, &own.trees[0], "tasks", path);
		int key = open(path, O_PATH | O_CLOEXEC); /* as root, as the launcher does */
		if (os_set_ids(MONITOR_UID, MONITOR_UID) < 0)
			_exit(99);
		if (fd < 0 && cgroup_take_keys(&own, &key, 1) < 0)
			_exit(98);
		_exit(write(fd < 0 ? own.trees[0].tasks_fd : fd, text, (size_t)n) == n ? 0 : errno);
	}
	return WEXITSTATUS(status_of(pid));
}

TEST(a_monitor_moves_its_own_processes_and_nobody_elses)
{
	struct cgroup cg;

	make_group(&cg, no_limits);
	if (cgroup_tree_of(&cg, CG_PIDS)->is_v2)
		SKIP("needs cgroup v1 with pids");
	pid_t victim = start_victim(0), other = start_victim(54321),
	      own = start_victim(MONITOR_UID);

	/* Control: by a descriptor that root opened it moves a process of root's. */
	CHECK_INT(move_as_monitor(&cg, cgroup_tree_of(&cg, CG_PIDS)->tasks_fd, victim), 0);
	CHECK_INT(move_as_monitor(&cg, -1, victim), EACCES);
	CHECK_INT(move_as_monitor(&cg, -1, other), EACCES);
	CHECK_INT(move_as_monitor(&cg, -1, own), 0);
	/* And one that is in there all the same outlives the end of the sandbox. */
	cg.least_uid = MONITOR_UID;
	CHECK_INT(cgroup_kill(&cg, 200), -ETIME);
	CHECK_INT(WTERMSIG(status_of(own)), SIGKILL);
	CHECK_INT(kill(victim, 0), 0);
	CHECK_INT(waitpid(victim, NULL, WNOHANG), 0);
	cg.least_uid = 0; /* control */
	end_group(&cg);
	CHECK_INT(WTERMSIG(status_of(victim)), SIGKILL);
	CHECK_INT(kill(other, SIGKILL), 0);
	(void)status_of(other);
}

static size_t list_one(const void *arg, pid_t *out, size_t max)
{
	CHECK(max > 0);
	out[0] = *(const pid_t *)arg;
	return out[0] > 0;
}

/* As if the number had become another one's between the list and the signal. */
TEST(who_is_not_in_the_list_any_more_is_not_killed)
{
	pid_t victim = start_victim(0), nobody = 0;

	cgroup_kill_listed(list_one, &nobody, 0, &victim, 1);
	usleep(20000);
	CHECK_INT(waitpid(victim, NULL, WNOHANG), 0);
	cgroup_kill_listed(list_one, &victim, 0, &victim, 1); /* control */
	CHECK_INT(WTERMSIG(status_of(victim)), SIGKILL);
}

/* ---- what the memory controller does not count -------------------------------------- */

static void put(const char *folder, const char *name)
{
	char path[CGROUP_PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_INT(write(fd, "max", 3), 3);
}

/* A folder with the files that a kernel with the controller would have: this host may have none. */
TEST(every_size_of_huge_pages_is_bounded_to_nothing)
{
	static const char *const files[] = {
		"hugetlb.2MB.max",     "hugetlb.2MB.rsvd.max",       "hugetlb.1GB.max",
		"hugetlb.2MB.current", "hugetlb.2MB.limit_in_bytes", "memory.max"
	};
	static const int bounded[2][COUNT(files)] = { { 0, 0, 0, 0, 1, 0 }, { 1, 1, 1, 0, 0, 0 } };
	char top[] = "/tmp/test-huge-XXXXXX", folder[64], path[CGROUP_PATH_MAX], text[64];

	CHECK(mkdtemp(top));
	snprintf(folder, sizeof folder, "%s/caisson", top);
	CHECK_INT(mkdir(folder, 0700), 0);
	put(top, "cgroup.subtree_control");
	for (int v2 = 0; v2 < 2; v2++) {
		struct cgroup_tree t = { .is_v2 = v2 };
		int n = 0;

		snprintf(t.path, sizeof t.path, "%s", top);
		for (size_t i = 0; i < COUNT(files); i++) {
			put(folder, files[i]);
			n += bounded[v2][i];
		}
		CHECK_INT(cgroup_forbid_huge(&t), n);
		for (size_t i = 0; i < COUNT(files); i++) {
			snprintf(path, sizeof path, "%s/%s", folder, files[i]);
			read_text(path, text, sizeof text);
			CHECK_INT(text[0] == '0', bounded[v2][i]);
			CHECK_INT(unlink(path), 0);
		}
	}
	snprintf(path, sizeof path, "%s/cgroup.subtree_control", top);
	CHECK_INT(unlink(path), 0);
	CHECK_INT(rmdir(folder), 0);
	CHECK_INT(rmdir(top), 0);
}

/* A sandbox on v1 filled the host's TCP memory: buffers of sockets on lo are not in its own. */
TEST(buffers_of_tcp_are_bounded_on_v1)
{
	const uint64_t limits[LIMIT_COUNT] = { [LIMIT_MEM] = 64 << 20 };
	struct cgroup cg;
	char text[64];

	make_group(&cg, limits);
	if (cgroup_tree_of(&cg, CG_MEMORY)->is_v2)
		SKIP("needs cgroup v1 with memory");
	file_of(&cg, CG_MEMORY, "memory.kmem.tcp.limit_in_bytes", "", text);
	if (text[0] == '\0')
		SKIP("this kernel has no memory.kmem.tcp");
	CHECK_STR(text, "67108864");
	end_group(&cg);
}
