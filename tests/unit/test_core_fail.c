#include "core/fail.h"

#include "test.h"

TEST(every_code_has_a_name_and_a_status)
{
	for (enum fail_code c = FAIL_INVALID; c < FAIL_CODES; c++) {
		CHECK(fail_name(c)[0] != '\0');
		CHECK(fail_status(c) >= 400 && fail_status(c) < 600);
		for (enum fail_code d = FAIL_NONE; d < c; d++)
			CHECK(strcmp(fail_name(c), fail_name(d)) != 0);
	}
}

TEST(an_error_becomes_the_code_of_its_kind)
{
	static const struct {
		enum err_kind kind;
		enum fail_code code;
	} rows[] = {
		{ ERR_INVALID, FAIL_INVALID },
		{ ERR_NOT_FOUND, FAIL_NOT_FOUND },
		{ ERR_DENIED, FAIL_PERMISSION_DENIED },
		{ ERR_LIMIT, FAIL_TOO_LARGE },
		{ ERR_UNENFORCEABLE, FAIL_UNENFORCEABLE },
		{ ERR_INTERNAL, FAIL_BACKEND_ERROR },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct fail f = { .is_retry_safe = true };

		(void)err_new(&e, rows[i].kind, "why %zu", i);
		CHECK_INT(fail_err(&f, &e), -1);
		CHECK_INT(f.code, rows[i].code);
		CHECK(!f.is_retry_safe);
		CHECK_STR(f.detail, e.msg);
	}
}

TEST(a_long_sentence_is_cut_and_ends)
{
	char text[2000];
	struct fail f;

	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	fail_set(&f, FAIL_BUSY, "%s", text);
	CHECK_INT(strlen(f.detail), sizeof f.detail - 1);
}
