#include "wire/tree.h"

#include "test.h"

#define HASH "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

static unsigned char buf[TREE_PACKET_MAX];

TEST(a_request_is_read_as_it_was_built)
{
	const struct tree_ask ask = {
		.id = 7,
		.flags = TREE_HAS_MODE | TREE_ONLY_NEW,
		.request = { .verb = TREE_WRITE, .mode = 0644, .from = UINT64_MAX, .time_ms = 5 },
		.path = { "a/\xff b", 5 },
		.match = span_of(HASH),
		.body = { "x\0y", 3 },
	};
	struct tree_packet p;
	struct err e;
	size_t taken = 0;
	int n = tree_ask_build(&ask, buf, &taken, &e);

	CHECK(n > 0);
	CHECK_INT((long long)taken, 3);
	CHECK_INT(tree_packet_parse(buf, (size_t)n, &p, &e), 0);
	CHECK_INT(p.head.type, TREE_REQUEST);
	CHECK_INT(p.head.id, 7);
	CHECK_INT(p.head.flags, TREE_HAS_MODE | TREE_ONLY_NEW | TREE_LAST);
	CHECK_INT(p.request.verb, TREE_WRITE);
	CHECK_INT(p.request.mode, 0644);
	CHECK(p.request.from == UINT64_MAX);
	CHECK(p.path.len == 5 && memcmp(p.path.at, "a/\xff b", 5) == 0);
	CHECK(span_is(p.match, HASH));
	CHECK(p.data.len == 3 && memcmp(p.data.at, "x\0y", 3) == 0);
}

TEST(a_long_body_goes_on_in_pieces)
{
	static char body[3 * TREE_PACKET_MAX];
	struct tree_ask ask = { .request = { .verb = TREE_WRITE },
		                .path = span_of("p"),
		                .body = { body, sizeof body } };
	struct tree_packet p;
	struct err e;
	size_t taken = 0;

	CHECK_INT(tree_ask_build(&ask, buf, &taken, &e), TREE_PACKET_MAX);
	CHECK(taken > 0 && taken < TREE_PACKET_MAX);
	CHECK_INT(tree_packet_parse(buf, TREE_PACKET_MAX, &p, &e), 0);
	CHECK_INT(p.head.flags & TREE_LAST, 0);

	struct tree_head head = { TREE_BODY, TREE_LAST, 0, TREE_PIECE_MAX };
	size_t n = tree_piece_build(head, body, buf);

	CHECK_INT((long long)n, TREE_PACKET_MAX);
	CHECK_INT(tree_packet_parse(buf, n, &p, &e), 0);
	CHECK_INT((long long)p.data.len, (long long)TREE_PIECE_MAX);

	ask.body.len = 0;
	ask.has_more = true;
	n = (size_t)tree_ask_build(&ask, buf, &taken, &e);
	CHECK_INT(tree_packet_parse(buf, n, &p, &e), 0);
	CHECK_INT(p.head.flags & TREE_LAST, 0);
}

TEST(a_request_that_cannot_be_is_not_built)
{
	static char long_path[PATH_TEXT_MAX];
	memset(long_path, 'x', sizeof long_path);
	const struct tree_ask cases[] = {
		{ .path = { "a\0b", 3 } },
		{ .path = { long_path, PATH_TEXT_MAX } },
		{ .match = span_of("1234") },
		{ .match = { HASH "0", 65 } },
		{ .match =
		      span_of("5891B5B522D5DF086D0FF0B110FBD9D21BB4FC7163AF34D08286A2E846F6BE03") },
		{ .match = { "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be0\0",
		             64 } },
	};
	struct err e;
	size_t taken;

	for (size_t i = 0; i < COUNT(cases); i++) {
		CHECK_INT(tree_ask_build(&cases[i], buf, &taken, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
	}
}

static size_t build(uint32_t type, const void *what, size_t n, uint32_t len)
{
	struct tree_head head = { type, 0, 1, len };

	memcpy(buf, &head, sizeof head);
	if (n > 0)
		memcpy(buf + sizeof head, what, n);
	return sizeof head + n;
}

/* Both ends read what the other may have made up. */
TEST(packets_that_do_not_fit_are_refused)
{
	struct tree_packet p;
	struct tree_request r = { .verb = TREE_VERBS };
	struct tree_answer a = { .code = TREE_CODES };
	struct err e;

	for (size_t n = 0; n < sizeof(struct tree_head); n++)
		CHECK_INT(tree_packet_parse(buf, n, &p, &e), -1);
	CHECK_INT(tree_packet_parse(buf, TREE_PACKET_MAX + 1, &p, &e), -1);
	CHECK_INT(tree_packet_parse(buf, build(TREE_TYPES, NULL, 0, 0), &p, &e), -1);
	CHECK_INT(tree_packet_parse(buf, build(TREE_BODY, "abc", 3, 4), &p, &e), -1);
	CHECK_INT(tree_packet_parse(buf, build(TREE_BODY, "abc", 3, 2), &p, &e), -1);
	CHECK_INT(tree_packet_parse(buf, build(TREE_BODY, "abc", 3, UINT32_MAX), &p, &e), -1);
	CHECK_INT(tree_packet_parse(buf, build(TREE_BODY, "abc", 3, 3), &p, &e), 0);
	CHECK_INT(tree_packet_parse(buf, build(TREE_REQUEST, &r, sizeof r - 1, 0), &p, &e), -1);
	CHECK_INT(tree_packet_parse(buf, build(TREE_REQUEST, &r, sizeof r, 0), &p, &e), -1);
	r = (struct tree_request){ .path_len = UINT32_MAX, .match_len = 2 };
	CHECK_INT(tree_packet_parse(buf, build(TREE_REQUEST, &r, sizeof r, 0), &p, &e), -1);
	r = (struct tree_request){ .match_len = UINT32_MAX };
	CHECK_INT(tree_packet_parse(buf, build(TREE_REQUEST, &r, sizeof r, 0), &p, &e), -1);
	CHECK_INT(tree_packet_parse(buf, build(TREE_ANSWER, &a, sizeof a, 0), &p, &e), -1);
	a = (struct tree_answer){ .content = TREE_CONTENTS };
	CHECK_INT(tree_packet_parse(buf, build(TREE_END, &a, sizeof a, 0), &p, &e), -1);
	a = (struct tree_answer){ .hash = "no hash" };
	CHECK_INT(tree_packet_parse(buf, build(TREE_END, &a, sizeof a, 0), &p, &e), -1);
	memset(a.hash, 'a', sizeof a.hash); /* no NUL */
	CHECK_INT(tree_packet_parse(buf, build(TREE_END, &a, sizeof a, 0), &p, &e), -1);
	a = (struct tree_answer){ .hash = HASH };
	CHECK_INT(tree_packet_parse(buf, build(TREE_END, &a, sizeof a, 0), &p, &e), 0);
}

TEST(every_code_has_a_name_and_a_status_of_http)
{
	for (int i = 0; i < TREE_CODES; i++) {
		CHECK(tree_code_name((enum tree_code)i)[0]);
		CHECK(tree_code_status((enum tree_code)i) >= (i == TREE_OK ? 200 : 400));
	}
	CHECK_STR(tree_code_name((enum tree_code)1000), "backend_error");
	CHECK_INT(tree_code_status((enum tree_code) - 1), 500);
	CHECK_STR(tree_verb_name((enum tree_verb) - 1), "?");
	CHECK_STR(tree_content_type((enum tree_content)99), "application/octet-stream");
}

TEST(a_listener_has_numbers_in_range)
{
	struct tree_listener all[3] = { { .port = 80 }, { .port = 65535, .is_v6 = 1 } }, one;
	struct span data = { (const char *)all, 2 * sizeof all[0] + 5 };

	CHECK(tree_listener_at(data, 0, &one));
	CHECK_INT(one.port, 80);
	CHECK(tree_listener_at(data, 1, &one));
	CHECK_INT(one.is_v6, 1);
	CHECK(!tree_listener_at(data, 2, &one)); /* not whole */
	CHECK(!tree_listener_at((struct span){ NULL, 0 }, 0, &one));
	all[0].port = 0;
	CHECK(!tree_listener_at(data, 0, &one));
	all[0] = (struct tree_listener){ .port = 65536 };
	CHECK(!tree_listener_at(data, 0, &one));
	all[0] = (struct tree_listener){ .port = 1, .is_v6 = 2 };
	CHECK(!tree_listener_at(data, 0, &one));
}
