/*
 * What a child of the gate can still do, asked of the kernel: the test's child is the master, its
 * child the child, and that one reports through a pipe.
 */
#include "gate/harden.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "test.h"

#define END '\4'

static struct rig {
	int report[2], hold[2];
} rig;

static void say(const char *what, long r)
{
	dprintf(rig.report[1], "%s %s\n", what, r < 0 ? strerrorname_np(errno) : "ok");
}

static void be_master(void (*child)(void))
{
	struct err e = { 0 };
	pid_t own = getpid(), pid = -1;
	char byte;

	fd_close(&rig.hold[1]);
	if (harden_master(&e) < 0 || (pid = fork()) < 0)
		dprintf(rig.report[1], "master: %s\n", e.msg);
	else if (pid > 0)
		(void)!read(rig.hold[0], &byte, 1);
	else if (harden_child(own, &e) < 0)
		dprintf(rig.report[1], "child: %s\n", e.msg);
	else
		child();
	if (pid <= 0)
		dprintf(rig.report[1], "%c", END);
	_exit(0);
}

/* What the child reported. */
static const char *run(void (*child)(void))
{
	static char text[8192];
	size_t n = 0;
	ssize_t r;

	CHECK_INT(pipe2(rig.report, O_CLOEXEC), 0);
	CHECK_INT(pipe2(rig.hold, O_CLOEXEC), 0);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		be_master(child);
	fd_close(&rig.report[1]);
	struct pollfd p = { .fd = rig.report[0], .events = POLLIN };

	/* The master has the pipe too, until it is let go: a word of its own is the end. */
	while (n < sizeof text - 1 && !memchr(text, END, n) && poll(&p, 1, TEST_WAIT_MS) > 0 &&
	       (r = read(rig.report[0], text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)r;
	text[n] = '\0';
	text[strcspn(text, (char[]){ END, '\0' })] = '\0';
	fd_close(&rig.hold[1]);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	return text;
}

static void starts_nothing(void)
{
	char *const argv[] = { NULL };

	say("fork", fork());
	say("vfork", syscall(SYS_vfork));
	say("clone3", syscall(SYS_clone3, NULL, 0));
	say("execve", execve("/bin/true", argv, argv));
	say("ptrace", syscall(SYS_ptrace, 0, 0, 0, 0));
	say("kill", kill(1, 0));
	say("prctl", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	say("seccomp", syscall(SYS_seccomp, 0, 0, NULL));
	say("setrlimit", syscall(SYS_prlimit64, 0, 7, NULL, NULL));
	say("unshare", unshare(0));
	say("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
	say("memfd", memfd_create("x", 0));
	say("userfaultfd", syscall(SYS_userfaultfd, 0));
	say("bpf", syscall(SYS_bpf, 0, NULL, 0));
	say("end", 0);
}

TEST(a_child_starts_nothing_and_changes_nothing)
{
	CHECK_STR(run(starts_nothing),
	          "fork ENOSYS\nvfork ENOSYS\nclone3 ENOSYS\nexecve ENOSYS\nptrace ENOSYS\n"
	          "kill ENOSYS\nprctl ENOSYS\nseccomp ENOSYS\nsetrlimit ENOSYS\nunshare ENOSYS\n"
	          "io_uring ENOSYS\nmemfd ENOSYS\nuserfaultfd ENOSYS\nbpf ENOSYS\nend ok\n");
}

static void opens_sockets(void)
{
	static const struct {
		const char *name;
		int family, type, protocol;
	} rows[] = {
		{ "tcp4", AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0 },
		{ "udp6", AF_INET6, SOCK_DGRAM, 0 },
		{ "raw", AF_INET, SOCK_RAW, IPPROTO_ICMP },
		{ "unix", AF_UNIX, SOCK_STREAM, 0 },
		{ "netlink", AF_NETLINK, SOCK_RAW, 0 },
		{ "packet", AF_PACKET, SOCK_RAW, 0 },
		{ "vsock", AF_VSOCK, SOCK_STREAM, 0 },
	};
	struct sockaddr_in any = { .sin_family = AF_INET };
	int on = 1, fd = -1;

	for (size_t i = COUNT(rows); i-- > 0;) {
		fd = socket(rows[i].family, rows[i].type, rows[i].protocol);
		say(rows[i].name, fd);
	}
	say("bind", bind(fd, (struct sockaddr *)&any, sizeof any));
	say("listen", listen(fd, 1));
	say("nodelay", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
	say("mark", setsockopt(fd, SOL_SOCKET, SO_MARK, &on, sizeof on));
	say("transparent", setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof on));
}

TEST(a_child_has_sockets_of_tcp_and_udp_and_never_listens)
{
	CHECK_STR(run(opens_sockets),
	          "vsock EAFNOSUPPORT\npacket EAFNOSUPPORT\nnetlink EAFNOSUPPORT\n"
	          "unix EAFNOSUPPORT\nraw EPROTONOSUPPORT\nudp6 ok\ntcp4 ok\nbind ENOSYS\n"
	          "listen ENOSYS\nnodelay ok\nmark EPERM\ntransparent EPERM\n");
}

static void opens_files(void)
{
	say("hosts", open("/etc/hosts", O_RDONLY | O_CLOEXEC));
	say("passwd", open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	say("proc", open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
	say("etc", open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	say("write", open("/etc/hosts", O_WRONLY | O_CLOEXEC));
	say("make", open("/tmp/caisson-test-harden", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	say("unlink", syscall(SYS_unlinkat, AT_FDCWD, "/tmp/x", 0));
}

TEST(a_child_reads_a_few_files_and_writes_none)
{
	CHECK_STR(run(opens_files),
	          "hosts ok\npasswd EACCES\nproc EACCES\netc EACCES\nwrite EACCES\n"
	          "make EACCES\nunlink ENOSYS\n");
}
