/* Numbers in bad company: a monitor that fell, gc at the same time, sandboxes of older versions. */
#include "launcher/slot.h"

#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "test_slot.h"

/* ---- a monitor that fell --------------------------------------------------------------- */

static bool was_root;

#define BYTES_TRIED 8200 /* more than both rows had in one file */

/* In rootless mode everybody is the same user, and may. */
static bool reopens(int fd)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	AUTO(fd_close) int again = open(path, O_RDWR | O_CLOEXEC);
	return again >= 0 && was_root;
}

/* Whatever a hostile process can do to others by this description. How much of it went well. */
static int abuse(int fd)
{
	int n = 0;

	(void)flock(fd, LOCK_EX | LOCK_NB); /* of another kind: keeps nobody from ours */
	for (int i = 0; i <= BYTES_TRIED; i++) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

		lock.l_start = i < BYTES_TRIED ? i : 0;
		lock.l_len = i < BYTES_TRIED; /* at last all of it */
		n += fcntl(fd, F_OFD_SETLK, &lock) == 0;
		n += fcntl(fd, F_SETLK, &lock) == 0;
		lock.l_type = F_RDLCK;
		(void)fcntl(fd, F_OFD_SETLK, &lock);
		lock.l_type = F_WRLCK;
		n += fcntl(fd, F_OFD_SETLK, &lock) == 0;
	}
	n += write(fd, "x", 1) == 1 || reopens(fd);
	n += ftruncate(fd, 1 << 20) == 0;
	n += fallocate(fd, 0, 0, 1 << 20) == 0;
	return n;
}

static void abuse_all(int ready)
{
	int n = 0;

	was_root = geteuid() == 0;
	if (was_root && os_set_ids(54321, 54321) < 0)
		_exit(1);
	for (int fd = 3; fd < 1024; fd++)
		n += fd == ready || fcntl(fd, F_GETFD) < 0 ? 0 : abuse(fd);
	(void)!write(ready, &n, sizeof n);
}

static void give_up_all(int ready)
{
	const struct flock none = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	for (int fd = 3; fd < 1024; fd++)
		if (fd != ready)
			(void)fcntl(fd, F_OFD_SETLK, &none);
}

static pid_t start_hostile(const struct slot_locks *l, int *n)
{
	int ready[2];

	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = start_monitor(l, ready[1], abuse_all);
	CHECK_INT(read(ready[0], n, sizeof *n), sizeof *n);
	await_byte(ready[0]);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* One file with a byte for each number, open for writing, as every monitor once had it. */
TEST(control_with_one_file_for_all_a_hostile_monitor_takes_every_number)
{
	int n;

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	AUTO(fd_close) int monitor = openat(slots, "all", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	AUTO(fd_close) int launcher = openat(slots, "all", O_RDWR | O_CLOEXEC);
	const struct slot_locks given = { .at = { { .own_fd = -1, .given_fd = monitor } }, .n = 1 };

	CHECK_INT(os_lock_byte(monitor, 5), 0);
	CHECK_INT(os_lock_byte(launcher, 6), 0); /* control */
	CHECK_INT(os_unlock_byte(launcher, 6), 0);
	pid_t pid = start_hostile(&given, &n);
	CHECK(n > BYTES_TRIED);
	for (int i = 0; i < BYTES_TRIED; i += 100)
		CHECK_INT(os_lock_byte(launcher, i), -EAGAIN);
	end_child(pid);
	runtime_remove();
}

TEST(a_hostile_monitor_takes_no_number_but_its_own_and_not_the_gate)
{
	struct slot_locks sandbox = { 0 }, keeper = { 0 }, other = { 0 };
	struct err e = { 0 };
	int n;

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	int slot = take(slots, &sandbox), work = take_work(slots, &keeper);
	CHECK_INT(slot_share_work(slots, work, &sandbox, &e), 0);
	pid_t monitor = start_hostile(&sandbox, &n);
	CHECK_INT(n, 0);
	pid_t vault = start_hostile(&keeper, &n);
	CHECK_INT(n, 0);

	AUTO(fd_close) int gate = share_gate(slots); /* does not wait */
	CHECK_INT(os_unlock_byte(gate, 0), 0);
	CHECK_INT(os_lock_byte(gate, 0), 0); /* nor does anybody share it */
	for (int i = 0; i < SLOT_COUNT; i += 50)
		CHECK(i == slot || !is_taken(slots, i));
	(void)take(slots, &other);
	CHECK_INT(slot_share_work(slots, work, &other, &e), 0);
	CHECK(take_work(slots, &other) != work);
	slot_locks_done(&other);
	end_child(monitor);
	end_child(vault);
	slot_locks_done(&sandbox);
	slot_locks_done(&keeper);
	CHECK(!is_taken(slots, slot));
	CHECK(slot_work_is_free(slots, work));
	runtime_remove();
}

TEST(a_monitor_that_gives_up_its_number_does_not_free_it_while_its_launcher_lives)
{
	struct slot_locks sandbox = { 0 };
	int ready[2];

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	int slot = take(slots, &sandbox);
	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	pid_t monitor = start_monitor(&sandbox, ready[1], give_up_all);
	await_byte(ready[0]);
	slot_locks_give(&sandbox);
	CHECK(is_taken(slots, slot));
	slot_locks_done(&sandbox);
	CHECK(!is_taken(slots, slot)); /* it did give up what it had */
	end_child(monitor);
	runtime_remove();
}

/* ---- the files of numbers go ------------------------------------------------------------ */

static int count_files(int slots)
{
	AUTO(fd_close) int again = openat(slots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd_take(&again));
	int n = -2; /* "." and ".." */

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST(a_number_that_was_given_back_leaves_no_file)
{
	struct slot_locks sandbox = { 0 }, keeper = { 0 }, dead = { 0 };
	struct err e = { 0 };

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	int work = take_work(slots, &keeper);
	(void)take(slots, &sandbox);
	CHECK_INT(slot_share_work(slots, work, &sandbox, &e), 0);
	CHECK(slot_take_this(slots, 7, &dead));
	CHECK_INT(count_files(slots), 3);
	slot_locks_end(slots, &dead);
	CHECK_INT(count_files(slots), 2);
	slot_locks_end(slots, &sandbox);
	CHECK_INT(count_files(slots), 1); /* the keeper lives */
	CHECK(!slot_work_clear(slots, work));
	slot_locks_done(&keeper);
	CHECK(slot_work_is_free(slots, work));
	CHECK_INT(count_files(slots), 1);
	CHECK(slot_work_clear(slots, work));
	CHECK(slot_work_clear(slots, work)); /* there is none */
	CHECK_INT(count_files(slots), 0);
	runtime_remove();
}

TEST(a_launcher_does_not_remove_the_file_of_a_number_that_a_monitor_has)
{
	struct slot_locks locks = { 0 };
	int ready[2];

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	int slot = take(slots, &locks);
	CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
	pid_t monitor = start_monitor(&locks, ready[1], NULL);
	await_byte(ready[0]);
	slot_locks_end(slots, &locks);
	slot_remove_free(slots);
	CHECK_INT(count_files(slots), 1);
	CHECK(is_taken(slots, slot));
	end_child(monitor);
	CHECK_INT(count_files(slots), 1); /* nobody was there to remove it */
	slot_remove_free(slots);
	CHECK_INT(count_files(slots), 0);
	runtime_remove();
}

TEST(free_numbers_are_removed_and_nothing_else)
{
	struct slot_locks locks = { 0 }, held = { 0 };

	runtime_make();
	AUTO(fd_close) int slots = open_slots();
	AUTO(fd_close) int gate = share_gate(slots);
	CHECK_INT(mknodat(slots, "other", S_IFREG | 0600, 0), 0);
	for (int i = 0; i < 10; i++) {
		(void)take(slots, &locks);
		(void)take_work(slots, &locks);
		slot_locks_done(&locks);
	}
	(void)take(slots, &held);
	(void)take_work(slots, &held);
	CHECK_INT(count_files(slots), 24);
	slot_remove_free(slots);
	CHECK_INT(count_files(slots), 4);
	CHECK_INT(faccessat(slots, "gate", F_OK, 0), 0);
	slot_locks_end(slots, &held);
	CHECK_INT(count_files(slots), 2);
	runtime_remove();
}

enum { FEW = 3, ROUNDS = 1000, TAKERS = 6, REMOVERS = 2 };

/* Shared by all of them. */
struct tally {
	_Atomic int owners[FEW]; /* how many have this number */
	_Atomic int n_taken, n_done;
};

/* Takes one of few numbers, many times; every other time the file stays for others to remove. */
static _Noreturn void take_and_leave(struct tally *t)
{
	int slots = open_slots(), status = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct slot_locks locks = { 0 };
		int at = i % FEW;

		if (slot_take_this(slots, at, &locks)) {
			status |= ++t->owners[at] != 1;
			t->n_taken++;
			sched_yield();
			t->owners[at]--;
		}
		if (i % 2)
			slot_locks_end(slots, &locks);
		else
			slot_locks_done(&locks);
	}
	t->n_done++;
	_exit(status);
}

static _Noreturn void remove_often(struct tally *t)
{
	int slots = open_slots();

	while (t->n_done < TAKERS)
		slot_remove_free(slots);
	_exit(0);
}

/* A file that is removed while somebody is about to lock it would be a number with two owners. */
TEST(a_number_has_one_owner_also_while_others_remove_the_files)
{
	pid_t pids[TAKERS + REMOVERS];

	runtime_make();
	struct tally *t =
	    mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(t != MAP_FAILED);
	fflush(NULL);
	for (int i = 0; i < TAKERS + REMOVERS; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0 && i < TAKERS)
			take_and_leave(t);
		if (pids[i] == 0)
			remove_often(t);
	}
	for (int i = 0; i < TAKERS + REMOVERS; i++) {
		int status;

		CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_INT(status, 0);
	}
	printf("# taken %d times\n", t->n_taken);
	CHECK(t->n_taken > ROUNDS / 10);
	runtime_remove();
}

/* ---- the file of older versions --------------------------------------------------------- */

static int old_file(int run)
{
	int fd = openat(run, "slots", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	return fd;
}

TEST(the_lock_file_of_an_older_version_is_replaced_when_nobody_holds_it)
{
	struct stat st;

	runtime_make();
	AUTO(fd_close) int run = open_run();
	AUTO(fd_close) int old = old_file(run);
	AUTO(fd_close) int slots = open_slots();
	CHECK_INT(fstat(slots, &st), 0);
	CHECK(S_ISDIR(st.st_mode));
	CHECK_INT(fstat(old, &st), 0);
	CHECK_INT(st.st_nlink, 0);
	CHECK_INT(openat(run, "slots", O_RDWR | O_CLOEXEC), -1); /* the older version finds none */
	runtime_remove();
}

/* A slot, the gate, a workspace; each alone is a sandbox or a keeper that lives. */
TEST(an_older_version_whose_sandboxes_live_keeps_this_one_out)
{
	static const int bytes[] = { 0, 4094, 4095, 4096, 8190 };

	for (size_t i = 0; i < COUNT(bytes); i++) {
		struct err e = { 0 };
		struct stat st;

		runtime_make();
		AUTO(fd_close) int run = open_run();
		AUTO(fd_close) int old = old_file(run);
		CHECK_INT(os_lock_shared(old, bytes[i]), 0);
		CHECK_INT(slot_open(run, &e), -1);
		CHECK_INT(e.kind, ERR_DENIED);
		CHECK(strstr(e.msg, run_path));
		CHECK(strstr(e.msg, "fuser -k "));
		CHECK_INT(fstat(old, &st), 0);
		CHECK_INT(st.st_nlink, 1);
		fd_close(&old);
		AUTO(fd_close) int slots = open_slots();
		CHECK(slots >= 0);
		runtime_remove();
	}
}

static _Noreturn void take_in_folder(int run)
{
	struct slot_locks locks = { 0 };
	int slots = open_slots();
	struct stat a, b;

	(void)take(slots, &locks);
	CHECK_INT(fstat(slots, &a), 0);
	CHECK_INT(fstatat(run, "slots", &b, 0), 0);
	_exit(a.st_ino != b.st_ino);
}

TEST(launchers_that_replace_the_old_file_at_once_have_the_same_folder)
{
	enum { LAUNCHERS = 8 };

	for (int round = 0; round < 20; round++) {
		pid_t pids[LAUNCHERS];

		runtime_make();
		AUTO(fd_close) int run = open_run();
		int old = old_file(run);
		fd_close(&old);
		fflush(NULL);
		for (int i = 0; i < LAUNCHERS; i++) {
			pids[i] = fork();
			if (pids[i] == 0)
				take_in_folder(run);
		}
		for (int i = 0; i < LAUNCHERS; i++) {
			int status;

			CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
			CHECK_INT(status, 0);
		}
		runtime_remove();
	}
}
