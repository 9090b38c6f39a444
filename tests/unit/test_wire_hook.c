#include "wire/hook.h"

#include "test.h"

TEST(what_is_to_be_sent_has_an_id_and_a_text)
{
	static const struct {
		const char *id;
		uint32_t type, zero;
		const char *body;
		size_t cut; /* bytes that are missing at the end */
		bool is_good;
	} rows[] = {
		{ "ap_1.pending", HOOK_SEND, 0, "{}", 0, true },
		{ "", HOOK_SEND, 0, "{}", 0, false },
		{ "a\r\nb: c", HOOK_SEND, 0, "{}", 0, false },
		{ "ap 1", HOOK_SEND, 0, "{}", 0, false },
		{ "ap_1", HOOK_END, 0, "{}", 0, false },
		{ "ap_1", HOOK_SEND, 1, "{}", 0, false },
		{ "ap_1", HOOK_SEND, 0, "{}", 1, false }, /* it has no end */
		{ "ap_1", HOOK_SEND, 0, "{}", 3, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		union hook_packet p = { .send = { .type = rows[i].type, .zero = rows[i].zero } };
		size_t n = sizeof p.send + strlen(rows[i].body) + 1 - rows[i].cut;

		snprintf(p.send.id, sizeof p.send.id, "%s", rows[i].id);
		memcpy(p.send.body, rows[i].body, strlen(rows[i].body) + 1);
		CHECK_INT(hook_send_check(&p.send, n), rows[i].is_good);
	}
}

TEST(a_nul_in_a_text_or_a_name_without_end_is_refused)
{
	union hook_packet p = { .send = { .type = HOOK_SEND, .id = "ap_1" } };

	memcpy(p.send.body, "{}\0}", 5);
	CHECK(!hook_send_check(&p.send, sizeof p.send + 5));
	CHECK(hook_send_check(&p.send, sizeof p.send + 3));
	memset(p.send.id, 'a', sizeof p.send.id);
	CHECK(!hook_send_check(&p.send, sizeof p.send + 3));
}

TEST(an_end_is_one)
{
	const struct hook_end good = { .type = HOOK_END, .status = 204, .num = 3 };
	struct hook_end bad = good;

	CHECK(hook_end_check(&good, sizeof good));
	CHECK(!hook_end_check(&good, sizeof good - 1));
	bad.type = HOOK_SEND;
	CHECK(!hook_end_check(&bad, sizeof bad));
	bad = good;
	bad.is_given_up = 2;
	CHECK(!hook_end_check(&bad, sizeof bad));
}
