#include "monitor/monitor-internal.h"
#include "test.h"

static void load(struct filters *f, pid_t pid, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(filters_add(f, (struct filter_load){ .pid = pid, .born = 7 }));
}

static bool is_full(struct filters *f)
{
	struct filters copy = *f;

	return !filters_add(&copy, (struct filter_load){ .pid = 1 });
}

TEST(as_many_live_as_may)
{
	struct filters f = { 0 };

	load(&f, 10, FILTERS_MAX);
	CHECK(is_full(&f));
}

/* A sandbox that starts and ends many browsers. */
TEST(what_ended_makes_room)
{
	struct filters f = { 0 };

	for (pid_t pid = 2; pid < 100; pid++) {
		load(&f, pid, FILTERS_MAX);
		CHECK(is_full(&f));
		filters_census(&f, NULL, 0);
		CHECK_INT(f.n + f.n_orphans, 0);
	}
}

TEST(what_lives_on_is_counted)
{
	static const struct {
		const char *what;
		struct filter_holder holders[4];
		size_t n;
		size_t own,
		    orphans; /* of 100 that process 10 loaded, 50 of process 11, 6 of process 12 */
	} cases[] = {
		{ "all of them",
		  { { 10, 7, 100, 0 }, { 11, 7, 50, 0 }, { 12, 7, 6, 0 } },
		  3,
		  156,
		  0 },
		{ "loads that failed",
		  { { 10, 7, 4, 4 }, { 11, 7, 50, 0 }, { 12, 7, 6, 0 } },
		  3,
		  60,
		  4 },
		{ "a thread that loaded them has forked and ended",
		  { { 10, 7, 0, 0 }, { 11, 7, 50, 0 }, { 12, 7, 6, 0 }, { 13, 9, 100, 100 } },
		  4,
		  56,
		  100 },
		{ "more threads than loads",
		  { { 10, 7, 900, 9 }, { 11, 7, 50, 0 }, { 12, 7, 6, 0 } },
		  3,
		  156,
		  0 },
		{ "a child has all of a parent that ended", { { 13, 9, 100, 100 } }, 1, 0, 100 },
		{ "children share, and are counted each",
		  { { 13, 9, 100, 100 }, { 14, 9, 100, 100 } },
		  2,
		  0,
		  156 },
		{ "a number that is somebody else's now", { { 10, 8, 3, 3 } }, 1, 0, 3 },
		{ "a child that has none", { { 13, 9, 0, 0 } }, 1, 0, 0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct filters f = { 0 };

		printf("# %s\n", cases[i].what);
		load(&f, 10, 100);
		load(&f, 11, 50);
		load(&f, 12, 6);
		filters_census(&f, cases[i].holders, cases[i].n);
		CHECK_INT(f.n, cases[i].own);
		CHECK_INT(f.n_orphans, cases[i].orphans);
	}
}

/* Parents load, fork and end, again and again: each census must remember what the one before knew.
 */
TEST(orphans_of_orphans_add_up)
{
	const struct filter_holder heir = { 20, 9, 200, 200 };
	struct filters f = { 0 };

	load(&f, 10, 100);
	filters_census(&f, &heir, 1);
	CHECK_INT(f.n_orphans, 100);
	load(&f, 11, 100);
	filters_census(&f, &heir, 1);
	CHECK_INT(f.n_orphans, 200);
	load(&f, 12, FILTERS_MAX - 200);
	CHECK(is_full(&f));
	filters_census(&f, &heir, 1);
	CHECK_INT(f.n_orphans, 200);
	filters_census(&f, NULL, 0);
	CHECK_INT(f.n_orphans, 0);
}

/* One whose process could not be seen counts until the end. */
TEST(an_unknown_loader_never_ends)
{
	struct filters f = { 0 };

	CHECK(filters_add(&f, (struct filter_load){ 0 }));
	filters_settle(&f, 0);
	filters_census(&f, NULL, 0);
	CHECK_INT(f.n + f.n_orphans, 1);
}

/* The kernel may still be at it: its process has none yet, and will have. */
TEST(an_open_load_counts)
{
	const struct filter_holder holder = { 10, 7, 5, 5 };
	struct filters f = { 0 };

	for (pid_t tid = 20; tid < 30; tid++)
		CHECK(filters_add(&f, (struct filter_load){ .pid = 10, .born = 7, .tid = tid }));
	load(&f, 10, 5);
	filters_census(&f, &holder, 1);
	CHECK_INT(f.n, 15); /* ten that are open, and as many others as it has */
	for (pid_t tid = 20; tid < 30; tid++)
		filters_settle(&f, tid);
	filters_census(&f, &holder, 1);
	CHECK_INT(f.n, 5);
}

TEST(until_6_11_programs_outlive_their_process)
{
	static const struct {
		const char *release;
		bool outlive;
	} cases[] = { { "6.1.0-56-cloud-amd64", true },
		      { "5.15.0-100-generic", true },
		      { "6.10.14", true },
		      { "6.11.0", false },
		      { "6.12.95+deb12", false },
		      { "7.0-rc1", false },
		      { "strange", true } };

	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK(filters_outlive(cases[i].release) == cases[i].outlive);
}
