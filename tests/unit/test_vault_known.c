#include "vault/known.h"

#include "test.h"

TEST(what_was_found_is_found_again)
{
	struct known_table t = { 0 };
	char name[32];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3 * KNOWN_SLOTS; i++) {
			int n = snprintf(name, sizeof name, "dir/%d", i);
			struct known *k = known_at(&t, (struct span){ name, (size_t)n });

			CHECK_INT(k->is_looked, round);
			CHECK_INT(k->seen.size, round ? i : 0);
			k->is_looked = true;
			k->seen.size = (uint64_t)i;
		}
	}
	CHECK_INT(t.n, 3LL * KNOWN_SLOTS);
	known_trim(&t);
	CHECK_INT(t.n, 3LL * KNOWN_SLOTS);
	CHECK(known_at(&t, (struct span){ "", 0 }) != known_at(&t, (struct span){ "dir", 3 }));
	CHECK(!known_at(&t, (struct span){ "dir/1\0x", 7 })->is_looked);
	known_forget(&t);
	CHECK_INT(t.n, 0);
	CHECK(!known_at(&t, (struct span){ "dir/1", 5 })->is_looked);
	known_forget(&t);
}

TEST(too_much_is_forgotten)
{
	struct known_table t = { 0 };
	char name[32];

	for (int i = 0; i <= KNOWN_MAX; i++) {
		int n = snprintf(name, sizeof name, "%d", i);

		known_at(&t, (struct span){ name, (size_t)n })->is_looked = true;
	}
	CHECK_STR(known_keep(&t, (struct span){ "kept", 3 }).at, "kep");
	known_trim(&t);
	CHECK_INT(t.n, 0);
	known_forget(&t);
}
