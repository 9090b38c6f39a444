#include "cli/client.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "test.h"

#define TALK_MAX (1u << 20)

/* A daemon that has learnt its answers by heart: one for each request, on as many connections as
 * the client makes. What it heard goes to `heard_fd`. */
struct stub {
	char dir[32], path[64];
	int heard_fd;
};

static bool is_whole(const struct str *in)
{
	const char *end = strstr(str_text(in), "\r\n\r\n");
	const char *length = strcasestr(str_text(in), "\r\nContent-Length: ");

	if (!end)
		return false;
	if (strcasestr(str_text(in), "chunked"))
		return strstr(end, "\r\n0\r\n\r\n") != NULL;
	return !length || in->len >= (size_t)(end + 4 - in->data) + strtoul(length + 18, NULL, 10);
}

/* False when the client has left. */
static bool hear(int fd, int heard_fd)
{
	AUTO(str_done) struct str in = { .max = TALK_MAX };
	char buf[4096];

	while (!is_whole(&in)) {
		ssize_t n = read(fd, buf, sizeof buf);

		if (n <= 0)
			return false;
		str_addn(&in, buf, (size_t)n);
	}
	str_add(&in, "\n====\n");
	return write(heard_fd, in.data, in.len) == (ssize_t)in.len;
}

static _Noreturn void serve(int listen_fd, int heard_fd, const char *const *answers)
{
	while (*answers) {
		int fd = accept(listen_fd, NULL, NULL);

		while (*answers && hear(fd, heard_fd)) {
			const char *answer = *answers++;
			bool is_last = answer[0] == '!'; /* then it hangs up */

			answer += is_last;
			/* In two pieces, so that a head may be cut. */
			(void)!write(fd, answer, strlen(answer) / 2);
			usleep(2000);
			(void)!write(fd, answer + strlen(answer) / 2,
			             strlen(answer) - strlen(answer) / 2);
			if (is_last)
				break;
		}
		close(fd);
	}
	_exit(0);
}

static void stub_start(struct stub *s, const char *const *answers)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int pipe_fds[2];

	snprintf(s->dir, sizeof s->dir, "/tmp/caisson-stub.XXXXXX");
	CHECK(mkdtemp(s->dir) != NULL);
	snprintf(s->path, sizeof s->path, "%s/api.sock", s->dir);
	snprintf(name.sun_path, sizeof name.sun_path, "%s", s->path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_INT(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
	CHECK_INT(listen(fd, 8), 0);
	CHECK_INT(pipe(pipe_fds), 0);
	if (fork() == 0)
		serve(fd, pipe_fds[1], answers);
	close(fd);
	close(pipe_fds[1]);
	s->heard_fd = pipe_fds[0];
	CHECK_INT(setenv("CAISSON_SOCKET", s->path, 1), 0);
}

/* All that it heard; the client has to be done. */
static const char *stub_end(struct stub *s)
{
	static char heard[TALK_MAX];
	size_t n = 0;
	ssize_t r;

	while ((r = read(s->heard_fd, heard + n, sizeof heard - 1 - n)) > 0)
		n += (size_t)r;
	heard[n] = '\0';
	close(s->heard_fd);
	wait(NULL);
	unlink(s->path);
	rmdir(s->dir);
	return heard;
}

#define OK(length) "HTTP/1.1 200 OK\r\nContent-Length: " length "\r\n\r\n"

TEST(requests_go_over_one_connection)
{
	static const char *const answers[] = {
		OK("8") "{\"a\": 1}", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n" OK("2") "[]",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\n{\"b\r\n4\r\n\":2}\r\n0\r\n\r\n",
		NULL
	};
	struct stub s;
	AUTO(client_done) struct client c;
	struct err e = { 0 };
	json_t *got = NULL;

	stub_start(&s, answers);
	client_init(&c);
	CHECK_INT(client_call(&c, "GET", "/v1/a", NULL, &got, &e), 0);
	CHECK_INT(json_integer_value(json_object_get(got, "a")), 1);
	json_decref(got);
	int first = c.fd;
	CHECK_INT(client_call(&c, "DELETE", "/v1/a", NULL, &got, &e), 0);
	CHECK(got == NULL);
	CHECK_INT(client_call(&c, "POST", "/v1/b", json_pack("{si}", "x", 5), &got, &e), 0);
	CHECK(json_is_array(got));
	json_decref(got);
	CHECK_INT(client_call(&c, "POST", "/v1/c", NULL, &got, &e), 0);
	CHECK_INT(json_integer_value(json_object_get(got, "b")), 2);
	json_decref(got);
	CHECK_INT(c.fd, first);
	client_done(&c);
	const char *heard = stub_end(&s);
	CHECK(strstr(heard, "GET /v1/a HTTP/1.1\r\nHost: localhost\r\n") == heard);
	CHECK(
	    strstr(heard, "Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"x\":5}"));
	CHECK(strstr(heard, "POST /v1/c HTTP/1.1\r\n") && strstr(heard, "Content-Length: 0\r\n"));
}

TEST(a_connection_that_was_closed_is_made_anew)
{
	static const char *const answers[] = { "!" OK("2") "{}", OK("2") "[]", NULL };
	struct stub s;
	AUTO(client_done) struct client c;
	struct err e = { 0 };
	json_t *got = NULL;

	stub_start(&s, answers);
	client_init(&c);
	CHECK_INT(client_call(&c, "GET", "/1", NULL, NULL, &e), 0);
	struct pollfd hung_up = { .fd = c.fd, .events = POLLIN };
	CHECK_INT(poll(&hung_up, 1, TEST_WAIT_MS), 1);
	CHECK_INT(client_call(&c, "GET", "/2", NULL, &got, &e), 0);
	CHECK(json_is_array(got));
	json_decref(got);
	client_done(&c);
	(void)stub_end(&s);
}

TEST(problems_become_errors)
{
	static const struct {
		const char *answer, *msg;
		enum err_kind kind;
	} rows[] = {
		{ "HTTP/1.1 404 Not Found\r\nContent-Length: 43\r\n\r\n"
		  "{\"code\":\"not_found\",\"detail\":\"no such thing\"}",
		  "the daemon answers 404 Not Found", ERR_INTERNAL }, /* cut by its length */
		{ "HTTP/1.1 404 Not Found\r\nContent-Length: 45\r\n\r\n"
		  "{\"code\":\"not_found\",\"detail\":\"no such thing\"}",
		  "no such thing", ERR_NOT_FOUND },
		{ "HTTP/1.1 409 Conflict\r\nContent-Length: 15\r\n\r\n{\"code\":\"busy\"}", "busy",
		  ERR_INVALID },
		{ "HTTP/1.1 503 x\r\nContent-Length: 48\r\n\r\n"
		  "{\"code\":\"sandbox_unavailable\",\"detail\":\"it sleeps\"}",
		  "the daemon answers 503 Service Unavailable", ERR_INTERNAL },
		{ "HTTP/1.1 500 x\r\nContent-Length: 2\r\n\r\n{}", "the daemon gives no reason",
		  ERR_INTERNAL },
		{ "HTTP/1.1 422 x\r\nContent-Length: 39\r\n\r\n"
		  "{\"code\":\"unenforceable\",\"detail\":\"mem x\"}",
		  "the daemon answers 422 Unprocessable Content", ERR_INTERNAL },
		{ "!HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
		  "the daemon closed the connection", ERR_INTERNAL },
		{ "!", "the daemon closed the connection", ERR_INTERNAL },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{", NULL, ERR_INTERNAL },
		{ "nonsense\r\n\r\n", NULL, ERR_INTERNAL },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *const answers[] = { rows[i].answer, NULL };
		struct stub s;
		AUTO(client_done) struct client c;
		struct err e = { 0 };

		stub_start(&s, answers);
		client_init(&c);
		CHECK_INT(client_call(&c, "GET", "/x", NULL, NULL, &e), -1);
		if (rows[i].msg)
			CHECK_STR(e.msg, rows[i].msg);
		CHECK_INT(e.kind, rows[i].kind);
		client_done(&c);
		(void)stub_end(&s);
	}
}

#define UNAVAILABLE(safe)                                                                          \
	"HTTP/1.1 503 x\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n"                               \
	"{\"code\":\"sandbox_unavailable\",\"detail\":\"away\",\"retry_safe\":" safe               \
	"}\r\n0\r\n\r\n"

TEST(what_is_safe_to_repeat_is_repeated)
{
	static const char *const answers[] = { UNAVAILABLE("true "), UNAVAILABLE("true "),
		                               OK("2") "{}", UNAVAILABLE("false"), NULL };
	struct stub s;
	AUTO(client_done) struct client c;
	struct err e = { 0 };

	stub_start(&s, answers);
	client_init(&c);
	CHECK_INT(client_call(&c, "POST", "/x", json_object(), NULL, &e), 0);
	CHECK_INT(client_call(&c, "POST", "/x", json_object(), NULL, &e), -1);
	CHECK_STR(e.msg, "away");
	client_done(&c);
	(void)stub_end(&s);
}

static ssize_t count_down(void *arg, char *buf, size_t size, struct err *e)
{
	int *left = arg;

	(void)size;
	if (*left < 0)
		return err_new(e, ERR_INVALID, "the source is dry");
	if (*left == 0)
		return 0;
	buf[0] = (char)('0' + (*left)--);
	return 1;
}

TEST(a_body_of_unknown_length_is_chunked)
{
	static const char *const answers[] = { OK("2") "{}", NULL };
	static const char *const headers[] = { "If-Match", "abc", NULL };
	struct stub s;
	AUTO(client_done) struct client c;
	struct err e = { 0 };
	int left = 3;
	struct client_ask ask = { .method = "PUT",
		                  .path = "/f",
		                  .headers = headers,
		                  .type = "application/octet-stream",
		                  .source = count_down,
		                  .arg = &left };

	stub_start(&s, answers);
	client_init(&c);
	CHECK_INT(client_json(&c, &ask, NULL, &e), 0);
	client_done(&c);
	const char *heard = stub_end(&s);
	CHECK(strstr(heard, "If-Match: abc\r\n"));
	CHECK(strstr(heard, "\r\n\r\n1\r\n3\r\n1\r\n2\r\n1\r\n1\r\n0\r\n\r\n"));
}

TEST(a_source_that_fails_ends_the_request)
{
	static const char *const answers[] = { OK("2") "{}", NULL };
	struct stub s;
	AUTO(client_done) struct client c;
	struct err e = { 0 };
	int left = -1;
	struct client_ask ask = {
		.method = "PUT", .path = "/f", .source = count_down, .arg = &left
	};

	stub_start(&s, answers);
	client_init(&c);
	CHECK_INT(client_json(&c, &ask, NULL, &e), -1);
	CHECK_STR(e.msg, "the source is dry");
	CHECK_INT(c.fd, -1);
	CHECK_INT(client_call(&c, "GET", "/next", NULL, NULL, &e), 0);
	client_done(&c);
	CHECK(strncmp(stub_end(&s), "GET /next ", 10) == 0);
}

TEST(an_upgrade_is_granted_or_refused)
{
	static const char *const answers[] = {
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
		"caisson-stream\r\n\r\nfirst bytes",
		NULL
	};
	static const char *const no[] = { "HTTP/1.1 404 Not Found\r\nContent-Length: 34\r\n\r\n"
		                          "{\"code\":\"not_found\",\"detail\":\"no\"}",
		                          OK("2") "{}",
		                          "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: "
		                          "other\r\n\r\n",
		                          NULL };
	static const char *const why[] = { "no", "the daemon answers 200 instead of a stream",
		                           "the daemon's answer is malformed: " };
	struct client_ask ask = { .method = "POST", .path = "/v1/run", .body = { "{}", 2 } };
	struct stub s;
	struct client c;
	struct err e = { 0 };

	stub_start(&s, answers);
	client_init(&c);
	CHECK_INT(client_upgrade(&c, &ask, &e), 0);
	CHECK(c.in.len - c.in_from <= 11);
	client_done(&c);
	CHECK(strstr(stub_end(&s), "Connection: Upgrade\r\nUpgrade: caisson-stream\r\n"));
	stub_start(&s, no);
	client_init(&c);
	for (size_t i = 0; i < COUNT(why); i++) {
		CHECK_INT(client_upgrade(&c, &ask, &e), -1);
		CHECK(strncmp(e.msg, why[i], strlen(why[i])) == 0);
	}
	client_done(&c);
	(void)stub_end(&s);
}

TEST(texts_of_a_path_are_encoded)
{
	const char *texts[] = { "sb_1", "/a b/%\xff?&" };
	AUTO(str_done) struct str out = { .max = 256 };

	client_path(&out, "/v1/sandboxes/{}/files/{}?x=1", texts);
	CHECK_STR(str_text(&out), "/v1/sandboxes/sb_1/files/%2Fa%20b%2F%25%FF%3F%26?x=1");
}

static void set_environment(const char *socket, const char *host, const char *token)
{
	setenv("CAISSON_SOCKET", socket, 1);
	setenv("CAISSON_HOST", host, 1);
	setenv("CAISSON_TOKEN", token, 1);
	setenv("XDG_RUNTIME_DIR", "/rt", 1);
	setenv("XDG_STATE_HOME", "/st", 1);
}

TEST(a_daemon_that_was_named)
{
	struct address a;
	struct err e = { 0 };

	set_environment("/x/y.sock", "", "cst_1");
	CHECK_INT(address_find(&a, &e), 0);
	CHECK(a.is_named && !a.is_tcp);
	CHECK_STR(a.path, "/x/y.sock");
	CHECK_STR(a.token, NULL);
	set_environment("", "127.0.0.1:80", "cst_1");
	CHECK_INT(address_find(&a, &e), 0);
	CHECK(a.is_named && a.is_tcp);
	CHECK_STR(a.host, "127.0.0.1:80");
	CHECK_STR(a.token, "cst_1");
	set_environment("/x", "127.0.0.1:80", "");
	CHECK_INT(address_find(&a, &e), -1);
	CHECK_STR(e.msg, "CAISSON_HOST and CAISSON_SOCKET: which one?");
}

TEST(a_daemon_of_ones_own)
{
	bool is_root = geteuid() == 0;
	struct address a;
	struct err e = { 0 };

	set_environment("", "", "");
	CHECK_INT(address_find(&a, &e), 0);
	CHECK(!a.is_named && !a.is_tcp);
	CHECK_STR(a.path, is_root ? "/run/caisson/api.sock" : "/rt/caisson/api.sock");
	CHECK_STR(a.run_dir, is_root ? "/run/caisson" : "/rt/caisson");
	CHECK_STR(a.state_dir, is_root ? "/var/lib/caisson" : "/st/caisson");
}

TEST(addresses_that_are_none)
{
	static const char *const hosts[] = { "nohost",          ":80",
		                             "127.0.0.1:",      "127.0.0.1:0",
		                             "127.0.0.1:65536", "127.0.0.1:8x",
		                             "example.org:80" };

	for (size_t i = 0; i < COUNT(hosts); i++) {
		struct address a = { .is_tcp = true };
		struct err e = { 0 };

		snprintf(a.host, sizeof a.host, "%s", hosts[i]);
		CHECK_INT(address_connect(&a, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
	}
}

TEST(a_path_that_is_too_long_is_refused)
{
	struct address a;
	struct err e = { 0 };
	char path[300];

	memset(path, 'x', sizeof path - 1);
	path[0] = '/';
	path[sizeof path - 1] = '\0';
	setenv("CAISSON_SOCKET", path, 1);
	CHECK_INT(address_find(&a, &e), -1);
	CHECK(strstr(e.msg, "too long") != NULL);
}
