#include "core/evict.h"

#include "test.h"

#define TOP .kind = EVICT_TOP, .is_closed = true, .is_saved = true
#define G (1ull << 30)

static const struct config_store bound = { .max = 100 * G };

static struct evict_marks marks(uint64_t used)
{
	return evict_marks(&bound, used);
}

TEST(marks_are_percents_and_have_a_default)
{
	struct evict_marks m = marks(5);

	CHECK_INT(m.high / G, 90);
	CHECK_INT(m.low / G, 80);
	m = evict_marks(&(struct config_store){ .max = 1000, .high = 50, .low = 10 }, 5);
	CHECK_INT(m.high, 500);
	CHECK_INT(m.low, 100);
}

/* Under pressure, alone. */
TEST(each_one_stays_or_goes_for_a_reason)
{
	static const struct {
		struct evict_item item;
		bool is_going;
		const char *why;
	} rows[] = {
		{ { TOP, .bytes = 1 }, true, "no changes" },
		{ { TOP, .bytes = 1, .is_changed = true }, true, "its last point has all" },
		{ { TOP, .bytes = 1, .is_trashed = true, .is_changed = true }, true, "trash" },
		{ { TOP, .bytes = 1, .is_pinned = true }, false, "pinned" },
		{ { TOP, .bytes = 1, .is_open = true }, false, "works with it" },
		{ { TOP, .bytes = 0 }, false, "no files" },
		{ { .kind = EVICT_TOP, .bytes = 1 }, true, "kept as a point" },
		{ { .kind = EVICT_TOP, .bytes = 1, .is_closed = true, .is_changed = true },
		  false,
		  "in no point" },
		{ { .kind = EVICT_TOP, .bytes = 1, .is_closed = true }, false, "in no point" },
		{ { .kind = EVICT_LAYER, .bytes = 1 }, true, "no workspace stands on it" },
		{ { .kind = EVICT_TRASH, .bytes = 1 }, true, "time in the trash" },
		{ { .kind = EVICT_POINTS }, true, "no history" },
	};
	struct evict_marks high = marks(95 * G);

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct evict_item item = rows[i].item;
		uint64_t freed = evict_plan(&item, 1, &high);

		if (item.is_going != rows[i].is_going || !strstr(item.why, rows[i].why))
			printf("# row %zu: %s\n", i, item.why);
		CHECK_INT(item.is_going, rows[i].is_going);
		CHECK(strstr(item.why, rows[i].why) != NULL);
		CHECK_INT(freed, rows[i].is_going ? item.bytes : 0);
	}
}

TEST(in_order_and_no_more_than_is_needed)
{
	struct evict_item items[] = {
		{ TOP, .bytes = 4 * G, .used_ms = 1, .is_changed = true }, /* 5th */
		{ TOP, .bytes = 4 * G, .used_ms = 9 },                     /* 4th */
		{ TOP, .bytes = 4 * G, .used_ms = 3 },                     /* 3rd */
		{ TOP, .bytes = 4 * G, .used_ms = 20, .is_trashed = true, .is_changed = true },
		{ .kind = EVICT_LAYER, .bytes = 4 * G, .used_ms = 50 }, /* 1st */
		{ TOP, .bytes = 50 * G, .is_pinned = true },
		{ .kind = EVICT_TRASH, .bytes = 1 * G },
	};
	static const struct {
		uint64_t used;
		const char *going;
	} rows[] = {
		{ 50, "......T" }, { 90, "......T" }, { 91, "..XXX.T" },
		{ 96, ".XXXX.T" }, { 99, "XXXXX.T" }, { 200, "XXXXX.T" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct evict_marks m = marks(rows[i].used * G);
		char got[COUNT(items) + 1] = "";

		CHECK_INT(evict_plan(items, COUNT(items), &m) % G, 0);
		for (size_t k = 0; k < COUNT(items); k++)
			got[k] = ".XT"[items[k].is_going +
			               (items[k].is_going && items[k].kind == EVICT_TRASH)];
		CHECK_STR(got, rows[i].going);
	}
}

TEST(without_a_bound_only_what_is_over_goes)
{
	struct evict_item items[] = { { TOP, .bytes = G }, { .kind = EVICT_POINTS } };
	struct evict_marks none = evict_marks(&(struct config_store){ 0 }, 500 * G);

	CHECK_INT(evict_plan(items, COUNT(items), &none), 0);
	CHECK(!items[0].is_going && items[1].is_going);
	CHECK_STR(items[0].why, "the store has no bound");
	CHECK_STR(evict_kind_name(EVICT_TOP), "files");
}
