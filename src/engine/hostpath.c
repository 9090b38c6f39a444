#include "engine/hostpath.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "os/file.h"

#define DEPTH_MAX 4096 /* more than the deepest path that has a name */

/* Whatever the path looks like: it may be mounted in more than one place. */
bool hostpath_is_kernels(int fd)
{
	static const int64_t types[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		DEBUGFS_MAGIC,      TRACEFS_MAGIC, SECURITYFS_MAGIC,   BPF_FS_MAGIC,
		DEVPTS_SUPER_MAGIC, NSFS_MAGIC,
	};
	int64_t type = 0;

	if (os_statfs_type(fd, NULL, &type) < 0)
		return true;
	for (size_t i = 0; i < COUNT(types); i++)
		if (type == types[i])
			return true;
	return false;
}

static int stat_fd(int fd, struct stat *st, struct err *e)
{
	int r = os_fstatat(fd, "", st, AT_EMPTY_PATH);

	return r < 0 ? err_sys(e, -r, "stat") : 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* From `*dir` to the folder above. Returns 0 at the root of all: 1 when it went up. */
static int step_up(int *dir, struct stat *st, struct err *e)
{
	struct stat root;
	int r = os_fstatat(AT_FDCWD, "/", &root, 0);

	if (r < 0)
		return err_sys(e, -r, "stat /");
	if (is_same(st, &root))
		return 0;
	int up = os_openat(*dir, "..", O_PATH | O_DIRECTORY, 0);
	if (up < 0)
		return err_sys(e, -up, "walk up");
	fd_close(dir);
	*dir = up;
	return stat_fd(up, st, e) < 0 ? -1 : 1;
}

static int add_rule(struct hostpath_rules *rules, const struct stat *st, bool is_above,
                    struct err *e)
{
	if (rules->n == HOSTPATH_RULES_MAX)
		return err_new(e, ERR_LIMIT, "a folder of ours lies too deep");
	rules->at[rules->n++] = (struct hostpath_rule){ st->st_dev, st->st_ino, is_above };
	return 0;
}

int hostpath_forbid(struct hostpath_rules *rules, int dir_fd, bool above, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int dir = os_openat(dir_fd, ".", O_PATH | O_DIRECTORY, 0);

	if (dir < 0)
		return err_sys(e, -dir, "enter");
	if (stat_fd(dir, &st, e) < 0 || add_rule(rules, &st, false, e) < 0)
		return -1;
	for (int depth = 0; above && depth < DEPTH_MAX; depth++) {
		int r = step_up(&dir, &st, e);

		if (r <= 0)
			return r;
		if (add_rule(rules, &st, true, e) < 0)
			return -1;
	}
	return 0;
}

/* A file has no "..": the kernel's name of it leads to its folder, and what is found there
 * under that name has to be the same file. */
static int split_name(int fd, char path[PATH_TEXT_MAX], char **name, struct err *e)
{
	char link[32];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	int r = os_readlinkat(AT_FDCWD, link, path, PATH_TEXT_MAX);
	if (r < 0)
		return err_sys(e, -r, "name a file");
	*name = strrchr(path, '/');
	if (!*name)
		return err_new(e, ERR_DENIED, "a file without a name");
	*(*name)++ = '\0';
	return 0;
}

static int folder_of(int fd, const struct stat *st, struct err *e)
{
	char path[PATH_TEXT_MAX];
	char *name;
	struct stat again;

	if (split_name(fd, path, &name, e) < 0)
		return -1;
	AUTO(fd_close)
	int dir = os_openat2(AT_FDCWD, path[0] ? path : "/", O_PATH | O_DIRECTORY, 0,
	                     RESOLVE_NO_SYMLINKS);
	if (dir < 0)
		return err_sys(e, -dir, "open the folder of a file");
	int r = os_fstatat(dir, name, &again, AT_SYMLINK_NOFOLLOW);
	if (r < 0 || !is_same(st, &again))
		return err_new(e, ERR_DENIED, "the file was moved meanwhile");
	return fd_take(&dir);
}

int hostpath_folder(int fd, struct err *e)
{
	struct stat st;

	return stat_fd(fd, &st, e) < 0 ? -1 : folder_of(fd, &st, e);
}

int hostpath_name(int fd, char *out, size_t size, struct err *e)
{
	char path[PATH_TEXT_MAX];
	char *name;

	if (split_name(fd, path, &name, e) < 0)
		return -1;
	if (!*name || strlen(name) >= size)
		return err_new(e, ERR_DENIED, "a file without a name");
	memcpy(out, name, strlen(name) + 1);
	return 0;
}

bool hostpath_is_open_to(int dir_fd, uid_t uid, gid_t gid)
{
	struct stat st;

	return os_fstatat(dir_fd, "", &st, AT_EMPTY_PATH) == 0 &&
	       ((st.st_mode & S_IXOTH) || (st.st_uid == uid && st.st_gid == gid));
}

static int judge(const struct hostpath_rules *rules, const struct stat *st, bool is_itself,
                 struct err *e)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct hostpath_rule *rule = &rules->at[i];

		if (rule->dev != st->st_dev || rule->ino != st->st_ino)
			continue;
		if (!rule->is_above)
			return err_new(e, ERR_DENIED, "a folder of the host's or of caisson's own");
		if (is_itself)
			return err_new(e, ERR_DENIED, "it contains folders of caisson's own");
	}
	return 0;
}

static int enter(int fd, const struct stat *st, struct err *e)
{
	if (!S_ISDIR(st->st_mode))
		return folder_of(fd, st, e);
	int dir = os_openat(fd, ".", O_PATH | O_DIRECTORY, 0);
	return dir < 0 ? err_sys(e, -dir, "enter") : dir;
}

int hostpath_check(const struct hostpath_rules *rules, int fd, struct err *e)
{
	struct stat st;

	if (stat_fd(fd, &st, e) < 0 || judge(rules, &st, true, e) < 0)
		return -1;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_new(e, ERR_INVALID, "neither a folder nor a file");
	if (hostpath_is_kernels(fd))
		return err_new(e, ERR_DENIED, "a file system of the kernel");
	AUTO(fd_close) int dir = enter(fd, &st, e);
	if (dir < 0 || stat_fd(dir, &st, e) < 0)
		return -1;
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		if (judge(rules, &st, false, e) < 0)
			return -1;
		int r = step_up(&dir, &st, e);
		if (r <= 0)
			return r;
	}
	return err_new(e, ERR_DENIED, "too deep, or not below the root of the host");
}
