#include "io/journal.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

#define LINE_MAX_BYTES 4096
#define PAIRS_MAX 12

static const char *const names[] = {
	[JOURNAL_DEBUG] = "debug",
	[JOURNAL_INFO] = "info",
	[JOURNAL_WARN] = "warn",
	[JOURNAL_ERROR] = "error",
};
_Static_assert(COUNT(names) == JOURNAL_LEVELS, "a level has no name");

static const char *who = "caisson";
static enum journal_level least = JOURNAL_INFO;

const char *journal_level_name(enum journal_level level)
{
	return names[level];
}

enum journal_level journal_level_of(const char *name)
{
	enum journal_level l = 0;

	while (l < JOURNAL_LEVELS && strcmp(names[l], name) != 0)
		l++;
	return l;
}

void journal_open(const char *program, enum journal_level from)
{
	who = program;
	least = from;
}

bool journal_hears(enum journal_level level)
{
	return level >= least;
}

static void add_value(struct str *out, const char *v)
{
	bool is_plain = v[strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	                            "_-.:/@+%,*")] == '\0';

	if (is_plain) {
		str_add(out, v);
		return;
	}
	str_add(out, "\"");
	for (; *v; v++) {
		unsigned char c = (unsigned char)*v;

		if (c < 0x20 || c >= 0x7f)
			str_addf(out, "\\x%02x", c);
		else
			str_addf(out, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
	}
	str_add(out, "\"");
}

void journal_print(struct str *out, int64_t unix_ms, enum journal_level level, const char *words,
                   const struct journal_pair *pairs)
{
	time_t s = (time_t)(unix_ms / 1000);
	struct tm tm;
	char at[32];

	gmtime_r(&s, &tm);
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &tm);
	str_addf(out, "%s.%03dZ %s %s: %s", at, (int)(unix_ms % 1000), names[level], who, words);
	for (; pairs->key; pairs++) {
		if (!pairs->value || !pairs->value[0])
			continue;
		str_addf(out, " %s=", pairs->key);
		add_value(out, pairs->value);
	}
}

/* In one write, so that lines of several programs do not mix. */
void journal(enum journal_level level, const char *words, ...)
{
	struct journal_pair pairs[PAIRS_MAX + 1] = { 0 };
	AUTO(str_done) struct str line = { .max = LINE_MAX_BYTES };
	struct timespec now;
	va_list args;

	if (!journal_hears(level))
		return;
	va_start(args, words);
	for (size_t i = 0; i < PAIRS_MAX && (pairs[i].key = va_arg(args, const char *)); i++)
		pairs[i].value = va_arg(args, const char *);
	va_end(args);
	clock_gettime(CLOCK_REALTIME, &now);
	journal_print(&line, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, level, words,
	              pairs);
	if (line.overflow) {
		line.overflow = false;
		line.max += 3;
		str_add(&line, "...");
	}
	line.max++;
	str_add(&line, "\n");
	(void)!write(STDERR_FILENO, str_text(&line),
	             line.len); /* nobody reads it: nobody misses it */
}
