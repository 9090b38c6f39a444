#include "gate/gitreq.h"

#include "test.h"

#define OLD "0000000000000000000000000000000000000000"
#define NEW "1111111111111111111111111111111111111111"

static struct bind bound(void)
{
	static const char text[] = "{\"hosts\":[\"a.test\"],\"git\":[\"acme/app\",\"one\"],"
				   "\"push\":[\"refs/heads/agent/*\",\"refs/tags/v1\"]}";
	struct bind b = { 0 };
	struct err e = { 0 };

	CHECK_INT(bind_read(&b, text, sizeof text - 1, &e), 0);
	return b;
}

TEST(which_repository_and_what_with_it)
{
	static const struct {
		const char *method, *path, *query;
		enum git_verb verb;
	} rows[] = {
		{ "GET", "/acme/app.git/info/refs", "service=git-upload-pack", GIT_FETCH },
		{ "GET", "/acme/app/info/refs", "service=git-upload-pack", GIT_FETCH },
		{ "POST", "/acme/app.git/git-upload-pack", "", GIT_FETCH },
		{ "GET", "/one/info/refs", "service=git-receive-pack", GIT_PUSH_ASK },
		{ "POST", "/one.git/git-receive-pack", "", GIT_PUSH },
		{ "GET", "/acme/app.git/info/refs", "", GIT_NOT },
		{ "GET", "/acme/app.git/info/refs", "service=git-upload-pack&a=b", GIT_NOT },
		{ "GET", "/acme/app.git/info/refs", "service=git-upload-archive", GIT_NOT },
		{ "POST", "/acme/app.git/info/refs", "service=git-upload-pack", GIT_NOT },
		{ "GET", "/acme/app.git/git-receive-pack", "", GIT_NOT },
		{ "POST", "/acme/app2.git/git-receive-pack", "", GIT_NOT },
		{ "POST", "/acme/app.gitx/git-receive-pack", "", GIT_NOT },
		{ "POST", "/acme/git-receive-pack", "", GIT_NOT },
		{ "POST", "/x/acme/app.git/git-receive-pack", "", GIT_NOT },
		{ "GET", "/acme/app.git/HEAD", "", GIT_NOT },
		{ "GET", "/acme/app.git/objects/info/packs", "", GIT_NOT },
	};
	AUTO(bind_done) struct bind b = bound();

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct git_request r = { rows[i].method, rows[i].path, span_of(rows[i].query) };

		CHECK_INT(git_verb_of(&b, &r), rows[i].verb);
	}
}

static void line(struct str *out, const char *text, size_t n)
{
	str_addf(out, "%04zx", n + 4);
	str_addn(out, text, n);
}

/* In pieces of this size: does all of it go on? Nothing does before it was judged. */
static bool goes_on(const struct str *body, size_t piece)
{
	AUTO(bind_done) struct bind b = bound();
	AUTO(str_done) struct str out = { .max = 1 << 20 };
	struct gitpush p = { 0 };
	bool is_good = true;

	gitpush_begin(&p, &b);
	for (size_t at = 0; is_good && at < body->len; at += piece) {
		size_t n = body->len - at < piece ? body->len - at : piece;

		is_good = gitpush_feed(&p, (struct span){ body->data + at, n }, &out);
		CHECK(p.is_judged || out.len == 0);
	}
	is_good = is_good && gitpush_end(&p);
	if (is_good)
		CHECK(out.len == body->len && memcmp(out.data, body->data, out.len) == 0);
	gitpush_done(&p);
	return is_good;
}

TEST(which_refs_a_push_is_for)
{
	static const struct {
		const char *lines[3];
		bool may;
	} rows[] = {
		{ { OLD " " NEW " refs/heads/agent/a" }, true },
		{ { NEW " " OLD " refs/heads/agent/a", OLD " " NEW " refs/tags/v1" }, true },
		{ { "shallow " NEW, OLD " " NEW " refs/heads/agent/a\n" }, true },
		{ { NULL }, true }, /* a question whether it may at all */
		{ { OLD " " NEW " refs/heads/main" }, false },
		{ { OLD " " NEW " refs/heads/agent/a", OLD " " NEW " refs/heads/main" }, false },
		{ { OLD " " NEW " refs/heads/agent/a/b" }, false },
		{ { OLD " " NEW " refs/heads/agent/" }, false },
		{ { OLD " " NEW " refs/heads/agent/../main" }, false },
		{ { OLD " " NEW " refs/heads/agent" }, false },
		{ { OLD " " NEW " HEAD" }, false },
		{ { OLD " " NEW " refs/tags/v1 " }, false },
		{ { OLD " " NEW }, false },
		{ { OLD " refs/heads/agent/a" }, false },
		{ { "push-cert" }, false },
		{ { "shallow x" }, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str body = { .max = 1 << 16 };

		for (size_t k = 0; k < 3 && rows[i].lines[k]; k++)
			line(&body, rows[i].lines[k], strlen(rows[i].lines[k]));
		str_add(&body, "0000PACK and 0011 whatever");
		for (size_t piece = 1; piece < 70; piece += 3)
			CHECK(goes_on(&body, piece) == rows[i].may);
	}
}

TEST(a_push_that_a_person_is_asked_for_is_held_whole)
{
	static const char text[] =
	    "{\"hosts\":[\"a.test\"],\"git\":[\"one\"],\"push\":[\"refs/heads/agent/*\"],"
	    "\"push_ask\":[\"refs/heads/*\"]}";
	static const struct {
		const char *lines[3], *wanted;
		bool may;
	} rows[] = {
		{ { OLD " " NEW " refs/heads/agent/a" }, "", true },
		{ { OLD " " NEW " refs/heads/main" }, "refs/heads/main", true },
		{ { OLD " " NEW " refs/heads/b", OLD " " NEW " refs/heads/agent/a",
		    OLD " " NEW " refs/heads/c" },
		  "refs/heads/b refs/heads/c",
		  true },
		{ { OLD " " NEW " refs/heads/main", OLD " " NEW " refs/tags/x" }, NULL, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str body = { .max = 1 << 16 };
		AUTO(str_done) struct str out = { .max = 1 << 16 };
		AUTO(bind_done) struct bind b = { 0 };
		struct gitpush p = { 0 };
		struct err e = { 0 };
		size_t at = 0;
		bool is_good = true;

		CHECK_INT(bind_read(&b, text, sizeof text - 1, &e), 0);
		for (size_t k = 0; k < 3 && rows[i].lines[k]; k++)
			line(&body, rows[i].lines[k], strlen(rows[i].lines[k]));
		str_add(&body, "0000PACK");
		gitpush_begin(&p, &b);
		for (; is_good && !p.is_waiting && at < body.len; at++)
			is_good = gitpush_feed(&p, (struct span){ body.data + at, 1 }, &out);
		CHECK(is_good == rows[i].may);
		if (is_good)
			CHECK_STR(str_text(&p.wanted), rows[i].wanted);
		CHECK(!is_good || p.is_waiting == (rows[i].wanted[0] != '\0'));
		if (p.is_waiting) {
			CHECK(out.len == 0 && !gitpush_end(&p));
			gitpush_go_on(&p, &out);
			CHECK(gitpush_end(&p) && gitpush_feed(&p, span_of("PACK"), &out));
			CHECK_STR(str_text(&out), str_text(&body));
		}
		gitpush_done(&p);
	}
}

/* What the client can stands behind a NUL of the first line; a NUL does not hide the rest of a ref.
 */
TEST(behind_the_ref)
{
	static const char good[] = OLD " " NEW " refs/heads/agent/a\0 report-status agent=git";
	static const char bad[] = OLD " " NEW " refs/heads/main\0refs/heads/agent/a";
	AUTO(str_done) struct str a = { .max = 1 << 16 };
	AUTO(str_done) struct str b = { .max = 1 << 16 };

	line(&a, good, sizeof good - 1);
	str_add(&a, "0000");
	CHECK(goes_on(&a, 7));
	line(&b, bad, sizeof bad - 1);
	str_add(&b, "0000");
	CHECK(!goes_on(&b, 7));
}

TEST(what_is_no_push_does_not_go_on)
{
	static const char *const bodies[] = { "",     "000",      "0001",     "0003", "zzzz",
		                              "0004", "0008abcd", "00ffabcd", "PACK" };

	for (size_t i = 0; i < COUNT(bodies); i++) {
		AUTO(str_done) struct str body = { .max = 1 << 16 };

		str_add(&body, bodies[i]);
		CHECK(!goes_on(&body, 1));
		CHECK(!goes_on(&body, 100));
	}
}

TEST(commands_without_end_are_cut)
{
	AUTO(str_done) struct str body = { .max = 1 << 20 };
	static const char one[] = OLD " " NEW " refs/heads/agent/a";

	while (body.len <= 2ul * GIT_COMMANDS_MAX)
		line(&body, one, sizeof one - 1);
	CHECK(!goes_on(&body, 4096));
}

TEST(what_git_asks_for)
{
	static const struct {
		const char *path;
		bool is_git;
	} rows[] = {
		{ "/a/b.git/info/refs", true },  { "/a/b/git-upload-pack", true },
		{ "/a/git-receive-pack", true }, { "/repos/a/b/pulls", false },
		{ "/info/refs", false },         { "", false },
		{ "/a/info/refs/x", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK(git_path_is(rows[i].path) == rows[i].is_git);
}
