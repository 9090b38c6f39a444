#include "launcher/slot.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "os/proc.h"
#include "test.h"

/* ---- a runtime folder for one test ------------------------------------------------- */

static char runtime[64], run_path[96];

static void runtime_make(void)
{
	snprintf(runtime, sizeof runtime, "/tmp/test-slot-XXXXXX");
	CHECK(mkdtemp(runtime));
	snprintf(run_path, sizeof run_path, "%s/caisson", runtime);
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	umask(022);
}

static void runtime_remove(void)
{
	char slots[128];

	snprintf(slots, sizeof slots, "%s/slots", run_path);
	unlink(slots);
	if (unlink(run_path) < 0)
		rmdir(run_path);
	CHECK_INT(rmdir(runtime), 0);
}

static int open_run(void)
{
	struct err e = { 0 };
	int fd = slot_run_dir(false, &e);

	if (fd < 0)
		CHECK_STR(e.msg, "");
	return fd;
}

/* The lock file, as a description of its own. */
static int open_slots(void)
{
	struct err e = { 0 };
	AUTO(fd_close) int run = open_run();
	int fd = slot_open(run, &e);

	if (fd < 0)
		CHECK_STR(e.msg, "");
	return fd;
}

static int take(int slots)
{
	struct err e = { 0 };
	int slot = slot_take(slots, &e);

	if (slot < 0)
		CHECK_STR(e.msg, "");
	CHECK(slot < SLOT_COUNT);
	return slot;
}

/* ---- slots ------------------------------------------------------------------------- */

TEST(two_holders_never_have_the_same)
{
	enum { HOLDERS = 100 };
	int slots[HOLDERS];
	bool taken[SLOT_COUNT] = { false };

	runtime_make();
	for (int i = 0; i < HOLDERS; i++) {
		slots[i] = open_slots();
		int slot = take(slots[i]);

		CHECK(!taken[slot]);
		taken[slot] = true;
	}
	for (int i = 0; i < HOLDERS; i++)
		fd_close(&slots[i]);
	runtime_remove();
}

/* A process that takes a slot, writes its number, and keeps it until it is killed. */
static pid_t start_holder(int start, int answer)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		int slots = open_slots();

		(void)!read(start, &byte, 1);
		int slot = take(slots);

		if (write(answer, &slot, sizeof slot) != (ssize_t)sizeof slot)
			_exit(1);
		while (pause() < 0)
			;
	}
	CHECK(pid > 0);
	return pid;
}

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
		CHECK(!slot_take_this(watcher, slot));
	}
	CHECK(!slot_alone(watcher));
	for (int i = 0; i < HOLDERS; i++) {
		CHECK_INT(kill(pids[i], SIGKILL), 0);
		CHECK_INT(waitpid(pids[i], NULL, 0), pids[i]);
	}
	CHECK(slot_alone(watcher));
	runtime_remove();
}

/* The monitor inherits the lock: the slot is free when launcher and monitor are both gone. */
TEST(a_slot_lives_as_long_as_the_last_process_that_has_it)
{
	int ready[2];
	char byte;

	runtime_make();
	AUTO(fd_close) int watcher = open_slots();
	AUTO(fd_close) int launcher = open_slots();
	int slot = take(launcher);

	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	fflush(NULL);
	pid_t monitor = fork();
	if (monitor == 0) {
		(void)!write(ready[1], "x", 1);
		while (pause() < 0)
			;
	}
	CHECK_INT(read(ready[0], &byte, 1), 1);
	fd_close(&launcher);
	CHECK(!slot_take_this(watcher, slot));
	CHECK_INT(kill(monitor, SIGKILL), 0);
	CHECK_INT(waitpid(monitor, NULL, 0), monitor);
	CHECK(slot_take_this(watcher, slot));
	runtime_remove();
}

TEST(a_released_slot_can_be_taken_again)
{
	runtime_make();
	AUTO(fd_close) int a = open_slots();
	AUTO(fd_close) int b = open_slots();
	int slot = take(a);

	CHECK(!slot_take_this(b, slot));
	slot_release(a, slot);
	CHECK(slot_take_this(b, slot));
	CHECK(!slot_take_this(a, slot));
	runtime_remove();
}

TEST(the_gate_is_shared_by_many_or_one_has_it_alone)
{
	struct err e = { 0 };

	runtime_make();
	int a = open_slots();
	AUTO(fd_close) int b = open_slots();
	AUTO(fd_close) int c = open_slots();

	CHECK_INT(slot_share(a, &e), 0);
	(void)take(b); /* shares it too */
	CHECK(!slot_alone(c));
	fd_close(&a);
	CHECK(!slot_alone(c));
	CHECK(slot_alone(b)); /* its own does not count */
	fd_close(&b);
	CHECK(slot_alone(c));
	runtime_remove();
}

TEST(who_wants_to_share_the_gate_waits_for_who_has_it_alone)
{
	struct timespec release, after;
	struct err e = { 0 };
	int ready[2];
	char byte;

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		bool is_alone = slot_alone(open_slots());

		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		usleep(100000);
		clock_gettime(CLOCK_MONOTONIC, &release);
		if (write(ready[1], &release, sizeof release) != (ssize_t)sizeof release)
			_exit(1);
		_exit(!is_alone);
	}
	CHECK_INT(read(ready[0], &byte, 1), 1);
	CHECK_INT(slot_share(slots, &e), 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK_INT(read(ready[0], &release, sizeof release), sizeof release);
	CHECK(after.tv_sec > release.tv_sec ||
	      (after.tv_sec == release.tv_sec && after.tv_nsec >= release.tv_nsec));
	int status;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	runtime_remove();
}

TEST(the_last_free_slot_is_found_and_then_none)
{
	struct err e = { 0 };
	int last = 1234;

	runtime_make();
	AUTO(fd_close) int all = open_slots();
	AUTO(fd_close) int one = open_slots();
	AUTO(fd_close) int none = open_slots();
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		CHECK(slot == last || slot_take_this(all, slot));
	CHECK_INT(take(one), last);
	CHECK_INT(slot_take(none, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	CHECK_STR(e.msg, "all 4095 slots are in use");
	slot_release(all, 4094);
	CHECK_INT(take(none), 4094);
	runtime_remove();
}

/* ---- workspaces ---------------------------------------------------------------------- */

static int take_work(int slots)
{
	struct err e = { 0 };
	int work = slot_take_work(slots, &e);

	if (work < 0)
		CHECK_STR(e.msg, "");
	CHECK(work < SLOT_WORK_COUNT);
	return work;
}

TEST(the_ids_of_a_workspace_are_its_own_until_the_last_who_shares_them_is_gone)
{
	struct err e = { 0 };

	runtime_make();
	int keeper = open_slots(), monitor = open_slots();
	AUTO(fd_close) int other = open_slots();
	int work = take_work(keeper);

	CHECK(take_work(other) != work);
	CHECK(slot_work_is_free(keeper, work)); /* its own does not count */
	CHECK(!slot_work_is_free(other, work));
	CHECK_INT(slot_share_work(monitor, work, &e), 0);
	CHECK(!slot_work_is_free(keeper, work));
	fd_close(&keeper);
	CHECK(!slot_work_is_free(other, work));
	fd_close(&monitor);
	CHECK(slot_work_is_free(other, work));
	runtime_remove();
}

TEST(slots_and_workspaces_do_not_share_bytes_or_ids)
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
	CHECK(slot_work_byte(0) > SLOT_COUNT); /* and the gate */
	CHECK_INT(slot_work_id(0), SLOT_WORK_ID_BASE);
	CHECK_INT(slot_work_id(2), SLOT_WORK_ID_BASE + 2 * SLOT_ID_COUNT);
}

TEST(when_all_workspaces_are_open_no_other_is)
{
	struct err e = { 0 };

	runtime_make();
	AUTO(fd_close) int all = open_slots();
	AUTO(fd_close) int none = open_slots();
	for (int i = 0; i < SLOT_WORK_COUNT; i++)
		CHECK_INT(slot_share_work(all, i, &e), 0);
	CHECK_INT(slot_take_work(none, &e), -1);
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

	CHECK_INT(slot_take(-1, &e), -1);
	CHECK_STR(e.msg, "lock the run folder: Bad file descriptor");
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

TEST(the_lock_file_is_its_owners_alone)
{
	struct stat st;

	runtime_make();
	umask(0);
	AUTO(fd_close) int slots = open_slots();
	CHECK_INT(fstat(slots, &st), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0600);
	CHECK_INT(fcntl(slots, F_GETFD), FD_CLOEXEC);
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

TEST(a_lock_file_that_is_a_link_is_refused)
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
