/* Many commands in one monitor: at once, killed at random, over clients that come and go. */
#include <dirent.h>
#include <time.h>

#include "test_box.h"

/* As many as a test has time for. */
enum { COMMANDS = 1000, AT_ONCE = 64, SECONDS = 15 };

static struct test_box t;
static int logs[COMMANDS + 1];
static bool is_over[COMMANDS + 1];
static size_t living;

static uint64_t seed = 88172645463325252u;

static uint32_t below(uint32_t n)
{
	seed ^= seed << 13; /* xorshift64, Marsaglia 2003 */
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed % n);
}

static const struct {
	const char *script;
	bool is_endless;
} kinds[] = {
	{ "exit 3", false },
	{ "echo out; echo err >&2", false },
	{ "head -c 100000 /dev/zero", false },
	{ "sleep 100", true },
	{ "(setsid sleep 0.1 &); exit 3", false },
	{ "trap '' TERM; echo up; sleep 100", true },
	{ "no-such-program-anywhere", false },
};

static void start_one(uint32_t num)
{
	uint32_t kind = below(COUNT(kinds));

	logs[num] = box_sh(&t, num, kinds[kind].script);
	if (kinds[kind].is_endless || below(10) == 0)
		box_say(&t, CH_KILL, num, NULL, 0);
	living++;
}

/* The end that is told is the one in the log, once. */
static void take_end(uint32_t num)
{
	struct channel_end told, written;

	CHECK(num >= 1 && num <= COMMANDS);
	if (is_over[num])
		return; /* told again after a SYNC */
	is_over[num] = true;
	living--;
	CHECK(t.packet.head.type == CH_EXIT);
	CHECK(channel_end_read(&told, t.packet.data, t.packet.head.len));
	CHECK_INT(log_end(logs[num], &written), 1);
	CHECK_INT(written.state, told.state);
	CHECK_INT(written.exit_code, told.exit_code);
	CHECK_INT(written.signal, told.signal);
	CHECK(told.state == RUN_EXITED || told.state == RUN_KILLED);
	fd_close(&logs[num]);
	box_say(&t, CH_FORGET, num, NULL, 0);
}

static void hear_one(void)
{
	CHECK(box_hear(&t, TEST_WAIT_MS));
	if (t.packet.head.type == CH_EXIT)
		take_end(t.packet.head.num);
	CHECK(t.packet.head.type != CH_FAIL);
}

static void reconnect(void)
{
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	do
		hear_one();
	while (t.packet.head.type != CH_SYNCED);
}

static size_t count_descriptors(void)
{
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", t.monitor_pid);
	DIR *dir = opendir(path);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

TEST(a_thousand_commands_of_all_kinds)
{
	if (geteuid() != 0)
		SKIP("needs a cgroup for each process");
	box_start(&t, true, (const char *const[]){ "pids", "2000", NULL });
	box_await(&t, CH_READY, 0);
	size_t before = count_descriptors();
	time_t begin = time(NULL);
	uint32_t started = 0;
	do {
		while (started < COMMANDS && living < AT_ONCE && time(NULL) < begin + SECONDS)
			start_one(++started);
		hear_one();
		if (below(100) == 0)
			reconnect();
	} while (living > 0);
	for (uint32_t num = 1; num <= started; num++)
		CHECK(is_over[num]);
	printf("# %u commands\n", started);
	pid_t pids[64];
	size_t pid_1 = cgroup_has(&t.box.cgroup, CG_PIDS) &&
	               strcmp(cgroup_mechanism(&t.box.cgroup, CG_PIDS), "cgroup1") == 0;
	AWAIT(cgroup_members(&t.box.cgroup, pids, 64) == pid_1); /* what they left */
	/* Logs for self.sock, spare cgroups, the nursery. */
	AWAIT(count_descriptors() <= before + 32 + 16 + 2);
	printf("# %zu descriptors before, %zu after\n", before, count_descriptors());
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}
