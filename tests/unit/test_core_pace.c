#include "core/pace.h"

#include "test.h"

enum { MANY = 2000 };

static struct end {
	struct paced paced; /* first */
	int number;
} ends[MANY];
static int begun[MANY];
static int n_begun;
static bool is_over_at_once;
static struct pace pace;

static void begin(struct paced *p)
{
	begun[n_begun++] = ((struct end *)(void *)p)->number;
	if (is_over_at_once)
		pace_leave(&pace, p);
}

static void join_all(int n)
{
	pace = (struct pace){ .begin = begin };
	for (int i = 0; i < n; i++) {
		ends[i].number = i;
		pace_join(&pace, &ends[i].paced);
		if (!is_over_at_once)
			pace_join(&pace, &ends[i].paced); /* once counts */
	}
}

TEST(never_more_than_64_of_2000_end_at_once)
{
	size_t most = 0;

	join_all(MANY);
	CHECK_INT(n_begun, PACE_MAX);
	for (int over = 0; over < MANY; over++) {
		most = pace.n_ending > most ? pace.n_ending : most;
		pace_leave(&pace, &ends[begun[over]].paced);
		pace_leave(&pace, &ends[begun[over]].paced); /* once counts */
	}
	CHECK_INT((long long)most, PACE_MAX);
	CHECK_INT(n_begun, MANY);
	CHECK_INT((long long)pace.n_ending, 0);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(begun[i], i); /* in the order of coming */
}

TEST(who_waits_and_goes_away_takes_no_place)
{
	join_all(PACE_MAX + 3);
	pace_leave(&pace, &ends[PACE_MAX + 1].paced);
	pace_leave(&pace, &ends[0].paced);
	CHECK_INT(begun[PACE_MAX], PACE_MAX);
	pace_leave(&pace, &ends[1].paced);
	CHECK_INT(begun[PACE_MAX + 1], PACE_MAX + 2);
	CHECK_INT(n_begun, PACE_MAX + 2);
}

TEST(an_end_that_is_over_at_once_holds_nobody_up)
{
	is_over_at_once = true;
	join_all(MANY);
	CHECK_INT(n_begun, MANY);
	CHECK_INT((long long)pace.n_ending, 0);
}
