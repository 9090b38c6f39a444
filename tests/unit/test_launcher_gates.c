#include "launcher/gates.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "io/program.h"
#include "launcher/launcher.h"
#include "launcher/sealkey.h"
#include "launcher/server.h"
#include "os/file.h"
#include "test.h"
#include "wire/gate.h"

static struct gates g;
static const char seal_key[] = "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb";

static void begin(void)
{
	char path[PATH_MAX];
	struct err e = { 0 };

	if (program_find("caisson-gate", path, &e) < 0)
		SKIP("needs caisson-gate beside the test");
	CHECK_INT(setenv("GATES_TEST_KEY", seal_key, 1), 0);
	CHECK_INT(sealkey_take("env:GATES_TEST_KEY", &e), 0);
	g = (struct gates){ .is_root = geteuid() == 0,
		            .id = SERVER_ID + 1,
		            .cache_fd = -1,
		            .key_source = "env:GATES_TEST_KEY",
		            .channel_fd = -1 };
}

static int ask(uint64_t now_ms)
{
	struct err e = { 0 };
	int fd = gates_ask(&g, now_ms, &e);

	if (fd < 0)
		CHECK_STR(e.msg, "");
	return fd;
}

static bool is_open(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 50) == 0;
}

/* It serves, and so it has given up its rights: it hangs up on who says nonsense. */
static void await_service(void)
{
	AUTO(fd_close) int fd = ask(1000);
	char byte;

	CHECK_INT(send(fd, "?", 1, MSG_NOSIGNAL), 1);
	CHECK_INT(recv(fd, &byte, 1, 0), 0);
}

static const char *status_line(pid_t pid, const char *key)
{
	static char line[128], text[4096];
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	CHECK(os_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	const char *at = strstr(text, key);
	CHECK(at);
	snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
	return line;
}

static void kill_gate(uint64_t now_ms)
{
	int status;

	CHECK_INT(kill(g.pid, SIGKILL), 0);
	CHECK_INT(waitpid(g.pid, &status, 0), g.pid);
	gates_ended(&g, now_ms);
}

TEST(one_program_serves_all_who_ask)
{
	begin();
	AUTO(fd_close) int one = ask(1000);
	pid_t pid = g.pid;
	AUTO(fd_close) int two = ask(1001);

	CHECK(pid > 0);
	CHECK_INT(g.pid, pid);
	CHECK(is_open(one));
	CHECK(is_open(two));
	CHECK_INT(send(one, "?", 1, MSG_NOSIGNAL), 1); /* not a word that it knows */
	char byte;
	CHECK_INT(recv(one, &byte, 1, 0), 0);
	CHECK(is_open(two));
	gates_done(&g);
	int status;
	CHECK_INT(waitpid(pid, &status, 0), pid); /* it ends with us */
	CHECK_INT(recv(two, &byte, 1, 0), 0);
}

TEST(it_has_no_rights)
{
	static const char *const lines[] = {
		"CapInh:\t0000000000000000",
		"CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000",
		"CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1",
		"SigBlk:\t0000000000000000",
		"Seccomp:\t2",
	};
	char text[64], path[64];

	begin();
	AUTO(fd_close) int one = ask(1000);
	await_service();
	CHECK(is_open(one));
	for (size_t i = 0; i < COUNT(lines); i++) {
		char key[16];

		snprintf(key, sizeof key, "%.*s", (int)strcspn(lines[i], ":"), lines[i]);
		CHECK_STR(status_line(g.pid, key), lines[i]);
	}
	if (geteuid() == 0) {
		unsigned int id = SERVER_ID + 1;

		snprintf(text, sizeof text, "Uid:\t%u\t%u\t%u\t%u", id, id, id, id);
		CHECK_STR(status_line(g.pid, "Uid:"), text);
		CHECK_STR(status_line(g.pid, "CapBnd:"), "CapBnd:\t0000000000000000");
		CHECK_STR(status_line(g.pid, "Groups:"), "Groups:\t ");
		snprintf(path, sizeof path, "/proc/%d/cwd", g.pid);
		CHECK(os_readlinkat(AT_FDCWD, path, text, sizeof text) > 0);
		CHECK_STR(text, "/");
	}
	CHECK_INT(getsid(g.pid), g.pid);
	kill_gate(5000);
}

TEST(it_is_told_whom_else_to_trust)
{
	char path[64], text[128] = "";
	int status;

	begin();
	g.ca = "/etc/ssl/certs/ca-certificates.crt";
	if (access(g.ca, R_OK) < 0)
		SKIP("needs certificates");
	AUTO(fd_close) int one = ask(1000);
	await_service();
	CHECK(is_open(one));
	snprintf(path, sizeof path, "/proc/%d/cmdline", g.pid);
	CHECK(os_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	CHECK_STR(text + sizeof "caisson-gate", "--ca");
	CHECK_STR(text + sizeof "caisson-gate" + sizeof "--ca", g.ca);
	kill_gate(9000);
	g.ca = "/dev/null"; /* no certificate: better none than less than was meant */
	AUTO(fd_close) int two = ask(9000);
	CHECK_INT(waitpid(g.pid, &status, 0), g.pid);
	CHECK_INT(WEXITSTATUS(status), 125);
	gates_ended(&g, 9100);
}

TEST(one_that_died_is_started_again_when_it_is_asked_for)
{
	begin();
	AUTO(fd_close) int one = ask(1000);
	kill_gate(9000); /* it had lived for a while */
	CHECK_INT(g.pid, 0);
	AUTO(fd_close) int two = ask(9000);
	CHECK(g.pid > 0);
	CHECK(is_open(two));
	kill_gate(20000);
}

TEST(one_that_dies_at_once_is_waited_for_longer_each_time)
{
	uint64_t now = 1000, waited = 0;
	struct err e = { 0 };

	begin();
	for (int i = 0; i < 8; i++) {
		AUTO(fd_close) int one = ask(now);

		kill_gate(now);
		CHECK_INT(gates_ask(&g, now, &e), -1);
		CHECK(strstr(e.msg, "the gate ended right after its start"));
		CHECK(g.again_ms - now >= waited);
		waited = g.again_ms - now;
		now = g.again_ms;
	}
	CHECK(waited > 500);
	CHECK(waited <= 2000);
}

static void kill_unheard(void)
{
	siginfo_t info;

	CHECK_INT(kill(g.pid, SIGKILL), 0);
	CHECK_INT(waitid(P_PID, (id_t)g.pid, &info, WEXITED | WNOWAIT), 0);
}

TEST(one_that_is_dead_and_not_yet_waited_for_is_noticed)
{
	struct err e = { 0 };
	int status;

	begin();
	AUTO(fd_close) int one = ask(1000);
	pid_t first = g.pid;
	kill_unheard();
	AUTO(fd_close) int two = ask(9000); /* it had lived for a while: another takes its place */
	CHECK(is_open(two));
	CHECK(g.pid != first);
	kill_unheard();
	CHECK_INT(gates_ask(&g, 9001, &e), -1);
	CHECK(strstr(e.msg, "the gate ended right after its start"));
	while (waitpid(-1, &status, 0) > 0)
		;
}

TEST(a_gate_that_cannot_be_executed_is_refused_with_the_reason)
{
	static char ca[256 * 1024]; /* longer than one argument of execve(2) may be */
	struct err e = { 0 };
	int status;

	begin();
	memset(ca, 'a', sizeof ca - 1);
	g.ca = ca;
	AUTO(fd_close) int one = gates_ask(&g, 1000, &e); /* accepted: its end comes later */
	CHECK_INT(waitpid(g.pid, &status, 0), g.pid);
	CHECK_INT(WEXITSTATUS(status), 126);
	gates_ended(&g, 1001);
	CHECK_INT(gates_ask(&g, 1002, &e), -1);
	CHECK(strstr(e.msg, "the gate: start ") && strstr(e.msg, "Argument list too long"));
}

TEST(an_error_of_the_launchers_own_is_not_taken_for_the_gates_end)
{
	struct err e = { 0 };
	int status;

	begin();
	AUTO(fd_close) int one = ask(1000);
	int channel = g.channel_fd;
	g.channel_fd = 0x7ffffff; /* EBADF */
	CHECK_INT(gates_ask(&g, 1001, &e), -1);
	CHECK_STR(e.msg, "reach the gate: Bad file descriptor");
	g.channel_fd = channel;
	CHECK(is_open(one));
	AUTO(fd_close) int two = ask(1002);
	gates_done(&g);
	CHECK_INT(waitpid(g.pid, &status, 0), g.pid);
}
