#include "cli/help.h"

#include "test.h"

static const struct flag flags[] = {
	{ 'f', FLAG_SWITCH, "follow", 0, NULL, "go on: until it's over", NULL },
	{ '\0', FLAG_TEXT, "sort", 0, "ORDER", "mtime or path", "mtime path" },
	{ 'e', FLAG_LIST, "environment-variable", 0, "NAME=VALUE", "a variable", NULL },
};

static const struct verb first = { .name = "first",
	                           .usage = "SANDBOX [options]",
	                           .does = "the first one",
	                           .more = "One sentence.\n.Two begins with a dot.",
	                           .flags = flags,
	                           .n_flags = COUNT(flags),
	                           .words = "sandbox" };
static const struct verb second = { .name = "second",
	                            .usage = "a | b",
	                            .does = "the second one",
	                            .words = "[a b]",
	                            .takes_spec = true };
static const struct verb *const rows[] = { &first, &second };
static const struct verb_table table = { rows, COUNT(rows) };

static bool has(const struct str *text, const char *part)
{
	return strstr(str_text(text), part) != NULL;
}

TEST(help_of_a_verb_has_every_option)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	verb_help(&first, &out);
	CHECK(has(&out, "usage: caisson first SANDBOX [options]\n\nthe first one\n"));
	CHECK(has(&out, "  -f, --follow            go on: until it's over\n"));
	CHECK(has(&out, "  --sort ORDER            mtime or path\n"));
	CHECK(has(&out, "  -e, --environment-variable NAME=VALUE...\n"
	                "                          a variable\n"));
	CHECK(has(&out, "\nOne sentence.\n.Two begins"));
	str_clear(&out);
	verb_help(&second, &out);
	CHECK(has(&out, "--spec FILE"));
	CHECK(has(&out, "--mem SIZE"));
}

TEST(the_list_has_every_verb)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	help_list(&table, &out);
	CHECK(has(&out, "  caisson first      the first one\n"));
	CHECK(has(&out, "  caisson second     the second one\n"));
}

TEST(the_man_page_is_roff_without_surprises)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	help_man(&table, &out);
	CHECK(!out.overflow);
	CHECK(strncmp(str_text(&out), ".TH CAISSON 1 ", 14) == 0);
	CHECK(has(&out, "\n.SS caisson first SANDBOX [options]\n"));
	CHECK(has(&out, "\n.B \\-f, \\-\\-follow\ngo on: until it's over\n"));
	CHECK(has(&out, "\n\\&.Two begins with a dot.\n"));
	CHECK(has(&out, "\n.SH EXIT STATUS\n"));
	/* Every line that begins with a dot is a request that we use. */
	for (const char *at = str_text(&out); at; at = strchr(at, '\n')) {
		static const char *const known[] = { ".TH ", ".SH ",  ".SS ",  ".TP\n", ".B ",
			                             ".I ",  ".PP\n", ".nf\n", ".fi\n" };
		size_t i = 0;

		at += *at == '\n';
		while (at[0] == '.' && i < COUNT(known) &&
		       strncmp(at, known[i], strlen(known[i])) != 0)
			i++;
		CHECK(i < COUNT(known));
		CHECK(at[0] != '\'');
	}
}

TEST(completion_has_verbs_options_and_words)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	completion_bash(&table, &out);
	CHECK(has(&out, "compgen -W 'first second'"));
	CHECK(has(&out,
	          "first) kind=sandbox options='-f --follow --sort -e --environment-variable '"));
	CHECK(has(&out, "first:--sort) kind=words words='mtime path' ;;"));
	CHECK(has(&out, "second) kind=words options='--spec "));
	CHECK(has(&out, "--mem "));
	CHECK(has(&out, "words='a b' ;;"));
	str_clear(&out);
	completion_zsh(&table, &out);
	CHECK(strncmp(str_text(&out), "#compdef caisson\n", 17) == 0);
	CHECK(has(&out, "'first:the first one'"));
	CHECK(has(&out, "'--follow:go on\\: until it'\\''s over'"));
	CHECK(has(&out, "kind=words plain=(a b)"));
}

static int run_shell(const char *script, const char *first_line)
{
	char path[] = "/tmp/caisson-completion.XXXXXX";
	AUTO(str_done) struct str out = { .max = 1u << 20 };
	struct err e = { 0 };
	int fd = mkstemp(path), status = -1;

	str_add(&out, first_line);
	completion_bash(&table, &out);
	str_add(&out, script);
	CHECK(fd >= 0);
	CHECK_INT(write_all(fd, str_text(&out), out.len, &e), 0);
	close(fd);
	pid_t pid = fork();
	if (pid == 0) {
		execlp("bash", "bash", "--norc", path, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(bash_completes_by_it)
{
	static const char script[] =
	    "check() { COMP_WORDS=(caisson \"${@:2}\"); COMP_CWORD=$(($# - 1)); _caisson\n"
	    "\t[ \"${COMPREPLY[*]}\" = \"$1\" ] || { echo \"# ${*:2}: ${COMPREPLY[*]}\"; exit 1; "
	    "}; }\n"
	    "caisson() { [ \"$CAISSON_START\" = never ] && echo sb_1 sb_2; }\n"
	    "check 'first second' ''\n"
	    "check 'second' s\n"
	    "check '--follow' first --f\n"
	    "check 'mtime path' first --sort ''\n"
	    "check 'sb_1 sb_2' first sb\n"
	    "check 'a b' second ''\n"
	    "check '--mem' second --me\n";
	int status = run_shell(script, "");

	if (status == 127)
		SKIP("needs bash");
	CHECK_INT(status, 0);
}
