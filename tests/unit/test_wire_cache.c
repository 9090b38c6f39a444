#include "wire/cache.h"

#include "test.h"

TEST(hellos)
{
	static const struct {
		struct cache_hello h;
		size_t size, n_fds;
		bool is_good;
	} rows[] = {
#define H(...) { .version = CACHE_VERSION, .port = 443, .name = "a.test", __VA_ARGS__ }
		{ H(), sizeof(struct cache_hello), CACHE_FDS, true },
		{ H(.is_tls = 1), sizeof(struct cache_hello), CACHE_FDS, true },
		{ H(), sizeof(struct cache_hello) - 1, CACHE_FDS, false },
		{ H(), sizeof(struct cache_hello), CACHE_FDS - 1, false },
		{ H(), sizeof(struct cache_hello), CACHE_FDS + 1, false },
		{ H(.is_tls = 2), sizeof(struct cache_hello), CACHE_FDS, false },
		{ H(.zero = 1), sizeof(struct cache_hello), CACHE_FDS, false },
		{ { .version = CACHE_VERSION + 1, .port = 1, .name = "a.test" },
		  sizeof(struct cache_hello),
		  CACHE_FDS,
		  false },
		{ { .version = CACHE_VERSION, .port = 0, .name = "a.test" },
		  sizeof(struct cache_hello),
		  CACHE_FDS,
		  false },
		{ { .version = CACHE_VERSION, .port = 1, .name = "A.test" },
		  sizeof(struct cache_hello),
		  CACHE_FDS,
		  false },
		{ { .version = CACHE_VERSION, .port = 1, .name = "127.0.0.1" },
		  sizeof(struct cache_hello),
		  CACHE_FDS,
		  false },
		{ { .version = CACHE_VERSION, .port = 1, .name = "" },
		  sizeof(struct cache_hello),
		  CACHE_FDS,
		  false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# row %zu\n", i);
		CHECK(cache_hello_check(&rows[i].h, rows[i].size, rows[i].n_fds) ==
		      rows[i].is_good);
	}
	struct cache_hello full = H();

	memset(full.name, 'a', sizeof full.name);
	CHECK(!cache_hello_check(&full, sizeof full, CACHE_FDS));
}

TEST(words_are_read_as_they_are_said)
{
	for (enum cache_word w = CACHE_NONE + 1; w < CACHE_WORDS; w++)
		CHECK_INT(cache_word_read(span_of(cache_word_name(w))), w);
	CHECK_STR(cache_word_name(CACHE_NONE), "");
	CHECK_INT(cache_word_read(span_of("")), CACHE_NONE);
	CHECK_INT(cache_word_read(span_of("Hit")), CACHE_NONE);
}
