#include "base/vec.h"

#include "test.h"

struct point {
	int x, y;
};

TEST(push_keeps_order_over_growth)
{
	VEC(int) v = { 0 };

	for (int i = 0; i < 1000; i++)
		vec_push(&v, -i);
	CHECK_INT(v.len, 1000);
	for (int i = 0; i < 1000; i++)
		CHECK_INT(v.at[i], -i);
	vec_done(&v);
}

TEST(push_takes_a_compound_literal)
{
	VEC(struct point) v = { 0 };

	vec_push(&v, (struct point){ .x = 1, .y = 2 });
	CHECK_INT(v.at[0].x, 1);
	CHECK_INT(v.at[0].y, 2);
	vec_done(&v);
}

TEST(done_accepts_nothing_and_twice)
{
	VEC(const char *) v = { 0 };

	vec_done(&v);
	vec_push(&v, "a");
	vec_done(&v);
	vec_done(&v);
	CHECK(!v.at);
	CHECK_INT(v.len, 0);
	CHECK_INT(v.cap, 0);
}
