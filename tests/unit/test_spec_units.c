#include "spec/opts.h"
#include "test.h"

struct row {
	const char *text;
	uint64_t want;
};

static void check_parse(const struct unit *unit, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct err e = { 0 };
		uint64_t got = 0;

		printf("# %s\n", rows[i].text);
		CHECK_INT(unit->parse(rows[i].text, &got, &e), 0);
		CHECK(got == rows[i].want);
	}
}

static void check_refused(const struct unit *unit, const char *const *texts, const char *part)
{
	for (; *texts; texts++) {
		struct err e = { 0 };
		uint64_t got = 77;

		printf("# \"%s\"\n", *texts);
		CHECK_INT(unit->parse(*texts, &got, &e), -1);
		CHECK(got == 77);
		CHECK_INT(e.kind, ERR_INVALID);
		CHECK(strstr(e.msg, part));
	}
}

TEST(sizes_are_powers_of_1024)
{
	static const struct row rows[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "512", 512 },
		{ "1k", 1024 },
		{ "1K", 1024 },
		{ "3m", 3ull << 20 },
		{ "3M", 3ull << 20 },
		{ "4g", 4ull << 30 },
		{ "4G", 4ull << 30 },
		{ "2t", 2ull << 40 },
		{ "2T", 2ull << 40 },
		{ "18446744073709551615", UINT64_MAX },
		{ "16777215t", 16777215ull << 40 },
	};
	check_parse(&unit_size, rows, COUNT(rows));
}

TEST(durations_are_seconds_unless_said)
{
	static const struct row rows[] = {
		{ "90", 90000 },   { "500ms", 500 },  { "1s", 1000 },
		{ "10m", 600000 }, { "2h", 7200000 }, { "1d", 86400000 },
	};
	check_parse(&unit_duration, rows, COUNT(rows));
}

TEST(cores_are_rounded_to_a_thousandth)
{
	static const struct row rows[] = {
		{ "2", 2000 },      { "1.5", 1500 },   { "0.5", 500 },
		{ "0.125", 125 },   { "0.3333", 333 }, { "0.6666", 667 },
		{ "1.9995", 2000 }, { "0.05", 50 },    { "2.000000000000001", 2000 },
		{ "0.9996", 1000 }, { "0.00049", 0 },  { "4096.999", 4096999 },
	};
	check_parse(&unit_cores, rows, COUNT(rows));
}

TEST(numbers_are_parsed_whole_or_not_at_all)
{
	static const char *const never[] = {
		"",    " 1", "1 ", "+1",   "0x10", "1e3", "1_000", "one", "08",       "007",
		"1,5", "1.", ".5", "1k k", "k",    "NaN", "inf",   "1;",  "\xd9\xa3", NULL,
	};
	static const char *const not_sizes[] = { "4gb", "4gib", "1.5g", "4 g", "10s", NULL };
	static const char *const not_durations[] = { "10M", "1h30m", "10min", "1.5s", "4g", NULL };
	static const char *const not_counts[] = { "1k", "1.0", "1s", NULL };
	static const char *const not_cores[] = { "1.5.5", "1k", "00.5", "1.5x", NULL };

	check_refused(&unit_size, never, "is not a size");
	check_refused(&unit_duration, never, "is not a duration");
	check_refused(&unit_count, never, "is not a whole number");
	check_refused(&unit_cores, never, "is not a number of cores");
	check_refused(&unit_size, not_sizes, "is not a size");
	check_refused(&unit_duration, not_durations, "is not a duration");
	check_refused(&unit_count, not_counts, "is not a whole number");
	check_refused(&unit_cores, not_cores, "is not a number of cores");
}

TEST(negative_and_huge_numbers_are_called_that)
{
	static const struct unit *const units[] = { &unit_size, &unit_duration, &unit_count,
		                                    &unit_cores };
	static const char *const negative[] = { "-1", "-0", "-4g", NULL };
	static const char *const huge[] = { "18446744073709551616", "99999999999999999999999",
		                            NULL };
	static const char *const huge_sizes[] = { "16777216t", "18014398509481984k", NULL };
	static const char *const huge_durations[] = { "18446744073709551615", "213503982335d",
		                                      NULL };
	static const char *const huge_cores[] = { "18446744073709551615", NULL };

	for (size_t i = 0; i < COUNT(units); i++) {
		check_refused(units[i], negative, "is negative");
		check_refused(units[i], huge, "is too large");
	}
	check_refused(&unit_size, huge_sizes, "is too large");
	check_refused(&unit_duration, huge_durations, "is too large");
	check_refused(&unit_cores, huge_cores, "is too large");
}

TEST(a_printed_number_is_short_and_reads_back)
{
	static const struct {
		const struct unit *unit;
		uint64_t value;
		const char *want;
	} rows[] = {
		{ &unit_size, 1, "1" },
		{ &unit_size, 1023, "1023" },
		{ &unit_size, 1536, "1536" },
		{ &unit_size, 1024, "1k" },
		{ &unit_size, 4ull << 30, "4g" },
		{ &unit_size, 1ull << 50, "1024t" },
		{ &unit_duration, 1, "1ms" },
		{ &unit_duration, 1500, "1500ms" },
		{ &unit_duration, 90000, "90s" },
		{ &unit_duration, 600000, "10m" },
		{ &unit_duration, 86400000, "1d" },
		{ &unit_count, 512, "512" },
		{ &unit_cores, 2000, "2" },
		{ &unit_cores, 1500, "1.5" },
		{ &unit_cores, 4095999, "4095.999" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[32];
		uint64_t back = 0;
		struct err e;

		rows[i].unit->print(rows[i].value, text);
		CHECK_STR(text, rows[i].want);
		CHECK_INT(rows[i].unit->parse(text, &back, &e), 0);
		CHECK(back == rows[i].value);
	}
}
