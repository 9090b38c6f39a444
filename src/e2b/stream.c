/*
 * stream.c - what a process says, as their Start and Connect have it.
 *
 *   {"event":{"start":{"pid":7}}}   {"event":{"data":{"stdout":"…"}}}   {"event":{"end":{…}}}
 *
 * A client that leaves stops the stream and not the process. When the time of the process is over
 * the stream ends with an error, and when its sandbox is gone the connection is cut: then clients
 * ask whether it is there, and say so.
 */
#include <signal.h>

#include "core/output.h"
#include "e2b/e2b-internal.h"
#include "wire/base64.h"

#define PING_DEFAULT_S 90
#define PING_MOST_S 3600

struct stream {
	struct px_watch watch; /* first */
	struct call *call;
	struct px *p;
	struct scan scan;
	struct timer again; /* the rest of a long log, next turn */
	struct timer ping;
	uint64_t ping_ms;
	bool is_skipping; /* what was said before is nobody's */
	bool is_begun, is_full, is_over;
};

static void stream_over(struct call *c)
{
	struct stream *x = c->state;
	struct px *p = x->p;

	px_watch_remove(p, &x->watch);
	timer_stop(&p->core->timers, &x->again);
	timer_stop(&p->core->timers, &x->ping);
	scan_done(&x->scan);
	call_unref(x->call);
	free(x);
	px_unref(p);
}

static bool say(struct stream *x, const char *kind, json_t *what)
{
	json_t *event = json_object();

	json_object_set_new(event, kind, what);
	return rpc_send(x->call, json_pack("{so}", "event", event));
}

static bool put_piece(struct stream *x, const struct scan_piece *piece)
{
	AUTO(str_done) struct str coded = { .max = (size_t)LOG_FRAME_DATA_MAX * 2 };
	const char *kind = x->p->is_tty ? "pty" : piece->stream == LOG_ERR ? "stderr" : "stdout";

	base64_encode(piece->bytes, piece->len, &coded);
	return say(x, "data", json_pack("{ss}", kind, str_text(&coded)));
}

static void put_end(struct stream *x)
{
	const struct channel_end *end = &x->p->end;
	static const char *const names[] = {
		[SIGHUP] = "hangup",  [SIGINT] = "interrupt",   [SIGQUIT] = "quit",
		[SIGKILL] = "killed", [SIGTERM] = "terminated",
	};
	size_t sig = end->signal > 0 ? (size_t)end->signal : 0;
	char status[64];

	if (end->exit_code >= 0 && sig == 0)
		snprintf(status, sizeof status, "exit status %d", end->exit_code);
	else if (sig < COUNT(names) && names[sig])
		snprintf(status, sizeof status, "signal: %s", names[sig]);
	else
		snprintf(status, sizeof status, "signal: %zu", sig);
	bool is_exit = end->exit_code >= 0 && sig == 0;
	json_t *o = json_pack("{si,sb,ss}", "exitCode", is_exit ? end->exit_code : -1, "exited",
	                      is_exit, "status", status);
	if (!is_exit || end->exit_code != 0)
		json_object_set_new(o, "error", json_string(status));
	(void)say(x, "end", o);
	rpc_end(x->call);
}

/* It was never executed: a folder or a program that is not there. */
static void put_failure(struct stream *x)
{
	rpc_refuse(x->call, CONNECT_INVALID_ARGUMENT,
	           x->p->end.reason[0] ? x->p->end.reason : "the process could not be started");
}

static void finish(struct stream *x)
{
	const struct px *p = x->p;
	const struct sbx *s = roster_find(&p->core->sandboxes, p->sandbox_id);

	x->is_over = true;
	if (p->is_never_run || p->is_unrecorded) {
		put_failure(x);
	} else if (p->state == PROCESS_TIMEOUT) {
		rpc_refuse(x->call, CONNECT_DEADLINE_EXCEEDED, "the time of the process is over");
	} else if (!s || !e2b_is_there(s) || s->generation != p->generation) {
		x->call->is_answered = true;
		reply_abort(x->call->r);
	} else {
		put_end(x);
	}
}

static void begin(struct stream *x)
{
	x->is_begun = true;
	rpc_begin(x->call);
	x->call->is_answered = true;
	x->is_full =
	    !say(x, "start", json_pack("{sI}", "pid", (json_int_t)x->p->num + E2B_PID_BASE));
	timer_set(&x->p->core->timers, &x->ping, x->ping_ms);
}

static void go_on(struct stream *x)
{
	uint64_t from = x->scan.at;
	struct scan_piece piece;
	int r = 0;

	if (x->is_over || !x->call->r)
		return;
	bool is_failed = x->p->is_over && (x->p->is_never_run || x->p->is_unrecorded);
	if (!x->is_begun && !is_failed && x->p->state != PROCESS_QUEUED && x->p->is_stored)
		begin(x);
	if (!x->is_begun && !is_failed)
		return;
	while (!x->is_full && x->p->log_fd >= 0 && x->scan.at - from < SCAN_TURN &&
	       (r = scan_next(&x->scan, &piece)) > 0)
		x->is_full = !x->is_skipping && !put_piece(x, &piece);
	if (x->scan.at != from)
		px_ack(x->p, x->scan.at);
	x->is_skipping &= r > 0;
	if (r > 0 && !x->is_full)
		timer_set(&x->p->core->timers, &x->again, 0);
	else if (!x->is_full && x->p->is_over)
		finish(x);
}

static void go_again(struct timer *t)
{
	go_on((struct stream *)(void *)((char *)t - offsetof(struct stream, again)));
}

static void ping(struct timer *t)
{
	struct stream *x = (struct stream *)(void *)((char *)t - offsetof(struct stream, ping));

	if (x->is_over || !x->call->r)
		return;
	if (!x->is_full)
		x->is_full = !say(x, "keepalive", json_object());
	timer_set(&x->p->core->timers, &x->ping, x->ping_ms);
}

static void grew(struct px_watch *w)
{
	go_on((struct stream *)w);
}

static void on_room(struct request *r)
{
	struct call *c = r->route;
	struct stream *x = c->state;

	x->is_full = false;
	go_on(x);
}

static uint64_t ping_of(struct call *c)
{
	const char *text = call_header(c, "Keepalive-Ping-Interval");
	unsigned long s = text ? strtoul(text, NULL, 10) : 0;

	return (s > 0 && s <= PING_MOST_S ? s : PING_DEFAULT_S) * 1000;
}

void stream_start(struct call *c, struct px *p, bool from_beginning)
{
	struct stream *x = mem_alloc(sizeof *x);

	*x = (struct stream){ .watch = { .changed = grew, .grew = grew },
		              .call = call_ref(c),
		              .p = p,
		              .ping_ms = ping_of(c),
		              .is_skipping = !from_beginning };
	x->again.fired = go_again;
	x->ping.fired = ping;
	scan_init(&x->scan, p->log_fd, 0);
	px_watch_add(p, &x->watch);
	c->state = x;
	c->over = stream_over;
	c->r->on_room = on_room;
	go_on(x);
}
