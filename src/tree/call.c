#include "tree/call.h"

#include <poll.h>

#include "base/fd.h"
#include "os/sock.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/sys.h"

#define LOOK_EVERY_MS 5

/* A packet that comes while we are at work: CANCEL, or the rest of a body that nobody wants but a
 * watch, which is asked something by it. */
static void take_packet(struct call *c)
{
	struct conn *conn = c->conn;
	struct tree_packet p;
	struct err e;
	unsigned char buf[sizeof(struct tree_head) + 1];
	int n = sys_recv_now(conn->socket_fd, buf, sizeof buf);

	if (n == -EAGAIN)
		return;
	/* Longer packets are cut to what fits here; of those only BODY is fine. */
	struct tree_head head = { .type = TREE_TYPES };
	if (n >= (int)sizeof head)
		memcpy(&head, buf, sizeof head);
	if (head.type == TREE_BODY) {
		c->asked += head.id == c->id;
		return;
	}
	if (n <= 0 || tree_packet_parse(buf, (size_t)n, &p, &e) < 0 || p.head.type != TREE_CANCEL)
		conn->is_gone = true;
	else if (p.head.id == c->id)
		c->stop = STOP_CANCELLED;
}

static void look(struct call *c)
{
	uint64_t now = sys_now_ms();

	if (c->deadline_ms && now >= c->deadline_ms)
		c->stop = STOP_TIME;
	if (now - c->looked_ms < LOOK_EVERY_MS || !c->is_body_whole)
		return;
	c->looked_ms = now;
	take_packet(c);
}

enum call_stop call_stopped(struct call *c)
{
	if (!c)
		return STOP_NONE;
	if (c->stop == STOP_NONE)
		look(c);
	return c->conn->is_gone ? STOP_CANCELLED : c->stop;
}

void call_forgive(struct call *c)
{
	c->deadline_ms = 0;
	if (c->stop == STOP_TIME)
		c->stop = STOP_NONE;
}

static int stop_error(enum call_stop stop, struct err *e)
{
	if (stop == STOP_TIME)
		return fail(e, TREE_EXPIRED, "the time for this call is over");
	return fail(e, TREE_EXPIRED, "cancelled");
}

int call_check(struct call *c, struct err *e)
{
	enum call_stop stop = call_stopped(c);

	return stop == STOP_NONE ? 0 : stop_error(stop, e);
}

int call_wait(struct call *c, int fd, short events, struct err *e)
{
	for (;;) {
		uint64_t now = sys_now_ms();
		int left = -1;

		if (c->deadline_ms)
			left = c->deadline_ms > now ? (int)(c->deadline_ms - now) : 0;
		int r = sys_wait(fd, events, c->conn->socket_fd, left);

		if (r < 0)
			return err_sys(e, -r, "wait");
		if (r == 0 && left == 0)
			c->stop = STOP_TIME;
		if (r & SYS_SOCKET_READY)
			take_packet(c);
		if ((c->stop != STOP_NONE && !c->is_ending) || c->conn->is_gone)
			return stop_error(c->stop, e);
		if (r & SYS_FD_READY)
			return 0;
	}
}

int call_poll(struct call *c, struct pollfd *fds, size_t n, struct err *e)
{
	fds[0] = (struct pollfd){ .fd = c->conn->socket_fd, .events = POLLIN };
	int r = sys_poll(fds, n, -1);

	if (r < 0)
		return err_sys(e, -r, "wait");
	if (fds[0].revents)
		take_packet(c);
	return c->stop != STOP_NONE || c->conn->is_gone ? stop_error(c->stop, e) : 0;
}

/* From the descriptor that came along. */
static int body_from_fd(struct call *c, struct span *out, struct err *e)
{
	for (;;) {
		ssize_t n = os_read(c->source_fd, c->conn->in, TREE_PACKET_MAX);

		if (n == 0)
			fd_close(&c->source_fd);
		if (n >= 0) {
			*out = (struct span){ (char *)c->conn->in, (size_t)n };
			return n > 0;
		}
		if (n != -EAGAIN)
			return err_sys(e, (int)-n, "read the body");
		if (call_wait(c, c->source_fd, POLLIN, e) < 0)
			return -1;
	}
}

static int body_from_socket(struct call *c, struct span *out, struct err *e)
{
	struct conn *conn = c->conn;
	struct tree_packet p;

	for (;;) {
		int n = os_recv(conn->socket_fd, conn->in, sizeof conn->in, NULL, NULL);

		if (n <= 0 || tree_packet_parse(conn->in, (size_t)n, &p, e) < 0 ||
		    (p.head.type != TREE_BODY && p.head.type != TREE_CANCEL)) {
			conn->is_gone = true;
			return fail(e, TREE_EXPIRED, "the body ended early");
		}
		if (p.head.id != c->id)
			continue;
		if (p.head.type == TREE_CANCEL) {
			c->stop = STOP_CANCELLED;
			c->is_body_whole = true;
			return stop_error(c->stop, e);
		}
		c->is_body_whole = p.head.flags & TREE_LAST;
		*out = p.data;
		if (p.data.len > 0 || c->is_body_whole)
			return p.data.len > 0;
	}
}

int call_body(struct call *c, struct span *out, struct err *e)
{
	if (c->inline_body.len > 0) {
		*out = c->inline_body;
		c->inline_body.len = 0;
		return 1;
	}
	if (c->source_fd >= 0)
		return body_from_fd(c, out, e);
	return c->is_body_whole ? 0 : body_from_socket(c, out, e);
}

int call_body_all(struct call *c, struct str *out, struct err *e)
{
	struct span piece;
	int r;

	while ((r = call_body(c, &piece, e)) > 0) {
		str_addn(out, piece.at, piece.len);
		if (out->overflow)
			return fail(e, TREE_TOO_LARGE, "a body of more than %zu bytes", out->max);
	}
	return r;
}

json_t *call_body_json(struct call *c, struct err *e)
{
	AUTO(str_done) struct str body = { .max = TREE_JSON_MAX };

	if (c->is_body_whole && c->source_fd < 0) {
		struct span whole = c->inline_body;

		c->inline_body.len = 0;
		return json_parse(whole, e);
	}
	if (call_body_all(c, &body, e) < 0)
		return NULL;
	return json_parse((struct span){ str_text(&body), body.len }, e);
}

static int send_packet(struct call *c, size_t n, struct err *e)
{
	for (;;) {
		int r = sys_send_now(c->conn->socket_fd, c->conn->out, n);

		if (r >= 0)
			return 0;
		if (r != -EAGAIN) {
			c->conn->is_gone = true;
			return err_sys(e, -r, "answer");
		}
		if (call_wait(c, c->conn->socket_fd, POLLOUT, e) < 0)
			return -1;
	}
}

/* The first packet has room for its struct, the others use it for data too. */
static size_t structs_len(const struct call *c)
{
	return sizeof(struct tree_head) + (c->is_answered ? 0 : sizeof c->answer);
}

static int send_out(struct call *c, enum tree_type type, uint32_t flags, struct err *e)
{
	struct tree_head head = { type, flags, c->id, (uint32_t)c->out_len };
	size_t n = sizeof head + c->out_len;

	memcpy(c->conn->out, &head, sizeof head);
	if (type != TREE_DATA) {
		memcpy(c->conn->out + sizeof head, &c->answer, sizeof c->answer);
		n += sizeof c->answer;
	}
	c->is_answered = true;
	c->sent_bytes += c->out_len;
	c->out_len = 0;
	return send_packet(c, n, e);
}

/* To the descriptor that came along; the bytes are behind the structs in conn->out. */
static int write_out(struct call *c, struct err *e)
{
	size_t start = sizeof(struct tree_head), n = c->out_len;

	c->out_len = 0;
	for (size_t done = 0; done < n;) {
		ssize_t r = sys_write(c->sink_fd, c->conn->out + start + done, n - done);

		if (r == -EAGAIN) {
			if (call_wait(c, c->sink_fd, POLLOUT, e) < 0)
				return -1;
			continue;
		}
		if (r < 0)
			return err_sys(e, (int)-r, "write the answer");
		done += (size_t)r;
		c->sent_bytes += (size_t)r;
	}
	return 0;
}

int call_flush(struct call *c, struct err *e)
{
	if (c->sink_fd < 0)
		return send_out(c, c->is_answered ? TREE_DATA : TREE_ANSWER, 0, e);
	return c->out_len > 0 ? write_out(c, e) : 0;
}

/* With a descriptor the ANSWER goes first and alone. */
static int begin(struct call *c, struct err *e)
{
	return c->sink_fd >= 0 && !c->is_answered ? send_out(c, TREE_ANSWER, 0, e) : 0;
}

int call_add(struct call *c, struct span bytes, struct err *e)
{
	if (begin(c, e) < 0)
		return -1;
	while (bytes.len > 0) {
		size_t at = structs_len(c) + c->out_len;
		size_t n = TREE_PACKET_MAX - at < bytes.len ? TREE_PACKET_MAX - at : bytes.len;

		memcpy(c->conn->out + at, bytes.at, n);
		c->out_len += n;
		bytes = span_after(bytes, n);
		if (at + n == TREE_PACKET_MAX && call_flush(c, e) < 0)
			return -1;
	}
	return 0;
}

struct dump {
	struct call *call;
	struct err *e;
};

static int dump_piece(const char *bytes, size_t n, void *data)
{
	struct dump *d = data;

	return call_add(d->call, (struct span){ bytes, n }, d->e);
}

int call_add_json(struct call *c, const json_t *value, struct err *e)
{
	struct dump d = { c, e };

	*e = (struct err){ 0 };
	if (json_dump_callback(value, dump_piece, &d, JSON_COMPACT | JSON_ENCODE_ANY) == 0)
		return 0;
	return e->kind == ERR_NONE ? fail(e, TREE_BACKEND_ERROR, "print the answer") : -1;
}

int call_answer(struct call *c, const json_t *value, struct err *e)
{
	return call_add_json(c, value, e);
}

/* An answer that has begun cannot become an error; its END can. */
static void end_with_error(struct call *c, const struct err *failure)
{
	json_t *j = json_error(failure, c->detail);
	enum tree_type type = c->is_answered ? TREE_END : TREE_ANSWER;
	size_t at = sizeof(struct tree_head) + sizeof c->answer;
	struct err e;

	c->deadline_ms = 0;
	c->is_ending = true;
	c->answer.code = fail_code(failure);
	if (!c->is_answered)
		c->answer = (struct tree_answer){ .code = c->answer.code, .count = TREE_UNKNOWN };
	c->out_len = json_dumpb(j, (char *)c->conn->out + at, TREE_PACKET_MAX - at, JSON_COMPACT);
	if (c->out_len > TREE_PACKET_MAX - at)
		c->out_len = 0; /* no error is that long */
	json_decref(j);
	(void)send_out(c, type, TREE_LAST, &e); /* whoever is gone does not miss it */
}

void call_end(struct call *c, const struct err *failure)
{
	struct err e = { 0 };

	if (failure) {
		end_with_error(c, failure);
		return;
	}
	int r = begin(c, &e);
	if (r == 0 && !c->is_answered) {
		(void)send_out(c, TREE_ANSWER, TREE_LAST, &e);
		return;
	}
	if (r == 0 && c->out_len > 0)
		r = call_flush(c, &e);
	if (r < 0) {
		end_with_error(c, &e);
		return;
	}
	c->is_ending = true;
	(void)send_out(c, TREE_END, TREE_LAST, &e);
}

void call_done(struct call *c)
{
	fd_close(&c->source_fd);
	fd_close(&c->sink_fd);
	json_decref(c->detail);
	c->detail = NULL;
	arena_done(&c->arena);
}
