#include "wire/keep.h"

#include "test.h"

#define KEEP_HALF (24ul << 10)

enum { STREAM_MAX = 8 * KEEP_HALF, TEXT_MAX = 4 * KEEP_HALF };

/* ---- numbers that are the same in every run ---------------------------------------- */

static uint64_t seed = 88172645463325252u;

static size_t below(size_t n)
{
	seed ^= seed << 13; /* xorshift64, Marsaglia 2003 */
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (size_t)(seed % n);
}

static struct keep *keep_made(void)
{
	struct keep *k = mem_alloc(sizeof *k);

	keep_init(k, 2 * KEEP_HALF);
	return k;
}

static void keep_free(struct keep **k)
{
	keep_done(*k);
	free(*k);
}

/* ---- the reference: all of the stream, cut afterwards ------------------------------ */

static unsigned char stream[STREAM_MAX];

static void add_in_chunks(struct keep *k, size_t n, size_t chunk_max)
{
	for (size_t at = 0; at < n;) {
		size_t chunk = below(chunk_max) + 1;

		chunk = chunk < n - at ? chunk : n - at;
		/* A copy of its own, so that ASan sees a read behind the chunk. */
		AUTO(freep) unsigned char *bytes = mem_alloc(chunk);

		memcpy(bytes, stream + at, chunk);
		keep_add(k, bytes, chunk);
		at += chunk;
	}
}

static void want_bytes(size_t n, struct str *out)
{
	if (n <= 2 * KEEP_HALF) {
		str_addn(out, stream, n);
		return;
	}
	str_addn(out, stream, KEEP_HALF);
	str_addf(out, "\n[... %zu bytes dropped ...]\n", n - 2 * KEEP_HALF);
	str_addn(out, stream + n - KEEP_HALF, KEEP_HALF);
}

static void check_kept(size_t n, size_t chunk_max, bool is_text)
{
	AUTO(keep_free) struct keep *k = keep_made();
	AUTO(str_done) struct str got = { .max = TEXT_MAX };
	AUTO(str_done) struct str want = { .max = TEXT_MAX };

	add_in_chunks(k, n, chunk_max);
	CHECK_INT(k->bytes, n);
	CHECK_INT(keep_dropped(k), n > 2 * KEEP_HALF ? n - 2 * KEEP_HALF : 0);
	CHECK_INT(keep_text(k, &got), is_text);
	want_bytes(n, &want);
	CHECK_INT(got.len, want.len);
	CHECK(want.len == 0 || memcmp(got.data, want.data, want.len) == 0);
}

/* ---- tests ------------------------------------------------------------------------- */

static const size_t lengths[] = {
	0,
	1,
	KEEP_HALF - 1,
	KEEP_HALF,
	KEEP_HALF + 1,
	2 * KEEP_HALF - 1,
	2 * KEEP_HALF,
	2 * KEEP_HALF + 1,
	3 * KEEP_HALF - 1,
	3 * KEEP_HALF,
	3 * KEEP_HALF + 1,
	STREAM_MAX,
};

/* The last one is a flood: the whole stream in one piece. */
static const size_t chunks[] = { 1, 7, KEEP_HALF, KEEP_HALF + 1, 3 * KEEP_HALF, STREAM_MAX };

TEST(keeps_head_and_tail_of_any_length_in_any_pieces)
{
	for (size_t i = 0; i < STREAM_MAX; i++)
		stream[i] = (unsigned char)(' ' + below(95));
	for (size_t i = 0; i < COUNT(lengths); i++)
		for (size_t c = 0; c < COUNT(chunks); c++)
			check_kept(lengths[i], chunks[c], true);
	for (int round = 0; round < 200; round++)
		check_kept(below(STREAM_MAX + 1), below(STREAM_MAX) + 1, true);
}

TEST(keeps_bytes_that_are_not_text_as_they_are)
{
	for (size_t i = 0; i < STREAM_MAX; i++)
		stream[i] = (unsigned char)below(256);
	stream[0] = 0xff; /* the shortest ones too */
	for (size_t i = 1; i < COUNT(lengths); i++)
		for (size_t c = 0; c < COUNT(chunks); c++)
			check_kept(lengths[i], chunks[c], false);
}

TEST(a_flood_after_any_start_keeps_the_head_that_was)
{
	static const size_t starts[] = { 1, KEEP_HALF - 1, KEEP_HALF, KEEP_HALF + 5,
		                         2 * KEEP_HALF + 5 };

	for (size_t i = 0; i < STREAM_MAX; i++)
		stream[i] = (unsigned char)('a' + i % 26);
	for (size_t i = 0; i < COUNT(starts); i++) {
		AUTO(keep_free) struct keep *k = keep_made();
		AUTO(str_done) struct str got = { .max = TEXT_MAX };
		AUTO(str_done) struct str want = { .max = TEXT_MAX };

		keep_add(k, stream, starts[i]);
		keep_add(k, stream + starts[i], STREAM_MAX - starts[i]);
		CHECK(keep_text(k, &got));
		want_bytes(STREAM_MAX, &want);
		CHECK_STR(str_text(&got), str_text(&want));
	}
}

TEST(text_is_what_rfc_3629_calls_utf_8_without_nul)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool is_text;
	} cases[] = {
		{ "", 0, true },
		{ "a\n\t\x1b[0m\x7f", 8, true },
		{ "\xc3\xa9", 2, true },
		{ "\xe2\x82\xac", 3, true },
		{ "\xf0\x9f\x98\x80", 4, true },
		{ "\xc2\x80", 2, true },         /* the first of two bytes */
		{ "\xdf\xbf", 2, true },         /* the last */
		{ "\xe0\xa0\x80", 3, true },     /* the first of three */
		{ "\xef\xbf\xbf", 3, true },     /* the last */
		{ "\xf0\x90\x80\x80", 4, true }, /* the first of four */
		{ "\xf4\x8f\xbf\xbf", 4, true }, /* the last of all, U+10FFFF */
		{ "\xed\x9f\xbf", 3, true },     /* before the surrogates */
		{ "\xee\x80\x80", 3, true },     /* after them */
		{ "a\0b", 3, false },
		{ "\x80", 1, false },
		{ "\xbf", 1, false },
		{ "\xc0\x80", 2, false }, /* NUL in disguise */
		{ "\xc1\xbf", 2, false },
		{ "\xe0\x9f\xbf", 3, false }, /* three bytes where two do */
		{ "\xf0\x8f\xbf\xbf", 4, false },
		{ "\xed\xa0\x80", 3, false }, /* a surrogate */
		{ "\xed\xbf\xbf", 3, false },
		{ "\xf4\x90\x80\x80", 4, false }, /* behind U+10FFFF */
		{ "\xf5\x80\x80\x80", 4, false },
		{ "\xfe", 1, false },
		{ "\xff", 1, false },
		{ "\xc3", 1, false }, /* the rest never came */
		{ "\xe2\x82", 2, false },
		{ "\xf0\x9f\x98", 3, false },
		{ "\xc3(", 2, false },
		{ "\xe2\x82(", 3, false },
		{ "\xe2(\xac", 3, false },
		{ "\xf0\x9f\x98(", 4, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(keep_free) struct keep *k = keep_made();
		AUTO(str_done) struct str got = { .max = TEXT_MAX };

		printf("# case %zu\n", i);
		keep_add(k, cases[i].bytes, cases[i].n);
		CHECK_INT(keep_text(k, &got), cases[i].is_text);
		CHECK_INT(got.len, cases[i].n);
		CHECK_INT(memcmp(str_text(&got), cases[i].bytes, cases[i].n), 0);
	}
}

/* A sequence that lies across the middle of what is kept is whole: nothing is missing there. */
TEST(a_sequence_across_head_and_tail_is_whole_when_nothing_was_dropped)
{
	static const char euro[] = "\xe2\x82\xac";

	for (size_t shift = 0; shift < 4; shift++) {
		AUTO(keep_free) struct keep *k = keep_made();
		AUTO(str_done) struct str got = { .max = TEXT_MAX };

		memset(stream, 'a', KEEP_HALF);
		keep_add(k, stream, KEEP_HALF - shift);
		keep_add(k, euro, 3);
		CHECK(keep_text(k, &got));
		CHECK_STR(str_text(&got) + KEEP_HALF - shift, euro);
	}
}

/* `unit` again and again, first `lead` bytes of ASCII; cut somewhere by head and tail. */
static void check_cut(const char *unit, size_t lead, size_t n)
{
	AUTO(keep_free) struct keep *k = keep_made();
	AUTO(str_done) struct str got = { .max = TEXT_MAX };
	size_t len = strlen(unit);

	memset(stream, 'a', lead);
	for (size_t i = 0; i < n * len; i++)
		stream[lead + i] = (unsigned char)unit[i % len];
	keep_add(k, stream, lead + n * len);
	CHECK(keep_text(k, &got));
	char *line = strstr(got.data, "\n[... ");
	char *tail = strstr(got.data, " bytes dropped ...]\n");
	CHECK(line && tail);
	tail += strlen(" bytes dropped ...]\n");

	size_t head_len = (size_t)(line - got.data);
	size_t tail_len = got.len - (size_t)(tail - got.data);

	CHECK_INT(head_len, KEEP_HALF - (KEEP_HALF - lead) % len);
	CHECK_INT(tail_len, KEEP_HALF / len * len);
	CHECK_INT(head_len + keep_dropped(k) + tail_len, k->bytes);
	CHECK_INT(memcmp(got.data, stream, head_len), 0);
	CHECK_INT(memcmp(tail, stream + lead + n * len - tail_len, tail_len), 0);
}

TEST(long_text_is_cut_on_code_points)
{
	static const char *const units[] = { "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };

	for (size_t i = 0; i < COUNT(units); i++)
		for (size_t lead = 0; lead < 4; lead++)
			for (size_t more = 0; more < 4; more++)
				check_cut(units[i], lead, 3 * KEEP_HALF / strlen(units[i]) + more);
}

TEST(long_bytes_with_one_bad_one_are_not_text)
{
	enum { BYTES = 3 * KEEP_HALF };
	static const struct {
		size_t at;
		unsigned char byte;
		bool is_text;
	} cases[] = {
		{ 0, 0xff, false },
		{ 100, 0, false },
		{ KEEP_HALF - 10, 0x80, false },
		{ KEEP_HALF + 10, 0xff, true }, /* it was dropped */
		{ BYTES - KEEP_HALF + 10, 0xc3, false },
		{ BYTES - 10, 0xff, false },
		/* at a cut only a sequence that was cut may go */
		{ KEEP_HALF - 1, 0xff, false },
		{ KEEP_HALF - 1, 0, false },
		{ KEEP_HALF - 2, 0xc3, false }, /* the rest of it was kept, and is none */
		{ KEEP_HALF - 1, 0xc3, true },
		{ BYTES - KEEP_HALF, 0x80, true },
		{ BYTES - KEEP_HALF, 0xff, false },
		/* and the end is no cut */
		{ BYTES - 1, 0xff, false },
		{ BYTES - 1, 0, false },
		{ BYTES - 1, 0xc3, false },
		{ BYTES - 2, 0xe2, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(keep_free) struct keep *k = keep_made();
		AUTO(str_done) struct str got = { .max = TEXT_MAX };

		memset(stream, 'a', BYTES);
		stream[cases[i].at] = cases[i].byte;
		keep_add(k, stream, BYTES);
		CHECK_INT(keep_text(k, &got), cases[i].is_text);
	}
}

TEST(what_was_never_seen_counts_as_dropped)
{
	AUTO(str_done) struct str text = { .max = TEXT_MAX };
	AUTO(keep_done) struct keep k;

	keep_init(&k, 2 * KEEP_HALF);
	keep_add(&k, "begin", 5);
	keep_skip(&k, 1000);
	CHECK_INT(keep_dropped(&k), 1000);
	CHECK(keep_text(&k, &text));
	CHECK(strstr(str_text(&text), "1000 bytes dropped"));
}
