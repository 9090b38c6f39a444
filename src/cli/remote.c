#include "cli/remote.h"

#include <sys/socket.h>

#include "base/limits.h"
#include "wire/base64.h"

#define OUT_MAX (4u << 20) /* input waits, so this is signals and one piece of it */
#define OBJECT_MAX (64u << 20)
#define READ_BYTES (64u << 10)

/* ---- the connection ------------------------------------------------------------------ */

int remote_open(struct remote *r, struct client *c, const struct client_ask *ask, struct err *e)
{
	*r = (struct remote){ .client = c,
		              .out = { .max = OUT_MAX },
		              .part = { .max = OBJECT_MAX } };
	return client_upgrade(c, ask, e);
}

void remote_done(struct remote *r)
{
	str_done(&r->out);
	str_done(&r->part);
}

int remote_fill(struct remote *r, struct err *e)
{
	char buf[READ_BYTES];
	ssize_t n = recv(r->client->fd, buf, sizeof buf, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_sys(e, errno, "lost: read from the daemon");
	if (n == 0)
		return err_new(e, ERR_INTERNAL, "lost: the daemon closed the connection");
	client_take(r->client, buf, (size_t)n);
	return 1;
}

static bool is_object(enum stream_type type)
{
	return type == STREAM_STARTED || type == STREAM_END || type == STREAM_FAIL;
}

/* An object may be longer than a frame: then it comes in several, all full but the last. 1 with
 * the object, 0: there is more to come, -1. */
static int take_object(struct remote *r, const struct stream_frame *f, json_t **out, struct err *e)
{
	str_addn(&r->part, f->data, f->len);
	*out = json_loadb(str_text(&r->part), r->part.len, JSON_ALLOW_NUL, NULL);
	if (!*out && f->len == STREAM_DATA_MAX && !r->part.overflow)
		return 0;
	str_clear(&r->part);
	return *out ? 1 : err_new(e, ERR_INTERNAL, "lost: the daemon says what is no object");
}

int remote_next(struct remote *r, struct remote_event *out, struct err *e)
{
	struct client *c = r->client;
	struct stream_frame f;
	int n;

	while ((n = stream_parse(str_text(&c->in) + c->in_from, c->in.len - c->in_from, &f)) > 0) {
		c->in_from += (size_t)n;
		*out = (struct remote_event){ f.type, f.data, f.len, NULL };
		int whole = is_object(f.type) ? take_object(r, &f, &out->object, e) : 1;
		if (whole != 0)
			return whole;
	}
	return n < 0 ? err_new(e, ERR_INTERNAL, "lost: the daemon says what is no frame") : 0;
}

void remote_flush(struct remote *r)
{
	while (remote_is_waiting(r)) {
		ssize_t n = send(r->client->fd, r->out.data + r->out_from, r->out.len - r->out_from,
		                 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break; /* nobody takes it: reading will tell why */
		r->out_from += (size_t)n;
	}
	str_clear(&r->out);
	r->out_from = 0;
}

void remote_send(struct remote *r, enum stream_type type, const void *bytes, size_t n)
{
	unsigned char head[STREAM_HEAD];

	stream_head(head, type, n);
	str_addn(&r->out, head, sizeof head);
	str_addn(&r->out, bytes, n);
	remote_flush(r);
}

void remote_signal(struct remote *r, int sig)
{
	char text[16];
	int n = snprintf(text, sizeof text, "%d", sig);

	remote_send(r, STREAM_SIGNAL, text, (size_t)n);
}

void remote_resize(struct remote *r, unsigned int rows, unsigned int cols)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%u %u", rows, cols);

	remote_send(r, STREAM_RESIZE, text, (size_t)n);
}

/* ---- how it ended -------------------------------------------------------------------- */

static int own_status(const json_t *process)
{
	json_int_t sig = json_integer_value(json_object_get(process, "signal"));
	const json_t *code = json_object_get(process, "exit_code");

	if (sig > 0 && sig < 128)
		return 128 + (int)sig;
	return json_is_integer(code) ? (int)json_integer_value(code) & 0xff : 137;
}

int remote_exit_status(const json_t *process)
{
	static const struct {
		const char *state;
		int status; /* -1: its own */
	} states[] = {
		{ "exited", -1 },   { "signaled", -1 }, { "killed", -1 },  { "timeout", 124 },
		{ "expired", 124 }, { "oom", 137 },     { "denied", 126 },
	};
	const char *state = json_string_value(json_object_get(process, "state"));

	for (size_t i = 0; state && i < COUNT(states); i++)
		if (strcmp(states[i].state, state) == 0)
			return states[i].status < 0 ? own_status(process) : states[i].status;
	return 125;
}

/* ---- what is asked ------------------------------------------------------------------- */

/* Bytes that JSON cannot say as text. */
static json_t *as_base64(const char *bytes)
{
	AUTO(str_done) struct str coded = { .max = (size_t)2 * ARGV_BYTES_MAX };

	base64_encode(bytes, strlen(bytes), &coded);
	return json_pack("{ss}", "base64", str_text(&coded));
}

json_t *remote_argv(char *const *argv)
{
	json_t *list = json_array();

	for (; *argv; argv++) {
		json_t *text = json_string(*argv);

		json_array_append_new(list, text ? text : as_base64(*argv));
	}
	return list;
}

static int add_command(json_t *o, const struct run_setup *run, struct err *e)
{
	char timeout[32];

	json_object_set_new(o, "cmd", remote_argv(run->argv));
	if (run->cwd && json_object_set_new(o, "cwd", json_string(run->cwd)) < 0)
		return err_new(e, ERR_INVALID, "the working directory is not UTF-8");
	if (run->timeout_ms > 0) {
		snprintf(timeout, sizeof timeout, "%llums", (unsigned long long)run->timeout_ms);
		json_object_set_new(o, "timeout", json_string(timeout));
	}
	json_object_set_new(o, "tty", json_boolean(run->is_tty));
	json_object_set_new(o, "stdin", json_boolean(run->has_stdin));
	json_object_set_new(o, run->is_inline ? "inline" : "brief", json_true());
	if (run->rows > 0 && run->cols > 0) {
		json_object_set_new(o, "rows", json_integer(run->rows));
		json_object_set_new(o, "cols", json_integer(run->cols));
	}
	return 0;
}

int remote_run_body(const struct run_setup *run, struct str *out, struct err *e)
{
	AUTO(json_decrefp) json_t *o = json_object();

	json_object_set_new(o, "spec", json_loads(run->spec_text, 0, NULL));
	if (add_command(o, run, e) < 0)
		return -1;
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(10));
	str_add(out, text);
	return out->overflow ? err_new(e, ERR_LIMIT, "the command is too long") : 0;
}
