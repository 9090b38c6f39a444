#include "io/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/str.h"
#include "test.h"

/* clang-format off */
static const struct {
	enum journal_level level;
	const char *words;
	struct journal_pair pairs[4];
	const char *line;
} rows[] = {
	{ JOURNAL_INFO, "requests are answered", { { NULL, NULL } },
	  "2026-01-31T12:00:00.250Z info caissond: requests are answered" },
	{ JOURNAL_WARN, "a sandbox stopped", { { "sandbox", "sb_1" }, { "reason", "its monitor died" } },
	  "2026-01-31T12:00:00.250Z warn caissond: a sandbox stopped sandbox=sb_1 reason=\"its monitor died\"" },
	{ JOURNAL_ERROR, "x", { { "a", NULL }, { "b", "" }, { "c", "1" } },
	  "2026-01-31T12:00:00.250Z error caissond: x c=1" },
	/* Whatever somebody calls his things: a line is a line, and a value is one. */
	{ JOURNAL_DEBUG, "x", { { "path", "/a\n2026 error caissond: y\x1b[2J" } },
	  "2026-01-31T12:00:00.250Z debug caissond: x path=\"/a\\x0a2026 error caissond: y\\x1b[2J\"" },
	{ JOURNAL_DEBUG, "x", { { "v", "a=\"b\\" } },
	  "2026-01-31T12:00:00.250Z debug caissond: x v=\"a=\\\"b\\\\\"" },
	{ JOURNAL_DEBUG, "x", { { "v", "\xc3\xa4" } },
	  "2026-01-31T12:00:00.250Z debug caissond: x v=\"\\xc3\\xa4\"" },
};
/* clang-format on */

TEST(lines)
{
	journal_open("caissond", JOURNAL_INFO);
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 1024 };

		journal_print(&out, 1769860800250, rows[i].level, rows[i].words, rows[i].pairs);
		CHECK_STR(str_text(&out), rows[i].line);
	}
}

TEST(levels_by_name)
{
	for (enum journal_level l = 0; l < JOURNAL_LEVELS; l++)
		CHECK_INT(journal_level_of(journal_level_name(l)), l);
	CHECK_INT(journal_level_of("loud"), JOURNAL_LEVELS);
	CHECK_INT(journal_level_of(""), JOURNAL_LEVELS);
}

TEST(what_is_written_is_one_line_and_no_longer_than_a_line)
{
	static char huge[20000], got[32768];
	int fds[2];

	memset(huge, 'x', sizeof huge - 1);
	CHECK(pipe(fds) == 0);
	int keep = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	journal_open("caissond", JOURNAL_WARN);
	journal(JOURNAL_INFO, "not heard", NULL);
	journal(JOURNAL_ERROR, "heard", "big", huge, NULL);
	journal(JOURNAL_ERROR, "heard too", "n", "1", NULL);
	dup2(keep, STDERR_FILENO);
	close(fds[1]);
	ssize_t n = read(fds[0], got, sizeof got - 1);
	CHECK(n > 0 && n < 5000);
	CHECK(strstr(got, "not heard") == NULL);
	const char *end = strchr(got, '\n');
	CHECK(end && strncmp(end - 3, "...", 3) == 0);
	CHECK(end && strstr(end, "heard too n=1\n") != NULL);
}
