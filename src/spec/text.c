#include "spec/opts.h"

#include <ctype.h>

struct quoted quote(const char *text)
{
	struct quoted q;
	size_t len = 0;

	if (secret_prefix(text)) {
		snprintf(q.text, sizeof q.text, "(not shown: looks like a secret)");
		return q;
	}
	/* Room for one escape, the dots and the NUL. */
	for (; *text && len + 4 + 3 + 1 <= sizeof q.text; text++) {
		unsigned char c = (unsigned char)*text;

		if (isprint(c))
			q.text[len++] = (char)c;
		else
			len += (size_t)snprintf(q.text + len, sizeof q.text - len, "\\x%02x", c);
	}
	snprintf(q.text + len, sizeof q.text - len, "%s", *text ? "..." : "");
	return q;
}

/* C0, DEL, and C1 in UTF-8: a terminal obeys all three. */
static bool is_control(const char *p)
{
	unsigned char c = (unsigned char)p[0], next = (unsigned char)p[1];

	return c < 0x20 || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0);
}

static int text_check(const char *text, size_t max, const char *except, struct err *e)
{
	if (!*text)
		return err_new(e, ERR_INVALID, "is empty");
	if (strlen(text) > max)
		return err_new(e, ERR_LIMIT, "has %zu bytes, the most is %zu", strlen(text), max);
	for (const char *p = text; *p; p++)
		if (is_control(p) && !strchr(except, *p))
			return err_new(e, ERR_INVALID, "\"%s\" has a control byte",
			               quote(text).text);
	return 0;
}

int text_plain(const char *text, size_t max, struct err *e)
{
	return text_check(text, max, "", e);
}

/* One of the row's words. */
int check_word(const struct opt *o, struct arena *a, const char *text, const char **out,
               struct err *e)
{
	(void)a;
	int i = word_find(o->words, text, e);

	if (i < 0)
		return -1;
	*out = o->words[i];
	return 0;
}

/* A name of ours: it may become part of a path or a URL. */
int check_name(const struct opt *o, struct arena *a, const char *text, const char **out,
               struct err *e)
{
	(void)o;
	if (text_plain(text, NAME_TEXT_MAX - 1, e) < 0)
		return -1;
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && (p == text || !strchr("._-", *p)))
			return err_new(e, ERR_INVALID,
			               "\"%s\" is not a name (letters, digits, then . _ - too)",
			               quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

/* A shell command, of several lines if need be. */
int check_command(const struct opt *o, struct arena *a, const char *text, const char **out,
                  struct err *e)
{
	(void)o;
	if (text_check(text, SPEC_TEXT_MAX - 1, "\n\t", e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}
