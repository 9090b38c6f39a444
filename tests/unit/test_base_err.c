#include "base/err.h"

#include "test.h"

TEST(new_fills_kind_and_text)
{
	struct err e = { .sys = EPERM };

	CHECK_INT(err_new(&e, ERR_INVALID, "mem %s: not a size", "4q"), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK_INT(e.sys, 0);
	CHECK_STR(e.msg, "mem 4q: not a size");
}

TEST(sys_adds_the_reason)
{
	static const struct {
		int sys;
		enum err_kind kind;
		const char *msg;
	} cases[] = {
		{ EACCES, ERR_INTERNAL, "open /x: Permission denied" },
		{ ENOENT, ERR_NOT_FOUND, "open /x: No such file or directory" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err e = { 0 };

		CHECK_INT(err_sys(&e, cases[i].sys, "open %s", "/x"), -1);
		CHECK_INT(e.kind, cases[i].kind);
		CHECK_INT(e.sys, cases[i].sys);
		CHECK_STR(e.msg, cases[i].msg);
	}
}

TEST(wrap_puts_the_context_in_front)
{
	struct err e = { 0 };

	err_sys(&e, EPERM, "write uid_map");
	CHECK_INT(err_wrap(&e, "user namespace"), -1);
	err_wrap(&e, "sandbox %d", 7);
	CHECK_STR(e.msg, "sandbox 7: user namespace: write uid_map: Operation not permitted");
	CHECK_INT(e.sys, EPERM);
	CHECK_INT(e.kind, ERR_INTERNAL);
}

TEST(too_long_is_cut_and_terminated)
{
	char long_text[2 * sizeof(struct err)];
	struct err e = { 0 };

	memset(long_text, 'x', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = '\0';
	err_new(&e, ERR_LIMIT, "%s", long_text);
	CHECK_INT(strlen(e.msg), sizeof e.msg - 1);
	err_sys(&e, EIO, "%s", long_text);
	CHECK_INT(strlen(e.msg), sizeof e.msg - 1);
	err_wrap(&e, "outer");
	CHECK_INT(strlen(e.msg), sizeof e.msg - 1);
	CHECK_INT(strncmp(e.msg, "outer: xxx", 10), 0);
}

TEST(crosses_a_pipe_in_one_piece)
{
	struct err sent = { 0 };
	struct err got = { 0 };
	int ends[2];

	err_sys(&sent, EBUSY, "mount /proc");
	CHECK_INT(pipe(ends), 0);
	CHECK_INT(write(ends[1], &sent, sizeof sent), sizeof sent);
	CHECK_INT(read(ends[0], &got, sizeof got), sizeof got);
	CHECK_STR(got.msg, sent.msg);
	CHECK_INT(got.sys, EBUSY);
}

TEST(every_kind_has_a_name)
{
	for (int kind = ERR_NONE; kind <= ERR_INTERNAL; kind++)
		CHECK(err_kind_name((enum err_kind)kind));
	CHECK_STR(err_kind_name(ERR_UNENFORCEABLE), "unenforceable");
}
