/*
 * hostcheck_try.c - the facts that only the kernel's answer tells: a container's filter, a profile
 * or a missing module stand in no file. Each trial is what a launch does, in a child, whose mounts
 * and namespaces end with it.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/hostcheck-internal.h"
#include "engine/landlock.h"
#include "engine/netns.h"
#include "engine/userns.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"
#include "os/seccomp.h"

#define NOBODY 65534
#define SPARE_IDS 0x70000000u /* any range that nobody has */

#define ALL_NAMESPACES                                                                             \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

static int mount_on(const char *path, int fs_fd)
{
	int r = os_fsconfig_create(fs_fd);
	AUTO(fd_close) int tree = r < 0 ? r : os_fsmount(fs_fd, 0);

	return tree < 0 || !path ? tree : os_move_mount(tree, AT_FDCWD, path);
}

/* /tmp becomes a scratch, as the upper layer of an overlay on /usr. */
static int try_overlay(void)
{
	AUTO(fd_close) int scratch = os_fsopen("tmpfs");
	int r = scratch < 0 ? scratch : mount_on("/tmp", scratch);

	if (r >= 0)
		r = os_mkdirat(AT_FDCWD, "/tmp/upper", 0700);
	if (r >= 0)
		r = os_mkdirat(AT_FDCWD, "/tmp/work", 0700);
	AUTO(fd_close) int fs = r < 0 ? r : os_fsopen("overlay");
	if (fs < 0)
		return fs;
	r = os_fsconfig_text(fs, "lowerdir", "/usr");
	if (r >= 0)
		r = os_fsconfig_text(fs, "upperdir", "/tmp/upper");
	if (r >= 0)
		r = os_fsconfig_text(fs, "workdir", "/tmp/work");
	if (r >= 0)
		r = os_fsconfig_flag(fs, "userxattr");
	return r < 0 ? r : mount_on(NULL, fs);
}

static int try_proc(void)
{
	AUTO(fd_close) int fs = os_fsopen("proc");

	return fs < 0 ? fs : mount_on(NULL, fs);
}

static int try_notify(void)
{
	const struct sock_filter allow[] = { { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW } };
	int r = os_prctl(PR_SET_NO_NEW_PRIVS, 1);
	AUTO(fd_close) int listener = r < 0 ? r : os_seccomp_load(allow, COUNT(allow), true);

	return listener;
}

static int try_netfilter(void)
{
	int fds[NET_SOCKETS];
	struct err e = { 0 };

	if (netns_route(&e) < 0 || netns_wall(fds, &e) < 0)
		return e.sys ? -e.sys : -EIO;
	netns_close(fds);
	return 0;
}

static int try_idmap(void)
{
	struct userns_range ids = { 0, SPARE_IDS, 0x10000 };
	struct err e;
	AUTO(fd_close) int tree = os_open_tree(AT_FDCWD, "/usr", false);
	AUTO(fd_close) int ns = tree < 0 ? -1 : userns_make(ids, ids, &e);

	if (tree < 0)
		return tree;
	return ns < 0 ? -EPERM : os_mount_idmap(tree, ns);
}

/* In a child of root's, with a mount namespace of its own: as caisson-vault makes a workspace, on a
 * mapped /usr instead of what lies in the store. */
static int try_layers(void)
{
	struct userns_range ids = { 0, SPARE_IDS, 0x10000 };
	struct err e;
	AUTO(fd_close) int scratch = os_fsopen("tmpfs");
	int r = scratch < 0 ? scratch : mount_on("/tmp", scratch);

	for (const char *const *name = (const char *const[]){ "lower", "upper", "work", NULL };
	     r >= 0 && *name; name++) {
		char path[32];

		snprintf(path, sizeof path, "/tmp/%s", *name);
		r = os_mkdirat(AT_FDCWD, path, 0700);
	}
	AUTO(fd_close) int tree = r < 0 ? r : os_open_tree(AT_FDCWD, "/usr", false);
	AUTO(fd_close) int ns = tree < 0 ? -1 : userns_make(ids, ids, &e);
	if (ns < 0)
		return tree < 0 ? tree : -EPERM;
	r = os_mount_idmap(tree, ns);
	if (r >= 0)
		r = os_move_mount(tree, AT_FDCWD, "/tmp/lower");
	AUTO(fd_close) int fs = r < 0 ? r : os_fsopen("overlay");
	if (fs < 0)
		return fs;
	const struct {
		const char *key, *value;
	} options[] = { { "lowerdir", "/tmp/lower" },
		        { "upperdir", "/tmp/upper" },
		        { "workdir", "/tmp/work" },
		        { "redirect_dir", "on" },
		        { "xino", "on" } };
	for (size_t i = 0; i < COUNT(options) && r >= 0; i++)
		r = os_fsconfig_text(fs, options[i].key, options[i].value);
	return r < 0 ? r : mount_on(NULL, fs);
}

/* Nothing is made: a free device would be a new name on the host. */
static int try_volumes(void)
{
	AUTO(fd_close) int loop = os_openat(AT_FDCWD, "/dev/loop-control", O_RDWR, 0);
	AUTO(fd_close) int fs = loop < 0 ? loop : os_fsopen("ext4");

	return fs;
}

static int outcome(int r)
{
	return r < 0 ? -r : 0;
}

/* Back to being somebody without rights, as the monitor is. */
static int become_nobody(void)
{
	int r = os_drop_groups();

	if (r >= 0)
		r = os_set_ids(NOBODY, NOBODY);
	return r < 0 ? r : os_prctl(PR_SET_DUMPABLE, 1); /* or our maps would be root's to write */
}

static int enter_namespaces(void)
{
	char uids[48], gids[48];

	snprintf(uids, sizeof uids, "0 %u 1\n", geteuid());
	snprintf(gids, sizeof gids, "0 %u 1\n", getegid());
	int r = os_unshare(ALL_NAMESPACES);
	if (r >= 0)
		r = os_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (r >= 0)
		r = os_write_file(AT_FDCWD, "/proc/self/gid_map", gids);
	if (r >= 0)
		r = os_write_file(AT_FDCWD, "/proc/self/uid_map", uids);
	/* A security module may grant the namespace and then no right in it. */
	return r < 0 ? r : os_mount_private(AT_FDCWD, "/");
}

/* In a grandchild: pid 1 of new namespaces, all capabilities inside, the host's root. */
static _Noreturn void try_inside(int *tried)
{
	tried[TRY_OVERLAY] = outcome(try_overlay());
	tried[TRY_PROC] = outcome(try_proc());
	tried[TRY_NETFILTER] = outcome(try_netfilter());
	_exit(0);
}

/* In a child: the caller's rights, soon none. `tried` is shared with the caller. */
static _Noreturn void try_outside(int *tried, bool is_root)
{
	int r = is_root ? become_nobody() : 0;

	tried[TRY_NAMESPACES] = outcome(r < 0 ? r : enter_namespaces());
	if (tried[TRY_NAMESPACES] == 0) {
		int status;
		int pid = os_clone((struct clone_opts){ 0 });

		if (pid == 0)
			try_inside(tried);
		if (pid > 0)
			(void)os_wait(pid, &status, NULL); /* the memory says what it found */
	}
	tried[TRY_NOTIFY] = outcome(try_notify());
	_exit(0);
}

/* What only root does: as himself. */
static void try_as_root(int *tried)
{
	int status;

	tried[TRY_IDMAP] = outcome(try_idmap());
	tried[TRY_VOLUMES] = outcome(try_volumes());
	int pid = os_clone((struct clone_opts){ .flags = CLONE_NEWNS });
	if (pid == 0) {
		int r = os_mount_private(AT_FDCWD, "/");

		tried[TRY_LAYERS] = outcome(r < 0 ? r : try_layers());
		_exit(0);
	}
	if (pid > 0)
		(void)os_wait(pid, &status, NULL); /* the memory says what it found */
	else
		tried[TRY_LAYERS] = -pid;
}

int hostcheck_net(bool is_root)
{
	int status = 0;
	int pid = os_clone((struct clone_opts){ 0 });

	if (pid < 0)
		return -pid;
	if (pid == 0) {
		int r = is_root ? become_nobody() : 0;

		if (r >= 0) /* rights over its network take no ids */
			r = os_unshare(CLONE_NEWUSER | CLONE_NEWNET);
		_exit(outcome(r < 0 ? r : try_netfilter()));
	}
	int r = os_wait(pid, &status, NULL);
	return r < 0 ? -r : WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

void hostcheck_try(struct hostfacts *f)
{
	const bool is_root = f->mode == HOST_ROOT;
	int *tried =
	    mmap(NULL, sizeof f->tried, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	f->landlock_abi = landlock_abi();
	cgroup_find(&f->cgroups[f->mode], is_root);
	if (tried == MAP_FAILED)
		return;
	memcpy(tried, f->tried, sizeof f->tried);
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid == 0)
		try_outside(tried, is_root);
	if (pid > 0)
		(void)os_wait(pid, &status, NULL);
	else
		tried[TRY_NAMESPACES] = -pid; /* a launch starts with the same call */
	if (is_root)
		try_as_root(tried);
	memcpy(f->tried, tried, sizeof f->tried);
	munmap(tried, sizeof f->tried);
}
