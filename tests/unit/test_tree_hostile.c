/*
 * Trees that fight back: whatever other processes of the sandbox do meanwhile, nothing outside of
 * the root is read or written, nothing waits, and an answer comes.
 */
#include <linux/fs.h>
#include <sched.h>
#include <time.h>

#include "test_tree.h"
#include "wire/base64.h"

enum { ENDLESS_MS = 20000 }; /* what waits for others, or reads all of it, takes longer */

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A root with an outside: the worker's root is ROOT/in, the canary is ROOT/out/canary. */
static void open_in(struct rig *r)
{
	char in[80];

	*r = (struct rig){ 0 };
	snprintf(r->root, sizeof r->root, "/tmp/tree-test-XXXXXX");
	CHECK(mkdtemp(r->root));
	snprintf(in, sizeof in, "%s/in", r->root);
	CHECK(mkdir(in, 0755) == 0);
	snprintf(in, sizeof in, "%s/out", r->root);
	CHECK(mkdir(in, 0755) == 0);
	snprintf(in, sizeof in, "%s/in", r->root);
	rig_start(r, in, 0);
	put(r, "../out/canary", "CANARY");
}

static void check_out(struct rig *r)
{
	CHECK_STR(got(r, "../out/canary"), "CANARY");
	CHECK_INT(entries_of(r, "../out"), 1);
}

/* Another process exchanges two names as fast as it can. */
static pid_t start_swapping(struct rig *r, const char *a, const char *b)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		return pid;
	for (;;)
		renameat2(r->dir_fd, a, r->dir_fd, b, RENAME_EXCHANGE);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(a_directory_that_becomes_a_link_leads_nowhere)
{
	static const struct {
		enum tree_verb verb;
		uint32_t flags;
		const char *path, *body;
	} verbs[] = {
		{ TREE_READ, 0, "d/canary", "" },
		{ TREE_LINES, 0, "d/canary", "" },
		{ TREE_WRITE, 0, "d/canary", "inside" },
		{ TREE_WRITE, 0, "d/new", "inside" },
		{ TREE_EDIT, 0, "d/canary",
		  "{\"edits\":[{\"old\":\"i\",\"new\":\"I\",\"all\":true}]}" },
		{ TREE_LIST, 0, "d", "" },
		{ TREE_STAT, TREE_HASH, "d/canary", "" },
		{ TREE_DELETE, TREE_RECURSIVE, "d/sub", "" },
		{ TREE_MKDIR, 0, "", "{\"path\":\"d/sub/deep\"}" },
		{ TREE_COPY, 0, "", "{\"from\":\"d/canary\",\"to\":\"copy\",\"overwrite\":true}" },
		{ TREE_COPY, 0, "", "{\"from\":\"copy\",\"to\":\"d/copied\",\"overwrite\":true}" },
		{ TREE_MOVE, 0, "", "{\"from\":\"d/new\",\"to\":\"d/moved\",\"overwrite\":true}" },
		{ TREE_GREP, 0, "", "{\"pattern\":\"CANARY\"}" },
		{ TREE_GLOB, 0, "", "{\"pattern\":\"**/canary\"}" },
		{ TREE_TAR_OUT, 0, "d", "" },
		{ TREE_PATCH, 0, "", "*** Begin Patch\n*** Add File: d/p/q\n+x\n*** End Patch\n" },
	};
	struct reply reply = { 0 };
	struct rig r;
	size_t fine = 0;

	open_in(&r);
	CHECK(mkdirat(r.dir_fd, "d", 0755) == 0);
	put(&r, "d/canary", "inside");
	CHECK(symlinkat("../out", r.dir_fd, "evil") == 0);
	pid_t pid = start_swapping(&r, "d", "evil");
	long long end = now_ms() + 4000;

	for (size_t i = 0; now_ms() < end || (fine <= 100 && now_ms() < end + 20000); i++) {
		size_t v = i % COUNT(verbs);
		long long start = now_ms();

		fine += rig_do(&r, verbs[v].verb, verbs[v].flags, verbs[v].path, verbs[v].body,
		               &reply) == TREE_OK;
		CHECK(now_ms() - start < ENDLESS_MS);
		if (memmem(str_text(&reply.data), reply.data.len, "CANARY", 6) &&
		    verbs[v].verb != TREE_GREP)
			printf("# %s\n", tree_verb_name(verbs[v].verb));
		CHECK(!memmem(str_text(&reply.data), reply.data.len, ":\"CANARY", 8));
		CHECK(verbs[v].verb != TREE_READ || strcmp(str_text(&reply.data), "CANARY") != 0);
	}
	stop(pid);
	printf("# %zu calls went well\n", fine);
	CHECK(fine > 100);
	check_out(&r);
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_file_that_becomes_a_link_is_not_followed_out)
{
	struct reply reply = { 0 };
	struct rig r;

	open_in(&r);
	put(&r, "f", "inside");
	CHECK(symlinkat("../out/canary", r.dir_fd, "evil") == 0);
	pid_t pid = start_swapping(&r, "f", "evil");
	long long end = now_ms() + 2000;

	while (now_ms() < end) {
		rig_do(&r, TREE_WRITE, 0, "f", "inside", &reply);
		rig_do(&r, TREE_EDIT, 0, "f", "{\"insert\":{\"line\":0,\"text\":\"x\"}}", &reply);
		rig_do(&r, TREE_READ, 0, "f", "", &reply);
		CHECK(strcmp(str_text(&reply.data), "CANARY") != 0);
		rig_do(&r, TREE_GREP, 0, "", "{\"pattern\":\"CANARY\"}", &reply);
		CHECK_INT((long long)json_array_size(json_object_get(reply.json, "matches")), 0);
	}
	stop(pid);
	check_out(&r);
	reply_done(&reply);
	rig_close(&r);
}

static void put_levels(struct rig *r)
{
	static const char *const dirs[] = { "d", "d/e", "d/e/f" };
	char name[32];

	for (size_t i = 0; i < COUNT(dirs); i++)
		CHECK(mkdirat(r->dir_fd, dirs[i], 0755) == 0);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "d/e/f/%d", i);
		put(r, name, "");
	}
	put(r, "d/e/z", "");
}

/* After a while, which is longer each time. */
static pid_t start_moving(struct rig *r, int yields)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		return pid;
	for (int i = 0; i < yields; i++)
		sched_yield();
	renameat(r->dir_fd, "d/e/f", r->dir_fd, "../out/f");
	_exit(0);
}

/* What was carried away is put back where the next round finds nothing. */
static void clean_out(struct rig *r)
{
	struct reply reply = { 0 };

	renameat(r->dir_fd, "../out/f", r->dir_fd, "f");
	rig_do(r, TREE_DELETE, TREE_RECURSIVE, "f", "", &reply);
	rig_do(r, TREE_DELETE, TREE_RECURSIVE, "d", "", &reply);
	reply_done(&reply);
}

/* A directory is moved out of the root while the walk is in it; `..` then leads outside. */
TEST(a_walk_that_is_carried_away_stops)
{
	struct reply reply = { 0 };
	struct rig r;
	int conflicts = 0;

	open_in(&r);
	for (int round = 0; round < 300; round++) {
		put_levels(&r);
		pid_t pid = start_moving(&r, round % 50);

		conflicts += rig_do(&r, TREE_DELETE, TREE_RECURSIVE, "d", "", &reply) != TREE_OK;
		waitpid(pid, NULL, 0);
		CHECK_STR(got(&r, "../out/canary"), "CANARY");
		clean_out(&r);
		CHECK_INT(entries_of(&r, ""), 0);
	}
	printf("# %d walks were stopped\n", conflicts);
	check_out(&r);
	reply_done(&reply);
	rig_close(&r);
}

TEST(spellings_of_paths_stay_inside)
{
	static const char *const paths[] = {
		"../out/canary",
		"../../../../../../out/canary",
		"/../out/canary",
		"./../out/canary",
		"a/../../out/canary",
		"..//out//canary",
		"%2e%2e/out/canary",
		"..%2fout%2fcanary",
		"..\\out\\canary",
		"..%c0%af..%c0%afout",
		"\xc0\xae\xc0\xae/out/canary",
		"....//out/canary",
		"C:\\out\\canary",
		";/../out/canary",
		" ../out/canary",
		"..\n/out/canary",
		"../out/canary/",
		"-rf",
	};
	struct reply reply = { 0 };
	struct rig r;

	open_in(&r);
	for (size_t i = 0; i < COUNT(paths); i++) {
		CHECK(rig_do(&r, TREE_READ, 0, paths[i], "", &reply) != TREE_OK);
		rig_do(&r, TREE_WRITE, 0, paths[i], "written", &reply);
		rig_do(&r, TREE_DELETE, TREE_RECURSIVE, paths[i], "", &reply);
		check_out(&r);
	}
	reply_done(&reply);
	rig_close(&r);
}

/* The whole view of a sandbox: the root is "/". */
TEST(links_of_proc_are_not_followed)
{
	static const struct {
		const char *path;
		bool is_fine;
	} cases[] = {
		{ "/proc/self/root/etc/passwd", false },
		{ "/proc/1/root/etc/passwd", false },
		{ "/proc/self/cwd/x", false },
		{ "/proc/self/exe", false },
		{ "/proc/self/fd/0", false },
		{ "/proc/self/fd/3", false },
		{ "/proc/1/cwd/etc/passwd", false },
		{ "/dev/fd/0", false },
		{ "/dev/stdin", false },
		{ "/dev/null", false },
		{ "/dev/zero", false },
		{ "/dev/tty", false },
		{ "/proc/self/mem", false },
		{ "/proc/kmsg", false },
		{ "/proc/self/status", true },
		{ "/proc/version", true },
		{ "/etc/passwd", true },
	};
	struct reply reply = { 0 };
	struct rig r = { 0 };

	if (getuid() != 0)
		SKIP("needs root");
	rig_start(&r, "/", 1000);
	for (size_t i = 0; i < COUNT(cases); i++) {
		long long start = now_ms();
		enum tree_code code = rig_do(&r, TREE_READ, 0, cases[i].path, "", &reply);

		if ((code == TREE_OK) != cases[i].is_fine)
			printf("# %s: %s\n", cases[i].path, tree_code_name(code));
		CHECK_INT(code == TREE_OK, cases[i].is_fine);
		CHECK(rig_do(&r, TREE_WRITE, 0, cases[i].path, "x", &reply) != TREE_OK);
		CHECK(now_ms() - start < ENDLESS_MS);
	}
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_file_of_a_terabyte_is_refused_at_once_or_read_in_ranges)
{
	static const struct {
		enum tree_verb verb;
		enum tree_code code;
		const char *path, *body;
	} cases[] = {
		{ TREE_READ, TREE_TOO_LARGE, "huge", "" },
		{ TREE_LINES, TREE_TOO_LARGE, "huge", "" },
		{ TREE_EDIT, TREE_TOO_LARGE, "huge",
		  "{\"edits\":[{\"old\":\"a\",\"new\":\"b\"}]}" },
		{ TREE_COPY, TREE_TOO_LARGE, "", "{\"from\":\"huge\",\"to\":\"copy\"}" },
		{ TREE_TAR_OUT, TREE_TOO_LARGE, "", "" },
		{ TREE_PATCH, TREE_TOO_LARGE, "", "--- a/huge\n+++ b/huge\n@@ -1 +1 @@\n-a\n+b\n" },
		{ TREE_GREP, TREE_OK, "", "{\"pattern\":\"x\"}" }, /* binary: it begins with NUL */
		{ TREE_STAT, TREE_OK, "huge", "" },
		{ TREE_LIST, TREE_OK, "", "" },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	AUTO(fd_close) int fd = openat(r.dir_fd, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (ftruncate(fd, 1ll << 40) < 0)
		SKIP("no sparse files here");
	for (size_t i = 0; i < COUNT(cases); i++) {
		long long start = now_ms();

		CHECK_CODE(rig_do(&r, cases[i].verb, 0, cases[i].path, cases[i].body, &reply),
		           cases[i].code);
		CHECK(now_ms() - start < ENDLESS_MS);
	}
	struct tree_ask ask = {
		.flags = TREE_HAS_RANGE,
		.request = { .verb = TREE_READ, .from = (1ull << 40) - 3, .count = 100 },
		.path = span_of("huge")
	};
	rig_ask(&r, ask, -1);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_OK);
	CHECK_INT((long long)reply.data.len, 3);
	CHECK_INT(entries_of(&r, ""), 1);
	reply_done(&reply);
	rig_close(&r);
}

TEST(long_names_and_many_hops_end_exactly)
{
	struct reply reply = { 0 };
	char name[300], path[5000], target[16];
	struct rig r;

	rig_open(&r);
	memset(name, 'n', sizeof name);
	name[255] = '\0';
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, name, "x", &reply), TREE_OK);
	CHECK_CODE(rig_do(&r, TREE_READ, 0, name, "", &reply), TREE_OK);
	name[255] = 'n';
	name[256] = '\0';
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, name, "x", &reply), TREE_INVALID);
	CHECK_CODE(rig_do(&r, TREE_READ, 0, name, "", &reply), TREE_INVALID);
	CHECK_INT(entries_of(&r, ""), 1);

	put(&r, "l0", "end");
	for (int i = 1; i <= 60; i++) {
		snprintf(name, sizeof name, "l%d", i);
		snprintf(target, sizeof target, "l%d", i - 1);
		CHECK(symlinkat(target, r.dir_fd, name) == 0);
	}
	/* Of 40 hops the kernel may count those of a first try in vain, too. */
	CHECK_CODE(rig_do(&r, TREE_READ, 0, "l20", "", &reply), TREE_OK);
	CHECK_CODE(rig_do(&r, TREE_READ, 0, "l41", "", &reply), TREE_INVALID);
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "l20", "new", &reply), TREE_OK);
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "l41", "no", &reply), TREE_INVALID);
	CHECK_STR(got(&r, "l0"), "new");

	for (size_t i = 0; i < sizeof path; i += 2)
		memcpy(path + i, "./", 2);
	path[4094] = 'x';
	path[4095] = '\0';
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, path, "x", &reply), TREE_OK);
	CHECK_STR(got(&r, "x"), "x");
	reply_done(&reply);
	rig_close(&r);
}

/* Names `d`, one in the other, with a file in the last. */
static void nest(const struct rig *r, const char *top, int depth)
{
	CHECK(mkdirat(r->dir_fd, top, 0755) == 0);
	int fd = openat(r->dir_fd, top, O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < depth; i++) {
		CHECK(mkdirat(fd, "d", 0755) == 0);
		int next = openat(fd, "d", O_RDONLY | O_CLOEXEC);

		close(fd);
		fd = next;
	}
	close(openat(fd, "needle", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	close(fd);
}

TEST(nesting_that_no_path_can_name_is_walked_and_deleted)
{
	enum { DEPTH = 3000 };
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	nest(&r, "top", DEPTH);
	CHECK_CODE(rig_do(&r, TREE_GLOB, 0, "", "{\"pattern\":\"**/needle\"}", &reply), TREE_OK);
	CHECK_INT((long long)json_array_size(json_object_get(reply.json, "paths")), 1);
	CHECK_CODE(rig_do(&r, TREE_GREP, 0, "", "{\"pattern\":\"x\"}", &reply), TREE_OK);
	CHECK(rig_do(&r, TREE_COPY, 0, "", "{\"from\":\"top\",\"to\":\"copy\"}", &reply) !=
	      TREE_OK);
	CHECK_INT(entries_of(&r, ""), 1);
	CHECK_CODE(rig_do(&r, TREE_DELETE, TREE_RECURSIVE, "top", "", &reply), TREE_OK);
	CHECK_INT(reply_number(&reply, "deleted"), DEPTH + 2);
	CHECK_INT(entries_of(&r, ""), 0);
	reply_done(&reply);
	rig_close(&r);
}

/* However deep: each level is looked at a few times, not once for each one above it. */
TEST(five_thousand_levels_are_deleted_and_what_lies_too_deep_is_told)
{
	enum { DEPTH = 5000 };
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	nest(&r, "top", DEPTH);
	CHECK(mkdirat(r.dir_fd, "top/d/beside", 0755) == 0);
	CHECK_CODE(rig_do(&r, TREE_GLOB, 0, "", "{\"pattern\":\"**/needle\"}", &reply), TREE_OK);
	CHECK(json_is_true(json_object_get(reply.json, "truncated")));
	CHECK_CODE(rig_do(&r, TREE_TAR_OUT, 0, "top", "", &reply), TREE_TOO_LARGE);
	CHECK_CODE(rig_do(&r, TREE_DELETE, TREE_RECURSIVE, "top", "", &reply), TREE_OK);
	CHECK_INT(reply_number(&reply, "deleted"), DEPTH + 3);
	CHECK_INT(entries_of(&r, ""), 0);
	reply_done(&reply);
	rig_close(&r);
}

TEST(names_of_any_bytes_come_back_exactly)
{
	enum { NAMES = 500 };
	AUTO(str_done) struct str bytes = { .max = 4096 };
	struct reply reply = { 0 };
	struct rig r;
	uint32_t seed = 7;

	rig_open(&r);
	for (int i = 0; i < NAMES; i++) {
		char name[256];
		size_t n = 0;

		seed = seed * 1664525 + 1013904223;
		for (size_t len = 1 + (seed >> 24) % 200; n < len; n++) {
			seed = seed * 1664525 + 1013904223;
			name[n] = (char)(seed >> 24);
			if (name[n] == '\0' || name[n] == '/')
				name[n] = 'x';
		}
		name[n] = '\0';
		CHECK_CODE(rig_do(&r, TREE_WRITE, 0, name, "x", &reply), TREE_OK);
	}
	struct tree_ask ask = { .flags = TREE_HIDDEN, .request = { .verb = TREE_LIST } };
	rig_ask(&r, ask, -1);
	struct reply list = { 0 };
	rig_reply(&r, &list);
	const json_t *entries = json_object_get(list.json, "entries");

	CHECK_INT((long long)json_array_size(entries), entries_of(&r, ""));
	for (size_t i = 0; i < json_array_size(entries); i++) {
		const json_t *entry = json_array_get(entries, i);
		const json_t *raw = json_object_get(entry, "path_base64");

		str_clear(&bytes);
		if (raw)
			CHECK(
			    base64_decode(json_string_value(raw), json_string_length(raw), &bytes));
		else
			str_add(&bytes, json_string_value(json_object_get(entry, "path")));
		CHECK(is_there(&r, str_text(&bytes)));
		CHECK_CODE(rig_do(&r, TREE_DELETE, 0, str_text(&bytes), "", &reply), TREE_OK);
	}
	CHECK_INT(entries_of(&r, ""), 0);
	reply_done(&reply);
	reply_done(&list);
	rig_close(&r);
}

TEST(rights_are_those_of_the_user)
{
	struct reply reply = { 0 };
	struct rig outer, r = { 0 };

	if (getuid() != 0)
		SKIP("needs root");
	rig_open(&outer);
	put(&outer, "mine", "x");
	put(&outer, "secret", "x");
	CHECK(mkdirat(outer.dir_fd, "open", 0777) == 0);
	CHECK(fchmodat(outer.dir_fd, "open", 0777, 0) == 0);
	CHECK(fchmodat(outer.dir_fd, "mine", 0, 0) == 0);
	CHECK(fchownat(outer.dir_fd, "mine", 1000, 1000, 0) == 0);
	CHECK(fchmodat(outer.dir_fd, "secret", 0600, 0) == 0);
	put(&outer, "open/theirs", "x");
	CHECK(fchmodat(outer.dir_fd, "open/theirs", 0640, 0) == 0);
	rig_start(&r, outer.root, 1000);
	CHECK_CODE(rig_do(&r, TREE_READ, 0, "mine", "", &reply), TREE_PERMISSION_DENIED);
	CHECK_CODE(rig_do(&r, TREE_READ, 0, "secret", "", &reply), TREE_PERMISSION_DENIED);
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "new", "x", &reply), TREE_PERMISSION_DENIED);
	CHECK_CODE(rig_do(&r, TREE_DELETE, 0, "mine", "", &reply), TREE_PERMISSION_DENIED);
	CHECK_CODE(rig_do(&r, TREE_STAT, 0, "secret", "", &reply), TREE_OK);
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "open/theirs", "y", &reply), TREE_OK);
	CHECK_STR(got(&outer, "open/theirs"), "y");
	CHECK_CODE(rig_do(&r, TREE_GREP, 0, "", "{\"pattern\":\"x\"}", &reply), TREE_OK);
	CHECK_INT(json_integer_value(
		      json_object_get(json_object_get(reply.json, "skipped"), "unreadable")),
	          2);
	CHECK_CODE(rig_do(&r, TREE_TAR_OUT, 0, "", "", &reply), TREE_PERMISSION_DENIED);
	reply_done(&reply);
	rig_close(&r);
	rig_close(&outer);
}

TEST(a_body_that_ends_early_leaves_the_old_file)
{
	static char half[100000];
	struct reply reply = { 0 };
	struct rig r;
	unsigned char buf[TREE_PACKET_MAX];
	struct err e;
	size_t taken;
	int status;

	for (int how = 0; how < 3; how++) {
		rig_open(&r);
		put(&r, "f", "old");
		struct tree_ask ask = { .id = ++r.id,
			                .request = { .verb = TREE_WRITE },
			                .path = span_of("f"),
			                .body = { half, 50000 },
			                .has_more = true };
		int n = tree_ask_build(&ask, buf, &taken, &e);

		rig_send(&r, buf, (size_t)n, -1);
		if (how == 0) { /* the other end goes */
			close(r.socket_fd);
			CHECK(waitpid(r.pid, &status, 0) == r.pid && status == 0);
			CHECK_STR(got(&r, "f"), "old");
			CHECK_INT(entries_of(&r, ""), 1);
			rig_start(&r, r.root, 0);
		} else if (how == 1) { /* cancelled */
			rig_cancel(&r);
			rig_reply(&r, &reply);
			CHECK_CODE(reply.last.code, TREE_EXPIRED);
		} else { /* nonsense */
			rig_send(&r, "nonsense", 8, -1);
			rig_reply(&r, &reply);
			CHECK(reply.last.code != TREE_OK);
			CHECK(waitpid(r.pid, &status, 0) == r.pid && status == 0);
			rig_start(&r, r.root, 0);
		}
		CHECK_STR(got(&r, "f"), "old");
		CHECK_INT(entries_of(&r, ""), 1);
		rig_close(&r);
	}
	reply_done(&reply);
}

TEST(two_workers_writing_one_file_leave_one_of_the_two)
{
	static char a[300000], b[300000];
	struct reply reply = { 0 };
	struct rig r, other = { 0 };

	rig_open(&r);
	rig_start(&other, r.root, 0);
	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	for (int i = 0; i < 50; i++) {
		struct tree_ask ask = { .request = { .verb = TREE_WRITE },
			                .path = span_of("f"),
			                .body = { a, sizeof a } };

		rig_ask(&r, ask, -1);
		ask.body.at = b;
		rig_ask(&other, ask, -1);
		rig_reply(&r, &reply);
		CHECK_CODE(reply.last.code, TREE_OK);
		rig_reply(&other, &reply);
		CHECK_CODE(reply.last.code, TREE_OK);
		const char *text = got(&r, "f");

		CHECK_INT((long long)strlen(text), (long long)sizeof a);
		CHECK(memcmp(text, a, sizeof a) == 0 || memcmp(text, b, sizeof b) == 0);
	}
	CHECK_INT(entries_of(&r, ""), 1);
	reply_done(&reply);
	rig_close(&other);
	rig_close(&r);
}

TEST(a_stuck_reader_can_still_cancel)
{
	struct reply reply = { 0 };
	struct rig r;
	int fds[2];

	rig_open(&r);
	AUTO(fd_close) int fd = openat(r.dir_fd, "large", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(ftruncate(fd, 1 << 30) == 0);
	/* Nobody reads the pipe; then nobody reads the socket. */
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	struct tree_ask ask = { .request = { .verb = TREE_READ }, .path = span_of("large") };
	rig_ask(&r, ask, fds[1]);
	close(fds[1]);
	usleep(50000);
	rig_cancel(&r);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_EXPIRED);
	close(fds[0]);

	rig_ask(&r, ask, -1);
	usleep(50000);
	rig_cancel(&r);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_EXPIRED);
	CHECK_CODE(rig_do(&r, TREE_STAT, 0, "large", "", &reply), TREE_OK);
	reply_done(&reply);
	rig_close(&r);
}
