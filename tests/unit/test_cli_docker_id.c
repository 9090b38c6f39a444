#include "cli/docker-internal.h"

#include "test.h"

TEST(an_id_there_and_back)
{
	static const struct {
		const char *id, *digits; /* the first ones */
	} rows[] = {
		{ "sb_00000000000000000000000000", "000000000000000000000000000000000" },
		{ "sb_zzzzzzzzzzzzzzzzzzzzzzzzzz", "ffffffffffffffffffffffffffffffffc" },
		{ "sb_1nebt9bfcbdp6g1b05ntqsnwtd", "0d5cbd256f62db63402b016babe6bcd34" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char digits[DOCKER_ID_SIZE], back[NAME_TEXT_MAX];

		docker_id_of(rows[i].id, digits);
		CHECK_INT((long long)strlen(digits), DOCKER_ID_SIZE - 1);
		CHECK(strncmp(digits, rows[i].digits, strlen(rows[i].digits)) == 0);
		CHECK(docker_is_digits(digits));
		CHECK(docker_id_back(digits, back));
		CHECK_STR(back, rows[i].id);
	}
}

TEST(what_is_no_id)
{
	static const char *const ids[] = { "", "sb_", "px_00000000000000000000000000",
		                           "sb_0000000000000000000000000u",
		                           "sb_0000000000000000000000000" };
	static const char *const digits[] = {
		"",
		"abc",
		"000000000000000000000000000000000000000000000000000000000000000g",
		"0000000000000000000000000000000000000000000000000000000000000001", /* not a zero */
		"0000000000000000000000000000000010000000000000000000000000000000", /* not two zeros
		                                                                     */
	};
	char out[NAME_TEXT_MAX], made[DOCKER_ID_SIZE];

	for (size_t i = 0; i < COUNT(ids); i++) {
		docker_id_of(ids[i], made);
		CHECK_STR(made, "");
	}
	for (size_t i = 0; i < COUNT(digits); i++)
		CHECK(!docker_id_back(digits[i], out));
}
