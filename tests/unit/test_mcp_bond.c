#include "mcp/mcp-internal.h"
#include "test.h"

#define WORD "ask-00112233"

static struct mcp made(const char *tenant, const char *actor, const char *bound, const char *call)
{
	struct mcp m = { .bound = bound ? mem_strdup(bound) : NULL };
	struct rpc_fault f;

	snprintf(m.tenant, sizeof m.tenant, "%s", tenant);
	snprintf(m.actor, sizeof m.actor, "%s", actor);
	CHECK_INT(rpc_parse(call, strlen(call), &m.rpc, &f), 0);
	return m;
}

static void done(struct mcp *m)
{
	rpc_done(&m->rpc);
	free(m->bound);
}

#define CALL(method, params)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
#define ARGS "{\"name\":\"bash\",\"arguments\":{\"a\":1,\"b\":\"x\"}}"

TEST(a_state_is_of_one_client_and_one_call)
{
	static const struct {
		const char *tenant, *actor, *bound, *call;
		bool is_good;
	} rows[] = {
		{ "t", "uid:0", "w", CALL("tools/call", ARGS), true },
		{ "t", "uid:0", "w",
		  CALL("tools/call", "{\"arguments\":{\"b\":\"x\",\"a\":1},\"name\":\"bash\","
		                     "\"requestState\":\"s\",\"_meta\":{}}"),
		  true },
		{ "u", "uid:0", "w", CALL("tools/call", ARGS), false },
		{ "t", "token:tk_1", "w", CALL("tools/call", ARGS), false },
		{ "t", "uid:0", "v", CALL("tools/call", ARGS), false },
		{ "t", "uid:0", NULL, CALL("tools/call", ARGS), false },
		{ "t", "uid:0", "w", CALL("prompts/get", ARGS), false },
		{ "t", "uid:0", "w", CALL("tools/call", "{\"name\":\"bash\"}"), false },
		{ "t", "uid:0", "w",
		  CALL("tools/call", "{\"name\":\"git\",\"arguments\":{\"a\":1,\"b\":\"x\"}}"),
		  false },
		{ "t", "uid:0", "w",
		  CALL("tools/call", "{\"name\":\"bash\",\"arguments\":{\"a\":1,\"b\":\"y\"}}"),
		  false },
	};
	struct mcp asked = made("t", "uid:0", "w", CALL("tools/call", ARGS));
	char state[BOND_SIZE], word[MCP_WORD_SIZE] = "";

	CHECK(bond_print(&asked, WORD, 1000, state));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mcp m = made(rows[i].tenant, rows[i].actor, rows[i].bound, rows[i].call);

		CHECK_INT(bond_read(&m, state, 999, word), rows[i].is_good);
		CHECK_INT(bond_is_call(&m, &asked), rows[i].is_good);
		done(&m);
	}
	CHECK_STR(word, WORD);
	done(&asked);
}

TEST(a_state_has_an_end_and_no_letter_of_it_can_be_another)
{
	struct mcp m = made("t", "uid:0", NULL, CALL("tools/call", ARGS));
	char state[BOND_SIZE], word[MCP_WORD_SIZE];

	CHECK(bond_print(&m, WORD, 1000, state));
	CHECK(bond_read(&m, state, 0, word));
	CHECK(!bond_read(&m, state, 1000, word));
	for (size_t i = 0; state[i]; i++) {
		char kept = state[i];

		state[i] = kept == '1' ? '2' : '1';
		CHECK(!bond_read(&m, state, 999, word));
		state[i] = '\0';
		CHECK(!bond_read(&m, state, 999, word));
		state[i] = kept;
	}
	CHECK(!bond_read(&m, "", 0, word));
	snprintf(state + strlen(state), 2, "0");
	CHECK(!bond_read(&m, state, 999, word));
	done(&m);
}

TEST(who_has_no_text_has_no_state)
{
	struct mcp m = made("t", "uid:0", "w\xff", CALL("tools/call", ARGS));
	char state[BOND_SIZE], word[MCP_WORD_SIZE];

	CHECK(!bond_print(&m, WORD, 1000, state));
	snprintf(state, sizeof state, "%s.1000.%064d", WORD, 0);
	CHECK(!bond_read(&m, state, 999, word));
	CHECK(!bond_is_call(&m, &m));
	done(&m);
}

TEST(words_differ)
{
	char a[MCP_WORD_SIZE], b[MCP_WORD_SIZE];

	CHECK(bond_word(a) && bond_word(b));
	CHECK(strcmp(a, b) != 0);
	CHECK_INT(strlen(a), 36);
}
