#include "core/dial.h"

#include <dirent.h>

#include "lingering.h"
#include "played_worker.h"

static int worker_fd = -1, near_fd = -1;
static uint32_t job_id;

static struct seen {
	int changes;
	bool is_connected, is_far_closed, is_over;
	enum fail_code code;
} seen;

static void on_change(struct dial *d)
{
	seen = (struct seen){ seen.changes + 1, d->is_connected, d->is_far_closed, d->is_over,
		              d->fail.code };
}

static void end_all(void)
{
	close_all();
	fd_close(&worker_fd);
	fd_close(&near_fd);
}

/* Starts one; the worker has its request, and the descriptor that came along. */
static struct dial *start(void)
{
	static unsigned char buf[TREE_PACKET_MAX];
	struct tree_packet p;
	struct fail f = { 0 };
	struct err e;
	size_t n = 1;
	struct dial *d = dial_start(&sandbox, 3000, 100, &f);

	CHECK(d);
	d->changed = on_change;
	worker_fd = take_worker();
	int len = os_recv(worker_fd, buf, sizeof buf, &near_fd, &n);
	CHECK(len > 0 && n == 1);
	CHECK_INT(tree_packet_parse(buf, (size_t)len, &p, &e), 0);
	CHECK_INT(p.request.verb, TREE_DIAL);
	CHECK_INT((long long)p.request.from, 3000);
	job_id = p.head.id;
	return d;
}

static void say(enum tree_type type, enum tree_code code, bool is_last, const int *fds, size_t n)
{
	struct tree_head head = { .type = type, .flags = is_last ? TREE_LAST : 0, .id = job_id };

	worker_says(worker_fd, (struct said){ head, code, fds, n });
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST(a_connection_opens_carries_and_ends)
{
	char buf[8] = "";

	open_all();
	struct dial *d = start();

	say(TREE_ANSWER, TREE_OK, false, NULL, 0);
	turn(20);
	CHECK(seen.changes == 1 && seen.is_connected && !seen.is_over);
	CHECK_INT(send(near_fd, "hi", 2, 0), 2);
	CHECK_INT(recv(d->fd, buf, sizeof buf, MSG_DONTWAIT), 2);
	say(TREE_DATA, TREE_OK, false, NULL, 0);
	turn(20);
	CHECK(seen.is_far_closed && !seen.is_over);
	say(TREE_END, TREE_OK, true, NULL, 0);
	turn(20);
	CHECK(seen.is_over);
	dial_end(d);
	end_all();
}

TEST(refusals_have_their_code)
{
	static const struct {
		enum tree_code code;
		enum fail_code fail;
	} rows[] = {
		{ TREE_NOT_FOUND, FAIL_NOT_FOUND },
		{ TREE_EXPIRED, FAIL_EXPIRED },
		{ TREE_BUSY, FAIL_SANDBOX_UNAVAILABLE },
		{ TREE_OK, FAIL_SANDBOX_UNAVAILABLE }, /* and at its end at once: nonsense */
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		open_all();
		struct dial *d = start();

		say(TREE_ANSWER, rows[i].code, true, NULL, 0);
		turn(20);
		CHECK(seen.is_over && !seen.is_connected);
		CHECK_STR(fail_name(seen.code), fail_name(rows[i].fail));
		dial_end(d);
		end_all();
	}
}

/* A kernel from 6.16 on lets nobody send them; here it is one before that. */
TEST(descriptors_that_come_from_inside_are_not_taken_and_end_the_worker)
{
	int pipes[2], sockets[2];

	CHECK_INT(pipe(pipes), 0);
	CHECK_INT(os_socketpair(sockets, SOCK_STREAM), 0);
	open_all();
	struct dial *d = start();
	int before = open_descriptors();
	const int bad[] = { pipes[0], sockets[0], core.tree_fd, worker_fd };

	linger_allow(((const struct watch *)(const void *)d->job.worker)->fd);
	say(TREE_ANSWER, TREE_OK, false, bad, COUNT(bad));
	say(TREE_DATA, TREE_OK, false, bad, COUNT(bad));
	turn(20);
	CHECK(!seen.is_connected && seen.is_over);
	CHECK_INT(open_descriptors(), before - 1); /* that of the worker */
	dial_end(d);
	end_all();
}

TEST(a_worker_that_talks_nonsense_is_ended)
{
	open_all();
	struct dial *d = start();

	say(TREE_DATA, TREE_OK, false, NULL, 0); /* before its answer */
	turn(20);
	CHECK(seen.is_over && !seen.is_connected && !seen.is_far_closed);
	CHECK_STR(fail_name(seen.code), "sandbox_unavailable");
	dial_end(d);
	end_all();
}

/* It would hold the worker of a connection that nobody has any more. */
TEST(who_leaves_does_not_wait_for_the_worker)
{
	char c;

	open_all();
	struct dial *d = start();

	say(TREE_ANSWER, TREE_OK, false, NULL, 0);
	turn(20);
	int changes = seen.changes;

	dial_end(d);
	CHECK_INT(recv(near_fd, &c, 1, MSG_DONTWAIT), 0); /* hung up at once */
	turn(2200);
	CHECK_INT(recv(worker_fd, &c, 1, MSG_DONTWAIT), 0); /* and the worker ended, in the end */
	CHECK_INT(seen.changes, changes);
	end_all();
}

TEST(a_sandbox_that_does_not_run_says_so)
{
	struct fail f = { 0 };

	open_all();
	sandbox.state = SANDBOX_PAUSED;
	CHECK(!dial_start(&sandbox, 3000, 100, &f));
	CHECK_STR(fail_name(f.code), "conflict");
	sandbox.state = SANDBOX_STOPPED;
	CHECK(!dial_start(&sandbox, 3000, 100, &f));
	CHECK_STR(fail_name(f.code), "conflict");
	end_all();
}
