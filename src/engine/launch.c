/*
 * launch.c - the order in which a sandbox is built. Read the two tables top to bottom.
 *
 * Pid 1 builds the walls, then becomes caisson-init. The command is a child of the monitor
 * that has entered the finished namespaces; it drops everything, proves the walls, and
 * executes. The name of a step is the context of its error: "mount proc: ...".
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/build.h"
#include "engine/caps.h"
#include "engine/landlock.h"
#include "engine/proof.h"
#include "engine/seccomp.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"
#include "os/sock.h"

#define REPORT_FD 3

/* ---- pid 1 ------------------------------------------------------------------------- */

/* Dies with the monitor. A change of ids clears it, so it is said again later. */
static int follow_parent(struct err *e)
{
	int r = os_prctl(PR_SET_PDEATHSIG, SIGKILL);

	return r < 0 ? err_sys(e, -r, "follow the monitor") : 0;
}

static int step_ids(struct build *b, struct err *e)
{
	char byte;

	if (read(b->go_fd, &byte, 1) != 1)
		return err_new(e, ERR_INTERNAL, "the monitor is gone");
	b->uid = b->box->is_root ? 0 : b->box->plan->uid;
	/* Overlay asks for the rights of the mounter's ids, which are unmapped until now. */
	int r = os_set_ids(b->uid, b->box->is_root ? 0 : b->box->plan->gid);
	if (r >= 0)
		r = os_prctl(PR_SET_DUMPABLE, 0);
	if (r < 0)
		return err_sys(e, -r, "become root inside");
	umask(0);
	return follow_parent(e);
}

static int step_cgroup(struct build *b, struct err *e)
{
	if (follow_parent(e) < 0 || cgroup_join(&b->box->cgroup, e) < 0)
		return -1;
	int r = os_unshare(CLONE_NEWCGROUP);
	return r < 0 ? err_sys(e, -r, "unshare") : 0;
}

static int step_no_more_namespaces(struct build *b, struct err *e)
{
	static const char *const kinds[] = { "user", "mnt", "pid", "net",
					     "ipc",  "uts", "cgroup", "time" };
	AUTO(fd_close) int dir = os_openat(AT_FDCWD, "/proc/sys/user", O_PATH | O_DIRECTORY, 0);

	(void)b;
	if (dir < 0)
		return err_sys(e, -dir, "open /proc/sys/user");
	for (size_t i = 0; i < COUNT(kinds); i++) {
		char file[32];

		snprintf(file, sizeof file, "max_%s_namespaces", kinds[i]);
		int r = os_write_file(dir, file, "0");
		if (r < 0)
			return err_sys(e, -r, "write %s", file);
	}
	return 0;
}

static int step_name(struct build *b, struct err *e)
{
	int r = os_set_hostname("caisson");

	(void)b;
	return r < 0 ? err_sys(e, -r, "sethostname") : 0;
}

static int step_loopback(struct build *b, struct err *e)
{
	(void)b;
	if (fault_layer_off("netns"))
		return 0;
	int r = os_loopback_up();
	return r < 0 ? err_sys(e, -r, "raise lo") : 0;
}

static int step_private(struct build *b, struct err *e)
{
	int r = os_mount_private(AT_FDCWD, "/");

	(void)b;
	return r < 0 ? err_sys(e, -r, "make all mounts private") : 0;
}

/* The order is the design. */
/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct build *b, struct err *e);
} inside_steps[] = {
	{ "enter the cgroup",             step_cgroup }, /* while still the id that it was handed to */
	{ "take the ids",                 step_ids },
	{ "set the host name",            step_name },
	{ "set up the network",           step_loopback },
	{ "cut mount propagation",        step_private },
	{ "mount the scratch",            root_scratch },
	{ "lay the image",                root_image },
	{ "mount proc",                   procfs_make },
	{ "make sys",                     sysfs_make },
	{ "make dev",                     dev_make },
	{ "make etc",                     etc_make },
	{ "make the common folders",      root_folders },
	{ "mount the fs entries",         root_mounts },
	{ "forbid nested namespaces",     step_no_more_namespaces }, /* a detached mount counts as one */
	{ "switch the root",              root_pivot },
};
/* clang-format on */

static void send_report(int fd, const struct err *e)
{
	(void)os_send(fd, e, sizeof *e, NULL, 0); /* nobody there: nobody to tell */
}

/* In pid 1, walls finished: no rights, no descriptors, a filter of its own, then caisson-init. */
static int become_init(const struct build *b, struct err *e)
{
	char name[] = "caisson-init";
	char *const argv[] = { name, NULL };
	char *const env[] = { NULL };
	AUTO(fd_close) int null = os_openat(AT_FDCWD, "/dev/null", O_RDWR, 0);

	if (null < 0)
		return err_sys(e, -null, "open /dev/null");
	for (int fd = 0; fd < 3; fd++) {
		int r = os_dup3(null, fd, 0);

		if (r < 0)
			return err_sys(e, -r, "dup");
	}
	gid_t gid = b->box->is_root ? 0 : b->box->plan->gid;
	if (caps_drop_all(b->uid, gid, e) < 0 || follow_parent(e) < 0 || seccomp_init(e) < 0)
		return -1;
	int r = os_execveat(b->box->init_exe_fd, "", argv, env, AT_EMPTY_PATH);
	return err_sys(e, -r, "execute caisson-init");
}

/* In the new pid 1: all namespaces are new; the ids are not mapped yet; all capabilities,
 * but only inside our user namespace. The root is still the host's. */
void launch_inside(const struct box *box, int go_fd, int report_fd)
{
	struct build b = { .box = box, .go_fd = go_fd, .scratch_fd = -1, .root_fd = -1 };
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(inside_steps); i++) {
		if (inside_steps[i].run(&b, &e) < 0) {
			err_wrap(&e, "%s", inside_steps[i].name);
			send_report(report_fd, &e);
			_exit(125);
		}
	}
	e.kind = ERR_NONE;
	send_report(report_fd, &e);
	if (become_init(&b, &e) < 0) {
		err_wrap(&e, "start caisson-init");
		send_report(report_fd, &e);
	}
	_exit(125);
}

/* ---- the command ------------------------------------------------------------------- */

struct payload {
	const struct box *box;
	const struct plan *plan;
	struct payload_io io;
	int gifts[GIFT_COUNT]; /* for the monitor */
	char **argv, **env;
};

static int step_inherit(struct payload *p, struct err *e)
{
	const uint64_t *limits = p->plan->limits;
	int r = os_setsid();

	if (r >= 0)
		r = os_new_session_keyring();
	if (r == -ENOSYS || r == -EDQUOT) /* built without keys; or the user's quota of keys is used up */
		r = 0;
	if (r >= 0)
		r = os_reset_signals();
	if (r >= 0)
		r = os_setrlimit(RLIMIT_CORE, 0, 0);
	if (r >= 0 && limits[LIMIT_FILES])
		r = os_setrlimit(RLIMIT_NOFILE, limits[LIMIT_FILES], limits[LIMIT_FILES]);
	/* Counted per user of this namespace, so that the caller's other processes do not matter. */
	if (r >= 0 && limits[LIMIT_PIDS])
		r = os_setrlimit(RLIMIT_NPROC, limits[LIMIT_PIDS], limits[LIMIT_PIDS]);
	umask(022);
	return r < 0 ? err_sys(e, -r, "reset what was inherited") : 0;
}

static int step_cwd(struct payload *p, struct err *e)
{
	const char *cwd = plan_text(p->plan, p->plan->cwd);
	int r = os_chdir(cwd);

	if (r < 0)
		return err_sys(e, -r, "%s", cwd);
	return 0;
}

static int open_pty(struct payload *p, struct err *e)
{
	struct winsize size = { .ws_row = p->plan->rows, .ws_col = p->plan->cols };
	int unlock = 0;
	AUTO(fd_close) int master = os_openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY, 0);

	if (master < 0)
		return err_sys(e, -master, "open /dev/ptmx");
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return err_sys(e, errno, "unlock the terminal");
	AUTO(fd_close) int tty = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (tty < 0 || ioctl(tty, TIOCSCTTY, 0) < 0 || ioctl(tty, TIOCSWINSZ, &size) < 0)
		return err_sys(e, errno, "take the terminal");
	p->io.stdin_fd = p->io.stdout_fd = p->io.stderr_fd = fd_take(&tty);
	p->gifts[GIFT_PTY] = fd_take(&master);
	return 0;
}

/* Standard descriptors at 0, 1, 2, the report at 3, nothing else but the gifts. */
static int step_descriptors(struct payload *p, struct err *e)
{
	if (p->plan->is_tty && open_pty(p, e) < 0)
		return -1;
	int from[] = { p->io.stdin_fd, p->io.stdout_fd, p->io.stderr_fd, p->io.report_fd };

	/* First out of the way of 0..3, so that no copy overwrites a source. */
	for (size_t i = 0; i < COUNT(from); i++) {
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 16);
		if (from[i] < 0)
			return err_sys(e, errno, "dup");
	}
	if (p->gifts[GIFT_PTY] >= 0) {
		p->gifts[GIFT_PTY] = fcntl(p->gifts[GIFT_PTY], F_DUPFD_CLOEXEC, 16);
		if (p->gifts[GIFT_PTY] < 0)
			return err_sys(e, errno, "dup");
	}
	for (int i = 0; i < (int)COUNT(from); i++) {
		int r = os_dup3(from[i], i, i == REPORT_FD ? O_CLOEXEC : 0);

		if (r < 0)
			return err_sys(e, -r, "dup");
	}
	p->io.report_fd = REPORT_FD;
	int keep = p->gifts[GIFT_PTY];
	int r = 0;
	if (keep >= 0)
		r = os_close_range(4, (unsigned int)keep - 1, 0);
	if (r >= 0)
		r = os_close_range(keep >= 0 ? (unsigned int)keep + 1 : 4, ~0u, 0);
	return r < 0 ? err_sys(e, -r, "close what was inherited") : 0;
}

static int step_drop(struct payload *p, struct err *e)
{
	return caps_drop(p->plan, e);
}

static int step_landlock(struct payload *p, struct err *e)
{
	return landlock_enter(p->plan, e);
}

/* The listener goes to the monitor: without it every execve inside fails. */
static int step_filter(struct payload *p, struct err *e)
{
	const char byte = GIFT_BYTE;
	int gifts[GIFT_COUNT];
	size_t n = 0;

	p->gifts[GIFT_LISTENER] = seccomp_payload(e);
	if (p->gifts[GIFT_LISTENER] < 0 && e->kind != ERR_NONE)
		return -1;
	for (size_t i = 0; i < GIFT_COUNT; i++)
		if (p->gifts[i] >= 0)
			gifts[n++] = p->gifts[i];
	int r = os_send(REPORT_FD, &byte, 1, gifts, n);
	for (size_t i = 0; i < GIFT_COUNT; i++)
		fd_close(&p->gifts[i]);
	return r < 0 ? err_sys(e, -r, "hand over the listener") : 0;
}

static int step_proof(struct payload *p, struct err *e)
{
	return proof_run(p->box, e);
}

/* Finds argv[0] in PATH as a shell does; a name with a slash is taken as it is. */
static int find_program(const struct payload *p, char *out, size_t size)
{
	const char *name = p->argv[0];
	const char *path = "";
	bool is_denied = false;

	if (strchr(name, '/'))
		return snprintf(out, size, "%s", name) < (int)size ? 0 : -ENAMETOOLONG;
	for (char **v = p->env; *v; v++)
		if (strncmp(*v, "PATH=", 5) == 0)
			path = *v + 5;
	while (*path && *name) {
		size_t n = strcspn(path, ":");
		struct stat st;

		if ((size_t)snprintf(out, size, "%.*s/%s", (int)n, path, name) < size &&
		    stat(out, &st) == 0 && S_ISREG(st.st_mode)) {
			if (faccessat(AT_FDCWD, out, X_OK, AT_EACCESS) == 0)
				return 0;
			is_denied = true;
		}
		path += n + (path[n] == ':');
	}
	return is_denied ? -EACCES : -ENOENT;
}

static int step_exec(struct payload *p, struct err *e)
{
	char program[PATH_TEXT_MAX];
	int r = find_program(p, program, sizeof program);

	if (r == 0)
		r = os_execveat(AT_FDCWD, program, p->argv, p->env, 0);
	err_sys(e, -r, "%s", p->argv[0]);
	e->kind = r == -ENOENT ? ERR_NOT_FOUND : ERR_DENIED;
	return -1;
}

/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct payload *p, struct err *e);
} payload_steps[] = {
	{ "start clean",                 step_inherit },
	{ "drop privileges",             step_drop },
	{ "set up standard descriptors", step_descriptors },
	{ "go to the working directory", step_cwd },
	{ "enter landlock",              step_landlock },
	{ "load the filter",             step_filter },
	{ "prove the walls",             step_proof },
	{ "execute",                     step_exec },
};
/* clang-format on */

/* In a child of the monitor: inside all namespaces, all capabilities there, ids not mapped. */
void launch_payload(const struct box *box, struct payload_io io)
{
	const struct plan *plan = box->plan;
	struct payload p = { .box = box, .plan = plan, .io = io, .gifts = { -1, -1 } };
	struct err e = { 0 };

	p.argv = mem_alloc((plan->argv.count + 1) * sizeof *p.argv);
	p.env = mem_alloc((plan->env.count + 1) * sizeof *p.env);
	plan_strings(plan, plan->argv, p.argv);
	plan_strings(plan, plan->env, p.env);
	for (size_t i = 0; i < COUNT(payload_steps); i++) {
		if (payload_steps[i].run(&p, &e) < 0) {
			err_wrap(&e, "%s", payload_steps[i].name);
			break;
		}
	}
	send_report(p.io.report_fd, &e);
	_exit(125);
}
