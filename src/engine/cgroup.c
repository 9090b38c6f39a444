#include "engine/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/cgroup-internal.h"
#include "os/file.h"
#include "os/proc.h"

#define BASE "caisson"
#define CGROUP2_MAGIC 0x63677270
#define ROOT_V2 "/sys/fs/cgroup"

static const char *const controller_names[] = {
	[CG_CPU] = "cpu",
	[CG_CPUACCT] = "cpuacct",
	[CG_MEMORY] = "memory",
	[CG_PIDS] = "pids",
};
_Static_assert(COUNT(controller_names) == CG_CONTROLLERS, "a controller has no name");

/* The devices that exist in /dev inside; v1 asks here even for nodes that came another way. */
static const char *const devices[] = {
	"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm",   "c 1:8 rwm",
	"c 1:9 rwm", "c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm",
};

static unsigned int controllers_in(char *list, const char *separators)
{
	unsigned int found = 0;
	char *save = NULL;

	for (char *w = strtok_r(list, separators, &save); w; w = strtok_r(NULL, separators, &save))
		for (enum cgroup_controller c = 0; c < CG_CONTROLLERS; c++)
			if (strcmp(w, controller_names[c]) == 0)
				found |= 1u << c;
	return found;
}

static void add_v1(struct cgroup *cg, char *controllers)
{
	struct cgroup_tree *t = &cg->trees[cg->n_trees];
	const char *name = strncmp(controllers, "name=", 5) == 0 ? controllers + 5 : controllers;

	*t = (struct cgroup_tree){ .dir_fd = -1, .tasks_fd = -1 };
	snprintf(t->path, sizeof t->path, "/sys/fs/cgroup/%s", name);
	if (access(t->path, W_OK) < 0)
		return;
	t->is_cpuset = strcmp(name, "cpuset") == 0;
	t->is_devices = strcmp(name, "devices") == 0;
	t->controllers = controllers_in(controllers, ",");
	t->is_shared = t->controllers == 0;
	cg->n_trees++;
}

/* Root uses the top of the tree; others the group they are in, if it was handed to them. */
static void add_v2(struct cgroup *cg, const char *own, bool is_root)
{
	struct cgroup_tree *t = &cg->trees[cg->n_trees];
	int64_t type = 0;
	const char *root = ROOT_V2;

	*t = (struct cgroup_tree){ .is_v2 = true, .dir_fd = -1, .tasks_fd = -1 };
	if (os_statfs_type(-1, ROOT_V2, &type) < 0 || type != CGROUP2_MAGIC)
		root = "/sys/fs/cgroup/unified";
	if (os_statfs_type(-1, root, &type) < 0 || type != CGROUP2_MAGIC)
		return;
	snprintf(t->path, sizeof t->path, "%s%s", root, is_root ? "" : own);
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, t->path, O_PATH | O_DIRECTORY, 0);
	if (fd < 0 || faccessat(fd, ".", W_OK, AT_EACCESS) < 0 ||
	    faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return;
	char list[256];
	if (os_read_file(fd, "cgroup.controllers", list, sizeof list) < 0)
		return;
	t->controllers = controllers_in(list, " \n");
	if (t->controllers & 1u << CG_CPU)
		t->controllers |= 1u << CG_CPUACCT;
	t->is_shared = t->controllers == 0;
	cg->n_trees++;
}

void cgroup_find(struct cgroup *cg, bool is_root)
{
	char text[4096];

	*cg = (struct cgroup){ .box_fd = -1, .mon_fd = -1 };
	if (os_read_file(AT_FDCWD, "/proc/self/cgroup", text, sizeof text) < 0)
		return;
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *list = strchr(line, ':');
		char *own = list ? strchr(list + 1, ':') : NULL;

		if (!own || cg->n_trees == CGROUP_HIERARCHIES_MAX)
			continue;
		*own++ = '\0';
		if (list[1] == '\0')
			add_v2(cg, own, is_root);
		else if (is_root) /* v1 has no safe delegation (cgroups(7)) */
			add_v1(cg, list + 1);
	}
}

const char *cgroup_mechanism(const struct cgroup *cg, enum cgroup_controller c)
{
	for (size_t i = 0; i < cg->n_trees; i++)
		if (cg->trees[i].controllers & 1u << c)
			return cg->trees[i].is_v2 ? "cgroup2" : "cgroup1";
	return NULL;
}

bool cgroup_has(const struct cgroup *cg, enum cgroup_controller c)
{
	return cgroup_mechanism(cg, c) != NULL;
}

int cgroup_tree_of(const struct cgroup *cg, enum cgroup_controller c)
{
	for (size_t i = 0; i < cg->n_trees; i++)
		if (cg->trees[i].controllers & 1u << c)
			return cg->trees[i].is_v2 ? cg->box_fd : cg->trees[i].dir_fd;
	return -1;
}

/* First use of caisson/ in a v1 hierarchy: what children shall inherit. */
static int prepare_v1(const struct cgroup_tree *t, int base_fd)
{
	int r = 0;

	if (t->is_cpuset)
		r = os_write_file(base_fd, "cgroup.clone_children", "1");
	if (t->is_cpuset && r >= 0) {
		char text[256];

		r = os_read_file(base_fd, "../cpuset.cpus", text, sizeof text);
		if (r >= 0)
			r = os_write_file(base_fd, "cpuset.cpus", text);
		if (r >= 0)
			r = os_read_file(base_fd, "../cpuset.mems", text, sizeof text);
		if (r >= 0)
			r = os_write_file(base_fd, "cpuset.mems", text);
	}
	if (t->is_devices) {
		r = os_write_file(base_fd, "devices.deny", "a");
		for (size_t i = 0; i < COUNT(devices) && r >= 0; i++)
			r = os_write_file(base_fd, "devices.allow", devices[i]);
	}
	return r;
}

static void want_controllers(const struct cgroup_tree *t, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s", t->controllers & 1u << CG_CPU ? "+cpu " : "",
		 t->controllers & 1u << CG_MEMORY ? "+memory " : "",
		 t->controllers & 1u << CG_PIDS ? "+pids" : "");
}

/* A group with members cannot hand controllers down: we step aside into a leaf first. */
static int prepare_v2(const struct cgroup_tree *t, int base_fd)
{
	char want[64];
	int r;

	want_controllers(t, want, sizeof want);
	if (want[0] == '\0')
		return 0;
	AUTO(fd_close) int top = os_openat(AT_FDCWD, t->path, O_PATH | O_DIRECTORY, 0);
	if (top < 0)
		return top;
	r = os_write_file(top, "cgroup.subtree_control", want);
	if (r == -EBUSY) {
		r = os_mkdirat(top, BASE ".cli", 0755);
		if (r < 0 && r != -EEXIST)
			return r;
		r = os_write_file(top, BASE ".cli/cgroup.procs", "0");
		if (r >= 0)
			r = os_write_file(top, "cgroup.subtree_control", want);
	}
	return r < 0 ? r : os_write_file(base_fd, "cgroup.subtree_control", want);
}

static int open_base(const struct cgroup_tree *t)
{
	AUTO(fd_close) int top = os_openat(AT_FDCWD, t->path, O_PATH | O_DIRECTORY, 0);
	if (top < 0)
		return top;
	int base = os_openat(top, BASE, O_PATH | O_DIRECTORY, 0);
	if (base != -ENOENT)
		return base;
	int r = os_mkdirat(top, BASE, 0755);
	if (r < 0 && r != -EEXIST)
		return r;
	base = os_openat(top, BASE, O_PATH | O_DIRECTORY, 0);
	if (base < 0)
		return base;
	r = t->is_v2 ? prepare_v2(t, base) : prepare_v1(t, base);
	if (r < 0) {
		fd_close(&base);
		(void)os_rmdirat(top, BASE); /* best effort: half-prepared is worse than absent */
		return r;
	}
	return base;
}

static int make_leaf(int dir_fd, const char *leaf, int *out)
{
	int r = os_mkdirat(dir_fd, leaf, 0755);

	if (r < 0)
		return r;
	*out = os_openat(dir_fd, leaf, O_RDONLY | O_DIRECTORY, 0);
	return *out < 0 ? *out : 0;
}

static int make_folder(struct cgroup *cg, struct cgroup_tree *t)
{
	AUTO(fd_close) int base = open_base(t);
	if (base < 0)
		return base;
	int r = os_mkdirat(base, cg->name, 0755);

	if (r == -EEXIST) {
		cgroup_sweep_dir(base, cg->name, t->is_v2);
		r = os_mkdirat(base, cg->name, 0755);
	}
	if (r < 0)
		return r;
	t->dir_fd = os_openat(base, cg->name, O_RDONLY | O_DIRECTORY, 0);
	return t->dir_fd < 0 ? t->dir_fd : 0;
}

static int prepare_tree(struct cgroup *cg, struct cgroup_tree *t)
{
	char want[64];

	if (t->is_shared) {
		AUTO(fd_close) int base = open_base(t);

		if (base < 0)
			return base;
		if (t->is_v2) /* a clone wants a descriptor that was opened for reading */
			cg->mon_fd = os_openat(base, ".", O_RDONLY | O_DIRECTORY, 0);
		else
			t->tasks_fd = os_openat(base, "tasks", O_WRONLY, 0);
		return t->is_v2 ? (cg->mon_fd < 0 ? cg->mon_fd : 0) : (t->tasks_fd < 0 ? t->tasks_fd : 0);
	}
	if (!t->is_v2)
		return 0;
	int r = make_folder(cg, t);
	if (r < 0)
		return r;
	want_controllers(t, want, sizeof want);
	r = os_write_file(t->dir_fd, "cgroup.subtree_control", want);
	return r < 0 ? r : make_leaf(t->dir_fd, "mon", &cg->mon_fd);
}

static int make_tree(struct cgroup *cg, struct cgroup_tree *t, uid_t owner)
{
	if (t->is_shared)
		return 0;
	if (!t->is_v2) {
		int r = make_folder(cg, t);

		return r < 0 ? r : os_fchownat(t->dir_fd, "tasks", owner, (gid_t)-1);
	}
	int r = make_leaf(t->dir_fd, "box", &cg->box_fd);
	if (r >= 0)
		r = os_fchownat(t->dir_fd, "cgroup.procs", owner, (gid_t)-1);
	return r < 0 ? r : os_fchownat(cg->box_fd, "cgroup.procs", owner, (gid_t)-1);
}

/* Another launch may be removing caisson/ just now (ENOENT, ENODEV): again. */
static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

static int tree_error(const struct cgroup *cg, const struct cgroup_tree *t, int r, struct err *e)
{
	return err_sys(e, -r, "%s/" BASE "/%s", t->path, cg->name);
}

int cgroup_prepare(struct cgroup *cg, const char *name, struct err *e)
{
	cg->is_ours = true;
	snprintf(cg->name, sizeof cg->name, "%s", name);
	for (size_t i = 0; i < cg->n_trees; i++) {
		int r = -ENOENT;

		for (int tries = 0; tries < 10 && is_gone(r); tries++)
			r = prepare_tree(cg, &cg->trees[i]);
		if (r < 0)
			return tree_error(cg, &cg->trees[i], r, e);
	}
	return 0;
}

int cgroup_make(struct cgroup *cg, uid_t owner, struct err *e)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		int r = -ENOENT;

		for (int tries = 0; tries < 10 && is_gone(r); tries++)
			r = make_tree(cg, &cg->trees[i], owner);
		if (r < 0)
			return tree_error(cg, &cg->trees[i], r, e);
	}
	return 0;
}

int cgroup_open(struct cgroup *cg, struct err *e)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		struct cgroup_tree *t = &cg->trees[i];
		char path[sizeof t->path + 64];

		if (t->is_shared || t->dir_fd >= 0)
			continue;
		snprintf(path, sizeof path, "%s/" BASE "/%s", t->path, cg->name);
		t->dir_fd = os_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
		if (t->dir_fd < 0)
			return tree_error(cg, t, t->dir_fd, e);
	}
	for (size_t i = 0; i < cg->n_trees; i++) {
		struct cgroup_tree *t = &cg->trees[i];

		if (!t->is_v2 || t->is_shared || cg->box_fd >= 0)
			continue;
		cg->box_fd = os_openat(t->dir_fd, "box", O_RDONLY | O_DIRECTORY, 0);
		if (cg->box_fd < 0)
			return tree_error(cg, t, cg->box_fd, e);
	}
	return 0;
}

struct control {
	enum limit_id limit;
	enum cgroup_controller controller;
	const char *v1, *v2;
	bool is_optional; /* absent where the kernel was built without swap accounting */
};

/* clang-format off */
static const struct control controls[] = {
	{ LIMIT_MEM,  CG_MEMORY, "memory.limit_in_bytes",       "memory.max",       false },
	{ LIMIT_MEM,  CG_MEMORY, "memory.memsw.limit_in_bytes", "memory.swap.max",  true  },
	{ LIMIT_MEM,  CG_MEMORY, NULL,                          "memory.oom.group", false },
	{ LIMIT_PIDS, CG_PIDS,   "pids.max",                    "pids.max",         false },
	{ LIMIT_CPU,  CG_CPU,    "cpu.cfs_quota_us",            "cpu.max",          false },
};
/* clang-format on */

static void control_text(const struct control *c, bool is_v2, uint64_t value, char *out, size_t size)
{
	if (c->limit == LIMIT_CPU) /* thousandths of a core per period of 100 ms */
		snprintf(out, size, is_v2 ? "%llu 100000" : "%llu", (unsigned long long)value * 100);
	else if (is_v2 && strcmp(c->v2, "memory.swap.max") == 0)
		snprintf(out, size, "0");
	else if (is_v2 && strcmp(c->v2, "memory.oom.group") == 0)
		snprintf(out, size, "1");
	else
		snprintf(out, size, "%llu", (unsigned long long)value);
}

int cgroup_limit(const struct cgroup *cg, const uint64_t limits[LIMIT_COUNT], struct err *e)
{
	for (size_t i = 0; i < COUNT(controls); i++) {
		const struct control *c = &controls[i];
		const char *mechanism = cgroup_mechanism(cg, c->controller);
		char text[64];

		if (!mechanism || limits[c->limit] == 0)
			continue;
		bool is_v2 = strcmp(mechanism, "cgroup2") == 0;
		const char *file = is_v2 ? c->v2 : c->v1;
		if (!file)
			continue;
		control_text(c, is_v2, limits[c->limit], text, sizeof text);
		int r = os_write_file(cgroup_tree_of(cg, c->controller), file, text);
		if (r < 0 && !(c->is_optional && r == -ENOENT))
			return err_sys(e, -r, "write %s to %s", text, file);
	}
	return 0;
}

int cgroup_join_shared(const struct cgroup *cg, struct err *e)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		const struct cgroup_tree *t = &cg->trees[i];
		int r = t->tasks_fd < 0 ? 0 : os_write_all(t->tasks_fd, "0", 1);

		if (r < 0)
			return tree_error(cg, t, r, e);
	}
	return 0;
}

int cgroup_join(const struct cgroup *cg, struct err *e)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		const struct cgroup_tree *t = &cg->trees[i];

		if (t->is_v2 || t->is_shared)
			continue;
		int r = os_write_file(t->dir_fd, "tasks", "0");
		if (r < 0)
			return tree_error(cg, t, r, e);
	}
	return 0;
}

static int remove_tree(const struct cgroup *cg, const struct cgroup_tree *t)
{
	AUTO(fd_close) int base = os_openat(t->dir_fd, "..", O_PATH | O_DIRECTORY, 0);

	if (t->is_v2) {
		(void)os_rmdirat(t->dir_fd, "box"); /* the last call says whether it worked */
		(void)os_rmdirat(t->dir_fd, "mon");
	}
	int r = base < 0 ? base : os_rmdirat(base, cg->name);
	return r < 0 && r != -ENOENT;
}

/* Backwards: a sweep that finds nothing in the first hierarchy need not look at the others. */
int cgroup_remove(struct cgroup *cg)
{
	int left = 0;

	if (!cg->is_ours)
		return 0;
	for (size_t i = cg->n_trees; i-- > 0;)
		if (!cg->trees[i].is_shared && cg->trees[i].dir_fd >= 0)
			left += remove_tree(cg, &cg->trees[i]);
	return left;
}

void cgroup_done(struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_trees; i++)
		fd_close(&cg->trees[i].dir_fd);
	for (size_t i = 0; i < cg->n_trees; i++)
		fd_close(&cg->trees[i].tasks_fd);
	fd_close(&cg->box_fd);
	fd_close(&cg->mon_fd);
}

void cgroup_each_name(const struct cgroup *cg, void (*found)(const char *name, void *arg), void *arg)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		char path[sizeof cg->trees[i].path + sizeof BASE + 1];

		snprintf(path, sizeof path, "%s/" BASE, cg->trees[i].path);
		DIR *dir = opendir(path);
		for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
			if (d->d_type == DT_DIR && d->d_name[0] != '.')
				found(d->d_name, arg);
		if (dir)
			closedir(dir);
	}
}

void cgroup_remove_base(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		AUTO(fd_close) int top = os_openat(AT_FDCWD, cg->trees[i].path, O_PATH, 0);

		if (top >= 0)
			(void)os_rmdirat(top, BASE); /* busy: somebody uses it */
	}
}
