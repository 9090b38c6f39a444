#include "compat/compat-internal.h"
#include "test.h"

#define BYTES(text) ((struct span){ (text), sizeof(text) - 1 })

TEST(bytes_are_decoded_as_python_does)
{
	static const struct {
		struct span bytes;
		enum py_errors how;
		const char *want; /* NULL: refused */
	} cases[] = {
		{ { "gr\xc3\xbcn", 5 }, PY_STRICT, "gr\xc3\xbcn" },
		{ { "a\xff", 2 }, PY_STRICT, NULL },
		{ { "a\xff\xfe!", 4 }, PY_IGNORE, "a!" },
		{ { "a\xff!", 3 }, PY_REPLACE, "a\xef\xbf\xbd!" },
		{ { "a\xff!", 3 }, PY_BACKSLASH, "a\\xff!" },
		{ { "\xc3", 1 }, PY_BACKSLASH, "\\xc3" },
		{ { "\xe2\x82!\xf0\x9f", 5 }, PY_REPLACE, "\xef\xbf\xbd!\xef\xbf\xbd" },
		{ { "\xe2\x82!", 3 }, PY_BACKSLASH, "\\xe2\\x82!" },
		{ { "\xed\xa0\x80", 3 }, PY_BACKSLASH, "\\xed\\xa0\\x80" }, /* half of a pair */
		{ { "", 0 }, PY_STRICT, "" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str out = { .max = 64 };
		size_t at = 99;

		CHECK_INT(py_utf8(cases[i].bytes, cases[i].how, &out, &at), cases[i].want != NULL);
		if (cases[i].want)
			CHECK_STR(str_text(&out), cases[i].want);
		else
			CHECK_INT((int)at, 1);
	}
	AUTO(str_done) struct str ascii = { .max = 64 }, latin = { .max = 64 };
	size_t at = 99;
	CHECK(!py_ascii(BYTES("ab\xc3\xbc"), PY_STRICT, &ascii, &at) && at == 2);
	py_latin1(BYTES("a\xfc\x80"), &latin);
	CHECK_STR(str_text(&latin), "a\xc3\xbc\xc2\x80");
}

TEST(what_a_terminal_says_without_its_controls)
{
	static const struct {
		const char *said, *want;
	} cases[] = {
		{ "a\r\nb\r\n", "a\nb\n" },   { "\033[1mbold\033[0m \033[?2004h", "bold " },
		{ "\033]0;t\007x", "\007x" }, /* as the pattern has it: up to the first letter */
		{ "a\rb", "a\rb" },           { "\033", "\033" },
		{ "\033[12", "\033[12" },     { "", "" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str s = { .max = 64 };

		str_add(&s, cases[i].said);
		py_plain(&s);
		CHECK_STR(str_text(&s), cases[i].want);
	}
	AUTO(str_done) struct str lines = { .max = 64 };
	str_add(&lines, "a\r\nb\rc\n\r");
	py_newlines(&lines);
	CHECK_STR(str_text(&lines), "a\nb\nc\n\n");
}

TEST(texts_are_shown_as_python_shows_them)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "a", "'a'" },
		{ "it's", "\"it's\"" },
		{ "it's \"", "'it\\'s \"'" },
		{ "\n\t\\", "'\\n\\t\\\\'" },
		{ "\001", "'\\x01'" },
		{ "\xc3\xbc", "'\xc3\xbc'" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str s = { .max = 64 };

		py_repr(&s, span_of(cases[i].text));
		CHECK_STR(str_text(&s), cases[i].want);
	}
}

TEST(a_command_is_one_line_of_printable_ascii)
{
	AUTO(str_done) struct str line = { .max = 256 };

	py_eval(&line, "echo 'a!'\n\t\\\xc3\xbc$x");
	CHECK_STR(str_text(&line), "eval $'echo \\047a\\041\\047\\012\\011\\134\\303\\274$x'\n");
	for (size_t i = 0; i + 1 < line.len; i++)
		CHECK(line.data[i] >= ' ' && line.data[i] < 0x7f);
}

TEST(blanks_at_both_ends)
{
	struct span s = py_strip(span_of(" \r\n a b\t\n"));

	CHECK(span_is(s, "a b"));
	CHECK_INT((int)py_strip(span_of(" \n")).len, 0);
}
