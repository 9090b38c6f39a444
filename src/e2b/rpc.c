/*
 * rpc.c - calls of the Connect protocol: one answer, or a stream of messages and an end.
 */
#include "core/details.h"
#include "e2b/e2b-internal.h"

#define MESSAGE_MAX (8u << 20)

static bool is_stream(const struct call *c)
{
	return strcmp(c->route->gives, E2B_STREAM) == 0;
}

void rpc_answer(struct call *c, json_t *body)
{
	e2b_answer(c, 200, body);
}

static bool put(struct call *c, unsigned int flags, json_t *message)
{
	AUTO(freep) char *text = json_dumps(message, JSON_COMPACT);
	AUTO(str_done) struct str out = { .max = MESSAGE_MAX };

	json_decref(message);
	connect_print(&out, flags, span_of(text));
	return !c->r || reply_write(c->r, out.data, out.len);
}

void rpc_begin(struct call *c)
{
	if (c->r)
		reply_begin(c->r, 200, "application/connect+json", -1, NULL);
}

bool rpc_send(struct call *c, json_t *message)
{
	return put(c, 0, message);
}

static void end(struct call *c, json_t *message)
{
	(void)put(c, CONNECT_END, message); /* nothing follows it */
	c->is_answered = true;
	if (c->r)
		reply_end(c->r);
}

void rpc_end(struct call *c)
{
	end(c, json_object());
}

/* What has begun ends with the error. */
void rpc_refuse(struct call *c, enum connect_code code, const char *message)
{
	json_t *o = json_pack("{ss}", "code", connect_name(code));
	bool has_begun = c->is_answered;

	json_object_set_new(o, "message", details_text(message));
	if (!is_stream(c)) {
		e2b_answer(c, connect_status(code), o);
		return;
	}
	if (!has_begun)
		rpc_begin(c);
	end(c, json_pack("{so}", "error", o));
}

int rpc_take(struct call *c, struct fail *f)
{
	struct span message;

	if (!connect_message(c->r->body, &message))
		return fail_set(f, FAIL_INVALID, "one plain envelope is expected");
	c->body = json_loadb(message.at, message.len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(c->body))
		return fail_set(f, FAIL_INVALID, "the message is not a JSON object");
	return 0;
}
