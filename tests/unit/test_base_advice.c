#include "base/advice.h"

#include "test.h"

TEST(each_one_has_words_that_fit_into_an_error)
{
	CHECK(advice(ADVICE_NONE) == NULL);
	for (enum advice a = ADVICE_NONE + 1; a < ADVICES; a++) {
		printf("# %d\n", a);
		CHECK(advice(a) && advice(a)[0]);
		CHECK(strlen(advice(a)) < sizeof((struct err *)0)->msg / 2);
		CHECK(!strchr(advice(a), '\n'));
	}
}

TEST(it_ends_the_sentence_of_an_error)
{
	struct err e = { 0 };

	err_sys(&e, EADDRINUSE, "listen");
	CHECK_INT(err_advise(&e, ADVICE_NONE), -1);
	CHECK_STR(e.msg, "listen: Address already in use");
	CHECK_INT(err_advise(&e, ADVICE_PROGRAMS), -1);
	CHECK_STR(e.msg,
	          "listen: Address already in use; `make install` puts all programs in place");
	CHECK_INT(e.kind, ERR_INTERNAL);
	CHECK_INT(e.sys, EADDRINUSE);
}

TEST(an_error_that_is_full_stays_one)
{
	struct err e = { 0 };

	err_new(&e, ERR_INTERNAL, "%0*d", (int)sizeof e.msg, 1);
	err_advise(&e, ADVICE_DOCTOR);
	CHECK_INT(strlen(e.msg), sizeof e.msg - 1);
}
