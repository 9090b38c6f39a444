#include "engine/userns.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"

static int write_map(int proc_fd, const char *file, struct userns_range r, struct err *e)
{
	char line[64];

	snprintf(line, sizeof line, "%u %u %u\n", r.inside, r.outside, r.count);
	int n = os_write_file(proc_fd, file, line);
	return n < 0 ? err_sys(e, -n, "write %s", file) : 0;
}

static int write_maps(pid_t pid, struct userns_range uids, struct userns_range gids, bool groups,
                      struct err *e)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d", pid);
	AUTO(fd_close) int proc = os_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (proc < 0)
		return err_sys(e, -proc, "open %s", path);
	/* Without rights gid_map is refused until setgroups is denied (user_namespaces(7)); with
	 * them we deny it all the same: groups inside would be one more thing to reason about. */
	int r = groups ? 0 : os_write_file(proc, "setgroups", "deny");
	if (r < 0)
		return err_sys(e, -r, "deny setgroups");
	if (write_map(proc, "gid_map", gids, e) < 0)
		return -1;
	return write_map(proc, "uid_map", uids, e);
}

int userns_map(const struct box *box, pid_t pid, struct err *e)
{
	const struct plan *p = box->plan;
	struct userns_range uids = { p->uid, box->uid, 1 };
	struct userns_range gids = { p->gid, box->gid, 1 };

	if (box->is_root) {
		uids = (struct userns_range){ 0, box->id_base, BOX_IDS };
		gids = uids;
	}
	return write_maps(pid, uids, gids, box->is_root && p->rootful, e);
}

int userns_make(struct userns_range uids, struct userns_range gids, struct err *e)
{
	char path[32];
	int status;
	int pidfd = -1;
	pid_t parent = getpid();
	int pid = os_clone((struct clone_opts){ .flags = CLONE_NEWUSER, .pidfd = &pidfd });

	if (pid < 0)
		return err_sys(e, -pid, "clone a user namespace");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	AUTO(fd_close) int owned = pidfd;
	int fd = write_maps(pid, uids, gids, false, e);
	if (fd == 0) {
		snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
		fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
		if (fd < 0)
			err_sys(e, -fd, "open %s", path);
	}
	(void)kill(pid, SIGKILL); /* our own child, not yet waited for: it exists */
	(void)os_wait(pid, &status, NULL);
	return fd < 0 ? -1 : fd;
}

int userns_map_exactly(int fd, int ns_fd, struct err *e)
{
	AUTO(fd_close) int tree = os_open_tree(fd, "", false);
	if (tree < 0)
		return err_sys(e, -tree, "clone a source");
	int r = os_mount_idmap(tree, ns_fd);
	return r < 0 ? err_sys(e, -r, "map the ids of a source") : fd_take(&tree);
}

int userns_map_tree(int fd, struct userns_range uids, struct userns_range gids, struct err *e)
{
	AUTO(fd_close) int ns = userns_make(uids, gids, e);
	if (ns < 0)
		return -1;
	struct err cannot = { 0 };
	int tree = userns_map_exactly(fd, ns, &cannot);
	if (tree >= 0)
		return tree;
	if (cannot.sys != EINVAL) {
		*e = cannot;
		return -1;
	}
	/* The file system cannot (overlay, network file systems); its files then belong to nobody
	 * inside, which is stricter. */
	tree = os_open_tree(fd, "", false);
	return tree < 0 ? err_sys(e, -tree, "clone a source") : tree;
}
