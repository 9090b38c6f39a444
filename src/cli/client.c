#include "cli/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/fd.h"
#include "cli/lend.h"
#include "cli/ondemand.h"
#include "cli/progress.h"
#include "wire/stream.h"
#include "wire/url.h"

#define READ_BYTES (64u << 10)
#define REPEATS 7
#define REPEAT_MS 20            /* and twice as long each time: 2.5 s in all */
#define ANSWER_MAX (256u << 20) /* of JSON; what is larger is streamed */

void client_init(struct client *c)
{
	*c = (struct client){ .fd = -1, .lend_fd = -1, .in = { .max = ANSWER_MAX } };
}

static void hang_up(struct client *c)
{
	fd_close(&c->fd);
	str_clear(&c->in);
	c->in_from = 0;
}

void client_done(struct client *c)
{
	fd_close(&c->fd);
	fd_close(&c->lend_fd);
	str_done(&c->in);
	json_decref(c->problem);
	c->problem = NULL;
}

/* ---- the connection ------------------------------------------------------------------ */

/* Somebody who kept it may have closed it meanwhile; nothing is due between two requests. */
static bool is_stale(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDHUP };

	return poll(&p, 1, 0) != 0;
}

static bool may_not_start(void)
{
	const char *start = getenv("CAISSON_START");

	return start && strcmp(start, "never") == 0;
}

/* Nobody is there, or nobody is there any more. */
static bool is_absent(const struct err *e)
{
	return e->sys == ENOENT || e->sys == ECONNREFUSED;
}

static enum advice advice_of_connect(const struct client *c, const struct err *e)
{
	if (e->sys == EACCES || e->sys == EPERM)
		return c->address.is_tcp ? ADVICE_NONE : ADVICE_SOCKET_DENIED;
	if (is_absent(e))
		return c->address.is_tcp ? ADVICE_NO_SERVER : ADVICE_NO_DAEMON;
	return ADVICE_NONE;
}

static int connect_somehow(struct client *c, struct err *e)
{
	int fd = address_connect(&c->address, e);

	if (fd >= 0)
		return fd;
	if (c->address.is_named || may_not_start() || !is_absent(e))
		return err_advise(e, advice_of_connect(c, e));
	return ondemand_connect(&c->address, e);
}

static int client_connect(struct client *c, struct err *e)
{
	if (c->fd >= 0 && !is_stale(c->fd))
		return 0;
	hang_up(c);
	if (!c->address.path[0] && !c->address.is_tcp && address_find(&c->address, e) < 0)
		return -1;
	c->fd = connect_somehow(c, e);
	if (c->fd < 0 && e->kind != ERR_INVALID)
		e->kind = ERR_INTERNAL; /* a missing socket is not what was asked for */
	return c->fd < 0 ? -1 : 0;
}

int write_all(int fd, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;

	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EAGAIN) {
			(void)poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
			continue;
		}
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(e, errno, "write");
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

static int send_all(struct client *c, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;

	while (n > 0) {
		ssize_t w = send(c->fd, p, n, MSG_NOSIGNAL);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(e, errno, "send to the daemon");
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

void client_take(struct client *c, const void *bytes, size_t n)
{
	if (c->in_from > 0) { /* what is left of a frame or a head is little */
		c->in.len -= c->in_from;
		memmove(c->in.data, c->in.data + c->in_from, c->in.len + 1);
		c->in_from = 0;
	}
	str_addn(&c->in, bytes, n);
}

/* More bytes of the daemon into c->in: how many, 0 at the end. */
static int fill(struct client *c, struct err *e)
{
	char buf[READ_BYTES];
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	while (poll(&p, 1, progress_wait_ms()) <= 0)
		progress_show(c->doing ? c->doing : "waiting for the daemon", 0);
	ssize_t n = recv(c->fd, buf, sizeof buf, 0);
	if (n < 0)
		return errno == EINTR ? fill(c, e) : err_sys(e, errno, "read from the daemon");
	client_take(c, buf, (size_t)n);
	return (int)n;
}

static const char *unread(const struct client *c)
{
	return str_text(&c->in) + c->in_from;
}

static size_t n_unread(const struct client *c)
{
	return c->in.len - c->in_from;
}

/* ---- the request --------------------------------------------------------------------- */

static bool has_body(const struct client_ask *ask)
{
	return ask->body.at || ask->source;
}

static int print_head(const struct client *c, const struct client_ask *ask, struct str *out,
                      struct err *e)
{
	struct http_print p = http_print_request(out, span_of(ask->method), span_of(ask->path));

	http_print_text(&p, "Host", c->address.is_tcp ? c->address.host : "localhost");
	http_print_text(&p, "User-Agent", "caisson/" CAISSON_VERSION);
	if (c->address.token) {
		AUTO(str_done) struct str value = { .max = HTTP_HEAD_MAX };

		str_addf(&value, "Bearer %s", c->address.token);
		http_print_text(&p, "Authorization", str_text(&value));
	}
	for (const char *const *h = ask->headers; h && *h; h += 2)
		http_print_text(&p, h[0], h[1]);
	if (has_body(ask))
		http_print_text(&p, "Content-Type", ask->type ? ask->type : "application/json");
	if (ask->source)
		http_print_framing(&p, HTTP_CHUNKED, 0);
	else if (has_body(ask) || strcmp(ask->method, "POST") == 0)
		http_print_framing(&p, HTTP_LENGTH, ask->body.len);
	return http_print_end(&p, e);
}

static bool has_answered(const struct client *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Until the end of the source, or until the daemon has answered already: it wants no more. */
static int send_source(struct client *c, const struct client_ask *ask, struct err *e)
{
	AUTO(str_done) struct str chunk = { .max = (size_t)2 * READ_BYTES };
	char buf[READ_BYTES];
	uint64_t total = 0;
	ssize_t n;

	while ((n = ask->source(ask->arg, buf, sizeof buf, e)) > 0) {
		str_clear(&chunk);
		http_print_chunk(&chunk, buf, (size_t)n);
		if (has_answered(c) || send_all(c, chunk.data, chunk.len, e) < 0)
			return 0; /* the answer says why */
		total += (uint64_t)n;
		progress_show(c->doing ? c->doing : "sending", total);
	}
	if (n < 0)
		return -1;
	str_clear(&chunk);
	http_print_last_chunk(&chunk);
	(void)send_all(c, chunk.data, chunk.len, e); /* likewise */
	return 0;
}

static int send_request(struct client *c, const struct client_ask *ask, struct err *e)
{
	AUTO(str_done) struct str head = { .max = (size_t)2 * HTTP_HEAD_MAX };

	json_decref(c->problem);
	c->problem = NULL;
	if (c->is_asked) {
		c->is_asked = false;
		return 0;
	}
	if (client_connect(c, e) < 0 || lend_for(c, ask, e) < 0 || print_head(c, ask, &head, e) < 0)
		return -1;
	/* In one piece: each would wake the daemon. */
	bool is_whole = !ask->source && head.len + ask->body.len <= head.max;
	if (is_whole)
		str_addn(&head, ask->body.at, ask->body.len);
	if (send_all(c, head.data, head.len, e) < 0)
		return -1;
	if (ask->source)
		return send_source(c, ask, e);
	return is_whole ? 0 : send_all(c, ask->body.at, ask->body.len, e);
}

int client_send(struct client *c, const struct client_ask *ask, struct err *e)
{
	if (send_request(c, ask, e) < 0)
		return -1;
	c->is_asked = true;
	return 0;
}

/* ---- the answer ---------------------------------------------------------------------- */

/* The launcher listens before the daemon does: of one's own that fell meanwhile it has kept why. */
static int lost(struct client *c, struct err *e)
{
	char said[ONDEMAND_SAID_MAX];

	hang_up(c);
	if (c->has_answered || c->address.is_named || !ondemand_said(&c->address, said))
		return err_new(e, ERR_INTERNAL, "the daemon closed the connection");
	return err_new(e, ERR_INTERNAL, "the daemon did not start: %s", said);
}

static int wrong(struct client *c, int code, struct err *e)
{
	hang_up(c);
	return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: %s",
	               http_error_text(code));
}

/* The head of the final answer; interim ones are stepped over. */
static int read_head(struct client *c, const struct client_ask *ask, struct http_head *head,
                     struct err *e)
{
	enum http_asked asked =
	    strcmp(ask->method, "HEAD") == 0 ? HTTP_ASKED_HEAD : HTTP_ASKED_BODY;

	for (;;) {
		int n = http_response_head(unread(c), n_unread(c), asked, head);

		if (n < 0)
			return wrong(c, n, e);
		if (n > 0)
			c->in_from += (size_t)n;
		if (n > 0 && head->status >= 200)
			return 0;
		int r = n > 0 ? 1 : fill(c, e);
		if (r < 0 && e->sys != ECONNRESET)
			return -1;
		if (r <= 0)
			return lost(c, e);
		c->has_answered = true;
	}
}

static void answer_init(struct client_answer *a, const struct http_head *head)
{
	*a =
	    (struct client_answer){ .status = head->status,
		                    .length = head->body == HTTP_LENGTH ? head->length : UINT64_MAX,
		                    .is_kept = head->keep_alive };
	http_body_init(&a->body, head, UINT64_MAX);
}

int client_begin(struct client *c, const struct client_ask *ask, struct client_answer *out,
                 struct err *e)
{
	static struct http_head head;
	int r = send_request(c, ask, e);

	if (r == 0)
		r = read_head(c, ask, &head, e);
	progress_end();
	if (r < 0) {
		hang_up(c);
		return -1;
	}
	answer_init(out, &head);
	return 0;
}

static int finish(struct client *c, const struct client_answer *a)
{
	if (!a->is_kept)
		hang_up(c);
	return 0;
}

static int read_piece(struct client *c, struct client_answer *a, bool waits, struct span *piece,
                      struct err *e)
{
	for (;;) {
		struct http_piece p = { 0 };
		int r = http_body_feed(&a->body, unread(c), n_unread(c), &p);

		if (r < 0)
			return wrong(c, r, e);
		c->in_from += p.consumed;
		if (p.data.len > 0) {
			*piece = p.data;
			return 1;
		}
		if (r == HTTP_BODY_DONE)
			return finish(c, a);
		if (n_unread(c) == 0 && !waits && !has_answered(c))
			return CLIENT_LATER;
		int n = n_unread(c) > 0 ? 1 : fill(c, e);
		if (n < 0) {
			hang_up(c);
			return -1;
		}
		if (n == 0 && http_body_eof(&a->body) == HTTP_BODY_DONE) {
			a->is_kept = false;
			return finish(c, a);
		}
		if (n == 0)
			return lost(c, e);
	}
}

int client_read(struct client *c, struct client_answer *a, struct span *piece, struct err *e)
{
	return read_piece(c, a, true, piece, e);
}

int client_read_some(struct client *c, struct client_answer *a, struct span *piece, struct err *e)
{
	return read_piece(c, a, false, piece, e);
}

static int read_all(struct client *c, struct client_answer *a, struct str *out, struct err *e)
{
	struct span piece;
	int r;

	while ((r = client_read(c, a, &piece, e)) > 0)
		str_addn(out, piece.at, piece.len);
	progress_end();
	if (r == 0 && out->overflow)
		return err_new(e, ERR_LIMIT, "the daemon's answer is larger than %u MiB",
		               ANSWER_MAX >> 20);
	return r;
}

/* ---- problems ------------------------------------------------------------------------ */

static const struct {
	const char *code;
	enum err_kind kind;
} kinds[] = {
	{ "invalid", ERR_INVALID },
	{ "not_found", ERR_NOT_FOUND },
	{ "unauthorized", ERR_DENIED },
	{ "forbidden", ERR_DENIED },
	{ "permission_denied", ERR_DENIED },
	{ "denied", ERR_DENIED },
	{ "too_large", ERR_LIMIT },
	{ "quota", ERR_LIMIT },
	{ "unenforceable", ERR_UNENFORCEABLE },
	{ "sandbox_unavailable", ERR_INTERNAL },
	{ "backend_error", ERR_INTERNAL },
};

int client_problem(const json_t *problem, struct err *e)
{
	const char *code = json_string_value(json_object_get(problem, "code"));
	const char *detail = json_string_value(json_object_get(problem, "detail"));
	enum err_kind kind = ERR_INVALID; /* any other code is about what was asked */

	for (size_t i = 0; code && i < COUNT(kinds); i++)
		if (strcmp(kinds[i].code, code) == 0)
			kind = kinds[i].kind;
	if (!code)
		kind = ERR_INTERNAL;
	return err_new(e, kind, "%s", detail ? detail : code ? code : "the daemon gives no reason");
}

int client_check(struct client *c, struct client_answer *a, struct err *e)
{
	AUTO(str_done) struct str text = { .max = 1u << 20 };

	if (a->status < 400)
		return 0;
	if (read_all(c, a, &text, e) < 0)
		return -1;
	c->problem = json_loadb(str_text(&text), text.len, 0, NULL);
	if (!json_is_object(c->problem))
		return err_new(e, ERR_INTERNAL, "the daemon answers %d %s", a->status,
		               http_reason(a->status));
	return client_problem(c->problem, e);
}

/* ---- whole exchanges ----------------------------------------------------------------- */

/* A daemon that has just started may not have found a sandbox yet: it says when nothing was done
 * and the same may be asked again. A body that came from a source is gone by then. */
static bool may_repeat(const struct client *c, const struct client_ask *ask, int *tries)
{
	if (ask->source || !json_is_true(json_object_get(c->problem, "retry_safe")) ||
	    *tries >= REPEATS)
		return false;
	(void)poll(NULL, 0, REPEAT_MS << *tries);
	++*tries;
	return true;
}

static int json_once(struct client *c, const struct client_ask *ask, json_t **out, struct err *e)
{
	AUTO(str_done) struct str text = { .max = ANSWER_MAX };
	struct client_answer a;
	json_error_t wrong_at;
	json_t *value = NULL;

	if (client_begin(c, ask, &a, e) < 0 || client_check(c, &a, e) < 0 ||
	    read_all(c, &a, &text, e) < 0)
		return -1;
	if (text.len > 0) {
		value =
		    json_loadb(text.data, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &wrong_at);
		if (!value)
			return err_new(e, ERR_INTERNAL, "the daemon's answer is not JSON: %s",
			               wrong_at.text);
	}
	if (out)
		*out = value;
	else
		json_decref(value);
	return 0;
}

int client_json(struct client *c, const struct client_ask *ask, json_t **out, struct err *e)
{
	int tries = 0, r;

	do
		r = json_once(c, ask, out, e);
	while (r < 0 && may_repeat(c, ask, &tries));
	return r;
}

int client_call(struct client *c, const char *method, const char *path, json_t *body, json_t **out,
                struct err *e)
{
	AUTO(freep) char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct client_ask ask = { .method = method, .path = path };

	json_decref(body);
	if (text)
		ask.body = span_of(text);
	return client_json(c, &ask, out, e);
}

int client_fetch(struct client *c, const struct client_ask *ask, int fd, struct err *e)
{
	struct client_answer a;
	struct span piece;
	uint64_t total = 0;
	int r;

	if (client_begin(c, ask, &a, e) < 0 || client_check(c, &a, e) < 0)
		return -1;
	while ((r = client_read(c, &a, &piece, e)) > 0) {
		if (write_all(fd, piece.at, piece.len, e) < 0) {
			hang_up(c); /* the rest of the answer is on its way */
			r = -1;
			break;
		}
		total += piece.len;
		if (!isatty(fd))
			progress_show(c->doing ? c->doing : "receiving", total);
	}
	progress_end();
	return r;
}

/* ---- upgrade ------------------------------------------------------------------------- */

/* A head of 101 for our protocol: http_response_head() knows WebSocket only. Its length, 0 when it
 * is not whole yet, -1 when it is an ordinary answer. */
static int switching_head(const char *at, size_t n, const char *protocol)
{
	static const char line[] = "HTTP/1.1 101 ";
	char up[64];
	const char *end = memmem(at, n, "\r\n\r\n", 4);

	if (memcmp(at, line, n < strlen(line) ? n : strlen(line)) != 0)
		return -1;
	if (!end)
		return n > HTTP_HEAD_MAX ? -1 : 0;
	size_t len = (size_t)(end - at) + 4;
	snprintf(up, sizeof up, "\r\nUpgrade: %s\r\n", protocol);
	return memmem(at, len, up, strlen(up)) ? (int)len : -1;
}

static int upgrade_once(struct client *c, const struct client_ask *ask, struct err *e)
{
	const char *protocol = ask->protocol ? ask->protocol : STREAM_PROTOCOL;
	const char *const headers[] = { "Connection", "Upgrade", "Upgrade", protocol, NULL };
	static struct http_head head;
	struct client_ask up = *ask;
	struct client_answer a;
	int n = 0;

	up.headers = headers;
	if (send_request(c, &up, e) < 0)
		return -1;
	while ((n = switching_head(unread(c), n_unread(c), protocol)) == 0) {
		int r = fill(c, e);

		if (r < 0 && e->sys != ECONNRESET)
			return -1;
		if (r <= 0)
			return lost(c, e);
	}
	c->has_answered = true;
	progress_end();
	if (n > 0) {
		c->in_from += (size_t)n;
		return 0;
	}
	if (read_head(c, &up, &head, e) < 0)
		return -1;
	answer_init(&a, &head);
	if (client_check(c, &a, e) < 0)
		return -1;
	hang_up(c);
	return err_new(e, ERR_INTERNAL, "the daemon answers %d instead of a stream", a.status);
}

int client_upgrade(struct client *c, const struct client_ask *ask, struct err *e)
{
	int tries = 0, r;

	do
		r = upgrade_once(c, ask, e);
	while (r < 0 && may_repeat(c, ask, &tries));
	return r;
}

/* ---- paths --------------------------------------------------------------------------- */

void client_path(struct str *out, const char *pattern, const char *const *texts)
{
	const char *hole;

	for (; (hole = strstr(pattern, "{}")); pattern = hole + 2, texts++) {
		str_addn(out, pattern, (size_t)(hole - pattern));
		url_encode(*texts, strlen(*texts), out);
	}
	str_add(out, pattern);
}
