#include "gate/budget.h"

#include "test.h"

TEST(a_bucket_gives_what_it_has_and_fills_again)
{
	struct bucket b = { 0 };

	for (int i = 0; i < 1000; i++)
		CHECK(bucket_take(&b, 1)); /* no limit */
	bucket_set(&b, 5, 1000);
	for (int i = 0; i < 5; i++)
		CHECK(bucket_take(&b, 10000));
	CHECK(!bucket_take(&b, 10000));
	CHECK(!bucket_take(&b, 10199));
	CHECK(bucket_take(&b, 10200));
	CHECK(!bucket_take(&b, 10200));
	for (int i = 0; i < 5; i++)
		CHECK(bucket_take(&b, 99999));
	CHECK(!bucket_take(&b, 99999));
}

/* However often it is asked in between. */
TEST(a_bucket_keeps_its_rate)
{
	struct bucket b = { 0 };
	int taken = 0;

	bucket_set(&b, 300, 60000);
	for (uint64_t now = 1; now <= 600000; now += 7)
		taken += bucket_take(&b, now);
	CHECK(taken >= 300 + 2995 && taken <= 300 + 3001);
}

TEST(another_limit_does_not_give_back_what_was_taken)
{
	struct bucket b = { 0 };

	bucket_set(&b, 10, 1000);
	for (int i = 0; i < 10; i++)
		CHECK(bucket_take(&b, 5000));
	bucket_set(&b, 1000, 1000);
	CHECK(!bucket_take(&b, 5000));
	CHECK(bucket_take(&b, 5001));
	bucket_set(&b, 0, 0);
	CHECK(bucket_take(&b, 5001));
}
