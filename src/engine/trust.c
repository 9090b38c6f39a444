#include "engine/trust.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/build.h"
#include "engine/copytree.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"
#include "os/sock.h"

#define BUNDLE_MAX (4u << 20)
#define PATIENCE_S 10 /* a folder of the host's that does not answer */
#define ATTRS (PLACE_SAFE | MOUNT_ATTR_NOEXEC)

/* ---- in pid 1 -------------------------------------------------------------------------- */

int root_trust(struct build *b, struct err *e)
{
	static const char letter = GIFT_TRUST;

	if (!b->box->plan->has_net)
		return 0;
	AUTO(fd_close) int fs = os_fsopen("tmpfs");
	int r = fs;
	if (r >= 0)
		r = os_fsconfig_text(fs, "mode", "0755");
	if (r >= 0)
		r = os_fsconfig_text(fs, "size", "16m"); /* the image's own are copied */
	if (r >= 0)
		r = os_fsconfig_text(fs, "nr_inodes", "4096");
	if (r >= 0)
		r = os_fsconfig_create(fs);
	AUTO(fd_close) int tree = r < 0 ? r : os_fsmount(fs, ATTRS);
	if (tree < 0)
		return err_sys(e, -tree, "make a tmpfs");
	r = os_send(b->io.report_fd, &letter, 1, &tree, 1);
	return r < 0 ? err_sys(e, -r, "hand it over") : 0;
}

/* ---- in the helper --------------------------------------------------------------------- */

struct placing {
	struct build build; /* its root_fd: the root of the sandbox */
	const struct trust *trust;
	int tree_fd;       /* the file system that it becomes */
	int own_proc_fd;   /* /proc/self of the host: descriptors by name */
	struct str bundle; /* the image's and ours */
};

/* Where distributions keep all they trust in one file; the first one is the image's. */
static const char *const bundles[] = {
	"etc/ssl/certs/ca-certificates.crt", /* Debian and others */
	"etc/pki/tls/certs/ca-bundle.crt",   /* Fedora and others */
	"etc/ssl/ca-bundle.pem",             /* SUSE */
	"etc/ssl/cert.pem",                  /* Alpine, Arch */
};

/* Bundles and stores that may lie elsewhere, and what covers them. */
static const struct {
	const char *path, *by;
} others[] = {
	{ "etc/pki/tls/certs/ca-bundle.crt", "ca-certificates.crt" },
	{ "etc/ssl/ca-bundle.pem", "ca-certificates.crt" },
	{ "etc/ssl/cert.pem", "ca-certificates.crt" },
	{ "etc/pki/java/cacerts", "java/cacerts" },
};

/* A file that everybody may read anyway. Links are the image's, and lead nowhere but into it. */
static int open_inside(const struct placing *p, const char *path, int flags, struct stat *st)
{
	AUTO(fd_close)
	int fd =
	    os_openat2(p->build.root_fd, path, flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	int r = fd < 0 ? fd : os_fstatat(fd, "", st, AT_EMPTY_PATH);

	if (r < 0)
		return r;
	return S_ISREG(st->st_mode) && st->st_mode & S_IROTH ? fd_take(&fd) : -ENOENT;
}

static int read_bundle(struct placing *p, struct err *e)
{
	AUTO(fd_close) int fd = -ENOENT;
	struct stat st = { 0 };

	for (size_t i = 0; i < COUNT(bundles) && fd < 0; i++)
		fd = open_inside(p, bundles[i], O_RDONLY | O_NONBLOCK, &st);
	if (fd < 0) /* none that can be read: then there is only ours */
		return 0;
	if (st.st_size > BUNDLE_MAX)
		return err_new(e, ERR_LIMIT, "the image's bundle has more than %u bytes",
		               BUNDLE_MAX);
	AUTO(freep) char *bytes = mem_alloc((size_t)st.st_size + 1);
	int n = os_pread(fd, bytes, (size_t)st.st_size, 0);
	if (n < 0)
		return err_sys(e, -n, "read the image's bundle");
	str_addn(&p->bundle, bytes, (size_t)n);
	if (n > 0 && bytes[n - 1] != '\n')
		str_add(&p->bundle, "\n");
	return 0;
}

/* In the place of what the image has by that name, whatever it is. */
static int put(int dir_fd, const char *name, struct str bytes, struct err *e)
{
	copytree_remove(dir_fd, name);
	int r = os_make_file(dir_fd, name, str_text(&bytes), bytes.len, 0644);
	return r < 0 ? err_sys(e, -r, "write %s", name) : 0;
}

/* The name that OpenSSL looks for: the hash, and which of those that have it. */
static int put_hash(struct placing *p, struct err *e)
{
	char name[16];
	int r = -EEXIST;

	for (unsigned int i = 0; i < 10 && r == -EEXIST; i++) {
		snprintf(name, sizeof name, "%08x.%u", p->trust->hash, i);
		r = os_symlinkat("caisson.pem", p->tree_fd, name);
	}
	return r < 0 ? err_sys(e, -r, "link %s", name) : 0;
}

static int put_store(struct placing *p, struct err *e)
{
	AUTO(str_done) struct str store = { .max = 2ul * BUNDLE_MAX };
	struct stat st;

	if (!p->trust->make_store(str_text(&p->bundle), p->bundle.len, &store))
		return err_new(e, ERR_LIMIT, "the store for Java is too large");
	if (os_fstatat(p->tree_fd, "java", &st, AT_SYMLINK_NOFOLLOW) >= 0 && !S_ISDIR(st.st_mode))
		copytree_remove(p->tree_fd, "java");
	int r = os_mkdirat(p->tree_fd, "java", 0755);
	AUTO(fd_close)
	int dir = r < 0 && r != -EEXIST
	              ? r
	              : os_openat(p->tree_fd, "java", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return dir < 0 ? err_sys(e, -dir, "make java") : put(dir, "cacerts", store, e);
}

static int fill(struct placing *p, int folder_fd, struct err *e)
{
	char *pem = (char *)(uintptr_t)p->trust->pem;
	struct stat st;

	if (read_bundle(p, e) < 0)
		return -1;
	str_add(&p->bundle, pem);
	copytree_remove(p->tree_fd, "."); /* what a helper that did not come far has left */
	if (copytree(folder_fd, p->tree_fd, ".", e) < 0)
		return err_wrap(e, "copy %s", TRUST_FOLDER);
	if (put(p->tree_fd, "caisson.pem", (struct str){ .data = pem, .len = strlen(pem) }, e) <
	        0 ||
	    put(p->tree_fd, "ca-certificates.crt", p->bundle, e) < 0)
		return -1;
	if (os_fstatat(p->tree_fd, "ca-bundle.crt", &st, AT_SYMLINK_NOFOLLOW) >= 0 &&
	    put(p->tree_fd, "ca-bundle.crt", p->bundle, e) < 0)
		return -1;
	return put_hash(p, e) < 0 ? -1 : put_store(p, e);
}

/* A bind mount of a file that is read-only already. Mounts by descriptor would count as mount
 * namespaces, of which there may be no more. */
static int cover(struct placing *p, const char *by, int target_fd)
{
	char from[24], to[24];
	AUTO(fd_close) int fd = os_openat(p->tree_fd, by, O_PATH | O_NOFOLLOW, 0);
	int r = fd < 0 ? fd : os_fchdir(p->own_proc_fd);

	if (r < 0)
		return r;
	snprintf(from, sizeof from, "fd/%d", fd);
	snprintf(to, sizeof to, "fd/%d", target_fd);
	return os_bind(from, to);
}

static int cover_others(struct placing *p, struct err *e)
{
	struct stat own, st;
	int r = os_fstatat(p->tree_fd, "", &own, AT_EMPTY_PATH);

	for (size_t i = 0; i < COUNT(others) && r >= 0; i++) {
		AUTO(fd_close) int target = open_inside(p, others[i].path, O_PATH, &st);

		if (target < 0 || st.st_dev == own.st_dev)
			continue; /* not there; or it leads to one of ours already */
		r = cover(p, others[i].by, target);
		if (r < 0)
			err_sys(e, -r, "cover /%s", others[i].path);
	}
	return r < 0 ? -1 : 0;
}

static int place(struct placing *p, struct err *e)
{
	p->build.root_fd = os_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	if (p->build.root_fd < 0)
		return err_sys(e, -p->build.root_fd, "open the root");
	AUTO(fd_close) int folder = place_target(&p->build, TRUST_FOLDER, true, e);
	if (folder < 0 || fill(p, folder, e) < 0)
		return -1;
	int r = os_mount_setattr(p->tree_fd, ATTRS | MOUNT_ATTR_RDONLY, false);
	if (r >= 0)
		r = os_move_mount(p->tree_fd, folder, "");
	return r < 0 ? err_sys(e, -r, "mount %s", TRUST_FOLDER) : cover_others(p, e);
}

/* In a child of the monitor, which has no rights: every right inside, none outside. What is read
 * here was written by anybody. */
static int enter(struct placing *p, const struct box *box, int init_pidfd, struct err *e)
{
	p->own_proc_fd = os_openat(AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY, 0);
	int r =
	    p->own_proc_fd < 0 ? p->own_proc_fd : os_setns(init_pidfd, CLONE_NEWUSER | CLONE_NEWNS);
	if (r >= 0 && box->is_root) /* its own id is not mapped, and could own no file */
		r = os_set_ids(0, 0);
	if (r >= 0) /* either has opened us to those inside */
		r = os_prctl(PR_SET_DUMPABLE, 0);
	umask(022);
	return r < 0 ? err_sys(e, -r, "enter the sandbox") : 0;
}

static _Noreturn void help(const struct box *box, const struct spawn_init *init,
                           const struct trust *t, int report_fd)
{
	struct placing p = { .trust = t,
		             .tree_fd = init->trust_fd,
		             .bundle = { .max = BUNDLE_MAX + 4096 } };
	struct err e = { 0 };

	(void)os_reset_signals(); /* what is ignored or blocked would not end it */
	alarm(PATIENCE_S);
	if (enter(&p, box, init->pidfd, &e) == 0 && place(&p, &e) == 0)
		e.kind = ERR_NONE;
	_exit(os_send(report_fd, &e, sizeof e, NULL, 0) < 0 ? 125 : 0);
}

/* ---- in the monitor -------------------------------------------------------------------- */

int trust_place(const struct box *box, struct spawn_init *init, const struct trust *t,
                struct err *e)
{
	int report[2], status;

	if (init->trust_fd < 0)
		return err_new(e, ERR_INTERNAL, "there is no place for the certificate");
	if (spawn_await_init(init, e) < 0) /* its namespaces are entered by it */
		return -1;
	int r = os_socketpair(report, SOCK_SEQPACKET);
	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = report[0];
	AUTO(fd_close) int theirs = report[1];
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid < 0)
		return err_sys(e, -pid, "clone");
	if (pid == 0)
		help(box, init, t, theirs);
	fd_close(&theirs);
	int n = os_recv(ours, e, sizeof *e, NULL, NULL);
	(void)os_wait(pid, &status, NULL);
	if (n != (int)sizeof *e)
		return err_new(e, ERR_INTERNAL, "who was to place the certificate died");
	e->msg[sizeof e->msg - 1] = '\0';
	if (e->kind != ERR_NONE)
		return err_wrap(e, "place the certificate");
	fd_close(&init->trust_fd);
	return 0;
}
