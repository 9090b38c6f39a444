/*
 * say.c - answers of a method, and the requests that a tool becomes.
 *
 * An answer is one JSON text as long as nothing has to be said before it; the first progress, or
 * the first question to the client, makes it a stream of events. A call that is silent for long
 * becomes one too, so that nobody on the way takes the connection for dead.
 */
#include <stdarg.h>

#include "mcp/mcp-internal.h"
#include "wire/url.h"

#define STREAM "text/event-stream"

/* ---- the wire ------------------------------------------------------------------------ */

static void stream_begin(struct mcp *m)
{
	static const char *const extra[] = { "Cache-Control", "no-store", "X-Accel-Buffering", "no",
		                             NULL };

	if (m->is_streaming)
		return;
	m->is_streaming = true;
	m->call->is_answered = true;
	reply_begin(m->call->r, 200, STREAM, -1, extra);
}

static void stream_message(struct mcp *m, const char *text)
{
	struct request *r = m->call->r;

	(void)reply_write(r, "event: message\ndata: ", 21); /* few, and small: no need to wait */
	(void)reply_write(r, text, strlen(text));
	(void)reply_write(r, "\n\n", 2);
}

/* What the status of an error is; of the older revision errors are answers like others. */
static int status_of(const struct mcp *m, const json_t *message)
{
	json_int_t code =
	    json_integer_value(json_object_get(json_object_get(message, "error"), "code"));

	if (code == RPC_PARSE || code == RPC_INVALID || code == RPC_VERSION)
		return 400;
	if (code == 0 || !m->is_modern)
		return 200;
	return code == RPC_NO_METHOD ? 404 : code == RPC_INTERNAL ? 500 : 400;
}

/* The last that is said on this request. */
static void send_last(struct mcp *m, json_t *message)
{
	const char *extra[] = { "Mcp-Session-Id", m->session, NULL };
	bool is_first = m->rpc.method && strcmp(m->rpc.method, "initialize") == 0 && m->session;
	char *text = json_dumps(message, JSON_COMPACT);
	int status = status_of(m, message);
	bool is_streaming = m->is_streaming;
	struct call *c = m->call;

	if (is_streaming)
		stream_message(m, text);
	c->state = NULL;
	c->is_answered = true;
	m->call = NULL;
	m->is_streaming = false;
	m->as.peer.socket_fd = -1;
	if (is_streaming)
		reply_end(c->r);
	else
		reply(c->r, status, "application/json", text, strlen(text),
		      is_first ? extra : NULL);
	json_decref(message);
	free(text);
}

static json_t *completed(const struct mcp *m, json_t *result)
{
	if (m->is_modern && !json_object_get(result, "resultType"))
		json_object_set_new(result, "resultType", json_string("complete"));
	return result;
}

void mcp_reply(struct mcp *m, json_t *result)
{
	send_last(m, rpc_result(json_incref(m->rpc.id), completed(m, result)));
}

void mcp_result(struct mcp *m, json_t *result)
{
	if (!m->call) { /* told when he comes back */
		m->kept = completed(m, result);
		return;
	}
	mcp_reply(m, result);
	mcp_free(m);
}

void mcp_error(struct mcp *m, int code, const char *text, json_t *data)
{
	if (!m->call) {
		json_decref(data);
		m->kept = json_pack("{s[{ss,ss}],sb,ss}", "content", "type", "text", "text", text,
		                    "isError", 1, "resultType", "complete");
		return;
	}
	send_last(m, rpc_error(m->rpc.id ? json_incref(m->rpc.id) : NULL, code, text, data));
	mcp_free(m);
}

/* A stream without a message, or no content: clients take a cut connection for a failure. */
void mcp_quit(struct mcp *m)
{
	struct call *c = m->call;
	bool is_streaming = m->has_stream;

	if (is_streaming)
		stream_begin(m);
	c->state = NULL;
	c->is_answered = true;
	mcp_free(m);
	if (is_streaming)
		reply_end(c->r);
	else
		reply(c->r, 202, NULL, NULL, 0, NULL);
}

void mcp_send(struct mcp *m, json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);

	json_decref(message);
	if (m->call && m->has_stream) {
		stream_begin(m);
		stream_message(m, text);
	}
	free(text);
}

void mcp_progress(struct mcp *m, double progress, double total, const char *text)
{
	if (!m->call || !m->has_stream)
		return;
	if (!m->token) { /* a comment: we are still here */
		stream_begin(m);
		(void)reply_write(m->call->r, ": \n\n", 4);
		return;
	}
	json_t *p = json_pack("{sO,sf}", "progressToken", m->token, "progress", progress);
	if (total > 0)
		json_object_set_new(p, "total", json_real(total));
	if (text && *text)
		json_object_set_new(p, "message", json_string(text));
	mcp_send(m, rpc_request(NULL, "notifications/progress", p));
}

/* ---- tools --------------------------------------------------------------------------- */

static json_t *content_of(const char *text, size_t n)
{
	json_t *t = json_stringn(text, n);

	return json_pack("[{ss,so}]", "type", "text", "text",
	                 t ? t : json_string("(what there is to say is not UTF-8)"));
}

void mcp_say(struct mcp *m, const struct str *text, json_t *object)
{
	json_t *r = json_pack("{so}", "content", content_of(str_text(text), text->len));

	if (object)
		json_object_set_new(r, "structuredContent", object);
	mcp_result(m, r);
}

void mcp_fail(struct mcp *m, const char *fmt, ...)
{
	AUTO(str_done) struct str text = { .max = 64u << 10 };
	char buf[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof buf, fmt, ap);
	va_end(ap);
	str_add(&text, buf);
	mcp_result(m, json_pack("{so,sb}", "content", content_of(str_text(&text), text.len),
	                        "isError", 1));
}

void mcp_problem(struct mcp *m, int status, const json_t *answer)
{
	const char *code = json_text(answer, "code"), *detail = json_text(answer, "detail");

	if (!status || !*code)
		mcp_fail(m, "sandbox_unavailable: the daemon did not answer itself (%d); try again",
		         status);
	else
		mcp_fail(m, "%s: %s", code, detail);
}

/* ---- time ---------------------------------------------------------------------------- */

static void fired(struct timer *t)
{
	struct mcp *m = (struct mcp *)(void *)((char *)t - offsetof(struct mcp, timer));

	m->late(m);
}

void mcp_later(struct mcp *m, uint64_t ms, mcp_fn *late)
{
	m->timer.fired = fired;
	m->late = late;
	timer_set(&m->api->core->timers, &m->timer, ms);
}

/* ---- the API ------------------------------------------------------------------------- */

static void came(void *arg, int status, struct span body)
{
	struct mcp *m = arg;
	json_t *answer = body.len > 0 ? json_loadb(body.at, body.len, 0, NULL) : NULL;

	m->inner = NULL;
	m->then(m, status, answer);
	json_decref(answer);
}

void mcp_ask_with(struct mcp *m, const struct inner_ask *ask, mcp_then *then)
{
	m->then = then;
	m->inner = inner_call(m->api, &m->as, ask, came, m);
	if (!m->inner)
		mcp_fail(m, "sandbox_unavailable: the daemon has no room; try again");
}

void mcp_ask_api(struct mcp *m, const char *method, const struct str *target, json_t *body,
                 mcp_then *then)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct inner_ask ask = { .method = method,
		                 .target = str_text(target),
		                 .body = span_of(text ? text : "") };

	json_decref(body);
	if (target->overflow)
		mcp_fail(m, "invalid: a name is too long");
	else
		mcp_ask_with(m, &ask, then);
	free(text);
}

static void add_path(struct str *out, const char *rest, const char *const *texts)
{
	for (; *rest; rest++) {
		if (rest[0] == '{' && rest[1] == '}') {
			url_encode(*texts, strlen(*texts), out);
			texts++;
			rest++;
		} else {
			str_addn(out, rest, 1);
		}
	}
}

bool mcp_target(struct mcp *m, struct str *out, const char *rest, const char *const *texts)
{
	const char *said = arg_text(m, "workspace", NULL);
	const char *id = m->bound ? m->bound : said;

	if (m->bound && said && strcmp(said, m->bound) != 0)
		mcp_fail(m, "invalid: this server is bound to the workspace %s", m->bound);
	else if (!id || !*id)
		mcp_fail(m, "invalid: workspace: which one? Give its id or key");
	else {
		add_path(out, "/v1/workspaces/{}", &id);
		add_path(out, rest, texts);
		if (!out->overflow)
			return true;
		mcp_fail(m, "invalid: a name is too long"); /* a part of it would be another */
	}
	return false;
}

/* ---- arguments ----------------------------------------------------------------------- */

const char *json_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

const char *arg_text(const struct mcp *m, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(m->args, key));

	return text ? text : otherwise;
}

int64_t json_whole(const json_t *v)
{
	double n = json_number_value(v);

	return n >= INT32_MAX ? INT32_MAX : n <= -INT32_MAX ? -INT32_MAX : (int64_t)n;
}

int64_t arg_number(const struct mcp *m, const char *key, int64_t otherwise)
{
	const json_t *v = json_object_get(m->args, key);

	return json_is_number(v) ? json_whole(v) : otherwise;
}

bool arg_flag(const struct mcp *m, const char *key)
{
	return json_is_true(json_object_get(m->args, key));
}
