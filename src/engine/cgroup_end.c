/*
 * cgroup_end.c - how a sandbox ends: kill every member, count what was used.
 *
 * v2 kills by cgroup.kill, atomically. v1 has no such file: members are signalled until
 * none is left. Nothing escapes between two rounds: new processes are born in the group. A number
 * may be another process's by the time it is signalled: each is held by a pidfd first, and looked
 * for in the list once more.
 */
#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/cgroup-internal.h"
#include "os/file.h"
#include "os/proc.h"

#define MEMBERS_MAX 4096
#define KILL_BATCH 64

static int read_leaf(const struct cgroup *cg, const struct cgroup_tree *t, const char *file,
                     char *buf, size_t size)
{
	char name[64], path[CGROUP_PATH_MAX];

	snprintf(name, sizeof name, "%s%s", cgroup_leaf(t), file);
	cgroup_path(cg, t, name, path);
	return os_read_file(AT_FDCWD, path, buf, size);
}

size_t cgroup_list(const char *folder, pid_t except, pid_t *out, size_t max)
{
	char path[CGROUP_PATH_MAX], text[4096];
	size_t n = 0;
	pid_t pid = 0;
	ssize_t got;

	snprintf(path, sizeof path, "%s/cgroup.procs", folder);
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
	while (n < max && fd >= 0 && (got = read(fd, text, sizeof text)) > 0)
		for (ssize_t i = 0; i < got && n < max; i++) {
			if (text[i] != '\n') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			if (except == 0 || pid != except)
				out[n++] = pid;
			pid = 0;
		}
	return n;
}

void cgroup_folder(const struct cgroup *cg, const struct cgroup_tree *t, char *out)
{
	cgroup_path(cg, t, cgroup_leaf(t), out);
}

/* With those of the leaves. */
static size_t members_of(const struct cgroup *cg, const struct cgroup_tree *t, pid_t *out,
                         size_t max)
{
	char folder[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX];
	struct stat st;

	cgroup_folder(cg, t, folder);
	size_t n = cgroup_list(folder, cg->init_pid, out, max);
	if (os_fstatat(AT_FDCWD, folder, &st, 0) < 0 || st.st_nlink <= 2)
		return n;
	DIR *dir = opendir(folder);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
		if (d->d_type != DT_DIR || d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s%s", folder, d->d_name);
		n += cgroup_list(path, cg->init_pid, out + n, max - n);
	}
	if (dir)
		closedir(dir);
	return n;
}

static void pause_ms(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

/* v1: what is frozen does not even die. */
static void thaw(const struct cgroup *cg, const struct cgroup_tree *t)
{
	char path[CGROUP_PATH_MAX];

	cgroup_path(cg, t, "freezer.state", path);
	(void)os_write_file(AT_FDCWD, path, "THAWED"); /* absent: the folder is */
}

/* Its real id on this host; 0 when it is gone, which is nobody's we would kill. */
static uid_t uid_of(pid_t pid)
{
	char path[32], text[2048];

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	int n = os_read_file(AT_FDCWD, path, text, sizeof text);
	const char *at = n > 0 ? strstr(text, "\nUid:") : NULL;
	return at ? (uid_t)strtoul(at + 5, NULL, 10) : 0;
}

static bool is_among(pid_t pid, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

void cgroup_kill_listed(cgroup_list_fn *list, const void *arg, uid_t least_uid, pid_t *pids,
                        size_t n)
{
	AUTO(freep) pid_t *again = mem_alloc(MEMBERS_MAX * sizeof *again);

	for (size_t from = 0; from < n; from += KILL_BATCH) {
		size_t batch = n - from < KILL_BATCH ? n - from : KILL_BATCH;
		int held[KILL_BATCH];

		for (size_t i = 0; i < batch; i++) /* 0: of a pid namespace that is not ours */
			held[i] = pids[from + i] > 0 ? os_pidfd_open(pids[from + i]) : -1;
		size_t n_again = list(arg, again, MEMBERS_MAX);

		for (size_t i = 0; i < batch; i++) {
			pid_t pid = pids[from + i];

			if (held[i] >= 0 && is_among(pid, again, n_again) &&
			    (least_uid == 0 || uid_of(pid) >= least_uid))
				(void)os_pidfd_signal(held[i], SIGKILL); /* or it is gone */
			fd_close(&held[i]);
		}
	}
}

struct members {
	const struct cgroup *cg;
	const struct cgroup_tree *t;
};

static size_t list_members(const void *arg, pid_t *out, size_t max)
{
	const struct members *m = arg;

	return members_of(m->cg, m->t, out, max);
}

static bool kill_members(const struct cgroup *cg, const struct cgroup_tree *t)
{
	AUTO(freep) pid_t *pids = mem_alloc(MEMBERS_MAX * sizeof *pids);
	const struct members m = { cg, t };
	size_t n = members_of(cg, t, pids, MEMBERS_MAX);

	if (n > 0 && t->is_freezer)
		thaw(cg, t);
	cgroup_kill_listed(list_members, &m, cg->least_uid, pids, n);
	return n > 0;
}

static bool kill_v2(const struct cgroup *cg, const struct cgroup_tree *t)
{
	char path[CGROUP_PATH_MAX], text[256];

	cgroup_path(cg, t, "cgroup.kill", path);
	(void)os_write_file(AT_FDCWD, path, "1"); /* absent: the folder is */
	cgroup_path(cg, t, "cgroup.events", path);
	int n = os_read_file(AT_FDCWD, path, text, sizeof text);
	return n > 0 && strstr(text, "populated 1");
}

static bool kill_round(const struct cgroup *cg, const struct cgroup_tree *t)
{
	return (!t->is_shared || t->is_freezer) &&
	       (t->is_v2 ? kill_v2(cg, t) : kill_members(cg, t));
}

void cgroup_sweep(const struct cgroup *cg, const struct cgroup_tree *t)
{
	struct cgroup one = *cg;

	one.trees[0] = *t;
	one.n_trees = 1;
	for (int i = 0; i < 100 && cgroup_remove(&one) > 0; i++)
		pause_ms(kill_round(&one, t) ? 2 : 10);
}

size_t cgroup_members(const struct cgroup *cg, pid_t *out, size_t max)
{
	for (size_t i = 0; i < cg->n_trees; i++)
		if (!cg->trees[i].is_shared)
			return members_of(cg, &cg->trees[i], out, max);
	return 0;
}

int cgroup_kill(const struct cgroup *cg, unsigned int timeout_ms)
{
	for (unsigned int waited = 0;; waited += 2) {
		bool alive = false;

		for (size_t i = 0; i < cg->n_trees; i++)
			alive |= kill_round(cg, &cg->trees[i]);
		if (!alive)
			return 0;
		if (waited >= timeout_ms)
			return -ETIME;
		pause_ms(2);
	}
}

/* The number after `key`, or the first of the file. */
static uint64_t read_number(const struct cgroup *cg, enum cgroup_controller c, const char *v1,
                            const char *v2, const char *key)
{
	const struct cgroup_tree *t = cgroup_tree_of(cg, c);
	const char *file = !t ? NULL : t->is_v2 ? v2 : v1;
	char text[4096];

	if (!file || read_leaf(cg, t, file, text, sizeof text) <= 0)
		return 0;
	const char *at = key ? strstr(text, key) : text;
	return at ? strtoull(at + (key ? strlen(key) : 0), NULL, 10) : 0;
}

void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *out)
{
	out->cpu_ms = read_number(cg, CG_CPU, NULL, "cpu.stat", "usage_usec ") / 1000;
	out->mem_peak =
	    read_number(cg, CG_MEMORY, "memory.max_usage_in_bytes", "memory.peak", NULL);
	out->pids_denied = read_number(cg, CG_PIDS, "pids.events", "pids.events", "max ");
}

void cgroup_now(const struct cgroup *cg, struct cgroup_now *out)
{
	out->mem = read_number(cg, CG_MEMORY, "memory.usage_in_bytes", "memory.current", NULL);
	out->pids = read_number(cg, CG_PIDS, "pids.current", "pids.current", NULL);
	const struct cgroup_tree *t = cgroup_tree_of(cg, CG_PIDS);
	if (t && !t->is_v2 && out->pids > 0)
		out->pids--; /* pid 1 is nobody's command */
}

uint64_t cgroup_number_at(int fd, const char *key)
{
	char text[1024];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	const char *at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int cgroup_oom_open(const struct cgroup *cg)
{
	const struct cgroup_tree *t = cgroup_tree_of(cg, CG_MEMORY);
	char name[64], path[CGROUP_PATH_MAX];

	if (!t)
		return -ENOENT;
	snprintf(name, sizeof name, "%s%s", cgroup_leaf(t),
	         t->is_v2 ? "memory.events" : "memory.oom_control");
	cgroup_path(cg, t, name, path);
	return os_openat(AT_FDCWD, path, O_RDONLY, 0);
}

uint64_t cgroup_oom_read(int fd)
{
	return fd < 0 ? 0 : cgroup_number_at(fd, "oom_kill ");
}

uint64_t cgroup_oom_kills(const struct cgroup *cg)
{
	return read_number(cg, CG_MEMORY, "memory.oom_control", "memory.events", "oom_kill ");
}
