#include "io/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#include "base/fd.h"
#include "test.h"

/* ---- owners with a pipe each ------------------------------------------------------- */

struct owner {
	struct watch watch; /* first */
	int write_fd;
	int called;
	uint32_t events;
};

enum { OWNERS = LOOP_BATCH + 8 };

static struct loop loop;
static struct owner *owners[OWNERS];
static int total;

static struct owner *owner_of(struct watch *w)
{
	return (struct owner *)(void *)w;
}

static struct owner *owner_new(void (*ready)(struct watch *w, uint32_t events))
{
	struct owner *o = mem_alloc(sizeof *o);
	int fds[2];

	CHECK_INT(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	o->watch = (struct watch){ .fd = fds[0], .ready = ready };
	o->write_fd = fds[1];
	return o;
}

static void owner_free(struct owner *o)
{
	loop_remove(&loop, &o->watch);
	fd_close(&o->watch.fd);
	fd_close(&o->write_fd);
	free(o);
}

static void note(struct watch *w, uint32_t events)
{
	char byte;

	owner_of(w)->called++;
	owner_of(w)->events = events;
	total++;
	(void)!read(w->fd, &byte, 1);
}

static void note_and_end(struct watch *w, uint32_t events)
{
	note(w, events);
	loop.is_done = true;
}

static void poke(const struct owner *o)
{
	CHECK_INT(write(o->write_fd, "x", 1), 1);
}

static void open_loop(void)
{
	CHECK_INT(loop_init(&loop), 0);
}

/* Runs until everything that is ready was served: a last watch, added behind the others, ends. */
static void run_once(void)
{
	struct owner *last = owner_new(note_and_end);

	CHECK_INT(loop_add(&loop, &last->watch, EPOLLIN), 0);
	poke(last);
	loop.is_done = false;
	CHECK_INT(loop_run(&loop), 0);
	total -= last->called;
	owner_free(last);
}

/* ---- tests ------------------------------------------------------------------------- */

TEST(calls_who_is_ready_and_nobody_else)
{
	open_loop();
	for (size_t i = 0; i < 4; i++) {
		owners[i] = owner_new(note);
		CHECK_INT(loop_add(&loop, &owners[i]->watch, EPOLLIN), 0);
	}
	poke(owners[1]);
	poke(owners[3]);
	run_once();
	for (size_t i = 0; i < 4; i++) {
		CHECK_INT(owners[i]->called, i % 2);
		CHECK_INT(owners[i]->events, i % 2 ? EPOLLIN : 0);
		owner_free(owners[i]);
	}
	loop_close(&loop);
}

/* The first callback of the batch frees all others: none of them may be called any more. */
static void free_the_others(struct watch *w, uint32_t events)
{
	note(w, events);
	for (size_t i = 0; i < OWNERS; i++) {
		if (owners[i] && &owners[i]->watch != w) {
			owner_free(owners[i]);
			owners[i] = NULL;
		}
	}
	loop.is_done = true;
}

TEST(remove_and_free_inside_a_batch)
{
	size_t left = 0;

	open_loop();
	for (size_t i = 0; i < OWNERS; i++) {
		owners[i] = owner_new(free_the_others);
		CHECK_INT(loop_add(&loop, &owners[i]->watch, EPOLLIN), 0);
		poke(owners[i]);
	}
	CHECK_INT(loop_run(&loop), 0);
	CHECK_INT(total, 1);
	for (size_t i = 0; i < OWNERS; i++) {
		left += owners[i] != NULL;
		if (owners[i])
			owner_free(owners[i]);
	}
	CHECK_INT(left, 1);
	loop_close(&loop);
}

static void free_itself(struct watch *w, uint32_t events)
{
	note(w, events);
	for (size_t i = 0; i < OWNERS; i++)
		if (owners[i] && &owners[i]->watch == w)
			owners[i] = NULL;
	owner_free(owner_of(w));
}

TEST(a_callback_may_free_its_own_watch)
{
	open_loop();
	for (size_t i = 0; i < OWNERS; i++) {
		owners[i] = owner_new(free_itself);
		CHECK_INT(loop_add(&loop, &owners[i]->watch, EPOLLIN), 0);
		poke(owners[i]);
	}
	run_once();
	run_once(); /* there are more of them than one batch holds */
	CHECK_INT(total, OWNERS);
	loop_close(&loop);
}

/* The descriptor's number comes back at once, with another owner: the event that was fetched for
 * the first one is not the second one's. */
static void replace_the_other(struct watch *w, uint32_t events)
{
	size_t other = w == &owners[0]->watch;
	int fd = owners[other]->watch.fd;

	note(w, events);
	owner_free(owners[other]);
	owners[other] = owner_new(note_and_end);
	CHECK(owners[other]->watch.fd == fd || owners[other]->write_fd == fd);
	CHECK_INT(loop_add(&loop, &owners[other]->watch, EPOLLIN), 0);
	owner_of(w)->watch.ready = note;
	loop.is_done = true;
}

TEST(a_reused_number_gets_no_event_of_its_predecessor)
{
	open_loop();
	for (size_t i = 0; i < 2; i++) {
		owners[i] = owner_new(replace_the_other);
		CHECK_INT(loop_add(&loop, &owners[i]->watch, EPOLLIN), 0);
		poke(owners[i]);
	}
	CHECK_INT(loop_run(&loop), 0);
	CHECK_INT(total, 1);
	CHECK_INT(owners[0]->called + owners[1]->called, 1);
	owner_free(owners[0]);
	owner_free(owners[1]);
	loop_close(&loop);
}

TEST(more_than_one_batch_is_served)
{
	open_loop();
	for (size_t i = 0; i < OWNERS; i++) {
		owners[i] = owner_new(note);
		CHECK_INT(loop_add(&loop, &owners[i]->watch, EPOLLIN), 0);
		poke(owners[i]);
	}
	run_once();
	run_once();
	for (size_t i = 0; i < OWNERS; i++) {
		CHECK_INT(owners[i]->called, 1);
		owner_free(owners[i]);
	}
	loop_close(&loop);
}

TEST(level_triggered_what_is_left_is_told_again)
{
	open_loop();
	owners[0] = owner_new(note);
	CHECK_INT(loop_add(&loop, &owners[0]->watch, EPOLLIN), 0);
	for (int i = 0; i < 3; i++)
		poke(owners[0]);
	for (int i = 1; i <= 3; i++) {
		run_once();
		CHECK_INT(owners[0]->called, i);
	}
	run_once();
	CHECK_INT(owners[0]->called, 3);
	owner_free(owners[0]);
	loop_close(&loop);
}

TEST(change_mutes_and_wakes)
{
	open_loop();
	owners[0] = owner_new(note);
	CHECK_INT(loop_add(&loop, &owners[0]->watch, EPOLLIN), 0);
	CHECK_INT(loop_change(&loop, &owners[0]->watch, 0), 0);
	poke(owners[0]);
	run_once();
	CHECK_INT(owners[0]->called, 0);
	CHECK_INT(loop_change(&loop, &owners[0]->watch, EPOLLIN), 0);
	run_once();
	CHECK_INT(owners[0]->called, 1);
	owner_free(owners[0]);
	loop_close(&loop);
}

/* Muted does not mean deaf: the end is always told. */
TEST(the_other_end_gone_is_told_with_no_events_asked_for)
{
	open_loop();
	owners[0] = owner_new(note_and_end);
	CHECK_INT(loop_add(&loop, &owners[0]->watch, 0), 0);
	fd_close(&owners[0]->write_fd);
	CHECK_INT(loop_run(&loop), 0);
	CHECK_INT(owners[0]->events, EPOLLHUP);
	owner_free(owners[0]);
	loop_close(&loop);
}

TEST(remove_accepts_what_was_never_added)
{
	struct watch none = { .fd = -1 };

	open_loop();
	owners[0] = owner_new(note);
	loop_remove(&loop, &owners[0]->watch);
	loop_remove(&loop, &none);
	CHECK_INT(loop_add(&loop, &owners[0]->watch, EPOLLIN), 0);
	loop_remove(&loop, &owners[0]->watch);
	owner_free(owners[0]); /* a second time */
	loop_close(&loop);
}

TEST(what_epoll_refuses_is_an_error)
{
	AUTO(fd_close) int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct watch plain = { .fd = file, .ready = note };
	struct watch none = { .fd = -1, .ready = note };

	open_loop();
	owners[0] = owner_new(note);
	CHECK_INT(loop_add(&loop, &plain, EPOLLIN), -EPERM);
	CHECK_INT(loop_add(&loop, &none, EPOLLIN), -EBADF);
	CHECK_INT(loop_change(&loop, &owners[0]->watch, EPOLLIN), -ENOENT);
	CHECK_INT(loop_add(&loop, &owners[0]->watch, EPOLLIN), 0);
	CHECK_INT(loop_add(&loop, &owners[0]->watch, EPOLLIN), -EEXIST);
	owner_free(owners[0]);
	loop_close(&loop);
}

static void on_alarm(int sig)
{
	(void)sig;
	poke(owners[0]);
}

TEST(a_signal_handler_does_not_end_it)
{
	struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART */

	open_loop();
	owners[0] = owner_new(note_and_end);
	CHECK_INT(loop_add(&loop, &owners[0]->watch, EPOLLIN), 0);
	CHECK_INT(sigaction(SIGALRM, &action, NULL), 0);
	CHECK_INT(setitimer(ITIMER_REAL, &soon, NULL), 0);
	CHECK_INT(loop_run(&loop), 0);
	CHECK_INT(owners[0]->called, 1);
	owner_free(owners[0]);
	loop_close(&loop);
}

TEST(close_may_be_called_twice)
{
	open_loop();
	CHECK_INT(fcntl(loop.epoll_fd, F_GETFD), FD_CLOEXEC);
	loop_close(&loop);
	loop_close(&loop);
	CHECK_INT(loop.epoll_fd, -1);
}
