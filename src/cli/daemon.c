#include "cli/daemon.h"

#include <poll.h>

#include "base/fd.h"
#include "cli/early.h"

#define BODY_MAX (8u << 20)

struct early_sent early_sent = { .fd = -1 };

struct daemon {
	struct client own; /* of start() */
	struct remote remote;
};

static void look(struct run_session *s)
{
	const struct daemon *d = s->driver_data;

	s->has_room = !remote_is_waiting(&d->remote);
	s->poll_events = (short)(POLLIN | (s->has_room ? 0 : POLLOUT));
}

/* ---- start --------------------------------------------------------------------------- */

static void end(struct run_session *s)
{
	struct daemon *d = s->driver_data;

	remote_done(&d->remote);
	client_done(&d->own);
	free(d);
	s->driver_data = NULL;
}

/* Without a client: over a connection of its own. */
static int open_stream(struct client *c, const struct client_ask *ask, struct run_session *out,
                       struct err *e)
{
	struct daemon *d = mem_alloc(sizeof *d);

	client_init(&d->own);
	if (!c && early_sent.fd >= 0) {
		d->own.fd = fd_take(&early_sent.fd);
		d->own.is_asked = true;
		client_take(&d->own, early_sent.in + early_sent.from,
		            early_sent.len - early_sent.from);
	}
	out->driver_data = d;
	if (remote_open(&d->remote, c ? c : &d->own, ask, e) < 0) {
		end(out);
		return -1;
	}
	out->poll_fd = remote_fd(&d->remote);
	look(out);
	return 0;
}

static int start(const struct run_setup *setup, struct run_session *out, struct err *e)
{
	AUTO(str_done) struct str body = { .max = BODY_MAX };

	if (remote_run_body(setup, &body, e) < 0)
		return -1;
	struct client_ask ask = { .method = "POST",
		                  .path = "/v1/run",
		                  .body = { str_text(&body), body.len } };
	return open_stream(NULL, &ask, out, e);
}

/* ---- events -------------------------------------------------------------------------- */

static json_t *plain_end(const struct remote_event *v)
{
	char code[16];

	snprintf(code, sizeof code, "%.*s", (int)v->len, (const char *)v->bytes);
	return json_pack("{ss,si}", "state", "exited", "exit_code", (int)strtol(code, NULL, 10));
}

static int take(const struct remote_event *v, struct run_event *out, struct err *e)
{
	static const enum run_event_kind kinds[] = {
		[STREAM_STARTED] = RUN_STARTED, [STREAM_NOTE] = RUN_NOTE,
		[STREAM_OUT] = RUN_OUT,         [STREAM_ERR] = RUN_ERR,
		[STREAM_LOST] = RUN_DROPPED,    [STREAM_END] = RUN_ENDED
	};

	switch (v->type) {
	case STREAM_STARTED:
	case STREAM_NOTE:
	case STREAM_OUT:
	case STREAM_ERR:
	case STREAM_LOST:
	case STREAM_END:
		*out = (struct run_event){ kinds[v->type], v->bytes, v->len, v->object };
		return 1;
	case STREAM_EXITED:
		*out = (struct run_event){ .kind = RUN_ENDED, .object = plain_end(v) };
		return 1;
	case STREAM_FAIL:
		(void)client_problem(v->object, e);
		json_decref(v->object);
		return -1;
	case STREAM_IN:
	case STREAM_EOF:
	case STREAM_SIGNAL:
	case STREAM_RESIZE:
	case STREAM_KILL:
		break; /* ours to say */
	}
	return 0;
}

static int next(struct run_session *s, struct run_event *out, struct err *e)
{
	struct daemon *d = s->driver_data;
	struct remote_event v;
	int r = remote_next(&d->remote, &v, e);

	if (r == 0) {
		remote_flush(&d->remote);
		r = remote_fill(&d->remote, e);
		if (r > 0)
			r = remote_next(&d->remote, &v, e);
	}
	look(s);
	return r <= 0 ? r : take(&v, out, e);
}

/* ---- to the command ------------------------------------------------------------------ */

static void input(struct run_session *s, const void *bytes, size_t n)
{
	struct daemon *d = s->driver_data;

	remote_send(&d->remote, n > 0 ? STREAM_IN : STREAM_EOF, bytes, n);
	look(s);
}

static void send_signal(struct run_session *s, int sig)
{
	struct daemon *d = s->driver_data;

	remote_signal(&d->remote, sig);
	look(s);
}

static void resize(struct run_session *s, uint16_t rows, uint16_t cols)
{
	struct daemon *d = s->driver_data;

	remote_resize(&d->remote, rows, cols);
	look(s);
}

static void end_inside(struct run_session *s)
{
	struct daemon *d = s->driver_data;

	remote_send(&d->remote, STREAM_KILL, NULL, 0);
	look(s);
}

const struct driver daemon_driver = { .start = start,
	                              .next = next,
	                              .input = input,
	                              .signal = send_signal,
	                              .resize = resize,
	                              .kill = end_inside,
	                              .end = end };

int daemon_pump(struct client *c, const struct client_ask *ask, struct pump *p, struct err *e)
{
	struct run_session session = { .poll_fd = -1 };

	if (open_stream(c, ask, &session, e) < 0)
		return -1;
	p->driver = &daemon_driver;
	p->session = &session;
	int r = pump_run(p, e);

	end(&session);
	p->session = NULL;
	return r;
}
