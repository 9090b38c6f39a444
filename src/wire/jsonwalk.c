#include "wire/jsonwalk.h"

#include "wire/http-internal.h"

struct walk {
	const char *at, *end;
	const struct jsonwalk_ops *ops;
	void *arg;
	struct jsonwalk_path path;
};

static void skip_space(struct walk *w)
{
	while (w->at < w->end &&
	       (*w->at == ' ' || *w->at == '\t' || *w->at == '\n' || *w->at == '\r'))
		w->at++;
}

/* The next byte that is no space; -1 at the end. */
static int next(struct walk *w)
{
	skip_space(w);
	return w->at < w->end ? (unsigned char)*w->at : -1;
}

static bool take(struct walk *w, char c)
{
	if (next(w) != c)
		return false;
	w->at++;
	return true;
}

static bool take_text(struct walk *w, struct span *raw)
{
	if (!take(w, '"'))
		return false;
	raw->at = w->at;
	for (; w->at < w->end; w->at++) {
		if (*w->at == '"') {
			raw->len = (size_t)(w->at++ - raw->at);
			return true;
		}
		if ((unsigned char)*w->at < 0x20)
			return false;
		if (*w->at == '\\' && ++w->at == w->end)
			return false;
	}
	return false;
}

/* A number or a word. */
static bool skip_scalar(struct walk *w)
{
	static const char *const words[] = { "true", "false", "null" };
	const char *from = w->at;

	while (w->at < w->end && (*w->at == '+' || *w->at == '-' || *w->at == '.' ||
	                          (*w->at >= '0' && *w->at <= '9') ||
	                          (*w->at >= 'a' && *w->at <= 'z') || *w->at == 'E'))
		w->at++;
	struct span s = { from, (size_t)(w->at - from) };

	for (size_t i = 0; i < COUNT(words); i++)
		if (span_is(s, words[i]))
			return true;
	return s.len > 0 && (s.at[0] == '-' || (s.at[0] >= '0' && s.at[0] <= '9'));
}

static bool value(struct walk *w);

static bool members(struct walk *w)
{
	struct span *key = &w->path.keys[w->path.depth++];

	do {
		if (!take_text(w, key) || !take(w, ':') || !value(w))
			return false;
	} while (take(w, ','));
	w->path.depth--;
	return take(w, '}');
}

static bool items(struct walk *w)
{
	w->path.keys[w->path.depth++] = (struct span){ 0 };
	do {
		if (!value(w))
			return false;
	} while (take(w, ','));
	w->path.depth--;
	return take(w, ']');
}

static bool object(struct walk *w)
{
	w->at++;
	if (!take(w, '}') && (w->path.depth == JSONWALK_DEPTH || !members(w)))
		return false;
	if (w->ops->closed)
		w->ops->closed(w->arg, &w->path);
	return true;
}

static bool array(struct walk *w)
{
	w->at++;
	return take(w, ']') || (w->path.depth < JSONWALK_DEPTH && items(w));
}

/* Calls itself; JSONWALK_DEPTH bounds that. */
static bool value(struct walk *w)
{
	struct span raw;

	switch (next(w)) {
	case '{':
		return object(w);
	case '[':
		return array(w);
	case '"':
		if (!take_text(w, &raw))
			return false;
		w->ops->text(w->arg, &w->path, raw);
		return true;
	default:
		return skip_scalar(w);
	}
}

int jsonwalk(struct span text, const struct jsonwalk_ops *ops, void *arg)
{
	struct walk w = { .at = text.at, .end = text.at + text.len, .ops = ops, .arg = arg };

	return value(&w) && next(&w) < 0 ? 0 : -1;
}

/* The byte of an escape whose letter is at `*i`; -1: none that is one byte of ASCII. */
static int unescape(struct span raw, size_t *i)
{
	static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *found = *i < raw.len ? memchr(letters, raw.at[*i], sizeof letters - 1) : NULL;
	int c = 0;

	if (found)
		return bytes[found - letters];
	if (raw.len - *i < 5 || raw.at[*i] != 'u')
		return -1;
	for (int k = 0; k < 4; k++) {
		int digit = http_hex(raw.at[++*i]);

		if (digit < 0)
			return -1;
		c = c << 4 | digit;
	}
	return c;
}

int jsonwalk_ascii(struct span raw, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < raw.len; i++) {
		int c = (unsigned char)raw.at[i];

		if (c == '\\') {
			i++;
			c = unescape(raw, &i);
		}
		if (c < ' ' || c > '~' || n + 1 >= size)
			return -1;
		out[n++] = (char)c;
	}
	out[n] = '\0';
	return (int)n;
}
