/*
 * units.c - numbers with a unit, strictly: plain decimal digits, then one unit or none.
 *
 * No sign, no space, no leading zero (YAML 1.1 and C would read octal), no fraction but for cores.
 */
#include "spec/opts.h"

#include <ctype.h>

struct scale {
	const char *suffix;
	uint64_t factor;
};

/* The first row has factor 1; of two rows with one factor the second is printed. */
/* clang-format off */
static const struct scale sizes[] = {
	{ "", 1 },
	{ "K", 1ull << 10 }, { "k", 1ull << 10 },
	{ "M", 1ull << 20 }, { "m", 1ull << 20 },
	{ "G", 1ull << 30 }, { "g", 1ull << 30 },
	{ "T", 1ull << 40 }, { "t", 1ull << 40 },
	{ NULL, 0 },
};
static const struct scale durations[] = {
	{ "ms", 1 },
	{ "", 1000 }, { "s", 1000 },
	{ "m", 60000 },
	{ "h", 3600000 },
	{ "d", 86400000 },
	{ NULL, 0 },
};
static const struct scale counts[] = { { "", 1 }, { NULL, 0 } };
/* clang-format on */

/* Digits at *p, which is moved behind them. */
static int digits_parse(const char **p, uint64_t *out)
{
	const char *start = *p;
	uint64_t n = 0;

	for (; isdigit((unsigned char)**p); (*p)++)
		if (__builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(**p - '0'), &n))
			return -ERANGE;
	if (*p == start || (start[0] == '0' && *p > start + 1))
		return -EINVAL;
	*out = n;
	return 0;
}

static int bad_number(const char *text, int r, const char *noun, struct err *e)
{
	if (r == -ERANGE)
		return err_new(e, ERR_INVALID, "\"%s\" is too large", quote(text).text);
	if (text[0] == '-' && isdigit((unsigned char)text[1]))
		return err_new(e, ERR_INVALID, "\"%s\" is negative", quote(text).text);
	return err_new(e, ERR_INVALID, "\"%s\" is not %s", quote(text).text, noun);
}

static int scaled_parse(const char *text, const struct scale *scales, const char *noun,
                        uint64_t *out, struct err *e)
{
	const char *p = text;
	uint64_t n = 0;
	int r = digits_parse(&p, &n);

	if (r < 0)
		return bad_number(text, r, noun, e);
	while (scales->suffix && strcmp(scales->suffix, p) != 0)
		scales++;
	if (!scales->suffix)
		return bad_number(text, -EINVAL, noun, e);
	if (__builtin_mul_overflow(n, scales->factor, &n))
		return bad_number(text, -ERANGE, noun, e);
	*out = n;
	return 0;
}

/* The largest unit that loses nothing. */
static void scaled_print(uint64_t value, const struct scale *scales, char buf[32])
{
	const struct scale *best = scales;

	for (; scales->suffix; scales++)
		if (value % scales->factor == 0 && scales->factor >= best->factor)
			best = scales;
	snprintf(buf, 32, "%llu%s", (unsigned long long)(value / best->factor), best->suffix);
}

int size_parse(const char *text, uint64_t *out, struct err *e)
{
	return scaled_parse(text, sizes, "a size such as 4g (k, m, g, t: powers of 1024)", out, e);
}

int duration_parse(const char *text, uint64_t *out_ms, struct err *e)
{
	return scaled_parse(text, durations, "a duration such as 10m (ms, s, m, h, d)", out_ms, e);
}

static int count_parse(const char *text, uint64_t *out, struct err *e)
{
	return scaled_parse(text, counts, "a whole number", out, e);
}

/* "1.5" in thousandths, rounded. */
static int cores_parse(const char *text, uint64_t *out, struct err *e)
{
	const char *noun = "a number of cores such as 2 or 1.5";
	const char *p = text;
	uint64_t n = 0;
	int r = digits_parse(&p, &n);

	if (r == 0 && __builtin_mul_overflow(n, 1000u, &n))
		r = -ERANGE;
	if (r == 0 && *p == '.') {
		const char *first = ++p;

		for (uint64_t part = 1000; isdigit((unsigned char)*p); p++, part /= 10)
			n += p - first < 3 ? (uint64_t)(*p - '0') * (part / 10)
			                   : (uint64_t)(p - first == 3 && *p >= '5');
		r = p == first ? -EINVAL : 0;
	}
	if (r < 0 || *p)
		return bad_number(text, r < 0 ? r : -EINVAL, noun, e);
	*out = n;
	return 0;
}

static void size_print(uint64_t value, char buf[32])
{
	scaled_print(value, sizes, buf);
}

static void duration_print(uint64_t value, char buf[32])
{
	scaled_print(value, durations, buf);
}

static void count_print(uint64_t value, char buf[32])
{
	scaled_print(value, counts, buf);
}

static void cores_print(uint64_t value, char buf[32])
{
	snprintf(buf, 32, "%.10g", (double)value / 1000);
}

const struct unit unit_cores = { cores_parse, cores_print };
const struct unit unit_count = { count_parse, count_print };
const struct unit unit_size = { size_parse, size_print };
const struct unit unit_duration = { duration_parse, duration_print };
