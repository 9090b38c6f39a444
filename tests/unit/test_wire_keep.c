#include "wire/keep.h"

#include "test.h"

enum { MAX = 64, ALL = 1000 };

static uint64_t seed = 88172645463325252u;

static size_t below(size_t n)
{
	seed ^= seed << 13; /* xorshift64, Marsaglia 2003 */
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (size_t)(seed % n);
}

static void add_in_chunks(struct keep *k, const unsigned char *p, size_t n)
{
	while (n > 0) {
		size_t chunk = below(2ul * MAX) + 1;

		chunk = chunk < n ? chunk : n;
		keep_add(k, p, chunk);
		p += chunk;
		n -= chunk;
	}
}

TEST(whole_or_head_and_tail_whatever_the_chunks)
{
	unsigned char bytes[ALL];

	for (size_t n = 0; n < ALL; n += 1 + below(7)) {
		AUTO(str_done) struct str got = { .max = 4ul * ALL };
		AUTO(str_done) struct str want = { .max = 4ul * ALL };
		AUTO(keep_done) struct keep k;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)('a' + i % 26);
		keep_init(&k, MAX);
		add_in_chunks(&k, bytes, n);
		CHECK(keep_text(&k, &got));
		if (n <= MAX) {
			str_addn(&want, bytes, n);
		} else {
			str_addn(&want, bytes, MAX / 2);
			str_addf(&want, "\n[... %zu bytes dropped ...]\n", n - MAX);
			str_addn(&want, bytes + n - MAX / 2, MAX / 2);
		}
		CHECK_STR(str_text(&got), str_text(&want));
		CHECK_INT(keep_dropped(&k), n <= MAX ? 0 : n - MAX);
	}
}

TEST(a_code_point_is_not_cut)
{
	static const char euro[] = "\xe2\x82\xac";

	for (size_t lead = 0; lead < 3; lead++) {
		AUTO(str_done) struct str text = { .max = 4ul * ALL };
		AUTO(keep_done) struct keep k;

		keep_init(&k, MAX);
		keep_add(&k, "xyz", lead);
		for (int i = 0; i < 100; i++)
			keep_add(&k, euro, 3);
		CHECK(keep_text(&k, &text));
		CHECK(!strchr(str_text(&text), '?'));
		CHECK(keep_dropped(&k) >= lead + 300 - MAX &&
		      keep_dropped(&k) <= lead + 300 - MAX + 6);
	}
}

TEST(what_is_not_text_is_kept_as_it_is)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = { { "\xff\xfe", 2 },
		     { "a\0b", 3 },
		     { "\xc0\x80", 2 },
		     { "\xe2\x82", 2 },
		     { "\xed\xa0\x80", 3 } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str text = { .max = ALL };
		AUTO(keep_done) struct keep k;

		keep_init(&k, MAX);
		keep_add(&k, rows[i].bytes, rows[i].n);
		CHECK(!keep_text(&k, &text));
		CHECK_INT(text.len, rows[i].n);
		CHECK(memcmp(text.data, rows[i].bytes, rows[i].n) == 0);
	}
}

TEST(what_was_never_seen_counts_as_dropped)
{
	AUTO(str_done) struct str text = { .max = ALL };
	AUTO(keep_done) struct keep k;

	keep_init(&k, MAX);
	keep_add(&k, "begin", 5);
	keep_skip(&k, 1000);
	CHECK_INT(keep_dropped(&k), 1000);
	CHECK(keep_text(&k, &text));
	CHECK(strstr(str_text(&text), "1000 bytes dropped"));
}
