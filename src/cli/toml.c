#include "cli/toml.h"

#include <ctype.h>

#include "base/str.h"

#define DEPTH_MAX 32
#define KEY_PARTS_MAX 16
#define TEXT_MAX (1u << 20)

struct reader {
	const char *at, *end;
	size_t line;
	struct err *e;
};

static int fail(struct reader *r, const char *why)
{
	return err_new(r->e, ERR_INVALID, "line %zu: %s", r->line, why);
}

static int peek(const struct reader *r)
{
	return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool begins(const struct reader *r, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(r->end - r->at) >= n && memcmp(r->at, word, n) == 0;
}

static bool take(struct reader *r, const char *word)
{
	if (!begins(r, word))
		return false;
	r->at += strlen(word);
	return true;
}

static void skip_space(struct reader *r)
{
	while (peek(r) == ' ' || peek(r) == '\t')
		r->at++;
}

static void skip_comment(struct reader *r)
{
	if (peek(r) == '#')
		while (peek(r) >= 0 && peek(r) != '\n')
			r->at++;
}

/* Blank lines and comments too. */
static void skip_lines(struct reader *r)
{
	for (;;) {
		skip_space(r);
		skip_comment(r);
		if (peek(r) != '\n' && peek(r) != '\r')
			return;
		r->line += peek(r) == '\n';
		r->at++;
	}
}

static int end_line(struct reader *r)
{
	skip_space(r);
	skip_comment(r);
	if (peek(r) == '\r')
		r->at++;
	if (peek(r) >= 0 && peek(r) != '\n')
		return fail(r, "more than one thing on a line");
	return 0;
}

/* ---- strings ------------------------------------------------------------------------- */

static void add_code(struct str *out, uint32_t code)
{
	char bytes[4];
	size_t n = 0;

	if (code < 0x80) {
		bytes[n++] = (char)code;
	} else if (code < 0x800) {
		bytes[n++] = (char)(0xc0 | code >> 6);
		bytes[n++] = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		bytes[n++] = (char)(0xe0 | code >> 12);
		bytes[n++] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[n++] = (char)(0x80 | (code & 0x3f));
	} else {
		bytes[n++] = (char)(0xf0 | code >> 18);
		bytes[n++] = (char)(0x80 | (code >> 12 & 0x3f));
		bytes[n++] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[n++] = (char)(0x80 | (code & 0x3f));
	}
	str_addn(out, bytes, n);
}

static int read_code(struct reader *r, size_t digits, struct str *out)
{
	uint32_t code = 0;

	for (size_t i = 0; i < digits; i++) {
		if (peek(r) < 0 || !isxdigit(peek(r)))
			return fail(r, "an escape lacks digits");
		int c = tolower(peek(r));

		code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
		r->at++;
	}
	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return fail(r, "an escape is not a character");
	add_code(out, code);
	return 0;
}

static int read_escape(struct reader *r, bool is_long, struct str *out)
{
	static const char from[] = "btnfr\"\\e", to[] = "\b\t\n\f\r\"\\\x1b";
	const char *found = peek(r) > 0 ? strchr(from, peek(r)) : NULL;

	if (found) {
		str_addn(out, to + (found - from), 1);
		r->at++;
		return 0;
	}
	if (take(r, "u"))
		return read_code(r, 4, out);
	if (take(r, "U"))
		return read_code(r, 8, out);
	if (!is_long)
		return fail(r, "an unknown escape");
	/* A line that ends with a backslash goes on at the next word. */
	skip_space(r);
	if (peek(r) != '\n' && peek(r) != '\r')
		return fail(r, "an unknown escape");
	while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' || peek(r) == '\r') {
		r->line += peek(r) == '\n';
		r->at++;
	}
	return 0;
}

/* One character of a text, or an escape. */
static int read_char(struct reader *r, bool is_long, bool has_escapes, struct str *out)
{
	int c = peek(r);

	if (c < 0 || (!is_long && c == '\n'))
		return fail(r, "a text does not end");
	if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
		return fail(r, "a control character in a text");
	r->at++;
	r->line += c == '\n';
	if (c == '\\' && has_escapes)
		return read_escape(r, is_long, out);
	str_addn(out, r->at - 1, 1);
	return out->overflow ? fail(r, "a text is too long") : 0;
}

static int read_text(struct reader *r, struct str *out)
{
	static const char *const quotes[] = { "\"\"\"", "'''", "\"", "'" };
	size_t k = 0;

	while (k < COUNT(quotes) && !take(r, quotes[k]))
		k++;
	if (k == COUNT(quotes))
		return fail(r, "a text in quotes is expected");
	bool is_long = k < 2, has_escapes = quotes[k][0] == '"';

	if (is_long && !take(r, "\r\n"))
		(void)take(r, "\n");
	r->line += is_long && r->at[-1] == '\n';
	while (!take(r, quotes[k]))
		if (read_char(r, is_long, has_escapes, out) < 0)
			return -1;
	while (is_long && take(r, has_escapes ? "\"" : "'")) /* up to two before the end */
		str_addn(out, quotes[k], 1);
	return 0;
}

static json_t *text_value(struct reader *r)
{
	AUTO(str_done) struct str text = { .max = TEXT_MAX };

	if (read_text(r, &text) < 0)
		return NULL;
	json_t *v = json_stringn(str_text(&text), text.len);

	if (!v)
		fail(r, "a text is not UTF-8");
	return v;
}

/* ---- keys ---------------------------------------------------------------------------- */

static bool is_bare(int c)
{
	return c > 0 && (isalnum(c) || c == '_' || c == '-');
}

static int read_part(struct reader *r, json_t *path)
{
	AUTO(str_done) struct str part = { .max = TEXT_MAX };

	if (peek(r) == '"' || peek(r) == '\'') {
		if (read_text(r, &part) < 0)
			return -1;
	} else {
		while (is_bare(peek(r)))
			str_addn(&part, r->at++, 1);
		if (part.len == 0)
			return fail(r, "a key is expected");
	}
	if (json_array_size(path) >= KEY_PARTS_MAX || strlen(str_text(&part)) != part.len ||
	    json_array_append_new(path, json_string(str_text(&part))) < 0)
		return fail(r, "a key has too many parts, or is not UTF-8");
	return 0;
}

/* a.b."c d" as an array of texts */
static json_t *read_key(struct reader *r)
{
	json_t *path = json_array();

	do {
		skip_space(r);
		if (read_part(r, path) < 0) {
			json_decref(path);
			return NULL;
		}
		skip_space(r);
	} while (take(r, "."));
	return path;
}

/* The table that a key's first n parts lead to; of an array of tables its last one. */
static json_t *walk(struct reader *r, json_t *from, const json_t *path, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *part = json_string_value(json_array_get(path, i));
		json_t *next = json_object_get(from, part);

		if (!next) {
			next = json_object();
			json_object_set_new(from, part, next);
		}
		if (json_is_array(next))
			next = json_array_get(next, json_array_size(next) - 1);
		if (!json_is_object(next)) {
			fail(r, "a key leads through something that is no table");
			return NULL;
		}
		from = next;
	}
	return from;
}

/* ---- values -------------------------------------------------------------------------- */

static json_t *read_value(struct reader *r, size_t depth);

static json_t *read_array(struct reader *r, size_t depth)
{
	json_t *list = json_array();

	for (;;) {
		skip_lines(r);
		if (take(r, "]"))
			return list;
		json_t *v = read_value(r, depth + 1);

		if (!v)
			break;
		json_array_append_new(list, v);
		skip_lines(r);
		if (!take(r, ",") && peek(r) != ']') {
			fail(r, "a comma or ] is expected");
			break;
		}
	}
	json_decref(list);
	return NULL;
}

static int read_pair(struct reader *r, json_t *into, size_t depth)
{
	AUTO(json_decrefp) json_t *path = read_key(r);

	if (!path)
		return -1;
	if (!take(r, "="))
		return fail(r, "a key lacks its =");
	skip_space(r);
	size_t n = json_array_size(path) - 1;
	json_t *table = walk(r, into, path, n);
	const char *key = json_string_value(json_array_get(path, n));

	if (!table)
		return -1;
	if (json_object_get(table, key))
		return fail(r, "a key is given twice");
	json_t *v = read_value(r, depth + 1);

	return v ? json_object_set_new(table, key, v) : -1;
}

static json_t *read_inline(struct reader *r, size_t depth)
{
	json_t *table = json_object();

	for (;;) {
		skip_lines(r);
		if (take(r, "}"))
			return table;
		if (read_pair(r, table, depth) < 0)
			break;
		skip_lines(r);
		if (!take(r, ",") && peek(r) != '}') {
			fail(r, "a comma or } is expected");
			break;
		}
	}
	json_decref(table);
	return NULL;
}

/* true, false, a number; a date or what else there is stays a text. */
static json_t *read_word(struct reader *r)
{
	AUTO(str_done) struct str word = { .max = 64 };
	char *end;

	while (is_bare(peek(r)) || (peek(r) > 0 && strchr("+.:", peek(r)))) {
		if (*r->at != '_')
			str_addn(&word, r->at, 1);
		r->at++;
	}
	const char *text = str_text(&word);

	if (word.len == 0 || word.overflow) {
		fail(r, "a value is expected");
		return NULL;
	}
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return json_boolean(text[0] == 't');
	long long n = strtoll(text, &end, 0);
	if (*end == '\0' && errno != ERANGE)
		return json_integer(n);
	double real = strtod(text, &end);
	if (*end == '\0' && real - real == 0) /* not inf, not nan: JSON has none */
		return json_real(real);
	return json_string(text);
}

static json_t *read_value(struct reader *r, size_t depth)
{
	if (depth > DEPTH_MAX) {
		fail(r, "too deep");
		return NULL;
	}
	if (peek(r) == '"' || peek(r) == '\'')
		return text_value(r);
	if (take(r, "["))
		return read_array(r, depth);
	if (take(r, "{"))
		return read_inline(r, depth);
	errno = 0;
	return read_word(r);
}

/* ---- the whole ----------------------------------------------------------------------- */

/* [a.b] or [[a.b]]; *into is the table that the next lines fill. */
static int read_header(struct reader *r, json_t *root, json_t **into)
{
	bool is_list = take(r, "[[");

	if (!is_list)
		(void)take(r, "[");
	AUTO(json_decrefp) json_t *path = read_key(r);
	if (!path)
		return -1;
	if (!take(r, is_list ? "]]" : "]"))
		return fail(r, "the name of a table does not end");
	size_t n = json_array_size(path);

	*into = walk(r, root, path, is_list ? n - 1 : n);
	if (!*into || !is_list)
		return *into ? 0 : -1;
	const char *key = json_string_value(json_array_get(path, n - 1));
	json_t *list = json_object_get(*into, key);

	if (list && !json_is_array(list))
		return fail(r, "a key is given twice");
	if (!list) {
		list = json_array();
		json_object_set_new(*into, key, list);
	}
	*into = json_object();
	return json_array_append_new(list, *into);
}

int toml_load(const char *text, size_t len, json_t **out, struct err *e)
{
	struct reader r = { .at = text, .end = text + len, .line = 1, .e = e };
	AUTO(json_decrefp) json_t *root = json_object();
	json_t *into = root;

	(void)take(&r, "\xef\xbb\xbf");
	for (;;) {
		skip_lines(&r);
		if (peek(&r) < 0)
			break;
		int done = peek(&r) == '[' ? read_header(&r, root, &into) : read_pair(&r, into, 0);

		if (done < 0 || end_line(&r) < 0)
			return -1;
	}
	*out = json_incref(root);
	return 0;
}
