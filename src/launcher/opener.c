#include "launcher/opener.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/child.h"
#include "launcher/slot.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

/* ---- who --------------------------------------------------------------------------- */

/* A socket that connected somewhere has the credentials of that listener, and a listening one
 * those of whoever made it: root's, often. Only what was accepted at our own socket counts; a
 * file cannot be bound twice. */
static bool is_accepted_here(const struct opener *o, int fd)
{
	struct stat st;

	if (os_socket_option(fd, SO_DOMAIN) != AF_UNIX ||
	    os_socket_option(fd, SO_TYPE) != SOCK_STREAM ||
	    os_socket_option(fd, SO_ACCEPTCONN) != 0)
		return false;
	if (!o->is_root)
		return true; /* the daemon is the same user: it gains nothing */
	AUTO(fd_close) int file = os_bound_file(fd);
	return file >= 0 && os_fstatat(file, "", &st, AT_EMPTY_PATH) == 0 &&
	       st.st_dev == o->api_dev && st.st_ino == o->api_ino;
}

static bool is_gone(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) != 0; /* nothing was asked for but what always comes: a hangup */
}

int opener_ask(const struct opener *o, int client_fd, struct opener_caller *out, struct err *e)
{
	if (client_fd < 0) {
		*out = (struct opener_caller){ .is_operator = true };
		return 0;
	}
	out->is_operator = false;
	if (!is_accepted_here(o, client_fd))
		return err_new(e, ERR_DENIED, "not a connection to our API");
	int r = os_peer(client_fd, &out->peer);
	if (r < 0)
		return err_sys(e, -r, "ask who is connected");
	if (is_gone(client_fd))
		return err_new(e, ERR_DENIED, "the client is gone, and with it its rights");
	if (slot_is_id(out->peer.uid) || slot_is_id(out->peer.gid))
		return err_new(e, ERR_DENIED, "a sandbox opens nothing on the host");
	if (!o->is_root && out->peer.uid != geteuid())
		return err_new(e, ERR_DENIED, "the client is another user");
	return 0;
}

bool opener_in_groups(const struct os_peer *p, gid_t gid)
{
	for (size_t i = 0; i < p->n_groups; i++)
		if (p->groups[i] == gid)
			return true;
	return p->gid == gid;
}

/* ---- open -------------------------------------------------------------------------- */

/* What is left of `path` below `top`, or NULL. */
static const char *rest_below(const char *top, const char *path)
{
	size_t n = strlen(top);

	while (n > 0 && top[n - 1] == '/')
		n--;
	if (strncmp(top, path, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	path += n;
	return path + strspn(path, "/");
}

static int open_below(const struct opener *o, const char *path, struct err *e)
{
	const uint64_t how = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
	int fd = -ENOENT;

	for (size_t i = 0; i < o->n_tops; i++) {
		const char *rest = rest_below(o->top_paths[i], path);

		/* EAGAIN: something was renamed while ".." was looked up (openat2(2)). */
		for (int tries = 0; rest && tries < 10 && (tries == 0 || fd == -EAGAIN); tries++)
			fd = os_openat2(o->top_fds[i], *rest ? rest : ".", O_PATH, 0, how);
		if (rest)
			return fd == -EXDEV ? err_new(e, ERR_DENIED, "it leads out of host_paths")
			       : fd < 0     ? err_sys(e, -fd, "open")
			                    : fd;
	}
	return err_new(e, ERR_DENIED, "it is not below the operator's host_paths");
}

static int open_as_caller(const char *path, struct err *e)
{
	int fd = os_openat2(AT_FDCWD, path, O_PATH, 0, RESOLVE_NO_MAGICLINKS);

	return fd < 0 ? err_sys(e, -fd, "open") : fd;
}

int opener_open(const struct opener *o, const struct opener_caller *c, const char *path,
                struct opener_answer *out, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int fd = c->is_operator ? open_below(o, path, e) : open_as_caller(path, e);

	if (fd < 0)
		return -1;
	if (hostpath_check(&o->rules, fd, e) < 0)
		return -1;
	int r = os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "stat");
	/* O_PATH opens what the caller may not read; access(2) asks with the real ids. */
	int mode = S_ISDIR(st.st_mode) ? R_OK | X_OK : R_OK;
	if (faccessat(fd, "", mode, AT_EMPTY_PATH) < 0)
		return err_sys(e, errno, "read");
	out->uid = st.st_uid;
	out->gid = st.st_gid;
	out->is_dir = S_ISDIR(st.st_mode);
	return fd_take(&fd);
}

/* ---- the child --------------------------------------------------------------------- */

/* In the child, with the launcher's rights: exactly the caller afterwards. What root becomes
 * another user is not dumpable: he may end it, and not look into it. */
static int become(const struct opener *o, const struct opener_caller *c)
{
	int r = 0;

	if (o->is_root && !c->is_operator) {
		r = os_set_groups(c->peer.groups, c->peer.n_groups);
		if (r >= 0)
			r = os_set_ids(c->peer.uid, c->peer.gid);
	}
	if (r >= 0)
		r = os_prctl(PR_SET_PDEATHSIG, SIGKILL);
	return r;
}

static _Noreturn void child(const struct opener *o, const struct opener_caller *c, const char *path,
                            int answer_fd)
{
	struct opener_answer a = { 0 };
	int keep[HOSTPATH_RULES_MAX + 1];
	size_t n = 0;

	keep[n++] = answer_fd;
	for (size_t i = 0; i < o->n_tops && c->is_operator; i++)
		keep[n++] = o->top_fds[i];
	int r = child_keep(keep, n);
	if (r >= 0)
		r = os_reset_signals();
	if (r >= 0)
		r = become(o, c);
	int fd = -1;
	if (r < 0)
		err_sys(&a.e, -r, "become the caller");
	else
		fd = opener_open(o, c, path, &a, &a.e);
	if (fd >= 0)
		a.e.kind = ERR_NONE;
	_exit(os_send(answer_fd, &a, sizeof a, &fd, fd < 0 ? 0 : 1) < 0);
}

int opener_start(const struct opener *o, const struct opener_caller *c, const char *path,
                 pid_t *pid, struct err *e)
{
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	r = os_clone((struct clone_opts){ 0 });
	if (r < 0)
		return err_sys(e, -r, "clone");
	if (r == 0)
		child(o, c, path, theirs);
	*pid = r;
	return fd_take(&ours);
}
