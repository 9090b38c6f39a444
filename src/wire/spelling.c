#include "wire/spelling.h"

#include "wire/http-internal.h"

enum { ESCAPE = 0x1b, BELL = 0x07, PLAIN = -3, ASCII_MAX = 0x7f };

#define ENTITY_MAX 12   /* "&#x0000041;" */
#define SEQUENCE_MAX 64 /* of colours and cursors */

char spelling_fold(char c)
{
	c = (char)span_lower(c);
	return (char)(c == '-' ? '+' : c == '_' ? '/' : c);
}

/* `n` hex digits behind `from` bytes: their number, MORE when they are cut, or PLAIN. */
static int read_hex(struct span in, size_t from, size_t n)
{
	unsigned int value = 0;

	for (size_t i = from; i < from + n; i++) {
		if (i >= in.len)
			return SPELLING_MORE;
		if (http_hex(in.at[i]) < 0)
			return PLAIN;
		value = value << 4 | (unsigned int)http_hex(in.at[i]);
	}
	return value <= ASCII_MAX ? (int)value : PLAIN;
}

static int read_percent(struct span in, size_t *used)
{
	*used = 3;
	return read_hex(in, 1, 2);
}

static int read_backslash(struct span in, size_t *used)
{
	if (in.len < 2)
		return SPELLING_MORE;
	switch (in.at[1]) {
	case 'u':
		*used = 6;
		return read_hex(in, 2, 4);
	case 'x':
		*used = 4;
		return read_hex(in, 2, 2);
	case '/':
	case '"':
	case '\'':
	case '\\':
		*used = 2;
		return in.at[1];
	default:
		return PLAIN;
	}
}

/* "#65", "#x41" */
static int read_number(struct span digits)
{
	bool is_hex = digits.len > 1 && span_lower(digits.at[1]) == 'x';
	int value = 0;

	for (size_t i = is_hex ? 2 : 1; i < digits.len; i++) {
		int digit = http_hex(digits.at[i]);

		if (digit < 0 || (!is_hex && digit > 9) || value > ASCII_MAX)
			return PLAIN;
		value = value * (is_hex ? 16 : 10) + digit;
	}
	return value > 0 && value <= ASCII_MAX ? value : PLAIN;
}

static int read_name(struct span name)
{
	static const struct {
		const char *name;
		char c;
	} names[] = {
		{ "amp", '&' },    { "lt", '<' },    { "gt", '>' },     { "quot", '"' },
		{ "apos", '\'' },  { "sol", '/' },   { "plus", '+' },   { "equals", '=' },
		{ "colon", ':' },  { "semi", ';' },  { "comma", ',' },  { "period", '.' },
		{ "lowbar", '_' }, { "num", '#' },   { "dollar", '$' }, { "percnt", '%' },
		{ "excl", '!' },   { "quest", '?' }, { "ast", '*' },    { "commat", '@' },
		{ "lpar", '(' },   { "rpar", ')' },  { "lsqb", '[' },   { "rsqb", ']' },
		{ "lcub", '{' },   { "rcub", '}' },  { "bsol", '\\' },  { "verbar", '|' },
		{ "hyphen", '-' }, { "grave", '`' }, { "Hat", '^' },
	};

	for (size_t i = 0; i < COUNT(names); i++)
		if (span_is(name, names[i].name))
			return names[i].c;
	return PLAIN;
}

static int read_entity(struct span in, size_t *used)
{
	size_t n = 1;

	while (n < in.len && n < ENTITY_MAX && in.at[n] != ';' &&
	       (in.at[n] == '#' || http_is(in.at[n], C_NAME)))
		n++;
	if (n == in.len && n < ENTITY_MAX)
		return SPELLING_MORE;
	if (n == in.len || in.at[n] != ';' || n == 1)
		return PLAIN;
	struct span name = { in.at + 1, n - 1 };

	*used = n + 1;
	return name.at[0] == '#' ? read_number(name) : read_name(name);
}

/* ECMA-48: what a terminal obeys. One that is too long is read as text behind its first byte. */
static int read_sequence(struct span in, size_t *used)
{
	size_t i = 2;
	bool is_string;

	if (in.len < 2)
		return SPELLING_MORE;
	is_string = in.at[1] == ']';
	if (is_string)
		while (i < in.len && i < SPELLING_LONGEST && in.at[i] != BELL && in.at[i] != ESCAPE)
			i++;
	else if (in.at[1] == '[')
		while (i < in.len && i < SEQUENCE_MAX && in.at[i] >= ' ' && in.at[i] < '@')
			i++;
	else if (in.at[1] < ' ' || in.at[1] > '/')
		i = 1; /* two bytes */
	if (i >= in.len)
		return SPELLING_MORE;
	if (is_string && in.at[i] == ESCAPE && ++i == in.len)
		return SPELLING_MORE;
	*used = i < (is_string ? SPELLING_LONGEST : SEQUENCE_MAX) ? i + 1 : 1;
	return SPELLING_NONE;
}

int spelling_next(struct span in, enum spelling_how how, size_t *used)
{
	static const struct {
		char first;
		int (*read)(struct span in, size_t *used);
	} codes[] = { { '%', read_percent }, { '\\', read_backslash }, { '&', read_entity } };
	char c = in.at[0];

	*used = 1;
	if (c == '\r' || c == '\n')
		return SPELLING_NONE;
	if (c == ESCAPE)
		return read_sequence(in, used);
	for (size_t i = 0; how == SPELLING_DECODED && i < COUNT(codes); i++) {
		if (c != codes[i].first)
			continue;
		int r = codes[i].read(in, used);

		if (r != PLAIN)
			return r < 0 ? r : (unsigned char)spelling_fold((char)r);
		*used = 1;
	}
	return (unsigned char)spelling_fold(c);
}

enum spelled spelling_match(struct span form, struct span in, enum spelling_how how, size_t *used)
{
	size_t at = 0, n;

	for (size_t i = 0; i < form.len;) {
		int c = at < in.len ? spelling_next(span_after(in, at), how, &n) : SPELLING_MORE;

		if (c == SPELLING_MORE)
			return SPELLED_PART;
		if (c == SPELLING_NONE ? i == 0 : c != (unsigned char)form.at[i])
			return SPELLED_NOT;
		i += c != SPELLING_NONE;
		at += n;
	}
	*used = at;
	return SPELLED_WHOLE;
}

void spelling_mask(char *text, size_t n, enum spelling_how how)
{
	for (size_t at = 0, used; at < n; at += used) {
		int c = spelling_next((struct span){ text + at, n - at }, how, &used);

		if (c == SPELLING_MORE)
			used = n - at;
		if (c != SPELLING_NONE)
			memset(text + at, '*', used);
	}
}

bool spelling_is_special(char c)
{
	return c == '\r' || c == '\n' || c == ESCAPE || c == '%' || c == '\\' || c == '&';
}

bool spelling_is_coded(struct span in)
{
	return memchr(in.at, '%', in.len) || memchr(in.at, '\\', in.len) ||
	       memchr(in.at, '&', in.len);
}
