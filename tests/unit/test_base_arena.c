#include "base/arena.h"

#include <stdalign.h>

#include "test.h"

TEST(memory_is_zeroed_aligned_and_apart)
{
	static const size_t sizes[] = { 0, 1, 7, 16, 17, 4095, 4096, 4097, 100000 };
	AUTO(arena_done) struct arena a = { 0 };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		unsigned char *p = arena_alloc(&a, sizes[i]);

		printf("# %zu bytes\n", sizes[i]);
		CHECK_INT((uintptr_t)p % alignof(max_align_t), 0);
		for (size_t k = 0; k < sizes[i]; k++)
			CHECK_INT(p[k], 0);
		memset(p, 0xff, sizes[i]);
	}
}

TEST(small_pieces_stay_where_they_are)
{
	enum { PIECES = 2000 };
	AUTO(arena_done) struct arena a = { 0 };
	int *at[PIECES];

	for (int i = 0; i < PIECES; i++) {
		at[i] = arena_alloc(&a, sizeof *at[i]);
		*at[i] = i;
	}
	for (int i = 0; i < PIECES; i++)
		CHECK_INT(*at[i], i);
}

TEST(strings_are_copies)
{
	AUTO(arena_done) struct arena a = { 0 };
	char text[] = "before";
	char *whole = arena_strdup(&a, text);
	char *part = arena_strndup(&a, text, 3);

	text[0] = 'X';
	CHECK_STR(whole, "before");
	CHECK_STR(part, "bef");
	CHECK_STR(arena_strndup(&a, text, 0), "");
}

TEST(done_accepts_nothing_and_twice)
{
	struct arena a = { 0 };

	arena_done(&a);
	CHECK(arena_alloc(&a, 1));
	arena_done(&a);
	arena_done(&a);
	CHECK(!a.head);
}
