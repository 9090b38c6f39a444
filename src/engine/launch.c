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
#include <sys/personality.h>
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
#include "engine/netns.h"
#include "engine/proof.h"
#include "engine/seccomp.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"
#include "os/sock.h"

int box_namespaces(const struct box *box)
{
	static const struct {
		int flag;
		enum wall wall;
	} all[] = { { CLONE_NEWUSER, WALL_USERNS }, { CLONE_NEWNS, WALL_MOUNTNS },
		    { CLONE_NEWPID, WALL_PIDNS },   { CLONE_NEWIPC, WALL_IPCNS },
		    { CLONE_NEWUTS, WALL_UTSNS },   { CLONE_NEWNET, WALL_NETNS } };
	int flags = 0;

	for (size_t i = 0; i < COUNT(all); i++)
		if (!fault_layer_off(wall_name(all[i].wall)))
			flags |= all[i].flag;
	return box->is_kept ? flags : flags & ~CLONE_NEWNET;
}

/* Of a command's process, besides the standard three. The rest is there for some only. */
enum { REPORT_FD = 3, FIRST_FREE_FD = 4, OWN_FDS_MAX = 8 };

/* ---- pid 1 ------------------------------------------------------------------------- */

/* Dies with the monitor. A change of ids clears it, so it is said again later. */
static int follow_parent(struct err *e)
{
	int r = os_prctl(PR_SET_PDEATHSIG, SIGKILL);

	return r < 0 ? err_sys(e, -r, "follow the monitor") : 0;
}

static int step_follow(struct build *b, struct err *e)
{
	(void)b;
	return follow_parent(e);
}

static int step_bound(struct build *b, struct err *e)
{
	(void)b;
	return caps_bound(0, e);
}

static int step_ids(struct build *b, struct err *e)
{
	char byte;

	if (read(b->io.go_fd, &byte, 1) != 1)
		return err_new(e, ERR_INTERNAL, "the monitor is gone");
	os_cpus_take(&b->box->cpus);
	b->uid = b->box->is_root ? 0 : b->box->plan->uid;
	b->gid = b->box->is_root ? 0 : b->box->plan->gid;
	/* Overlay asks for the rights of the mounter's ids, which are unmapped until now. */
	int r = os_set_ids_but_saved(b->uid, b->gid); /* join_groups() needs it */
	if (r >= 0)
		r = os_setsid(); /* not a process of the caller's terminal */
	if (r >= 0) /* the change of ids closed us to the command's process, which enters by us */
		r = os_prctl(PR_SET_DUMPABLE, 1);
	if (r >= 0)
		r = os_write_all(b->io.walls_fd, "i", 1); /* it may come now */
	if (r < 0)
		return err_sys(e, -r, "become root inside");
	umask(0);
	return follow_parent(e);
}

static int step_name(struct build *b, struct err *e)
{
	int r = os_set_hostname("caisson");

	(void)b;
	return r < 0 ? err_sys(e, -r, "sethostname") : 0;
}

/* Of a kept sandbox: for all its commands. */
static int step_rules(struct build *b, struct err *e)
{
	static const char letter = GIFT_RULES;

	if (!b->box->is_kept)
		return 0;
	AUTO(fd_close) int rules = landlock_rules(b->box->plan, e);
	if (rules < 0)
		return e->kind == ERR_NONE ? 0 : -1;
	int r = os_send(b->io.report_fd, &letter, 1, &rules, 1);
	return r < 0 ? err_sys(e, -r, "hand them over") : 0;
}

/* Only lo, and no route but to it. */
static int raise_network(const struct build *b, struct err *e)
{
	if (fault_layer_off("netns"))
		return 0;
	if (b->box->plan->has_net)
		return netns_route(e);
	int r = os_loopback_up();
	return r < 0 ? err_sys(e, -r, "raise lo") : 0;
}

/* While the first command, which has its root now, goes on. */
static int step_network(struct build *b, struct err *e)
{
	static const char letter = GIFT_NET;
	int fds[NET_SOCKETS];

	if (!b->box->plan->has_net || fault_layer_off("netns"))
		return 0;
	if (netns_wall(fds, e) < 0)
		return -1;
	int r = os_send(b->io.report_fd, &letter, 1, fds, NET_SOCKETS);
	netns_close(fds);
	return r < 0 ? err_sys(e, -r, "hand the sockets over") : 0;
}

static int step_proof_of_tree(struct build *b, struct err *e)
{
	return proof_tree(b, &b->proved, e);
}

/* When the command starts, pid 1 has no right either. What it still does needs none. */
static int step_proof_of_group(struct build *b, struct err *e)
{
	return proof_cgroup(b->box, WALL_INIT_CGROUP, &b->proved, e);
}

static int step_drop_all(struct build *b, struct err *e)
{
	return caps_drop_all(b->uid, b->gid, e);
}

/* What the first process says when it has entered, with descriptors: the tasks of pid 1's groups,
 * and before them the network namespace, if it made that. */
#define ENTERED 'e'
#define ENTERED_WITH_NET 'n'
#define ENTERED_FDS (1 + CGROUP_KEYS_MAX)

static int step_await_first(struct build *b, struct err *e)
{
	int fds[ENTERED_FDS];
	size_t n_fds = COUNT(fds);
	char byte;

	if (os_recv(b->io.entered_fd, &byte, 1, fds, &n_fds) != 1)
		return err_sys(e, EPIPE, "the first process is gone"); /* it says why */
	size_t n_net = byte == ENTERED_WITH_NET && n_fds > 0;
	int r = n_net ? os_setns(fds[0], CLONE_NEWNET) : 0;
	int joined = fault_layer_off(wall_name(WALL_INIT_CGROUP))
	                 ? 0
	                 : cgroup_join_lent(fds + n_net, n_fds - n_net);
	for (size_t i = 0; i < n_fds; i++)
		fd_close(&fds[i]);
	if (r < 0)
		return err_sys(e, -r, "enter the network");
	if (joined < 0)
		return err_sys(e, -joined, "enter the cgroup");
	if (raise_network(b, e) < 0)
		return -1;
	/* It has entered by us, which takes the right to look at us. Nobody else shall have it. */
	r = os_prctl(PR_SET_DUMPABLE, 0);
	return r < 0 ? err_sys(e, -r, "close ourselves") : 0;
}

/* The first command goes on in it while the kernel takes the old one away. */
static int step_show_root(struct build *b, struct err *e)
{
	int r = os_write_all(b->io.walls_fd, "r", 1);

	return r < 0 ? err_sys(e, -r, "tell the command") : 0;
}

/* The order is the design. The first three need no ids: the monitor writes the maps meanwhile. */
/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct build *b, struct err *e);
} inside_steps[] = {
	{ "follow the monitor",           step_follow },
	{ "set the host name",            step_name },
	{ "bound the rights",             step_bound },
	{ "take the ids",                 step_ids },
	{ "mount the scratch",            root_scratch },
	{ "take the skeleton",            root_skeleton },
	{ "lay the image",                root_image },
	{ "show the system folders",      root_system },
	{ "take the devices",             dev_take_nodes },
	{ "mount proc",                   procfs_make },
	{ "make sys",                     sysfs_make },
	{ "make dev",                     dev_make },
	{ "make the common folders",      root_folders },
	{ "say who knows names",          root_resolver },
	{ "mount the fs entries",         root_mounts },
	{ "open the door",                root_door },
	{ "make room for a certificate",  root_trust },
	{ "bound the watches",            nesting_bound_watches },
	{ "forbid nested namespaces",     nesting_forbid },
	{ "await the first process",      step_await_first },
	{ "prove the walls",              step_proof_of_group }, /* the host's /proc is still there */
	{ "forbid the other namespaces",  nesting_forbid_others },
	{ "switch the root",              root_pivot },
	{ "show the root",                step_show_root },
	{ "close the network",            step_network },
	{ "leave the host's root",        root_leave },
	{ "make the landlock rules",      step_rules },
	{ "prove the walls",              step_proof_of_tree },
	{ "drop all rights",              step_drop_all },
};
/* clang-format on */

const char *launch_inside_name(int step)
{
	return step < 0 || step >= (int)COUNT(inside_steps) ? "" : inside_steps[step].name;
}

/* When it cannot be sent the closed socket has to be the report. */
static void send_report(int fd, const struct err *e)
{
	if (os_send(fd, e, sizeof *e, NULL, 0) < 0)
		_exit(125);
}

/* In pid 1, walls finished: no rights, no descriptors, a filter of its own, then caisson-init. The
 * monitor says when: not while the first command is waited for. */
static int become_init(const struct build *b, struct err *e)
{
	char name[] = "caisson-init", byte;
	char *const argv[] = { name, NULL };
	char *const env[] = { NULL };

	if (read(b->io.go_fd, &byte, 1) != 1)
		_exit(0); /* the monitor has no use for us */
	AUTO(fd_close) int null = os_openat(AT_FDCWD, "/dev/null", O_RDWR, 0);

	if (null < 0)
		return err_sys(e, -null, "open /dev/null");
	for (int fd = 0; fd < 3; fd++) {
		int r = os_dup3(null, fd, 0);

		if (r < 0)
			return err_sys(e, -r, "dup");
	}
	if (follow_parent(e) < 0)
		return -1;
	/* The monitor may have died before that. */
	struct pollfd monitor = { .fd = b->io.report_fd };
	if (poll(&monitor, 1, 0) != 0)
		_exit(0);
	if (seccomp_init(e) < 0)
		return -1;
	int r = os_execveat(b->box->init_exe_fd, "", argv, env, AT_EMPTY_PATH);
	return err_sys(e, -r, "execute caisson-init");
}

/* In the new pid 1: all namespaces are new; the ids are not mapped yet; all capabilities,
 * but only inside our user namespace. The root is still the host's. */
void launch_inside(const struct box *box, struct inside_io io)
{
	struct build b = { .box = box,
		           .io = io,
		           .skeleton_fd = -1,
		           .layer_fd = -1,
		           .empty_fd = -1,
		           .nodes_fd = -1,
		           .scratch_fd = -1,
		           .root_fd = -1 };
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(inside_steps); i++) {
		io.progress->inside = (int)i;
		if (inside_steps[i].run(&b, &e) < 0) {
			err_wrap(&e, "%s", inside_steps[i].name);
			send_report(io.report_fd, &e);
			_exit(125);
		}
	}
	static const char letter = GIFT_SCRATCH;
	const struct proof_word word = { .proved = b.proved };
	int r = os_write_all(io.walls_fd, "w", 1);
	if (r >= 0)
		r = os_send(io.report_fd, &letter, 1, &b.scratch_fd, 1);
	if (r >= 0)
		r = os_send(io.report_fd, &word, sizeof word, NULL, 0);
	if (r < 0)
		err_sys(&e, -r, "tell that they stand");
	send_report(io.report_fd, r < 0 ? &e : &(struct err){ .kind = ERR_NONE });
	if (r < 0)
		_exit(125);
	if (become_init(&b, &e) < 0) {
		err_wrap(&e, "start caisson-init");
		send_report(io.report_fd, &e);
	}
	_exit(125);
}

/* ---- the command ------------------------------------------------------------------- */

struct payload {
	const struct box *box;
	const struct plan *plan;
	const struct command *command;
	struct payload_io io;
	int n_fds;       /* open ones, from 0 on */
	uint32_t proved; /* walls: engine/proof.h */
	char **argv, **env;
};

/* While still the id that the group was handed to. */
static int step_cgroup(struct payload *p, struct err *e)
{
	const struct cgroup *cg = &p->box->cgroup;
	int r = p->io.is_to_move ? cgroup_move(cg, &p->io.leaf) : 0;

	return r < 0 ? err_sys(e, -r, "move") : cgroup_join(cg, &p->io.leaf, e);
}

/* The process sees the host's /proc only now, and nobody moves it later. */
static int step_proof_of_cgroup(struct payload *p, struct err *e)
{
	return proof_cgroup(p->box, WALL_CGROUP, &p->proved, e);
}

static bool is_first(const struct payload *p)
{
	return p->io.cgroup_ns_fd < 0;
}

static int tell_entered(struct payload *p, int net_fd, struct err *e)
{
	int fds[ENTERED_FDS] = { net_fd };
	size_t n_net = net_fd >= 0;
	const char word = n_net ? ENTERED_WITH_NET : ENTERED;

	if (p->io.entered_fd < 0)
		return 0;
	size_t n = n_net + cgroup_lend(&p->box->cgroup, fds + n_net, COUNT(fds) - n_net);
	int r = os_send(p->io.entered_fd, &word, 1, fds, n);
	return r < 0 ? err_sys(e, -r, "tell pid 1") : 0;
}

/* Of the one command, which has the time for it: all wait for pid 1. The first process to live in
 * the cgroup makes that namespace, which is rooted there. */
static int make_namespaces(struct payload *p, int *net_fd, struct err *e)
{
	int net = fault_layer_off("netns") ? 0 : CLONE_NEWNET;
	int cgroup = fault_layer_off("cgroupns") ? 0 : CLONE_NEWCGROUP;
	int r = p->io.is_in_userns ? 0 : os_setns(p->io.init_pidfd, CLONE_NEWUSER);

	if (r < 0)
		return err_sys(e, -r, "setns");
	p->io.is_in_userns = true;
	r = os_unshare(cgroup | net);
	if (r < 0)
		return err_sys(e, -r, "make those of the cgroup and the network");
	if (!net)
		return 0;
	*net_fd = os_openat(AT_FDCWD, "/proc/self/ns/net", O_RDONLY, 0);
	return *net_fd < 0 ? err_sys(e, -*net_fd, "open the network namespace") : 0;
}

/* The mount namespace before pid 1 changes the root, or after: never while it does. */
static int step_namespaces(struct payload *p, struct err *e)
{
	AUTO(fd_close) int net_fd = -1;
	char byte;

	if (p->io.is_nursed) { /* all others are entered already */
		int entered = os_setns(p->io.cgroup_ns_fd, CLONE_NEWCGROUP);

		return entered < 0 ? err_sys(e, -entered, "setns") : 0;
	}
	/* Pid 1 says when it has its ids; a helper has heard it already. */
	if (!p->io.is_in_userns && p->io.walls_fd >= 0 && read(p->io.walls_fd, &byte, 1) != 1)
		_exit(125); /* it has said why */

	if (is_first(p) && make_namespaces(p, &net_fd, e) < 0)
		return -1;
	int known = CLONE_NEWPID | (p->io.is_in_userns ? CLONE_NEWUSER : 0);
	int r = os_setns(p->io.init_pidfd, box_namespaces(p->box) & ~known);
	if (r >= 0 && !is_first(p))
		r = os_setns(p->io.cgroup_ns_fd, CLONE_NEWCGROUP);
	return r < 0 ? err_sys(e, -r, "setns") : tell_entered(p, net_fd, e);
}

static int step_inherit(struct payload *p, struct err *e)
{
	int r = os_setsid();

	(void)p;
	if (r >= 0)
		r = os_reset_signals();
	if (r >= 0)
		r = os_reset_limits();
	if (r >= 0) /* 1 and not 0: with 0 a core_pattern that is a program is still run, core(5) */
		r = os_setrlimit(RLIMIT_CORE, 1, 1);
	umask(022);
	(void)personality(PER_LINUX); /* cannot fail */
	return r < 0 ? err_sys(e, -r, "reset what was inherited") : 0;
}

/* Standard descriptors at 0, 1, 2, the report at 3, then those that there are; nothing else. */
static int step_descriptors(struct payload *p, struct err *e)
{
	int *later[] = { &p->io.walls_fd, &p->io.extra_fd, &p->io.program_fd, &p->io.rules_fd };
	int from[OWN_FDS_MAX] = { p->io.stdin_fd, p->io.stdout_fd, p->io.stderr_fd,
		                  p->io.report_fd };
	int n = FIRST_FREE_FD;

	if (p->command->is_tty) /* until the terminal is there */
		from[1] = from[2] = from[0];
	for (size_t i = 0; i < COUNT(later); i++)
		if (*later[i] >= 0) {
			from[n] = *later[i];
			*later[i] = n++;
		}
	/* First out of the way, so that no copy overwrites a source. */
	for (int i = 0; i < n; i++) {
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, OWN_FDS_MAX);
		if (from[i] < 0)
			return err_sys(e, errno, "dup");
	}
	p->io.report_fd = from[REPORT_FD]; /* its old number may be taken now */
	for (int i = 0; i < n; i++) {
		int r = os_dup3(from[i], i, i >= REPORT_FD ? O_CLOEXEC : 0);

		if (r < 0)
			return err_sys(e, -r, "dup");
	}
	p->io.report_fd = REPORT_FD;
	p->n_fds = n;
	int r = fault_layer_off("descriptors") ? 0 : os_close_range((unsigned int)n, ~0u, 0);
	uint64_t files = p->plan->limits[LIMIT_FILES];
	if (r >= 0 && files && !fault_layer_off("rlimits"))
		r = os_setrlimit(RLIMIT_NOFILE, files, files);
	return r < 0 ? err_sys(e, -r, "close what was inherited") : 0;
}

static int step_drop(struct payload *p, struct err *e)
{
	return caps_drop(p->plan, p->command, e);
}

#define PIDS_OF_OURS 16 /* pid 1, workers: rootless they are the same user */

uint64_t box_processes(const struct box *box)
{
	uint64_t limit = box->plan->limits[LIMIT_PIDS];

	return limit ? limit + (cgroup_has(&box->cgroup, CG_PIDS) ? PIDS_OF_OURS : 0) : 0;
}

/* Counted per user of this namespace: others do not matter. Where a cgroup counts too, it shall be
 * the first to say no: it keeps a record of that. Said after the change of ids, which else makes
 * execve fail where the user has used up his processes (execve(2)): a sandbox that is full can
 * still be looked at and cleaned up. Only what the command itself starts is refused then. */
static int step_count(struct payload *p, struct err *e)
{
	uint64_t pids = box_processes(p->box);
	int r = pids && !fault_layer_off("rlimits") ? os_setrlimit(RLIMIT_NPROC, pids, pids) : 0;

	return r < 0 ? err_sys(e, -r, "setrlimit") : 0;
}

static int give(char letter, int fd, struct err *e)
{
	int r = os_send(REPORT_FD, &letter, 1, &fd, fd < 0 ? 0 : 1);

	return r < 0 ? err_sys(e, -r, "hand over a descriptor") : 0;
}

/* The listener goes to the monitor: without it every execve inside fails. */
static int step_filter(struct payload *p, struct err *e)
{
	if (p->io.is_nursed)
		return 0;
	AUTO(fd_close) int listener = seccomp_payload(e);

	if (listener < 0 && e->kind != ERR_NONE)
		return -1;
	if (fault_layer_off("seccomp"))
		return give(GIFT_BARE, -1, e);
	return give(listener < 0 ? GIFT_NONE : GIFT_LISTENER, listener, e);
}

static int step_await_root(struct payload *p, struct err *e)
{
	char byte;

	(void)e;
	if (p->io.walls_fd >= 0 && read(p->io.walls_fd, &byte, 1) != 1)
		_exit(125); /* pid 1 has said why */
	return 0;
}

static int step_await_walls(struct payload *p, struct err *e)
{
	if (p->io.walls_fd < 0)
		return 0;
	(void)step_await_root(p, e); /* the next byte */
	fd_close(&p->io.walls_fd);   /* the last of them: a worker never comes first */
	p->n_fds--;
	return 0;
}

/* Not before the host's root is gone: it lies on top of ours until then, and a path that goes up
 * from the root (..) is led onto it. */
static int step_cwd(struct payload *p, struct err *e)
{
	const char *cwd = p->command->text;
	int r = os_chdir(cwd);

	return r < 0 ? err_sys(e, -r, "%s", cwd) : 0;
}

/* The terminal is one of the sandbox's own devpts; the host's is never passed in. */
static int step_terminal(struct payload *p, struct err *e)
{
	struct winsize size = { .ws_row = p->command->rows, .ws_col = p->command->cols };
	int unlock = 0;

	if (!p->command->is_tty)
		return 0;
	AUTO(fd_close) int master = os_openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY, 0);
	if (master < 0)
		return err_sys(e, -master, "open /dev/ptmx");
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return err_sys(e, errno, "unlock");
	AUTO(fd_close) int tty = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (tty < 0 || ioctl(tty, TIOCSCTTY, 0) < 0 || ioctl(tty, TIOCSWINSZ, &size) < 0)
		return err_sys(e, errno, "take it");
	for (int fd = 0; fd < 3; fd++) {
		int r = os_dup3(tty, fd, 0);

		if (r < 0)
			return err_sys(e, -r, "dup");
	}
	return give(GIFT_PTY, master, e);
}

static int step_landlock(struct payload *p, struct err *e)
{
	const struct landlock_fds fds = { p->io.rules_fd, p->io.program_fd };
	int r = landlock_enter(p->plan, p->command, fds, e);

	if (p->io.rules_fd >= 0)
		p->n_fds--; /* it is the last of them */
	fd_close(&p->io.rules_fd);
	return r;
}

static int step_proof(struct payload *p, struct err *e)
{
	const struct proof_at at = { p->box, p->command, p->n_fds };

	if (proof_run(&at, &p->proved, e) < 0)
		return -1;
	/* What the monitor knows, or nobody will ask for, does not wake it. */
	if (p->proved == p->io.known || !(p->box->is_kept || p->command->wants_usage))
		return 0;
	const struct proof_word word = { .proved = p->proved };
	int r = os_send(REPORT_FD, &word, sizeof word, NULL, 0);
	return r < 0 ? err_sys(e, -r, "tell the monitor") : 0;
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

/* A worker's socket takes the place of the report, which moves up. */
static int exec_worker(struct payload *p)
{
	int report = fcntl(REPORT_FD, F_DUPFD_CLOEXEC, OWN_FDS_MAX);

	if (report < 0)
		return -errno;
	p->io.report_fd = report;
	int r = os_dup3(p->io.extra_fd, REPORT_FD, 0);
	return r < 0 ? r : os_execveat(p->io.program_fd, "", p->argv, p->env, AT_EMPTY_PATH);
}

static int step_exec(struct payload *p, struct err *e)
{
	char program[PATH_TEXT_MAX];
	int r = p->io.program_fd >= 0 ? exec_worker(p) : find_program(p, program, sizeof program);

	if (r == 0 && p->io.extra_fd >= 0) /* of a shell; all others are closed by the execve */
		r = os_dup3(p->io.extra_fd, SHELL_FD, 0);
	if (r >= 0)
		r = os_execveat(AT_FDCWD, program, p->argv, p->env, 0);
	err_sys(e, -r, "%s", p->argv[0]);
	e->kind = r == -ENOENT ? ERR_NOT_FOUND : ERR_DENIED;
	return -1;
}

/* The first half runs while pid 1 builds the walls. */
/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct payload *p, struct err *e);
} payload_steps[] = {
	{ "enter the cgroup",            step_cgroup },
	{ "prove the walls",             step_proof_of_cgroup },
	{ "enter the namespaces",        step_namespaces },
	{ "start clean",                 step_inherit },
	{ "set up standard descriptors", step_descriptors },
	{ "drop privileges",             step_drop },
	{ "limit its processes",         step_count },
	{ "load the filter",             step_filter },
	{ "await the root",              step_await_root },
	{ "open the terminal",           step_terminal },
	{ "enter landlock",              step_landlock },
	{ "await the walls",             step_await_walls },
	{ "go to the working directory", step_cwd },
	{ "prove the walls",             step_proof },
	{ "execute",                     step_exec },
};
/* clang-format on */

const char *launch_payload_name(int step)
{
	return step < 0 || step >= (int)COUNT(payload_steps) ? "" : payload_steps[step].name;
}

/* In a child of the monitor: the pid namespace, and with a helper the user namespace; ids still the
 * monitor's. */
void launch_payload(const struct box *box, const struct command *c, struct payload_io io)
{
	struct payload p = { .box = box, .plan = box->plan, .command = c, .io = io };
	struct err e = { 0 };

	p.argv = mem_alloc((c->argc + 1) * sizeof *p.argv);
	p.env = mem_alloc((c->envc + 1) * sizeof *p.env);
	command_strings(c, p.argv, p.env);
	for (size_t i = 0; i < COUNT(payload_steps); i++) {
		io.progress->payload = (int)i;
		if (payload_steps[i].run(&p, &e) < 0) {
			err_wrap(&e, "%s", payload_steps[i].name);
			break;
		}
	}
	send_report(p.io.report_fd, &e);
	_exit(125);
}

/* ---- the keeper -------------------------------------------------------------------- */

/* Only the user namespace: that is enough to make another one in. */
static int step_keeper_namespaces(struct payload *p, struct err *e)
{
	char byte;

	if (read(p->io.walls_fd, &byte, 1) != 1)
		_exit(125); /* pid 1 has said why */
	int r = os_setns(p->io.init_pidfd, CLONE_NEWUSER);
	if (r >= 0)
		r = os_unshare(fault_layer_off("cgroupns") ? 0 : CLONE_NEWCGROUP);
	return r < 0 ? err_sys(e, -r, "setns") : tell_entered(p, -1, e);
}

static int step_give_namespace(struct payload *p, struct err *e)
{
	static const char letter = GIFT_CGROUP;
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, "/proc/self/ns/cgroup", O_RDONLY, 0);
	int r = fd < 0 ? fd : os_send(p->io.report_fd, &letter, 1, &fd, 1);

	return r < 0 ? err_sys(e, -r, "hand it over") : 0;
}

/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct payload *p, struct err *e);
} keeper_steps[] = {
	{ "enter the cgroup",            step_cgroup },
	{ "make the cgroup namespace",   step_keeper_namespaces },
	{ "keep the cgroup namespace",   step_give_namespace },
};
/* clang-format on */

/* In a child of the monitor, with its ids and the host's root, until it ends. */
void launch_keeper(const struct box *box, struct payload_io io)
{
	struct payload p = { .box = box, .plan = box->plan, .io = io };
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(keeper_steps); i++) {
		if (keeper_steps[i].run(&p, &e) < 0) {
			err_wrap(&e, "%s", keeper_steps[i].name);
			send_report(io.report_fd, &e);
			_exit(125);
		}
	}
	_exit(0);
}
