#include "wire/canary.h"

#include "base/vec.h"
#include "wire/base64.h"

#define BASE 36
#define GRAMS 4738381338321616896ull /* 36^12 */
#define FIXED_MAX 12
#define FORM_MAX (4ul * CANARY_VALUE_MAX)

/* clang-format off */
const struct canary_like canary_likes[] = {
	{ "aws",        "AKIAAAAAAAAAAAAAAAAA", 4, "AWS_ACCESS_KEY_ID" },
	{ "aws-secret", "****************************************", 0, "AWS_SECRET_ACCESS_KEY" },
	{ "github",     "ghp_************************************", 4, "GITHUB_TOKEN" },
	{ "gitlab",     "glpat-********************", 6, "GITLAB_TOKEN" },
	{ "npm",        "npm_************************************", 4, "NPM_TOKEN" },
	{ "pypi",       "pypi-****************************************************************", 5, "TWINE_PASSWORD" },
	{ "slack",      "xoxb-000000000000-000000000000-************************", 5, "SLACK_BOT_TOKEN" },
	{ "stripe",     "sk_live_************************", 8, "STRIPE_SECRET_KEY" },
	{ "llm",        "sk-************************************************", 3, "LLM_API_KEY" },
	{ NULL, NULL, 0, NULL },
};
/* clang-format on */

/* ---- making -------------------------------------------------------------------------- */

static bool is_in(char c, char from, char to)
{
	return c >= from && c <= to;
}

static bool is_letter(char c)
{
	return is_in(c, 'a', 'z') || is_in(c, 'A', 'Z');
}

/* What a value begins with so that people know what it is: a word of letters and a separator, or
 * the four letters of a key id. No gram has it. */
static size_t fixed_of(const char *value)
{
	size_t fixed = strncmp(value, "AKIA", 4) == 0 ? 4 : 0;

	for (size_t i = 0; i < FIXED_MAX && value[i]; i++) {
		if (strchr("_-.", value[i]))
			fixed = i + 1;
		else if (!is_letter(value[i]))
			break;
	}
	return fixed;
}

static char any_of(char kind, uint8_t random)
{
	static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static const char *const small = all, *const large = all + 26, *const digits = all + 52;

	if (kind == '*')
		return all[random % (sizeof all - 1)];
	if (is_in(kind, '0', '9'))
		return digits[random % 10];
	if (is_in(kind, 'A', 'Z'))
		return large[random % 26];
	if (!is_letter(kind))
		return kind;
	return small[random % 26];
}

int canary_make(const char *like, const uint8_t *random, struct str *out, struct err *e)
{
	const char *shape = like;
	size_t fixed = fixed_of(like);

	for (const struct canary_like *l = canary_likes; l->name; l++)
		if (strcmp(l->name, like) == 0) {
			shape = l->shape;
			fixed = l->fixed;
		}
	size_t n = strlen(shape);

	if (n > CANARY_VALUE_MAX)
		return err_new(e, ERR_INVALID, "like: more than %d bytes", CANARY_VALUE_MAX);
	str_addn(out, shape, fixed);
	for (size_t i = fixed; i < n; i++) {
		char c = any_of(shape[i], random[i]);

		str_addn(out, &c, 1);
	}
	return canary_check(str_text(out), e);
}

int canary_check(const char *value, struct err *e)
{
	size_t n = 0, len = strlen(value);

	if (len > CANARY_VALUE_MAX)
		return err_new(e, ERR_INVALID, "a canary has at most %d bytes", CANARY_VALUE_MAX);
	for (size_t i = 0; i < len; i++) {
		bool is_plain = is_letter(value[i]) || is_in(value[i], '0', '9');

		if (!is_plain && !strchr("-_.:+/=~@", value[i]))
			return err_new(e, ERR_INVALID,
			               "a canary has letters, digits and -_.:+/=~@");
		n += is_plain && i >= fixed_of(value);
	}
	if (n < CANARY_RANDOM_MIN)
		return err_new(e, ERR_INVALID,
		               "a canary needs %d letters and digits that nothing else has",
		               CANARY_RANDOM_MIN);
	return 0;
}

/* ---- grams --------------------------------------------------------------------------- */

struct gram {
	uint64_t number;
	size_t which;
};

#define FILTER_BITS 16

struct canaries {
	VEC(struct gram) grams; /* sorted */
	VEC(char *) names;
	uint64_t filter[(1u << FILTER_BITS) / 64]; /* which may be there at all */
};

static uint32_t filter_of(uint64_t gram)
{
	return (uint32_t)((gram * 0x9e3779b97f4a7c15ull) >> (64 - FILTER_BITS));
}

/* 1 to 36; 0: skipped. */
static const uint8_t folds[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,
	['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14,
	['e'] = 15, ['f'] = 16, ['g'] = 17, ['h'] = 18, ['i'] = 19, ['j'] = 20, ['k'] = 21,
	['l'] = 22, ['m'] = 23, ['n'] = 24, ['o'] = 25, ['p'] = 26, ['q'] = 27, ['r'] = 28,
	['s'] = 29, ['t'] = 30, ['u'] = 31, ['v'] = 32, ['w'] = 33, ['x'] = 34, ['y'] = 35,
	['z'] = 36, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
	['G'] = 17, ['H'] = 18, ['I'] = 19, ['J'] = 20, ['K'] = 21, ['L'] = 22, ['M'] = 23,
	['N'] = 24, ['O'] = 25, ['P'] = 26, ['Q'] = 27, ['R'] = 28, ['S'] = 29, ['T'] = 30,
	['U'] = 31, ['V'] = 32, ['W'] = 33, ['X'] = 34, ['Y'] = 35, ['Z'] = 36,
};

/* The leading character goes: the rest is below 36^11, and times 36 fits. */
static uint64_t next_gram(uint64_t gram, uint8_t fold)
{
	return gram % (GRAMS / BASE) * BASE + (fold - 1u);
}

static void add_gram(struct canaries *c, size_t which, uint64_t number)
{
	uint32_t bit = filter_of(number);

	vec_push(&c->grams, ((struct gram){ number, which }));
	c->filter[bit / 64] |= 1ull << (bit % 64);
}

static void add_form(struct canaries *c, size_t which, struct span form)
{
	struct canary_scan s = { 0 };

	for (size_t i = 0; i < form.len; i++) {
		uint8_t fold = folds[(uint8_t)form.at[i]];

		if (fold == 0)
			continue;
		s.gram = next_gram(s.gram, fold);
		if (++s.n >= CANARY_GRAM)
			add_gram(c, which, s.gram);
	}
}

/* ---- forms --------------------------------------------------------------------------- */

static void add_hex(struct canaries *c, size_t which, struct span value)
{
	AUTO(str_done) struct str text = { .max = FORM_MAX };

	for (size_t i = 0; i < value.len; i++)
		str_addf(&text, "%02x", (unsigned char)value.at[i]);
	add_form(c, which, (struct span){ str_text(&text), text.len });
}

static void base32(const struct str *in, struct str *out)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	uint32_t bits = 0;
	size_t n = 0;

	for (size_t i = 0; i < in->len; i++) {
		bits = bits << 8 | (uint8_t)in->data[i];
		for (n += 8; n >= 5; n -= 5)
			str_addn(out, &digits[bits >> (n - 5) & 31], 1);
	}
}

/* Of a text that has the value after `shift` bytes: the digits that depend on the value alone. */
static void add_digits(struct canaries *c, size_t which, struct span value, size_t shift,
                       size_t bits)
{
	AUTO(str_done) struct str in = { .max = FORM_MAX };
	AUTO(str_done) struct str out = { .max = FORM_MAX };

	str_addn(&in, "\0\0\0\0", shift);
	str_addn(&in, value.at, value.len);
	if (bits == 6)
		base64_encode(in.data, in.len, &out);
	else
		base32(&in, &out);
	size_t from = (8 * shift + bits - 1) / bits, to = 8 * in.len / bits;

	add_form(c, which, (struct span){ str_text(&out) + from, to - from });
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = ((const struct gram *)a)->number, y = ((const struct gram *)b)->number;

	return x < y ? -1 : x > y;
}

struct canaries *canaries_new(void)
{
	struct canaries *c = mem_alloc(sizeof *c);

	memset(c, 0, sizeof *c);
	return c;
}

void canaries_add(struct canaries *c, const char *name, const char *value)
{
	size_t which = c->names.len;
	struct span random = span_of(value + fixed_of(value));

	vec_push(&c->names, mem_strdup(name));
	add_form(c, which, random);
	add_hex(c, which, random);
	for (size_t shift = 0; shift < 3; shift++)
		add_digits(c, which, random, shift, 6);
	for (size_t shift = 0; shift < 5; shift++)
		add_digits(c, which, random, shift, 5);
	if (c->grams.len > 0)
		qsort(c->grams.at, c->grams.len, sizeof *c->grams.at, by_number);
}

void canaries_free(struct canaries *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->names.len; i++)
		free(c->names.at[i]);
	vec_done(&c->names);
	vec_done(&c->grams);
	free(c);
}

/* ---- looking ------------------------------------------------------------------------- */

static const char *known(const struct canaries *c, uint64_t number)
{
	const struct gram key = { .number = number }, *found;
	uint32_t bit = filter_of(number);

	if (!(c->filter[bit / 64] >> (bit % 64) & 1))
		return NULL;
	found = bsearch(&key, c->grams.at, c->grams.len, sizeof key, by_number);
	return found ? c->names.at[found->which] : NULL;
}

const char *canaries_look(const struct canaries *c, struct canary_scan *s, struct span bytes)
{
	const char *name = NULL;

	if (!c || c->grams.len == 0)
		return NULL;
	for (size_t i = 0; i < bytes.len && !name; i++) {
		uint8_t fold = folds[(uint8_t)bytes.at[i]];

		if (fold == 0)
			continue;
		s->gram = next_gram(s->gram, fold);
		if (s->n < CANARY_GRAM - 1)
			s->n++;
		else
			name = known(c, s->gram);
	}
	return name;
}

const char *canaries_find(const struct canaries *c, struct span text)
{
	struct canary_scan s = { 0 };

	return canaries_look(c, &s, text);
}
