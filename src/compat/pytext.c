/*
 * pytext.c - bytes as texts of Python, and quoting.
 */
#include "compat/compat-internal.h"
#include "wire/utf8.h"

/* Length of the character that begins here; 0: none does, and the first *wrong bytes are one
 * mistake to Python. */
static size_t character(const char *at, size_t n, size_t *wrong)
{
	struct utf8 u = { 0 };
	size_t i = 0;

	while (i < n && utf8_feed(&u, at + i, 1)) {
		i++;
		if (utf8_is_whole(&u))
			return i;
	}
	*wrong = i > 0 ? i : 1;
	return 0;
}

static void add_code(struct str *out, unsigned char byte)
{
	const char two[] = { (char)(0xc0 | byte >> 6), (char)(0x80 | (byte & 0x3f)) };

	if (byte < 0x80)
		str_addn(out, &byte, 1);
	else
		str_addn(out, two, sizeof two);
}

static void add_wrong(struct str *out, struct span bytes, enum py_errors how)
{
	switch (how) {
	case PY_REPLACE:
		str_add(out, "\xef\xbf\xbd");
		break;
	case PY_BACKSLASH:
		for (size_t i = 0; i < bytes.len; i++)
			str_addf(out, "\\x%02x", (unsigned char)bytes.at[i]);
		break;
	case PY_STRICT:
	case PY_IGNORE:
		break;
	}
}

static size_t ascii_run(struct span bytes)
{
	size_t n = 0;

	while (n < bytes.len && (unsigned char)bytes.at[n] < 0x80)
		n++;
	return n;
}

static bool decode(struct span bytes, bool is_ascii, enum py_errors how, struct str *out,
                   size_t *at)
{
	for (size_t i = 0; i < bytes.len;) {
		size_t wrong = 0, plain = ascii_run(span_after(bytes, i));

		if (plain > 0) { /* most of most texts */
			str_addn(out, bytes.at + i, plain);
			i += plain;
			continue;
		}
		size_t n = character(bytes.at + i, is_ascii ? 1 : bytes.len - i, &wrong);

		if (n == 0 && how == PY_STRICT) {
			*at = i;
			return false;
		}
		if (n == 0)
			add_wrong(out, (struct span){ bytes.at + i, wrong }, how);
		else
			str_addn(out, bytes.at + i, n);
		i += n + wrong;
	}
	return true;
}

bool py_utf8(struct span bytes, enum py_errors how, struct str *out, size_t *at)
{
	return decode(bytes, false, how, out, at);
}

bool py_ascii(struct span bytes, enum py_errors how, struct str *out, size_t *at)
{
	return decode(bytes, true, how, out, at);
}

void py_latin1(struct span bytes, struct str *out)
{
	for (size_t i = 0; i < bytes.len; i++)
		add_code(out, (unsigned char)bytes.at[i]);
}

/* ESC, one of @ to _, then 0 to ?, then blanks to /, then one of @ to ~: its length, or 0. */
static size_t escape(const char *at, size_t n)
{
	size_t i = 2;

	if (n < 3 || at[0] != '\033' || at[1] < '@' || at[1] > '_')
		return 0;
	while (i < n && at[i] >= '0' && at[i] <= '?')
		i++;
	while (i < n && at[i] >= ' ' && at[i] <= '/')
		i++;
	return i < n && at[i] >= '@' && at[i] <= '~' ? i + 1 : 0;
}

static void set_len(struct str *s, size_t n)
{
	s->len = n;
	if (s->data)
		s->data[n] = '\0';
}

void py_plain(struct str *s)
{
	size_t out = 0;

	for (size_t i = 0; i < s->len;) {
		size_t n = escape(s->data + i, s->len - i);

		if (n == 0)
			s->data[out++] = s->data[i++];
		i += n;
	}
	set_len(s, out);
	out = 0;
	for (size_t i = 0; i < s->len; i++)
		if (s->data[i] != '\r' || i + 1 == s->len || s->data[i + 1] != '\n')
			s->data[out++] = s->data[i];
	set_len(s, out);
}

void py_newlines(struct str *s)
{
	size_t out = 0;

	for (size_t i = 0; i < s->len; i++) {
		bool is_pair = s->data[i] == '\r' && i + 1 < s->len && s->data[i + 1] == '\n';

		if (!is_pair)
			s->data[out++] = s->data[i];
		if (!is_pair && s->data[out - 1] == '\r')
			s->data[out - 1] = '\n';
	}
	set_len(s, out);
}

void py_repr(struct str *out, struct span text)
{
	static const char names[] = { ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['\\'] = '\\' };
	bool is_double = memchr(text.at, '\'', text.len) && !memchr(text.at, '"', text.len);
	const char quote = (char)(is_double ? '"' : '\'');

	str_addn(out, &quote, 1);
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.at[i];

		if (c == (unsigned char)quote || (c < sizeof names && names[c]))
			str_addf(out, "\\%c", c == (unsigned char)quote ? quote : names[c]);
		else if (c < 0x20 || c == 0x7f)
			str_addf(out, "\\x%02x", c);
		else
			str_addn(out, &c, 1);
	}
	str_addn(out, &quote, 1);
}

/* What is typed is printable ASCII without quotes and history's `!`: readline takes it for text in
 * every locale and mode. */
void py_eval(struct str *out, const char *command)
{
	str_add(out, "eval $'");
	for (const char *at = command; *at; at++) {
		unsigned char c = (unsigned char)*at;

		if (c >= 0x20 && c < 0x7f && !strchr("'\\!", c))
			str_addn(out, at, 1);
		else
			str_addf(out, "\\%03o", c);
	}
	str_add(out, "'\n");
}

json_t *py_json(struct span bytes)
{
	AUTO(str_done) struct str text = { .max = (size_t)8 * ERRAND_ANSWER_MAX };

	(void)py_utf8(bytes, PY_BACKSLASH, &text, NULL);
	return json_stringn(str_text(&text), text.len);
}

struct span py_strip(struct span s)
{
	static const char blanks[] = " \t\n\r\v\f";

	while (s.len > 0 && s.at[0] && strchr(blanks, s.at[0]))
		s = span_after(s, 1);
	while (s.len > 0 && s.at[s.len - 1] && strchr(blanks, s.at[s.len - 1]))
		s.len--;
	return s;
}
