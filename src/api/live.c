#include "api/live-internal.h"

#define HELLO_MS 10
#define HELLO_MAX (1u << 20)

static void live_free(struct live *l)
{
	struct px *p = l->p;

	px_watch_remove(p, &l->watch);
	timer_stop(&p->core->timers, &l->hello);
	scan_done(&l->scan);
	free(l->in);
	keep_done(&l->kept[LOG_OUT]);
	keep_done(&l->kept[LOG_ERR]);
	l->call->state = NULL;
	call_unref(l->call);
	free(l);
	px_unref(p);
}

/* ---- out ----------------------------------------------------------------------------- */

static char *json_to_text(json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	return text;
}

static void say(struct live *l, enum stream_type type, json_t *o)
{
	AUTO(freep) char *text = json_to_text(o);

	l->dialect->json(l, type, text);
}

static void add_member(struct str *object, const char *key, const char *json)
{
	str_addf(object, "%s\"%s\":%s", object->len ? "," : "{", key, json);
}

/* The first word, once. What follows at once goes with it: reply_hold(). */
static void greet(struct live *l)
{
	const struct px *p = l->p;
	const struct sbx *s = p->sandbox;
	AUTO(str_done) struct str hello = { .max = HELLO_MAX };

	l->is_greeted = true;
	timer_stop(&p->core->timers, &l->hello);
	reply_hold(l->call->r, true);
	reply_upgrade(l->call->r, STREAM_PROTOCOL, NULL);
	if (!p->is_over) { /* else its end follows */
		AUTO(freep) char *process = json_to_text(print_process(p, NULL, 0));

		add_member(&hello, "process", process);
	}
	/* Texts that were JSON before. A result is shown at the end, when the proof is known. */
	if (s && !l->opts.is_inline && !l->opts.is_owner)
		add_member(&hello, "enforced", s->enforced);
	if (s && s->note && s->note[0] && l->opts.is_owner && !l->opts.is_inline)
		l->dialect->json(l, STREAM_NOTE, s->note);
	if (l->opts.is_brief && hello.len == 0)
		return;
	str_add(&hello, hello.len ? "}" : "{}");
	l->dialect->json(l, STREAM_STARTED, str_text(&hello));
}

/* It exited by itself, and nothing was lost on the way. */
static bool is_plain(const struct px *p)
{
	return p->state == PROCESS_EXITED && p->end.exit_code >= 0 && !p->end.reason[0] &&
	       p->end.dropped_bytes == 0;
}

/* For a client that shows a result: with what was proved before the command ran. */
static json_t *whole_end(const struct live *l)
{
	json_t *o = print_process(l->p, l->opts.is_inline ? l->kept : NULL, l->scan.at);
	json_t *by = l->opts.is_inline && l->p->sandbox
	                 ? json_loads(l->p->sandbox->enforced, 0, NULL)
	                 : NULL;

	if (by)
		json_object_set_new(o, "enforced", by);
	return o;
}

static void finish(struct live *l)
{
	struct fail f = { 0 };
	char code[16];

	l->is_over = true;
	if (l->p->is_never_run && l->p->state == PROCESS_LOST) {
		fail_set(&f, FAIL_BACKEND_ERROR, "%s", px_reason(l->p));
		say(l, STREAM_FAIL, print_problem(&f));
	} else if (l->opts.is_brief && is_plain(l->p)) {
		snprintf(code, sizeof code, "%d", l->p->end.exit_code);
		l->dialect->json(l, STREAM_EXITED, code);
	} else {
		say(l, STREAM_END,
		    l->opts.is_owner && !l->opts.is_inline ? print_end(l->p) : whole_end(l));
	}
	l->dialect->end(l);
	l->call->is_answered = true;
	reply_end(l->call->r);
}

static void refuse(struct live *l)
{
	struct fail f = { 0 };

	l->is_over = true;
	fail_unstored(&f, "the process could not be recorded and was ended", l->p->is_disk_full);
	answer_fail(l->call, &f);
}

/* Somebody who sees a command do nothing wants to know whom it waits for. */
static void say_waiting(struct live *l)
{
	char text[160];

	if (strcmp(l->approval, l->p->approval) == 0 || l->opts.is_inline || l->p->is_over ||
	    l->dialect != &dialect_frames)
		return;
	snprintf(l->approval, sizeof l->approval, "%s", l->p->approval);
	snprintf(text, sizeof text,
	         "caisson: held by gate.commands until somebody decides: caisson approve %s%s\n",
	         l->approval, l->p->is_tty ? "\r" : "");
	if (!l->is_greeted)
		greet(l);
	l->dialect->json(l, STREAM_NOTE, text);
}

/* Everything that is in the log and finds room; then the end, when there is one. */
static void pump(struct live *l)
{
	struct scan_piece piece;
	uint64_t from = l->scan.at;

	if (l->is_over || !l->call->r || !(l->p->is_stored || l->p->is_over))
		return;
	if (l->p->is_unrecorded && !l->p->is_over && !l->is_greeted) {
		refuse(l);
		return;
	}
	if (l->is_greeted)
		reply_hold(l->call->r, true);
	else if (l->is_hello_due)
		greet(l);
	say_waiting(l);
	while (!l->is_full && l->p->log_fd >= 0 && scan_next(&l->scan, &piece) > 0) {
		if (!l->is_greeted)
			greet(l);
		if (l->opts.is_inline)
			keep_add(&l->kept[piece.stream], piece.bytes, piece.len);
		else
			l->is_full = !l->dialect->piece(l, &piece);
	}
	if (l->scan.at != from)
		px_ack(l->p, l->scan.at);
	if (!l->is_full && l->p->is_over) {
		if (!l->is_greeted)
			greet(l);
		finish(l);
	} else if (l->is_greeted) {
		reply_hold(l->call->r, false);
	}
}

static void hello_fired(struct timer *t)
{
	struct live *l = (struct live *)(void *)((char *)t - offsetof(struct live, hello));

	l->is_hello_due = true;
	pump(l);
}

static void live_grew(struct px_watch *w)
{
	pump((struct live *)w);
}

static void on_room(struct request *r)
{
	struct call *c = r->route;
	struct live *l = c->state;

	if (!l)
		return;
	l->is_full = false;
	pump(l);
}

/* ---- in ------------------------------------------------------------------------------ */

bool live_input(struct live *l, const void *bytes, size_t n)
{
	struct fail f;

	if (l->p->has_end || l->is_input_over || !l->p->has_stdin)
		return true; /* nobody will read it */
	l->is_waiting = n > px_input_room(l->p);
	if (!l->is_waiting)
		(void)px_input(l->p, bytes, n, false, &f); /* it may have ended meanwhile */
	return !l->is_waiting;
}

void live_eof(struct live *l)
{
	struct fail f;

	if (!l->is_input_over && (l->p->has_stdin || l->p->is_tty))
		(void)px_input(l->p, NULL, 0, true, &f);
	l->is_input_over = true;
}

void live_resize(struct live *l, long rows, long cols)
{
	struct fail f;

	if (rows > 0 && rows <= 4096 && cols > 0 && cols <= 4096)
		(void)px_resize(l->p, (uint16_t)rows, (uint16_t)cols, &f);
}

/* What is taken may end the connection, and `l` with it. */
static bool take(struct live *l)
{
	struct call *c = call_ref(l->call);
	bool is_sane = l->dialect->take(l);

	if (c->r && c->state)
		reply_pause(c->r, l->is_waiting);
	call_unref(c);
	return is_sane;
}

static void on_data(struct request *r, const void *bytes, size_t n)
{
	struct call *c = r->route;
	const unsigned char *p = bytes;

	if (n == 0 && c->state)
		live_eof(c->state); /* it says no more, and still listens */
	while (n > 0 && c->state) {
		struct live *l = c->state;
		size_t room = LIVE_IN_MAX - l->in_len, piece = n < room ? n : room;

		if (!l->in)
			l->in = mem_alloc(LIVE_IN_MAX);
		memcpy(l->in + l->in_len, p, piece);
		l->in_len += piece;
		p += piece;
		n -= piece;
		if (!take(l) || piece == 0) {
			reply_abort(r);
			return;
		}
	}
}

static void live_changed(struct px_watch *w)
{
	struct live *l = (struct live *)w;

	if (l->is_waiting && l->call->r && !l->is_over) {
		l->is_waiting = false;
		if (!take(l)) {
			reply_abort(l->call->r);
			return;
		}
	}
	pump(l);
}

/* ---- life ---------------------------------------------------------------------------- */

/* The connection is over, one way or the other. */
static void live_left(struct call *c)
{
	struct live *l = c->state;
	struct fail f;

	if (!l)
		return;
	if (!l->is_over && (l->opts.is_owner || l->opts.kill_on_disconnect))
		(void)px_kill(l->p, &f);
	if (!l->is_over && l->opts.is_owner && l->p->sandbox && !l->p->sandbox->change.is_busy)
		(void)sbx_delete(l->p->sandbox, NULL, NULL, &f);
	live_free(l);
}

static struct live *live_new(struct call *c, struct px *p, struct live_opts o)
{
	struct live *l = mem_alloc(sizeof *l);

	*l = (struct live){ .watch = { .changed = live_changed, .grew = live_grew },
		            .call = call_ref(c),
		            .p = p,
		            .opts = o };
	scan_init(&l->scan, p->log_fd, o.after);
	keep_init(&l->kept[LOG_OUT], o.inline_max);
	keep_init(&l->kept[LOG_ERR], o.inline_max);
	c->state = l;
	c->over = live_left;
	c->r->on_data = on_data;
	c->r->on_room = on_room;
	px_watch_add(p, &l->watch);
	return l;
}

bool live_is_asked(struct call *c)
{
	const struct span *up = c->r ? http_header(c->r->head, "Upgrade") : NULL;

	return up && span_is_nocase(*up, STREAM_PROTOCOL);
}

void live_start(struct call *c, struct px *p, struct live_opts o)
{
	struct live *l = live_new(c, p, o);

	l->dialect = &dialect_frames;
	l->hello.fired = hello_fired;
	/* Who has nothing to send waits for what comes, and a short command is over before it could
	 * make use of a greeting: it gets all in one. */
	l->is_hello_due = !o.is_owner || p->has_stdin || p->is_tty;
	if (!l->is_hello_due)
		timer_set(&p->core->timers, &l->hello, HELLO_MS);
	pump(l);
}

static struct px *asked(struct call *c, struct live_opts *o)
{
	struct fail f = { 0 };
	const char *after = call_query(c, "after");
	char *end = NULL;
	struct px *p = px_find(c->api->core, c->tenant, c->params[0], &f);

	o->after = after ? strtoull(after, &end, 10) : 0;
	if (p && after && (after[0] < '0' || after[0] > '9' || *end)) {
		px_unref(p);
		p = NULL;
		fail_set(&f, FAIL_INVALID, "after: a number is expected");
	}
	if (!p)
		answer_fail(c, &f);
	return p;
}

void process_attach(struct call *c)
{
	struct live_opts o = { 0 };
	struct fail f = { 0 };

	if (!live_is_asked(c)) {
		fail_set(&f, FAIL_INVALID, "Upgrade: " STREAM_PROTOCOL " is expected");
		answer_fail(c, &f);
		return;
	}
	struct px *p = asked(c, &o);
	if (p)
		live_start(c, p, o);
}

void process_tty(struct call *c)
{
	struct live_opts o = { 0 };
	struct fail f = { 0 };
	struct span key;
	char accept[32];
	int status = ws_handshake(c->r->head, &key);

	if (status != 0) {
		fail_set(&f, FAIL_INVALID, "a WebSocket handshake is expected");
		answer_fail(c, &f);
		return;
	}
	struct px *p = asked(c, &o);
	if (!p)
		return;
	ws_accept(key, accept);
	struct live *l = live_new(c, p, o);
	l->dialect = &dialect_ws;
	l->ws = (struct ws_reader){ .role = WS_SERVER, .message_max = STREAM_DATA_MAX };
	l->is_greeted = true; /* frames are the terminal's bytes and nothing else */
	reply_upgrade(c->r, "websocket", (const char *[]){ "Sec-WebSocket-Accept", accept, NULL });
	pump(l);
}
