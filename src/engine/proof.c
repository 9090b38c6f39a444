#include "engine/proof.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/caps.h"
#include "os/caps.h"
#include "os/fault.h"

static int result(long r)
{
	return r < 0 ? errno : 0;
}

static int try_write(const char *path)
{
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return result(fd);
}

static int try_mount(void)
{
	return result(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL));
}

static int try_namespace(void)
{
	return result(unshare(CLONE_NEWUSER));
}

static int try_bpf(void)
{
	return result(syscall(SYS_bpf, 0, NULL, 0));
}

static int try_keyring(void)
{
	return result(syscall(SYS_keyctl, 0, -3, 0));
}

static int try_io_uring(void)
{
	return result(syscall(SYS_io_uring_setup, 1, NULL));
}

static int try_packet_socket(void)
{
	AUTO(fd_close) int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	return result(fd);
}

/* An address kept for documentation; with no route the kernel answers at once. */
static int try_network(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons(9),
		                  .sin_addr.s_addr = htonl(0xc0000201) };
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? 0 : result(connect(fd, (struct sockaddr *)&to, sizeof to));
}

/* With the gate there is a route, and a rule. */
static int try_datagram(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons(9),
		                  .sin_addr.s_addr = htonl(0xc0000201) };
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? 0 : result(sendto(fd, "", 1, 0, (struct sockaddr *)&to, sizeof to));
}

static int try_core_pattern(void)
{
	return try_write("/proc/sys/kernel/core_pattern");
}

static int try_sysrq(void)
{
	return try_write("/proc/sysrq-trigger");
}

static int try_system_file(void)
{
	return try_write("/etc/ld.so.cache");
}

static int try_raise_privilege(void)
{
	return result(setresuid(0, 0, 0));
}

enum check_when {
	ALWAYS,
	ONLY_DEFAULT, /* not for root of `profile: rootful` */
	WITHOUT_NET,
	WITH_NET
};

struct check {
	const char *name, *layer; /* the wall, as in CAISSON_LAYER_OFF */
	int (*attempt)(void);     /* 0 or the errno */
	int want[3];              /* any of these */
	enum check_when when;
};

/* clang-format off */
static const struct check checks[] = {
	{ "mount a file system",        "seccomp", try_mount,           { EPERM },                  ALWAYS },
	{ "make a user namespace",      "seccomp", try_namespace,       { EPERM },                  ALWAYS },
	{ "load a bpf program",         "seccomp", try_bpf,             { EPERM },                  ALWAYS },
	{ "read a keyring",             "seccomp", try_keyring,         { EPERM },                  ALWAYS },
	{ "set up io_uring",            "seccomp", try_io_uring,        { ENOSYS },                 ALWAYS },
	{ "open a packet socket",       "seccomp", try_packet_socket,   { EAFNOSUPPORT },           ALWAYS },
	{ "reach the network",          "netns",   try_network,         { ENETUNREACH },            WITHOUT_NET },
	{ "send past the gate",         "netwalls", try_datagram,       { EPERM },                  WITH_NET },
	{ "write the core pattern",     "masks",   try_core_pattern,    { EROFS, EACCES, ENOENT },  ALWAYS },
	{ "trigger sysrq",              "masks",   try_sysrq,           { EROFS, EACCES, ENOENT },  ALWAYS },
	{ "write a system file",        "landlock", try_system_file,    { EACCES, EROFS, ENOENT },  ONLY_DEFAULT },
	{ "become root",                "caps",    try_raise_privilege, { EPERM, EINVAL },          ONLY_DEFAULT },
};
/* clang-format on */

static int check_attempts(const struct plan *p, const struct command *command, struct err *e)
{
	const bool applies[] = { [ALWAYS] = true,
		                 [ONLY_DEFAULT] = caps_kept(p, command) == 0 && command->uid != 0,
		                 [WITHOUT_NET] = !p->has_net,
		                 [WITH_NET] = p->has_net && !fault_layer_off("netns") };

	for (size_t i = 0; i < COUNT(checks); i++) {
		const struct check *c = &checks[i];

		if (!applies[c->when] || fault_layer_off(c->layer))
			continue;
		int got = c->attempt();
		if (got == 0)
			return err_new(e, ERR_INTERNAL, "%s: it worked", c->name);
		if (got != c->want[0] && got != c->want[1] && got != c->want[2])
			return err_sys(e, got, "%s: unexpected answer", c->name);
	}
	return 0;
}

static int check_identity(const struct plan *p, const struct command *c, struct err *e)
{
	uid_t r, u, s;
	gid_t rg, g, sg;
	uint64_t eff, perm, inh;
	uint64_t kept = caps_kept(p, c);

	if (getresuid(&r, &u, &s) < 0 || getresgid(&rg, &g, &sg) < 0 || r != c->uid ||
	    u != c->uid || s != c->uid || rg != c->gid || g != c->gid || sg != c->gid)
		return err_new(e, ERR_INTERNAL, "user or group is not what was asked for");
	if (fault_layer_off("caps"))
		return 0;
	if (os_caps_get(&eff, &perm, &inh) < 0 || (eff | perm) & ~kept || inh)
		return err_new(e, ERR_INTERNAL, "capabilities are left");
	for (unsigned int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(kept & CAP_BIT(cap)) && os_caps_bounded(cap))
			return err_new(e, ERR_INTERNAL, "capability %u is left in the bounding set",
			               cap);
	return 0;
}

static int check_state(int n_fds, struct err *e)
{
	struct rlimit core;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return err_new(e, ERR_INTERNAL, "no_new_privs is not set");
	if (!fault_layer_off("seccomp") && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
		return err_new(e, ERR_INTERNAL, "no system call filter is loaded");
	if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max > 1)
		return err_new(e, ERR_INTERNAL, "core dumps are possible");
	/* The lowest free number tells: anything inherited would lie above ours. */
	AUTO(fd_close) int next = dup(0);
	if (next != n_fds)
		return err_new(e, ERR_INTERNAL, "descriptor %d is open", n_fds);
	return 0;
}

/* A mount left on top of the new root would be found by everybody who enters later; and a root
 * that is not read-only has to be a private one. */
static int check_root(const struct box *box, struct err *e)
{
	struct stat st;
	struct statfs fs;

	if (stat("/", &st) < 0 || statfs("/", &fs) < 0)
		return err_sys(e, errno, "look at the root");
	if (st.st_dev == box->host_root_dev && st.st_ino == box->host_root_ino)
		return err_new(e, ERR_INTERNAL, "the root is the host's");
	if (!(fs.f_flags & ST_RDONLY) && fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return err_new(e, ERR_INTERNAL, "the root is not a private one");
	return 0;
}

/* The kernel's own words: it names a folder that the root does not lead to, but not as a path. */
static int check_cwd(struct err *e)
{
	char cwd[PATH_MAX] = "";
	long n = syscall(SYS_getcwd, cwd, sizeof cwd);

	if (n < 0 && errno != ENAMETOOLONG && errno != ERANGE)
		return err_sys(e, errno, "look at the working directory");
	if (n > 0 && cwd[0] != '/')
		return err_new(e, ERR_INTERNAL, "the working directory is outside of the root");
	return 0;
}

int proof_run(const struct box *box, const struct command *c, int n_fds, struct err *e)
{
	const struct plan *p = box->plan;

	if (fault_layer_off("proof"))
		return 0;
	if (check_root(box, e) < 0 || check_cwd(e) < 0 || check_identity(p, c, e) < 0 ||
	    check_state(n_fds, e) < 0 || check_attempts(p, c, e) < 0)
		return -1;
	return 0;
}
