/*
 * Bytes of a client, through a real connection: whatever they are, the server answers or closes,
 * and nothing is left. The first byte says in how many pieces they come.
 */
#include "api/server-internal.h"
#include "base/fd.h"
#include "os/sock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct loop loop;
static struct server *server;
static size_t n_living;        /* requests with a handler */
static struct request *paused; /* until the next turn */

static void expect(bool cond)
{
	if (!cond)
		abort();
}

static void on_gone(struct request *r)
{
	paused = paused == r ? NULL : paused;
	n_living--;
}

static void on_data(struct request *r, const void *p, size_t n)
{
	if (n > 0 && ((const char *)p)[0] == 'P') {
		reply_pause(r, true);
		paused = r;
	}
	if (n > 0 && ((const char *)p)[0] != 'E') {
		(void)reply_write(r, p, n);
		return;
	}
	paused = NULL;
	n_living--;
	reply_end(r);
}

static void on_head(struct request *r)
{
	static const enum body_mode modes[] = { BODY_NONE, BODY_WHOLE, BODY_STREAM };

	expect(r->path.len > 0);
	r->body_mode = modes[(unsigned char)r->path.at[r->path.len - 1] % COUNT(modes)];
	r->body_max = 4096;
	if (r->query.len > 0 && r->query.at[0] == 'n')
		reply(r, 404, NULL, NULL, 0, NULL);
}

static void on_request(struct request *r)
{
	if (r->body_mode == BODY_WHOLE) {
		reply(r, 200, "text/plain", r->body.at, r->body.len, NULL);
		return;
	}
	n_living++;
	r->gone = on_gone;
	r->on_data = on_data;
	if (request_asks_upgrade(r, "raw"))
		reply_upgrade(r, "raw", NULL);
	else
		reply_begin(r, 200, NULL, -1, NULL);
	if (r->body_mode == BODY_NONE && !request_asks_upgrade(r, "raw")) {
		n_living--;
		reply_end(r);
	}
}

static void on_drained(struct server *s)
{
	(void)s;
	loop.is_done = true;
}

static const struct server_ops ops = { on_head, on_request, NULL, on_drained };

/* Sends a piece whenever the server has nothing else to do. */
struct sender {
	struct timer timer; /* first */
	int fd;
	const uint8_t *data;
	size_t left, piece;
};

static void send_piece(struct timer *t)
{
	struct sender *s = (struct sender *)(void *)t;
	size_t n = s->left < s->piece ? s->left : s->piece;

	timer_set(&server->timers, t, 0);
	if (paused)
		reply_pause(paused, false);
	paused = NULL;
	if (n == 0) {
		server->is_draining = true; /* for on_drained() */
		fd_close(&s->fd);
		loop.is_done |= server_connections(server) == 0;
		return;
	}
	(void)!send(s->fd, s->data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	s->data += n;
	s->left -= n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e;
	int fds[2];

	if (size == 0 || size > 32768)
		return 0;
	if (!server) {
		expect(loop_init(&loop) == 0);
		server = server_new(&loop, &ops, (struct server_limits){ 0 }, &e);
	}
	expect(server && os_socketpair(fds, SOCK_STREAM | SOCK_NONBLOCK) == 0);
	struct listener l = { .server = server, .door = DOOR_UNIX };
	struct sender s = { .timer.fired = send_piece,
		            .fd = fds[1],
		            .data = data + 1,
		            .left = size - 1,
		            .piece = 1 + (size - 1) / (1 + data[0] % 8) };

	server->is_draining = false;
	conn_new(&l, fds[0]);
	timer_set(&server->timers, &s.timer, 0);
	loop.is_done = false;
	expect(loop_run(&loop) == 0);
	timer_stop(&server->timers, &s.timer);
	expect(server_connections(server) == 0 && n_living == 0 && server->held == 0);
	return 0;
}
