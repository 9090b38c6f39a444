/* A folder, its journals, and plans made by hand. What is killed is in tests/ws/apply.py. */
#include "apply/run.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/host.h"
#include "base/fd.h"
#include "base/str.h"
#include "test.h"

static char top[] = "/tmp/caisson-test-XXXXXX";

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void put(const char *path, const char *text)
{
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), (long long)strlen(text));
}

static void check_text(const char *path, const char *text)
{
	char buf[256] = "";
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 || !text);
	if (fd >= 0)
		CHECK(read(fd, buf, sizeof buf - 1) >= 0);
	CHECK_STR(buf, text ? text : "");
}

static void begin(struct apply_run *r)
{
	struct err e = { 0 };

	snprintf(top, sizeof top, "/tmp/caisson-test-XXXXXX");
	CHECK(mkdtemp(top) != NULL);
	CHECK_INT(chdir(top), 0);
	umask(022);
	CHECK_INT(mkdir("host", 0755), 0);
	put("host/a", "a");
	put("host/b", "b");
	CHECK_INT(mkdir("host/d", 0755), 0);
	put("host/d/c", "c");
	apply_init(r);
	CHECK_INT(apply_open(r, "host", "state/x/journals", false, &e), 0);
}

static void end(struct apply_run *r)
{
	apply_done(r);
	CHECK_INT(chdir("/"), 0);
	nftw(top, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* The folder has nothing of ours, and no journal is left. */
static void check_clean(void)
{
	char line[256];
	FILE *p = NULL;
	int fds[2];

	CHECK_INT(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		execl("/bin/sh", "sh", "-c",
		      "ls -A host state/x/journals | grep '^[.]caisson'; true", (char *)NULL);
		_exit(1);
	}
	close(fds[1]);
	p = fdopen(fds[0], "r");
	CHECK(p && !fgets(line, sizeof line, p));
	if (p)
		fclose(p);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static struct apply_entry entry_of(struct apply_run *r, const char *path, enum apply_act act)
{
	struct apply_entry e = { .path = path };
	static struct arena arena;
	struct err err = { 0 };

	CHECK_INT(host_look(r->root_fd, &e, &arena, &err), 0);
	e.act = act;
	e.mode = 0644;
	return e;
}

static void stage(struct apply_run *r)
{
	struct err e = { 0 };

	for (size_t i = 0; i < r->ops.list.len; i++) {
		const struct apply_op *op = &r->ops.list.at[i];

		if (op->kind != OP_CREATE && op->kind != OP_REPLACE)
			continue;
		AUTO(fd_close) int fd = apply_stage_file(r, op, &e);
		CHECK(fd >= 0);
		CHECK_INT(write(fd, "new", 3), 3);
	}
}

/* All of it, prepared; nothing is done yet. */
static void prepare(struct apply_run *r, struct apply_entry all[5])
{
	struct err e = { 0 };

	all[0] = entry_of(r, "a", ACT_REPLACE);
	all[1] = entry_of(r, "b", ACT_DELETE);
	all[2] = entry_of(r, "d", ACT_RMDIR);
	all[3] = entry_of(r, "d/c", ACT_DELETE);
	all[4] = entry_of(r, "n/f", ACT_CREATE);
	const struct apply_change c = { all, 5 };
	apply_steps(&c, 022, &r->ops);
	CHECK_INT(apply_begin(r, &e), 0);
	stage(r);
}

static void check_old(void)
{
	check_text("host/a", "a");
	check_text("host/b", "b");
	check_text("host/d/c", "c");
	CHECK_INT(access("host/n", F_OK), -1);
	check_clean();
}

TEST(all_steps_are_done)
{
	struct apply_entry all[5];
	struct apply_run r;
	struct err e = { 0 };

	begin(&r);
	prepare(&r, all);
	CHECK_INT(apply_commit(&r, &e), 0);
	check_text("host/a", "new");
	check_text("host/n/f", "new");
	CHECK_INT(access("host/b", F_OK), -1);
	CHECK_INT(access("host/d", F_OK), -1);
	check_clean();
	end(&r);
}

TEST(nothing_is_done_when_it_is_given_up)
{
	struct apply_entry all[5];
	struct apply_run r;

	begin(&r);
	prepare(&r, all);
	apply_abandon(&r);
	check_old();
	end(&r);
}

/* Between the comparison and the last step: each of these ends it, and all is as it was. */
TEST(a_folder_that_changes_meanwhile)
{
	static const struct {
		const char *name;
		const char *script;
	} rows[] = {
		{ "written", "printf A > host/a" },
		{ "another file", "printf a > host/x; mv host/x host/a" },
		{ "a mode", "chmod 600 host/a" },
		{ "gone", "rm host/b" },
		{ "a link", "rm host/a; ln -s b host/a" },
		{ "something new", "mkdir -p host/n; printf x > host/n/f" },
		{ "a folder is a link", "mv host/d w; ln -s ../w host/d" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct apply_entry all[5];
		struct apply_run r;
		struct err e = { 0 };

		printf("# %s\n", rows[i].name);
		begin(&r);
		prepare(&r, all);
		pid_t pid = fork();
		if (pid == 0) {
			execl("/bin/sh", "sh", "-ec", rows[i].script, (char *)NULL);
			_exit(1);
		}
		CHECK_INT(waitpid(pid, NULL, 0), pid);
		CHECK_INT(apply_commit(&r, &e), -1);
		check_text("host/d/c", "c");
		CHECK(access("host/b", F_OK) == 0 || i == 3);
		check_clean();
		end(&r);
	}
}

/* As if it had been killed after so many of its steps. */
TEST(an_interrupted_one_is_undone_by_the_next)
{
	for (int kill_at = 0; kill_at < 3; kill_at++) {
		struct apply_entry all[5];
		struct apply_run r, next;
		struct err e = { 0 };

		begin(&r);
		prepare(&r, all);
		if (kill_at > 0) {
			r.journal.state = JOURNAL_READY;
			CHECK_INT(journal_write(r.journals_fd, &r.journal, &r.ops, &e), 0);
		}
		if (kill_at > 1) { /* the first step: b is gone */
			char to[128];

			snprintf(to, sizeof to, "host/%s/o0", r.journal.stage);
			CHECK_INT(rename("host/b", to), 0);
		}
		apply_done(&r);
		apply_init(&next);
		CHECK_INT(apply_open(&next, "host", "state/x/journals", true, &e), -1);
		apply_done(&next);
		apply_init(&next);
		e = (struct err){ 0 };
		CHECK_INT(apply_open(&next, "host", "state/x/journals", false, &e), 0);
		check_old();
		end(&next);
	}
}

TEST(one_at_a_time)
{
	struct apply_run r, other;
	struct err e = { 0 };

	begin(&r);
	apply_init(&other);
	CHECK_INT(apply_open(&other, "host", "state/x/journals", false, &e), -1);
	CHECK_STR(e.msg, "another caisson apply of yours is under way");
	apply_done(&other);
	end(&r);
}

TEST(names_do_not_lead_out)
{
	static const char *const names[] = { "out/x", "out", "up/../../x", "loop/x",
		                             "/etc/passwd" };
	struct apply_run r;
	const char *last;

	begin(&r);
	CHECK_INT(symlink("/etc", "host/out"), 0);
	CHECK_INT(symlink("loop", "host/loop"), 0);
	for (size_t i = 0; i < COUNT(names); i++) {
		AUTO(fd_close) int fd = host_parent(r.root_fd, names[i], &last);

		printf("# %s\n", names[i]);
		CHECK(fd < 0 || strcmp(names[i], "out") == 0);
	}
	struct apply_entry e = entry_of(&r, "out", ACT_NONE);
	CHECK_INT(e.host.type, NODE_LINK);
	CHECK_STR(e.host.target, "/etc");
	e = entry_of(&r, "out/passwd", ACT_NONE);
	CHECK_INT(e.host.type, NODE_BLOCKED);
	e = entry_of(&r, "a/passwd", ACT_NONE);
	CHECK_INT(e.host.type, NODE_BLOCKED);
	e = entry_of(&r, "none/passwd", ACT_NONE);
	CHECK_INT(e.host.type, NODE_NONE);
	end(&r);
}

TEST(a_file_compared_in_pieces)
{
	static const struct {
		const char *pieces[3];
		int is_same;
	} rows[] = {
		{ { "hel", "lo", "" }, 1 },    { { "hello", NULL }, 1 }, { { "hell", NULL }, 0 },
		{ { "hello", "!", NULL }, 0 }, { { "Hello", NULL }, 0 }, { { NULL }, 0 },
	};
	struct apply_run r;

	begin(&r);
	put("host/h", "hello");
	const struct apply_entry e = entry_of(&r, "h", ACT_NONE);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct host_compare c;

		host_compare_begin(r.root_fd, &e, &c);
		for (size_t k = 0; k < 3 && rows[i].pieces[k]; k++)
			host_compare_feed(&c, rows[i].pieces[k], strlen(rows[i].pieces[k]));
		CHECK_INT(host_compare_end(&c), rows[i].is_same);
	}
	end(&r);
}
