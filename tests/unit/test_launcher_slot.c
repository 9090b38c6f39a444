#include "launcher/slot.h"

#include <sys/resource.h>
#include <time.h>

#include "test_slot.h"

/* ---- slots ------------------------------------------------------------------------- */

TEST(two_holders_never_have_the_same)
{
	enum { HOLDERS = 100 };
	struct slot_locks locks[HOLDERS] = { 0 };
	bool taken[SLOT_COUNT] = { false };

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	for (int i = 0; i < HOLDERS; i++) {
		int slot = take(slots, &locks[i]);

		CHECK(!taken[slot]);
		taken[slot] = true;
	}
	for (int i = 0; i < HOLDERS; i++)
		slot_locks_done(&locks[i]);
	runtime_remove();
}

/* A process that takes a slot, writes its number, and keeps it until it is killed. */
static pid_t start_holder(int start, int answer)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct slot_locks locks = { 0 };
		char byte;
		int slots = open_slots();

		(void)!read(start, &byte, 1);
		int slot = take(slots, &locks);

		if (write(answer, &slot, sizeof slot) != (ssize_t)sizeof slot)
			_exit(1);
		while (pause() < 0)
			;
	}
	CHECK(pid > 0);
	return pid;
}

/* None of them shares the gate: that their numbers are taken is enough. */
TEST(processes_that_start_at_once_get_different_ones_and_kill_9_gives_them_back)
{
	enum { HOLDERS = 16 };
	bool taken[SLOT_COUNT] = { false };
	pid_t pids[HOLDERS];
	int start[2], answer[2];

	runtime_make();
	AUTO(fd_close) int watcher = open_slots();
	CHECK_INT(pipe2(start, O_CLOEXEC), 0);
	CHECK_INT(pipe2(answer, O_CLOEXEC), 0);
	for (int i = 0; i < HOLDERS; i++)
		pids[i] = start_holder(start[0], answer[1]);
	CHECK_INT(write(start[1], "0123456789abcdef", HOLDERS), HOLDERS); /* a byte for each */
	for (int i = 0; i < HOLDERS; i++) {
		int slot;

		CHECK_INT(read(answer[0], &slot, sizeof slot), sizeof slot);
		CHECK(!taken[slot]);
		taken[slot] = true;
		CHECK(is_taken(watcher, slot));
	}
	for (int i = 0; i < HOLDERS; i++) {
		CHECK(!is_alone(watcher));
		CHECK_INT(kill(pids[i], SIGKILL), 0);
		CHECK_INT(waitpid(pids[i], NULL, 0), pids[i]);
	}
	CHECK(is_alone(watcher));
	runtime_remove();
}

TEST(a_slot_lives_as_long_as_launcher_or_monitor_has_it)
{
	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	for (int is_launcher_first = 0; is_launcher_first < 2; is_launcher_first++) {
		AUTO(slot_locks_done) struct slot_locks locks = { 0 };
		int slot = take(slots, &locks);
		int ready[2];

		CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
		pid_t monitor = start_monitor(&locks, ready[1], NULL);
		await_byte(ready[0]);
		slot_locks_give(&locks);
		CHECK(is_taken(slots, slot));
		if (is_launcher_first)
			slot_locks_done(&locks);
		else
			end_child(monitor);
		CHECK(is_taken(slots, slot));
		CHECK(!is_alone(slots));
		if (is_launcher_first)
			end_child(monitor);
		slot_locks_done(&locks);
		CHECK(!is_taken(slots, slot));
		CHECK(is_alone(slots));
	}
	runtime_remove();
}

TEST(a_slot_that_was_given_back_can_be_taken_again)
{
	AUTO(slot_locks_done) struct slot_locks a = { 0 }, b = { 0 };

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	int slot = take(slots, &a);

	CHECK(is_taken(slots, slot));
	slot_locks_done(&a);
	CHECK(slot_take_this(slots, slot, &b));
	CHECK(is_taken(slots, slot));
	runtime_remove();
}

TEST(the_gate_is_shared_by_many_or_one_has_it_alone)
{
	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	int a = share_gate(slots), b = share_gate(slots);

	CHECK(!is_alone(slots));
	fd_close(&a);
	CHECK(!is_alone(slots));
	CHECK(slot_alone(slots, b)); /* its own does not count */
	AUTO(fd_close) int c = openat(slots, "gate", O_RDWR | O_CLOEXEC);
	CHECK(!slot_alone(slots, c));
	fd_close(&b);
	CHECK(slot_alone(slots, c));
	runtime_remove();
}

TEST(of_two_who_share_the_gate_the_one_that_asks_last_is_alone)
{
	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	AUTO(fd_close) int a = share_gate(slots);
	AUTO(fd_close) int b = share_gate(slots);

	CHECK(!slot_alone(slots, a));
	CHECK(slot_alone(slots, b));
	runtime_remove();
}

TEST(nobody_is_alone_while_a_number_is_taken_and_the_gate_is_open_again)
{
	struct slot_locks locks = { 0 };

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	AUTO(fd_close) int gate = share_gate(slots);
	(void)take(slots, &locks);
	CHECK(!slot_alone(slots, gate));
	AUTO(fd_close) int other = share_gate(slots); /* does not wait */
	slot_locks_done(&locks);
	(void)take_work(slots, &locks);
	fd_close(&other);
	CHECK(!slot_alone(slots, gate));
	slot_locks_done(&locks);
	CHECK(slot_alone(slots, gate));
	runtime_remove();
}

TEST(who_wants_to_share_the_gate_waits_for_who_has_it_alone)
{
	struct timespec release, after;
	int ready[2];

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int gate = share_gate(slots);
		bool was_alone = slot_alone(slots, gate);

		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		usleep(100000);
		clock_gettime(CLOCK_MONOTONIC, &release);
		if (write(ready[1], &release, sizeof release) != (ssize_t)sizeof release)
			_exit(1);
		_exit(!was_alone);
	}
	await_byte(ready[0]);
	AUTO(fd_close) int gate = share_gate(slots);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK_INT(read(ready[0], &release, sizeof release), sizeof release);
	CHECK(after.tv_sec > release.tv_sec ||
	      (after.tv_sec == release.tv_sec && after.tv_nsec >= release.tv_nsec));
	int status;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	runtime_remove();
}

/* A descriptor for each number. */
static void raise_files(void)
{
	struct rlimit files;

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_max < SLOT_COUNT + 100)
		SKIP("needs more open files");
	files.rlim_cur = SLOT_COUNT + 100;
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &files), 0);
}

TEST(the_last_free_slot_is_found_and_then_none)
{
	static struct slot_locks all[SLOT_COUNT];
	struct slot_locks one = { 0 }, none = { 0 };
	struct err e = { 0 };
	int last = 1234;

	raise_files();
	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		CHECK(slot == last || slot_take_this(slots, slot, &all[slot]));
	CHECK_INT(take(slots, &one), last);
	CHECK_INT(slot_take(slots, &none, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	CHECK_STR(e.msg, "all 4095 slots are in use");
	CHECK_INT(none.n, 0);
	slot_locks_end(slots, &all[4094]);
	CHECK_INT(take(slots, &none), 4094);
	runtime_remove();
}

/* ---- workspaces ---------------------------------------------------------------------- */

TEST(the_ids_of_a_workspace_are_its_own_until_the_last_who_shares_them_is_gone)
{
	struct slot_locks keeper = { 0 }, sandbox = { 0 }, other = { 0 };
	struct err e = { 0 };

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	int work = take_work(slots, &keeper);
	int given = keeper.at[0].given_fd;

	CHECK(take_work(slots, &other) != work);
	fd_close(&keeper.at[0].own_fd);
	CHECK_INT(os_any_locked(given), 0); /* its own does not count */
	CHECK(!slot_work_is_free(slots, work));
	(void)take(slots, &sandbox);
	CHECK_INT(slot_share_work(slots, work, &sandbox, &e), 0);
	CHECK_INT(os_any_locked(given), 1); /* so it knows of sandboxes */
	slot_locks_done(&keeper);
	CHECK(!slot_work_is_free(slots, work));
	slot_locks_give(&sandbox);
	CHECK(!slot_work_is_free(slots, work));
	slot_locks_done(&sandbox);
	CHECK(slot_work_is_free(slots, work));
	CHECK(slot_work_is_free(slots, (work + 7) % SLOT_WORK_COUNT)); /* never used */
	slot_locks_done(&other);
	runtime_remove();
}

TEST(slots_and_workspaces_do_not_share_files_or_ids)
{
	static const struct {
		uint32_t id;
		bool is_ours;
	} rows[] = {
		{ 0, false },
		{ 1000, false },
		{ SLOT_WORK_ID_BASE - 1, false },
		{ SLOT_WORK_ID_BASE, true },
		{ SLOT_WORK_ID_BASE + SLOT_WORK_COUNT * SLOT_ID_COUNT - 1, true },
		{ 0x6fffff00u, false }, /* the daemon */
		{ 0x6fffff01u, false },
		{ SLOT_ID_BASE, true },
		{ SLOT_ID_BASE + SLOT_COUNT * SLOT_ID_COUNT - 1, true },
		{ SLOT_ID_BASE + SLOT_COUNT * SLOT_ID_COUNT, false },
		{ UINT32_MAX, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# %x\n", rows[i].id);
		CHECK_INT(slot_is_id(rows[i].id), rows[i].is_ours);
	}
	CHECK_INT(slot_work_id(0), SLOT_WORK_ID_BASE);
	CHECK_INT(slot_work_id(2), SLOT_WORK_ID_BASE + 2 * SLOT_ID_COUNT);
	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	struct slot_locks locks = { 0 };
	int slot = take(slots, &locks);
	CHECK(slot_work_is_free(slots, slot));
	slot_locks_done(&locks);
	int work = take_work(slots, &locks);
	CHECK(!is_taken(slots, work));
	slot_locks_done(&locks);
	runtime_remove();
}

TEST(when_all_workspaces_are_open_no_other_is)
{
	struct slot_locks none = { 0 };
	struct err e = { 0 };

	raise_files();
	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	for (int i = 0; i < SLOT_WORK_COUNT; i++) {
		char name[16];

		snprintf(name, sizeof name, "w%d", i);
		int fd = openat(slots, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		CHECK(fd >= 0);
		CHECK_INT(os_lock_shared(fd, 0), 0);
	}
	CHECK_INT(slot_take_work(slots, &none, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	CHECK_STR(e.msg, "4095 workspaces are open");
	runtime_remove();
}

/* 65,536 ids each, from where systemd's end to below 2^31. */
TEST(the_ids_of_all_slots_are_31_bits_wide)
{
	CHECK(SLOT_ID_BASE + (uint64_t)SLOT_COUNT * SLOT_ID_COUNT <= INT32_MAX);
}

TEST(a_lock_file_that_cannot_be_locked_is_an_error)
{
	struct err e = { 0 };

	struct slot_locks locks = { 0 };

	CHECK_INT(slot_share(-1, &e), -1);
	CHECK_STR(e.msg, "lock the run folder: Bad file descriptor");
	CHECK_INT(slot_take(-1, &locks, &e), -1);
	CHECK_STR(e.msg, "lock a slot: Bad file descriptor");
	CHECK(!slot_work_is_free(-1, 0));
	CHECK(!slot_alone(-1, -1));
	CHECK_INT(slot_open(-1, &e), -1);
}

/* ---- the run folder ---------------------------------------------------------------- */

/* Others pass through, to the skeleton, and see nothing. */
TEST(the_run_folder_is_made_and_found_again_whatever_the_umask)
{
	static const mode_t masks[] = { 0, 022, 077, 0777 };

	for (size_t i = 0; i < COUNT(masks); i++) {
		struct stat st, again;

		runtime_make();
		umask(masks[i]);
		AUTO(fd_close) int a = open_run();
		AUTO(fd_close) int b = open_run();
		CHECK_INT(fstat(a, &st), 0);
		CHECK_INT(fstat(b, &again), 0);
		CHECK(st.st_ino == again.st_ino);
		CHECK_INT(st.st_mode, S_IFDIR | 0711);
		CHECK_INT(st.st_uid, geteuid());
		CHECK_INT(fcntl(a, F_GETFD), FD_CLOEXEC);
		runtime_remove();
	}
}

TEST(the_lock_files_are_their_owners_alone)
{
	struct slot_locks locks = { 0 };
	struct stat st;

	runtime_make();
	umask(0);
	AUTO(fd_close) int slots = open_slots();
	CHECK_INT(fstat(slots, &st), 0);
	CHECK_INT(st.st_mode, S_IFDIR | 0700);
	CHECK_INT(fcntl(slots, F_GETFD), FD_CLOEXEC);
	(void)take(slots, &locks);
	(void)take_work(slots, &locks);
	AUTO(fd_close) int gate = share_gate(slots);
	const int fds[] = { gate, locks.at[0].own_fd, locks.at[0].given_fd, locks.at[1].own_fd,
		            locks.at[1].given_fd };
	for (size_t i = 0; i < COUNT(fds); i++) {
		CHECK_INT(fstat(fds[i], &st), 0);
		CHECK_INT(st.st_mode, S_IFREG | 0600);
		CHECK_INT(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
	}
	CHECK_INT(fcntl(locks.at[0].given_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	CHECK_INT(fcntl(locks.at[1].given_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	slot_locks_done(&locks);
	runtime_remove();
}

static void check_refused(const char *why)
{
	struct err e = { 0 };

	printf("# %s\n", why);
	CHECK_INT(slot_run_dir(false, &e), -1);
	CHECK(strstr(e.msg, run_path)); /* it says which folder */
}

TEST(a_run_folder_that_others_can_write_is_refused)
{
	static const mode_t modes[] = { 0777, 01777, 0770, 0702, 0720, 0733 };

	runtime_make();
	CHECK_INT(mkdir(run_path, 0700), 0);
	for (size_t i = 0; i < COUNT(modes); i++) {
		CHECK_INT(chmod(run_path, modes[i]), 0);
		check_refused("writable by others");
	}
	CHECK_INT(chmod(run_path, 0755), 0);
	AUTO(fd_close) int run = open_run();
	runtime_remove();
}

TEST(a_run_folder_of_somebody_else_is_refused)
{
	if (geteuid() != 0)
		SKIP("needs root");
	runtime_make();
	CHECK_INT(mkdir(run_path, 0700), 0);
	CHECK_INT(chown(run_path, 54321, 0), 0);
	check_refused("somebody else's");
	runtime_remove();
}

TEST(a_run_folder_that_is_no_folder_is_refused)
{
	char other[96];

	runtime_make();
	CHECK_INT(mknod(run_path, S_IFREG | 0600, 0), 0);
	check_refused("a file");
	CHECK_INT(unlink(run_path), 0);
	snprintf(other, sizeof other, "%s/other", runtime);
	CHECK_INT(mkdir(other, 0700), 0);
	CHECK_INT(symlink(other, run_path), 0);
	check_refused("a link to a good one");
	CHECK_INT(rmdir(other), 0);
	check_refused("a link to nothing");
	CHECK_INT(access(other, F_OK), -1); /* and nothing is made through it */
	runtime_remove();
}

TEST(a_folder_of_lock_files_that_is_a_link_is_refused)
{
	struct err e = { 0 };
	char victim[128];

	runtime_make();
	AUTO(fd_close) int run = open_run();
	AUTO(fd_close) int dir = open(run_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(victim, sizeof victim, "%s/victim", runtime);
	CHECK_INT(symlinkat(victim, dir, "slots"), 0);
	CHECK_INT(slot_open(run, &e), -1);
	CHECK_INT(e.sys, ELOOP);
	CHECK_INT(access(victim, F_OK), -1);
	runtime_remove();
}

/* Cut, it would be another folder. */
TEST(a_runtime_folder_with_too_long_a_path_is_refused)
{
	static char deep[4100];
	struct err e = { 0 };

	memset(deep, '/', sizeof deep - 1);
	memcpy(deep, "/tmp", 4);
	setenv("XDG_RUNTIME_DIR", deep, 1);
	if (access(deep, W_OK) == 0) {
		CHECK_INT(slot_run_dir(false, &e), -1);
		CHECK_STR(e.msg, "XDG_RUNTIME_DIR is too long a path");
	}
	deep[4090] = '\0'; /* with "/caisson" it is one too many */
	setenv("XDG_RUNTIME_DIR", deep, 1);
	CHECK_INT(slot_run_dir(false, &e), -1);
	CHECK_STR(e.msg, "XDG_RUNTIME_DIR is too long a path");
}

/* Without a runtime folder of the session: one in /tmp, by user. */
TEST(a_runtime_folder_that_is_not_ours_to_write_is_not_used)
{
	static const char *const values[] = { NULL, "", "relative", "/absent/runtime" };
	char want[64], got[64], link[32];

	snprintf(want, sizeof want, "/tmp/caisson-%u", geteuid());
	bool was_there = access(want, F_OK) == 0;

	for (size_t i = 0; i < COUNT(values); i++) {
		if (values[i])
			setenv("XDG_RUNTIME_DIR", values[i], 1);
		else
			unsetenv("XDG_RUNTIME_DIR");
		AUTO(fd_close) int run = open_run();
		snprintf(link, sizeof link, "/proc/self/fd/%d", run);
		ssize_t n = readlink(link, got, sizeof got - 1);
		CHECK(n > 0);
		got[n] = '\0';
		CHECK_STR(got, want);
	}
	if (!was_there)
		rmdir(want);
}

TEST(not_more_than_64_one_shots_end_in_one_instant_when_their_daemon_dies)
{
	static int at[4096];

	for (int slot = 0; slot < SLOT_COUNT; slot++) {
		CHECK(slot_end_wait_ms(slot) < COUNT(at));
		CHECK(++at[slot_end_wait_ms(slot)] <= 64);
	}
	CHECK(slot_end_wait_ms(SLOT_COUNT - 1) < 2000);
}

static int child_that_waits(void)
{
	int pid = fork();

	if (pid == 0)
		pause();
	CHECK(pid > 0);
	return pid;
}

TEST(a_monitor_is_found_by_its_note_and_never_another_process)
{
	runtime_make();
	AUTO(fd_close) int run = open_run();
	int pid = child_that_waits(), status;

	CHECK_INT(slot_find_monitor(run, 7, "7-a"), -ESRCH); /* no note */
	CHECK_INT(slot_note_monitor(run, 7, pid, "7-a"), 0);
	AUTO(fd_close) int found = slot_find_monitor(run, 7, "7-a");
	CHECK(found >= 0);
	CHECK_INT(slot_find_monitor(run, 7, "7-b"), -ESRCH);
	CHECK_INT(slot_find_monitor(run, 8, "7-a"), -ESRCH);
	CHECK_INT(os_pidfd_signal(found, SIGKILL), 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(slot_find_monitor(run, 7, "7-a"), -ESRCH);
	/* The number is another one's now, born later: what a note of it says is wrong. */
	usleep(50000); /* more than a tick */
	int64_t other = child_that_waits();
	AUTO(fd_close) int notes = openat(run, "monitors", O_RDWR | O_CLOEXEC);
	CHECK_INT(pwrite(notes, &other, sizeof other, (off_t)7 * 64), sizeof other);
	CHECK_INT(slot_find_monitor(run, 7, "7-a"), -ESRCH);
	CHECK_INT(kill((pid_t)other, SIGKILL), 0);
	CHECK_INT(unlinkat(run, "monitors", 0), 0);
	runtime_remove();
}
