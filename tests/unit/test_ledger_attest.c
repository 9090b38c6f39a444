#include "ledger/attest.h"

#include "test_ledger.h"
#include "wire/dsse.h"

static struct err e;

static void add(struct book *b, enum ledger_kind kind, const char *data)
{
	const struct ledger_event ev = {
		.kind = kind, .tenant = "t", .workspace = "ws_1", .process = "px_1", .data = data
	};

	CHECK_INT(book_add(b, &ev, 1000, &e), 0);
	CHECK_INT(book_write(b, &e), 0);
	CHECK_INT(book_sync(b, &e), 0);
	CHECK_INT(book_seal(b, 1000, &e), 0); /* files are short here: the next one begins */
	CHECK_INT(book_write(b, &e), 0);
	CHECK_INT(book_sync(b, &e), 0);
}

static void fill(struct book *b, int dir)
{
	const struct book_opts o = { dir, 1, 0 };

	CHECK_INT(book_open(b, &o, 1000, &e), 0);
	add(b, LEDGER_WORKSPACE_CREATED, "{\"base\":\"ba5e\"}");
	add(b, LEDGER_EXEC_STARTED, "{\"argv\":[\"make\"]}");
	add(b, LEDGER_EXEC_ENDED, "{\"exit_code\":0}");
	add(b, LEDGER_GIT_COMMITTED, "{\"commit\":\"c1\",\"tree\":\"t1\"}");
	add(b, LEDGER_EXEC_STARTED, "{\"argv\":[\"later\"]}");
}

/* Returns how many files were read; *fd is -1 when nothing was attested. */
static int ask(const struct book *b, const char *workspace, uint64_t record, int *fd)
{
	struct ledger_attest q = { .type = LEDGER_ATTEST, .record = record, .tenant = "t" };
	struct attest_run r;
	uint64_t found = 0;
	int n = 0, more = 1;

	snprintf(q.workspace, sizeof q.workspace, "%s", workspace);
	attest_start(&r, b, &q);
	for (; more > 0; n++)
		more = attest_step(&r, &e);
	CHECK_INT(more, 0);
	e = (struct err){ 0 };
	*fd = attest_seal(&r, &found, &e);
	CHECK((*fd >= 0) == (found > 0));
	attest_stop(&r);
	return n;
}

static json_t *open_it(const struct book *b, int fd)
{
	AUTO(str_done) struct str payload = { .max = DSSE_BYTES_MAX };
	char text[65536];
	ssize_t n = read(fd, text, sizeof text);

	CHECK(n > 0);
	CHECK_INT(dsse_open(&b->key, (struct span){ text, (size_t)n }, &payload, &e), 0);
	close(fd);
	return attest_read((struct span){ payload.data, payload.len });
}

TEST(of_records_in_many_files_one_statement)
{
	int dir = ledger_dir(), fd = -1;
	struct book b;

	fill(&b, dir);
	CHECK(ask(&b, "ws_1", 0, &fd) >= 5);
	CHECK(fd >= 0);
	json_t *o = open_it(&b, fd);
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);

	CHECK(text && strstr(text, "\"gitCommit\":\"c1\"") &&
	      strstr(text, "\"gitCommit\":\"ba5e\""));
	CHECK(strstr(text, "[\"make\"]") && !strstr(text, "later"));
	CHECK(os_openat(dir, "attested.new", O_RDONLY, 0) < 0); /* no file of it is left */
	json_decref(o);
	book_close(&b, 2000);
	ledger_dir_remove(dir);
}

TEST(nothing_was_promoted)
{
	int dir = ledger_dir(), fd = 0;
	struct book b;

	fill(&b, dir);
	ask(&b, "ws_2", 0, &fd);
	CHECK(fd < 0 && e.kind == ERR_INVALID);
	ask(&b, "ws_1", 3, &fd);
	CHECK(fd < 0 && e.kind == ERR_INVALID);
	book_close(&b, 2000);
	ledger_dir_remove(dir);
}

/* Whoever can write the folder can not make us sign what was not said. */
TEST(a_record_that_was_changed_is_none)
{
	int dir = ledger_dir(), fd = -1;
	struct files all = { 0 };
	struct book b;

	fill(&b, dir);
	CHECK_INT(files_list(dir, &all, &e), 0);
	for (size_t i = 0; i < all.len; i++) {
		char name[LEDGER_FILE_SIZE];
		size_t n = 0;

		ledger_file_name(all.at[i].seq, name);
		AUTO(freep) char *bytes = read_whole(dir, name, &n);
		char *at = memmem(bytes, n, "\"c1\"", 4);

		if (!at)
			continue;
		at[1] = 'd';
		CHECK_INT(file_replace(dir, name, bytes, n, &e), 0);
	}
	vec_done(&all);
	ask(&b, "ws_1", 0, &fd);
	CHECK(fd < 0);
	book_close(&b, 2000);
	ledger_dir_remove(dir);
}

TEST(a_file_that_is_none_is_not_genuine)
{
	int dir = ledger_dir();
	char file[64], key[64];
	AUTO(str_done) struct str out = { .max = 1u << 20 };
	AUTO(str_done) struct str json = { .max = 1u << 20 };
	struct book b;

	fill(&b, dir);
	snprintf(file, sizeof file, "/proc/self/fd/%d/head", dir);
	snprintf(key, sizeof key, "/proc/self/fd/%d/key.pub", dir);
	CHECK_INT(attest_verify(file, key, false, &out, &e), 1);
	CHECK(strncmp(str_text(&out), "NOT GENUINE: ", 13) == 0);
	CHECK_INT(attest_verify(file, key, true, &json, &e), 1);
	CHECK(strstr(str_text(&json), "\"genuine\":false"));
	CHECK_INT(attest_verify("/nowhere", key, false, &out, &e), -1);
	CHECK_INT(attest_verify(file, file, false, &out, &e), -1);
	book_close(&b, 2000);
	ledger_dir_remove(dir);
}
