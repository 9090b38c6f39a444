#include "cli/flags.h"

#include "base/str.h"
#include "test.h"

struct opts {
	bool is_on, is_x;
	const char *text, *two[2];
	struct flag_list list;
	struct flag_number number, time;
	int others;
};

/* Takes --other VALUE. */
static int other(void *into, int argc, char **argv, int *i, struct err *e)
{
	struct opts *o = into;

	if (strcmp(argv[*i], "--other") != 0)
		return 0;
	if (*i + 1 >= argc)
		return err_new(e, ERR_INVALID, "--other needs a value");
	++*i;
	o->others++;
	return 1;
}

/* clang-format off */
static const struct flag flags[] = {
	{ 'a',  FLAG_SWITCH,   "on",     offsetof(struct opts, is_on), NULL, "", NULL },
	{ 'x',  FLAG_SWITCH,   NULL,     offsetof(struct opts, is_x), NULL, "", NULL },
	{ 't',  FLAG_TEXT,     "text",   offsetof(struct opts, text), "T", "", NULL },
	{ '\0', FLAG_TWO,      "two",    offsetof(struct opts, two), "A B", "", NULL },
	{ 'l',  FLAG_LIST,     "list",   offsetof(struct opts, list), "L", "", NULL },
	{ 'n',  FLAG_NUMBER,   "number", offsetof(struct opts, number), "N", "", NULL },
	{ '\0', FLAG_DURATION, "time",   offsetof(struct opts, time), "D", "", NULL },
};
/* clang-format on */

#define WORDS_MAX 12

struct parsed {
	struct opts opts;
	struct words words;
	struct err e;
	char *argv[WORDS_MAX + 1];
	int result;
};

static void parse(struct parsed *p, size_t words_before, const char *line)
{
	struct flag_table t = {
		.at = flags, .n = COUNT(flags), .other = other, .words_before = words_before
	};
	static char text[256];
	char *save = NULL;
	int argc = 0;

	*p = (struct parsed){ 0 };
	snprintf(text, sizeof text, "verb %s", line);
	for (char *w = strtok_r(text, " ", &save); w && argc < WORDS_MAX;
	     w = strtok_r(NULL, " ", &save))
		p->argv[argc++] = w;
	p->result = flags_parse(&t, argc, p->argv, &p->opts, &p->words, &p->e);
}

static void done(struct parsed *p)
{
	struct flag_table t = { .at = flags, .n = COUNT(flags), .other = other };

	flags_done(&t, &p->opts);
}

TEST(every_form_of_an_option)
{
	AUTO(done) struct parsed p;

	parse(&p, 0, "-ax --text=a=b --two 1 2 -l x --list y -n 7 --time 90s --other v w1 -- -w2");
	CHECK_INT(p.result, 0);
	CHECK(p.opts.is_on && p.opts.is_x);
	CHECK_STR(p.opts.text, "a=b");
	CHECK_STR(p.opts.two[0], "1");
	CHECK_STR(p.opts.two[1], "2");
}

TEST(values)
{
	AUTO(done) struct parsed p;

	parse(&p, 0, "-l x --list y -n 7 --time 90s --other v");
	CHECK_INT(p.result, 0);
	CHECK_INT((long long)p.opts.list.len, 2);
	CHECK_STR(p.opts.list.at[1], "y");
	CHECK(p.opts.number.is_set && p.opts.number.value == 7);
	CHECK(p.opts.time.is_set && p.opts.time.value == 90000);
	CHECK_INT(p.opts.others, 1);
	CHECK_INT((long long)p.words.n, 0);
	CHECK(p.words.at[0] == NULL);
}

TEST(values_without_a_space)
{
	static const struct {
		const char *line, *text;
		bool is_on;
	} rows[] = {
		{ "-tvalue", "value", false },      { "-t=value", "value", false },
		{ "-atvalue", "value", true },      { "--on=true", NULL, true },
		{ "--on --on=false", NULL, false }, { "-ta", "a", false },
		{ "--on=True", NULL, true },        { "--on --on=F", NULL, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(done) struct parsed p;

		parse(&p, 0, rows[i].line);
		CHECK_INT(p.result, 0);
		CHECK_STR(p.opts.text ? p.opts.text : "", rows[i].text ? rows[i].text : "");
		CHECK_INT(p.opts.is_on, rows[i].is_on);
	}
}

TEST(words_and_where_options_end)
{
	static const struct {
		size_t words_before;
		const char *line, *words; /* joined by a space */
		bool is_on;
	} rows[] = {
		{ 0, "a b", "a b", false },
		{ 0, "a -a b", "a b", true },
		{ 0, "a -- -a b", "a -a b", false },
		{ 0, "-", "-", false },
		{ 0, "-- --", "--", false },
		{ 1, "sb -a cmd -t x", "sb cmd -t x", true },
		{ 1, "-a sb -- cmd -a", "sb cmd -a", true },
		{ 1, "sb -- -a", "sb -a", false },
		{ 1, "sb ls -- -a", "sb ls -- -a", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str got = { .max = 256 };
		AUTO(done) struct parsed p;

		parse(&p, rows[i].words_before, rows[i].line);
		CHECK_INT(p.result, 0);
		for (size_t k = 0; k < p.words.n; k++)
			str_addf(&got, "%s%s", k ? " " : "", p.words.at[k]);
		CHECK_STR(str_text(&got), rows[i].words);
		CHECK_INT(p.opts.is_on, rows[i].is_on);
		CHECK(p.words.at[p.words.n] == NULL);
	}
}

TEST(what_is_refused_says_why)
{
	static const struct {
		const char *line, *why;
	} rows[] = {
		{ "--nope", "unknown option --nope; `caisson help verb` lists them" },
		{ "--txet", "unknown option --txet; did you mean --text?" },
		{ "--numbr=7", "unknown option --numbr; did you mean --number?" },
		{ "-z", "unknown option -z; `caisson help verb` lists them" },
		{ "-az", "unknown option -az; `caisson help verb` lists them" },
		{ "-aza", "unknown option -aza; `caisson help verb` lists them" },
		{ "--text", "--text needs a value" },
		{ "-t", "-t needs a value" },
		{ "--two 1", "--two needs two values" },
		{ "--two=1", "--two takes two words" },
		{ "--on=x", "--on: \"x\" is neither true nor false" },
		{ "--other", "--other needs a value" },
		{ "-n x", "--number: \"x\" is not a number" },
		{ "-n -1", "--number: \"-1\" is not a number" },
		{ "-n 99999999999999999999", "--number: \"99999999999999999999\" is not a number" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(done) struct parsed p;

		parse(&p, 0, rows[i].line);
		CHECK_INT(p.result, -1);
		CHECK_STR(p.e.msg, rows[i].why);
	}
}

TEST(help_is_asked_for_before_the_command_only)
{
	AUTO(done) struct parsed p, q, r;

	parse(&p, 1, "-a --help");
	CHECK_INT(p.result, 1);
	parse(&q, 1, "sb -h");
	CHECK_INT(q.result, 1);
	parse(&r, 1, "sb ls --help");
	CHECK_INT(r.result, 0);
}
