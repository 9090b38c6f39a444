#include "store/idem.h"

#include "unit/store_fixture.h"

static struct idem_request request_of(const char *key)
{
	return (struct idem_request){
		.tenant = "t1", .key = key, .route_hash = { 1 }, .body_hash = { 2 }, .now_ms = 1000
	};
}

static struct {
	enum idem_state state;
	int status;
	char body[32];
	size_t body_bytes;
	int64_t created_ms;
} found;

static void look(void *arg, const struct store_answer *a)
{
	hear(arg, a);
	found.state = a->idem->state;
	found.status = a->idem->status;
	found.body_bytes = a->idem->body_bytes;
	found.created_ms = a->idem->created_ms;
	if (a->idem->body_bytes && a->idem->body_bytes < sizeof found.body)
		memcpy(found.body, a->idem->body, a->idem->body_bytes);
}

static enum idem_state begin(struct store *s, const struct idem_request *r)
{
	struct err e = { 0 };

	MUST(STORE_OK, store_idem_begin(s, r, (struct store_call){ .done = look }, &e));
	return found.state;
}

TEST(done_once_answered_for_a_day)
{
	static const char body[] = "{\"id\":\"\0x\"}";
	struct err e = { 0 };
	struct idem_request r = request_of("k");
	struct idem_result done = { "t1", "k", 201, body, sizeof body };

	dir_make();
	struct store *s = must_open();

	CHECK_INT(begin(s, &r), IDEM_NEW);
	CHECK_INT(begin(s, &r), IDEM_IN_PROGRESS);
	MUST(STORE_OK, store_idem_finish(s, &done, HEAR, &e));
	r.now_ms += IDEM_KEEP_MS - 1;
	CHECK_INT(begin(s, &r), IDEM_DONE);
	CHECK_INT(found.status, 201);
	CHECK_INT(found.body_bytes, sizeof body);
	CHECK(memcmp(found.body, body, sizeof body) == 0);
	CHECK_INT(found.created_ms, 1000);
	r.now_ms++;
	CHECK_INT(begin(s, &r), IDEM_NEW);
	store_close(s);
	dir_remove();
}

TEST(another_request_with_the_key_is_a_mismatch)
{
	struct err e = { 0 };
	struct idem_request r = request_of("k"), route = r, body = r, tenant = r;
	struct idem_result done = { "t1", "k", 200, NULL, 0 };

	route.route_hash[0] = 9;
	body.body_hash[31] = 9;
	tenant.tenant = "t2";
	dir_make();
	struct store *s = must_open();

	CHECK_INT(begin(s, &r), IDEM_NEW);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(begin(s, &route), IDEM_MISMATCH);
		CHECK_INT(begin(s, &body), IDEM_MISMATCH);
		if (i == 0)
			MUST(STORE_OK, store_idem_finish(s, &done, HEAR, &e));
	}
	CHECK_INT(begin(s, &r), IDEM_DONE);
	CHECK_INT(found.body_bytes, 0);
	CHECK_INT(begin(s, &tenant), IDEM_NEW);
	store_close(s);
	dir_remove();
}

static int n_new, n_in_progress;

static void count(void *arg, const struct store_answer *a)
{
	(void)arg;
	n_new += a->idem->state == IDEM_NEW;
	n_in_progress += a->idem->state == IDEM_IN_PROGRESS;
}

TEST(of_many_at_once_one_is_new)
{
	struct err e = { 0 };
	struct idem_request r = request_of("k");

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < 300; i++)
		CHECK_INT(store_idem_begin(s, &r, (struct store_call){ .done = count }, &e), 0);
	settle(s);
	CHECK_INT(n_new, 1);
	CHECK_INT(n_in_progress, 299);
	store_close(s);
	dir_remove();
}

TEST(what_a_dead_daemon_began_is_interrupted)
{
	struct err e = { 0 };
	struct idem_request r = request_of("k");
	struct idem_result done = { "t1", "k", 200, "x", 1 };

	dir_make();
	pid_t child = fork();

	if (child == 0) {
		struct store *s = must_open();

		CHECK_INT(begin(s, &r), IDEM_NEW);
		kill(getpid(), SIGKILL);
	}
	CHECK_INT(waitpid(child, NULL, 0), child);
	struct store *s = must_open();

	CHECK(!store_was_clean(s));
	CHECK_INT(begin(s, &r), IDEM_INTERRUPTED);
	MUST(STORE_CONFLICT, store_idem_finish(s, &done, HEAR, &e));
	CHECK_INT(begin(s, &r), IDEM_INTERRUPTED);
	MUST(STORE_OK, store_idem_abandon(s, "t1", "k", HEAR, &e));
	CHECK_INT(begin(s, &r), IDEM_NEW);
	store_close(s);
	dir_remove();
}

TEST(abandoned_is_free_and_done_is_not_abandoned)
{
	struct err e = { 0 };
	struct idem_request r = request_of("k");
	struct idem_result done = { "t1", "k", 200, "x", 1 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_CONFLICT, store_idem_finish(s, &done, HEAR, &e));
	MUST(STORE_CONFLICT, store_idem_abandon(s, "t1", "k", HEAR, &e));
	CHECK_INT(begin(s, &r), IDEM_NEW);
	MUST(STORE_OK, store_idem_abandon(s, "t1", "k", HEAR, &e));
	CHECK_INT(begin(s, &r), IDEM_NEW);
	MUST(STORE_OK, store_idem_finish(s, &done, HEAR, &e));
	MUST(STORE_CONFLICT, store_idem_finish(s, &done, HEAR, &e));
	MUST(STORE_CONFLICT, store_idem_abandon(s, "t1", "k", HEAR, &e));
	CHECK_INT(begin(s, &r), IDEM_DONE);
	store_close(s);
	dir_remove();
}

TEST(purge_forgets_the_old)
{
	struct err e = { 0 };
	char key[32];
	int64_t total = 0;

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < STORE_PURGE_ROWS + 20; i++) {
		snprintf(key, sizeof key, "k%d", i);
		struct idem_request r = request_of(key);

		r.now_ms += i < 10 ? 5000 : 0;
		CHECK_INT(store_idem_begin(s, &r, (struct store_call){ 0 }, &e), 0);
	}
	do {
		MUST(STORE_OK, store_idem_purge(s, 1000 + IDEM_KEEP_MS, HEAR, &e));
		CHECK(heard.rows <= STORE_PURGE_ROWS);
		total += heard.rows;
	} while (heard.rows);
	CHECK_INT(total, STORE_PURGE_ROWS + 10);
	struct idem_request kept = request_of("k0");

	CHECK_INT(begin(s, &kept), IDEM_IN_PROGRESS);
	store_close(s);
	dir_remove();
}

TEST(names_and_sizes_are_bounded)
{
	struct err e = { 0 };
	char key[STORE_NAME_MAX + 2];
	struct idem_request r = request_of("");
	struct idem_result done = { "t1", "k", 200, "x", STORE_BODY_MAX + 1 };

	memset(key, 'k', sizeof key);
	key[sizeof key - 1] = '\0';
	dir_make();
	struct store *s = must_open();

	REFUSED(store_idem_begin(s, &r, HEAR, &e), "a tenant and a text");
	r.key = key;
	REFUSED(store_idem_begin(s, &r, HEAR, &e), "at most 256 bytes");
	REFUSED(store_idem_finish(s, &done, HEAR, &e), "at most 5242880 bytes");
	REFUSED(store_idem_abandon(s, NULL, "k", HEAR, &e), "a tenant and a text");
	store_close(s);
	dir_remove();
}
