#include "ledger/book.h"

#include <sys/resource.h>

#include "ledger/budget.h"
#include "test_ledger.h"

static struct err e;

static void add(struct book *b, enum ledger_kind kind, const char *sandbox, uint64_t num)
{
	char src[64];
	const struct ledger_event ev = {
		.kind = kind, .tenant = "t", .sandbox = sandbox, .src = src, .data = "{\"a\":1}"
	};

	snprintf(src, sizeof src, "ab-%llu", (unsigned long long)num);
	CHECK_INT(book_add(b, &ev, 1000, &e), 0);
}

static void open_at(struct book *b, int dir, uint64_t file_bytes, uint64_t keep_bytes)
{
	const struct book_opts o = { dir, file_bytes, keep_bytes };

	e = (struct err){ 0 };
	if (book_open(b, &o, 1000, &e) < 0) {
		printf("# %s\n", e.msg);
		CHECK(false);
	}
}

static void commit(struct book *b)
{
	CHECK_INT(book_write(b, &e), 0);
	CHECK_INT(book_sync(b, &e), 0);
}

TEST(what_was_written_is_found_again)
{
	int dir = ledger_dir();
	struct book b;

	for (uint64_t life = 0; life < 4; life++) {
		open_at(&b, dir, 0, 0);
		CHECK_INT((long long)book_src_num(b.src, "ab"), (long long)life * 10);
		for (uint64_t i = 1; i <= 10; i++)
			add(&b, LEDGER_EXEC_STARTED, i % 2 ? "sb_a" : "sb_b", life * 10 + i);
		commit(&b);
		book_close(&b, 2000);
	}
	struct read_ledger r = read_ledger(dir);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.of[LEDGER_EXEC_STARTED], 40);
	CHECK_INT((long long)r.of[LEDGER_CHECKPOINT], 4);
	CHECK_INT((long long)r.unsigned_records, 0);
	ledger_dir_remove(dir);
}

TEST(files_end_and_the_oldest_go_and_the_rest_can_be_verified)
{
	int dir = ledger_dir();
	struct book b;

	open_at(&b, dir, 20000, 60000);
	for (uint64_t i = 1; i <= 2000; i++) {
		char name[16];

		snprintf(name, sizeof name, "sb_%llu", (unsigned long long)(i % 150));
		add(&b, i % 450 == 0 ? LEDGER_SANDBOX_GONE : LEDGER_EXEC_ENDED, name, i);
		commit(&b);
		if (i % 10 == 0)
			CHECK_INT(book_seal(&b, 1000, &e), 0);
	}
	uint64_t first = 0, next = 0;
	int fd = book_file(&b, 1, &first, &next, &e);

	CHECK(fd >= 0 && first > 1 && next > first);
	close(fd);
	fd = book_file(&b, UINT64_MAX, &first, &next, &e);
	CHECK(fd >= 0 && first == b.file_seq && next == 0);
	close(fd);
	book_close(&b, 2000);
	struct read_ledger r = read_ledger(dir);

	printf("# %llu files, from %llu\n", (unsigned long long)r.n_files,
	       (unsigned long long)r.first_seq);
	CHECK_INT((long long)r.n_found, 0);
	CHECK(r.n_files >= 2 && r.n_files < 10 && r.first_seq > 1);
	CHECK(r.of[LEDGER_HEADS] > 0 && r.of[LEDGER_PRUNED] > 0);
	open_at(&b, dir, 20000, 60000);
	add(&b, LEDGER_EXEC_ENDED, "sb_7", 2001);
	commit(&b);
	book_close(&b, 2000);
	CHECK_INT((long long)read_ledger(dir).n_found, 0);
	ledger_dir_remove(dir);
}

static off_t size_of(int dir, const char *name)
{
	struct stat st;

	CHECK_INT(fstatat(dir, name, &st, 0), 0);
	return st.st_size;
}

#define FIRST "00000000000000000001.jsonl"

static void put_back(int dir, const char *name, const char *bytes, size_t n)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

#define TORN "00000000000000000001.torn"

/* The power went when `size` bytes of the file had come to the disk. */
static void open_torn(int dir, size_t whole, size_t size)
{
	struct book b;

	open_at(&b, dir, 0, 0);
	CHECK_INT((long long)book_src_num(b.src, "ab"), 5);
	add(&b, LEDGER_EXEC_STARTED, "sb_a", 6);
	commit(&b);
	book_close(&b, 2000);
	struct read_ledger r = read_ledger(dir);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.of[LEDGER_SEALED], size > whole ? 1 : 0);
	CHECK_INT((long long)r.of[LEDGER_EXEC_STARTED], 6);
	if (size > whole)
		CHECK_INT(size_of(dir, TORN), (off_t)(size - whole));
}

/* At every byte of the last line; in memory, because each of them is synced several times. */
TEST(a_torn_line_is_put_aside_and_told)
{
	int dir = ledger_dir_in("/dev/shm");
	struct book b;
	size_t n, n_head;

	open_at(&b, dir, 0, 0);
	for (uint64_t i = 1; i <= 5; i++)
		add(&b, LEDGER_EXEC_STARTED, "sb_a", i);
	commit(&b);
	size_t whole = (size_t)size_of(dir, FIRST);

	add(&b, LEDGER_EXEC_STARTED, "sb_a", 6);
	CHECK_INT(book_write(&b, &e), 0);
	fd_close(&b.file_fd); /* it dies: nothing more is written */
	book_close(&b, 0);
	AUTO(freep) char *bytes = read_whole(dir, FIRST, &n);
	AUTO(freep) char *head = read_whole(dir, "head", &n_head);

	CHECK(n - whole > 200);
	for (size_t size = whole; size < n; size++) {
		put_back(dir, FIRST, bytes, size);
		put_back(dir, "head", head, n_head);
		(void)unlinkat(dir, TORN, 0);
		open_torn(dir, whole, size);
	}
	ledger_dir_remove(dir);
}

TEST(a_new_file_that_came_to_nothing)
{
	int dir = ledger_dir();
	struct book b;

	open_at(&b, dir, 0, 0);
	add(&b, LEDGER_EXEC_STARTED, "sb_a", 1);
	commit(&b);
	book_close(&b, 2000);
	close(openat(dir, "00000000000000000099.jsonl", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	open_at(&b, dir, 0, 0);
	add(&b, LEDGER_EXEC_STARTED, "sb_a", 2);
	commit(&b);
	book_close(&b, 2000);
	struct read_ledger r = read_ledger(dir);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.n_files, 1);
	ledger_dir_remove(dir);
}

TEST(damage_is_told_and_stays_where_it_is)
{
	int dir = ledger_dir();
	struct book b;

	open_at(&b, dir, 0, 0);
	for (uint64_t i = 1; i <= 5; i++)
		add(&b, LEDGER_EXEC_STARTED, "sb_a", i);
	commit(&b);
	book_close(&b, 2000);
	int fd = openat(dir, FIRST, O_RDWR | O_CLOEXEC);
	size_t n;
	char *text = read_whole(dir, FIRST, &n), byte = '2';
	char *third = strstr(strstr(text, "{\"a\":1") + 1, "{\"a\":1");

	CHECK(fd >= 0 && pwrite(fd, &byte, 1, third + 5 - text) == 1);
	free(text);
	close(fd);
	open_at(&b, dir, 0, 0);
	book_close(&b, 2000);
	struct read_ledger r = read_ledger(dir);

	CHECK_INT((long long)r.n_found, 1);
	CHECK_INT(r.first.fault, LEDGER_FAULT_CHANGED);
	CHECK_INT((long long)r.of[LEDGER_DAMAGED], 1);
	ledger_dir_remove(dir);
}

/* Cuts the last `lines` lines off a file. */
static void cut_lines(int dir, const char *name, int lines)
{
	size_t n;
	AUTO(freep) char *text = read_whole(dir, name, &n);

	for (; lines > 0; lines--)
		do
			n--;
		while (n > 0 && text[n - 1] != '\n');
	put_back(dir, name, text, n);
}

/* A ledger of two signatures, which a writer that ended in order left. */
static int signed_dir(void)
{
	int dir = ledger_dir();
	struct book b;

	open_at(&b, dir, 0, 0);
	for (uint64_t i = 1; i <= 10; i++) {
		add(&b, LEDGER_EXEC_STARTED, "sb_a", i);
		if (i == 5)
			CHECK_INT(book_seal(&b, 1000, &e), 0);
	}
	commit(&b);
	book_close(&b, 2000);
	return dir;
}

static struct read_ledger reopened(int dir, struct ledger_finding *fault)
{
	struct book b;

	open_at(&b, dir, 0, 0);
	*fault = b.head_fault;
	add(&b, LEDGER_EXEC_STARTED, "sb_a", 11);
	commit(&b);
	book_close(&b, 2000);
	return read_ledger(dir);
}

/* The number of the first record whose text has `word`. */
static size_t line_of(int dir, const char *name, const char *word)
{
	size_t n, line = 1;
	AUTO(freep) char *text = read_whole(dir, name, &n);
	const char *found = strstr(text, word);

	CHECK(found);
	for (const char *c = text; c < found; c++)
		line += *c == '\n';
	return line;
}

TEST(a_writer_that_finds_its_signed_end_cut_off_says_so_for_good)
{
	struct ledger_finding fault;
	int dir = signed_dir();
	struct read_ledger r = reopened(dir, &fault);

	CHECK_INT((long long)r.n_found, 0); /* the control: nothing was cut */
	CHECK_INT(fault.fault, LEDGER_SOUND);
	ledger_dir_remove(dir);
	for (int lines = 1; lines <= 7; lines += 2) {
		dir = signed_dir();
		uint64_t last = read_ledger(dir).last_seq;

		cut_lines(dir, FIRST, lines);
		r = reopened(dir, &fault);
		CHECK_INT(fault.fault, LEDGER_FAULT_TRUNCATED);
		CHECK_INT((long long)fault.from, (long long)last - lines + 1);
		CHECK_INT((long long)fault.to, (long long)last);
		CHECK_INT((long long)r.of[LEDGER_DAMAGED], 1);
		CHECK_INT((long long)r.n_found, 1);
		CHECK_INT(r.first.fault, LEDGER_FAULT_MISSING);
		CHECK_INT((long long)r.first.from, (long long)last - lines + 1);
		CHECK_INT((long long)r.first.to, (long long)last);
		CHECK_INT((long long)r.unsigned_records, 0);
		/* told before anything was signed again */
		CHECK_INT((long long)line_of(dir, FIRST, "ledger.damaged"),
		          (long long)last - lines + 1);
		r = reopened(dir, &fault); /* told once, found by whoever looks */
		CHECK_INT(fault.fault, LEDGER_SOUND);
		CHECK_INT((long long)r.of[LEDGER_DAMAGED], 1);
		CHECK_INT((long long)r.n_found, 1);
		ledger_dir_remove(dir);
	}
}

TEST(a_head_that_no_record_agrees_with_is_damage)
{
	static const struct {
		const char *head; /* NULL: another ledger's */
		enum ledger_fault fault;
	} rows[] = {
		{ "", LEDGER_FAULT_FORM },
		{ "no record\n", LEDGER_FAULT_FORM },
		{ NULL, LEDGER_FAULT_FOREIGN },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ledger_finding fault;
		int dir = signed_dir(), other = signed_dir();
		size_t n;
		AUTO(freep) char *head = read_whole(other, "head", &n);

		put_back(dir, "head", rows[i].head ? rows[i].head : head,
		         rows[i].head ? strlen(rows[i].head) : n);
		struct read_ledger r = reopened(dir, &fault);

		CHECK_INT(fault.fault, rows[i].fault);
		CHECK_INT((long long)r.of[LEDGER_DAMAGED], 1);
		CHECK_INT((long long)r.n_found, 1);
		CHECK_INT(r.first.fault, rows[i].fault);
		ledger_dir_remove(dir);
		ledger_dir_remove(other);
	}
}

/* Records behind the cut, as somebody without the key can write them: they follow each other, and
 * the head is not ahead of them. */
TEST(records_that_took_the_place_of_signed_ones_are_found)
{
	struct ledger_finding fault;
	int dir = signed_dir();
	size_t n, n_head;
	AUTO(freep) char *head = read_whole(dir, "head", &n_head);

	cut_lines(dir, FIRST, 4);
	AUTO(freep) char *text = read_whole(dir, FIRST, &n);
	CHECK_INT(unlinkat(dir, "head", 0), 0);
	struct read_ledger before = read_with_head(dir, false);
	struct str out = { .max = 1u << 20 };
	char hash[LEDGER_HASH_SIZE];

	str_addn(&out, text, n);
	snprintf(hash, sizeof hash, "%s", before.hash);
	for (uint64_t i = 1; i <= 6; i++) {
		const struct ledger_event ev = { .kind = LEDGER_DAEMON_STARTED, .data = "{}" };
		char prev[LEDGER_HASH_SIZE];

		memcpy(prev, hash, sizeof prev);
		const struct ledger_place at = { .seq = before.last_seq + i,
			                         .ts_ms = 1000,
			                         .prev = prev };

		CHECK(ledger_print(&out, &ev, &at, hash));
	}
	put_back(dir, FIRST, out.data, out.len);
	put_back(dir, "head", head, n_head);
	str_done(&out);
	struct read_ledger r = reopened(dir, &fault);

	CHECK_INT(fault.fault, LEDGER_FAULT_CHANGED);
	CHECK_INT((long long)r.of[LEDGER_DAMAGED], 1);
	CHECK_INT((long long)r.n_found, 1);
	CHECK_INT(r.first.fault, LEDGER_FAULT_CHANGED);
	ledger_dir_remove(dir);
}

TEST(a_ledger_whose_files_are_gone_is_not_a_new_one)
{
	struct ledger_finding fault;
	int dir = signed_dir();
	long long last = (long long)read_ledger(dir).last_seq;

	CHECK_INT(unlinkat(dir, FIRST, 0), 0);
	struct read_ledger r = reopened(dir, &fault);

	CHECK_INT(fault.fault, LEDGER_FAULT_TRUNCATED);
	CHECK_INT((long long)fault.to, last);
	CHECK(r.n_found > 0 && (long long)r.first_seq == last + 1);
	ledger_dir_remove(dir);
	dir = signed_dir();
	CHECK_INT(unlinkat(dir, "head", 0), 0);
	r = reopened(dir, &fault);
	CHECK_INT(fault.fault, LEDGER_FAULT_MISSING);
	CHECK_INT((long long)r.of[LEDGER_DAMAGED], 1);
	CHECK_INT((long long)r.n_found, 1);
	ledger_dir_remove(dir);
}

/* Killed when the next file was made, before anything was in it, or before the head said so. */
TEST(a_writer_that_was_killed_between_two_files_finds_no_damage)
{
	struct ledger_finding fault;
	int dir = signed_dir();
	char name[LEDGER_FILE_SIZE];

	ledger_file_name(read_ledger(dir).last_seq + 1, name);
	close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	CHECK_INT((long long)reopened(dir, &fault).n_found, 0);
	CHECK_INT(fault.fault, LEDGER_SOUND);
	ledger_dir_remove(dir);
	struct book b;

	dir = signed_dir();
	size_t n;
	AUTO(freep) char *head = read_whole(dir, "head", &n);
	open_at(&b, dir, 1, 0);
	add(&b, LEDGER_EXEC_STARTED, "sb_a", 11);
	CHECK_INT(book_seal(&b, 1000, &e), 0);
	fd_close(&b.file_fd);
	book_close(&b, 0);
	put_back(dir, "head", head, n);
	struct read_ledger r = reopened(dir, &fault);

	CHECK_INT((long long)r.n_files, 2);
	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT(fault.fault, LEDGER_SOUND);
	ledger_dir_remove(dir);
}

TEST(one_writer_and_one_key)
{
	int dir = ledger_dir();
	struct book b, other;
	const struct book_opts o = { .dir_fd = dir };

	open_at(&b, dir, 0, 0);
	CHECK_INT(book_open(&other, &o, 1000, &e), -1);
	CHECK_INT(e.sys, EBUSY);
	book_close(&other, 1000);
	book_close(&b, 1000);
	CHECK_INT(size_of(dir, "key") > 0, 1);
	CHECK_INT(unlinkat(dir, "key", 0), 0);
	CHECK_INT(book_open(&other, &o, 1000, &e), -1); /* never another one for the same records */
	book_close(&other, 1000);
	ledger_dir_remove(dir);
}

/* What does not fit on the disk stays in memory, and goes there later. */
TEST(a_full_disk_loses_nothing)
{
	int dir = ledger_dir();
	struct book b;

	signal(SIGXFSZ, SIG_IGN);
	open_at(&b, dir, 0, 0);
	for (uint64_t i = 1; i <= 5; i++)
		add(&b, LEDGER_EXEC_STARTED, "sb_a", i);
	struct rlimit few = { 1000, RLIM_INFINITY }, many = { RLIM_INFINITY, RLIM_INFINITY };

	CHECK_INT(setrlimit(RLIMIT_FSIZE, &few), 0);
	CHECK_INT(book_write(&b, &e), -1);
	add(&b, LEDGER_EXEC_STARTED, "sb_a", 6);
	CHECK_INT(book_write(&b, &e), -1);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &many), 0);
	commit(&b);
	book_close(&b, 2000);
	struct read_ledger r = read_ledger(dir);

	CHECK_INT((long long)r.n_found, 0);
	CHECK_INT((long long)r.of[LEDGER_EXEC_STARTED], 6);
	ledger_dir_remove(dir);
}

TEST(beyond_its_budget_a_sandbox_is_only_counted)
{
	static struct budget b;
	struct ledger_event ev = { .kind = LEDGER_PROCESS_STARTED, .sandbox = "sb_a" };
	struct ledger_event vital = { .kind = LEDGER_GIT_PUSHED, .sandbox = "sb_a" };
	struct ledger_event other = { .kind = LEDGER_PROCESS_STARTED, .sandbox = "sb_b" };
	size_t n = 0;

	for (int i = 0; i < BUDGET_BURST + 500; i++)
		n += budget_take(&b, &ev, 1000);
	CHECK_INT((long long)n, BUDGET_BURST);
	CHECK_INT((long long)b.sums.len, 1);
	CHECK_INT((long long)b.sums.at[0].count, 500);
	CHECK_STR(b.sums.at[0].sandbox, "sb_a");
	CHECK(budget_take(&b, &vital, 1000));
	CHECK(budget_take(&b, &other, 1000));
	n = 0;
	for (int i = 0; i < 500; i++)
		n += budget_take(&b, &ev, 2000);
	CHECK_INT((long long)n, BUDGET_RATE);
	budget_done(&b);
}
