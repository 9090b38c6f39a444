/*
 * jsonrpc.h - one message of JSON-RPC 2.0 as the Model Context Protocol has it: an id is a text or
 * a whole number and never null, params is an object, and there are no batches.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

/* clang-format off */
#define RPC_PARSE      (-32700)
#define RPC_INVALID    (-32600)
#define RPC_NO_METHOD  (-32601)
#define RPC_PARAMS     (-32602)
#define RPC_INTERNAL   (-32603)
/* The protocol's own. */
#define RPC_HEADER     (-32020) /* a header and the body disagree */
#define RPC_CAPABILITY (-32021) /* the client has not said that it can */
#define RPC_VERSION    (-32022) /* another revision of the protocol */
/* clang-format on */

#define RPC_ID_MAX 256                /* bytes of a text */
#define MCP_SESSION "caisson/session" /* _meta of initialize, for who has no headers */

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc {
	json_t *root; /* the only reference; the others are borrowed from it */
	enum rpc_kind kind;
	json_t *id;         /* NULL: a notification, or the message is not understood so far */
	const char *method; /* NULL: a response */
	json_t *params;     /* an object, or NULL */
	json_t *result;     /* of a response: this, */
	json_t *error;      /* or this */
};

struct rpc_fault {
	int code;
	const char *text; /* a constant */
};

/* 0, or -1 with the reason; `id` is then set when the message had a good one. */
int rpc_parse(const char *text, size_t n, struct rpc *out, struct rpc_fault *f) MUST_USE;
void rpc_done(struct rpc *r);

/* What is sent; references are taken, `id` and `data` may be NULL. */
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_error(json_t *id, int code, const char *text, json_t *data);
json_t *rpc_request(json_t *id, const char *method, json_t *params); /* no id: a notification */
