#include "engine/proof.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/box.h"
#include "engine/caps.h"
#include "engine/proof-internal.h"
#include "os/caps.h"
#include "os/fault.h"

/* clang-format off */
static const char *const names[] = {
	[WALL_USERNS] = "userns",       [WALL_MOUNTNS] = "mountns",       [WALL_PIDNS] = "pidns",
	[WALL_NETNS] = "netns",         [WALL_IPCNS] = "ipcns",           [WALL_UTSNS] = "utsns",
	[WALL_CGROUPNS] = "cgroupns",   [WALL_ROOT] = "root",             [WALL_READ_ONLY] = "readonly",
	[WALL_NODEV] = "nodev",         [WALL_DISK] = "disk",             [WALL_PROC_READ_ONLY] = "procro",
	[WALL_MASKS] = "masks",         [WALL_HIDEPID] = "hidepid",       [WALL_NESTED] = "nested",
	[WALL_NETWALLS] = "netwalls",   [WALL_CGROUP] = "cgroup",         [WALL_LIMITS] = "limits",
	[WALL_INIT_CGROUP] = "initcgroup",
	[WALL_IDS] = "ids",             [WALL_CAPS] = "caps",             [WALL_SECUREBITS] = "securebits",
	[WALL_NO_NEW_PRIVS] = "nnp",    [WALL_RLIMITS] = "rlimits",       [WALL_DESCRIPTORS] = "descriptors",
	[WALL_SECCOMP] = "seccomp",     [WALL_NOTIFY] = "notify",         [WALL_LANDLOCK] = "landlock",
};
/* clang-format on */
_Static_assert(COUNT(names) == WALL_COUNT, "a wall has no name");

const char *wall_name(enum wall w)
{
	return names[w];
}

/* Something worked (0), or failed in another way than the wall makes it fail. */
static int surprise(struct err *e, int got, const char *text)
{
	return got ? err_sys(e, got, "%s", text) : err_new(e, ERR_INTERNAL, "%s", text);
}

/* ---- namespaces and root ----------------------------------------------------------- */

static const char *const namespaces[] = { "/proc/self/ns/user",  "/proc/self/ns/mnt",
	                                  "/proc/self/ns/pid",   "/proc/self/ns/net",
	                                  "/proc/self/ns/ipc",   "/proc/self/ns/uts",
	                                  "/proc/self/ns/cgroup" };
_Static_assert(COUNT(namespaces) == PROOF_NAMESPACES && WALL_CGROUPNS == PROOF_NAMESPACES - 1,
               "the first walls are the namespaces");

int proof_look_at_host(struct proof_host *out, struct err *e)
{
	struct stat st;

	if (stat("/", &st) < 0)
		return err_sys(e, errno, "stat /");
	*out = (struct proof_host){ .root_dev = st.st_dev, .root_ino = st.st_ino };
	for (size_t i = 0; i < COUNT(namespaces); i++) {
		if (stat(namespaces[i], &st) < 0)
			return err_sys(e, errno, "stat %s", namespaces[i]);
		out->namespaces[i] = st.st_ino;
	}
	return 0;
}

int proof_namespaces(const struct proof_host *host, uint32_t *proved, struct err *e)
{
	struct stat st;

	for (enum wall w = WALL_USERNS; w < PROOF_NAMESPACES; w++) {
		if (stat(namespaces[w], &st) < 0)
			return err_sys(e, errno, "%s: stat %s", names[w], namespaces[w]);
		if (st.st_ino == host->namespaces[w])
			return err_new(e, ERR_INTERNAL, "%s: it is the launcher's", names[w]);
		*proved |= WALL_BIT(w);
	}
	return 0;
}

/* A mount left on top of the new root would be found by everybody who enters later; and a root
 * that is not read-only has to be a private one. */
int proof_root(const struct proof_host *host, struct err *e)
{
	struct stat st;
	struct statfs fs;

	if (stat("/", &st) < 0 || statfs("/", &fs) < 0)
		return err_sys(e, errno, "look at it");
	if (st.st_dev == host->root_dev && st.st_ino == host->root_ino)
		return err_new(e, ERR_INTERNAL, "it is the host's");
	if (!(fs.f_flags & ST_RDONLY) && fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return err_new(e, ERR_INTERNAL, "it is not a private one");
	return 0;
}

static int look_at_root(const struct proof_at *at, struct err *e)
{
	return proof_root(&at->box->host, e);
}

/* The kernel's own words: it names a folder that the root does not lead to, but not as a path. */
static int look_at_cwd(const struct proof_at *at, struct err *e)
{
	char cwd[PATH_MAX] = "";
	long n = syscall(SYS_getcwd, cwd, sizeof cwd);

	(void)at;
	if (n < 0 && errno != ENAMETOOLONG && errno != ERANGE)
		return err_sys(e, errno, "look at the working directory");
	if (n > 0 && cwd[0] != '/')
		return err_new(e, ERR_INTERNAL, "the working directory is outside of it");
	return 0;
}

#define INIT_TRIES 100 /* of a millisecond */

/* Pid 1 is closed to everybody inside, so that this user is not even told that it is there. While
 * it executes caisson-init the kernel opens it, until the first instruction of that closes it
 * again: Landlock keeps it from being traced meanwhile, and the proof waits. */
static int look_for_init(const struct proof_at *at, struct err *e)
{
	struct stat st;

	(void)at;
	for (int i = 0; i < INIT_TRIES; i++) {
		if (stat("/proc/1", &st) < 0)
			return 0;
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return err_new(e, ERR_INTERNAL, "pid 1 is to be seen");
}

/* ---- identity ---------------------------------------------------------------------- */

static int look_at_ids(const struct proof_at *at, struct err *e)
{
	const struct command *c = at->command;
	uid_t r, u, s;
	gid_t rg, g, sg;

	if (getresuid(&r, &u, &s) < 0 || getresgid(&rg, &g, &sg) < 0 || r != c->uid ||
	    u != c->uid || s != c->uid || rg != c->gid || g != c->gid || sg != c->gid)
		return err_new(e, ERR_INTERNAL, "user or group is not what was asked for");
	return 0;
}

/* The ambient set is empty where the inheritable one is, capabilities(7). */
static int look_at_caps(const struct proof_at *at, struct err *e)
{
	const uint64_t kept = caps_kept(at->box->plan, at->command);
	uint64_t eff, perm, inh;

	if (os_caps_get(&eff, &perm, &inh) < 0 || (eff | perm) & ~kept || inh)
		return err_new(e, ERR_INTERNAL, "capabilities are left");
	for (unsigned int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(kept & CAP_BIT(cap)) && os_caps_bounded(cap))
			return err_new(e, ERR_INTERNAL, "capability %u is left in the bounding set",
			               cap);
	return 0;
}

static int look_at_securebits(const struct proof_at *at, struct err *e)
{
	const uint64_t kept = caps_kept(at->box->plan, at->command);

	if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != (int)caps_securebits(kept))
		return err_new(e, ERR_INTERNAL, "they are not locked");
	return 0;
}

static int look_at_no_new_privs(const struct proof_at *at, struct err *e)
{
	(void)at;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return err_new(e, ERR_INTERNAL, "no_new_privs is not set");
	return 0;
}

/* ---- what is inherited ------------------------------------------------------------- */

static int look_at_rlimits(const struct proof_at *at, struct err *e)
{
	const struct {
		int resource;
		uint64_t max; /* 0: none */
		const char *name;
	} wanted[] = {
		{ RLIMIT_CORE, 1, "core" },
		{ RLIMIT_NOFILE, at->box->plan->limits[LIMIT_FILES], "files" },
		{ RLIMIT_NPROC, box_processes(at->box), "processes" },
	};

	for (size_t i = 0; i < COUNT(wanted); i++) {
		struct rlimit has;

		if (wanted[i].max == 0)
			continue;
		if (getrlimit(wanted[i].resource, &has) < 0 || has.rlim_max > wanted[i].max)
			return err_new(e, ERR_INTERNAL, "the limit of %s is not set",
			               wanted[i].name);
	}
	return 0;
}

/* Every number that is open, but for that of the list itself. */
static int look_at_descriptors(const struct proof_at *at, struct err *e)
{
	AUTO(fd_close) int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct dirent64) char list[1024];
	long n;

	if (dir < 0)
		return err_sys(e, errno, "open /proc/self/fd");
	while ((n = syscall(SYS_getdents64, dir, list, sizeof list)) > 0)
		for (long i = 0; i < n;) {
			const struct dirent64 *d = (const void *)(list + i);
			long fd = strtol(d->d_name, NULL, 10);

			if (d->d_name[0] != '.' && fd >= at->n_fds && fd != dir)
				return err_new(e, ERR_INTERNAL, "descriptor %ld is open", fd);
			i += d->d_reclen;
		}
	return n < 0 ? err_sys(e, errno, "read /proc/self/fd") : 0;
}

/* ---- system calls ------------------------------------------------------------------ */

static long ask_mount(void)
{
	return syscall(SYS_mount, NULL, "/", (const char *)-1, 0, NULL);
}

static long ask_setns(void)
{
	return syscall(SYS_setns, -1, 0);
}

static long ask_keyctl(void)
{
	return syscall(SYS_keyctl, -1, 0, 0, 0, 0);
}

static long ask_perf(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, 0, -1, ~0ul);
}

static long ask_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0);
}

static long ask_packet_socket(void)
{
	long fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	return fd < 0 ? fd : close((int)fd);
}

static long ask_terminal(void)
{
	return ioctl(-1, TIOCSTI, NULL);
}

/* Arguments that the kernel refuses before it asks who calls, and with another errno than the
 * filter: so the answer tells which of the two has spoken. */
/* clang-format off */
static const struct {
	const char *name;
	long (*ask)(void);
	int filters, kernels;
} asks[] = {
	{ "mount",                   ask_mount,         EPERM,        EFAULT },
	{ "enter a namespace",       ask_setns,         EPERM,        EBADF },
	{ "use a keyring",           ask_keyctl,        EPERM,        EOPNOTSUPP },
	{ "open a performance event", ask_perf,         EPERM,        EINVAL },
	{ "clone by pointer",        ask_clone3,        ENOSYS,       EINVAL },
	{ "open a packet socket",    ask_packet_socket, EAFNOSUPPORT, EPERM },
	{ "type into a terminal",    ask_terminal,      EPERM,        EBADF },
};
/* clang-format on */

static int look_at_calls(const struct proof_at *at, struct err *e)
{
	(void)at;
	for (size_t i = 0; i < COUNT(asks); i++) {
		int got = asks[i].ask() < 0 ? errno : 0;

		if (got != asks[i].filters) {
			surprise(e, got,
			         got == asks[i].kernels ? "the kernel answers, not the filter"
			                                : "an unexpected answer");
			return err_wrap(e, "%s", asks[i].name);
		}
	}
	return 0;
}

/* ---- the network ------------------------------------------------------------------- */

/* An address kept for documentation; with no route the kernel answers at once. */
static const struct sockaddr_in nowhere = { .sin_family = AF_INET,
	                                    .sin_port = 9u << 8, /* discard */
	                                    .sin_addr.s_addr = 0x010200c0 };

static int look_for_route(const struct proof_at *at, struct err *e)
{
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)at;
	int r = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&nowhere, sizeof nowhere);
	if (r < 0 && errno == ENETUNREACH)
		return 0;
	return surprise(e, r < 0 ? errno : 0, "there is a way out");
}

/* With the gate there is a route, and a rule. */
static int look_past_gate(const struct proof_at *at, struct err *e)
{
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)at;
	long r =
	    fd < 0 ? -1 : sendto(fd, "", 1, 0, (const struct sockaddr *)&nowhere, sizeof nowhere);
	if (r < 0 && errno == EPERM)
		return 0;
	return surprise(e, r < 0 ? errno : 0, "a packet passes by the gate");
}

/* ---- files ------------------------------------------------------------------------- */

/* Our own program lies outside of the root, and this link of the kernel leads there all the same.
 * Everybody may read it: only Landlock, whose rules begin at the root, says no. */
static int look_outside(const struct proof_at *at, struct err *e)
{
	static const char self[] = "/proc/self/exe";
	struct stat st;

	(void)at;
	if (stat(self, &st) < 0)
		return err_sys(e, errno, "stat %s", self);
	if (!(st.st_mode & S_IROTH))
		return err_new(e, ERR_INTERNAL,
		               "cannot be tried: caisson-launcher is not readable by all; "
		               "chmod 755 it");
	AUTO(fd_close) int fd = open(self, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		return 0;
	return surprise(e, fd < 0 ? errno : 0, "a file outside of the root can be opened");
}

/* ---- the table --------------------------------------------------------------------- */

/* The wall of each check, and when it is there. The namespaces come before all of these: a check
 * that sends a packet must not do so in the host's network. */
/* clang-format off */
const struct proof_check proof_checks[] = {
	{ WALL_ROOT,         PROOF_ALWAYS,      look_at_root },
	{ WALL_ROOT,         PROOF_ALWAYS,      look_at_cwd },
	{ WALL_HIDEPID,      PROOF_ALWAYS,      look_for_init },
	{ WALL_IDS,          PROOF_ALWAYS,      look_at_ids },
	{ WALL_CAPS,         PROOF_ALWAYS,      look_at_caps },
	{ WALL_SECUREBITS,   PROOF_ALWAYS,      look_at_securebits },
	{ WALL_NO_NEW_PRIVS, PROOF_ALWAYS,      look_at_no_new_privs },
	{ WALL_RLIMITS,      PROOF_ALWAYS,      look_at_rlimits },
	{ WALL_DESCRIPTORS,  PROOF_ALWAYS,      look_at_descriptors },
	{ WALL_SECCOMP,      PROOF_ALWAYS,      look_at_calls },
	{ WALL_NETNS,        PROOF_WITHOUT_NET, look_for_route },
	{ WALL_NETWALLS,     PROOF_WITH_NET,    look_past_gate },
	{ WALL_LANDLOCK,     PROOF_ALWAYS,      look_outside },
};
/* clang-format on */
const size_t proof_n_checks = COUNT(proof_checks);

int proof_run(const struct proof_at *at, uint32_t *proved, struct err *e)
{
	const bool applies[] = { [PROOF_ALWAYS] = true,
		                 [PROOF_WITHOUT_NET] = !at->box->plan->has_net,
		                 [PROOF_WITH_NET] = at->box->plan->has_net };

	if (fault_layer_off("proof"))
		return 0;
	if (proof_namespaces(&at->box->host, proved, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(proof_checks); i++) {
		const struct proof_check *c = &proof_checks[i];

		if (!applies[c->when])
			continue;
		if (c->look(at, e) < 0)
			return err_wrap(e, "%s", names[c->wall]);
		*proved |= WALL_BIT(c->wall);
	}
	return 0;
}

/* ---- the cgroup -------------------------------------------------------------------- */

int proof_limits(const struct box *box, uint32_t *proved, struct err *e)
{
	if (fault_layer_off("proof") || box->promised == 0)
		return 0;
	if (cgroup_limits_hold(&box->cgroup, box->plan->limits, e) < 0)
		return err_wrap(e, "%s", names[WALL_LIMITS]);
	*proved |= WALL_BIT(WALL_LIMITS);
	return 0;
}

int proof_cgroup(const struct box *box, enum wall w, uint32_t *proved, struct err *e)
{
	if (fault_layer_off("proof") || box->promised == 0)
		return 0;
	if (cgroup_membership_holds(&box->cgroup, box->promised, e) < 0)
		return err_wrap(e, "%s", names[w]);
	*proved |= WALL_BIT(w);
	return 0;
}
