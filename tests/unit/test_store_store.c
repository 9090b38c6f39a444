#include "store/store.h"

#include <time.h>

#include "store/processes.h"
#include "unit/store_fixture.h"

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ll + t.tv_nsec / 1000;
}

static void set(struct store *s, const char *key, const char *value, struct store_call call)
{
	struct err e = { 0 };

	if (store_meta_set(s, key, value, call, &e) < 0)
		CHECK_STR(e.msg, "");
}

/* ---- open and close ---------------------------------------------------------------------- */

TEST(made_private_and_opened_again)
{
	struct stat st;
	char node[STORE_ID_MAX];

	umask(0);
	dir_make();
	struct store *s = must_open();

	CHECK(store_was_clean(s));
	CHECK_INT(strlen(store_node(s)), 35);
	snprintf(node, sizeof node, "%s", store_node(s));
	static const char *const files[] = { "caisson.db", "caisson.db-wal", "caisson.db-shm",
		                             "caisson.lock" };

	for (size_t i = 0; i < COUNT(files); i++) {
		CHECK_INT(stat(file_in_dir(files[i]), &st), 0);
		CHECK_INT(st.st_mode & 07777, 0600);
	}
	store_close(s);
	s = must_open();
	CHECK(store_was_clean(s));
	CHECK_STR(store_node(s), node);
	store_close(s);
	store_close(NULL);
	dir_remove();
}

TEST(only_one_daemon_in_a_folder)
{
	dir_make();
	struct store *s = must_open();

	must_refuse("another daemon");
	pid_t child = fork();

	if (child == 0) {
		must_refuse("another daemon");
		_exit(0);
	}
	int status = -1;

	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	set(s, "k", "v", HEAR);
	settle(s);
	CHECK_INT(heard.code, STORE_OK);
	store_close(s);
	s = must_open();
	store_close(s);
	dir_remove();
}

TEST(no_such_folder)
{
	snprintf(dir, sizeof dir, "/proc/self/nowhere/at/all");
	must_refuse("state folder /proc/self/nowhere/at/all: find it: No such file");
}

TEST(a_link_in_place_of_the_database_is_refused)
{
	dir_make();
	CHECK_INT(symlink("/tmp/elsewhere", file_in_dir("caisson.db")), 0);
	must_refuse("open caisson.db");
	CHECK(access("/tmp/elsewhere", F_OK) < 0);
	dir_remove();
}

TEST(an_open_file_of_others_is_closed_to_them)
{
	struct stat st;

	dir_make();
	store_close(must_open());
	CHECK_INT(chmod(file_in_dir("caisson.db"), 0644), 0);
	store_close(must_open());
	CHECK_INT(stat(file_in_dir("caisson.db"), &st), 0);
	CHECK_INT(st.st_mode & 07777, 0600);
	dir_remove();
}

/* ---- the queue --------------------------------------------------------------------------- */

static int order[64], n_order;

static void note(void *arg, const struct store_answer *a)
{
	CHECK_INT(a->code, STORE_OK);
	if (n_order < (int)COUNT(order))
		order[n_order++] = *(int *)arg;
}

TEST(answers_come_in_order_and_only_from_dispatch)
{
	enum { N = 50 };
	static int number[N];

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < N; i++) {
		number[i] = i;
		set(s, "k", "v", (struct store_call){ .done = note, .arg = &number[i] });
	}
	CHECK_INT(store_waiting(s), N);
	struct pollfd ready = { .fd = store_fd(s), .events = POLLIN };

	CHECK_INT(poll(&ready, 1, TEST_WAIT_MS), 1);
	CHECK_INT(n_order, 0);
	settle(s);
	CHECK_INT(n_order, N);
	for (int i = 0; i < N; i++)
		CHECK_INT(order[i], i);
	CHECK_INT(poll(&ready, 1, 0), 0);
	store_dispatch(s); /* nothing waits: nothing happens */
	store_close(s);
	dir_remove();
}

TEST(an_answered_write_is_visible_to_reads)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	const char *value = NULL;
	char text[32];

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < 500; i++) {
		snprintf(text, sizeof text, "%d", i);
		set(s, "k", text, (struct store_call){ .done = hear, .is_durable = i % 50 == 0 });
		settle(s);
		CHECK_INT(store_meta_get(s, "k", &a, &value, &e), 0);
		CHECK_STR(value, text);
	}
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(one_bad_request_does_not_hurt_its_batch)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct process_list list;

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < 100; i++) {
		char id[32];

		snprintf(id, sizeof id, "px_%d", i);
		struct process_row row = { .id = id,
			                   .tenant = "t1",
			                   .sandbox = "sb_1",
			                   .num = i / 2,
			                   .argv = i % 10 ? "[]" : "[" };

		CHECK_INT(store_process_insert(s, &row, (struct store_call){ 0 }, &e), 0);
	}
	settle(s);
	CHECK_INT(store_process_running_of(s, "sb_1", &a, &list, &e), 0);
	CHECK_INT(list.n, 50); /* of each pair the first, or the second if the first was broken */
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_full_queue_says_so)
{
	struct err e = { 0 };

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < STORE_QUEUE_MAX; i++)
		set(s, "k", "v", (struct store_call){ 0 });
	REFUSED(store_meta_set(s, "k", "v", HEAR, &e), "4096 requests wait");
	CHECK_INT(e.kind, ERR_LIMIT);
	settle(s);
	set(s, "k", "v", HEAR);
	settle(s);
	CHECK_INT(heard.code, STORE_OK);
	store_close(s);
	dir_remove();
}

TEST(large_requests_fill_the_queue_sooner)
{
	struct err e = { 0 };
	enum { BYTES = 60 << 10 };
	AUTO(freep) char *argv = mem_alloc(BYTES + 1);
	int sent = 0;

	memset(argv, ' ', BYTES);
	argv[0] = '[';
	argv[BYTES - 1] = ']';
	dir_make();
	struct store *s = must_open();

	for (; sent < STORE_QUEUE_MAX; sent++) {
		char id[32];

		snprintf(id, sizeof id, "px_%d", sent);
		struct process_row row = {
			.id = id, .tenant = "t1", .sandbox = "sb_1", .num = sent, .argv = argv
		};

		if (store_process_insert(s, &row, HEAR, &e) < 0)
			break;
	}
	CHECK_INT(e.kind, ERR_LIMIT);
	CHECK(sent > 500 && sent < 600);
	settle(s);
	CHECK_INT(heard.n, sent);
	store_close(s);
	dir_remove();
}

static struct store *open_store;
static int n_refused;

static void again(void *arg, const struct store_answer *a)
{
	struct err e = { 0 };

	(void)arg;
	CHECK_INT(a->code, STORE_OK);
	heard.n++;
	n_refused += store_meta_set(open_store, "k", "again", HEAR, &e) < 0;
}

TEST(a_callback_may_queue_and_close_takes_all_along)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	const char *value = NULL;

	dir_make();
	struct store *s = open_store = must_open();

	set(s, "k", "first", (struct store_call){ .done = again });
	settle(s);
	CHECK_INT(heard.n, 2);
	for (int i = 0; i < 100; i++)
		set(s, "k", "last", (struct store_call){ .done = again, .is_durable = i == 99 });
	store_close(s);
	CHECK_INT(heard.n, 102);
	CHECK_INT(n_refused, 100); /* too late */
	s = must_open();
	CHECK_INT(store_meta_get(s, "k", &a, &value, &e), 0);
	CHECK_STR(value, "last");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

/* ---- measured ---------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int next_id;

static void insert(struct store *s, struct store_call call)
{
	struct err e = { 0 };
	char id[32];

	snprintf(id, sizeof id, "px_%08x", (unsigned int)next_id * 2654435761u);
	struct process_row row = { .id = id,
		                   .tenant = "t1",
		                   .sandbox = "sb_1",
		                   .num = next_id++,
		                   .argv = "[\"pytest\",\"-q\"]",
		                   .cwd = "/work",
		                   .state = PROCESS_RUNNING,
		                   .created_ms = 1,
		                   .log_id = id };

	if (store_process_insert(s, &row, call, &e) < 0)
		CHECK_STR(e.msg, "");
}

TEST(measure_rows_per_second_with_64_waiting)
{
	enum { WAITING = 64, ROWS = 20000 };

	dir_make();
	struct store *s = must_open();
	int64_t start = now_us();

	while (heard.n < ROWS) {
		struct pollfd ready = { .fd = store_fd(s), .events = POLLIN };

		while (store_waiting(s) < WAITING)
			insert(s, HEAR);
		CHECK_INT(poll(&ready, 1, TEST_WAIT_MS), 1);
		store_dispatch(s);
		CHECK_INT(heard.code, STORE_OK);
	}
	printf("# %lld rows per second, 64 waiting\n", heard.n * 1000000ll / (now_us() - start));
	store_close(s);
	dir_remove();
}

static void measure_one_by_one(const char *what, bool is_durable, bool has_neighbour)
{
	enum { TIMES = 1000 };
	static int64_t us[TIMES];
	int times = is_durable ? TIMES / 5 : TIMES;

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < times; i++) {
		int n = heard.n;

		if (has_neighbour && i % 4 == 0) /* its answer is not waited for */
			set(s, "k", "v", (struct store_call){ .is_durable = true });
		us[i] = now_us();
		insert(s, (struct store_call){ .done = hear, .is_durable = is_durable });
		while (heard.n == n) {
			struct pollfd ready = { .fd = store_fd(s), .events = POLLIN };

			CHECK_INT(poll(&ready, 1, TEST_WAIT_MS), 1);
			store_dispatch(s);
		}
		us[i] = now_us() - us[i];
		CHECK_INT(heard.code, STORE_OK);
	}
	qsort(us, (size_t)times, sizeof us[0], compare);
	printf("# %s: p50 %lld us, p99 %lld us, max %lld us\n", what, (long long)us[times / 2],
	       (long long)us[times * 99 / 100], (long long)us[times - 1]);
	store_close(s);
	dir_remove();
}

TEST(measure_one_insert_until_answered)
{
	measure_one_by_one("one insert", false, false);
}

TEST(measure_one_insert_beside_durable_ones)
{
	measure_one_by_one("one insert beside durable writes", false, true);
}

TEST(measure_one_durable_insert)
{
	measure_one_by_one("one durable insert", true, false);
}
