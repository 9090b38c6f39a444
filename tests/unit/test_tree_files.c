#include "test_tree.h"

#define HELLO_HASH "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC_HASH                                                                                   \
	"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-2           \
	                                                                    */

TEST(a_file_is_written_and_read_back)
{
	static const struct {
		const char *path, *bytes, *hash;
	} cases[] = {
		{ "a.txt", "hello\n", HELLO_HASH },
		{ "/b.txt", "abc", ABC_HASH },
		{ "empty", "", EMPTY_HASH },
		{ "deep/er/and/deeper.txt", "hello\n", HELLO_HASH },
		{ "deep/../up.txt", "hello\n", HELLO_HASH },
		{ "//x//y.txt", "abc", ABC_HASH },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *path = cases[i].path, *bytes = cases[i].bytes;

		CHECK_CODE(rig_do(&r, TREE_WRITE, 0, path, bytes, &reply), TREE_OK);
		CHECK_STR(reply_text(&reply, "hash"), cases[i].hash);
		CHECK_INT(reply_number(&reply, "bytes"), (long long)strlen(bytes));
		CHECK(json_is_true(json_object_get(reply.json, "created")));

		CHECK_CODE(rig_do(&r, TREE_READ, 0, path, "", &reply), TREE_OK);
		CHECK_STR(str_text(&reply.data), bytes);
		CHECK_STR(reply.first.hash, cases[i].hash);
		CHECK_INT(reply.first.content, TREE_RAW);
		CHECK_INT(reply.first.mode, 0644);
		CHECK_INT((long long)reply.first.count, (long long)strlen(bytes));
	}
	CHECK_STR(got(&r, "up.txt"), "hello\n");
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_range_is_what_it_says)
{
	static const struct {
		uint64_t from, count;
		const char *bytes; /* NULL: refused */
	} cases[] = {
		{ 0, 3, "012" },
		{ 3, 4, "3456" },
		{ 8, 100, "89" },
		{ 9, UINT64_MAX, "9" },
		{ 0, 0, "" },
		{ 10, 1, NULL },
		{ UINT64_MAX, 1, NULL },
		{ 11, UINT64_MAX, NULL },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "digits", "0123456789");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct tree_ask ask = { .flags = TREE_HAS_RANGE,
			                .request = { .verb = TREE_READ,
			                             .from = cases[i].from,
			                             .count = cases[i].count },
			                .path = span_of("digits") };

		rig_ask(&r, ask, -1);
		rig_reply(&r, &reply);
		CHECK_CODE(reply.last.code, cases[i].bytes ? TREE_OK : TREE_INVALID);
		if (cases[i].bytes)
			CHECK_STR(str_text(&reply.data), cases[i].bytes);
	}
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_large_file_comes_in_packets_and_its_hash_at_the_end)
{
	enum { BYTES = 3 << 20 };
	AUTO(freep) char *bytes = mem_alloc(BYTES);
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	struct tree_ask ask = { .request = { .verb = TREE_WRITE },
		                .path = span_of("large"),
		                .body = { bytes, BYTES } };
	rig_ask(&r, ask, -1);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_OK);
	char hash[TREE_HASH_TEXT];
	snprintf(hash, sizeof hash, "%s", reply_text(&reply, "hash"));

	CHECK_CODE(rig_do(&r, TREE_READ, 0, "large", "", &reply), TREE_OK);
	CHECK_INT((long long)reply.data.len, BYTES);
	CHECK(memcmp(reply.data.data, bytes, BYTES) == 0);
	CHECK_STR(reply.first.hash, "");
	CHECK_STR(reply.last.hash, hash);
	reply_done(&reply);
	rig_close(&r);
}

TEST(bodies_and_answers_go_through_a_descriptor)
{
	enum { BYTES = 1 << 20 };
	AUTO(freep) char *bytes = mem_alloc(BYTES), *back = mem_alloc(BYTES);
	struct reply reply = { 0 };
	struct rig r;
	int fds[2];

	rig_open(&r);
	memset(bytes, 'x', BYTES);
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	struct tree_ask ask = { .request = { .verb = TREE_WRITE }, .path = span_of("piped") };
	rig_ask(&r, ask, fds[0]);
	close(fds[0]);
	for (size_t at = 0; at < BYTES;)
		at += (size_t)write(fds[1], bytes + at, BYTES - at);
	close(fds[1]);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_OK);
	CHECK_INT(reply_number(&reply, "bytes"), BYTES);

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	ask.request.verb = TREE_READ;
	rig_ask(&r, ask, fds[1]);
	close(fds[1]);
	size_t n = 0;
	for (ssize_t got_now = 1; got_now > 0; n += (size_t)got_now)
		got_now = read(fds[0], back + n, BYTES - n + (n == BYTES));
	close(fds[0]);
	CHECK_INT((long long)n, BYTES);
	CHECK(memcmp(bytes, back, BYTES) == 0);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_OK);
	CHECK_INT((long long)reply.data.len, 0);
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_write_knows_what_it_replaces)
{
	struct reply reply = { 0 };
	struct rig r;
	struct stat st;

	rig_open(&r);
	put(&r, "a", "hello\n");
	CHECK(fchmodat(r.dir_fd, "a", 0750, 0) == 0);
	struct tree_ask ask = { .request = { .verb = TREE_WRITE },
		                .path = span_of("a"),
		                .match = span_of(HELLO_HASH),
		                .body = span_of("two\n") };

	rig_ask(&r, ask, -1);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_OK);
	CHECK(json_is_false(json_object_get(reply.json, "created")));
	CHECK(fstatat(r.dir_fd, "a", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0750);

	rig_ask(&r, ask, -1); /* it is not the same any more */
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_STALE);
	CHECK_STR(got(&r, "a"), "two\n");

	ask.path = span_of("nowhere");
	rig_ask(&r, ask, -1);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_STALE);
	CHECK(!is_there(&r, "nowhere"));

	CHECK_CODE(rig_do(&r, TREE_WRITE, TREE_ONLY_NEW, "a", "three", &reply), TREE_EXISTS);
	CHECK_CODE(rig_do(&r, TREE_WRITE, TREE_ONLY_NEW, "new", "three", &reply), TREE_OK);
	CHECK_STR(got(&r, "a"), "two\n");
	CHECK_INT(entries_of(&r, ""), 2);
	reply_done(&reply);
	rig_close(&r);
}

TEST(modes_are_masked_to_nine_bits)
{
	static const struct {
		uint32_t asked, is;
	} cases[] = { { 0644, 0644 }, { 06777, 0777 }, { 0100755, 0755 },
		      { 01000, 0 },   { 0, 0 },        { UINT32_MAX, 0777 } };
	struct reply reply = { 0 };
	struct rig r;
	struct stat st;

	rig_open(&r);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct tree_ask ask = { .flags = TREE_HAS_MODE,
			                .request = { .verb = TREE_WRITE, .mode = cases[i].asked },
			                .path = span_of("f"),
			                .body = span_of("x") };

		rig_ask(&r, ask, -1);
		rig_reply(&r, &reply);
		CHECK_CODE(reply.last.code, TREE_OK);
		CHECK(fstatat(r.dir_fd, "f", &st, 0) == 0);
		CHECK_INT(st.st_mode, S_IFREG | cases[i].is);
	}
	reply_done(&reply);
	rig_close(&r);
}

static int run_in(struct rig *r, const char *name)
{
	char path[128];
	int status = 0;
	pid_t pid = fork();

	snprintf(path, sizeof path, "%s/%s", r->root, name);
	if (pid == 0) {
		execl(path, name, NULL);
		_exit(errno == ETXTBSY ? 126 : 127);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Nobody has it open for writing any more when the answer comes (execve(2), ETXTBSY). */
TEST(what_was_written_can_be_executed_at_once)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "run", "#!/bin/sh\n", &reply), TREE_OK);
	CHECK_INT(fchmodat(r.dir_fd, "run", 0755, 0), 0);
	for (int i = 1; i < 10; i++) {
		char text[32];

		snprintf(text, sizeof text, "#!/bin/sh\nexit %d\n", i);
		CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "run", text, &reply), TREE_OK);
		CHECK_INT(run_in(&r, "run"), i);
	}
	reply_done(&reply);
	rig_close(&r);
}

TEST(every_verb_names_what_is_wrong_with_a_path)
{
	static const struct {
		enum tree_verb verb;
		enum tree_code code;
		const char *path, *body;
	} cases[] = {
		{ TREE_READ, TREE_NOT_FOUND, "none", "" },
		{ TREE_READ, TREE_IS_DIRECTORY, "dir", "" },
		{ TREE_READ, TREE_IS_DIRECTORY, "", "" },
		{ TREE_READ, TREE_NOT_DIRECTORY, "file/below", "" },
		{ TREE_READ, TREE_NOT_DIRECTORY, "file/", "" },
		{ TREE_LINES, TREE_NOT_FOUND, "none", "" },
		{ TREE_STAT, TREE_NOT_FOUND, "none", "" },
		{ TREE_LIST, TREE_NOT_DIRECTORY, "file", "" },
		{ TREE_LIST, TREE_NOT_FOUND, "none", "" },
		{ TREE_WRITE, TREE_IS_DIRECTORY, "dir", "x" },
		{ TREE_WRITE, TREE_IS_DIRECTORY, "new/", "x" },
		{ TREE_WRITE, TREE_NOT_DIRECTORY, "file/x", "x" },
		{ TREE_WRITE, TREE_INVALID, "", "x" },
		{ TREE_WRITE, TREE_INVALID, "dir/..", "x" },
		{ TREE_WRITE, TREE_INVALID, "dir/.", "x" },
		{ TREE_EDIT, TREE_NOT_FOUND, "none",
		  "{\"edits\":[{\"old\":\"a\",\"new\":\"b\"}]}" },
		{ TREE_DELETE, TREE_NOT_FOUND, "none", "" },
		{ TREE_DELETE, TREE_INVALID, "", "" },
		{ TREE_DELETE, TREE_INVALID, "/", "" },
		{ TREE_DELETE, TREE_INVALID, "dir/..", "" },
		{ TREE_DELETE, TREE_CONFLICT, "full", "" },
		{ TREE_MKDIR, TREE_EXISTS, "", "{\"path\":\"file\"}" },
		{ TREE_MKDIR, TREE_NOT_DIRECTORY, "", "{\"path\":\"file/x\"}" },
		{ TREE_MOVE, TREE_NOT_FOUND, "", "{\"from\":\"none\",\"to\":\"x\"}" },
		{ TREE_MOVE, TREE_EXISTS, "", "{\"from\":\"file\",\"to\":\"dir\"}" },
		{ TREE_COPY, TREE_NOT_FOUND, "", "{\"from\":\"none\",\"to\":\"x\"}" },
		{ TREE_COPY, TREE_EXISTS, "", "{\"from\":\"dir\",\"to\":\"file\"}" },
		{ TREE_GREP, TREE_NOT_FOUND, "", "{\"pattern\":\"x\",\"path\":\"none\"}" },
		{ TREE_GLOB, TREE_NOT_DIRECTORY, "", "{\"pattern\":\"x\",\"path\":\"file\"}" },
		{ TREE_WATCH, TREE_NOT_DIRECTORY, "file", "" },
		{ TREE_TAR_OUT, TREE_NOT_FOUND, "none", "" },
		{ TREE_TAR_IN, TREE_NOT_DIRECTORY, "file", "" },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "file", "x");
	CHECK(mkdirat(r.dir_fd, "dir", 0755) == 0);
	CHECK(mkdirat(r.dir_fd, "full", 0755) == 0);
	put(&r, "full/x", "x");
	for (size_t i = 0; i < COUNT(cases); i++) {
		enum tree_code code =
		    rig_do(&r, cases[i].verb, 0, cases[i].path, cases[i].body, &reply);

		if (code != cases[i].code)
			printf("# %s \"%s\"\n", tree_verb_name(cases[i].verb), cases[i].path);
		CHECK_CODE(code, cases[i].code);
		CHECK_STR(reply_text(&reply, "code"), tree_code_name(code));
		CHECK_INT(reply_number(&reply, "status"), tree_code_status(code));
		CHECK(reply_text(&reply, "detail"));
		CHECK(!strstr(str_text(&reply.data), r.root)); /* where the root is, is not told */
	}
	CHECK_INT(entries_of(&r, ""), 3);
	reply_done(&reply);
	rig_close(&r);
}

TEST(lines_say_what_there_is_and_what_comes_next)
{
	static const struct {
		const char *bytes;
		uint64_t from, count;
		const char *text;
		int total, next; /* next 0: null */
		const char *eol;
		bool bom;
	} cases[] = {
		{ "a\nb\nc\n", 1, 2, "a\nb\n", 3, 3, "lf", false },
		{ "a\nb\nc\n", 3, 9, "c\n", 3, 0, "lf", false },
		{ "a\nb\nc", 3, 1, "c", 3, 0, "lf", false },
		{ "a\r\nb\r\n", 1, 1, "a\r\n", 2, 2, "crlf", false },
		{ "a\r\nb\n", 2, 1, "b\n", 2, 0, "mixed", false },
		{ "\xef\xbb\xbf"
		  "a\n",
		  1, 1, "a\n", 1, 0, "lf", true },
		{ "", 1, 10, "", 0, 0, "none", false },
		{ "one", 1, 10, "one", 1, 0, "none", false },
		{ "a\nb\n", 7, 2, "", 2, 0, "lf", false },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct tree_ask ask = { .flags = TREE_HAS_RANGE,
			                .request = { .verb = TREE_LINES,
			                             .from = cases[i].from,
			                             .count = cases[i].count },
			                .path = span_of("f") };

		put(&r, "f", cases[i].bytes);
		rig_ask(&r, ask, -1);
		rig_reply(&r, &reply);
		CHECK_STR(reply_text(&reply, "text"), cases[i].text);
		CHECK_STR(reply_text(&reply, "encoding"), "utf-8");
		CHECK_INT(reply_number(&reply, "total_lines"), cases[i].total);
		CHECK_INT(reply_number(&reply, "next"), cases[i].next);
		CHECK_STR(reply_text(&reply, "eol"), cases[i].eol);
		CHECK_INT(json_is_true(json_object_get(reply.json, "bom")), cases[i].bom);
		CHECK_INT(reply_number(&reply, "bytes"), (long long)strlen(cases[i].bytes));
	}
	reply_done(&reply);
	rig_close(&r);
}

TEST(long_lines_are_cut_on_a_character_and_named)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "f", "short\n\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\r\nend\n");
	struct tree_ask ask = { .request = { .verb = TREE_LINES, .max = 5 }, .path = span_of("f") };

	rig_ask(&r, ask, -1);
	rig_reply(&r, &reply);
	CHECK_STR(reply_text(&reply, "text"), "short\n\xc3\xa4\xc3\xa4… [6 more bytes]\r\nend\n");
	CHECK_INT((long long)json_array_size(json_object_get(reply.json, "cut")), 1);
	CHECK_INT(json_integer_value(json_array_get(json_object_get(reply.json, "cut"), 0)), 2);
	reply_done(&reply);
	rig_close(&r);
}

TEST(lines_that_are_not_utf8_come_as_base64)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put_bytes(&r, "f", "ok\n\xff\0\n", 6);
	CHECK_CODE(rig_do(&r, TREE_LINES, 0, "f", "", &reply), TREE_OK);
	CHECK_STR(reply_text(&reply, "encoding"), "base64");
	CHECK_STR(reply_text(&reply, "base64"), "b2sK/wAK");
	CHECK(!reply_text(&reply, "text"));
	reply_done(&reply);
	rig_close(&r);
}

TEST(list_goes_as_deep_as_asked)
{
	static const struct {
		uint32_t depth, max, flags;
		int n;
		bool is_cut;
	} cases[] = {
		{ 0, 0, 0, 2, false }, { 1, 0, 0, 2, false },           { 2, 0, 0, 4, false },
		{ 9, 0, 0, 5, false }, { 9, 0, TREE_HIDDEN, 6, false }, { 9, 2, 0, 2, true },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	CHECK(mkdirat(r.dir_fd, "d", 0755) == 0);
	CHECK(mkdirat(r.dir_fd, "d/e", 0755) == 0);
	put(&r, "d/x", "");
	put(&r, "d/e/y", "");
	put(&r, "d/.hidden", "");
	CHECK(symlinkat("d/x", r.dir_fd, "link") == 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct tree_ask ask = { .flags = cases[i].flags,
			                .request = { .verb = TREE_LIST,
			                             .depth = cases[i].depth,
			                             .max = cases[i].max } };

		rig_ask(&r, ask, -1);
		rig_reply(&r, &reply);
		const json_t *entries = json_object_get(reply.json, "entries");

		CHECK_INT((long long)json_array_size(entries), cases[i].n);
		CHECK_INT(json_is_true(json_object_get(reply.json, "truncated")), cases[i].is_cut);
		CHECK_STR(json_string_value(json_object_get(json_array_get(entries, 0), "path")),
		          "d");
	}
	CHECK_CODE(rig_do(&r, TREE_STAT, 0, "link", "", &reply), TREE_OK);
	CHECK_STR(reply_text(&reply, "type"), "symlink");
	CHECK_STR(reply_text(&reply, "target"), "d/x");
	CHECK_CODE(rig_do(&r, TREE_STAT, TREE_HASH, "d/x", "", &reply), TREE_OK);
	CHECK_STR(reply_text(&reply, "hash"), EMPTY_HASH);
	reply_done(&reply);
	rig_close(&r);
}

TEST(links_are_followed_by_writes_and_not_by_deletes)
{
	struct reply reply = { 0 };
	struct rig r;
	struct stat st;

	rig_open(&r);
	CHECK(mkdirat(r.dir_fd, "d", 0755) == 0);
	put(&r, "d/target", "old");
	CHECK(symlinkat("d/target", r.dir_fd, "rel") == 0);
	CHECK(symlinkat("/d/target", r.dir_fd, "abs") == 0); /* the root is ours */
	CHECK(symlinkat("../../../../d/new", r.dir_fd, "up") == 0);
	CHECK(symlinkat("loop", r.dir_fd, "loop") == 0);

	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "rel", "1", &reply), TREE_OK);
	CHECK_STR(got(&r, "d/target"), "1");
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "abs", "2", &reply), TREE_OK);
	CHECK_STR(got(&r, "d/target"), "2");
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "up", "3", &reply), TREE_OK);
	CHECK_STR(got(&r, "d/new"), "3");
	CHECK_CODE(rig_do(&r, TREE_WRITE, 0, "loop", "4", &reply), TREE_INVALID);
	CHECK(fstatat(r.dir_fd, "rel", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));

	CHECK_CODE(rig_do(&r, TREE_DELETE, TREE_RECURSIVE, "rel", "", &reply), TREE_OK);
	CHECK(!is_there(&r, "rel"));
	CHECK_STR(got(&r, "d/target"), "2");
	CHECK_CODE(rig_do(&r, TREE_MOVE, 0, "", "{\"from\":\"abs\",\"to\":\"moved\"}", &reply),
	           TREE_OK);
	CHECK(fstatat(r.dir_fd, "moved", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
	reply_done(&reply);
	rig_close(&r);
}

TEST(trees_are_made_copied_moved_and_deleted)
{
	struct reply reply = { 0 };
	struct rig r;
	struct stat st;

	rig_open(&r);
	CHECK_CODE(rig_do(&r, TREE_MKDIR, 0, "", "{\"path\":\"t/a/b\",\"mode\":\"0700\"}", &reply),
	           TREE_OK);
	CHECK(json_is_true(json_object_get(reply.json, "created")));
	CHECK_CODE(rig_do(&r, TREE_MKDIR, 0, "", "{\"path\":\"t/a/b\"}", &reply), TREE_OK);
	CHECK(json_is_false(json_object_get(reply.json, "created")));
	CHECK(fstatat(r.dir_fd, "t/a/b", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0700);
	put(&r, "t/a/b/x", "x");
	CHECK(fchmodat(r.dir_fd, "t/a/b/x", 04711, 0) == 0);
	CHECK(symlinkat("b/x", r.dir_fd, "t/a/l") == 0);
	CHECK(mkfifoat(r.dir_fd, "t/a/fifo", 0644) == 0);

	CHECK_CODE(rig_do(&r, TREE_COPY, 0, "", "{\"from\":\"t\",\"to\":\"new/u\"}", &reply),
	           TREE_OK);
	CHECK_INT(reply_number(&reply, "files"), 2);
	CHECK_INT(reply_number(&reply, "skipped"), 1);
	CHECK_STR(got(&r, "new/u/a/l"), "x");
	CHECK(fstatat(r.dir_fd, "new/u/a/b", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0700);
	CHECK(fstatat(r.dir_fd, "new/u/a/b/x", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0711);

	/* Into itself: the copy is not copied. */
	CHECK_CODE(rig_do(&r, TREE_COPY, 0, "", "{\"from\":\"t\",\"to\":\"t/a/in\"}", &reply),
	           TREE_OK);
	CHECK_STR(got(&r, "t/a/in/a/b/x"), "x");
	CHECK(!is_there(&r, "t/a/in/a/in"));

	CHECK_CODE(rig_do(&r, TREE_COPY, 0, "t", "{\"from\":\"a/b/x\",\"to\":\"y\"}", &reply),
	           TREE_OK);
	CHECK_STR(got(&r, "t/y"), "x");
	CHECK_CODE(rig_do(&r, TREE_MOVE, 0, "t", "{\"from\":\"y\",\"to\":\"a/b/x\"}", &reply),
	           TREE_EXISTS);
	CHECK_CODE(rig_do(&r, TREE_MOVE, 0, "t",
	                  "{\"from\":\"y\",\"to\":\"a/b/x\",\"overwrite\":true}", &reply),
	           TREE_OK);
	CHECK(!is_there(&r, "t/y"));
	CHECK_CODE(rig_do(&r, TREE_MOVE, 0, "", "{\"from\":\"new\",\"to\":\"new/below\"}", &reply),
	           TREE_INVALID);
	CHECK_CODE(rig_do(&r, TREE_DELETE, TREE_RECURSIVE, "t", "", &reply), TREE_OK);
	CHECK(reply_number(&reply, "deleted") > 5);
	CHECK_INT(entries_of(&r, ""), 1);
	reply_done(&reply);
	rig_close(&r);
}

TEST(what_is_no_regular_file_is_refused_at_once)
{
	static const char *const names[] = { "fifo", "socket", "null", "link-to-fifo" };
	static const enum tree_verb verbs[] = { TREE_READ, TREE_LINES, TREE_WRITE,
		                                TREE_EDIT, TREE_GREP,  TREE_TAR_OUT };
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	CHECK(mkfifoat(r.dir_fd, "fifo", 0666) == 0);
	CHECK(mknodat(r.dir_fd, "socket", S_IFSOCK | 0666, 0) == 0);
	if (mknodat(r.dir_fd, "null", S_IFCHR | 0666, 0x103) < 0)
		put(&r, "null-is-not-allowed-here", "");
	CHECK(symlinkat("fifo", r.dir_fd, "link-to-fifo") == 0);
	for (size_t i = 0; i < COUNT(names) * COUNT(verbs); i++) {
		const char *name = names[i % COUNT(names)];
		enum tree_verb verb = verbs[i / COUNT(names)];
		const char *body =
		    verb == TREE_EDIT ? "{\"edits\":[{\"old\":\"a\",\"new\":\"b\"}]}" : "x";
		char grep[64];

		if (!is_there(&r, name))
			continue;
		snprintf(grep, sizeof grep, "{\"pattern\":\"x\",\"path\":\"%s\"}", name);
		CHECK_CODE(rig_do(&r, verb, 0, verb == TREE_GREP ? "" : name,
		                  verb == TREE_GREP ? grep : body, &reply),
		           TREE_INVALID);
	}
	reply_done(&reply);
	rig_close(&r);
}

TEST(bodies_of_json_are_read_strictly)
{
	static const struct {
		enum tree_verb verb;
		const char *body;
	} cases[] = {
		{ TREE_EDIT, "" },
		{ TREE_EDIT, "[]" },
		{ TREE_EDIT, "{}" },
		{ TREE_EDIT, "{\"edits\":[]}" },
		{ TREE_EDIT, "{\"edits\":[{\"old\":\"x\"}]}" },
		{ TREE_EDIT, "{\"edits\":[{\"old\":\"\",\"new\":\"y\"}]}" },
		{ TREE_EDIT, "{\"edits\":[{\"old\":\"x\",\"new\":\"x\"}]}" },
		{ TREE_EDIT, "{\"edits\":[{\"old\":\"x\",\"new\":\"y\",\"extra\":1}]}" },
		{ TREE_EDIT, "{\"edits\":[{\"old\":\"x\",\"new\":\"y\"}],\"insert\":{}}" },
		{ TREE_EDIT, "{\"edits\":[{\"old\":\"x\",\"old\":\"x\",\"new\":\"y\"}]}" },
		{ TREE_EDIT, "{\"insert\":{\"line\":-1,\"text\":\"\"}}" },
		{ TREE_EDIT, "{\"insert\":{\"line\":1e3,\"text\":\"\"}}" },
		{ TREE_EDIT, "{\"insert\":{\"line\":4294967296,\"text\":\"\"}}" },
		{ TREE_EDIT, "{\"insert\":{\"line\":99,\"text\":\"\"}}" },
		{ TREE_GREP, "{}" },
		{ TREE_GREP, "{\"pattern\":\"\"}" },
		{ TREE_GREP, "{\"pattern\":\"(\"}" },
		{ TREE_GREP, "{\"pattern\":\"x\",\"max\":1000000}" },
		{ TREE_GREP, "{\"pattern\":\"x\",\"max\":99999999999999999999}" },
		{ TREE_GREP, "{\"pattern\":\"x\",\"glob\":7}" },
		{ TREE_GLOB, "{\"pattern\":\"x\",\"sort\":\"size\"}" },
		{ TREE_GLOB, "{\"pattern\":\"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}\"}" },
		{ TREE_MOVE, "{\"from\":\"f\"}" },
		{ TREE_MOVE, "{\"from\":\"f\",\"to\":\"a\\u0000b\"}" },
		{ TREE_MOVE, "{\"from\":\"f\",\"to\":\"\"}" },
		{ TREE_MKDIR, "{\"path\":\"x\",\"mode\":\"0999\"}" },
		{ TREE_MKDIR, "{\"path_base64\":\"eA\"}" },
		{ TREE_MKDIR, "{\"path\":\"x\",\"path_base64\":\"eA==\"}" },
		{ TREE_BATCH, "{}" },
		{ TREE_PATCH, "nothing of a patch" },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "f", "x\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *path = cases[i].verb == TREE_EDIT ? "f" : "";
		enum tree_code code = rig_do(&r, cases[i].verb, 0, path, cases[i].body, &reply);

		if (code != TREE_INVALID)
			printf("# %s %s\n", tree_verb_name(cases[i].verb), cases[i].body);
		CHECK_CODE(code, TREE_INVALID);
	}
	CHECK_STR(got(&r, "f"), "x\n");
	CHECK_INT(entries_of(&r, ""), 1);
	reply_done(&reply);
	rig_close(&r);
}
