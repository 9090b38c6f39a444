#include "ledger/serve.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "os/sock.h"
#include "test_ledger.h"

struct writer {
	pid_t pid;
	int launcher_fd; /* our end */
	int dir;
};

static void start(struct writer *w)
{
	int fds[2];

	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	fflush(NULL);
	w->pid = fork();
	if (w->pid == 0) {
		const struct serve_opts o = { .launcher_fd = fds[1], .dir_fd = w->dir };
		struct err e = { 0 };

		signal(SIGXFSZ, SIG_IGN); /* of tests without room: an errno */
		close(fds[0]);
		if (w->launcher_fd >= 0)
			close(w->launcher_fd);
		int r = serve_run(&o, &e);

		if (r < 0)
			printf("# %s\n", e.msg);
		fflush(NULL);
		_exit(r < 0 ? 1 : 0);
	}
	close(fds[1]);
	w->launcher_fd = fds[0];
}

static int dial(const struct writer *w, const char *life)
{
	struct ledger_hello h = { .type = LEDGER_HELLO, .version = LEDGER_VERSION };
	int fds[2];

	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	CHECK_INT(os_send(w->launcher_fd, "", 1, &fds[1], 1), 1);
	close(fds[1]);
	snprintf(h.life, sizeof h.life, "%s", life);
	CHECK(os_send(fds[0], &h, sizeof h, NULL, 0) > 0);
	return fds[0];
}

static int say(int fd, enum ledger_kind kind, uint64_t num, const char *data)
{
	static union ledger_packet p;
	size_t n = strlen(data) + 1;

	memset(&p, 0, sizeof p.append);
	p.append.type = LEDGER_APPEND;
	p.append.kind = kind;
	p.append.num = num;
	snprintf(p.append.sandbox, sizeof p.append.sandbox, "sb_%llu",
	         (unsigned long long)(num % 5));
	memcpy(p.append.data, data, n);
	return os_send(fd, &p, sizeof p.append + n, NULL, 0) > 0 ? 0 : -1;
}

/* False: it hung up. */
static bool hear(int fd, struct ledger_ack *a)
{
	union ledger_packet p;
	size_t n_fds = 0;
	int n = os_recv(fd, &p, sizeof p, NULL, &n_fds);

	if (n <= 0)
		return false;
	CHECK(ledger_ack_check(&p.ack, (size_t)n));
	*a = p.ack;
	return true;
}

static void await(int fd, uint64_t num, bool is_synced)
{
	struct ledger_ack a = { 0 };

	while ((is_synced ? a.synced : a.written) < num)
		CHECK(hear(fd, &a));
}

static void stop(struct writer *w)
{
	int status;

	close(w->launcher_fd);
	w->launcher_fd = -1;
	CHECK_INT(waitpid(w->pid, &status, 0), w->pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

TEST(records_are_acknowledged_written_then_synced)
{
	struct writer w = { .launcher_fd = -1, .dir = ledger_dir() };

	start(&w);
	int fd = dial(&w, "ab");

	for (uint64_t i = 1; i <= 1000; i++)
		CHECK_INT(say(fd, LEDGER_EXEC_STARTED, i, "{\"a\":[1,2]}"), 0);
	await(fd, 1000, false);
	await(fd, 1000, true); /* without another word */
	CHECK_INT(say(fd, LEDGER_GIT_PUSHED, 1001, "{}"), 0);
	struct ledger_ack a = { 0 };

	while (a.written < 1001)
		CHECK(hear(fd, &a));
	CHECK_INT((long long)a.synced, 1001); /* in the same word */
	close(fd);
	stop(&w);
	struct read_ledger r = read_ledger(w.dir);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.of[LEDGER_EXEC_STARTED], 1000);
	CHECK_INT((long long)r.unsigned_records, 0);
	ledger_dir_remove(w.dir);
}

/* Killed at any moment: what was acknowledged is there, what is said again is there once. */
TEST(the_writer_is_killed_and_nothing_is_lost_or_told_twice)
{
	struct writer w = { .launcher_fd = -1, .dir = ledger_dir() };
	uint64_t acked = 0, end = 4000;

	for (int life = 0; acked < end; life++) {
		int status;
		struct ledger_ack a = { 0 };

		start(&w);
		int fd = dial(&w, "cd");
		uint64_t sent = acked, until = now_ms() + 5 + (uint64_t)life * 7;

		while (acked < end && (life > 12 || now_ms() < until)) {
			for (int k = 0; k < 20 && sent < end; k++)
				CHECK_INT(say(fd, LEDGER_EXEC_STARTED, ++sent, "{}"), 0);
			CHECK(hear(fd, &a));
			acked = a.written > acked ? a.written : acked;
		}
		kill(w.pid, SIGKILL);
		CHECK_INT(waitpid(w.pid, &status, 0), w.pid);
		close(fd);
		close(w.launcher_fd);
		w.launcher_fd = -1;
	}
	struct book b;
	struct err e = { 0 };
	const struct book_opts o = { .dir_fd = w.dir };

	CHECK_INT(book_open(&b, &o, 1, &e), 0);
	CHECK_INT((long long)book_src_num(b.src, "cd"), (long long)end);
	book_close(&b, 1);
	struct read_ledger r = read_ledger(w.dir);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.of[LEDGER_EXEC_STARTED], (long long)end);
	CHECK_INT((long long)r.of[LEDGER_SEALED], 0);
	ledger_dir_remove(w.dir);
}

/* What a dead daemon left in its socket is heard; and the next one has numbers of its own. */
TEST(daemons_come_and_go)
{
	struct writer w = { .launcher_fd = -1, .dir = ledger_dir() };

	start(&w);
	for (int life = 0; life < 5; life++) {
		char name[LEDGER_LIFE_SIZE];

		snprintf(name, sizeof name, "%x", 10 + life);
		int fd = dial(&w, name);

		for (uint64_t i = 1; i <= 50; i++)
			CHECK_INT(say(fd, LEDGER_EXEC_STARTED, i, "{}"), 0);
		close(fd); /* at once */
	}
	stop(&w);
	struct read_ledger r = read_ledger(w.dir);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.of[LEDGER_EXEC_STARTED], 250);
	ledger_dir_remove(w.dir);
}

/* From now on files of the writer cannot grow beyond it. */
static void set_room(const struct writer *w, rlim_t bytes)
{
	const struct rlimit room = { bytes, RLIM_INFINITY };

	CHECK_INT(prlimit(w->pid, RLIMIT_FSIZE, &room, NULL), 0);
}

static void fill_disk(const struct writer *w, int fd, uint64_t from, uint64_t to)
{
	struct ledger_ack a = { 0 };

	await(fd, from - 1, true);
	set_room(w, 1);
	for (uint64_t i = from; i <= to; i++)
		CHECK_INT(say(fd, LEDGER_EXEC_STARTED, i, "{}"), 0);
	while (!a.is_full)
		CHECK(hear(fd, &a));
}

static long ticks_of(pid_t pid)
{
	char path[32], text[1024] = "";
	unsigned long user = 0, system = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	CHECK(os_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	CHECK_INT(sscanf(strrchr(text, ')'),
	                 ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system),
	          2);
	return (long)(user + system);
}

TEST(a_daemon_that_goes_while_the_disk_is_full_is_heard_when_there_is_room)
{
	struct writer w = { .launcher_fd = -1, .dir = ledger_dir() };

	start(&w);
	int fd = dial(&w, "ab");

	CHECK_INT(say(fd, LEDGER_EXEC_STARTED, 1, "{}"), 0);
	fill_disk(&w, fd, 2, 50);
	close(fd);
	long before = ticks_of(w.pid);

	usleep(500000);
	CHECK(ticks_of(w.pid) - before < sysconf(_SC_CLK_TCK) / 5); /* it waits, and does not ask */
	set_room(&w, RLIM_INFINITY);
	stop(&w);
	struct read_ledger r = read_ledger(w.dir);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.of[LEDGER_EXEC_STARTED], 50);
	ledger_dir_remove(w.dir);
}

TEST(without_launcher_and_without_room_it_lets_go_of_the_lock)
{
	struct writer w = { .launcher_fd = -1, .dir = ledger_dir() };
	int status;

	start(&w);
	int fd = dial(&w, "ab");

	CHECK_INT(say(fd, LEDGER_EXEC_STARTED, 1, "{}"), 0);
	fill_disk(&w, fd, 2, 3);
	close(fd);
	close(w.launcher_fd);
	CHECK_INT(waitpid(w.pid, &status, 0), w.pid);
	CHECK(WIFEXITED(status));
	ledger_dir_remove(w.dir);
}

TEST(nobody_writes_a_line_of_his_own)
{
	static const struct {
		enum ledger_kind kind;
		const char *data;
	} rows[] = {
		{ LEDGER_CHECKPOINT, "{}" },
		{ LEDGER_EXEC_STARTED, "{\"a\":1" },
		{ LEDGER_EXEC_STARTED, "{}{}" },
		{ LEDGER_EXEC_STARTED, "{\"a\":1,\"a\":2}" },
		{ LEDGER_EXEC_STARTED, "[]" },
		{ LEDGER_EXEC_STARTED, "{\"a\":1},\"prev\":\"" LEDGER_ZERO "\"}" },
		{ LEDGER_EXEC_STARTED, "{}\n{}" },
	};
	struct writer w = { .launcher_fd = -1, .dir = ledger_dir() };

	start(&w);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ledger_ack a;
		int fd = dial(&w, "ee");

		CHECK_INT(say(fd, rows[i].kind, 1, rows[i].data), 0);
		while (hear(fd, &a))
			CHECK_INT((long long)a.written, 0);
		close(fd);
	}
	/* What a terminal or a reader could stumble over is escaped. */
	int fd = dial(&w, "ef");

	CHECK_INT(say(fd, LEDGER_EXEC_STARTED, 1, "{\"a\":\"\\u001b[2J\\u202e\\u007f\\n\"}"), 0);
	await(fd, 1, true);
	close(fd);
	stop(&w);
	struct read_ledger r = read_ledger(w.dir);
	size_t n;
	char *text = read_whole(w.dir, "00000000000000000001.jsonl", &n);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.of[LEDGER_EXEC_STARTED], 1);
	CHECK(strstr(text, "{\"a\":\"\\u001B[2J\\u202E\\u007f\\n\"}"));
	for (size_t i = 0; i < n; i++)
		CHECK(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
	free(text);
	ledger_dir_remove(w.dir);
}

TEST(files_can_be_read_by_who_asks)
{
	struct writer w = { .launcher_fd = -1, .dir = ledger_dir() };
	struct ledger_read q = { .type = LEDGER_READ, .tag = 7, .seq = 3 };
	union ledger_packet p;
	int got = -1;
	size_t n_fds = 1;
	char byte;

	start(&w);
	int fd = dial(&w, "ab");

	CHECK(os_send(fd, &q, sizeof q, NULL, 0) > 0);
	int n = os_recv(fd, &p, sizeof p, &got, &n_fds);

	while (n > 0 && p.type == LEDGER_ACK) {
		n_fds = 1;
		n = os_recv(fd, &p, sizeof p, &got, &n_fds);
	}
	CHECK(n > 0 && ledger_file_check(&p.file, (size_t)n, n_fds) && n_fds == 1);
	CHECK_INT(p.file.tag, 7);
	CHECK_INT((long long)p.file.first, 1);
	CHECK_INT(pread(got, &byte, 1, 0), 1);
	CHECK_INT(pwrite(got, &byte, 1, 0), -1);
	close(got);
	close(fd);
	stop(&w);
	ledger_dir_remove(w.dir);
}
