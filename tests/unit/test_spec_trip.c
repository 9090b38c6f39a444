#include "spec/trip.h"

#include "base/str.h"
#include "test.h"

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

TEST(a_pattern_is_the_beginning_of_a_command)
{
	const struct {
		const char *pattern, *path;
		const char *const *argv;
		bool is_match;
	} rows[] = {
		{ "git push", "/usr/bin/git", ARGS("git", "push"), true },
		{ "git push", "/usr/bin/git", ARGS("git", "push", "origin", "main"), true },
		{ "git push", "/usr/bin/git", ARGS("git", "pull"), false },
		{ "git push", "/usr/bin/git", ARGS("git"), false },
		{ "git push", "/usr/bin/git", ARGS("git", "-C", "a", "push"), false },
		{ "git ** push", "/usr/bin/git", ARGS("git", "-C", "a", "push", "x"), true },
		{ "git ** push", "/usr/bin/git", ARGS("git", "push"), true },
		{ "git ** push", "/usr/bin/git", ARGS("git", "pushed"), false },
		{ "git ** push --force", NULL, ARGS("git", "push", "push", "--force"), true },
		{ "rm -rf *", "/bin/rm", ARGS("rm", "-rf", "/"), true },
		{ "rm -rf *", "/bin/rm", ARGS("rm", "-rf"), false },
		{ "rm -*r*", "/bin/rm", ARGS("rm", "-fr", "x"), true },
		{ "rm -*r*", "/bin/rm", ARGS("rm", "-f", "r"), false },
		{ "npm ?ublish", NULL, ARGS("/usr/bin/npm", "publish"), true },
		{ "*", "/bin/anything", ARGS("x"), true },
		/* either name counts: who lies about one is found by the other */
		{ "git push", "/usr/bin/git", ARGS("harmless", "push"), true },
		{ "git push", "/tmp/copy", ARGS("git", "push"), true },
		{ "git push", "/tmp/copy", ARGS("copy", "push"), false },
		{ "/opt/*.sh", "/opt/deploy.sh", ARGS("deploy.sh"), true },
		{ "/opt/*.sh", "./deploy.sh", ARGS("deploy.sh"), false },
		{ "*a*a*a*a*b", NULL, ARGS("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		  false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct trip_command c = { rows[i].path, rows[i].argv };

		if (trip_matches(rows[i].pattern, &c) != rows[i].is_match)
			CHECK_STR(rows[i].pattern, rows[i].is_match ? "(matches)" : "(does not)");
	}
}

TEST(a_command_without_arguments_matches_nothing_but_its_path)
{
	const struct trip_command c = { "/bin/sh", (const char *const[]){ NULL } };

	CHECK(trip_matches("sh", &c));
	CHECK(!trip_matches("sh -c", &c));
}

TEST(what_is_no_pattern_is_refused)
{
	static const char *const bad[] = { "", " git", "git ", "git  push", "** push", "a\tb" };
	struct err e;

	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK(trip_check(bad[i], &e) < 0);
	CHECK(trip_check("git ** push", &e) == 0);
}

TEST(the_text_of_a_command_is_read_one_way_only)
{
	AUTO(str_done) struct str s = { .max = 256 };

	trip_text(ARGS("git", "commit", "-m", "it's a b", ""), &s);
	CHECK_STR(str_text(&s), "git commit -m 'it'\\''s a b' ''");
}
