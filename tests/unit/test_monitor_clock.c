#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "test.h"

/* ---- a monitor with deadlines and nothing else ------------------------------------- */

static struct monitor m;
static struct plan plan;
static struct box box = { .plan = &plan, .cgroup = { .box_fd = -1, .mon_fd = -1 } };

/* A process that stands for the command; pid 1 too, so that the monitor's end takes it along. */
static void start_command(void (*code)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		code();
		_exit(0);
	}
	m.command.pid = m.init.pid = pid;
}

static void sleep_on(void)
{
	while (pause() < 0)
		;
}

static void spin_one_second(void)
{
	for (uint64_t start = clock_ms(); clock_ms() - start < 1000;)
		;
	sleep_on();
}

/* Runs in a child until a deadline ends it; returns its report. `then` runs first, with the clock
 * open. The command counts as waited for, so that no time of grace is given. */
static struct channel_end run(void (*command)(void), void (*then)(void))
{
	struct channel_packet p = { 0 };
	struct channel_end end;
	struct err e = { 0 };
	int pair[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		fd_close(&pair[0]);
		m.box = &box;
		m.control.fd = pair[1];
		m.command.pty_fd = m.streams[0].watch.fd = m.streams[1].watch.fd = -1;
		m.has_exited = true;
		start_command(command);
		if (loop_init(&m.loop) < 0 || clock_open(&m, &e) < 0)
			_exit(1);
		if (then)
			then();
		(void)loop_run(&m.loop);
		_exit(2);
	}
	fd_close(&pair[1]);
	ssize_t n;
	do
		n = recv(pair[0], &p, sizeof p, 0);
	while (n > 0 && p.head.type == CH_EBB);
	CHECK_INT(n, sizeof p.head + sizeof end);
	CHECK_INT(p.head.type, CH_END);
	memcpy(&end, p.data, sizeof end);
	fd_close(&pair[0]);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	printf("# %s after %llu ms: %s\n", run_state_name((enum run_state)end.state),
	       (unsigned long long)end.ms, end.reason);
	return end;
}

/* Not before its time; the upper bound is only for a clock that stands. */
static void check_ms(const struct channel_end *end, uint64_t least)
{
	CHECK(end->ms >= least);
	CHECK(end->ms < least + 5000);
}

/* ---- tests ------------------------------------------------------------------------- */

TEST(each_deadline_ends_with_its_own_word)
{
	static const struct {
		uint64_t timeout, wall, idle;
		enum run_state state;
		const char *reason;
	} cases[] = {
		{ 100, 0, 0, RUN_TIMEOUT, "timeout reached" },
		{ 0, 100, 0, RUN_EXPIRED, "wall limit reached" },
		{ 0, 0, 100, RUN_EXPIRED, "idle limit reached" },
		{ 100, 60000, 60000, RUN_TIMEOUT, "timeout reached" },
		{ 60000, 100, 60000, RUN_EXPIRED, "wall limit reached" },
		{ 60000, 60000, 100, RUN_EXPIRED, "idle limit reached" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		plan.timeout_ms = cases[i].timeout;
		plan.limits[LIMIT_WALL] = cases[i].wall;
		plan.limits[LIMIT_IDLE] = cases[i].idle;
		struct channel_end end = run(sleep_on, NULL);

		CHECK_INT(end.state, cases[i].state);
		CHECK_STR(end.reason, cases[i].reason);
		check_ms(&end, 100);
	}
}

static void turn_off_the_timeout(void)
{
	clock_set(&m, AT_TIMEOUT, 0);
}

TEST(a_deadline_that_is_turned_off_does_not_fire)
{
	plan.timeout_ms = 50;
	plan.limits[LIMIT_WALL] = 300;
	struct channel_end end = run(sleep_on, turn_off_the_timeout);

	CHECK_STR(end.reason, "wall limit reached");
	check_ms(&end, 300);
}

static void move_the_timeout(void)
{
	clock_set(&m, AT_TIMEOUT, 300);
}

TEST(a_deadline_can_be_moved)
{
	plan.timeout_ms = 50;
	struct channel_end end = run(sleep_on, move_the_timeout);

	CHECK_STR(end.reason, "timeout reached");
	check_ms(&end, 300);
}

/* A byte just before the end of the idle time: the time starts again with it. */
static void active_in_a_while(void)
{
	usleep(250000);
	clock_active(&m);
}

TEST(a_byte_starts_the_idle_time_anew)
{
	plan.limits[LIMIT_IDLE] = 300;
	struct channel_end end = run(sleep_on, active_in_a_while);

	CHECK_STR(end.reason, "idle limit reached");
	check_ms(&end, 550);
}

TEST(who_computes_is_not_idle)
{
	plan.limits[LIMIT_IDLE] = 200;
	struct channel_end end = run(spin_one_second, NULL);

	CHECK_STR(end.reason, "idle limit reached");
	check_ms(&end, 1000);
}

TEST(time_does_not_go_back)
{
	uint64_t last = clock_ms();

	for (int i = 0; i < 100000; i++) {
		uint64_t now = clock_ms();

		CHECK(now >= last);
		last = now;
	}
}
