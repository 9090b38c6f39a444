/*
 * test_slot.h - a run folder for one test, and a monitor with the descriptors that one has.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/child.h"
#include "launcher/slot.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/unix.h"
#include "test.h"

/* ---- a runtime folder for one test ------------------------------------------------- */

static char runtime[64], run_path[96];

static inline void runtime_make(void)
{
	snprintf(runtime, sizeof runtime, "/tmp/test-slot-XXXXXX");
	CHECK(mkdtemp(runtime));
	snprintf(run_path, sizeof run_path, "%s/caisson", runtime);
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	umask(022);
}

static inline void runtime_remove(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/slots", run_path);
	DIR *dir = opendir(path);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		(void)unlinkat(dirfd(dir), d->d_name, 0); /* "." and ".." are none */
	if (dir)
		closedir(dir);
	if (unlink(path) < 0)
		rmdir(path);
	if (unlink(run_path) < 0)
		rmdir(run_path);
	CHECK_INT(rmdir(runtime), 0);
}

static inline int open_run(void)
{
	struct err e = { 0 };
	int fd = slot_run_dir(false, &e);

	if (fd < 0)
		CHECK_STR(e.msg, "");
	return fd;
}

/* The folder of lock files. */
static inline int open_slots(void)
{
	struct err e = { 0 };
	AUTO(fd_close) int run = open_run();
	int fd = slot_open(run, &e);

	if (fd < 0)
		CHECK_STR(e.msg, "");
	return fd;
}

static inline int share_gate(int slots)
{
	struct err e = { 0 };
	int fd = slot_share(slots, &e);

	if (fd < 0)
		CHECK_STR(e.msg, "");
	return fd;
}

static inline bool is_alone(int slots)
{
	AUTO(fd_close) int gate = share_gate(slots);

	return slot_alone(slots, gate);
}

static inline int take(int slots, struct slot_locks *l)
{
	struct err e = { 0 };
	int slot = slot_take(slots, l, &e);

	if (slot < 0)
		CHECK_STR(e.msg, "");
	CHECK(slot < SLOT_COUNT);
	return slot;
}

static inline int take_work(int slots, struct slot_locks *l)
{
	struct err e = { 0 };
	int work = slot_take_work(slots, l, &e);

	if (work < 0)
		CHECK_STR(e.msg, "");
	CHECK(work < SLOT_WORK_COUNT);
	return work;
}

static inline bool is_taken(int slots, int slot)
{
	struct slot_locks locks = { 0 };
	bool is_free = slot_take_this(slots, slot, &locks);

	slot_locks_end(slots, &locks);
	return !is_free;
}

/* A process with the descriptors that a monitor was given, and `ready`, where a byte comes when
 * `work` is done. */
static inline pid_t start_monitor(const struct slot_locks *l, int ready, void (*work)(int ready))
{
	int keep[SLOT_LOCKS_MAX + 4] = { 0, 1, 2, ready };
	size_t n = 4;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < l->n; i++)
			keep[n++] = l->at[i].given_fd;
		if (child_keep(keep, n) < 0)
			_exit(1);
		if (work)
			work(ready);
		(void)!write(ready, "x", 1);
		while (pause() < 0)
			;
	}
	CHECK(pid > 0);
	return pid;
}

static inline void await_byte(int fd)
{
	char byte;

	CHECK_INT(read(fd, &byte, 1), 1);
}

static inline void end_child(pid_t pid)
{
	CHECK_INT(kill(pid, SIGKILL), 0);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}
