#include "wire/jsonrpc.h"

#include <string.h>

#include "test.h"

TEST(what_is_no_message_is_refused_with_its_code)
{
	static const struct {
		const char *text;
		int code;
		const char *id; /* that the refusal carries, as JSON; NULL: none */
	} rows[] = {
		{ "", RPC_PARSE, NULL },
		{ "{", RPC_PARSE, NULL },
		{ "{}{}", RPC_PARSE, NULL },
		{ "{\"id\":1,\"id\":2}", RPC_PARSE, NULL },
		{ "\xff", RPC_PARSE, NULL },
		{ "1", RPC_INVALID, NULL },
		{ "[]", RPC_INVALID, NULL },
		{ "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", RPC_INVALID, NULL },
		{ "{}", RPC_INVALID, NULL },
		{ "{\"id\":7,\"method\":\"ping\"}", RPC_INVALID, "7" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", RPC_INVALID, "7" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", RPC_INVALID, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", RPC_INVALID, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", RPC_INVALID, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":5}", RPC_INVALID, "\"a\"" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\",\"params\":[]}", RPC_PARAMS,
		  "\"a\"" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a\"}", RPC_INVALID, "\"a\"" },
		{ "{\"jsonrpc\":\"2.0\",\"result\":{}}", RPC_INVALID, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", RPC_INVALID, "1" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"x\"}", RPC_INVALID, "1" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rpc r;
		struct rpc_fault f = { 0 };
		char *id;

		CHECK(rpc_parse(rows[i].text, strlen(rows[i].text), &r, &f) < 0);
		CHECK_INT(f.code, rows[i].code);
		CHECK(f.text);
		id = r.id ? json_dumps(r.id, JSON_ENCODE_ANY) : NULL;
		CHECK(!id == !rows[i].id);
		if (id && rows[i].id)
			CHECK_STR(id, rows[i].id);
		free(id);
		rpc_done(&r);
	}
}

TEST(requests_notifications_and_answers_are_told_apart)
{
	static const struct {
		const char *text;
		enum rpc_kind kind;
	} rows[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", RPC_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"m\",\"params\":{}}", RPC_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
		  RPC_NOTIFICATION },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", RPC_RESPONSE },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}",
		  RPC_RESPONSE },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rpc r;
		struct rpc_fault f = { 0 };

		CHECK_INT(rpc_parse(rows[i].text, strlen(rows[i].text), &r, &f), 0);
		CHECK_INT(r.kind, rows[i].kind);
		CHECK(!r.method == (r.kind == RPC_RESPONSE));
		rpc_done(&r);
	}
}

static void check_text(json_t *message, const char *want)
{
	char *text = json_dumps(message, JSON_COMPACT);

	CHECK_STR(text, want);
	free(text);
	json_decref(message);
}

TEST(what_is_sent_is_read_again)
{
	check_text(rpc_result(json_integer(3), json_object()),
	           "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}");
	check_text(rpc_error(NULL, RPC_PARSE, "no", NULL),
	           "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"no\"}}");
	check_text(
	    rpc_error(json_string("a"), RPC_PARAMS, "no", json_pack("{si}", "x", 1)),
	    "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32602,\"message\":\"no\","
	    "\"data\":{\"x\":1}}}");
	check_text(rpc_request(NULL, "notifications/x", NULL),
	           "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
}
