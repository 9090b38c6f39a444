/*
 * fixtures.c - what the conformance suite of the protocol wants a server to have: tools, resources
 * and prompts that do nothing but answer, served at /mcp?conformance of caissond-conformance, which
 * is caissond with this file linked to it, and is not installed. They go through the same messages,
 * streams and questions as the tools that mean something.
 */
#include <openssl/rand.h>

#include "mcp/mcp-internal.h"

#define PNG                                                                                        \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5E" \
	"rk"                                                                                       \
	"Jggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
#define STEP_MS 50

struct fixture {
	const char *name, *help;
	const char *content; /* of the result, as JSON */
	const char *asks;    /* first, of the newer revision: inputRequests as JSON */
	mcp_fn *run;         /* in place of these */
	bool has_state;      /* what it asks has a requestState */
};

static mcp_fn fix_greet, fix_slow, fix_log, fix_progress, fix_sampling, fix_form, fix_error,
    fix_lacking, fix_rounds;

#define TEXT(s) "[{\"type\":\"text\",\"text\":\"" s "\"}]"
#define FORM(key, message, members, needed)                                                        \
	"\"" key "\":{\"method\":\"elicitation/"                                                   \
	"create\",\"params\":{\"mode\":\"form\",\"message\":\"" message                            \
	"\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{" members                     \
	"},\"required\":[" needed "]}}}"
#define NAME_FORM                                                                                  \
	FORM("user_name", "What is your name?", "\"name\":{\"type\":\"string\"}", "\"name\"")
#define OK_FORM FORM("confirm", "Please confirm", "\"ok\":{\"type\":\"boolean\"}", "\"ok\"")
#define SAMPLE(key, text)                                                                          \
	"\"" key                                                                                   \
	"\":{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[{\"role\":\"user\","  \
	"\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}],\"maxTokens\":100}}"
#define ROOTS "\"client_roots\":{\"method\":\"roots/list\",\"params\":{}}"
#define RESOURCE(uri, type, text)                                                                  \
	"{\"type\":\"resource\",\"resource\":{\"uri\":\"" uri "\",\"mimeType\":\"" type            \
	"\",\"text\":\"" text "\"}}"
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"

/* clang-format off */
static const struct fixture fixtures[] = {
	{ "greet", "Greets", NULL, NULL, fix_greet, false },
	{ "slow_compute", "A command that takes a while: with the extension a task", NULL, NULL, fix_slow, false },
	{ "test_simple_text", "A text", TEXT("This is a simple text response for testing."), NULL, NULL, false },
	{ "test_image_content", "An image", "[" IMAGE "]", NULL, NULL, false },
	{ "test_audio_content", "A sound", "[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]", NULL, NULL, false },
	{ "test_embedded_resource", "A resource", "[" RESOURCE("test://embedded-resource", "text/plain", "This is an embedded resource content.") "]", NULL, NULL, false },
	{ "test_multiple_content_types", "Three kinds",
	  "[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE ","
	  RESOURCE("test://mixed-content-resource", "application/json", "{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}") "]", NULL, NULL, false },
	{ "test_tool_with_logging", "Three messages for the log", TEXT("Three messages were logged."), NULL, fix_log, false },
	{ "test_error_handling", "Always fails", TEXT("This tool intentionally returns an error for testing"), NULL, fix_error, false },
	{ "test_tool_with_progress", "Three steps", TEXT("Three steps were made."), NULL, fix_progress, false },
	{ "test_sampling", "Asks the client's model", NULL, NULL, fix_sampling, false },
	{ "test_elicitation", "Asks the person", "\"username\":{\"type\":\"string\",\"description\":\"User's response\"},\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}", "\"username\",\"email\"", fix_form, false },
	{ "test_elicitation_sep1034_defaults", "Asks with defaults",
	  "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},\"age\":{\"type\":\"integer\",\"default\":30},\"score\":{\"type\":\"number\",\"default\":95.5},"
	  "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},\"verified\":{\"type\":\"boolean\",\"default\":true}", "", fix_form, false },
	{ "test_elicitation_sep1330_enums", "Asks with choices",
	  "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
	  "\"titledSingle\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"value1\",\"title\":\"First Option\"},{\"const\":\"value2\",\"title\":\"Second Option\"},{\"const\":\"value3\",\"title\":\"Third Option\"}]},"
	  "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
	  "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
	  "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"value1\",\"title\":\"First Choice\"},{\"const\":\"value2\",\"title\":\"Second Choice\"},{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}", "", fix_form, false },
	{ "test_missing_capability", "Needs a client with sampling", TEXT("The client has it."), NULL, fix_lacking, false },
	{ "test_logging_tool", "Logs to who asks for a log", TEXT("Nobody asked for a log."), NULL, NULL, false },
	{ "test_streaming_elicitation", "Asks the person", TEXT("Thank you."), "{" NAME_FORM "}", NULL, false },
	{ "test_input_required_result_elicitation", "Asks for a name", TEXT("Hello!"), "{" NAME_FORM "}", NULL, false },
	{ "test_input_required_result_sampling", "Asks for a capital", TEXT("Thank you."), "{" SAMPLE("capital_question", "What is the capital of France?") "}", NULL, false },
	{ "test_input_required_result_list_roots", "Asks for roots", TEXT("Thank you."), "{" ROOTS "}", NULL, false },
	{ "test_input_required_result_request_state", "Asks, with a state", TEXT("state-ok"), "{" OK_FORM "}", NULL, true },
	{ "test_input_required_result_multiple_inputs", "Asks three things", TEXT("Thank you."),
	  "{" NAME_FORM "," SAMPLE("greeting", "Generate a greeting") "," ROOTS "}", NULL, true },
	{ "test_input_required_result_multi_round", "Asks twice", TEXT("Thank you."), NULL, fix_rounds, true },
	{ "test_input_required_result_tampered_state", "Asks, with a state that must not change", TEXT("state-ok"), "{" OK_FORM "}", NULL, true },
	{ "test_input_required_result_capabilities", "Asks what the client can", TEXT("Thank you."),
	  "{" NAME_FORM "," SAMPLE("greeting", "Generate a greeting") "}", NULL, false },
};

static const struct fixture prompts[] = {
	{ "test_simple_prompt", "A prompt", "[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"This is a simple prompt for testing.\"}}]", NULL, NULL, false },
	{ "test_prompt_with_arguments", "One with arg1 and arg2", NULL, NULL, NULL, false },
	{ "test_prompt_with_embedded_resource", "One with a resource", NULL, NULL, NULL, false },
	{ "test_prompt_with_image", "One with an image",
	  "[{\"role\":\"user\",\"content\":" IMAGE "},{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Please analyze the image above.\"}}]", NULL, NULL, false },
	{ "test_input_required_result_prompt", "One that asks", "[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"With the context that was given.\"}}]",
	  "{" FORM("user_context", "What context should the prompt use?", "\"context\":{\"type\":\"string\"}", "\"context\"") "}", NULL, false },
};
/* clang-format on */

static const struct fixture *find(const struct fixture *at, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(at[i].name, name) == 0)
			return &at[i];
	return NULL;
}

static json_t *parsed(const char *text)
{
	return json_loads(text, JSON_REJECT_DUPLICATES, NULL);
}

static void send_cached(struct mcp *m, json_t *result)
{
	if (m->is_modern) {
		json_object_set_new(result, "ttlMs", json_integer(60000));
		json_object_set_new(result, "cacheScope", json_string("public"));
	}
	mcp_result(m, result);
}

static void send_text(struct mcp *m, const char *text)
{
	mcp_result(m, json_pack("{s[{ss,ss}]}", "content", "type", "text", "text", text));
}

/* ---- questions of the newer revision ----------------------------------------------------- */

/* What a client cannot know, and cannot change. */
static const char *state_word(const char *name, unsigned int round)
{
	static unsigned char secret[16];
	static bool is_made;
	static char out[128];

	if (!is_made && RAND_bytes(secret, sizeof secret) != 1)
		return "";
	is_made = true;
	int n = snprintf(out, sizeof out, "%u.%s.", round, name);
	for (size_t i = 0; i < sizeof secret; i++)
		n += snprintf(out + n, sizeof out - (size_t)n, "%02x", secret[i]);
	return out;
}

static bool can(const struct mcp *m, const char *method)
{
	unsigned int cap = strncmp(method, "elicit", 6) == 0     ? CAP_ELICITATION
	                   : strncmp(method, "sampling", 8) == 0 ? CAP_SAMPLING
	                                                         : CAP_ROOTS;

	return m->caps & cap;
}

static void ask_again_for(struct mcp *m, const char *asks, const char *state)
{
	json_t *all = parsed(asks), *v, *result;
	const char *key;
	void *next;

	json_object_foreach_safe(all, next, key, v) if (!can(m, json_text(v, "method")))
	    json_object_del(all, key);
	result = json_pack("{ss,so}", "resultType", "input_required", "inputRequests", all);
	if (state)
		json_object_set_new(result, "requestState", json_string(state));
	mcp_result(m, result);
}

/* Whether each that was asked for, and could be, is there. */
static bool has_answers(const struct mcp *m, const char *asks)
{
	const json_t *got = json_object_get(m->rpc.params, "inputResponses");
	json_t *all = parsed(asks), *v;
	bool is_whole = json_is_object(got);
	const char *key;

	json_object_foreach(all, key, v) is_whole &=
	    !can(m, json_text(v, "method")) || json_is_object(json_object_get(got, key));
	json_decref(all);
	return is_whole;
}

/* True: the result may be given. Else it was answered. */
static bool has_asked(struct mcp *m, const struct fixture *f)
{
	const json_t *got = json_object_get(m->rpc.params, "inputResponses");
	const char *state = json_string_value(json_object_get(m->rpc.params, "requestState"));
	const char *word = f->has_state ? state_word(f->name, 1) : NULL;

	if (!f->asks || !m->is_modern)
		return true;
	if ((got && !json_is_object(got)) || (state && (!word || strcmp(state, word) != 0))) {
		mcp_error(m, RPC_PARAMS, "inputResponses or requestState: not what was asked for",
		          NULL);
		return false;
	}
	if (has_answers(m, f->asks) && (!word || state))
		return true;
	ask_again_for(m, f->asks, word);
	return false;
}

static void fix_rounds(struct mcp *m)
{
	static const char *const asks[] = {
		"{" FORM("step1", "Step 1: What is your name?", "\"name\":{\"type\":\"string\"}",
		         "\"name\"") "}",
		"{" FORM("step2", "Step 2: What is your favorite color?",
		         "\"color\":{\"type\":\"string\"}", "\"color\"") "}",
	};
	const char *state = json_string_value(json_object_get(m->rpc.params, "requestState"));
	unsigned int round = 0;

	while (state && round < COUNT(asks) && strcmp(state, state_word("rounds", round + 1)) != 0)
		round++;
	if (state && round == COUNT(asks))
		mcp_error(m, RPC_PARAMS, "requestState: not ours", NULL);
	else if (!state || !has_answers(m, asks[round]))
		ask_again_for(m, asks[round], state_word("rounds", round + 1));
	else if (round + 1 < COUNT(asks))
		ask_again_for(m, asks[round + 1], state_word("rounds", round + 2));
	else
		send_text(m, "Thank you.");
}

/* ---- tools ----------------------------------------------------------------------------- */

static void fix_error(struct mcp *m)
{
	mcp_fail(m, "This tool intentionally returns an error for testing");
}

static void fix_greet(struct mcp *m)
{
	char text[256];

	snprintf(text, sizeof text, "Hello, %s!", arg_text(m, "name", ""));
	send_text(m, text);
}

/* No fixture but a real one: bash, in the workspace of the target. Longer than what it waits for
 * before it says that it is a task. */
static void fix_slow(struct mcp *m)
{
	int64_t s = arg_number(m, "seconds", 0);
	char command[256];

	snprintf(command, sizeof command, "sleep %lld.%c; echo done", (long long)s, s ? '5' : '0');
	m->args = json_pack("{ss}", "command", command);
	json_object_set_new(m->rpc.root, "command", m->args);
	tool_bash(m);
}

static void fix_lacking(struct mcp *m)
{
	if (m->caps & CAP_SAMPLING)
		send_text(m, "The client has it.");
	else
		mcp_error(m, RPC_CAPABILITY, "the client cannot sample",
		          json_pack("{s{s{}}}", "requiredCapabilities", "sampling"));
}

static void fix_progress(struct mcp *m)
{
	if (m->round == 3) {
		send_text(m, "Three steps were made.");
		return;
	}
	mcp_progress(m, 50.0 * m->round++, 100, NULL);
	mcp_later(m, STEP_MS, fix_progress);
}

static void fix_log(struct mcp *m)
{
	static const char *const texts[] = { "Tool execution started", "Tool processing data",
		                             "Tool execution completed" };

	if (m->is_modern || m->round == COUNT(texts)) {
		send_text(m, "Three messages were logged.");
		return;
	}
	mcp_send(m, rpc_request(NULL, "notifications/message",
	                        json_pack("{ss,ss}", "level", "info", "data", texts[m->round++])));
	mcp_later(m, STEP_MS, fix_log);
}

static void was_sampled(struct mcp *m, json_t *result)
{
	AUTO(str_done) struct str text = { .max = 4096 };

	str_addf(&text, "LLM response: %s", json_text(json_object_get(result, "content"), "text"));
	send_text(m, str_text(&text));
}

static void fix_sampling(struct mcp *m)
{
	if (m->is_modern || !m->has_stream || !(m->caps & CAP_SAMPLING)) {
		mcp_fail(m, "the client cannot be asked");
		return;
	}
	ask_client(m, "sample", "sampling/createMessage",
	           json_pack("{s[{ss,s{ss,ss}}],si}", "messages", "role", "user", "content", "type",
	                     "text", "text", arg_text(m, "prompt", ""), "maxTokens", 100),
	           was_sampled);
}

static void was_filled_in(struct mcp *m, json_t *result)
{
	AUTO(str_done) struct str text = { .max = 64u << 10 };
	char *dump = json_dumps(result ? result : json_null(), JSON_COMPACT | JSON_ENCODE_ANY);

	str_addf(&text, "Elicitation completed: %s", dump);
	free(dump);
	send_text(m, str_text(&text));
}

static void fix_form(struct mcp *m)
{
	const struct fixture *f = find(fixtures, COUNT(fixtures), json_text(m->rpc.params, "name"));
	AUTO(str_done) struct str schema = { .max = 64u << 10 };

	if (m->is_modern || !m->has_stream || !(m->caps & CAP_ELICITATION)) {
		mcp_fail(m, "the client cannot be asked");
		return;
	}
	str_addf(&schema, "{\"type\":\"object\",\"properties\":{%s},\"required\":[%s]}", f->content,
	         f->asks);
	ask_client(m, "form", "elicitation/create",
	           json_pack("{ss,so}", "message", arg_text(m, "message", "Please fill this in"),
	                     "requestedSchema", parsed(str_text(&schema))),
	           was_filled_in);
}

static void fix_tools_list(struct mcp *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < COUNT(fixtures); i++)
		json_array_append_new(list, json_pack("{ss,ss,s{ss}}", "name", fixtures[i].name,
		                                      "description", fixtures[i].help,
		                                      "inputSchema", "type", "object"));
	send_cached(m, json_pack("{so}", "tools", list));
}

static void fix_tools_call(struct mcp *m)
{
	const char *name = json_text(m->rpc.params, "name");
	const struct fixture *f = find(fixtures, COUNT(fixtures), name);

	m->args = json_object_get(m->rpc.params, "arguments");
	if (!f)
		mcp_error(m, RPC_PARAMS, "no such tool", json_pack("{ss}", "name", name));
	else if (f->run)
		f->run(m);
	else if (has_asked(m, f))
		mcp_result(m, json_pack("{so}", "content", parsed(f->content)));
}

/* ---- resources ------------------------------------------------------------------------- */

static void fix_resources(struct mcp *m)
{
	send_cached(m,
	            json_pack("{s[{ss,ss,ss,ss},{ss,ss,ss,ss}]}", "resources", "uri",
	                      "test://static-text", "name", "static-text", "description", "a text",
	                      "mimeType", "text/plain", "uri", "test://static-binary", "name",
	                      "static-binary", "description", "an image", "mimeType", "image/png"));
}

static void fix_templates(struct mcp *m)
{
	send_cached(m, json_pack("{s[{ss,ss,ss,ss}]}", "resourceTemplates", "uriTemplate",
	                         "test://template/{id}/data", "name", "template", "description",
	                         "by its id", "mimeType", "application/json"));
}

static void send_resource(struct mcp *m, const char *type, const char *key, const char *value)
{
	send_cached(m, json_pack("{s[{ss,ss,ss}]}", "contents", "uri",
	                         json_text(m->rpc.params, "uri"), "mimeType", type, key, value));
}

static void fix_read(struct mcp *m)
{
	const char *uri = json_text(m->rpc.params, "uri");
	char id[64], text[256];
	int end = 0;

	if (strcmp(uri, "test://static-text") == 0)
		send_resource(m, "text/plain", "text",
		              "This is the content of the static text resource.");
	else if (strcmp(uri, "test://static-binary") == 0)
		send_resource(m, "image/png", "blob", PNG);
	else if (sscanf(uri, "test://template/%63[A-Za-z0-9]/data%n", id, &end) == 1 && end &&
	         !uri[end]) {
		snprintf(text, sizeof text,
		         "{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}", id,
		         id);
		send_resource(m, "application/json", "text", text);
	} else {
		mcp_error(m, m->is_modern ? RPC_PARAMS : -32002, "no such resource",
		          json_pack("{ss}", "uri", uri));
	}
}

/* ---- prompts, and the rest ------------------------------------------------------------- */

static void fix_prompts(struct mcp *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < COUNT(prompts); i++)
		json_array_append_new(list, json_pack("{ss,ss}", "name", prompts[i].name,
		                                      "description", prompts[i].help));
	json_object_set_new(json_array_get(list, 1), "arguments",
	                    json_pack("[{ss,sb},{ss,sb}]", "name", "arg1", "required", 1, "name",
	                              "arg2", "required", 1));
	json_object_set_new(json_array_get(list, 2), "arguments",
	                    json_pack("[{ss,sb}]", "name", "resourceUri", "required", 1));
	send_cached(m, json_pack("{so}", "prompts", list));
}

/* One with arguments is made of them. */
static json_t *messages_of(const struct mcp *m, const struct fixture *f)
{
	char text[1024];

	if (f->content)
		return parsed(f->content);
	if (strcmp(f->name, "test_prompt_with_arguments") == 0) {
		snprintf(text, sizeof text, "Prompt with arguments: arg1='%s', arg2='%s'",
		         arg_text(m, "arg1", ""), arg_text(m, "arg2", ""));
		return json_pack("[{ss,s{ss,ss}}]", "role", "user", "content", "type", "text",
		                 "text", text);
	}
	return json_pack("[{ss,s{ss,s{ss,ss,ss}}},{ss,s{ss,ss}}]", "role", "user", "content",
	                 "type", "resource", "resource", "uri", arg_text(m, "resourceUri", ""),
	                 "mimeType", "text/plain", "text", "Embedded resource content for testing.",
	                 "role", "user", "content", "type", "text", "text",
	                 "Please process the embedded resource above.");
}

static void fix_prompt(struct mcp *m)
{
	const char *name = json_text(m->rpc.params, "name");
	const struct fixture *f = find(prompts, COUNT(prompts), name);

	m->args = json_object_get(m->rpc.params, "arguments");
	if (!f)
		mcp_error(m, RPC_PARAMS, "no such prompt", json_pack("{ss}", "name", name));
	else if (has_asked(m, f))
		mcp_result(m, json_pack("{so}", "messages", messages_of(m, f)));
}

static void fix_complete(struct mcp *m)
{
	mcp_result(m,
	           json_pack("{s{s[],si,sb}}", "completion", "values", "total", 0, "hasMore", 0));
}

static void fix_nothing(struct mcp *m)
{
	mcp_result(m, json_object());
}

/* ---- the kit --------------------------------------------------------------------------- */

#define BOTH (ERA_THEN | ERA_NOW)

/* clang-format off */
static const struct mcp_method methods[] = {
	{ "tools/list",               fix_tools_list, BOTH, NULL },
	{ "tools/call",               fix_tools_call, BOTH, "name" },
	{ "resources/list",           fix_resources,  BOTH, NULL },
	{ "resources/templates/list", fix_templates,  BOTH, NULL },
	{ "resources/read",           fix_read,       BOTH, "uri" },
	{ "resources/subscribe",      fix_nothing,    ERA_THEN, NULL },
	{ "resources/unsubscribe",    fix_nothing,    ERA_THEN, NULL },
	{ "prompts/list",             fix_prompts,    BOTH, NULL },
	{ "prompts/get",              fix_prompt,     BOTH, "name" },
	{ "completion/complete",      fix_complete,   BOTH, NULL },
	{ "logging/setLevel",         fix_nothing,    ERA_THEN, NULL },
	{ "tasks/get",                mcp_task_get,    ERA_NOW, "taskId" },
	{ "tasks/update",             mcp_task_update, ERA_NOW, "taskId" },
	{ "tasks/cancel",             mcp_task_cancel, ERA_NOW, "taskId" },
};
/* clang-format on */

static void add_capabilities(const struct mcp *m, json_t *o)
{
	json_object_set_new(o, "prompts", json_object());
	json_object_set_new(o, "resources",
	                    m->is_modern ? json_object() : json_pack("{sb}", "subscribe", 1));
	json_object_set_new(o, "completions", json_object());
	if (m->is_modern)
		json_object_set_new(o, "extensions", json_pack("{s{}}", MCP_TASKS));
	else
		json_object_set_new(o, "logging", json_object());
}

static const struct mcp_kit kit = { methods, COUNT(methods), add_capabilities, true };

__attribute__((constructor)) static void plug(void)
{
	mcp_plug(&kit);
}
