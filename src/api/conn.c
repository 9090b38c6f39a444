/*
 * conn.c - one connection: what its events mean in each phase, and its deadline.
 *
 * A request that comes in one piece and is answered at once costs one read and one write: input is
 * read into memory of the server and only what is left over is kept; what is watched does not
 * change; the deadline is a store (io/timer.h).
 */
#include "api/server-internal.h"
#include "base/fd.h"

/* ---- memory ------------------------------------------------------------------------ */

static void exchange_free(struct conn *c)
{
	struct exchange *x = c->x;

	x->is_over = true; /* it may not be answered any more */
	if (c->server->ops.on_end)
		c->server->ops.on_end(&x->r);
	c->x = NULL;
	share_leave(x);
	str_done(&x->body);
	arena_done(&x->r.arena);
	free(x);
}

/* The handler loses the request. */
static void exchange_drop(struct conn *c)
{
	struct exchange *x = c->x;

	if (!x)
		return;
	if (!x->is_over && x->r.gone) {
		x->is_over = true;
		x->r.gone(&x->r);
	}
	exchange_free(c);
}

void conn_free(struct conn *c)
{
	struct server *s = c->server;

	c->is_inside = c->is_broken = true; /* for what gone() may call */
	exchange_drop(c);
	loop_remove(s->loop, &c->watch);
	timer_stop(&s->timers, &c->timer);
	ring_remove(&c->ring);
	out_drop(c);
	str_done(&c->ahead);
	tls_free(c->tls);
	if (c->is_reset && c->door == DOOR_TCP)
		(void)os_reset_on_close(c->watch.fd); /* then it is only closed */
	fd_close(&c->watch.fd);
	fd_close(&c->peer_fd);
	free(c);
	s->n_conns--;
	if (s->is_draining && s->n_conns == 0 && s->ops.on_drained)
		s->ops.on_drained(s);
}

void conn_phase(struct conn *c, enum phase phase)
{
	bool is_idle = phase == PHASE_HEAD || phase == PHASE_LINGER;

	c->phase = phase;
	ring_remove(&c->ring);
	ring_add_last(is_idle ? &c->server->idle : &c->server->busy, &c->ring);
}

/* ---- what it waits for ------------------------------------------------------------- */

static bool wants_input(const struct conn *c)
{
	switch (c->phase) {
	case PHASE_HEAD:
	case PHASE_SKIP:
	case PHASE_LINGER:
		return !c->is_eof;
	case PHASE_BODY:
	case PHASE_RAW:
		return !c->is_eof && !c->x->is_paused;
	case PHASE_WORK:
	case PHASE_SEND:
	case PHASES:
		break;
	}
	return false;
}

static enum wait wait_of(const struct conn *c)
{
	if (c->phase == PHASE_LINGER)
		return WAIT_LINGER;
	if (out_waiting(c) > 0)
		return WAIT_SEND;
	if (c->phase == PHASE_HEAD)
		return c->ahead.len > 0 || c->is_fresh ? WAIT_HEAD : WAIT_IDLE;
	if (c->phase == PHASE_SKIP || (c->phase == PHASE_BODY && !c->x->is_paused))
		return WAIT_BODY;
	return WAIT_NONE;
}

/* For the next bytes of a body, and for all of it. */
static uint64_t body_wait_ms(const struct conn *c)
{
	uint64_t pause = c->server->wait_ms[WAIT_BODY], now = timer_now_ms();
	uint64_t until = c->x ? c->x->body_until_ms : 0;

	if (until == 0 || until > now + pause)
		return pause;
	return until > now ? until - now : 0;
}

/* A head, an idle time and lingering are bounded as a whole, a body that is kept whole by its
 * pauses and as a whole; the others by their pauses. */
static void set_deadline(struct conn *c)
{
	struct timers *ts = &c->server->timers;
	enum wait wait = wait_of(c);
	bool is_renewed = c->has_moved && (wait == WAIT_BODY || wait == WAIT_SEND);

	c->has_moved = false;
	if (c->is_soon || (wait == c->wait && !is_renewed))
		return;
	c->wait = wait;
	c->unsent = -1;
	if (wait == WAIT_NONE)
		timer_stop(ts, &c->timer);
	else
		timer_set(ts, &c->timer,
		          wait == WAIT_BODY ? body_wait_ms(c) : c->server->wait_ms[wait]);
}

/* Input stays watched while a request is worked on, so that nothing changes for most of them; who
 * sends ahead makes us deaf until then. */
static void set_events(struct conn *c)
{
	uint32_t events = c->is_ended ? 0 : EPOLLRDHUP;

	if (wants_input(c))
		c->is_deaf = false;
	if (wants_input(c) || !(c->is_deaf || c->is_ended))
		events |= EPOLLIN;
	if (c->is_blocked || (c->tls && tls_read_wants_write(c->tls)))
		events |= EPOLLOUT;
	if (c->is_unwatched && wants_input(c)) {
		c->is_unwatched = loop_add(c->server->loop, &c->watch, events) < 0;
		c->events = events;
	}
	if (events == c->events || c->is_unwatched)
		return;
	if (loop_change(c->server->loop, &c->watch, events) < 0) {
		c->is_broken = true;
		conn_soon(c);
	}
	c->events = events;
}

void conn_soon(struct conn *c)
{
	c->is_soon = true;
	timer_set(&c->server->timers, &c->timer, 0);
}

void conn_settle(struct conn *c)
{
	if (c->is_broken) {
		conn_free(c);
		return;
	}
	if (c->is_stirred || (c->tls && tls_has_input(c->tls) && wants_input(c)))
		conn_soon(c);
	set_deadline(c);
	set_events(c);
}

/* ---- ends -------------------------------------------------------------------------- */

/* Everything is out. What the client still sends is read and dropped for a while: to close with
 * unread input would make the kernel take back the answer. */
static void begin_close(struct conn *c)
{
	bool is_quiet = conn_body_done(c) && !c->is_deaf;

	if (c->tls)
		tls_say_end(c->tls);
	if (is_quiet || c->is_eof || os_shut_write(c->watch.fd) < 0) {
		c->is_broken = true;
		return;
	}
	conn_phase(c, PHASE_LINGER);
}

static void next_phase(struct conn *c)
{
	c->is_stirred = c->ahead.len > 0;
	if (c->is_kept && !conn_body_done(c))
		conn_phase(c, PHASE_SKIP);
	else if (out_waiting(c) > 0)
		conn_phase(c, PHASE_SEND);
	else if (!c->is_kept || c->server->is_draining)
		begin_close(c);
	else
		conn_phase(c, PHASE_HEAD);
}

void conn_finish(struct conn *c)
{
	exchange_free(c);
	if (!conn_body_done(c) && !conn_can_skip(c))
		c->is_kept = false;
	out_flush(c);
	if (!c->is_broken)
		next_phase(c);
}

static void fail(struct conn *c, struct problem p)
{
	bool is_mute = c->x && c->x->has_begun;

	exchange_drop(c);
	c->is_kept = false;
	if (is_mute)
		c->is_broken = c->is_reset = true;
	else
		reply_problem(c, &p);
	/* Whatever comes now is not understood. */
	c->body.error = HTTP_E_CUT;
	if (!c->is_broken)
		next_phase(c);
}

static void fail_http(struct conn *c, int error)
{
	int status = http_error_status(error);

	fail(c, (struct problem){ status, status == 413 ? "too_large" : "invalid",
	                          http_error_text(error) });
}

/* ---- requests ---------------------------------------------------------------------- */

bool conn_body_done(const struct conn *c)
{
	return http_body_eof(&c->body) == HTTP_BODY_DONE;
}

bool conn_can_skip(const struct conn *c)
{
	return c->body.kind == HTTP_LENGTH && c->body.error == 0 && c->body.left <= SKIP_MAX &&
	       !c->is_withheld;
}

/* The head is parsed again where it stays: its spans point into it. */
static struct exchange *exchange_new(struct conn *c, const char *head, size_t n)
{
	struct exchange *x = mem_alloc(sizeof *x + n);
	struct span target;

	memcpy(x->head_bytes, head, n);
	(void)http_request_head(x->head_bytes, n, &x->head); /* it has been whole before */
	target = x->head.path;
	const char *mark = memchr(target.at, '?', target.len);
	size_t path_len = mark ? (size_t)(mark - target.at) : target.len;

	x->conn = c;
	x->r.head = &x->head;
	x->r.path = (struct span){ target.at, path_len };
	x->r.query = mark ? span_after(target, path_len + 1) : span_of("");
	x->r.body = span_of("");
	x->r.door = c->door;
	x->r.is_tls = c->tls_context != NULL;
	x->r.peer_uid = c->uid;
	x->r.peer_gid = c->gid;
	x->r.socket_fd = c->peer_fd >= 0 ? c->peer_fd : c->watch.fd;
	x->r.tag = c->tag;
	return x;
}

/* After every callback: did it answer? Returns true when the exchange goes on. */
static bool goes_on(struct conn *c)
{
	if (c->is_broken)
		return false;
	if (!c->x->is_over)
		return true;
	conn_finish(c);
	return false;
}

static bool start(struct conn *c)
{
	c->server->ops.on_request(&c->x->r);
	return goes_on(c);
}

static void on_body_end(struct conn *c)
{
	struct exchange *x = c->x;

	conn_phase(c, PHASE_WORK);
	if (x->r.body_mode != BODY_STREAM) {
		x->r.body = (struct span){ str_text(&x->body), x->body.len };
		start(c);
		return;
	}
	if (x->r.on_data)
		x->r.on_data(&x->r, NULL, 0);
	goes_on(c);
}

static void say_continue(struct conn *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct iovec iov = { (void *)(uintptr_t)text, sizeof text - 1 };

	c->is_withheld = false;
	out_send(c, &iov, 1, false);
}

/* on_head() has decided how the body is taken. */
static void on_routed(struct conn *c)
{
	struct exchange *x = c->x;
	bool is_none = x->r.body_mode == BODY_NONE;

	http_body_init(&c->body, &x->head, is_none ? 0 : x->r.body_max);
	if (c->body.error < 0 && is_none) {
		fail(c, (struct problem){ 400, "invalid", "there is no body in this request" });
		return;
	}
	if (c->body.error < 0) {
		fail_http(c, c->body.error);
		return;
	}
	share_join(x);
	if (x->r.body_mode == BODY_WHOLE)
		x->body_until_ms = timer_now_ms() + c->server->body_ms;
	conn_phase(c, PHASE_BODY);
	if (x->r.body_mode == BODY_STREAM && !start(c))
		return;
	if (c->is_withheld && !x->has_begun)
		say_continue(c);
}

/* Few bytes at a time would make a long head slow to parse, again and again: it is tried when a
 * line has ended, or when there is twice as much. */
static bool is_worth_parsing(const struct conn *c, struct span in)
{
	if (in.len == 0)
		return false;
	return in.len >= 2 * c->parsed || in.len >= HTTP_HEAD_MAX ||
	       memchr(in.at + c->parsed, '\n', in.len - c->parsed) != NULL;
}

static bool take_head(struct conn *c, struct span *in)
{
	if (!is_worth_parsing(c, *in))
		return false;
	int n = http_request_head(in->at, in->len, &c->server->head);

	c->parsed = n == 0 ? in->len : 0;
	if (n == 0)
		return false;
	c->is_fresh = false;
	c->wait = WAITS; /* the deadline of the next head is another one */
	if (n < 0) {
		fail_http(c, n);
		return true;
	}
	c->x = exchange_new(c, in->at, (size_t)n);
	*in = span_after(*in, (size_t)n);
	conn_phase(c, PHASE_WORK);
	http_body_init(&c->body, &c->x->head, UINT64_MAX);
	c->is_withheld = c->x->head.expect_continue && in->len == 0;
	c->server->ops.on_head(&c->x->r);
	if (goes_on(c) && c->phase == PHASE_WORK)
		on_routed(c);
	return true;
}

static void give(struct conn *c, struct span data)
{
	struct exchange *x = c->x;

	if (x->r.body_mode == BODY_STREAM) {
		if (x->r.on_data)
			x->r.on_data(&x->r, data.at, data.len);
		goes_on(c);
		return;
	}
	if (!share_take(x, data.len)) {
		fail(c, (struct problem){ 503, "busy",
		                          "too many requests with large bodies at once" });
		return;
	}
	x->body.max = SIZE_MAX / 4; /* http_body_feed() counts */
	str_addn(&x->body, data.at, data.len);
}

static bool take_body(struct conn *c, struct span *in)
{
	struct http_piece piece;

	if (c->x->is_paused)
		return false;
	int r = http_body_feed(&c->body, in->at, in->len, &piece);

	*in = span_after(*in, piece.consumed);
	if (r < 0 && c->x->r.body_mode == BODY_NONE && r == HTTP_E_BODY_LARGE)
		fail(c, (struct problem){ 400, "invalid", "there is no body in this request" });
	else if (r < 0)
		fail_http(c, r);
	else if (piece.data.len > 0)
		give(c, piece.data);
	else if (r == HTTP_BODY_DONE)
		on_body_end(c);
	else
		return false; /* all was consumed */
	return true;
}

static bool take_raw(struct conn *c, struct span *in)
{
	struct span all = *in;

	if (c->x->is_paused || all.len == 0)
		return false;
	*in = span_after(all, all.len);
	if (c->x->r.on_data)
		c->x->r.on_data(&c->x->r, all.at, all.len);
	goes_on(c);
	return true;
}

static bool take_rest(struct conn *c, struct span *in)
{
	struct http_piece piece;
	int r = http_body_feed(&c->body, in->at, in->len, &piece);

	*in = span_after(*in, piece.consumed);
	if (r < 0)
		c->is_kept = false;
	if (r < 0 || r == HTTP_BODY_DONE)
		next_phase(c);
	return r != HTTP_BODY_MORE || piece.consumed > 0;
}

static bool take_nothing(struct conn *c, struct span *in)
{
	(void)c;
	(void)in;
	return false;
}

static bool take_and_forget(struct conn *c, struct span *in)
{
	c->lingered += in->len;
	c->is_broken |= c->lingered > LINGER_MAX;
	*in = span_after(*in, in->len);
	return false;
}

/* `in` shrinks from its front; what nobody wants now is left. */
static void pump(struct conn *c, struct span *in)
{
	static bool (*const take[])(struct conn * c, struct span * in) = {
		[PHASE_HEAD] = take_head,         [PHASE_BODY] = take_body,
		[PHASE_WORK] = take_nothing,      [PHASE_RAW] = take_raw,
		[PHASE_SKIP] = take_rest,         [PHASE_SEND] = take_nothing,
		[PHASE_LINGER] = take_and_forget,
	};
	_Static_assert(COUNT(take) == PHASES, "a phase takes no input");

	while (!c->is_broken && take[c->phase](c, in))
		continue;
}

static void feed(struct conn *c, const char *bytes, size_t n)
{
	struct span in = { bytes, n };
	bool is_kept = c->ahead.len > 0;

	if (is_kept) {
		str_addn(&c->ahead, bytes, n);
		in = (struct span){ c->ahead.data, c->ahead.len };
	}
	pump(c, &in);
	c->is_stirred = false;
	if (c->is_broken)
		return;
	if (in.len == 0 || c->phase == PHASE_LINGER) {
		str_done(&c->ahead);
	} else if (is_kept) {
		memmove(c->ahead.data, in.at, in.len);
		c->ahead.len = in.len;
	} else {
		c->ahead.max = HTTP_HEAD_MAX + READ_BYTES; /* no read is larger */
		str_addn(&c->ahead, in.at, in.len);
	}
}

/* ---- events ------------------------------------------------------------------------ */

static int read_some(struct conn *c, size_t size)
{
	if (!c->tls_context)
		return os_recv_some(c->watch.fd, c->server->scratch, size);
	if (!c->tls)
		c->tls = tls_new(c->tls_context, c->watch.fd);
	return tls_read(c->tls, c->server->scratch, size);
}

static void on_eof(struct conn *c)
{
	c->is_eof = c->is_ended = true;
	switch (c->phase) {
	case PHASE_HEAD:
	case PHASE_LINGER:
		c->is_broken = true;
		break;
	case PHASE_BODY:
		fail_http(c, HTTP_E_CUT);
		break;
	case PHASE_SKIP:
		c->is_kept = false;
		next_phase(c);
		break;
	case PHASE_RAW:
		if (c->x->r.on_data)
			c->x->r.on_data(&c->x->r, NULL, 0);
		goes_on(c);
		break;
	case PHASE_WORK:
	case PHASE_SEND:
	case PHASES:
		break;
	}
}

/* Returns true when there may be more. */
static bool on_readable(struct conn *c)
{
	for (int i = 0; i < READS_MAX && !c->is_broken && wants_input(c); i++) {
		size_t size = c->phase == PHASE_HEAD ? HTTP_HEAD_MAX : READ_BYTES;
		int n = read_some(c, size);

		if (n == -EAGAIN)
			return false;
		if (n < 0) {
			c->is_broken = true;
			return false;
		}
		if (n == 0) {
			on_eof(c);
			return false;
		}
		c->has_moved |= c->wait == WAIT_BODY;
		feed(c, c->server->scratch, (size_t)n);
		if ((size_t)n < size && !(c->tls && tls_has_input(c->tls)))
			return false;
	}
	return true;
}

static void on_writable(struct conn *c)
{
	struct exchange *x = c->x;

	c->is_blocked = false;
	out_flush(c);
	if (c->is_broken)
		return;
	if (x && x->wants_room && out_waiting(c) <= OUT_LOW) {
		x->wants_room = false;
		if (x->r.on_room)
			x->r.on_room(&x->r);
		goes_on(c);
	} else if (c->phase == PHASE_SEND && out_waiting(c) == 0) {
		next_phase(c);
	}
}

/* It sends no more, while we work for it. By a unix socket one that has left is told apart
 * (EPOLLHUP); by TCP only its answer to a packet tells. */
static void on_ended(struct conn *c)
{
	struct exchange *x = c->x;

	c->is_ended = true;
	if (c->door == DOOR_TCP && c->phase == PHASE_WORK && !x->has_begun && x->head.minor == 1)
		say_continue(c);
}

/* Nothing can be sent any more. Raw bytes that it sent before are still for the handler. */
static void on_hangup(struct conn *c)
{
	c->is_ended = true;
	if (c->phase == PHASE_RAW && c->x->is_paused && !c->is_eof) {
		loop_remove(c->server->loop, &c->watch);
		c->is_unwatched = true;
		return;
	}
	while (c->phase == PHASE_RAW && !c->is_broken && !c->is_eof && on_readable(c))
		continue;
	c->is_broken = true;
}

static void leave(struct conn *c)
{
	while (c->is_stirred && !c->is_broken)
		feed(c, "", 0);
	if (!c->is_broken)
		out_flush(c); /* what was held */
	c->is_inside = false;
	conn_settle(c);
}

static void ready(struct watch *w, uint32_t events)
{
	struct conn *c = CONN_OF(w, watch);

	c->is_inside = true;
	if (events & EPOLLOUT)
		on_writable(c);
	while (c->is_stirred && !c->is_broken) /* what came first, first */
		feed(c, "", 0);
	if (!c->is_broken && (events & (EPOLLIN | EPOLLOUT))) {
		if (wants_input(c))
			on_readable(c);
		else
			c->is_deaf |= (events & EPOLLIN) != 0;
	}
	if (!c->is_broken && (events & (EPOLLHUP | EPOLLERR)))
		on_hangup(c);
	else if (!c->is_broken && (events & EPOLLRDHUP) && !wants_input(c))
		on_ended(c);
	leave(c);
}

/* The socket says that there is room only when there is much. Half of the time has gone by: did
 * the peer take anything? */
static bool is_slow_but_taking(struct conn *c)
{
	int before = c->unsent;

	c->unsent = os_unsent(c->watch.fd);
	if (c->unsent < 0 || (before >= 0 && c->unsent >= before))
		return false;
	timer_set(&c->server->timers, &c->timer, c->server->wait_ms[WAIT_SEND]);
	return true;
}

static void expired(struct conn *c)
{
	switch (c->wait) {
	case WAIT_HEAD:
		if (c->ahead.len > 0)
			fail(c, (struct problem){ 408, "invalid", "the head came too slowly" });
		else
			c->is_broken = true;
		break;
	case WAIT_BODY:
		if (c->x)
			fail(c, (struct problem){ 408, "invalid", "the body came too slowly" });
		else
			c->is_broken = true;
		break;
	case WAIT_SEND:
		if (!is_slow_but_taking(c))
			c->is_broken = c->is_reset = true;
		break;
	case WAIT_IDLE:
	case WAIT_LINGER:
	case WAIT_NONE:
	case WAITS:
		c->is_broken = true;
		break;
	}
}

static void fired(struct timer *t)
{
	struct conn *c = CONN_OF(t, timer);

	c->is_inside = true;
	if (c->is_soon) {
		c->is_soon = false;
		c->wait = WAITS; /* the timer was not about it: set it anew */
		if (!c->is_broken)
			feed(c, "", 0);
		if (!c->is_broken && c->tls && wants_input(c))
			on_readable(c);
	} else {
		expired(c);
	}
	leave(c);
}

static struct conn *conn_make(struct server *s, int fd)
{
	struct conn *c = mem_alloc(sizeof *c);

	c->watch = (struct watch){ .fd = fd, .ready = ready };
	c->timer.fired = fired;
	c->server = s;
	c->peer_fd = -1;
	c->is_fresh = true;
	c->events = EPOLLIN | EPOLLRDHUP;
	ring_init(&c->ring);
	conn_phase(c, PHASE_HEAD);
	s->n_conns++;
	if (loop_add(s->loop, &c->watch, c->events) < 0)
		c->is_broken = true;
	return c;
}

void conn_new(struct listener *l, int fd)
{
	struct conn *c = conn_make(l->server, fd);
	struct ucred peer = { .uid = (uid_t)-1, .gid = (gid_t)-1 };

	if (l->door == DOOR_UNIX && os_peer_cred(fd, &peer) < 0)
		c->is_broken = true; /* nobody is not root */
	c->door = l->door;
	c->tls_context = l->tls;
	c->tag = l->tag;
	c->uid = peer.uid;
	c->gid = peer.gid;
	/* Most have sent their request by now; one that has is no longer idle, and does not have to
	 * make room for the next. */
	c->is_inside = true;
	on_readable(c);
	leave(c);
}

bool conn_adopt(struct server *s, int fd, const struct server_peer *as, int peer_fd)
{
	struct conn *c = conn_make(s, fd);

	c->door = as->door;
	c->uid = as->uid;
	c->gid = as->gid;
	c->peer_fd = peer_fd;
	bool is_whole = !c->is_broken;
	conn_settle(c);
	return is_whole;
}
