#include "wire/jsonrpc.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* What was understood has the parts of its kind, and an id that can be sent back. */
static void expect_parts(const struct rpc *r)
{
	expect(r->kind == RPC_NOTIFICATION || r->id);
	expect(!r->method == (r->kind == RPC_RESPONSE));
	expect(!r->params || json_is_object(r->params));
	expect(r->kind != RPC_RESPONSE || !r->result != !r->error);
}

static void expect_again(json_t *id)
{
	json_t *message = rpc_result(json_incref(id), json_object());
	char *text = json_dumps(message, JSON_COMPACT);
	struct rpc_fault f;
	struct rpc again;

	expect(rpc_parse(text, strlen(text), &again, &f) == 0 && json_equal(again.id, id));
	rpc_done(&again);
	free(text);
	json_decref(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_fault f = { 0 };
	struct rpc r;

	if (rpc_parse((const char *)data, size, &r, &f) == 0)
		expect_parts(&r);
	else
		expect(f.code < 0 && f.text);
	if (r.id)
		expect_again(r.id);
	rpc_done(&r);
	return 0;
}
