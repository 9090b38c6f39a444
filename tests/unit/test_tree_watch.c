#include "test_tree.h"

struct watching {
	struct rig *rig;
	struct reply reply; /* everything so far */
	bool is_over;
};

static void start(struct watching *w, uint32_t flags)
{
	struct tree_ask ask = { .flags = flags, .request = { .verb = TREE_WATCH } };

	w->reply = (struct reply){ .data = { .max = SIZE_MAX } };
	rig_ask(w->rig, ask, -1);
	CHECK(rig_packet(w->rig, &w->reply));
	CHECK_STR(str_text(&w->reply.data), "{\"event\":\"ready\"}\n");
	CHECK_INT(w->reply.first.content, TREE_NDJSON);
}

/* Reads until the text is there. */
static void expect(struct watching *w, const char *text)
{
	while (!strstr(str_text(&w->reply.data), text)) {
		struct pollfd ready = { .fd = w->rig->socket_fd, .events = POLLIN };

		if (poll(&ready, 1, TEST_WAIT_MS) <= 0)
			printf("# waited for %s, got\n# %s\n", text, str_text(&w->reply.data));
		CHECK(ready.revents);
		if (!rig_packet(w->rig, &w->reply))
			w->is_over = true;
	}
}

static int count(const struct watching *w, const char *text)
{
	int n = 0;

	for (const char *p = str_text(&w->reply.data); (p = strstr(p, text)); p++)
		n++;
	return n;
}

TEST(changes_arrive_from_directories_old_and_new)
{
	struct rig r;
	struct watching w = { .rig = &r };

	rig_open(&r);
	CHECK(mkdirat(r.dir_fd, "d", 0755) == 0);
	start(&w, TREE_RECURSIVE);
	put(&r, "d/a", "x");
	expect(&w, "{\"event\":\"create\",\"path\":\"d/a\",\"dir\":false}");
	CHECK(mkdirat(r.dir_fd, "d/new", 0755) == 0);
	CHECK(mkdirat(r.dir_fd, "d/new/er", 0755) == 0);
	put(&r, "d/new/er/b", "x");
	expect(&w, "{\"event\":\"create\",\"path\":\"d/new/er/b\",\"dir\":false}");
	put(&r, "d/new/er/b", "y");
	expect(&w, "{\"event\":\"modify\",\"path\":\"d/new/er/b\",\"dir\":false}");
	CHECK(renameat(r.dir_fd, "d/new", r.dir_fd, "moved") == 0);
	expect(&w, "{\"event\":\"move_from\",\"path\":\"d/new\",\"dir\":true}");
	expect(&w, "{\"event\":\"move_to\",\"path\":\"moved\",\"dir\":true}");
	put(&r, "moved/er/c", "x");
	expect(&w, "{\"event\":\"create\",\"path\":\"moved/er/c\",\"dir\":false}");
	CHECK(unlinkat(r.dir_fd, "d/a", 0) == 0);
	expect(&w, "{\"event\":\"delete\",\"path\":\"d/a\",\"dir\":false}");
	put(&r, "bad\xff", "");
	expect(&w, "\"path_base64\":\"YmFk/w==\"");
	rig_cancel(&r);
	expect(&w, "cancelled");
	CHECK(w.is_over);
	CHECK_CODE(rig_do(&r, TREE_STAT, 0, "", "", &w.reply), TREE_OK);
	reply_done(&w.reply);
	rig_close(&r);
}

TEST(what_was_done_before_the_question_is_said_before_its_answer)
{
	struct rig r;
	struct watching w = { .rig = &r };

	rig_open(&r);
	start(&w, 0);
	rig_prod(&r);
	expect(&w, "{\"event\":\"settled\"}\n");
	CHECK_INT(count(&w, "create"), 0);
	for (int i = 0; i < 20; i++) {
		char name[16];

		reply_done(&w.reply);
		w.reply.data = (struct str){ .max = SIZE_MAX };
		snprintf(name, sizeof name, "f%d", i);
		put(&r, name, "x");
		rig_prod(&r);
		rig_prod(&r);
		expect(&w, "{\"event\":\"settled\"}\n{\"event\":\"settled\"}\n");
		CHECK(strstr(str_text(&w.reply.data), name));
		CHECK(strstr(str_text(&w.reply.data), name) <
		      strstr(str_text(&w.reply.data), "settled"));
	}
	rig_cancel(&r);
	expect(&w, "cancelled");
	reply_done(&w.reply);
	rig_close(&r);
}

TEST(many_changes_of_one_file_are_few_events)
{
	struct rig r;
	struct watching w = { .rig = &r };

	rig_open(&r);
	put(&r, "f", "");
	start(&w, 0);
	AUTO(fd_close) int fd = openat(r.dir_fd, "f", O_WRONLY | O_CLOEXEC);

	for (int i = 0; i < 2000; i++)
		CHECK_INT(write(fd, "x", 1), 1);
	put(&r, "end", "");
	expect(&w, "\"end\"");
	CHECK(count(&w, "modify") < 100);
	reply_done(&w.reply);
	rig_close(&r);
}

/* The kernel keeps what there is no room for. */
TEST(a_worker_that_is_late_tells_each_of_many_changes)
{
	enum { FILES = 10000 };
	struct rig r;
	struct watching w = { .rig = &r };
	char name[32];

	rig_open(&r);
	start(&w, 0);
	CHECK(kill(r.pid, SIGSTOP) == 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "d%d", i);
		CHECK(mkdirat(r.dir_fd, name, 0755) == 0); /* one event each */
	}
	CHECK(kill(r.pid, SIGCONT) == 0);
	expect(&w, "\"d9999\"");
	CHECK_INT(count(&w, "\"event\":\"create\""), FILES);
	CHECK_INT(count(&w, "overflow"), 0);
	reply_done(&w.reply);
	rig_close(&r);
}

/* Faster than anybody takes it: bounded, and said. */
TEST(a_storm_ends_in_an_overflow_event)
{
	struct rig r;
	struct watching w = { .rig = &r };
	char name[32];

	rig_open(&r);
	start(&w, TREE_RECURSIVE);
	for (int i = 0; i < 40000; i++) {
		snprintf(name, sizeof name, "f%d", i);
		AUTO(fd_close)
		int fd = openat(r.dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	}
	expect(&w, "\"event\":\"overflow\"");
	/* What was on its way may overflow again; then it goes on as before. */
	for (int i = 0; i < 200 && !strstr(str_text(&w.reply.data), "after"); i++) {
		struct pollfd ready = { .fd = r.socket_fd, .events = POLLIN };

		snprintf(name, sizeof name, "after%d", i);
		put(&r, name, "");
		while (poll(&ready, 1, 50) > 0 && !strstr(str_text(&w.reply.data), "after"))
			CHECK(rig_packet(&r, &w.reply));
	}
	CHECK(strstr(str_text(&w.reply.data), "after"));
	reply_done(&w.reply);
	rig_close(&r);
}

TEST(a_watch_ends_with_its_directory_or_its_time)
{
	struct reply reply = { 0 };
	struct rig r;
	struct watching w = { .rig = &r };

	rig_open(&r);
	CHECK(mkdirat(r.dir_fd, "d", 0755) == 0);
	struct tree_ask ask = { .request = { .verb = TREE_WATCH }, .path = span_of("d") };
	w.reply.data.max = SIZE_MAX;
	rig_ask(&r, ask, -1);
	expect(&w, "ready");
	CHECK(unlinkat(r.dir_fd, "d", AT_REMOVEDIR) == 0);
	expect(&w, "gone");
	while (!w.is_over)
		w.is_over = !rig_packet(&r, &w.reply);
	CHECK_CODE(w.reply.last.code, TREE_OK);

	ask.path = span_of("");
	ask.request.time_ms = 50;
	rig_ask(&r, ask, -1);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_OK);
	CHECK_STR(str_text(&reply.data), "{\"event\":\"ready\"}\n");
	reply_done(&reply);
	reply_done(&w.reply);
	rig_close(&r);
}
