#include "spec/opts.h"

#include <ctype.h>

#define WORD_MAX                                                                                   \
	32 /* no word of ours is longer; names that others gave may be, and are near to none */

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

static int fold(const char *text, size_t i)
{
	return tolower((unsigned char)text[i]);
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b, blind to case. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	size_t a_len = strlen(a), b_len = strlen(b);

	for (size_t k = 0; k <= b_len; k++)
		last[k] = k;
	for (size_t i = 1; i <= a_len; i++) {
		now[0] = i;
		for (size_t k = 1; k <= b_len; k++) {
			bool same = fold(a, i - 1) == fold(b, k - 1);
			bool swap = i > 1 && k > 1 && fold(a, i - 1) == fold(b, k - 2) &&
			            fold(a, i - 2) == fold(b, k - 1);

			now[k] = min3(last[k] + 1, now[k - 1] + 1, last[k - 1] + !same);
			if (swap && before[k - 2] + 1 < now[k])
				now[k] = before[k - 2] + 1;
		}
		size_t *spare = before;

		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

/* "network" for "net": people write more, or less, of the same word. */
static bool is_prefix(const char *a, const char *b)
{
	size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

	return n > 1 && strncasecmp(a, b, n) == 0;
}

const char *nearest(const char *text, const char *const *words)
{
	size_t len = strlen(text);
	size_t best = len / 2 > 1 ? len / 2 : 1;
	const char *found = NULL;

	if (len > WORD_MAX)
		return NULL;
	for (; *words; words++) {
		bool is_long = strlen(*words) > WORD_MAX;
		size_t d = is_prefix(text, *words) ? 1
		           : is_long               ? SIZE_MAX
		                                   : distance(text, *words);

		if (d < best || (d == best && !found)) {
			best = d;
			found = *words;
		}
	}
	return found;
}

struct hint hint(const char *text, const char *const *words)
{
	const char *near = nearest(text, words);
	struct hint h;

	if (near) {
		snprintf(h.text, sizeof h.text, "; did you mean \"%s\"?", near);
		return h;
	}
	size_t len = (size_t)snprintf(h.text, sizeof h.text, "; valid: ");

	for (const char *between = ""; *words && len < sizeof h.text; words++, between = ", ")
		len += (size_t)snprintf(h.text + len, sizeof h.text - len, "%s%s", between, *words);
	return h;
}

int word_find(const char *const *words, const char *text, struct err *e)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0)
			return i;
	return err_new(e, ERR_INVALID, "\"%s\" is not valid%s", quote(text).text,
	               hint(text, words).text);
}
