#include "wire/marks.h"

#include "spellings.h"
#include "test.h"
#include "wire/spelling.h"

static const uint8_t key[MARKS_KEY] = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 89 };
static const char one[] = "hunter2-0123456789", two[] = "aHVudGVyMi0wMTIz";

static struct marker *marker(void)
{
	static struct marks m;

	marks_begin(&m, key);
	CHECK(marks_add(&m, "one", span_of(one)));
	CHECK(marks_add(&m, "two", span_of(two)));
	/* As it comes from who has the values. */
	static struct marks told;
	struct gate_marks way;

	for (uint32_t i = 0; i < 2; i++) {
		marks_tell(&m, i, &way);
		CHECK(marks_check(&way));
		CHECK_INT((int)way.is_first, i == 0);
		marks_take(&told, &way);
	}
	CHECK_INT((int)told.n, 2);
	return marker_new(&told);
}

/* In pieces of so many bytes. */
static void run(const char *text, size_t piece, struct str *out, uint64_t *hits)
{
	struct marker *k = marker();
	struct masking x = { 0 };
	size_t n = strlen(text);

	for (size_t at = 0; at < n; at += piece)
		masking_feed(&x, k, (struct span){ text + at, n - at < piece ? n - at : piece },
		             out);
	masking_flush(&x, k, out);
	*hits = x.hits;
	masking_done(&x);
	marker_free(k);
}

TEST(it_is_masked_wherever_the_pieces_end)
{
	static const struct {
		const char *text, *want;
		uint64_t hits;
	} rows[] = {
		{ "", "", 0 },
		{ "hunter2", "hunter2", 0 },
		{ "hunter2-0123456789", "******************", 1 },
		{ "x hunter2-0123456789 y", "x ****************** y", 1 },
		{ "hunter2-0123456788", "hunter2-0123456788", 0 },
		{ "hunter2-hunter2-0123456789", "hunter2-******************", 1 },
		{ "hunter2-0123456789hunter2-0123456789", "************************************",
		  2 },
		{ "a:aHVudGVyMi0wMTIz\nhunter2-0123456789\n",
		  "a:****************\n******************\n", 2 },
		{ "nothing of the kind is in this text, which is rather long",
		  "nothing of the kind is in this text, which is rather long", 0 },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		for (size_t piece = 1; piece < 48; piece++) {
			AUTO(str_done) struct str out = { .max = 4096 };
			uint64_t hits;

			run(rows[i].text, piece, &out, &hits);
			CHECK_STR(str_text(&out), rows[i].want);
			CHECK_INT((int)hits, (int)rows[i].hits);
		}
}

TEST(what_cannot_be_one_goes_on_at_once_but_for_the_tail)
{
	struct marker *k = marker();
	struct masking x = { 0 };
	AUTO(str_done) struct str out = { .max = 4096 };

	masking_feed(&x, k, span_of("a prompt of somebody $ "), &out);
	CHECK_INT((int)out.len, 23 - 7);
	CHECK_INT((int)masking_wait_ms(&x), MARKS_TAIL_MS);
	masking_flush(&x, k, &out);
	CHECK_STR(str_text(&out), "a prompt of somebody $ ");
	CHECK_INT((int)masking_wait_ms(&x), 0);
	masking_feed(&x, k, span_of("hunter2-01"), &out);
	CHECK_INT((int)masking_wait_ms(&x), MARKS_HELD_MS);
	CHECK_STR(str_text(&out), "a prompt of somebody $ ");
	/* Too late for these, and not for the rest. */
	masking_flush(&x, k, &out);
	masking_feed(&x, k, span_of("23456789!"), &out);
	masking_flush(&x, k, &out);
	CHECK_STR(str_text(&out), "a prompt of somebody $ hunter2-01********!");
	CHECK_INT((int)x.hits, 1);
	CHECK_STR(x.name, "one");
	masking_done(&x);
	marker_free(k);
}

/* As a child of the gate makes them (src/gate/purse.c). */
static struct marker *spelled_marker(void)
{
	static const char *const forms[] = { SPELLED_VALUE, "UzNjcmV0L3ZhK3VlLSI8XyYw",
		                             "5333637265742f76612b75652d223c5f2630" };
	static struct marks m;

	marks_begin(&m, key);
	for (size_t i = 0; i < COUNT(forms); i++)
		CHECK(marks_add(&m, "one", span_of(forms[i])));
	return marker_new(&m);
}

TEST(it_is_masked_however_it_is_spelled_and_wherever_it_is_cut)
{
	struct marker *k = spelled_marker();

	for (size_t i = 0; i < COUNT(spelled_texts); i++)
		for (size_t cut = 0; cut <= strlen(spelled_texts[i]); cut++) {
			AUTO(str_done) struct str out = { .max = 4096 };
			struct masking x = { 0 };
			struct span text = span_of(spelled_texts[i]);

			masking_feed(&x, k, (struct span){ text.at, cut }, &out);
			masking_feed(&x, k, span_after(text, cut), &out);
			masking_flush(&x, k, &out);
			CHECK_INT((long long)x.hits, 1);
			CHECK_INT((long long)out.len, (long long)text.len);
			CHECK(spelled_is_masked((struct span){ out.data, text.len }));
			masking_done(&x);
		}
	marker_free(k);
}

TEST(a_prompt_with_colours_is_no_reason_to_wait)
{
	struct marker *k = marker();
	struct masking x = { 0 };
	AUTO(str_done) struct str out = { .max = 4096 };

	masking_feed(&x, k, span_of("\033[1;32muser@host\033[0m:\033[34m~\033[0m$ "), &out);
	CHECK_INT((int)masking_wait_ms(&x), MARKS_TAIL_MS);
	masking_feed(&x, k, span_of("\033[31mhunter2-0\033[0m"), &out);
	CHECK_INT((int)masking_wait_ms(&x), MARKS_HELD_MS);
	masking_done(&x);
	marker_free(k);
}

TEST(without_marks_nothing_is_held)
{
	struct masking x = { 0 };
	AUTO(str_done) struct str out = { .max = 4096 };

	masking_feed(&x, NULL, span_of("hunter2-0123456789"), &out);
	CHECK_STR(str_text(&out), "hunter2-0123456789");
	CHECK(x.held.data == NULL);
}

TEST(marks_say_nothing_of_the_value_and_depend_on_the_key)
{
	static const uint8_t other[MARKS_KEY] = { 1 };
	static struct marks a, b;

	marks_begin(&a, key);
	marks_begin(&b, other);
	CHECK(marks_add(&a, "one", span_of(one)));
	CHECK(marks_add(&b, "one", span_of(one)));
	CHECK(!memmem(&a, sizeof a, one, 4));
	CHECK(memcmp(a.at[0].sum, b.at[0].sum, MARKS_SUM) != 0);
}

TEST(what_no_gate_would_say_is_refused)
{
	static struct marks m;
	struct gate_marks way;

	marks_begin(&m, key);
	CHECK(!marks_add(&m, "short", span_of("1234567")));
	marks_tell(&m, 0, &way);
	CHECK(marks_check(&way)); /* there is none any more */
	CHECK_INT((int)way.n, 0);
	way.is_first = 0;
	CHECK(!marks_check(&way));
	for (size_t i = 0; i < MARKS_EACH; i++)
		CHECK(marks_add(&m, "same", span_of("12345678")));
	marks_tell(&m, 0, &way);
	CHECK(marks_check(&way));
	way.at[3].len = 7;
	CHECK(!marks_check(&way));
	way.at[3].len = MARK_LEN_MAX + 1;
	CHECK(!marks_check(&way));
	way.at[3].len = 8;
	way.at[3].name = 1;
	CHECK(!marks_check(&way));
	way.at[3].name = 0;
	way.n = MARKS_EACH + 1;
	CHECK(!marks_check(&way));
	way.n = 1;
	way.is_first = 2;
	CHECK(!marks_check(&way));
}

TEST(no_more_than_there_is_room_for)
{
	static struct marks m;
	struct gate_marks way = { .n = MARKS_EACH };

	for (size_t i = 0; i < MARKS_EACH; i++)
		way.at[i].len = 8;
	memset(way.name, 'x', sizeof way.name);
	for (size_t i = 0; i < 2ul * MARKS_NAMES; i++) {
		way.is_first = i == 0;
		marks_take(&m, &way);
	}
	CHECK_INT((int)m.n, MARKS_MAX);
	CHECK_INT((int)strlen(m.names[0]), MARK_NAME_SIZE - 1);
	way.is_first = 1;
	way.n = 0;
	marks_take(&m, &way);
	CHECK_INT((int)m.n, 0);
}
