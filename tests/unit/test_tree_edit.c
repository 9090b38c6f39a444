#include "test_tree.h"

#define HELLO_HASH "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

TEST(an_edit_answers_with_hash_match_and_diff)
{
	struct reply reply = { 0 };
	struct rig r;
	struct stat st;

	rig_open(&r);
	CHECK(mkdirat(r.dir_fd, "d", 0755) == 0);
	put(&r, "d/a", "one\r\ntwo\r\nthree\r\n");
	CHECK(fchmodat(r.dir_fd, "d/a", 0640, 0) == 0);
	CHECK_CODE(rig_do(&r, TREE_EDIT, 0, "/d/a",
	                  "{\"edits\":[{\"old\":\"two\\nthree\\n\",\"new\":\"2\\n3\\n\"},"
	                  "{\"old\":\"one\",\"new\":\"1\"}]}",
	                  &reply),
	           TREE_OK);
	CHECK_STR(got(&r, "d/a"), "1\r\n2\r\n3\r\n");
	CHECK_STR(reply_text(&reply, "match"), "eol");
	CHECK_INT(reply_number(&reply, "replaced"), 2);
	CHECK_INT(reply_number(&reply, "bytes"), 9);
	CHECK_STR(reply_text(&reply, "diff"), "--- a/d/a\n+++ b/d/a\n@@ -1,3 +1,3 @@\n"
	                                      "-one\r\n-two\r\n-three\r\n+1\r\n+2\r\n+3\r\n");
	CHECK(fstatat(r.dir_fd, "d/a", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0640);
	reply_done(&reply);
	rig_close(&r);
}

TEST(an_edit_that_fails_changes_nothing_and_helps)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "a", "x\ny\nx\n");
	CHECK_CODE(
	    rig_do(&r, TREE_EDIT, 0, "a",
	           "{\"edits\":[{\"old\":\"y\",\"new\":\"z\"},{\"old\":\"x\",\"new\":\"w\"}]}",
	           &reply),
	    TREE_AMBIGUOUS_MATCH);
	const json_t *lines = json_object_get(reply.json, "lines");

	CHECK_INT((long long)json_array_size(lines), 2);
	CHECK_INT(json_integer_value(json_array_get(lines, 1)), 3);
	CHECK(strstr(reply_text(&reply, "detail"), "edits[1]"));
	CHECK_CODE(
	    rig_do(&r, TREE_EDIT, 0, "a", "{\"edits\":[{\"old\":\"q\",\"new\":\"w\"}]}", &reply),
	    TREE_NO_MATCH);
	CHECK_STR(got(&r, "a"), "x\ny\nx\n");
	put_bytes(&r, "b", "x\0y", 3);
	CHECK_CODE(
	    rig_do(&r, TREE_EDIT, 0, "b", "{\"edits\":[{\"old\":\"x\",\"new\":\"w\"}]}", &reply),
	    TREE_NOT_TEXT);
	struct tree_ask ask = { .request = { .verb = TREE_EDIT },
		                .path = span_of("a"),
		                .match = span_of(HELLO_HASH),
		                .body = span_of("{\"edits\":[{\"old\":\"y\",\"new\":\"z\"}]}") };
	rig_ask(&r, ask, -1);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_STALE);
	CHECK_INT(entries_of(&r, ""), 2);
	reply_done(&reply);
	rig_close(&r);
}

TEST(insert_and_unified_are_edits_too)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "a", "1\n2\n");
	CHECK_CODE(
	    rig_do(&r, TREE_EDIT, 0, "a", "{\"insert\":{\"line\":1,\"text\":\"x\"}}", &reply),
	    TREE_OK);
	CHECK_STR(got(&r, "a"), "1\nx\n2\n");
	CHECK_CODE(rig_do(&r, TREE_EDIT, 0, "a",
	                  "{\"unified\":\"@@ -1,3 +1,3 @@\\n 1\\n-x\\n+y\\n 2\\n\"}", &reply),
	           TREE_OK);
	CHECK_STR(got(&r, "a"), "1\ny\n2\n");
	put_bytes(&r, "b", "\xff\n", 2);
	CHECK_CODE(rig_do(&r, TREE_EDIT, 0, "b",
	                  "{\"edits\":[{\"old_base64\":\"/w==\",\"new_base64\":\"/v4=\"}]}",
	                  &reply),
	           TREE_OK);
	CHECK_STR(got(&r, "b"), "\xfe\xfe\n");
	CHECK(reply_text(&reply, "diff_base64"));
	reply_done(&reply);
	rig_close(&r);
}

static const json_t *item(const struct reply *r, size_t i, const char *kind)
{
	return json_object_get(json_array_get(r->json, i), kind);
}

TEST(a_batch_goes_on_after_a_failure)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	CHECK(mkdirat(r.dir_fd, "w", 0755) == 0);
	put(&r, "w/a", "aaa\n");
	CHECK_CODE(
	    rig_do(
		&r, TREE_BATCH, 0, "w",
		"[{\"op\":\"read\",\"path\":\"a\"},"
		"{\"op\":\"read\",\"path\":\"none\"},"
		"{\"op\":\"write\",\"path\":\"b\",\"text\":\"bbb\",\"mode\":\"0600\"},"
		"{\"op\":\"edit\",\"path\":\"b\",\"edits\":[{\"old\":\"b\",\"new\":\"c\"}]},"
		"{\"op\":\"edit\",\"path\":\"/w/b\",\"edits\":[{\"old\":\"bbb\",\"new\":\"c\"}]},"
		"{\"op\":\"stat\",\"path\":\"b\",\"hash\":true},"
		"{\"op\":\"delete\",\"path\":\"a\"},"
		"{\"op\":\"nonsense\",\"path\":\"a\"},"
		"{\"op\":\"write\",\"path\":\"c\",\"text_base64\":\"/w==\"}]",
		&reply),
	    TREE_OK);
	CHECK_INT((long long)json_array_size(reply.json), 9);
	CHECK_STR(json_string_value(json_object_get(item(&reply, 0, "ok"), "text")), "aaa\n");
	CHECK_STR(json_string_value(json_object_get(item(&reply, 1, "error"), "code")),
	          "not_found");
	CHECK(item(&reply, 2, "ok"));
	CHECK_STR(json_string_value(json_object_get(item(&reply, 3, "error"), "code")),
	          "ambiguous_match");
	CHECK_INT((long long)json_array_size(json_object_get(item(&reply, 3, "error"), "lines")),
	          3);
	CHECK(item(&reply, 4, "ok"));
	CHECK(json_object_get(item(&reply, 5, "ok"), "hash"));
	CHECK_STR(json_string_value(json_object_get(item(&reply, 5, "ok"), "mode")), "0600");
	CHECK(item(&reply, 6, "ok"));
	CHECK_STR(json_string_value(json_object_get(item(&reply, 7, "error"), "code")), "invalid");
	CHECK_STR(got(&r, "w/b"), "c");
	CHECK_STR(got(&r, "w/c"), "\xff");
	CHECK(!is_there(&r, "w/a"));
	reply_done(&reply);
	rig_close(&r);
}

TEST(an_atomic_batch_is_all_or_nothing)
{
	static const char steps[] =
	    "{\"op\":\"write\",\"path\":\"new/dir/x\",\"text\":\"1\"},"
	    "{\"op\":\"write\",\"path\":\"a\",\"text\":\"2\"},"
	    "{\"op\":\"write\",\"path\":\"a\",\"text\":\"3\"},"
	    "{\"op\":\"edit\",\"path\":\"a\",\"edits\":[{\"old\":\"3\",\"new\":\"4\"}]},"
	    "{\"op\":\"delete\",\"path\":\"b\"},"
	    "{\"op\":\"write\",\"path\":\"b\",\"text\":\"again\"},"
	    "{\"op\":\"delete\",\"path\":\"tree\",\"recursive\":true}";
	AUTO(str_done) struct str body = { .max = 4096 };
	struct reply reply = { 0 };
	struct rig r;
	struct stat before, after;

	rig_open(&r);
	put(&r, "a", "aaa");
	put(&r, "b", "bbb");
	CHECK(mkdirat(r.dir_fd, "tree", 0755) == 0);
	put(&r, "tree/t", "ttt");
	CHECK(fstatat(r.dir_fd, "a", &before, 0) == 0);

	str_addf(&body, "[%s,{\"op\":\"read\",\"path\":\"none\"}]", steps);
	CHECK_CODE(rig_do(&r, TREE_BATCH, TREE_ATOMIC, "", str_text(&body), &reply),
	           TREE_NOT_FOUND);
	CHECK(strstr(reply_text(&reply, "detail"), "operation 7"));
	CHECK_STR(got(&r, "a"), "aaa");
	CHECK_STR(got(&r, "b"), "bbb");
	CHECK_STR(got(&r, "tree/t"), "ttt");
	CHECK(!is_there(&r, "new"));
	CHECK(fstatat(r.dir_fd, "a", &after, 0) == 0);
	CHECK(before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
	CHECK_INT(entries_of(&r, ""), 3);

	str_clear(&body);
	str_addf(&body, "[%s]", steps);
	CHECK_CODE(rig_do(&r, TREE_BATCH, TREE_ATOMIC, "", str_text(&body), &reply), TREE_OK);
	CHECK_STR(got(&r, "new/dir/x"), "1");
	CHECK_STR(got(&r, "a"), "4");
	CHECK_STR(got(&r, "b"), "again");
	CHECK(!is_there(&r, "tree"));
	CHECK_INT(entries_of(&r, ""), 3);
	reply_done(&reply);
	rig_close(&r);
}

static const char git_patch[] =
    "diff --git a/old b/new\nsimilarity index 50%\nrename from old\n"
    "rename to new\n--- a/old\n+++ b/new\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n"
    "+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
    "diff --git a/d/add b/d/add\nnew file mode 100755\n--- /dev/null\n"
    "+++ b/d/add\n@@ -0,0 +1 @@\n+hi\n"
    "--- a/same\n+++ b/same\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";

TEST(a_patch_changes_many_files_or_none)
{
	struct reply reply = { 0 };
	struct rig r;
	struct stat st;

	rig_open(&r);
	put(&r, "old", "one\ntwo\n");
	CHECK(fchmodat(r.dir_fd, "old", 0755, 0) == 0);
	put(&r, "gone", "bye\n");
	put(&r, "same", "a\nX\nc\n");
	CHECK_CODE(rig_do(&r, TREE_PATCH, 0, "", git_patch, &reply), TREE_NO_MATCH);
	CHECK_STR(reply_text(&reply, "detail"),
	          "same: hunk 1 (line 25 of the patch): its lines are "
	          "not there; line 2 is not \"b\"");
	CHECK_STR(got(&r, "old"), "one\ntwo\n");
	CHECK_STR(got(&r, "gone"), "bye\n");
	CHECK(!is_there(&r, "new") && !is_there(&r, "d"));

	put(&r, "same", "a\nb\nc\n");
	CHECK_CODE(rig_do(&r, TREE_PATCH, 0, "", git_patch, &reply), TREE_OK);
	CHECK_STR(reply_text(&reply, "format"), "unified");
	CHECK_INT((long long)json_array_size(json_object_get(reply.json, "files")), 4);
	CHECK_STR(got(&r, "new"), "one\n2\n");
	CHECK(fstatat(r.dir_fd, "new", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	CHECK(!is_there(&r, "old") && !is_there(&r, "gone"));
	CHECK_STR(got(&r, "d/add"), "hi\n");
	CHECK(fstatat(r.dir_fd, "d/add", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	CHECK_STR(got(&r, "same"), "a\nB\nc\n");
	CHECK_INT(entries_of(&r, ""), 3);
	CHECK_CODE(rig_do(&r, TREE_PATCH, 0, "", git_patch, &reply), TREE_NOT_FOUND);
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_patch_that_cannot_be_written_is_taken_back)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "a", "a\n");
	put(&r, "file", "x\n");
	CHECK_CODE(rig_do(&r, TREE_PATCH, 0, "",
	                  "*** Begin Patch\n*** Update File: a\n-a\n+b\n*** Add File: n/e/w\n+x\n"
	                  "*** Add File: file/below\n+x\n*** End Patch\n",
	                  &reply),
	           TREE_NOT_DIRECTORY);
	CHECK_STR(got(&r, "a"), "a\n");
	CHECK_INT(entries_of(&r, ""), 2);
	/* The same when only writing shows it. */
	CHECK_CODE(rig_do(&r, TREE_PATCH, 0, "",
	                  "*** Begin Patch\n*** Update File: a\n-a\n+b\n*** Add File: n/e/w\n+x\n"
	                  "*** Add File: n\n+x\n*** End Patch\n",
	                  &reply),
	           TREE_IS_DIRECTORY);
	CHECK_STR(got(&r, "a"), "a\n");
	CHECK_INT(entries_of(&r, ""), 2);
	reply_done(&reply);
	rig_close(&r);
}

TEST(v4a_adds_updates_moves_and_deletes)
{
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "u", "a\nb\n");
	put(&r, "d", "x\n");
	CHECK_CODE(
	    rig_do(&r, TREE_PATCH, 0, "/",
	           "*** Begin Patch\n*** Update File: u\n*** Move to: sub/v\n@@\n a\n-b\n+c\n"
	           "*** Delete File: d\n*** Add File: n\n+one\n+two\n*** End Patch",
	           &reply),
	    TREE_OK);
	CHECK_STR(reply_text(&reply, "format"), "v4a");
	CHECK_STR(got(&r, "sub/v"), "a\nc\n");
	CHECK_STR(got(&r, "n"), "one\ntwo\n");
	CHECK(!is_there(&r, "u") && !is_there(&r, "d"));
	CHECK_CODE(rig_do(&r, TREE_PATCH, 0, "",
	                  "*** Begin Patch\n*** Add File: n\n+one\n*** End Patch\n", &reply),
	           TREE_EXISTS);
	/* One file twice: the second change sees the first. */
	CHECK_CODE(rig_do(&r, TREE_PATCH, 0, "",
	                  "*** Begin Patch\n*** Update File: n\n-one\n+1\n*** Update File: n\n 1\n"
	                  "-two\n+2\n*** End Patch\n",
	                  &reply),
	           TREE_OK);
	CHECK_STR(got(&r, "n"), "1\n2\n");
	reply_done(&reply);
	rig_close(&r);
}
