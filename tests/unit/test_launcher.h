/*
 * test_launcher.h - a launcher program with a daemon and a monitor that do what a test says.
 *
 * The daemon is this very program, started by the launcher under the name caissond: it hands its
 * descriptors 3 and 4 to the test and then exits with what it is told. The monitor answers single
 * letters on its channel and on its socket.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "launcher/server.h"
#include "launcher/slot.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/unix.h"
#include "wire/channel.h"
#include "wire/launch.h"
#include "wire/lend.h"

#include "test.h"

#define USER_ID 54321

struct fixture {
	char top[64], state[96], run[96];
	int hello_fd;     /* where daemons report */
	pid_t launcher;   /* 0: none */
	int daemon_fd;    /* to the daemon: its exit status */
	int channel, api; /* its descriptors 3 and 4 */
	bool is_root;
	const char *host_path;
};

/* What a daemon says of itself. */
struct hello {
	pid_t pid;
	uid_t uid;
	int n_fds;
	char status[2048]; /* /proc/self/status */
};

/* ---- the daemon ------------------------------------------------------------------------ */

static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -3; /* ".", "..", the folder itself */

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static inline int connect_to(const char *path, int type)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
		fd_close(&fd);
	return fd;
}

static inline _Noreturn void daemon_main(const char *state)
{
	static struct hello hello;
	const int fds[] = { 3, 4 };
	char path[128];
	unsigned char status = 99;

	hello.n_fds = count_fds();
	hello.pid = getpid();
	hello.uid = getuid();
	(void)os_read_file(AT_FDCWD, "/proc/self/status", hello.status, sizeof hello.status);
	snprintf(path, sizeof path, "%s/../hello.sock", state);
	int fd = connect_to(path, SOCK_SEQPACKET);

	if (fd < 0 || os_send(fd, &hello, sizeof hello, fds, 2) < 0)
		_exit(98);
	/* The test has them now; ours must not keep the launcher from seeing it close them. */
	close(4);
	if (recv(fd, &status, 1, 0) != 1)
		_exit(97);
	_exit(status);
}

__attribute__((constructor)) static void maybe_daemon(int argc, char **argv, char **envp)
{
	(void)envp;
	if (argc > 2 && strcmp(argv[0], "caissond") == 0)
		daemon_main(argv[2]);
}

/* ---- the monitor ----------------------------------------------------------------------- */

/* Whose the first mount is, on the host; -1: no mount came. */
static inline void answer_owner(int fd, const struct box *box)
{
	struct stat st;
	int owner =
	    os_fstatat(box->mount_tree_fds[0], "", &st, AT_EMPTY_PATH) < 0 ? -1 : (int)st.st_uid;

	(void)send(fd, &owner, sizeof owner, MSG_NOSIGNAL);
}

/* Locks what it can by the descriptors that it has, as a monitor would that fell. How many of them
 * lead to lock files of the launcher and are open for writing, and -1000 if none leads there. */
static inline int lock_all(void)
{
	const struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int n = -1000;

	for (int fd = 3; fd < 1024; fd++) {
		char link[32], path[4096];

		for (int i = 0; i < 8200 && fcntl(fd, F_GETFD) >= 0; i++) {
			const struct flock byte = {
				.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i, .l_len = 1
			};
			(void)fcntl(fd, F_OFD_SETLK, &byte);
		}
		(void)fcntl(fd, F_OFD_SETLK, &all);
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		if (os_readlinkat(AT_FDCWD, link, path, sizeof path) < 0 || !strstr(path, "/slots"))
			continue;
		n = n < 0 ? 0 : n;
		n += (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
	}
	return n;
}

static inline void answer_letter(int fd, char letter, const struct box *box)
{
	int n = letter == 'l' ? lock_all() : count_fds();

	if (letter == 'o')
		answer_owner(fd, box);
	if (letter == 'f' || letter == 'l')
		(void)send(fd, &n, sizeof n, MSG_NOSIGNAL);
	if (letter == 'x')
		_exit(7);
}

/* Joins the groups, so that somebody is there to be killed. */
static inline void member(struct box *box)
{
	struct cgroup_leaf none = { 0 };
	struct err e;
	char byte;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		_exit(92);
	if (fork() == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		    cgroup_join(&box->cgroup, &none, &e) < 0)
			_exit(1);
		(void)os_close_range(0, ~0u, 0); /* the end of the pipe says so */
		for (;;)
			pause();
	}
	close(fds[1]);
	(void)!read(fds[0], &byte, 1);
	close(fds[0]);
}

static inline void fake_monitor(struct box *box, int control_fd)
{
	struct channel_head head = { 0 };
	int keys[CGROUP_KEYS_MAX];
	size_t n_keys = COUNT(keys);
	struct pollfd p[] = { { control_fd, POLLIN, 0 },
		              { box->listen_fd, POLLIN, 0 },
		              { -1, POLLIN, 0 } };
	char letter;

	if (os_recv(control_fd, &head, sizeof head, keys, &n_keys) <= 0 || head.type != CH_GO)
		_exit(96);
	if (cgroup_take_keys(&box->cgroup, keys, n_keys) < 0)
		_exit(95);
	signal(SIGCHLD, SIG_IGN);
	member(box);
	for (;;) {
		if (poll(p, COUNT(p), -1) < 0)
			_exit(94);
		if (p[1].revents & POLLIN)
			p[2].fd = accept4(box->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		for (int i = 0; i < 3; i += 2) {
			if (p[i].fd < 0 || !p[i].revents)
				continue;
			if (recv(p[i].fd, &letter, 1, 0) == 1)
				answer_letter(p[i].fd, letter, box);
			else if (box->is_kept)
				fd_close(&p[i].fd);
			else
				_exit(0);
		}
	}
}

/* ---- the launcher ------------------------------------------------------------------------ */

/* The next daemon that reports. */
static inline struct hello meet_daemon(struct fixture *f)
{
	struct hello hello;
	int fds[2];
	size_t n = 2;
	struct pollfd p = { .fd = f->hello_fd, .events = POLLIN };

	CHECK_INT(poll(&p, 1, TEST_WAIT_MS), 1);
	fd_close(&f->daemon_fd);
	fd_close(&f->channel);
	fd_close(&f->api);
	f->daemon_fd = accept4(f->hello_fd, NULL, NULL, SOCK_CLOEXEC);
	CHECK(f->daemon_fd >= 0);
	CHECK_INT(os_recv(f->daemon_fd, &hello, sizeof hello, fds, &n), sizeof hello);
	CHECK_INT(n, 2);
	f->channel = fds[0];
	f->api = fds[1];
	return hello;
}

static inline void start_launcher(struct fixture *f)
{
	char exe[128];
	char *argv[] = { (char[]){ "caissond" }, (char[]){ "--state" }, f->state, NULL };
	char *env[] = { NULL };
	struct server_opts o = { .state = f->state,
		                 .run = f->run,
		                 .service_id = SERVER_ID,
		                 .api_fd = -1,
		                 .daemon = exe,
		                 .argv = argv,
		                 .env = env };

	CHECK(os_readlinkat(AT_FDCWD, "/proc/self/exe", exe, sizeof exe) > 0);
	if (f->host_path)
		o.host_paths[o.n_host_paths++] = f->host_path;
	fflush(NULL);
	f->launcher = fork();
	CHECK(f->launcher >= 0);
	if (f->launcher == 0) {
		struct err e = { 0 };

		if (!f->is_root && geteuid() == 0 &&
		    (setgroups(0, NULL) < 0 || os_set_ids(USER_ID, USER_ID) < 0))
			_exit(93);
		(void)os_close_range(3, ~0u, 0);
		int r = server_run(&o, fake_monitor, &e);
		if (r < 0)
			fprintf(stderr, "# launcher: %s\n", e.msg);
		exit(r < 0 ? (e.sys == EBUSY ? 3 : 125) : r); /* ASan looks for leaks now */
	}
}

static inline void fixture_start(struct fixture *f, bool is_root)
{
	char runtime[96];

	if (is_root && geteuid() != 0)
		SKIP("needs root");
	if (access("/proc/self/exe", X_OK) < 0)
		SKIP("needs /proc");
	*f = (struct fixture){ .daemon_fd = -1, .channel = -1, .api = -1, .is_root = is_root };
	umask(022);
	snprintf(f->top, sizeof f->top, "/tmp/test-launcher-XXXXXX");
	CHECK(mkdtemp(f->top));
	CHECK_INT(chmod(f->top, 0777), 0);
	snprintf(f->state, sizeof f->state, "%s/state", f->top);
	snprintf(f->run, sizeof f->run, "%s/run", f->top);
	snprintf(runtime, sizeof runtime, "%s/runtime", f->top);
	CHECK_INT(mkdir(runtime, 0777), 0);
	CHECK_INT(chmod(runtime, 0777), 0);
	setenv("XDG_RUNTIME_DIR", runtime, 1); /* rootless: slots and skeleton of this test only */
	AUTO(fd_close) int top = open(f->top, O_PATH | O_CLOEXEC);
	f->hello_fd = os_listen_at(top, "hello.sock", SOCK_SEQPACKET, 0777);
	CHECK(f->hello_fd >= 0);
	start_launcher(f);
	(void)meet_daemon(f);
}

static inline int launcher_status(struct fixture *f)
{
	int status = 0;

	CHECK_INT(waitpid(f->launcher, &status, 0), f->launcher);
	f->launcher = 0;
	return status;
}

static inline void daemon_exit(struct fixture *f, unsigned char status)
{
	CHECK_INT(send(f->daemon_fd, &status, 1, 0), 1);
}

static inline void fixture_end(struct fixture *f)
{
	fd_close(&f->channel);
	if (f->launcher > 0) {
		daemon_exit(f, 0);
		CHECK_INT(launcher_status(f), 0);
	}
	fd_close(&f->daemon_fd);
	fd_close(&f->api);
	fd_close(&f->hello_fd);
	/* Ours alone, made by mkdtemp. */
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", f->top, NULL);
		_exit(1);
	}
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

/* ---- the channel ------------------------------------------------------------------------- */

static struct launch_packet packet; /* what came last */

static inline void order(struct fixture *f, enum launch_type type, uint32_t tag, const void *body,
                         size_t n, int fd)
{
	static struct launch_packet p;

	p.head = (struct launch_head){ .type = type, .len = (uint32_t)n, .tag = tag };
	if (n > 0)
		memcpy(p.bytes, body, n);
	CHECK_INT(os_send(f->channel, &p, sizeof p.head + n, &fd, fd < 0 ? 0 : 1),
	          sizeof p.head + n);
}

/* Waits for the next message and its descriptor; -1: none came with it. */
static inline int next_message(struct fixture *f)
{
	struct pollfd p = { .fd = f->channel, .events = POLLIN };
	struct err e = { 0 };
	int fd = -1;
	size_t n_fds = 1;

	CHECK_INT(poll(&p, 1, TEST_WAIT_MS), 1);
	int n = os_recv(f->channel, &packet, sizeof packet, &fd, &n_fds);
	CHECK(n > 0);
	if (launch_check_answer(&packet, (size_t)n, n_fds, &e) < 0)
		CHECK_STR(e.msg, "");
	return n_fds ? fd : -1;
}

static inline int expect(struct fixture *f, enum launch_type type, uint32_t tag)
{
	int fd = next_message(f);

	if (packet.head.type == L_FAILED && type != L_FAILED) {
		printf("# %s\n", packet.err.msg);
		if (type == L_MADE && packet.err.sys == EBUSY && geteuid() != 0)
			SKIP("needs a delegated cgroup with nobody else in it");
	}
	CHECK_INT(packet.head.type, type);
	CHECK_INT(packet.head.tag, tag);
	return fd;
}

static inline void order_make(struct fixture *f, uint32_t tag, struct launch_make m)
{
	static const char text[] = "/work\0/other\0sb_1";
	unsigned char bytes[sizeof m + sizeof text];

	m.uid = m.gid = 1000;
	m.id = sizeof "/work\0/other";
	m.text_len = sizeof text;
	m.limits[LIMIT_MEM] = 64u << 20;
	m.limits[LIMIT_PIDS] = 32;
	memcpy(bytes, &m, sizeof m);
	memcpy(bytes + sizeof m, text, sizeof text);
	order(f, L_MAKE, tag, bytes, sizeof bytes, -1);
}

/* A sandbox; its channel is the return value. */
static inline int make(struct fixture *f, uint32_t flags, struct launch_made *out)
{
	order_make(f, 77, (struct launch_make){ .flags = flags });
	int fd = expect(f, L_MADE, 77);

	CHECK(fd >= 0);
	*out = packet.made;
	return fd;
}

/* Bytes for lend.sock, said by a user; the connection, or -1 when the launcher refused them. */
struct lend_words {
	const void *bytes;
	size_t n;
	bool is_last; /* nothing more will come */
};

static inline int lend_bytes(const struct fixture *f, uid_t uid, struct lend_words w)
{
	char path[128], answer = 0;

	snprintf(path, sizeof path, "%s/" LEND_SOCKET, f->run);
	CHECK_INT(chmod(path, 0666), 0);
	/* The kernel notes who connects: the effective id. */
	CHECK(seteuid(uid) == 0);
	int fd = connect_to(path, SOCK_STREAM);
	CHECK(seteuid(0) == 0);
	CHECK(fd >= 0);
	if (send(fd, w.bytes, w.n, MSG_NOSIGNAL) != (ssize_t)w.n ||
	    (w.is_last && shutdown(fd, SHUT_WR) < 0) || recv(fd, &answer, 1, 0) != 1 ||
	    answer != LEND_OK)
		fd_close(&fd);
	return fd;
}

static inline int lend(const struct fixture *f, uid_t uid, char kind, const char *path)
{
	size_t n = strlen(path) + 1;
	char bytes[256] = { kind, (char)n };

	CHECK(n < 128);
	memcpy(bytes + sizeof(struct lend_head), path, n);
	return lend_bytes(f, uid,
	                  (struct lend_words){ .bytes = bytes, .n = sizeof(struct lend_head) + n });
}

/* As an honest client does it before it asks for a path. */
static inline void lend_first(const struct fixture *f, const char *path, int client)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t n = sizeof peer;

	if (!f->is_root || client < 0 ||
	    getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.uid == (uid_t)-1)
		return;
	int fd = lend(f, peer.uid, LEND_KEEP, path);
	fd_close(&fd);
}

static inline void order_open(struct fixture *f, uint32_t tag, enum launch_want want,
                              const char *path, int client)
{
	struct launch_open o = { .want = want, .path_len = (uint32_t)strlen(path) + 1 };
	unsigned char bytes[sizeof o + 4096];

	memcpy(bytes, &o, sizeof o);
	memcpy(bytes + sizeof o, path, o.path_len);
	order(f, L_OPEN, tag, bytes, sizeof o + o.path_len, client);
}

/* Those of root are the host's: wait for it, since another test may have it for a moment. */
static inline bool slot_is_free(const struct fixture *f, int slot)
{
	struct err e = { 0 };
	AUTO(fd_close) int run = -1;

	if (f->is_root || geteuid() != 0) {
		run = slot_run_dir(f->is_root, &e);
	} else {
		char path[128];

		snprintf(path, sizeof path, "%s/runtime/caisson", f->top);
		run = open(path, O_PATH | O_CLOEXEC);
	}
	AUTO(fd_close) int slots = slot_open(run, &e);
	CHECK(slots >= 0);
	AUTO(slot_locks_done) struct slot_locks lock = { 0 };
	return slot_take_this(slots, slot, &lock);
}

static inline int ask_number(int channel, char letter)
{
	int n = -1;

	CHECK_INT(send(channel, &letter, 1, 0), 1);
	CHECK_INT(recv(channel, &n, sizeof n, 0), sizeof n);
	return n;
}

static inline int ask_fds(int channel)
{
	return ask_number(channel, 'f');
}
