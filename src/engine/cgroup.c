#include "engine/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/cgroup-internal.h"
#include "os/file.h"
#include "os/proc.h"

#define CGROUP2_MAGIC 0x63677270
#define TRIES 100 /* others cannot come between all of them */

static const char *const controller_names[] = {
	[CG_CPU] = "cpu",
	[CG_MEMORY] = "memory",
	[CG_PIDS] = "pids",
};
_Static_assert(COUNT(controller_names) == CG_CONTROLLERS, "a controller has no name");

/* v1 hierarchies by the names that they are mounted under. Those without a limit of ours are
 * here because a process should not sit at their root. */
static const char *const v1_names[] = {
	"cpu",     "cpu,cpuacct", "cpuacct", "memory",           "pids", "blkio", "devices",
	"freezer", "hugetlb",     "net_cls", "net_cls,net_prio",
};

/* The devices that exist in /dev inside; v1 asks here even for nodes that came another way. */
static const char *const devices[] = {
	"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm",
	"c 1:9 rwm", "c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm",
};

/* ---- what the host has ------------------------------------------------------------- */

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

static int add_v1(struct cgroup *cg, const char *name)
{
	struct cgroup_tree *t = &cg->trees[cg->n_trees];
	char list[32];
	struct stat st;

	*t = (struct cgroup_tree){ .tasks_fd = -1 };
	snprintf(t->path, sizeof t->path, "/sys/fs/cgroup/%s", name);
	/* systemd also makes links: cpu -> cpu,cpuacct. */
	int r = os_fstatat(AT_FDCWD, t->path, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r < 0 || !S_ISDIR(st.st_mode))
		return 0;
	snprintf(list, sizeof list, "%s", name);
	t->is_devices = strcmp(name, "devices") == 0;
	t->is_freezer = strcmp(name, "freezer") == 0;
	t->controllers = controllers_in(list, ",");
	t->is_shared = t->controllers == 0;
	if (t->controllers & 1u << CG_MEMORY) {
		char file[CGROUP_PATH_MAX];

		snprintf(file, sizeof file, "%s/memory.kmem.tcp.limit_in_bytes", t->path);
		t->is_tcp_uncounted = os_fstatat(AT_FDCWD, file, &st, 0) == -ENOENT;
	}
	cg->n_trees++;
	return 0;
}

/* 1, 0, or -errno. */
static int is_cgroup2(const char *path)
{
	int64_t type = 0;
	int r = os_statfs_type(-1, path, &type);

	return r == -ENOENT ? 0 : r < 0 ? r : type == CGROUP2_MAGIC;
}

/* Where we are on v2: "0::/user.slice/...", from the last line of /proc/self/cgroup. */
static int own_group(char *out, size_t size)
{
	char text[4096];
	int n = os_read_file(AT_FDCWD, "/proc/self/cgroup", text, sizeof text);
	const char *at = n > 0 ? strstr(text, "0::/") : NULL;

	if (!at)
		return n < 0 ? n : -ENOENT;
	snprintf(out, size, "%.*s", (int)strcspn(at + 3, "\n"), at + 3);
	return 0;
}

static int controllers_of(const char *group, const char *file, unsigned int *out)
{
	char path[CGROUP_PATH_MAX], list[256];

	snprintf(path, sizeof path, "%s/%s", group, file);
	int r = os_read_file(AT_FDCWD, path, list, sizeof list);
	*out = r < 0 ? 0 : controllers_in(list, " \n");
	return r < 0 ? r : 0;
}

static bool is_handed_to_us(const char *group)
{
	char path[CGROUP_PATH_MAX];

	snprintf(path, sizeof path, "%s/cgroup.procs", group);
	return access(group, W_OK) == 0 && access(path, W_OK) == 0;
}

/* Somebody else in it, who would have to step aside as well? */
static bool is_shared_with_others(const char *group)
{
	char path[CGROUP_PATH_MAX], pids[256], ours[16];

	snprintf(path, sizeof path, "%s/cgroup.procs", group);
	int n = os_read_file(AT_FDCWD, path, pids, sizeof pids);
	snprintf(ours, sizeof ours, "%d\n", getpid());
	return n < 0 || (n > 0 && strcmp(pids, ours) != 0);
}

/* A user's group: the one that he is in, if he is alone there or it hands controllers down
 * already; else the one above, which does. False: none of both was handed to him. */
static bool find_users_group(char *path)
{
	unsigned int down = 0;

	if (is_handed_to_us(path) &&
	    ((controllers_of(path, "cgroup.subtree_control", &down) == 0 && down) ||
	     !is_shared_with_others(path)))
		return true;
	*strrchr(path, '/') = '\0';
	return is_handed_to_us(path) &&
	       controllers_of(path, "cgroup.subtree_control", &down) == 0 && down;
}

/* Root uses the top of the tree. */
static int add_v2(struct cgroup *cg, const char *top, bool is_root)
{
	struct cgroup_tree *t = &cg->trees[cg->n_trees];
	char own[128] = "";

	int r = is_cgroup2(top);
	if (r <= 0)
		return r;
	r = is_root ? 0 : own_group(own, sizeof own);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*t = (struct cgroup_tree){ .is_v2 = true, .tasks_fd = -1 };
	snprintf(t->path, sizeof t->path, "%s%s", top, strcmp(own, "/") == 0 ? "" : own);
	if (is_root ? !is_handed_to_us(t->path) : !find_users_group(t->path))
		return 0;
	r = controllers_of(t->path, "cgroup.controllers", &t->controllers);
	if (r < 0)
		return r;
	t->is_shared = t->controllers == 0;
	cg->n_trees++;
	return 0;
}

int cgroup_find(struct cgroup *cg, bool is_root)
{
	*cg = (struct cgroup){ .box_fd = -1, .mon_fd = -1 };
	int r = add_v2(cg, "/sys/fs/cgroup", is_root);
	if (r < 0 || cg->n_trees > 0 || !is_root) /* v1 has no safe delegation (cgroups(7)) */
		return r;
	for (size_t i = 0; i < COUNT(v1_names) && r >= 0; i++)
		r = add_v1(cg, v1_names[i]);
	return r < 0 ? r : add_v2(cg, "/sys/fs/cgroup/unified", is_root);
}

void cgroup_keep(struct cgroup *cg)
{
	cg->is_kept = true;
	for (size_t i = 0; i < cg->n_trees; i++)
		if (cg->trees[i].is_freezer)
			cg->trees[i].is_shared = false;
}

const struct cgroup_tree *cgroup_tree_of(const struct cgroup *cg, enum cgroup_controller c)
{
	for (size_t i = 0; i < cg->n_trees; i++)
		if (cg->trees[i].controllers & 1u << c)
			return &cg->trees[i];
	return NULL;
}

const char *cgroup_mechanism(const struct cgroup *cg, enum cgroup_controller c)
{
	const struct cgroup_tree *t = cgroup_tree_of(cg, c);

	return !t ? NULL : t->is_v2 ? "cgroup2" : "cgroup1";
}

bool cgroup_counts_tcp(const struct cgroup *cg)
{
	const struct cgroup_tree *t = cgroup_tree_of(cg, CG_MEMORY);

	return t && !t->is_tcp_uncounted;
}

bool cgroup_has(const struct cgroup *cg, enum cgroup_controller c)
{
	return cgroup_tree_of(cg, c) != NULL;
}

unsigned int cgroup_controllers(const struct cgroup *cg)
{
	unsigned int all = 0;

	for (enum cgroup_controller c = 0; c < CG_CONTROLLERS; c++)
		all |= cgroup_has(cg, c) ? 1u << c : 0;
	return all;
}

/* ---- paths ------------------------------------------------------------------------- */

const char *cgroup_leaf(const struct cgroup_tree *t)
{
	return t->is_v2 ? "box/" : "";
}

void cgroup_path(const struct cgroup *cg, const struct cgroup_tree *t, const char *rest, char *out)
{
	snprintf(out, CGROUP_PATH_MAX, "%s/" CGROUP_BASE "/%s/%s", t->path, cg->name, rest);
}

static int tree_error(const struct cgroup *cg, const struct cgroup_tree *t, int r, struct err *e)
{
	return err_sys(e, -r, "%s/" CGROUP_BASE "/%s", t->path, cg->name);
}

/* ---- caisson/ ---------------------------------------------------------------------- */

static int write_base(const struct cgroup_tree *t, const char *file, const char *text)
{
	char path[CGROUP_PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", t->path, file);
	return os_write_file(AT_FDCWD, path, text);
}

static void want_controllers(const struct cgroup_tree *t, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s", t->controllers & 1u << CG_CPU ? "+cpu " : "",
	         t->controllers & 1u << CG_MEMORY ? "+memory " : "",
	         t->controllers & 1u << CG_PIDS ? "+pids" : "");
}

/* A group with members cannot hand controllers down: we step aside into a leaf first. */
static int prepare_v2(const struct cgroup_tree *t)
{
	char want[64], path[CGROUP_PATH_MAX];

	want_controllers(t, want, sizeof want);
	if (want[0] == '\0')
		return 0;
	int r = write_base(t, "cgroup.subtree_control", want);
	if (r == -EBUSY) {
		snprintf(path, sizeof path, "%s/" CGROUP_BASE ".cli", t->path);
		r = os_mkdirat(AT_FDCWD, path, 0755);
		if (r < 0 && r != -EEXIST)
			return r;
		r = write_base(t, CGROUP_BASE ".cli/cgroup.procs", "0");
		if (r >= 0)
			r = write_base(t, "cgroup.subtree_control", want);
	}
	if (r >= 0)
		r = write_base(t, CGROUP_BASE "/cgroup.subtree_control", want);
	if (r >= 0)
		(void)cgroup_forbid_huge(t);
	return r;
}

static int write_devices(const char *folder)
{
	char path[CGROUP_PATH_MAX];

	snprintf(path, sizeof path, "%s/devices.deny", folder);
	int r = os_write_file(AT_FDCWD, path, "a");
	snprintf(path, sizeof path, "%s/devices.allow", folder);
	for (size_t i = 0; i < COUNT(devices) && r >= 0; i++)
		r = os_write_file(AT_FDCWD, path, devices[i]);
	return r;
}

/* Whole or not at all: made under another name, then renamed, which v1 allows. */
static int make_devices(const char *path)
{
	char own[CGROUP_PATH_MAX];

	snprintf(own, sizeof own, "%s.%d", path, getpid());
	int r = os_mkdirat(AT_FDCWD, own, 0755);
	if (r < 0 && r != -EEXIST)
		return r;
	r = write_devices(own);
	if (r >= 0)
		r = os_rename(own, path);
	if (r < 0)
		(void)os_rmdirat(AT_FDCWD, own);
	return r == -EEXIST ? 0 : r; /* somebody was faster: theirs is the same */
}

/* First use of caisson/ in a hierarchy. */
static int make_base(const struct cgroup_tree *t)
{
	char path[CGROUP_PATH_MAX];

	snprintf(path, sizeof path, "%s/" CGROUP_BASE, t->path);
	if (t->is_devices)
		return make_devices(path);
	int r = os_mkdirat(AT_FDCWD, path, 0755);
	if (r >= 0 && !t->is_v2)
		(void)cgroup_forbid_huge(t); /* has such files in its own hierarchy only */
	return r == -EEXIST ? 0 : r;
}

/* ---- making ------------------------------------------------------------------------ */

/* Another launcher that ends may be removing caisson/ just now: what came of that is tried again.
 */
static bool is_removed(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

static int make_folder(const struct cgroup *cg, const struct cgroup_tree *t)
{
	char path[CGROUP_PATH_MAX];
	int r = -ENOENT;

	cgroup_path(cg, t, "", path);
	for (int tries = 0; tries < TRIES && is_removed(r); tries++) {
		r = os_mkdirat(AT_FDCWD, path, 0755);
		if (r == -EEXIST) {
			cgroup_sweep(cg, t);
			r = os_mkdirat(AT_FDCWD, path, 0755);
		}
		if (r == -ENOENT) {
			int made = make_base(t);

			if (made < 0)
				return made;
		}
	}
	return r;
}

static int make_leaf(const struct cgroup *cg, const struct cgroup_tree *t, const char *leaf,
                     int *out)
{
	char path[CGROUP_PATH_MAX];

	cgroup_path(cg, t, leaf, path);
	int r = os_mkdirat(AT_FDCWD, path, 0755);
	if (r < 0)
		return r;
	*out = os_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	return *out < 0 ? *out : 0;
}

static int open_shared(struct cgroup *cg, struct cgroup_tree *t)
{
	char path[CGROUP_PATH_MAX];
	int *fd = t->is_v2 ? &cg->mon_fd : &t->tasks_fd;
	int flags = t->is_v2 ? O_RDONLY | O_DIRECTORY : O_WRONLY;

	snprintf(path, sizeof path, "%s/" CGROUP_BASE "/%s", t->path, t->is_v2 ? "" : "tasks");
	*fd = os_openat(AT_FDCWD, path, flags, 0);
	for (int tries = 0; tries < TRIES && is_removed(*fd); tries++) {
		int r = make_base(t);

		*fd = r < 0 ? r : os_openat(AT_FDCWD, path, flags, 0);
	}
	return *fd < 0 ? *fd : 0;
}

static int join_base(const struct cgroup_tree *t)
{
	char path[CGROUP_PATH_MAX];
	int r = -ENOENT;

	snprintf(path, sizeof path, "%s/" CGROUP_BASE "/tasks", t->path);
	for (int tries = 0; tries < TRIES && is_removed(r); tries++) {
		r = make_base(t);
		if (r >= 0)
			r = os_write_file(AT_FDCWD, path, "0");
	}
	return r;
}

static int prepare_tree(struct cgroup *cg, struct cgroup_tree *t)
{
	char want[64], path[CGROUP_PATH_MAX];

	if (t->is_shared)
		return cg->is_born_in && !t->is_v2 ? 0 : open_shared(cg, t);
	if (!t->is_v2)
		return 0;
	int r = make_folder(cg, t);
	if (r < 0)
		return r;
	want_controllers(t, want, sizeof want);
	cgroup_path(cg, t, "cgroup.subtree_control", path);
	r = os_write_file(AT_FDCWD, path, want);
	if (r ==
	    -ENOENT) { /* no controller reaches it yet: the first launch, or one that broke off */
		r = prepare_v2(t);
		if (r >= 0)
			r = os_write_file(AT_FDCWD, path, want);
	}
	return r < 0 ? r : make_leaf(cg, t, "mon", &cg->mon_fd);
}

static int hand_over(const struct cgroup *cg, const struct cgroup_tree *t, const char *file,
                     uid_t owner)
{
	char path[CGROUP_PATH_MAX];

	cgroup_path(cg, t, file, path);
	return os_fchownat(AT_FDCWD, path, owner, (gid_t)-1);
}

/* What the monitor of a kept sandbox needs besides: to make leaves, and to freeze. */
static int hand_over_kept(const struct cgroup *cg, const struct cgroup_tree *t, uid_t owner)
{
	int r = 0;

	if (cgroup_leaf_tree(cg) == t)
		r = hand_over(cg, t, cgroup_leaf(t), owner);
	if (r >= 0 && (t->is_v2 || t->is_freezer))
		r = hand_over(cg, t, t->is_v2 ? "box/cgroup.freeze" : "freezer.state", owner);
	return r;
}

/* v1 asks for the rights of whoever opened the file. A descriptor of root's would move every
 * process of the host, so the monitor gets one that can only be opened anew (O_PATH), and does that
 * as itself (cgroup_take_keys()): only processes of its own id move then. */
static int make_tree(struct cgroup *cg, struct cgroup_tree *t, uid_t owner)
{
	char path[CGROUP_PATH_MAX];

	if (t->is_shared)
		return 0;
	if (!t->is_v2) {
		int r = make_folder(cg, t);

		if (r >= 0)
			r = hand_over(cg, t, "tasks", owner);
		cgroup_path(cg, t, "tasks", path);
		t->tasks_fd = r < 0 ? r : os_openat(AT_FDCWD, path, O_PATH, 0);
		r = t->tasks_fd < 0 ? t->tasks_fd : 0;
		return r < 0 || !cg->is_kept ? r : hand_over_kept(cg, t, owner);
	}
	int r = make_leaf(cg, t, "box", &cg->box_fd);
	if (r >= 0)
		r = hand_over(cg, t, "cgroup.procs", owner);
	if (r >= 0)
		r = hand_over(cg, t, "box/cgroup.procs", owner);
	return r < 0 || !cg->is_kept ? r : hand_over_kept(cg, t, owner);
}

int cgroup_prepare(struct cgroup *cg, const char *name, struct err *e)
{
	snprintf(cg->name, sizeof cg->name, "%s", name);
	for (size_t i = 0; i < cg->n_trees; i++) {
		int r = prepare_tree(cg, &cg->trees[i]);

		if (r < 0)
			return tree_error(cg, &cg->trees[i], r, e);
	}
	return 0;
}

int cgroup_make(struct cgroup *cg, uid_t owner, struct err *e)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		int r = make_tree(cg, &cg->trees[i], owner);

		if (r < 0)
			return tree_error(cg, &cg->trees[i], r, e);
	}
	return 0;
}

size_t cgroup_keys(const struct cgroup *cg, int *fds, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < cg->n_trees && n < max; i++) {
		const struct cgroup_tree *t = &cg->trees[i];

		if (!t->is_shared)
			fds[n++] = t->is_v2 ? cg->box_fd : t->tasks_fd;
	}
	return n;
}

/* By the descriptor: whatever umask the launcher had, its folders are not to be passed. */
static int open_tasks(struct cgroup_tree *t, int path_fd)
{
	AUTO(fd_close) int own = path_fd;
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", own);
	t->tasks_fd = os_openat(AT_FDCWD, path, O_WRONLY, 0);
	return t->tasks_fd < 0 ? t->tasks_fd : 0;
}

int cgroup_take_keys(struct cgroup *cg, const int *fds, size_t n_fds)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < cg->n_trees && r >= 0; i++) {
		struct cgroup_tree *t = &cg->trees[i];

		if (t->is_shared)
			continue;
		if (n == n_fds)
			return -EPROTO;
		if (t->is_v2)
			cg->box_fd = fds[n++];
		else
			r = open_tasks(t, fds[n++]);
	}
	return r < 0 ? r : n == n_fds ? 0 : -EPROTO;
}

/* ---- joining, removing ------------------------------------------------------------- */

static int join(const struct cgroup *cg, const struct cgroup_tree *t, int tasks_fd, struct err *e)
{
	int r = os_write_all(tasks_fd, "0", 1);

	return r < 0 ? tree_error(cg, t, r, e) : 0;
}

int cgroup_clone(struct cgroup *cg)
{
	int pid = os_clone((struct clone_opts){ .cgroup_fd = cg->mon_fd });

	for (size_t i = 0, tries = 0; i < cg->n_trees && is_removed(pid) && tries < TRIES;) {
		struct cgroup_tree *t = &cg->trees[i];

		if (!t->is_v2 || !t->is_shared) {
			i++;
			continue;
		}
		fd_close(&cg->mon_fd);
		int r = open_shared(cg, t);
		pid = r < 0 ? r : os_clone((struct clone_opts){ .cgroup_fd = cg->mon_fd });
		tries++;
	}
	return pid;
}

int cgroup_join_shared(struct cgroup *cg, struct err *e)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		struct cgroup_tree *t = &cg->trees[i];

		if (t->is_v2 || !t->is_shared || t->tasks_fd < 0)
			continue;
		int r = os_write_all(t->tasks_fd, "0", 1);
		fd_close(&t->tasks_fd); /* opened by root: it would move any process */
		if (is_removed(r))      /* since it was opened */
			r = join_base(t);
		if (r < 0)
			return tree_error(cg, t, r, e);
	}
	return 0;
}

int cgroup_live_in(struct cgroup *cg)
{
	int r = 0;

	for (size_t i = 0; i < cg->n_trees && r >= 0; i++) {
		const struct cgroup_tree *t = &cg->trees[i];

		if (t->is_shared && !t->is_v2)
			r = join_base(t);
	}
	cg->is_born_in = r >= 0;
	return r;
}

int cgroup_join(const struct cgroup *cg, const struct cgroup_leaf *leaf, struct err *e)
{
	const struct cgroup_tree *special = leaf->num ? cgroup_leaf_tree(cg) : NULL;

	for (size_t i = 0; i < cg->n_trees; i++) {
		const struct cgroup_tree *t = &cg->trees[i];

		if (!t->is_v2 && !t->is_shared &&
		    join(cg, t, t == special ? leaf->fd : t->tasks_fd, e) < 0)
			return -1;
	}
	return 0;
}

size_t cgroup_lend(const struct cgroup *cg, int *fds, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < cg->n_trees && n < max; i++)
		if (cg->trees[i].controllers && !cg->trees[i].is_v2)
			fds[n++] = cg->trees[i].tasks_fd;
	return n;
}

int cgroup_join_lent(const int *fds, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = os_write_all(fds[i], "0", 1);
	return r < 0 ? r : 0;
}

int cgroup_move(const struct cgroup *cg, const struct cgroup_leaf *leaf)
{
	return os_write_file(leaf->num ? leaf->fd : cg->box_fd, "cgroup.procs", "0");
}

/* With the leaves in it. A group that somebody lives in stays. */
static int remove_folder(const char *path)
{
	struct stat st;
	int r = os_rmdirat(AT_FDCWD, path);

	/* The link count of a folder is its number of folders and two. */
	if (r != -EBUSY || os_fstatat(AT_FDCWD, path, &st, 0) < 0 || st.st_nlink <= 2)
		return r;
	DIR *dir = opendir(path);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		if (d->d_type == DT_DIR && d->d_name[0] != '.')
			(void)os_rmdirat(dirfd(dir), d->d_name); /* the next line tells */
	if (dir)
		closedir(dir);
	return os_rmdirat(AT_FDCWD, path);
}

static bool remove_tree(const struct cgroup *cg, const struct cgroup_tree *t)
{
	static const char *const folders[] = { "box", "mon", "" };
	int r = 0;

	for (size_t i = t->is_v2 ? 0 : 2; i < COUNT(folders); i++) {
		char path[CGROUP_PATH_MAX];

		cgroup_path(cg, t, folders[i], path);
		r = remove_folder(path); /* the last one says whether all went */
	}
	return r == 0 || r == -ENOENT;
}

/* Backwards: a sweep that finds nothing in the first hierarchy need not look at the others. A
 * sweep does not know which sandboxes had a freezer. */
int cgroup_remove(const struct cgroup *cg)
{
	int left = 0;

	for (size_t i = cg->n_trees; i-- > 0 && cg->name[0];)
		if (!cg->trees[i].is_shared || cg->trees[i].is_freezer)
			left += !remove_tree(cg, &cg->trees[i]);
	return left;
}

void cgroup_done(struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_trees; i++)
		fd_close(&cg->trees[i].tasks_fd);
	if (cg->n_trees == 0) /* { 0 } has none */
		return;
	fd_close(&cg->box_fd);
	fd_close(&cg->mon_fd);
}

/* The first hierarchy is made first and removed last: what is left anywhere is left there. */
bool cgroup_any(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		char path[CGROUP_PATH_MAX];
		struct stat st;

		if (cg->trees[i].is_shared)
			continue;
		snprintf(path, sizeof path, "%s/" CGROUP_BASE, cg->trees[i].path);
		return os_fstatat(AT_FDCWD, path, &st, 0) == 0 && st.st_nlink > 2;
	}
	return false;
}

void cgroup_each_name(const struct cgroup *cg, void (*found)(const char *name, void *arg),
                      void *arg)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		char path[CGROUP_PATH_MAX];

		if (cg->trees[i].is_shared)
			continue;
		snprintf(path, sizeof path, "%s/" CGROUP_BASE, cg->trees[i].path);
		DIR *dir = opendir(path);
		for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
			if (d->d_type == DT_DIR && d->d_name[0] != '.')
				found(d->d_name, arg);
		if (dir)
			closedir(dir);
	}
}

/* What a launcher that was killed in make_devices() left. */
static void remove_unfinished(const struct cgroup_tree *t)
{
	DIR *dir = opendir(t->path);

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		if (strncmp(d->d_name, CGROUP_BASE ".", strlen(CGROUP_BASE ".")) == 0)
			(void)os_rmdirat(dirfd(dir), d->d_name);
	if (dir)
		closedir(dir);
}

void cgroup_leave(struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_trees && cg->is_born_in; i++)
		if (cg->trees[i].is_shared && !cg->trees[i].is_v2)
			(void)write_base(&cg->trees[i], "tasks", "0");
	cg->is_born_in = false;
}

void cgroup_remove_base(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		char path[CGROUP_PATH_MAX];

		snprintf(path, sizeof path, "%s/" CGROUP_BASE, cg->trees[i].path);
		(void)os_rmdirat(AT_FDCWD, path); /* busy: somebody uses it */
		if (cg->trees[i].is_devices)
			remove_unfinished(&cg->trees[i]);
	}
}
