#include "hook/sign.h"

#include "test.h"

/* As the text of Standard Webhooks has it. */
TEST(signed_as_others_verify_it)
{
	static const char key_text[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
	static const char body[] = "{\"test\": 2432232314}";
	AUTO(str_done) struct str out = { .max = 256 };
	uint8_t key[SIGN_KEY_MAX];
	struct err e = { 0 };
	int n = sign_key(span_of(key_text), key, &e);

	CHECK_INT(n, 24);
	sign_text((struct span){ (const char *)key, (size_t)n }, "msg_p5jXN8AQM9LWM0D4loKWxJek",
	          1614265330, span_of(body), &out);
	CHECK_STR(str_text(&out), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(keys_as_files_have_them)
{
	static const struct {
		const char *text;
		int n; /* -1: refused */
	} rows[] = {
		{ "0123456789abcdef", 16 },
		{ "0123456789abcdef\n", 16 },
		{ "0123456789abcdef\n\n", 17 },
		{ "0123456789abcde", -1 },
		{ "", -1 },
		{ "whsec_", -1 },
		{ "whsec_!!!", -1 },
		{ "whsec_c2hvcnQ=", -1 },
		{ "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", 16 },
	};
	uint8_t key[SIGN_KEY_MAX];
	char big[2 * SIGN_KEY_MAX];
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT(sign_key(span_of(rows[i].text), key, &e), rows[i].n);
	memset(big, 'a', sizeof big);
	CHECK_INT(sign_key((struct span){ big, SIGN_KEY_MAX }, key, &e), SIGN_KEY_MAX);
	CHECK_INT(sign_key((struct span){ big, SIGN_KEY_MAX + 1 }, key, &e), -1);
	CHECK_INT(sign_key((struct span){ big, sizeof big }, key, &e), -1);
}
