#include "cli/daemon.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "cli/remote.h"

#define BODY_MAX (4u << 20)

struct daemon {
	struct client client;
	struct remote remote;
	struct arena arena; /* of the session's texts */
	struct channel_end end;
	int epoll_fd; /* readable when the connection is, or has room for what waits */
	bool is_begun, is_waiting;
};

/* ---- start --------------------------------------------------------------------------- */

static void take_enforced(struct daemon *d, struct run_session *s, json_t *hello)
{
	json_t *weak = json_object_get(hello, "unenforced"), *by;
	const char *field;

	json_object_foreach(json_object_get(hello, "enforced"), field, by)
	{
		const char *reason = json_string_value(json_object_get(weak, field));
		const char *text = json_string_value(by);

		if (s->n_enforced == ENFORCED_MAX || !text)
			break;
		s->enforced[s->n_enforced++] = (struct enforced){
			.field = arena_strdup(&d->arena, field),
			.by = reason ? NULL : arena_strdup(&d->arena, text),
			.reason = reason ? arena_strdup(&d->arena, reason) : NULL,
		};
	}
	const char *cwd =
	    json_string_value(json_object_get(json_object_get(hello, "process"), "cwd"));
	s->cwd = arena_strdup(&d->arena, cwd ? cwd : "/");
}

static void watch(struct daemon *d)
{
	bool is_waiting = remote_is_waiting(&d->remote);
	struct epoll_event ev = { .events = EPOLLIN | (is_waiting ? EPOLLOUT : 0) };

	if (is_waiting != d->is_waiting)
		(void)epoll_ctl(d->epoll_fd, EPOLL_CTL_MOD, d->client.fd, &ev);
	d->is_waiting = is_waiting;
}

/* The first frame says what the sandbox is; the run begins with it. */
static int await_hello(struct daemon *d, struct run_session *s, struct err *e)
{
	struct remote_event v;
	int r;

	while ((r = remote_next(&d->remote, &v, e)) == 0) {
		struct pollfd fd = { .fd = d->client.fd, .events = POLLIN };

		(void)poll(&fd, 1, -1); /* interrupted: then there is nothing to read yet */
		if (remote_fill(&d->remote, e) < 0)
			return -1;
	}
	if (r < 0)
		return -1;
	if (v.type == STREAM_STARTED)
		take_enforced(d, s, v.object);
	else if (v.type == STREAM_FAIL)
		r = client_problem(v.object, e);
	else
		r = err_new(e, ERR_INTERNAL, "lost: the daemon does not begin at the beginning");
	json_decref(v.object);
	return r < 0 ? -1 : 0;
}

static int open_stream(struct daemon *d, const struct run_setup *setup, struct err *e)
{
	AUTO(str_done) struct str body = { .max = BODY_MAX };
	struct remote_run run = { .spec_text = setup->spec_text,
		                  .argv = setup->argv,
		                  .cwd = setup->cwd,
		                  .is_tty = setup->is_tty,
		                  .has_stdin = setup->has_stdin,
		                  .timeout_ms = setup->timeout_ms,
		                  .rows = setup->rows,
		                  .cols = setup->cols };

	if (remote_run_body(&run, &body, e) < 0)
		return -1;
	struct client_ask ask = { .method = "POST",
		                  .path = "/v1/run",
		                  .body = { str_text(&body), body.len } };
	return remote_open(&d->remote, &d->client, &ask, e);
}

static void daemon_free(struct daemon *d)
{
	fd_close(&d->epoll_fd);
	remote_done(&d->remote);
	client_done(&d->client);
}

int daemon_start(const struct run_setup *setup, struct run_session *out, struct err *e)
{
	struct daemon *d = mem_alloc(sizeof *d);
	struct epoll_event ev = { .events = EPOLLIN };

	client_init(&d->client);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (open_stream(d, setup, e) < 0 || await_hello(d, out, e) < 0 ||
	    epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->client.fd, &ev) < 0) {
		daemon_free(d);
		arena_done(&d->arena);
		free(d);
		return -1;
	}
	out->poll_fd = d->epoll_fd;
	out->has_room = true;
	out->driver_data = d;
	return 0;
}

/* ---- events -------------------------------------------------------------------------- */

static uint64_t number(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n > 0 ? (uint64_t)n : 0;
}

static void take_children(struct channel_end *end, const json_t *list)
{
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n && i < CHANNEL_CHILDREN_MAX; i++) {
		const json_t *c = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(c, "name"));

		end->children[i].pid = (int32_t)number(c, "pid");
		snprintf(end->children[i].name, sizeof end->children[i].name, "%s",
		         name ? name : "");
	}
	end->n_children = (uint32_t)n;
}

static void take_execs(struct channel_end *end, const json_t *execs)
{
	const json_t *first = json_object_get(execs, "first");
	size_t n = json_array_size(first);

	for (size_t i = 0; i < n && i < CHANNEL_EXECS_MAX; i++) {
		const char *text = json_string_value(json_array_get(first, i));

		snprintf(end->execs[i], sizeof end->execs[i], "%s", text ? text : "");
	}
	end->n_execs = (uint32_t)number(execs, "count");
}

static void take_violations(struct channel_end *end, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		const char *target = json_string_value(json_object_get(v, "target"));
		uint64_t count = number(v, "count");

		if (!target)
			continue;
		if (strcmp(target, "mem") == 0)
			end->oom_kills = count;
		else if (strcmp(target, "pids") == 0)
			end->pids_denied = count;
		else if (strcmp(target, "disk") == 0)
			end->is_disk_full = 1;
		else if (strcmp(target, "inodes") == 0)
			end->is_inodes_full = 1;
	}
}

static void take_end(struct channel_end *end, const json_t *p)
{
	const char *state = json_string_value(json_object_get(p, "state"));
	const char *reason = json_string_value(json_object_get(p, "reason"));
	const json_t *usage = json_object_get(p, "usage"), *bytes = json_object_get(p, "bytes");
	const json_t *code = json_object_get(p, "exit_code");

	end->state = RUN_LOST;
	for (enum run_state s = RUN_EXITED; state && s <= RUN_LOST; s++)
		if (strcmp(run_state_name(s), state) == 0)
			end->state = s;
	end->exit_code = json_is_integer(code) ? (int32_t)json_integer_value(code) : -1;
	end->signal = (int32_t)number(p, "signal");
	snprintf(end->reason, sizeof end->reason, "%s", reason ? reason : "");
	end->ms = number(p, "ms");
	end->cpu_ms = number(usage, "cpu_ms");
	end->mem_peak = number(usage, "mem_peak");
	end->io_bytes = number(usage, "io");
	end->out_bytes = number(bytes, "stdout");
	end->err_bytes = number(bytes, "stderr");
	end->dropped_bytes = number(bytes, "dropped");
	take_children(end, json_object_get(p, "children"));
	take_execs(end, json_object_get(p, "execs"));
	take_violations(end, json_object_get(p, "violations"));
}

/* A program that is not there, or may not be executed, never ran: that is not its end. */
static int never_ran(const struct channel_end *end, struct err *e)
{
	if (strncmp(end->reason, "execute: ", 9) != 0 || end->state != RUN_EXITED)
		return 0;
	return err_new(e, end->exit_code == 127 ? ERR_NOT_FOUND : ERR_DENIED, "%s", end->reason);
}

static int take(struct daemon *d, const struct remote_event *v, struct run_event *out,
                struct err *e)
{
	int r = 1;

	switch (v->type) {
	case STREAM_OUT:
	case STREAM_ERR:
		*out = (struct run_event){ .kind = v->type == STREAM_OUT ? RUN_OUT : RUN_ERR,
			                   .bytes = v->bytes,
			                   .n = v->len };
		break;
	case STREAM_END:
		take_end(&d->end, v->object);
		*out = (struct run_event){ .kind = RUN_ENDED, .end = &d->end };
		if (never_ran(&d->end, e) < 0)
			r = -1;
		break;
	case STREAM_FAIL:
		r = client_problem(v->object, e);
		break;
	case STREAM_STARTED:
	case STREAM_LOST:
	case STREAM_IN:
	case STREAM_EOF:
	case STREAM_SIGNAL:
	case STREAM_RESIZE:
	case STREAM_KILL:
		*out = (struct run_event){ .kind = RUN_STARTED };
		break;
	}
	json_decref(v->object);
	return r;
}

int daemon_next(struct run_session *s, struct run_event *out, struct err *e)
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
	s->has_room = !remote_is_waiting(&d->remote);
	watch(d);
	return r <= 0 ? r : take(d, &v, out, e);
}

/* ---- to the command ------------------------------------------------------------------ */

void daemon_input(struct run_session *s, const void *bytes, size_t n)
{
	struct daemon *d = s->driver_data;

	remote_send(&d->remote, n > 0 ? STREAM_IN : STREAM_EOF, bytes, n);
	s->has_room = !remote_is_waiting(&d->remote);
	watch(d);
}

void daemon_signal(struct run_session *s, int sig)
{
	struct daemon *d = s->driver_data;

	remote_signal(&d->remote, sig);
	watch(d);
}

void daemon_resize(struct run_session *s, uint16_t rows, uint16_t cols)
{
	struct daemon *d = s->driver_data;

	remote_resize(&d->remote, rows, cols);
	watch(d);
}

void daemon_kill(struct run_session *s)
{
	struct daemon *d = s->driver_data;

	remote_send(&d->remote, STREAM_KILL, NULL, 0);
	watch(d);
}

void daemon_end(struct run_session *s)
{
	daemon_free(s->driver_data); /* its texts stay */
	s->poll_fd = -1;
}
