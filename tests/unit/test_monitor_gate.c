/* What a monitor keeps for the gate. The test plays both: the client and a child. */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "test_child.h"

/* ---- start ------------------------------------------------------------------------- */

TEST(a_child_starts_when_rules_and_socket_are_there_in_any_order)
{
	start();
	give_gate();
	CHECK(!hear(50));
	give_rules(3, "{}");
	await(G_START);
	CHECK_INT(n_fds, GATE_FDS);
	CHECK_STR(p.start.id, "sb_test");
	CHECK_INT(p.start.generation, 3);
	CHECK_INT(p.start.credit, GATE_CREDIT);
	CHECK_STR(rules_text(fds[GATE_RULES]), "{}");
	for (int i = GATE_TCP4; i <= GATE_UDP6; i++) {
		int type = 0, domain = 0;
		socklen_t n = sizeof type;

		CHECK_INT(getsockopt(fds[i], SOL_SOCKET, SO_TYPE, &type, &n), 0);
		CHECK_INT(type, i <= GATE_TCP6 ? SOCK_STREAM : SOCK_DGRAM);
		CHECK_INT(getsockopt(fds[i], SOL_SOCKET, SO_DOMAIN, &domain, &n), 0);
		CHECK_INT(domain, i == GATE_TCP4 || i == GATE_UDP4 ? AF_INET : AF_INET6);
	}
	say(G_UP);
	struct gate_ruled r = await_ruled();
	CHECK_INT(r.generation, 3);
	CHECK_INT(r.is_refused, 0);
	stop();
}

TEST(connections_wait_in_the_socket_for_a_child)
{
	serve();
	AUTO(fd_close)
	int log =
	    box_exec(&t, 2,
	             (struct command_ask){
			 .argv = ARGV((char *)(uintptr_t) "/bin/bash", (char *)(uintptr_t) "-c",
	                              (char *)(uintptr_t) "exec 3<>/dev/tcp/192.0.2.1/80 && "
	                                                  "echo hi >&3 && read -r a <&3; "
	                                                  "echo got $a") });
	lose_child();
	give_gate();
	await(G_START);
	struct pollfd ready = { .fd = fds[GATE_TCP4], .events = POLLIN };
	CHECK_INT(poll(&ready, 1, TEST_WAIT_MS), 1);
	AUTO(fd_close) int got = accept4(fds[GATE_TCP4], NULL, NULL, SOCK_CLOEXEC);
	char buf[8];
	CHECK_INT(recv(got, buf, sizeof buf, 0), 3);
	CHECK_INT(send(got, "there\n", 6, 0), 6);
	CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), "got there\n");
	stop();
}

TEST(the_next_child_gets_the_same)
{
	struct stat names, again;
	uint8_t seed[GATE_SEED_SIZE];

	start();
	give_rules(1, "one");
	give_gate();
	await(G_START);
	CHECK_INT(fstat(fds[GATE_NAMES], &names), 0);
	memcpy(seed, p.start.seed, sizeof seed);
	say(G_UP);
	await_ruled();
	lose_child();
	give_gate();
	await(G_START);
	CHECK_INT(fstat(fds[GATE_NAMES], &again), 0);
	CHECK_INT(names.st_ino, again.st_ino);
	CHECK_INT(memcmp(seed, p.start.seed, sizeof seed), 0);
	CHECK_STR(rules_text(fds[GATE_RULES]), "one");
	stop();
}

TEST(a_second_child_is_not_taken)
{
	serve();
	int first = child;

	child = -1;
	give_gate();
	CHECK(!hear(TEST_WAIT_MS)); /* it was closed */
	fd_close(&child);
	child = first;
	give_rules(8, "eight");
	await(G_RULES);
	stop();
}

TEST(a_sandbox_without_a_network_has_no_use_for_it)
{
	child = -1;
	box_start(&t, true, FLAGS());
	box_await(&t, CH_READY, 0);
	give_rules(1, "{}");
	give_gate();
	CHECK(!hear(TEST_WAIT_MS));
	acknowledge(5);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	CHECK(box_hear(&t, TEST_WAIT_MS));
	CHECK_INT(t.packet.head.type, CH_SYNCED);
	stop();
}

/* ---- rules ------------------------------------------------------------------------- */

TEST(rules_that_are_refused_leave_the_old_ones)
{
	serve();
	give_rules(8, "eight");
	await(G_RULES);
	CHECK_INT(p.rules.generation, 8);
	CHECK_STR(rules_text(fds[0]), "eight");
	p = (struct gate_packet){
		.ruled = { .generation = 8, .is_refused = 1, .reason = "no such host" }
	};
	say(G_RULED);
	struct gate_ruled r = await_ruled();
	CHECK_INT(r.is_refused, 1);
	CHECK_STR(r.reason, "no such host");
	lose_child();
	give_gate();
	await(G_START);
	CHECK_INT(p.start.generation, 7);
	CHECK_STR(rules_text(fds[GATE_RULES]), "seven");
	stop();
}

TEST(rules_that_are_taken_are_the_next_childs)
{
	serve();
	give_rules(8, "eight");
	await(G_RULES);
	p = (struct gate_packet){ .ruled = { .generation = 8, .closed = 2 } };
	say(G_RULED);
	CHECK_INT(await_ruled().closed, 2);
	lose_child();
	give_gate();
	await(G_START);
	CHECK_INT(p.start.generation, 8);
	stop();
}

/* They may be tighter: nobody serves by the old ones meanwhile. */
TEST(rules_that_come_without_a_child_are_what_the_next_begins_with)
{
	serve();
	lose_child();
	give_rules(9, "nine");
	give_gate();
	await(G_START);
	CHECK_INT(p.start.generation, 9);
	fd_close(&child); /* before it is up: they were the reason, as far as anybody knows */
	struct gate_ruled r = await_ruled();
	CHECK_INT(r.generation, 9);
	CHECK_INT(r.is_refused, 1);
	give_gate();
	await(G_START);
	CHECK_INT(p.start.generation, 7);
	stop();
}

TEST(only_the_last_of_many_rules_counts)
{
	serve();
	give_rules(8, "eight");
	give_rules(9, "nine");
	await(G_RULES);
	await(G_RULES);
	CHECK_INT(p.rules.generation, 9);
	p = (struct gate_packet){ .ruled = { .generation = 8 } };
	say(G_RULED);
	p = (struct gate_packet){ .ruled = { .generation = 9 } };
	say(G_RULED);
	CHECK_INT(await_ruled().generation, 9);
	stop();
}

/* ---- records ----------------------------------------------------------------------- */

TEST(records_go_to_the_client_with_the_process_if_there_is_one)
{
	serve();
	say_record(1, GATE_ALLOW);
	struct channel_net net = await_net(0);
	CHECK_INT(net.at, 1);
	CHECK_INT(net.record.seq, 1);
	CHECK_STR(net.record.name, "example.org");

	AUTO(fd_close) int one = box_sh(&t, 4, "sleep 100");
	box_await(&t, CH_STARTED, 4);
	say_record(2, GATE_DENY);
	CHECK_INT(await_net(4).at, 2);
	AUTO(fd_close) int two = box_sh(&t, 5, "sleep 100");
	box_await(&t, CH_STARTED, 5);
	say_record(3, GATE_DENY);
	CHECK_INT(await_net(0).at, 3);
	stop();
}

/* The monitor has done all that it heard of. */
static void await_quiet(void)
{
	char path[32], state = 0;
	int n_unread = -1;

	snprintf(path, sizeof path, "/proc/%d/stat", t.monitor_pid);
	for (int i = 0; i < 20000 && (n_unread || state != 'S'); i++) {
		usleep(1000);
		CHECK_INT(ioctl(child, SIOCOUTQ, &n_unread), 0);
		AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
		char stat[128] = "";

		CHECK(read(fd, stat, sizeof stat - 1) > 0);
		state = strrchr(stat, ')')[2];
	}
	CHECK_INT(n_unread, 0);
	CHECK_INT(state, 'S');
}

TEST(a_denial_is_told_before_the_end_of_the_command)
{
	serve();
	AUTO(fd_close)
	int log = box_exec(
	    &t, 1, (struct command_ask){ .argv = ARGV((char[]){ "cat" }), .has_stdin = true });
	box_await(&t, CH_STARTED, 1);
	say_record(1, GATE_DENY);
	await_quiet();
	box_say(&t, CH_EOF, 1, NULL, 0);
	bool is_told = false;
	do {
		CHECK(box_hear(&t, TEST_WAIT_MS));
		is_told |= t.packet.head.type == CH_NET;
	} while (t.packet.head.type != CH_EXIT);
	CHECK(is_told);
	stop();
}

TEST(a_new_client_gets_what_was_not_acknowledged)
{
	serve();
	for (uint64_t i = 1; i <= 5; i++)
		say_record(i, GATE_ALLOW);
	for (uint64_t i = 1; i <= 5; i++)
		CHECK_INT(await_net(0).at, i);
	acknowledge(2);
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	for (uint64_t i = 3; i <= 5; i++)
		CHECK_INT(await_net(0).record.seq, i);
	box_await(&t, CH_SYNCED, 0);
	acknowledge(99);
	say_record(6, GATE_ALLOW);
	CHECK_INT(await_net(0).at, 6);
	stop();
}

/* As many as the child may send; 0: it was told nothing. */
static uint32_t hear_credit(void)
{
	uint32_t n = 0;

	await_quiet();
	while (hear(0)) {
		CHECK_INT(p.head.type, G_CREDIT);
		n += p.credit.n;
	}
	return n;
}

TEST(the_spool_is_bounded_by_credit)
{
	uint32_t credit = GATE_CREDIT, sent = 0;

	serve();
	while (credit > 0) {
		for (; credit > 0; credit--)
			say_record(++sent, GATE_ALLOW);
		credit = hear_credit();
		CHECK(sent < 2000);
	}
	CHECK_INT(sent, 640);
	uint64_t last = 0;
	while (last < sent) { /* a window at a time */
		struct channel_net net = await_net(0);

		CHECK_INT(net.at, ++last);
		if (last % 50 == 0 || last == sent)
			acknowledge(last);
	}
	CHECK(hear_credit() > GATE_CREDIT / 2);
	/* Ends of what was open come without credit. */
	for (uint32_t i = 0; i < GATE_CREDIT + 20; i++)
		say_record(++sent, GATE_ALLOW);
	while (last < sent) {
		CHECK_INT(await_net(0).at, ++last);
		acknowledge(last);
	}
	stop();
}

TEST(the_last_records_come_before_the_end)
{
	serve();
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	CHECK(!hear(TEST_WAIT_MS)); /* the monitor has no more to say */
	usleep(500000);             /* the machine is busy */
	say_record(1, GATE_ALLOW);
	say_record(2, GATE_ALLOW);
	fd_close(&child);
	CHECK_INT(await_net(0).at, 1);
	CHECK_INT(await_net(0).at, 2);
	box_await(&t, CH_END, 0);
	box_end(&t);
}

TEST(a_child_that_does_not_end_is_not_waited_for)
{
	serve();
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
	fd_close(&child);
}

/* ---- hostile ----------------------------------------------------------------------- */

TEST(a_child_that_talks_nonsense_is_replaced)
{
	static const struct gate_packet bad[] = {
		{ .head = { G_TYPES, 0 } },
		{ .head = { G_RECORD, 0 } },
		{ .head = { G_START, sizeof(struct gate_start) } },
		{ .head = { G_RECORD, sizeof(struct gate_record) }, .record = { .seq = 0 } },
		{ .head = { G_RECORD, sizeof(struct gate_record) },
		  .record = { .seq = 1, .name = "a\nb" } },
		{ .head = { G_CREDIT, sizeof(struct gate_credit) }, .credit = { .n = 9 } },
	};

	serve();
	for (size_t i = 0; i < COUNT(bad); i++) {
		size_t n = sizeof bad[i].head + bad[i].head.len;

		CHECK_INT(send(child, &bad[i], n, MSG_NOSIGNAL), (ssize_t)n);
		box_await(&t, CH_GATELESS, 0);
		give_gate();
		await(G_START);
		say(G_UP);
		await_ruled();
	}
	stop();
}

TEST(it_is_told_after_a_sync_that_no_child_is_there)
{
	start();
	give_rules(1, "{}");
	box_say(&t, CH_SYNC, 0, NULL, 0);
	box_await(&t, CH_GATELESS, 0);
	give_gate();
	await(G_START);
	say(G_UP);
	await_ruled();
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	do {
		CHECK(box_hear(&t, TEST_WAIT_MS));
		CHECK(t.packet.head.type != CH_GATELESS);
	} while (t.packet.head.type != CH_SYNCED);
	stop();
}

/* ---- asks -------------------------------------------------------------------------- */

TEST(who_asks_is_told_to_every_client_until_somebody_answers)
{
	const struct gate_answer yes = { .ask = 11, .is_allowed = 1 };

	serve();
	p = (struct gate_packet){
		.ask = { .ask = 11, .seq = 1, .timeout_ms = 60000, .port = 443, .name = "a.test" }
	};
	say(G_ASK);
	for (int i = 0; i < 2; i++) {
		struct gate_ask a;

		box_await(&t, CH_ASK, 0);
		CHECK_INT(t.packet.head.len, sizeof a);
		memcpy(&a, t.packet.data, sizeof a);
		CHECK_INT(a.ask, 11);
		CHECK_STR(a.name, "a.test");
		if (i == 1)
			break;
		box_connect(&t);
		box_await(&t, CH_READY, 0);
		box_say(&t, CH_SYNC, 0, NULL, 0);
	}
	box_say(&t, CH_ANSWER, 0, &yes, sizeof yes);
	await(G_ANSWER);
	CHECK_INT(p.answer.ask, 11);
	CHECK_INT(p.answer.is_allowed, 1);
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	do {
		CHECK(box_hear(&t, TEST_WAIT_MS));
		CHECK(t.packet.head.type != CH_ASK);
	} while (t.packet.head.type != CH_SYNCED);
	stop();
}

static void say_ask(uint64_t ask)
{
	p = (struct gate_packet){ .ask = { .ask = ask,
		                           .seq = ask,
		                           .timeout_ms = 60000,
		                           .port = 443,
		                           .name = "a.test" } };
	say(G_ASK);
}

static void say_unask(uint64_t ask)
{
	p = (struct gate_packet){ .unask.ask = ask };
	say(G_UNASK);
}

static uint64_t await_number(enum channel_type type)
{
	uint64_t number;

	box_await(&t, type, 0);
	memcpy(&number, t.packet.data, sizeof number); /* the first field of both */
	return number;
}

TEST(an_ask_that_nobody_waits_for_is_withdrawn)
{
	serve();
	say_ask(11);
	CHECK_INT(await_number(CH_ASK), 11);
	say_ask(12);
	CHECK_INT(await_number(CH_ASK), 12);
	say_unask(11);
	CHECK_INT(await_number(CH_UNASK), 11);
	say_unask(77); /* of none */
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	CHECK_INT(await_number(CH_ASK), 12);
	say_unask(12);
	CHECK_INT(await_number(CH_UNASK), 12);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	do {
		CHECK(box_hear(&t, TEST_WAIT_MS));
		CHECK(t.packet.head.type != CH_ASK && t.packet.head.type != CH_UNASK);
	} while (t.packet.head.type != CH_SYNCED);
	stop();
}

TEST(asks_of_a_child_that_dies_are_withdrawn)
{
	serve();
	say_ask(11);
	CHECK_INT(await_number(CH_ASK), 11);
	fd_close(&child);
	CHECK_INT(await_number(CH_UNASK), 11);
	box_await(&t, CH_GATELESS, 0);
	stop();
}

/* What was withdrawn while nobody listened takes no room from those that wait. */
TEST(asks_that_come_and_go_leave_room)
{
	serve();
	fd_close(&t.fd);
	for (uint64_t i = 1; i <= 200; i++) {
		say_ask(i);
		say_unask(i);
	}
	say_ask(201);
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	while (await_number(CH_ASK) != 201)
		; /* it may be in the middle of them */
	stop();
}

/* ---- marks --------------------------------------------------------------------------- */

static void say_marks(const char *value)
{
	static const uint8_t key[MARKS_KEY] = { 42 };
	static struct marks all;

	marks_begin(&all, key);
	if (value)
		CHECK(marks_add(&all, "one", span_of(value)));
	memset(&p, 0, sizeof p);
	marks_tell(&all, 0, &p.marks);
	p.head = (struct gate_head){ G_MARKS, sizeof p.marks };
	CHECK_INT(send(child, &p, gate_size(&p), MSG_NOSIGNAL), (ssize_t)gate_size(&p));
}

static int run_sh(uint32_t num, const char *script)
{
	char *argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
		         (char *)(uintptr_t)script, NULL };

	return box_exec(&t, num, (struct command_ask){ .argv = argv, .has_stdin = true });
}

/* Halves are held for 200 ms, and a busy machine may take longer from one to the other. */
static bool are_halves_masked(uint32_t num)
{
	AUTO(fd_close) int log = run_sh(num, "printf 'a value of '; sleep 0.02; printf sixteen");

	CHECK_INT(box_await_exit(&t, num).exit_code, 0);
	return strcmp(box_text(log, LOG_OUT), "******************") == 0;
}

TEST(what_the_gate_marks_is_masked_in_output_and_told_of_before_the_end)
{
	uint32_t num = 4;

	serve();
	say_marks("a value of sixteen");
	await_quiet();
	while (!are_halves_masked(num))
		CHECK(++num < 100);
	AUTO(fd_close)
	int log = run_sh(2, "printf 'a value of sixteen.'; read x; printf 'a value of sixteen'");
	box_await(&t, CH_MASKED, 2);
	struct channel_masked masked;
	memcpy(&masked, t.packet.data, sizeof masked);
	CHECK_STR(masked.name, "one");
	CHECK_INT((int)masked.hits, 1);
	box_say(&t, CH_IN, 2, "\n", 1);
	CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), "******************.******************");
	say_marks(NULL);
	await_quiet();
	AUTO(fd_close) int after = run_sh(3, "printf 'a value of sixteen'");
	CHECK_INT(box_await_exit(&t, 3).exit_code, 0);
	CHECK_STR(box_text(after, LOG_OUT), "a value of sixteen");
	stop();
}

TEST(marks_that_are_none_end_the_child)
{
	serve();
	memset(&p, 0, sizeof p);
	p.head = (struct gate_head){ G_MARKS, sizeof p.marks };
	p.marks.n = MARKS_EACH + 1;
	CHECK_INT(send(child, &p, gate_size(&p), MSG_NOSIGNAL), (ssize_t)gate_size(&p));
	box_await(&t, CH_GATELESS, 0);
	stop();
}
