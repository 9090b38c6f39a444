/*
 * cgroup_leaf.c - the group of one command: who belongs to it, and how all of it ends.
 *
 * v1 keeps it in the hierarchy of the pids, because that one can say that nobody is born any more:
 * then one round of signals is enough. v2 has cgroup.kill.
 */
#include <fcntl.h>

#include "base/fd.h"
#include "engine/cgroup-internal.h"
#include "os/file.h"

#define LEAF_MEMBERS_MAX 4096

const struct cgroup_tree *cgroup_leaf_tree(const struct cgroup *cg)
{
	return cg->is_kept ? cgroup_tree_of(cg, CG_PIDS) : NULL;
}

bool cgroup_has_leaves(const struct cgroup *cg)
{
	return cgroup_leaf_tree(cg) != NULL;
}

static void leaf_path(const struct cgroup *cg, uint32_t num, const char *file, char *out)
{
	const struct cgroup_tree *t = cgroup_leaf_tree(cg);
	char name[64];

	snprintf(name, sizeof name, "%s%u%s", cgroup_leaf(t), num, file);
	cgroup_path(cg, t, name, out);
}

int cgroup_leaf_make(const struct cgroup *cg, uint32_t num, struct cgroup_leaf *out)
{
	const struct cgroup_tree *t = cgroup_leaf_tree(cg);
	char path[CGROUP_PATH_MAX];

	leaf_path(cg, num, "", path);
	int r = os_mkdirat(AT_FDCWD, path, 0755);
	if (r < 0)
		return r;
	leaf_path(cg, num, t->is_v2 ? "" : "/tasks", path);
	AUTO(fd_close)
	int fd = os_openat(AT_FDCWD, path, t->is_v2 ? O_RDONLY | O_DIRECTORY : O_WRONLY, 0);
	if (t->is_v2) /* its leaves are groups only, the controllers stay above them */
		cgroup_path(cg, t, "box/pids.events", path);
	else
		leaf_path(cg, num, "/pids.events", path);
	int events_fd = fd < 0 ? fd : os_openat(AT_FDCWD, path, O_RDONLY, 0);
	if (events_fd < 0) {
		(void)cgroup_leaf_remove(cg, num);
		return events_fd;
	}
	*out = (struct cgroup_leaf){ .num = num, .fd = fd_take(&fd), .events_fd = events_fd };
	return 0;
}

void cgroup_leaf_close(struct cgroup_leaf *leaf)
{
	fd_close(&leaf->fd);
	fd_close(&leaf->events_fd);
}

size_t cgroup_leaf_members(const struct cgroup *cg, uint32_t num, pid_t *out, size_t max)
{
	char path[CGROUP_PATH_MAX];

	leaf_path(cg, num, "", path);
	return cgroup_list(path, 0, out, max);
}

uint32_t cgroup_leaf_of(const struct cgroup *cg, pid_t pid)
{
	const struct cgroup_tree *t = cgroup_leaf_tree(cg);
	char path[32], text[8192];

	snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
	if (!t || os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return 0;
	const char *group = cgroup_path_in(text, t->is_v2 ? "" : "pids");
	const char *last = group ? memrchr(group, '/', strcspn(group, "\n")) : NULL;
	return last ? (uint32_t)strtoul(last + 1, NULL, 10) : 0;
}

uint64_t cgroup_leaf_denied(const struct cgroup_leaf *leaf)
{
	return cgroup_number_at(leaf->events_fd, "max ");
}

static size_t list_leaf(const void *arg, pid_t *out, size_t max)
{
	return cgroup_list(arg, 0, out, max);
}

void cgroup_leaf_kill(const struct cgroup *cg, uint32_t num)
{
	AUTO(freep) pid_t *pids = NULL;
	char path[CGROUP_PATH_MAX];

	if (cgroup_leaf_tree(cg)->is_v2) {
		leaf_path(cg, num, "/cgroup.kill", path);
		(void)os_write_file(AT_FDCWD, path, "1");
		return;
	}
	leaf_path(cg, num, "/pids.max", path);
	(void)os_write_file(AT_FDCWD, path, "0");
	pids = mem_alloc(LEAF_MEMBERS_MAX * sizeof *pids);
	size_t n = cgroup_leaf_members(cg, num, pids, LEAF_MEMBERS_MAX);
	leaf_path(cg, num, "", path);
	cgroup_kill_listed(list_leaf, path, 0, pids, n);
}

bool cgroup_leaf_remove(const struct cgroup *cg, uint32_t num)
{
	char path[CGROUP_PATH_MAX];

	leaf_path(cg, num, "", path);
	int r = os_rmdirat(AT_FDCWD, path);
	return r == 0 || r == -ENOENT;
}

/* ---- the freezer ------------------------------------------------------------------- */

static const struct cgroup_tree *freezer_tree(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_trees && cg->is_kept; i++)
		if (!cg->trees[i].is_shared && (cg->trees[i].is_freezer || cg->trees[i].is_v2))
			return &cg->trees[i];
	return NULL;
}

bool cgroup_can_freeze(const struct cgroup *cg)
{
	return freezer_tree(cg) != NULL;
}

int cgroup_freeze(const struct cgroup *cg, bool on)
{
	const struct cgroup_tree *t = freezer_tree(cg);
	char path[CGROUP_PATH_MAX];

	if (!t)
		return -EOPNOTSUPP;
	cgroup_path(cg, t, t->is_v2 ? "box/cgroup.freeze" : "freezer.state", path);
	if (t->is_v2)
		return os_write_file(AT_FDCWD, path, on ? "1" : "0");
	return os_write_file(AT_FDCWD, path, on ? "FROZEN" : "THAWED");
}

int cgroup_is_frozen(const struct cgroup *cg)
{
	const struct cgroup_tree *t = freezer_tree(cg);
	char path[CGROUP_PATH_MAX], text[256];

	if (!t)
		return 0;
	cgroup_path(cg, t, t->is_v2 ? "box/cgroup.events" : "freezer.state", path);
	int n = os_read_file(AT_FDCWD, path, text, sizeof text);
	return n < 0 ? n : strstr(text, t->is_v2 ? "frozen 1" : "FROZEN") != NULL;
}
