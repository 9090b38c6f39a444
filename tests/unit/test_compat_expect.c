#include <time.h>

#include "compat/compat-internal.h"
#include "test.h"

static bool find(const char *patterns, const char *text, size_t from, size_t *at, size_t *index)
{
	json_t *list = json_loads(patterns, 0, NULL);
	struct fail f = { 0 };
	struct expects *e = expects_new(list, &f);
	size_t end;

	CHECK(e != NULL);
	bool is_found = expects_find(e, span_of(text), from, at, &end, index);
	expects_free(e);
	json_decref(list);
	return is_found;
}

TEST(the_first_match_of_any_pattern)
{
	static const struct {
		const char *patterns, *text;
		size_t from;
		int at, index; /* -1: none */
	} cases[] = {
		{ "[\">>> \"]", "hello\n>>> ", 0, 6, 0 },
		{ "[\"b\",\"a\"]", "ab", 0, 0, 1 },
		{ "[\"a\",\"ab\"]", "ab", 0, 0, 0 }, /* the one that was named first */
		{ "[\"\\\\(Pdb\\\\) \"]", "(Pdb) ", 0, 0, 0 },
		{ "[\"a.b\"]", "a\nb", 0, 0, 0 },
		{ "[\"\\\\d+\"]", "x12", 0, 1, 0 },
		{ "[\"a\"]", "aba", 1, 2, 0 },
		{ "[\"z\"]", "aba", 0, -1, 0 },
		{ "[]", "aba", 0, -1, 0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t at = 0, index = 0;
		bool is_found = find(cases[i].patterns, cases[i].text, cases[i].from, &at, &index);

		CHECK_INT(is_found, cases[i].at >= 0);
		if (is_found) {
			CHECK_INT((int)at, cases[i].at);
			CHECK_INT((int)index, cases[i].index);
		}
	}
}

TEST(what_is_no_pattern_is_refused)
{
	static const char *const lists[] = { "[\"(\"]", "[7]", "[\"\\\\C\"]", "[\"*\"]" };

	for (size_t i = 0; i < COUNT(lists); i++) {
		json_t *list = json_loads(lists[i], 0, NULL);
		struct fail f = { 0 };

		CHECK(list && !expects_new(list, &f));
		CHECK_INT(f.code, FAIL_INVALID);
		json_decref(list);
	}
}

/* Backtracking at one place; a little of it at each of very many; reading to the end from each; the
 * same many times over. */
TEST(a_pattern_does_not_look_for_ever)
{
	static const char *const lists[] = { "[\"(a+)+b\"]", "[\".{0,200}.{0,200}(?=[bc])\"]",
		                             "[\"[^x]*+(?=[bc])\"]",
		                             "[\"(?:a{0,200}a{0,200})[^x]*+(?=[bc])\"]",
		                             "[\"(?C1)(?:a|aa|aaa)+(?C\\\"x\\\")(?=[bc])\"]" };
	static char text[1 << 20];
	size_t at, index;

	memset(text, 'a', sizeof text - 1);
	for (size_t i = 0; i < COUNT(lists); i++) {
		clock_t before = clock();

		CHECK(!find(lists[i], text, 0, &at, &index));
		CHECK((clock() - before) / CLOCKS_PER_SEC < 2);
	}
}

TEST(what_looked_for_too_long_rests_and_then_finds_nothing)
{
	static char text[1 << 20];
	json_t *list = json_loads("[\"a.{0,200}.{0,200}(?=[bc])\"]", 0, NULL);
	struct fail f = { 0 };
	struct expects *e = expects_new(list, &f);
	size_t at, end, index;

	memset(text, 'a', sizeof text - 1);
	CHECK(e && expects_find(e, span_of("xab"), 0, &at, &end, &index) && at == 1 && end == 2);
	CHECK(!expects_are_spent(e));
	CHECK(!expects_find(e, span_of(text), 0, &at, &end, &index));
	CHECK(expects_are_spent(e) && expects_rest_ms(e) > 100);
	CHECK(!expects_find(e, span_of("xab"), 0, &at, &end, &index));
	CHECK(!expects_are_spent(NULL) && expects_rest_ms(NULL) == 0);
	expects_free(e);
	json_decref(list);
}
