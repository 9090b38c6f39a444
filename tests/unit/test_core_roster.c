#include "core/roster.h"

#include "test.h"

struct thing {
	struct roster_entry entry;
	char key[16];
};

enum { MANY = 1000 };
static struct thing things[MANY];

static void fill(struct roster *r)
{
	for (size_t i = 0; i < MANY; i++) {
		snprintf(things[i].key, sizeof things[i].key, "k%zu", i);
		things[i].entry.key = things[i].key;
		roster_add(r, &things[i].entry);
	}
}

TEST(what_was_added_is_found_and_nothing_else)
{
	struct roster r = { 0 };

	CHECK(!roster_find(&r, "k1"));
	fill(&r);
	CHECK_INT(r.n, MANY);
	for (size_t i = 0; i < MANY; i++)
		CHECK(roster_find(&r, things[i].key) == &things[i]);
	CHECK(!roster_find(&r, "k1000"));
	CHECK(!roster_find(&r, ""));
	roster_done(&r);
}

TEST(what_was_removed_is_gone_once)
{
	struct roster r = { 0 };

	fill(&r);
	for (size_t i = 0; i < MANY; i += 2)
		roster_remove(&r, &things[i].entry);
	roster_remove(&r, &things[0].entry);
	CHECK_INT(r.n, MANY / 2);
	for (size_t i = 0; i < MANY; i++)
		CHECK((roster_find(&r, things[i].key) != NULL) == (i % 2 == 1));
	roster_done(&r);
}

static size_t seen;

static void take(void *entry, void *arg)
{
	struct thing *t = entry;

	seen++;
	roster_remove(arg, &t->entry);
}

TEST(each_may_remove_what_it_is_given)
{
	struct roster r = { 0 };

	fill(&r);
	roster_each(&r, take, &r);
	CHECK_INT(seen, MANY);
	CHECK_INT(r.n, 0);
	roster_done(&r);
}
