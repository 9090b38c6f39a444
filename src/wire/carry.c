#include "wire/carry.h"

#include "base/hex.h"
#include "wire/base64.h"

#define CODED_MAX 512

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A prefix begins a word: "docst_x" is none. */
static bool has_word(struct span text, const char *word)
{
	size_t n = strlen(word);

	for (size_t at = 0; at + n <= text.len; at++)
		if (memcmp(text.at + at, word, n) == 0 && (at == 0 || !is_letter(text.at[at - 1])))
			return true;
	return false;
}

/* Bytes in base64 look in one of three ways, by where they begin in a group of three: letters that
 * other bytes have a part in are left out. */
static bool has_coded(struct span text, const char *word)
{
	size_t n = strlen(word);

	for (size_t shift = 0; shift < 3; shift++) {
		AUTO(str_done) struct str plain = { .max = CODED_MAX };
		AUTO(str_done) struct str coded = { .max = 2ul * CODED_MAX };

		str_addn(&plain, "\0\0", shift);
		str_addn(&plain, word, n);
		if (plain.overflow)
			return false;
		base64_encode(plain.data, plain.len, &coded);
		size_t first = (8 * shift + 5) / 6, last = 8 * plain.len / 6;

		if (memmem(text.at, text.len, coded.data + first, last - first))
			return true;
	}
	return false;
}

static bool has_one(const struct carry *c, struct span text)
{
	if (!text.at)
		return false;
	for (size_t i = 0; c->prefixes && c->prefixes[i]; i++)
		if (has_word(text, c->prefixes[i]) || has_coded(text, c->prefixes[i]))
			return true;
	for (size_t i = 0; c->wholes && c->wholes[i]; i++)
		if (memmem(text.at, text.len, c->wholes[i], strlen(c->wholes[i])) ||
		    has_coded(text, c->wholes[i]))
			return true;
	return false;
}

static int digit(char c)
{
	return hex_digit((char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c));
}

/* What is no escape stays as it is. */
static void add_decoded(struct span text, struct str *out)
{
	for (size_t i = 0; i < text.len; i++) {
		bool is_escape = text.at[i] == '%' && i + 2 < text.len &&
		                 digit(text.at[i + 1]) >= 0 && digit(text.at[i + 2]) >= 0;
		char c = text.at[i];

		if (is_escape) {
			c = (char)(digit(text.at[i + 1]) << 4 | digit(text.at[i + 2]));
			i += 2;
		}
		str_addn(out, &c, 1);
	}
}

bool carry_in(const struct carry *c, struct span text)
{
	AUTO(str_done) struct str once = { .max = text.len + 1 };
	AUTO(str_done) struct str twice = { .max = text.len + 1 };

	if (text.len == 0)
		return false;
	if (has_one(c, text))
		return true;
	if (!memchr(text.at, '%', text.len))
		return false;
	add_decoded(text, &once); /* a URL in a parameter of a URL is encoded twice */
	add_decoded((struct span){ once.data, once.len }, &twice);
	return has_one(c, (struct span){ once.data, once.len }) ||
	       has_one(c, (struct span){ twice.data, twice.len });
}

void carry_query(const struct carry *c, struct span target, struct str *out)
{
	const char *mark = target.len > 0 ? memchr(target.at, '?', target.len) : NULL;
	size_t path = mark ? (size_t)(mark - target.at) : target.len;
	struct span rest = span_after(target, mark ? path + 1 : path);
	char sign = '?';

	str_addn(out, target.at, path);
	if (mark && !carry_in(c, rest)) { /* as it is, with all that is odd about it */
		str_addn(out, mark, target.len - path);
		return;
	}
	while (rest.len > 0) {
		const char *end = memchr(rest.at, '&', rest.len);
		size_t n = end ? (size_t)(end - rest.at) : rest.len;
		struct span one = { rest.at, n };

		rest = span_after(rest, end ? n + 1 : n);
		if (carry_in(c, one))
			continue;
		str_addn(out, &sign, 1);
		str_addn(out, one.at, one.len);
		sign = '&';
	}
}
