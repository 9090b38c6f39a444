/*
 * bomb.c - the attacks of tests/v2/kernel, which compiles this file in the guest. Never run it
 * elsewhere: its filters, freed at once, stop kernels since 6.9 for good
 * (docs/decisions/0051-filters-of-code-inside.md).
 *
 *   bomb sockets COUNT LENGTH    attaches a filter of LENGTH instructions to each of COUNT sockets
 *   bomb filters COUNT LENGTH    loads system call filters in as many processes as it takes
 *   bomb zombies COUNT LENGTH    the same, but each process ends, and its parent does not wait for
 * it bomb hoppers COUNT LENGTH    the same, but each process goes on as its own child, again and
 * again: who lists processes and looks at them afterwards finds none that has the filters bomb
 * threads COUNT LENGTH    the same, but a thread loads them, forks and ends bomb together COUNT
 * LENGTH   200 processes load at the same time, again and again bomb linger SECONDS          the
 * last close of a TCP socket with more in its buffer than its peer takes bomb linger SECONDS SOCKET
 * sends such a socket to a unix socket, and closes it
 *
 * Bombs print `loaded N, ERROR`, the error of the first that failed, and wait for the end of stdin.
 * Then they free all that they have in one instant.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_US = 300000, TOGETHER = 200 };

struct order {
	int count; /* of all processes together */
	struct sock_fprog filter;
	int done_fd; /* the parent waits until nobody has it any more */
};

static struct tally {
	int loaded;
	int error;
	volatile int is_over;
} * tally; /* of all processes */

static int pipe_fds[2]; /* its end is the signal to exit */

/* Divisions become the longest code of all: five instructions of the kernel's machine for each. */
static struct sock_fprog filter_of(unsigned short length)
{
	static struct sock_filter code[BPF_MAXINSNS];

	code[0] = (struct sock_filter)BPF_STMT(BPF_LDX | BPF_IMM, 1);
	for (unsigned short i = 1; i + 1 < length; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0);
	code[length - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return (struct sock_fprog){ length, code };
}

static int attach(const struct sock_fprog *filter)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	return fd < 0 ? -1 : setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, filter, sizeof *filter);
}

static int load(const struct sock_fprog *filter)
{
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter);
}

static void fill(int (*put)(const struct sock_fprog *), const struct order *o, int each)
{
	for (int n = 0; n < each && tally->loaded < o->count; n++) {
		if (put(&o->filter) < 0) {
			tally->error = errno;
			return;
		}
		__atomic_add_fetch(&tally->loaded, 1, __ATOMIC_RELAXED);
	}
}

/* ---- what a process does; none of these returns --------------------------------------------- */

/* Its end of the pipe is the one that the parent waits for. */
static void say_done(const struct order *o)
{
	close(o->done_fd);
}

static void wait_for_end(void)
{
	char byte;

	(void)!read(pipe_fds[0], &byte, 1);
	_exit(0);
}

static void attach_and_stay(const struct order *o)
{
	fill(attach, o, 500);
	say_done(o);
	wait_for_end();
}

static void load_and_stay(const struct order *o)
{
	fill(load, o, 8);
	say_done(o);
	wait_for_end();
}

static void load_and_end(const struct order *o)
{
	fill(load, o, 200);
	_exit(0);
}

static void load_and_hop(const struct order *o)
{
	fill(load, o, 200);
	say_done(o);
	while (!tally->is_over)
		if (fork() > 0)
			_exit(0);
	_exit(0);
}

static void *load_and_fork(void *arg)
{
	fill(load, arg, 200);
	if (fork() == 0) {
		say_done(arg);
		wait_for_end();
	}
	return NULL;
}

static void load_by_thread(const struct order *o)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, load_and_fork, (void *)(uintptr_t)o) == 0)
		pthread_join(thread, NULL);
	say_done(o);
	wait_for_end();
}

/* Many at the same time, of which each takes a while. */
static void load_together(const struct order *o)
{
	for (int i = 0; i < TOGETHER; i++)
		if (fork() == 0) {
			for (int try = 0; try < 10; try++) {
				fill(load, o, 2);
				usleep(ROUND_US);
			}
			say_done(o);
			wait_for_end();
		}
	say_done(o);
	wait_for_end();
}

/* ---- the bomb ------------------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	void (*work)(const struct order *o);
	int tries; /* a census of the monitor's, which makes room, is due between them */
	int decoys;
} kinds[] = {
	{ "sockets", attach_and_stay, 1, 0 }, { "filters", load_and_stay, 1, 0 },
	{ "zombies", load_and_end, 4, 0 },    { "hoppers", load_and_hop, 4, 60 },
	{ "threads", load_by_thread, 4, 0 },  { "together", load_together, 1, 0 },
};

/* One more process; returns when it has as many as it gets, and whether that is any. */
static int add_process(const struct kind *k, struct order o)
{
	int done[2], before = tally->loaded;
	char byte;

	if (pipe2(done, O_CLOEXEC) < 0)
		return 0;
	pid_t pid = fork();
	if (pid == 0) {
		close(pipe_fds[1]);
		close(done[0]);
		o.done_fd = done[1];
		k->work(&o);
	}
	close(done[1]);
	(void)!read(done[0], &byte, 1);
	close(done[0]);
	if (pid < 0)
		tally->error = errno;
	return tally->loaded > before;
}

/* Processes that a look at all of them comes to first. */
static void add_decoys(int n)
{
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			close(pipe_fds[1]);
			wait_for_end();
		}
}

static int bomb(const struct kind *k, int count, int length)
{
	const struct order o = { count, filter_of((unsigned short)length), -1 };
	char byte;

	tally =
	    mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED || pipe(pipe_fds) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 2;
	add_decoys(k->decoys);
	for (int failures = 0; tally->loaded < count && failures < k->tries;) {
		failures += !add_process(k, o);
		if (k->tries > 1)
			usleep(ROUND_US);
	}
	printf("loaded %d, %s\n", tally->loaded,
	       tally->error ? strerrorname_np(tally->error) : "0");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		continue;
	tally->is_over = 1;
	close(pipe_fds[1]);
	return 0;
}

/* ---- lingering ------------------------------------------------------------------------------ */

static int lingering(int seconds)
{
	static const char zeros[1 << 16];
	const struct linger on = { .l_onoff = 1, .l_linger = seconds };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int door = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(door, (struct sockaddr *)&a, n) < 0 || listen(door, 1) < 0 ||
	    getsockname(door, (struct sockaddr *)&a, &n) < 0 ||
	    connect(fd, (struct sockaddr *)&a, n) < 0 || accept(door, NULL, NULL) < 0) {
		perror("a connection to ourselves");
		exit(2);
	}
	while (send(fd, zeros, sizeof zeros, MSG_DONTWAIT) > 0)
		continue;
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof on) < 0)
		perror("SO_LINGER");
	return fd;
}

static int send_along(int fd, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
		                .cmsg_level = SOL_SOCKET,
		                .cmsg_type = SCM_RIGHTS } };
	struct iovec bytes = { (void *)"whoami\n", 7 };
	struct msghdr m = { .msg_iov = &bytes,
		            .msg_iovlen = 1,
		            .msg_control = &control,
		            .msg_controllen = sizeof control.space };
	int to = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	if (connect(to, (struct sockaddr *)&a, sizeof a) < 0)
		return -1;
	return (int)sendmsg(to, &m, 0);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int linger(int seconds, const char *path)
{
	int fd = lingering(seconds);

	if (path) {
		int r = send_along(fd, path);

		printf("sent %s\n", r < 0 ? strerrorname_np(errno) : "0");
	}
	double began = now_s();
	close(fd);
	printf("closed after %.1f s\n", now_s() - began);
	fflush(stdout);
	for (char byte; path && read(0, &byte, 1) > 0;) /* its peer stays, and reads nothing */
		continue;
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit files = { 4096, 4096 };

	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (argc >= 3 && strcmp(argv[1], "linger") == 0)
		return linger(atoi(argv[2]), argv[3]);
	for (size_t i = 0; argc == 4 && i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(argv[1], kinds[i].name) == 0)
			return bomb(&kinds[i], atoi(argv[2]), atoi(argv[3]));
	fprintf(stderr, "usage: see bomb.c\n");
	return 2;
}
