/* Processes of a kept sandbox: start, failure, kill, tree, clients that come and go. */
#include "test_box.h"

static struct test_box t;

#define FLAGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void start(const char *const *flags)
{
	box_start(&t, true, flags);
	box_await(&t, CH_READY, 0);
}

static void stop(void)
{
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}

static void need_leaves(void)
{
	if (!cgroup_has_leaves(&t.box.cgroup)) {
		stop();
		SKIP("needs a cgroup for each process");
	}
}

/* ---- starting ---------------------------------------------------------------------- */

TEST(a_process_that_cannot_be_executed_fails_and_the_next_does_not)
{
	static const struct {
		const char *program, *cwd, *part;
		enum err_kind kind;
	} cases[] = {
		{ "no-such-program", NULL, "execute: no-such-program", ERR_NOT_FOUND },
		{ "/etc/passwd", NULL, "execute: /etc/passwd", ERR_DENIED },
		{ "/bin/true", "/not/there", "go to the working directory", ERR_INTERNAL },
	};
	struct err e;

	start(FLAGS());
	for (uint32_t i = 0; i < COUNT(cases); i++) {
		char *const argv[] = { (char *)(uintptr_t)cases[i].program, NULL };
		AUTO(fd_close)
		int log =
		    box_exec(&t, i + 1, (struct command_ask){ .argv = argv, .cwd = cases[i].cwd });

		box_await(&t, CH_FAIL, i + 1);
		memcpy(&e, t.packet.data, sizeof e);
		printf("# %s\n", e.msg);
		CHECK(strstr(e.msg, cases[i].part) == e.msg);
		if (cases[i].kind != ERR_INTERNAL)
			CHECK_INT(e.kind, cases[i].kind);
	}
	AUTO(fd_close) int log = box_sh(&t, 9, "exit 5");
	CHECK_INT(box_await_exit(&t, 9).exit_code, 5);
	stop();
}

TEST(a_number_is_used_once_at_a_time)
{
	start(FLAGS());
	AUTO(fd_close) int first = box_sh(&t, 1, "sleep 100");
	AUTO(fd_close) int second = box_sh(&t, 1, "true");
	box_await(&t, CH_FAIL, 1);
	stop();
}

TEST(a_long_command_comes_whole)
{
	enum { BYTES = 100000 };
	AUTO(freep) char *arg = mem_alloc(BYTES + 1);
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh",
		               (char *)(uintptr_t) "-c",
		               (char *)(uintptr_t) "echo ${#1} ${#2}",
		               (char *)(uintptr_t) "sh",
		               arg,
		               arg,
		               NULL };

	memset(arg, 'x', BYTES);
	start(FLAGS());
	AUTO(fd_close) int log = box_exec(&t, 1, (struct command_ask){ .argv = argv });
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), "100000 100000\n");
	stop();
}

TEST(another_user_inside)
{
	char *const argv[] = { (char *)(uintptr_t) "/usr/bin/id", (char *)(uintptr_t) "-u", NULL };

	start(FLAGS());
	AUTO(fd_close)
	int log = box_exec(&t, 1, (struct command_ask){ .argv = argv, .uid = 7, .gid = 8 });
	if (geteuid() != 0) {
		box_await(&t, CH_FAIL, 1);
		stop();
		return;
	}
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), "7\n");
	stop();
}

/* Waits until the word is in the log. */
static void await_text_after(int log, size_t from, const char *word)
{
	AWAIT(strstr(box_text(log, LOG_OUT) + from, word));
}

static void await_text(int log, const char *word)
{
	await_text_after(log, 0, word);
}

/* The same walls for everybody: all see one another's files, processes and network. */
TEST(processes_share_the_sandbox)
{
	start(FLAGS());
	AUTO(fd_close) int a = box_sh(&t, 1, "echo hello >/tmp/x; echo ready; sleep 100");
	await_text(a, "ready");
	AUTO(fd_close)
	int b =
	    box_sh(&t, 2,
	           "cat /tmp/x; ps ax | grep -c '[s]leep 100'; for n in mnt pid net ipc uts user "
	           "cgroup; do readlink /proc/self/ns/$n; done; cat /proc/self/cgroup");
	CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
	printf("# %s", box_text(b, LOG_OUT));
	CHECK(strncmp(box_text(b, LOG_OUT), "hello\n", 6) == 0);
	AUTO(fd_close)
	int c = box_sh(&t, 3,
	               "for n in mnt pid net ipc uts user cgroup; do readlink "
	               "/proc/self/ns/$n; done");
	CHECK_INT(box_await_exit(&t, 3).exit_code, 0);
	char *same = mem_strdup(box_text(c, LOG_OUT));
	CHECK(strstr(box_text(b, LOG_OUT), same));
	free(same);
	stop();
}

/* ---- ending ------------------------------------------------------------------------ */

/* How many run `sleep ARG`: waits for none. */
#define COUNT_SLEEPS(arg)                                                                          \
	"for i in $(seq 300); do ps ax | grep -q '[s]leep " arg "' || break; sleep 0.1; done; "    \
	"ps ax | grep -c '[s]leep " arg "'; true"

/* Everything that a process started ends with it, however it hid; its neighbours do not. */
TEST(a_tree_is_killed_whole_and_alone)
{
	start(FLAGS());
	need_leaves();
	AUTO(fd_close)
	int neighbour = box_sh(&t, 1, "echo ready; sleep 0.5; echo alive; sleep 100");
	AUTO(fd_close)
	int log =
	    box_sh(&t, 2,
	           "(setsid sh -c 'trap \"\" TERM HUP; (setsid sleep 777 &) ; sleep 777' &) ; "
	           "trap '' TERM; echo ready; while :; do sleep 777; done");
	await_text(neighbour, "ready");
	await_text(log, "ready");
	usleep(200000);
	box_say(&t, CH_KILL, 2, NULL, 0);
	struct channel_end end = box_await_exit(&t, 2);
	CHECK_INT(end.state, RUN_KILLED);
	CHECK_INT(end.signal, SIGKILL);
	AUTO(fd_close) int look = box_sh(&t, 3, COUNT_SLEEPS("777"));
	CHECK_INT(box_await_exit(&t, 3).exit_code, 0);
	CHECK_STR(box_text(look, LOG_OUT), "0\n");
	await_text(neighbour, "alive");
	stop();
}

/* What was left running can still be ended, by the number of who started it. */
TEST(what_lives_on_can_be_killed)
{
	start(FLAGS());
	need_leaves();
	AUTO(fd_close) int log = box_sh(&t, 1, "setsid sh -c 'trap \"\" TERM; sleep 778' & exit 0");
	CHECK_INT(box_await_exit(&t, 1).n_children > 0, 1);
	box_say(&t, CH_KILL, 1, NULL, 0);
	AUTO(fd_close) int look = box_sh(&t, 2, COUNT_SLEEPS("778"));
	CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
	CHECK_STR(box_text(look, LOG_OUT), "0\n");
	stop();
}

/* It has no session yet, and where a helper makes it we do not even know its pid. */
TEST(a_signal_that_comes_before_the_command_has_begun_is_not_lost)
{
	const struct channel_signal s = { SIGTERM, SCOPE_PROCESS };

	start(FLAGS());
	for (uint32_t i = 1; i <= 40; i++) {
		AUTO(fd_close) int log = box_sh(&t, i, "exec sleep 100");

		box_say(&t, CH_SIGNAL, i, &s, sizeof s);
		CHECK_INT(box_await_exit(&t, i).signal, SIGTERM);
	}
	stop();
}

TEST(a_signal_reaches_the_process_or_the_tree)
{
	struct channel_signal s = { SIGUSR1, SCOPE_PROCESS };

	start(FLAGS());
	AUTO(fd_close)
	int log = box_sh(&t, 1, "trap 'echo one; exit 6' USR1; echo ready; sleep 100 & wait");
	await_text(log, "ready");
	box_say(&t, CH_SIGNAL, 1, &s, sizeof s);
	struct channel_end end = box_await_exit(&t, 1);
	CHECK_INT(end.exit_code, 6);
	CHECK_INT(end.state, RUN_EXITED);
	s.scope = SCOPE_TREE;
	AUTO(fd_close)
	int tree = box_sh(&t, 2, "trap : USR1; setsid sh -c 'echo ready; exec sleep 100'; echo $?");
	if (cgroup_has_leaves(&t.box.cgroup)) {
		await_text(tree, "ready");
		usleep(100000);
		box_say(&t, CH_SIGNAL, 2, &s, sizeof s);
		CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
		await_text(tree, "138\n"); /* SIGUSR1, in another session */
	}
	stop();
}

TEST(stop_ends_all_and_the_walls_stay)
{
	struct channel_done done;

	start(FLAGS());
	AUTO(fd_close)
	int first = box_sh(&t, 1, "touch /tmp/left; setsid sleep 779 & echo ready; sleep 100");
	await_text(first, "ready");
	AUTO(fd_close) int second = box_sh(&t, 2, "setsid sleep 779 & exit 0");
	CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
	box_say(&t, CH_STOP, 0, NULL, 0);
	CHECK_INT(box_await_exit(&t, 1).state, RUN_KILLED);
	box_await(&t, CH_DONE, 0);
	memcpy(&done, t.packet.data, sizeof done);
	CHECK_INT(done.type, CH_STOP);
	CHECK_INT(done.error, 0);
	AUTO(fd_close)
	int look = box_sh(&t, 3, "ls /tmp/left; ps ax | grep -c '[s]leep 779'; true");
	CHECK_INT(box_await_exit(&t, 3).exit_code, 0);
	CHECK_STR(box_text(look, LOG_OUT), "/tmp/left\n0\n");
	stop();
}

static size_t written(int log)
{
	return strlen(box_text(log, LOG_OUT));
}

static void await_growth(int log, size_t before)
{
	AWAIT(written(log) > before);
}

/* Who runs writes every few milliseconds. What was in the pipe may still be read. */
static void check_still(int log)
{
	size_t before = 0, now = written(log);

	for (int i = 0; i < 10 && now != before; i++) {
		before = now;
		usleep(200000);
		now = written(log);
	}
	CHECK_INT(now, before);
}

TEST(frozen_processes_stand_still_and_go_on)
{
	struct channel_done done;

	start(FLAGS());
	AUTO(fd_close) int log = box_sh(&t, 1, "while :; do echo x; sleep 0.02; done");
	await_text(log, "x");
	box_say(&t, CH_FREEZE, 0, NULL, 0);
	box_await(&t, CH_DONE, 0);
	memcpy(&done, t.packet.data, sizeof done);
	if (!cgroup_can_freeze(&t.box.cgroup)) {
		CHECK_INT(done.error, EOPNOTSUPP);
		stop();
		return;
	}
	CHECK_INT(done.error, 0);
	check_still(log);
	size_t before = written(log);
	AUTO(fd_close) int refused = box_sh(&t, 2, "true");
	box_await(&t, CH_FAIL, 2);
	box_say(&t, CH_THAW, 0, NULL, 0);
	box_await(&t, CH_DONE, 0);
	await_growth(log, before);
	box_say(&t, CH_FREEZE, 0, NULL, 0);
	box_await(&t, CH_DONE, 0);
	stop(); /* what is frozen ends too */
}

/* ---- a moment ----------------------------------------------------------------------- */

static void say_hold(uint32_t lease_ms)
{
	box_say(&t, CH_HOLD, 0, &lease_ms, sizeof lease_ms);
}

/* The error of the next answer, which is to this. */
static int await_done(enum channel_type type)
{
	struct channel_done done;

	box_await(&t, CH_DONE, 0);
	memcpy(&done, t.packet.data, sizeof done);
	CHECK_INT(done.type, type);
	return (int)done.error;
}

TEST(a_moment_ends_when_it_is_said_and_what_was_said_meanwhile_is_done)
{
	start(FLAGS());
	AUTO(fd_close) int log = box_sh(&t, 1, "while :; do echo x; sleep 0.02; done");
	await_text(log, "x");
	say_hold(20000);
	CHECK_INT(await_done(CH_HOLD), 0);
	AUTO(fd_close)
	int later = box_exec(
	    &t, 2, (struct command_ask){ .argv = ARGV((char[]){ "cat" }), .has_stdin = true });
	box_say(&t, CH_IN, 2, "hello", 5);
	box_say(&t, CH_EOF, 2, NULL, 0);
	check_still(log);
	CHECK_INT(written(later), 0);
	box_say(&t, CH_RELEASE, 0, NULL, 0);
	CHECK_INT(await_done(CH_RELEASE), 0);
	CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
	CHECK_STR(box_text(later, LOG_OUT), "hello");
	await_growth(log, written(log));
	stop();
}

TEST(a_moment_that_nobody_ends_ends_by_itself)
{
	start(FLAGS());
	AUTO(fd_close) int log = box_sh(&t, 1, "while :; do echo x; sleep 0.02; done");
	await_text(log, "x");
	say_hold(5000);
	CHECK_INT(await_done(CH_HOLD), 0);
	fd_close(&t.fd); /* the daemon dies */
	check_still(log);
	await_growth(log, written(log));
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_RELEASE, 0, NULL, 0);
	CHECK_INT(await_done(CH_RELEASE), ETIMEDOUT);
	say_hold(300);
	CHECK_INT(await_done(CH_HOLD), 0);
	say_hold(20000); /* longer than that */
	CHECK_INT(await_done(CH_HOLD), 0);
	usleep(300000);
	check_still(log);
	stop(); /* what is held ends too */
}

TEST(a_pause_outlives_a_moment_and_a_moment_a_pause)
{
	start(FLAGS());
	if (!cgroup_can_freeze(&t.box.cgroup)) {
		stop();
		SKIP("needs a freezer");
	}
	AUTO(fd_close) int log = box_sh(&t, 1, "while :; do echo x; sleep 0.02; done");
	await_text(log, "x");
	box_say(&t, CH_FREEZE, 0, NULL, 0);
	CHECK_INT(await_done(CH_FREEZE), 0);
	say_hold(20000);
	CHECK_INT(await_done(CH_HOLD), 0);
	box_say(&t, CH_RELEASE, 0, NULL, 0);
	CHECK_INT(await_done(CH_RELEASE), 0);
	check_still(log);
	say_hold(100); /* and its end does not end the pause */
	CHECK_INT(await_done(CH_HOLD), 0);
	usleep(150000);
	check_still(log);
	say_hold(20000);
	CHECK_INT(await_done(CH_HOLD), 0);
	box_say(&t, CH_THAW, 0, NULL, 0);
	CHECK_INT(await_done(CH_THAW), 0);
	check_still(log);
	box_say(&t, CH_RELEASE, 0, NULL, 0);
	CHECK_INT(await_done(CH_RELEASE), 0);
	await_growth(log, written(log));
	stop();
}

/* A hundred times while commands are started; each moment is short, and each command runs. */
TEST(moments_between_starts_disturb_nobody)
{
	uint32_t num = 1;

	start(FLAGS());
	for (int i = 0; i < 100; i++, num++) {
		AUTO(fd_close) int log = box_sh(&t, num, "echo x");

		say_hold(5000);
		box_say(&t, CH_RELEASE, 0, NULL, 0);
		CHECK_INT(box_await_exit(&t, num).exit_code, 0);
		CHECK_STR(box_text(log, LOG_OUT), "x\n");
		box_say(&t, CH_FORGET, num, NULL, 0);
	}
	stop();
}

/* Threads, a parent that watches for children that stop, somebody who was stopped before, and one
 * who forks without end: all of them stand, and afterwards each is what it was. */
TEST(without_a_freezer_a_tracer_holds_them_and_nobody_notices)
{
	static const char script[] =
	    "import os, signal, threading, time\n"
	    "def count(name):\n"
	    "    while True:\n"
	    "        print(name, flush=True); time.sleep(0.01)\n"
	    "stopped = os.fork()\n"
	    "if stopped == 0: time.sleep(1000)\n"
	    "os.kill(stopped, signal.SIGSTOP); os.waitpid(stopped, os.WUNTRACED)\n"
	    "child = os.fork()\n"
	    "if child == 0: count('child')\n"
	    "forker = os.fork()\n"
	    "while forker == 0:\n"
	    "    if os.fork() == 0: os._exit(0)\n"
	    "    os.wait()\n"
	    /* not before the forks: a child of many threads has the locks of all of them */
	    "for i in range(4): threading.Thread(target=count, args=[f't{i}'], "
	    "daemon=True).start()\n"
	    "while True:\n"
	    "    pid, status = os.waitpid(-1, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)\n"
	    "    if pid: print('SEEN', pid == child, status, flush=True)\n"
	    "    print('state', open(f'/proc/{stopped}/stat').read().split()[2], flush=True)\n"
	    "    time.sleep(0.005)\n";
	char line[2048];

	snprintf(line, sizeof line, "exec python3 -c \"$(cat <<'END'\n%sEND\n)\"", script);
	box_has_no_freezer = true;
	start(FLAGS());
	CHECK(!cgroup_can_freeze(&t.box.cgroup));
	AUTO(fd_close) int log = box_sh(&t, 1, line);
	await_text(log, "child");
	for (int i = 0; i < 20; i++) {
		say_hold(20000);
		CHECK_INT(await_done(CH_HOLD), 0);
		if (i % 10 == 0)
			check_still(log);
		box_say(&t, CH_RELEASE, 0, NULL, 0);
		CHECK_INT(await_done(CH_RELEASE), 0);
		size_t then = written(log);
		await_growth(log, then);
		await_text_after(log, then, "state T"); /* it wakes up, and stops again */
	}
	const char *seen = strstr(box_text(log, LOG_OUT), "SEEN");
	if (seen)
		printf("# %.200s\n", seen);
	CHECK(!seen);
	box_say(&t, CH_FREEZE, 0, NULL, 0); /* a pause needs the real thing */
	CHECK_INT(await_done(CH_FREEZE), EOPNOTSUPP);
	say_hold(20000);
	CHECK_INT(await_done(CH_HOLD), 0);
	stop(); /* what is held ends too */
	box_has_no_freezer = false;
}

TEST(when_pid_1_dies_all_is_lost_and_said)
{
	struct channel_ready ready;
	struct channel_gone gone;

	box_start(&t, true, FLAGS());
	box_await(&t, CH_READY, 0);
	memcpy(&ready, t.packet.data, sizeof ready);
	AUTO(fd_close) int log = box_sh(&t, 1, "sleep 100");
	box_await(&t, CH_STARTED, 1);
	CHECK_INT(kill(ready.init_pid, SIGKILL), 0);
	CHECK_INT(box_await_exit(&t, 1).state, RUN_LOST);
	box_await(&t, CH_END, 0);
	memcpy(&gone, t.packet.data, sizeof gone);
	CHECK_INT(gone.state, RUN_LOST);
	box_end(&t);
}

/* ---- limits ------------------------------------------------------------------------ */

TEST(a_sandbox_whose_pids_are_used_up_takes_commands)
{
	start(FLAGS("pids", "20"));
	AUTO(fd_close)
	int log = box_sh(&t, 1,
	                 "exec python3 -c '\nimport os, time\ntry:\n while os.fork(): pass\nexcept "
	                 "OSError: print(\"full\", flush=True)\ntime.sleep(100)'");
	await_text(log, "full");
	for (uint32_t i = 2; i < 8; i++) {
		AUTO(fd_close) int more = box_sh(&t, i, "echo here");

		CHECK_INT(box_await_exit(&t, i).exit_code, 0);
		CHECK_STR(box_text(more, LOG_OUT), "here\n");
	}
	AUTO(fd_close) int last = box_sh(&t, 9, "kill -9 -1");
	struct channel_end end = box_await_exit(&t, 1);
	CHECK_INT(end.signal, SIGKILL);
	stop();
}

TEST(who_is_out_of_memory_is_told_apart)
{
	start(FLAGS("mem", "64m", "allow-weaker", "mem"));
	if (!cgroup_has(&t.box.cgroup, CG_MEMORY)) {
		stop();
		SKIP("needs a memory controller");
	}
	AUTO(fd_close) int first = box_sh(&t, 1, "kill -9 $$");
	CHECK_INT(box_await_exit(&t, 1).state, RUN_SIGNALED);
	AUTO(fd_close) int second = box_sh(&t, 2, "exec python3 -c 'bytearray(500 << 20)'");
	struct channel_end end = box_await_exit(&t, 2);
	CHECK_INT(end.state, RUN_OOM);
	printf("# %s\n", end.reason);
	AUTO(fd_close) int third = box_sh(&t, 3, "kill -9 $$");
	CHECK_INT(box_await_exit(&t, 3).state, RUN_SIGNALED);
	stop();
}

TEST(usage_is_told)
{
	struct channel_usage u;

	start(FLAGS());
	AUTO(fd_close)
	int log =
	    box_sh(&t, 1, "head -c 3000000 /dev/urandom >/tmp/x; sleep 100 & echo done; wait");
	await_text(log, "done");
	box_say(&t, CH_USAGE, 0, NULL, 0);
	box_await(&t, CH_USAGE, 0);
	memcpy(&u, t.packet.data, sizeof u);
	printf("# cpu %llu mem %llu peak %llu pids %llu disk %llu\n", (unsigned long long)u.cpu_ms,
	       (unsigned long long)u.mem_now, (unsigned long long)u.mem_peak,
	       (unsigned long long)u.pids, (unsigned long long)u.disk_bytes);
	CHECK(u.disk_bytes >= 3000000 && u.disk_bytes < 10000000);
	if (cgroup_has(&t.box.cgroup, CG_PIDS))
		CHECK_INT(u.pids, 2);
	stop();
}

/* ---- clients ----------------------------------------------------------------------- */

TEST(the_next_client_is_told_everything)
{
	bool has_seen[8] = { 0 };
	struct channel_end unheard;
	struct channel_proc proc;

	start(FLAGS());
	AUTO(fd_close) int a = box_sh(&t, 1, "sleep 100");
	AUTO(fd_close) int b = box_sh(&t, 2, "exit 7");
	CHECK_INT(box_await_exit(&t, 2).exit_code, 7);
	AUTO(fd_close) int c = box_sh(&t, 3, "exit 8");
	CHECK_INT(box_await_exit(&t, 3).exit_code, 8);
	box_say(&t, CH_FORGET, 3, NULL, 0);
	AUTO(fd_close) int d = box_sh(&t, 4, "sleep 0.3; echo unheard; exit 9");
	box_await(&t, CH_STARTED, 4);
	fd_close(&t.fd); /* a daemon that was killed */
	AWAIT(log_end(d, &unheard) == 1);
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	do {
		CHECK(box_hear(&t, TEST_WAIT_MS));
		if (t.packet.head.type == CH_PROC) {
			memcpy(&proc, t.packet.data, sizeof proc);
			CHECK_INT(t.packet.head.num, 1);
			CHECK(proc.started.pid > 0 && proc.started.unix_ms > 0);
		}
		CHECK(t.packet.head.num < COUNT(has_seen));
		has_seen[t.packet.head.num] = true;
	} while (t.packet.head.type != CH_SYNCED);
	CHECK(has_seen[1] && has_seen[2] && !has_seen[3] && has_seen[4]);
	CHECK_STR(box_text(d, LOG_OUT), "unheard\n");
	AUTO(fd_close) int e = box_sh(&t, 5, "exit 1"); /* and it is a client like any other */
	CHECK_INT(box_await_exit(&t, 5).exit_code, 1);
	stop();
}

TEST(a_new_client_replaces_the_old_one)
{
	start(FLAGS());
	int old = dup(t.fd);
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	CHECK_INT(recv(old, &t.packet, sizeof t.packet, 0), 0);
	close(old);
	stop();
}

TEST(one_that_is_not_kept_ends_with_its_client)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/sleep", (char *)(uintptr_t) "100", NULL };

	box_start(&t, false, FLAGS());
	AUTO(fd_close)
	int log = box_exec(&t, 1, (struct command_ask){ .argv = argv, .is_final = true });
	usleep(100000);
	box_end(&t);
}

/* ---- workers, and the door inside -------------------------------------------------- */

/* The program is anything that speaks over descriptor 3; cat <&3 >&3 of the host does. */
TEST(a_worker_runs_inside_with_its_socket)
{
	const struct {
		struct channel_head head;
		char root[2];
	} order = { { .type = CH_TREE, .num = 1, .len = 2 }, "/" };
	size_t n = sizeof order.head + sizeof order.root;
	int pair[2];
	char text[64] = "";

	start(FLAGS());
	CHECK_INT(os_socketpair(pair, SOCK_STREAM), 0);
	AUTO(fd_close) int program = open("/bin/true", O_RDONLY | O_CLOEXEC);
	CHECK_INT(os_send(t.fd, &order, n, (int[]){ pair[1], program }, 2), n);
	close(pair[1]);
	box_await(&t, CH_STARTED, 1);
	struct channel_end end = box_await_exit(&t, 1);
	CHECK_INT(end.exit_code, 0);
	CHECK_INT(read(pair[0], text, sizeof text), 0);
	close(pair[0]);
	stop();
}

TEST(the_door_inside_answers)
{
	static const struct {
		const char *line, *part;
	} cases[] = {
		{ "whoami", "{\"sandbox\":\"sb_test\"}" },
		{ "why", "{\"violations\":[" },
		{ "log 1", "\"data\":\"first\\nword\\n\"" },
		{ "log 77", "no such process" },
		{ "log x", "no such process" },
		{ "close", "known are" },
		{ "", "known are" },
	};
	char script[256];

	start(FLAGS());
	AUTO(fd_close) int first = box_sh(&t, 1, "echo first; echo word");
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	for (uint32_t i = 0; i < COUNT(cases); i++) {
		snprintf(script, sizeof script,
		         "python3 -c 'import socket as s; c=s.socket(s.AF_UNIX); "
		         "c.connect(\"/run/caisson/self.sock\"); c.send(b\"%s\\n\"); "
		         "print(c.recv(99999).decode())'",
		         cases[i].line);
		AUTO(fd_close) int log = box_sh(&t, i + 2, script);
		CHECK_INT(box_await_exit(&t, i + 2).exit_code, 0);
		printf("# %s", box_text(log, LOG_OUT));
		CHECK(strstr(box_text(log, LOG_OUT), cases[i].part));
	}
	stop();
}
