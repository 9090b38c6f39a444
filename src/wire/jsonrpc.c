#include "wire/jsonrpc.h"

#include <string.h>

static int fault(struct rpc_fault *f, int code, const char *text)
{
	*f = (struct rpc_fault){ code, text };
	return -1;
}

static bool is_id(const json_t *id)
{
	return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= RPC_ID_MAX);
}

static int take_response(struct rpc *r, struct rpc_fault *f)
{
	r->kind = RPC_RESPONSE;
	r->result = json_object_get(r->root, "result");
	r->error = json_object_get(r->root, "error");
	if (!r->id || !r->result == !r->error)
		return fault(f, RPC_INVALID, "neither a request nor an answer to one");
	if (r->error && !json_is_object(r->error))
		return fault(f, RPC_INVALID, "error: an object is expected");
	return 0;
}

static int take(struct rpc *r, struct rpc_fault *f)
{
	const json_t *version = json_object_get(r->root, "jsonrpc");
	const json_t *method = json_object_get(r->root, "method");
	json_t *id = json_object_get(r->root, "id");

	if (json_is_array(r->root))
		return fault(f, RPC_INVALID, "one message at a time: there are no batches");
	if (!json_is_object(r->root))
		return fault(f, RPC_INVALID, "a message is an object");
	if (id && is_id(id))
		r->id = id;
	if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0)
		return fault(f, RPC_INVALID, "jsonrpc: \"2.0\" is expected");
	if (id && !r->id)
		return fault(f, RPC_INVALID, "id: a text or a whole number is expected");
	if (!method)
		return take_response(r, f);
	r->kind = r->id ? RPC_REQUEST : RPC_NOTIFICATION;
	if (!json_is_string(method) ||
	    strlen(json_string_value(method)) != json_string_length(method))
		return fault(f, RPC_INVALID, "method: a text is expected");
	r->method = json_string_value(method);
	r->params = json_object_get(r->root, "params");
	if (r->params && !json_is_object(r->params))
		return fault(f, RPC_PARAMS, "params: an object is expected");
	return 0;
}

int rpc_parse(const char *text, size_t n, struct rpc *out, struct rpc_fault *f)
{
	json_error_t e;

	*out = (struct rpc){ 0 };
	out->root = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (!out->root)
		return fault(f, RPC_PARSE, "the message is not JSON");
	return take(out, f);
}

void rpc_done(struct rpc *r)
{
	json_decref(r->root);
	*r = (struct rpc){ 0 };
}

static json_t *message(json_t *id)
{
	json_t *o = json_pack("{ss}", "jsonrpc", "2.0");

	if (id)
		json_object_set_new(o, "id", id);
	return o;
}

json_t *rpc_result(json_t *id, json_t *result)
{
	json_t *o = message(id);

	json_object_set_new(o, "result", result);
	return o;
}

json_t *rpc_error(json_t *id, int code, const char *text, json_t *data)
{
	json_t *o = message(id), *e = json_pack("{si,ss}", "code", code, "message", text);

	if (data)
		json_object_set_new(e, "data", data);
	json_object_set_new(o, "error", e);
	return o;
}

json_t *rpc_request(json_t *id, const char *method, json_t *params)
{
	json_t *o = message(id);

	json_object_set_new(o, "method", json_string(method));
	if (params)
		json_object_set_new(o, "params", params);
	return o;
}
