#include <time.h>

#include "test_tree.h"

static void put_tree(struct rig *r)
{
	CHECK(mkdirat(r->dir_fd, "src", 0755) == 0);
	CHECK(mkdirat(r->dir_fd, "src/deep", 0755) == 0);
	CHECK(mkdirat(r->dir_fd, ".git", 0755) == 0);
	CHECK(mkdirat(r->dir_fd, "out", 0755) == 0);
	put(r, ".gitignore", "out/\n*.log\n");
	put(r, ".git/config", "needle\n");
	put(r, ".env", "needle=1\n");
	put(r, "src/a.c", "int a;\nint needle;\nint b;\nint NEEDLE;\n");
	put(r, "src/a.h", "needle\n");
	put(r, "src/deep/.gitignore", "!x.log\nskip\n");
	put(r, "src/deep/x.log", "needle\n");
	put(r, "src/deep/skip", "needle\n");
	put(r, "src/y.log", "needle\n");
	put(r, "out/o", "needle\n");
	put_bytes(r, "binary", "needle\0\n", 8);
	CHECK(symlinkat("src/a.c", r->dir_fd, "link") == 0);
	CHECK(symlinkat(".", r->dir_fd, "src/loop") == 0);
}

/* "path:line path:line …" of an answer. */
static const char *summary(const struct reply *r)
{
	static char text[4096];
	const json_t *matches = json_object_get(r->json, "matches");
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < json_array_size(matches); i++) {
		const json_t *m = json_array_get(matches, i);

		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%lld", i ? " " : "",
		                         json_string_value(json_object_get(m, "path")),
		                         json_integer_value(json_object_get(m, "line")));
	}
	return text;
}

TEST(grep_finds_what_is_tracked_and_says_where)
{
	static const struct {
		const char *base, *body, *found;
	} cases[] = {
		{ "", "{\"pattern\":\"needle\"}", ".env:1 src/a.c:2 src/a.h:1 src/deep/x.log:1" },
		{ "", "{\"pattern\":\"needle\",\"literal\":true}",
		  ".env:1 src/a.c:2 src/a.h:1 src/deep/x.log:1" },
		{ "", "{\"pattern\":\"needle\",\"ignore_case\":true,\"glob\":\"*.c\"}",
		  "src/a.c:2 src/a.c:4" },
		{ "",
		  "{\"pattern\":\"needle\",\"ignore_case\":true,\"literal\":true,\"glob\":\"*.c\"}",
		  "src/a.c:2 src/a.c:4" },
		{ "", "{\"pattern\":\"n[e]+dle\",\"path\":\"src\",\"glob\":\"**/*.{c,h}\"}",
		  "src/a.c:2 src/a.h:1" },
		{ "src", "{\"pattern\":\"needle\",\"glob\":[\"!*.h\"]}", "a.c:2 deep/x.log:1" },
		{ "src", "{\"pattern\":\"needle\",\"path\":\"/src/a.h\"}", "/src/a.h:1" },
		{ "", "{\"pattern\":\"needle\",\"ignored\":true,\"path\":\"out\"}", "out/o:1" },
		{ "", "{\"pattern\":\"needle\",\"path\":\"src/deep\"}", "src/deep/x.log:1" },
		{ "", "{\"pattern\":\"^int\\\\s\\\\w;$\",\"path\":\"src\"}",
		  "src/a.c:1 src/a.c:3" },
		{ "", "{\"pattern\":\"a;\\\\nint\",\"multiline\":true,\"path\":\"src\"}",
		  "src/a.c:1" },
		{ "", "{\"pattern\":\"a;\\\\nint\",\"path\":\"src\"}", "" },
		{ "", "{\"pattern\":\"needle\",\"max\":1}", ".env:1" },
		{ "", "{\"pattern\":\"(?i)NeEdLe;\",\"path\":\"src\"}", "src/a.c:2 src/a.c:4" },
		{ "", "{\"pattern\":\"\\\\Aint a\",\"path\":\"src\"}", "src/a.c:1" },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put_tree(&r);
	for (size_t i = 0; i < COUNT(cases); i++) {
		CHECK_CODE(rig_do(&r, TREE_GREP, 0, cases[i].base, cases[i].body, &reply), TREE_OK);
		if (strcmp(summary(&reply), cases[i].found) != 0)
			printf("# %s\n", cases[i].body);
		CHECK_STR(summary(&reply), cases[i].found);
	}
	CHECK_CODE(rig_do(&r, TREE_GREP, 0, "", "{\"pattern\":\"needle\",\"max\":1}", &reply),
	           TREE_OK);
	CHECK(json_is_true(json_object_get(reply.json, "truncated")));
	CHECK_STR(reply_text(&reply, "why"), "max");
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_match_comes_with_its_surroundings)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "f", "1\n2\n3\n  hit\r\n5\n6");
	CHECK_CODE(rig_do(&r, TREE_GREP, 0, "", "{\"pattern\":\"hit\",\"context\":2}", &reply),
	           TREE_OK);
	const json_t *m = json_array_get(json_object_get(reply.json, "matches"), 0);

	CHECK_STR(json_string_value(json_object_get(m, "text")), "  hit");
	CHECK_INT(json_integer_value(json_object_get(m, "col")), 3);
	CHECK_INT(json_integer_value(json_object_get(m, "line")), 4);
	const json_t *before = json_object_get(m, "before"), *after = json_object_get(m, "after");

	CHECK_INT((long long)json_array_size(before), 2);
	CHECK_STR(json_string_value(json_array_get(before, 0)), "2");
	CHECK_INT((long long)json_array_size(after), 2);
	CHECK_STR(json_string_value(json_array_get(after, 1)), "6");
	reply_done(&reply);
	rig_close(&r);
}

/* The window is 1 MiB; matches at its edges have context and the right numbers. */
TEST(a_file_larger_than_the_window_is_searched_whole)
{
	enum { LINES = 200000 };
	struct reply reply = { 0 };
	struct rig r;
	AUTO(str_done) struct str text = { .max = SIZE_MAX };

	rig_open(&r);
	for (int i = 1; i <= LINES; i++)
		str_addf(&text, "line %d%s\n", i, i % 50000 == 0 ? " HIT" : "");
	put_bytes(&r, "f", text.data, text.len);
	for (int literal = 0; literal < 2; literal++) {
		CHECK_CODE(rig_do(&r, TREE_GREP, 0, "",
		                  literal ? "{\"pattern\":\"HIT\",\"literal\":true,\"context\":2}"
		                          : "{\"pattern\":\"H.T\",\"context\":2}",
		                  &reply),
		           TREE_OK);
		CHECK_STR(summary(&reply), "f:50000 f:100000 f:150000 f:200000");
		const json_t *m = json_array_get(json_object_get(reply.json, "matches"), 2);

		CHECK_STR(json_string_value(json_array_get(json_object_get(m, "before"), 0)),
		          "line 149998");
		CHECK_STR(json_string_value(json_array_get(json_object_get(m, "after"), 1)),
		          "line 150002");
	}
	/* One line of 3 MiB. */
	str_clear(&text);
	for (int i = 0; i < 3 << 20; i++)
		str_addn(&text, "x", 1);
	str_add(&text, "HIT\nnext HIT\n");
	put_bytes(&r, "f", text.data, text.len);
	CHECK_CODE(rig_do(&r, TREE_GREP, 0, "", "{\"pattern\":\"HIT\"}", &reply), TREE_OK);
	CHECK_STR(summary(&reply), "f:1 f:2");
	CHECK_CODE(rig_do(&r, TREE_GREP, 0, "", "{\"pattern\":\"HIT\",\"literal\":true}", &reply),
	           TREE_OK);
	CHECK_STR(summary(&reply), "f:1 f:2");
	reply_done(&reply);
	rig_close(&r);
}

enum { ENDLESS_MS = 20000 }; /* what does not end in time takes minutes */

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

TEST(patterns_that_explode_end_in_time)
{
	static const char *const bodies[] = {
		"{\"pattern\":\"(a+)+$\"}",
		"{\"pattern\":\"(a|aa)+$\",\"multiline\":true}",
		"{\"pattern\":\"(?:a?){50}a{50}b\"}",
		"{\"pattern\":\"(x+x+)+y\",\"ignore_case\":true}",
		"{\"pattern\":\"((((a*)*)*)*)*b\"}",
	};
	AUTO(str_done) struct str text = { .max = SIZE_MAX };
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	for (int i = 0; i < 2000; i++)
		str_add(&text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"
		               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
	put_bytes(&r, "f", text.data, text.len);
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct tree_ask ask = { .request = { .verb = TREE_GREP, .time_ms = 1000 },
			                .body = span_of(bodies[i]) };
		long long start = now_ms();

		rig_ask(&r, ask, -1);
		rig_reply(&r, &reply);
		CHECK_CODE(reply.last.code, TREE_OK);
		CHECK(now_ms() - start < 1000 + ENDLESS_MS);
	}
	reply_done(&reply);
	rig_close(&r);
}

/* One line, as long as they come: the matcher is asked in slices. */
TEST(patterns_that_explode_on_a_long_line_end_in_time)
{
	static const char *const bodies[] = {
		"{\"pattern\":\"(a+)+$\"}",
		"{\"pattern\":\"(a|aa)+$\",\"multiline\":true}",
		"{\"pattern\":\"a.*a.*a.*a.*!!\"}",
	};
	AUTO(str_done) struct str text = { .max = SIZE_MAX };
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	for (int i = 0; i < 8 << 20; i++)
		str_addn(&text, "a", 1);
	str_add(&text, "!\n");
	put_bytes(&r, "f", text.data, text.len);
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct tree_ask ask = { .request = { .verb = TREE_GREP, .time_ms = 500 },
			                .body = span_of(bodies[i]) };
		long long start = now_ms();

		rig_ask(&r, ask, -1);
		rig_reply(&r, &reply);
		CHECK_CODE(reply.last.code, TREE_OK);
		printf("# %lld ms\n", now_ms() - start);
		CHECK(now_ms() - start < 500 + ENDLESS_MS);
	}
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_search_can_be_cancelled_and_the_next_one_works)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	/* 1 TB of text that takes no room: a hole after a first block that is no NUL. */
	AUTO(fd_close) int fd = openat(r.dir_fd, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	char block[8192];

	memset(block, 'y', sizeof block);
	CHECK_INT(write(fd, block, sizeof block), (long long)sizeof block);
	if (ftruncate(fd, 1ll << 40) < 0)
		SKIP("no sparse files here");
	struct tree_ask ask = { .request = { .verb = TREE_GREP },
		                .body = span_of("{\"pattern\":\"zz\",\"path\":\"huge\"}") };
	long long start = now_ms();

	rig_ask(&r, ask, -1);
	usleep(100000);
	rig_cancel(&r);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_EXPIRED);
	CHECK(now_ms() - start < ENDLESS_MS);

	ask.request.time_ms = 300;
	rig_ask(&r, ask, -1);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_OK);
	CHECK_STR(reply_text(&reply, "why"), "time");
	CHECK(now_ms() - start < 2ll * ENDLESS_MS);
	rig_cancel(&r); /* too late: nobody minds */
	CHECK_CODE(rig_do(&r, TREE_STAT, 0, "huge", "", &reply), TREE_OK);
	reply_done(&reply);
	rig_close(&r);
}

TEST(glob_sorts_by_path_or_time)
{
	static const struct {
		const char *body, *first;
		int n;
	} cases[] = {
		{ "{\"pattern\":\"**/*.c\"}", "src/a.c", 1 },
		{ "{\"pattern\":\"src/*\"}", "src/a.c", 4 },
		{ "{\"pattern\":\"*\"}", ".env", 5 },
		{ "{\"pattern\":\"**/*.{c,h}\",\"sort\":\"mtime\"}", "src/a.h", 2 },
		{ "{\"pattern\":\"**/*.{c,h}\",\"sort\":\"path\"}", "src/a.c", 2 },
		{ "{\"pattern\":\"*.h\",\"path\":\"src\"}", "src/a.h", 1 },
		{ "{\"pattern\":\"**/o\",\"ignored\":true}", "out/o", 1 },
		{ "{\"pattern\":\"**/o\"}", NULL, 0 },
		{ "{\"pattern\":\"**\",\"max\":2}", ".env", 2 },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put_tree(&r);
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	CHECK(utimensat(r.dir_fd, "src/a.c", old, 0) == 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		CHECK_CODE(rig_do(&r, TREE_GLOB, 0, "", cases[i].body, &reply), TREE_OK);
		const json_t *paths = json_object_get(reply.json, "paths");

		if ((int)json_array_size(paths) != cases[i].n)
			printf("# %s: %s\n", cases[i].body, str_text(&reply.data));
		CHECK_INT((long long)json_array_size(paths), cases[i].n);
		CHECK_STR(json_string_value(json_array_get(paths, 0)), cases[i].first);
	}
	reply_done(&reply);
	rig_close(&r);
}
