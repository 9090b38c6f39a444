#include "api/inner.h"

#include "test.h"

#define BIG ((size_t)3 << 20)

static struct loop loop;
static struct core core;
static struct api api;
static struct timers timers;

static struct {
	int status;
	size_t n;
	char first[64];
	int answers, gone, requests;
	uid_t uid;
	enum door door;
	int socket_fd;
} seen;

static struct request *kept;

/* ---- a server ---------------------------------------------------------------------- */

static void on_gone(struct request *r)
{
	(void)r;
	seen.gone++;
	kept = NULL;
	loop.is_done = true;
}

static void on_head(struct request *r)
{
	r->body_mode = BODY_WHOLE;
	r->body_max = 2 * BIG;
}

static void on_request(struct request *r)
{
	const struct span *token = http_header(r->head, "Authorization");

	seen.requests++;
	seen.uid = r->peer_uid;
	seen.door = r->door;
	seen.socket_fd = r->socket_fd;
	if (span_is(r->path, "/echo")) {
		reply(r, 200, "text/plain", r->body.at, r->body.len, NULL);
	} else if (span_is(r->path, "/token")) {
		reply(r, 200, NULL, token ? token->at : "", token ? token->len : 0, NULL);
	} else if (span_is(r->path, "/stream")) {
		reply_begin(r, 201, "text/plain", -1, NULL);
		reply_write(r, "one ", 4);
		reply_write(r, "two", 3);
		reply_end(r);
	} else if (span_is(r->path, "/cut")) {
		reply_begin(r, 200, "text/plain", 10, NULL);
		reply_write(r, "half", 4);
		reply_abort(r);
	} else if (span_is(r->path, "/never")) {
		r->gone = on_gone;
		kept = r;
		loop.is_done = true;
	} else {
		reply(r, 204, NULL, NULL, 0, NULL);
	}
}

static const struct server_ops ops = { .on_head = on_head, .on_request = on_request };

static void begin(void)
{
	struct err e = { 0 };

	CHECK_INT(loop_init(&loop), 0);
	CHECK_INT(timers_init(&timers, &loop), 0);
	core.loop = &loop;
	api = (struct api){ .core = &core,
		            .server = server_new(&loop, &ops, (struct server_limits){ 0 }, &e) };
	CHECK(api.server);
}

static void end(void)
{
	server_free(api.server);
	timers_done(&timers, &loop);
	loop_close(&loop);
}

/* ---- requests ---------------------------------------------------------------------- */

static void came(void *arg, int status, struct span body)
{
	(void)arg;
	seen.answers++;
	seen.status = status;
	seen.n = body.len;
	snprintf(seen.first, sizeof seen.first, "%.*s", (int)(body.len > 60 ? 60 : body.len),
	         body.at);
	loop.is_done = true;
}

static struct inner *ask(const char *method, const char *target, struct span body)
{
	struct inner_as as = { .peer = { DOOR_UNIX, 4711, 4712, -1 }, .authorization = NULL };

	loop.is_done = false;
	return inner_call(&api, &as,
	                  &(struct inner_ask){ .method = method, .target = target, .body = body },
	                  came, NULL);
}

TEST(answers_of_every_kind_come_whole)
{
	static const struct {
		const char *method, *target, *body;
		int status;
		const char *want;
	} rows[] = {
		{ "POST", "/echo", "hello", 200, "hello" },
		{ "POST", "/echo", "", 200, "" },
		{ "PUT", "/echo", "", 200, "" },
		{ "GET", "/stream", "", 201, "one two" },
		{ "DELETE", "/nothing", "", 204, "" },
		{ "GET", "/cut", "", 0, NULL },
	};

	begin();
	for (size_t i = 0; i < COUNT(rows); i++) {
		seen.answers = 0;
		CHECK(ask(rows[i].method, rows[i].target, span_of(rows[i].body)));
		CHECK_INT(seen.answers, 0); /* never at once */
		CHECK_INT(loop_run(&loop), 0);
		CHECK_INT(seen.answers, 1);
		CHECK_INT(seen.status, rows[i].status);
		if (rows[i].want)
			CHECK_STR(seen.first, rows[i].want);
	}
	end();
}

TEST(what_is_larger_than_a_socket_takes_comes_whole_too)
{
	char *big = mem_alloc(BIG);

	begin();
	memset(big, 'x', BIG);
	CHECK(ask("POST", "/echo", (struct span){ big, BIG }));
	CHECK_INT(loop_run(&loop), 0);
	CHECK_INT(seen.status, 200);
	CHECK_INT((long)seen.n, (long)BIG);
	free(big);
	end();
}

TEST(the_server_sees_who_it_is_for)
{
	struct inner_as as = { .peer = { DOOR_TCP, 7, 8, 0 },
		               .authorization = mem_strdup("Bearer of news") };

	begin();
	CHECK(ask("GET", "/nothing", span_of("")));
	CHECK_INT(loop_run(&loop), 0);
	CHECK_INT(seen.uid, 4711);
	CHECK_INT(seen.door, DOOR_UNIX);
	loop.is_done = false;
	CHECK(inner_call(&api, &as, &(struct inner_ask){ .method = "GET", .target = "/token" },
	                 came, NULL));
	CHECK_INT(loop_run(&loop), 0);
	CHECK_STR(seen.first, "Bearer of news");
	CHECK_INT(seen.door, DOOR_TCP);
	CHECK(seen.socket_fd > 2); /* a copy of the client's own */
	inner_as_done(&as);
	end();
}

TEST(who_hangs_up_is_gone_and_hears_nothing)
{
	begin();
	seen.answers = seen.gone = 0;
	struct inner *i = ask("GET", "/never", span_of(""));

	CHECK(i);
	CHECK_INT(loop_run(&loop), 0);
	CHECK(kept);
	inner_cancel(i);
	loop.is_done = false;
	CHECK_INT(loop_run(&loop), 0);
	CHECK_INT(seen.gone, 1);
	CHECK_INT(seen.answers, 0);
	inner_cancel(NULL);
	end();
}
