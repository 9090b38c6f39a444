/*
 * cgroup_end.c - how a sandbox ends: kill every member, count what was used.
 *
 * v2 kills by cgroup.kill, atomically. v1 has no such file: members are signalled until
 * none is left. Nothing escapes between two rounds: new processes are born in the group.
 */
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/cgroup-internal.h"
#include "os/file.h"
#include "os/proc.h"

#define MEMBERS_MAX 4096

static size_t read_pids(int dir_fd, const char *file, pid_t *out, size_t max)
{
	AUTO(fd_close) int fd = os_openat(dir_fd, file, O_RDONLY, 0);
	AUTO(freep) char *text = mem_alloc(1 << 16);
	size_t n = 0;

	if (fd < 0)
		return 0;
	ssize_t len = read(fd, text, (1 << 16) - 1);
	char *end = text;
	for (char *p = text; len > 0 && n < max; p = end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		out[n++] = (pid_t)pid;
	}
	return n;
}

static void pause_ms(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

static bool kill_members(int dir_fd, const char *file)
{
	AUTO(freep) pid_t *pids = mem_alloc(MEMBERS_MAX * sizeof *pids);
	size_t n = read_pids(dir_fd, file, pids, MEMBERS_MAX);

	for (size_t i = 0; i < n; i++)
		if (pids[i] > 0) /* 0: a process of a pid namespace that is not ours */
			(void)os_kill(pids[i], SIGKILL);
	return n > 0;
}

void cgroup_sweep_dir(int base_fd, const char *name, bool is_v2)
{
	AUTO(fd_close) int dir = os_openat(base_fd, name, O_RDONLY | O_DIRECTORY, 0);

	for (int i = 0; i < 100; i++) {
		bool busy;

		if (is_v2) {
			(void)os_write_file(dir, "cgroup.kill", "1");
			(void)os_rmdirat(dir, "box");
			(void)os_rmdirat(dir, "mon");
			busy = true;
		} else {
			busy = kill_members(dir, "cgroup.procs");
		}
		int r = os_rmdirat(base_fd, name);
		if (r == 0 || r == -ENOENT || (r < 0 && r != -EBUSY))
			return;
		pause_ms(busy ? 2 : 10);
	}
}

size_t cgroup_members(const struct cgroup *cg, pid_t *out, size_t max)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		const struct cgroup_tree *t = &cg->trees[i];
		int fd = t->is_v2 ? cg->box_fd : t->dir_fd;

		if (fd >= 0 && !t->is_shared)
			return read_pids(fd, "cgroup.procs", out, max);
	}
	return 0;
}

static bool kill_round(const struct cgroup *cg)
{
	bool alive = false;

	for (size_t i = 0; i < cg->n_trees; i++) {
		const struct cgroup_tree *t = &cg->trees[i];

		if (t->is_shared) {
			continue;
		} else if (t->is_v2 && cg->box_fd >= 0) {
			char text[256];

			(void)os_write_file(cg->box_fd, "cgroup.kill", "1");
			int n = os_read_file(cg->box_fd, "cgroup.events", text, sizeof text);
			alive |= n > 0 && strstr(text, "populated 1");
		} else if (!t->is_v2 && t->dir_fd >= 0) {
			alive |= kill_members(t->dir_fd, "cgroup.procs");
		}
	}
	return alive;
}

int cgroup_kill(const struct cgroup *cg, unsigned int timeout_ms)
{
	for (unsigned int waited = 0; kill_round(cg); waited += 2) {
		if (waited >= timeout_ms)
			return -ETIME;
		pause_ms(2);
	}
	return 0;
}

static uint64_t read_number(int dir_fd, const char *file, const char *key)
{
	char text[4096];

	if (dir_fd < 0 || os_read_file(dir_fd, file, text, sizeof text) < 0)
		return 0;
	const char *at = key ? strstr(text, key) : text;
	return at ? strtoull(at + (key ? strlen(key) : 0), NULL, 10) : 0;
}

void cgroup_usage(const struct cgroup *cg, struct cgroup_usage *out)
{
	int mem = cgroup_tree_of(cg, CG_MEMORY);
	int pids = cgroup_tree_of(cg, CG_PIDS);
	int cpu = cgroup_tree_of(cg, CG_CPUACCT);
	const char *kind = cgroup_mechanism(cg, CG_CPUACCT);

	*out = (struct cgroup_usage){ 0 };
	if (kind && strcmp(kind, "cgroup2") == 0)
		out->cpu_ms = read_number(cpu, "cpu.stat", "usage_usec ") / 1000;
	else
		out->cpu_ms = read_number(cpu, "cpuacct.usage", NULL) / 1000000;
	kind = cgroup_mechanism(cg, CG_MEMORY);
	if (kind && strcmp(kind, "cgroup2") == 0) {
		out->mem_peak = read_number(mem, "memory.peak", NULL); /* since 5.19 */
		out->oom_kills = read_number(mem, "memory.events", "oom_kill ");
	} else {
		out->mem_peak = read_number(mem, "memory.max_usage_in_bytes", NULL);
		out->oom_kills = read_number(mem, "memory.oom_control", "oom_kill ");
	}
	out->pids_denied = read_number(pids, "pids.events", "max ");
}
