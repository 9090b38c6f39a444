#include "core/files.h"

#include "lingering.h"
#include "os/pulse.h"
#include "played_worker.h"

struct client {
	struct job job; /* first */
	int n_over;
};

static void answer(struct job *j, const struct tree_packet *p, bool is_last)
{
	(void)j;
	(void)p;
	(void)is_last;
}

static void over(struct job *j, const struct tree_answer *a)
{
	(void)a;
	((struct client *)j)->n_over++;
}

static void no_room(struct job *j)
{
	(void)j;
}

static struct client request(enum tree_verb verb)
{
	return (struct client){ .job = { .ask = { .request.verb = verb, .path = { "work/f", 6 } },
		                         .answer = answer,
		                         .over = over,
		                         .fd = -1 } };
}

static void must_start(struct client *c)
{
	struct fail f = { 0 };

	CHECK_INT(files_start(&sandbox, &c->job, &f), 0);
	CHECK_STR(f.detail, "");
}

/* The number of the request that came last; all before it are thrown away. 0: nothing came. */
static uint32_t drain(int worker)
{
	static unsigned char buf[TREE_PACKET_MAX];
	struct tree_head head = { 0 };

	while (recv(worker, buf, sizeof buf, MSG_DONTWAIT) > 0)
		memcpy(&head, buf, sizeof head);
	return head.type == TREE_REQUEST ? head.id : 0;
}

/* A worker that refuses a body before it has read all of it: free, and without room. */
static int fill_up(void)
{
	static unsigned char buf[TREE_PACKET_MAX];
	static const char piece[4096];
	struct client c = request(TREE_WRITE);
	struct tree_head head = { .type = TREE_ANSWER, .flags = TREE_LAST };

	c.job.ask.has_more = true;
	c.job.room = no_room;
	must_start(&c);
	int worker = take_worker();
	CHECK(recv(worker, buf, sizeof buf, 0) > 0);
	while (files_body(&c.job, piece, sizeof piece, false))
		continue;
	head.id = c.job.ask.id;
	worker_says(worker, (struct said){ .head = head, .code = TREE_QUOTA });
	turn(20);
	CHECK_INT(c.n_over, 1);
	return worker;
}

TEST(a_worker_without_room_is_given_nothing_and_another_one_is_started)
{
	struct client c = request(TREE_READ);

	open_all();
	AUTO(fd_close) int full = fill_up();
	must_start(&c);
	CHECK_INT(c.n_over, 0); /* it is his until it is over: not before it has begun */
	AUTO(fd_close) int other = take_worker();
	CHECK_INT(drain(other), c.job.ask.id);
	CHECK_INT(drain(full), 0);
	close_all();
	CHECK_INT(c.n_over, 1);
}

TEST(when_all_are_without_room_the_first_that_has_some_is_given_it)
{
	struct client c = request(TREE_READ);
	int workers[FILES_WORKERS_MAX];

	open_all();
	for (size_t i = 0; i < COUNT(workers); i++)
		workers[i] = fill_up();
	must_start(&c);
	turn(20);
	CHECK_INT(c.n_over, 0);
	CHECK_INT(drain(workers[3]), 0);
	turn(20);
	CHECK_INT(drain(workers[3]), c.job.ask.id);
	close_all();
	CHECK_INT(c.n_over, 1);
	for (size_t i = 0; i < COUNT(workers); i++)
		fd_close(&workers[i]);
}

/* The daemon's end. The watch is the first member of a worker (files.c). */
static int worker_fd(const struct client *c)
{
	return ((const struct watch *)(const void *)c->job.worker)->fd;
}

/* How long the daemon's loop is held up by a worker that sends a descriptor whose close sleeps. */
static uint64_t hold_up(int worker, uint32_t id)
{
	unsigned char buf[sizeof(struct tree_head) + sizeof(struct tree_answer)] = { 0 };
	struct tree_head head = {
		.type = TREE_ANSWER, .flags = TREE_LAST, .id = id, .len = sizeof(struct tree_answer)
	};

	memcpy(buf, &head, sizeof head);
	CHECK(linger_send(worker, buf, sizeof buf));
	uint64_t began = linger_now();
	turn(20);
	return linger_now() - began;
}

TEST(a_worker_that_sends_a_lingering_socket_is_ended_at_once)
{
	struct client c = request(TREE_READ), d = request(TREE_READ);

	open_all();
	CHECK_INT(loop_pulse(&loop), 0);
	must_start(&c);
	AUTO(fd_close) int worker = take_worker();
	linger_allow(worker_fd(&c));
	CHECK(hold_up(worker, c.job.ask.id) < LINGER_SOON_MS);
	CHECK_INT(c.n_over, 1);
	must_start(&d); /* and the next job has another */
	AUTO(fd_close) int other = take_worker();
	CHECK_INT(drain(other), d.job.ask.id);
	if (os_refuse_fds(monitor_fd)) /* a kernel that can: not even sent */
		CHECK(!linger_send(other, "x", 1));
	close_all();
}

TEST(control_without_the_pulse_the_loop_sleeps)
{
	struct client c = request(TREE_READ);

	open_all();
	must_start(&c);
	AUTO(fd_close) int worker = take_worker();
	linger_allow(worker_fd(&c));
	CHECK(hold_up(worker, c.job.ask.id) > LINGER_MS - 500);
	close_all();
}
