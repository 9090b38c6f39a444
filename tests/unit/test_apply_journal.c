#include "apply/journal.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test.h"

static char top[] = "/tmp/caisson-test-XXXXXX";

static int folder(void)
{
	struct err e = { 0 };

	snprintf(top, sizeof top, "/tmp/caisson-test-XXXXXX");
	CHECK(mkdtemp(top) != NULL);
	int fd = journal_folder(top, &e);
	CHECK(fd >= 0);
	return fd;
}

static void gone(int fd, const char *const *names)
{
	for (; *names; names++)
		(void)unlinkat(fd, *names, 0);
	close(fd);
	CHECK_INT(rmdir(top), 0);
}

TEST(what_is_written_is_read)
{
	static const char stage[] = APPLY_STAGE "0123456789abcdef";
	struct journal j = { .state = JOURNAL_READY, .folder = "/a b\n/c" }, got;
	struct apply_ops ops = { 0 }, back = { 0 };
	struct err e = { 0 };
	int fd = folder();

	snprintf(j.stage, sizeof j.stage, "%s", stage);
	struct apply_op one = { .kind = OP_REPLACE,
		                .path = "d/\xff\n x",
		                .number = 7,
		                .before = 0644,
		                .after = 04755,
		                .ino_new = UINT64_MAX,
		                .ino_old = 3 };
	vec_push(&ops.list, one);
	one = (struct apply_op){ .kind = OP_RMDIR, .path = "d", .before = 0700, .is_needed = true };
	vec_push(&ops.list, one);
	CHECK_INT(journal_write(fd, &j, &ops, &e), 0);
	CHECK_INT(journal_read(fd, stage, &got, &back, &e), 0);
	CHECK_STR(got.stage, stage);
	CHECK_STR(got.folder, "/a b\n/c");
	CHECK_INT(got.state, JOURNAL_READY);
	CHECK_INT(back.list.len, 2);
	CHECK_STR(back.list.at[0].path, "d/\xff\n x");
	CHECK_INT(back.list.at[0].kind, OP_REPLACE);
	CHECK_INT(back.list.at[0].number, 7);
	CHECK_INT(back.list.at[0].after, 04755);
	CHECK(back.list.at[0].ino_new == UINT64_MAX && back.list.at[0].ino_old == 3);
	CHECK(!back.list.at[0].is_needed && back.list.at[1].is_needed);
	CHECK_INT(journal_remove(fd, &j, &e), 0);
	CHECK_INT(journal_read(fd, stage, &got, &back, &e), -1);
	apply_ops_done(&ops);
	apply_ops_done(&back);
	gone(fd, (const char *[]){ NULL });
}

TEST(what_is_not_ours_is_refused)
{
	static const char *const texts[] = {
		"",
		"\n",
		"caisson-apply 2 ready .caisson-apply.1 Lw==\n",
		"caisson-apply 1 steady .caisson-apply.1 Lw==\n",
		"caisson-apply 1 ready .caisson-apply.1\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw== x\n",
		"caisson-apply 1 ready .caisson-apply.1/../x Lw==\n",
		"caisson-apply 1 ready other Lw==\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmove 0 0 0 0 0 0 YQ==\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode 0 0 0 0 0 YQ==\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode 0 8 0 0 0 0 YQ==\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode 0 0 10000 0 0 0 YQ==\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode -1 0 0 0 0 0 YQ==\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode 0 0 0 0 0 2 YQ==\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode 0 0 0 0 0 0 Li4=\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode 0 0 0 0 0 0 L2E=\n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode 0 0 0 0 0 0 \n",
		"caisson-apply 1 ready .caisson-apply.1 Lw==\nmode 0 0 0 0 0 0 YQA=\n",
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct apply_ops ops = { 0 };
		struct journal j;
		struct err e = { 0 };
		char text[256];

		snprintf(text, sizeof text, "%s", texts[i]);
		printf("# %zu\n", i);
		CHECK_INT(journal_parse(text, &j, &ops, &e), -1);
		apply_ops_done(&ops);
	}
}

TEST(what_was_applied_last)
{
	char line[32] = "";
	struct err e = { 0 };
	int fd = folder();

	CHECK_INT(journal_last(fd, "ws_1 /x", line, sizeof line, &e), 0);
	CHECK_INT(journal_remember(fd, "ws_1 /x", "sn_1", &e), 0);
	CHECK_INT(journal_remember(fd, "ws_1 /x", "sn_2", &e), 0);
	CHECK_INT(journal_last(fd, "ws_1 /x", line, sizeof line, &e), 1);
	CHECK_STR(line, "sn_2");
	CHECK_INT(journal_last(fd, "ws_1 /y", line, sizeof line, &e), 0);
	CHECK_INT(journal_last(fd, "ws_1 /x", line, 4, &e), 0);
	close(fd);
	char command[64];
	snprintf(command, sizeof command, "%s", top);
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-r", command, (char *)NULL);
		_exit(1);
	}
	CHECK(pid > 0);
}

TEST(a_folder_that_others_can_write_to_is_refused)
{
	struct err e = { 0 };
	int fd = folder();

	CHECK_INT(chmod(top, 0770), 0);
	CHECK_INT(journal_folder(top, &e), -1);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK_INT(chmod(top, 0700), 0);
	gone(fd, (const char *[]){ NULL });
}
