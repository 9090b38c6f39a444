#include "core/gate.h"
#include "test.h"

static const struct {
	struct gate_ask ask;
	enum approval_kind kind;
	const char *what;
} questions[] = {
	{ { .kind = GATE_ASK_CONNECT, .name = "a.test", .port = 443 },
	  APPROVAL_NET,
	  "connect to a.test:443" },
	{ { .kind = GATE_ASK_REQUEST,
	    .name = "a.test",
	    .port = 443,
	    .method = "PUT",
	    .path = "/x" },
	  APPROVAL_PUBLISH,
	  "send PUT a.test:443/x" },
	{ { .kind = GATE_ASK_SECRET,
	    .name = "a.test",
	    .port = 8443,
	    .method = "GET",
	    .path = "/x",
	    .secret = "s" },
	  APPROVAL_SECRET,
	  "use the secret s for GET a.test:8443/x" },
	{ { .kind = GATE_ASK_SECRET,
	    .name = "a.test",
	    .port = 443,
	    .method = "POST",
	    .path = "/x",
	    .query = "to=me",
	    .secret = "s",
	    .content = { .body_bytes = 3, .body_hash = "abc" } },
	  APPROVAL_SECRET,
	  "use the secret s for POST a.test:443/x?to=me with a body of 3 bytes, "
	  "sha256:abc" },
	{ { .kind = GATE_ASK_REQUEST,
	    .ask = 9,
	    .name = "a.test",
	    .port = 443,
	    .method = "PUT",
	    .path = "/x",
	    .content = { .body_bytes = 7, .body_hash = "abc", .is_partial = 1 } },
	  APPROVAL_PUBLISH,
	  "send PUT a.test:443/x with a body of more than 7 bytes, of which only the first "
	  "7 were "
	  "looked at: sha256:abc (number 9)" },
	{ { .kind = GATE_ASK_REQUEST,
	    .ask = 9,
	    .name = "a.test",
	    .port = 443,
	    .method = "GET",
	    .path = "/x",
	    .content = { .is_stream = 1 } },
	  APPROVAL_PUBLISH,
	  "send GET a.test:443/x and a stream behind it that nobody looks at (number 9)" },
	/* whatever the first request is, the next is not asked for */
	{ { .kind = GATE_ASK_SECRET,
	    .name = "a.test",
	    .port = 443,
	    .method = "GET",
	    .path = "/x",
	    .secret = "s",
	    .is_first = 1 },
	  APPROVAL_SECRET,
	  "use the secret s for a.test:443" },
	{ { .kind = GATE_ASK_PUSH,
	    .name = "a.test",
	    .port = 443,
	    .path = "/acme/app.git/git-receive-pack",
	    .refs = "refs/heads/main refs/tags/v1",
	    .secret = "s" },
	  APPROVAL_PUSH,
	  "push to refs/heads/main refs/tags/v1 of a.test:443/acme/app.git" },
};

TEST(the_same_question_is_the_same_words_and_another_one_is_not)
{
	for (size_t i = 0; i < COUNT(questions); i++) {
		AUTO(str_done) struct str what = { .max = 4096 }, hint = { .max = 4096 };

		CHECK_INT(gate_words(&questions[i].ask, &what, &hint), questions[i].kind);
		CHECK_STR(str_text(&what), questions[i].what);
		CHECK(hint.len > 0);
	}
}

TEST(of_what_was_cut_no_two_are_the_same)
{
	for (int is_push = 0; is_push < 2; is_push++) {
		struct gate_ask a = { .kind = is_push ? GATE_ASK_PUSH : GATE_ASK_REQUEST,
			              .name = "a.test",
			              .port = 443,
			              .ask = 7 };
		AUTO(str_done) struct str one = { .max = 4096 }, two = { .max = 4096 };
		AUTO(str_done) struct str unused = { .max = 8192 };

		memset(is_push ? a.refs : a.path, 'x',
		       is_push ? sizeof a.refs - 1 : sizeof a.path - 1);
		(void)gate_words(&a, &one, &unused);
		a.ask = 8;
		(void)gate_words(&a, &two, &unused);
		CHECK(strcmp(str_text(&one), str_text(&two)) != 0);
	}
}

TEST(a_question_that_lacks_a_part_of_the_request_is_known_as_cut)
{
	struct gate_ask a = { .kind = GATE_ASK_REQUEST, .path = "/x", .query = "y" };

	CHECK(!gate_words_are_cut(&a));
	memset(a.query, 'y', sizeof a.query - 1);
	CHECK(gate_words_are_cut(&a));
	a.query[0] = '\0';
	memset(a.path, 'x', sizeof a.path - 1);
	CHECK(gate_words_are_cut(&a));
}
