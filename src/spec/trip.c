#include "spec/trip.h"

#include <ctype.h>

#include "base/str.h"
#include "spec/opts.h"

#define ANY "**"

/* ---- one word ------------------------------------------------------------------------ */

/* The end of the word that begins at `at`. */
static const char *word_end(const char *at)
{
	return at + strcspn(at, " ");
}

static const char *next_word(const char *end)
{
	return end + strspn(end, " ");
}

/* The last star takes one letter more whenever the rest does not fit: no pattern is slow. */
static bool word_matches(const char *p, const char *end, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (p < end && *p == '*') {
			star = ++p;
			retry = text;
		} else if (p < end && (*p == '?' || *p == *text)) {
			p++;
			text++;
		} else if (star) {
			p = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool program_matches(const char *p, const char *end, const struct trip_command *c)
{
	const char *path = c->path ? c->path : c->argv[0] ? c->argv[0] : "";

	if (memchr(p, '/', (size_t)(end - p)))
		return word_matches(p, end, path);
	return word_matches(p, end, base_of(path)) ||
	       (c->argv[0] && word_matches(p, end, base_of(c->argv[0])));
}

static bool is_any(const char *p, const char *end)
{
	return end - p == 2 && memcmp(p, ANY, 2) == 0;
}

/* ---- a command ----------------------------------------------------------------------- */

/* The same way back as above, over words: the last ** takes one argument more. */
static bool rest_matches(const char *p, const char *const *args)
{
	const char *star = NULL;
	const char *const *retry = NULL;

	while (*p) {
		const char *end = word_end(p);

		if (is_any(p, end)) {
			p = star = next_word(end);
			retry = args;
		} else if (*args && word_matches(p, end, *args)) {
			p = next_word(end);
			args++;
		} else if (star && *retry) {
			p = star;
			args = ++retry;
		} else {
			return false;
		}
	}
	return true;
}

bool trip_matches(const char *pattern, const struct trip_command *c)
{
	const char *end = word_end(pattern);

	return program_matches(pattern, end, c) &&
	       rest_matches(next_word(end), c->argv[0] ? c->argv + 1 : c->argv);
}

int trip_check(const char *pattern, struct err *e)
{
	size_t n = strlen(pattern);

	if (n == 0 || n > TRIP_TEXT_MAX)
		return err_new(e, ERR_INVALID, "a command has 1 to %d bytes", TRIP_TEXT_MAX);
	for (size_t i = 0; i < n; i++)
		if (iscntrl((unsigned char)pattern[i]))
			return err_new(e, ERR_INVALID, "a command has no control characters");
	if (pattern[0] == ' ' || pattern[n - 1] == ' ' || strstr(pattern, "  "))
		return err_new(e, ERR_INVALID, "\"%s\": one blank between words, none around them",
		               quote(pattern).text);
	if (is_any(pattern, word_end(pattern)))
		return err_new(e, ERR_INVALID,
		               "\"%s\" begins with no program; write \"* %s\" for any of them",
		               quote(pattern).text, quote(pattern).text);
	return 0;
}

/* ---- for people ---------------------------------------------------------------------- */

static bool is_plain(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_-./=:,+@%^", *p))
			return false;
	return *text != '\0';
}

static void add_quoted(struct str *out, const char *text)
{
	str_add(out, "'");
	for (const char *p = text; *p; p++) {
		if (*p == '\'')
			str_add(out, "'\\''");
		else
			str_addn(out, p, 1);
	}
	str_add(out, "'");
}

void trip_text(const char *const *argv, struct str *out)
{
	for (size_t i = 0; argv[i]; i++) {
		if (i > 0)
			str_add(out, " ");
		if (is_plain(argv[i]))
			str_add(out, argv[i]);
		else
			add_quoted(out, argv[i]);
	}
}
