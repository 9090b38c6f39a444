/*
 * task.c - the processes of bash as tasks of the protocol's extension. A task is a process: nothing
 * else has to be kept of it. What a process waits for a person with is what its task asks its
 * client, under the name of the approval.
 */
#include <time.h>

#include "mcp/mcp-internal.h"

#define TTL_MS 86400000
#define POLL_MS 2000

static void add_time(json_t *o, const char *key, json_int_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char text[40];

	gmtime_r(&s, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(o, key, json_string(text));
}

static const char *status_of(const json_t *px)
{
	const char *state = json_text(px, "state");

	if (!run_is_over(px))
		return "working";
	return strcmp(state, "killed") == 0 ? "cancelled"
	       : strcmp(state, "lost") == 0 ? "failed"
	                                    : "completed";
}

static json_t *task_of(const json_t *px, const char *type)
{
	json_int_t ended_ms = json_integer_value(json_object_get(px, "ended_ms"));
	json_t *o = json_pack("{ss,ss,ss,si,si,ss}", "resultType", type, "taskId",
	                      json_text(px, "id"), "status", status_of(px), "ttlMs", TTL_MS,
	                      "pollIntervalMs", POLL_MS, "statusMessage", json_text(px, "state"));

	add_time(o, "createdAt", json_integer_value(json_object_get(px, "created_ms")));
	add_time(o, "lastUpdatedAt", ended_ms > 0 ? ended_ms : (json_int_t)core_now_ms());
	return o;
}

json_t *task_made(const json_t *px)
{
	return task_of(px, "task");
}

/* ---- the one that is meant ---------------------------------------------------------------- */

/* False: it was answered that there is none. */
static bool is_there(struct mcp *m, int status, const json_t *px)
{
	if (status < 400 && px && run_is_ours(m, px))
		return true;
	if (status < 400 || status == 404)
		mcp_error(m, RPC_PARAMS, "no such task", NULL);
	else
		mcp_error(m, RPC_INTERNAL, json_text(px, "detail"), NULL);
	return false;
}

static void find(struct mcp *m, mcp_then *then)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	const char *id = json_text(m->rpc.params, "taskId");

	if (!(m->caps & CAP_TASKS)) {
		mcp_error(
		    m, RPC_CAPABILITY, "the client has not said that it knows tasks",
		    json_pack("{s{s{s{}}}}", "requiredCapabilities", "extensions", MCP_TASKS));
		return;
	}
	if (!run_is_id(id)) {
		mcp_error(m, RPC_PARAMS, "no such task", NULL);
		return;
	}
	str_addf(&target, "/v1/processes/%s", id);
	mcp_ask_api(m, "GET", &target, NULL, then);
}

/* ---- tasks/get ---------------------------------------------------------------------------- */

static void say_end(struct mcp *m, const json_t *px)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };
	json_t *o = task_of(px, "complete");

	if (strcmp(status_of(px), "completed") == 0) {
		json_t *object = run_say(px, &text);

		json_object_set_new(o, "result",
		                    json_pack("{s[{ss,ss}],so,ss}", "content", "type", "text",
		                              "text", str_text(&text), "structuredContent", object,
		                              "resultType", "complete"));
	} else if (strcmp(status_of(px), "failed") == 0) {
		json_object_set_new(o, "error",
		                    json_pack("{si,ss}", "code", RPC_INTERNAL, "message",
		                              "nobody knows how it ended"));
	}
	mcp_result(m, o);
}

static void add_questions(const struct mcp *m, json_t *o, const json_t *list)
{
	json_t *requests = json_object();
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (!ask_is_of(one, json_text(m->task, "id")))
			continue;
		json_object_set_new(o, "statusMessage",
		                    json_sprintf("approval %s is pending", json_text(one, "id")));
		if (m->caps & CAP_ELICITATION && ask_is_whole(one))
			json_object_set_new(requests, json_text(one, "id"),
			                    json_pack("{ss,so}", "method", "elicitation/create",
			                              "params", ask_question(m, one)));
	}
	if (json_object_size(requests) > 0) {
		json_object_set_new(o, "status", json_string("input_required"));
		json_object_set(o, "inputRequests", requests);
	}
	json_decref(requests);
}

static void say_working(struct mcp *m, int status, json_t *answer)
{
	json_t *o = task_of(m->task, "complete");

	if (status == 200)
		add_questions(m, o, json_object_get(answer, "approvals"));
	mcp_result(m, o);
}

static void got(struct mcp *m, int status, json_t *px)
{
	if (!is_there(m, status, px))
		return;
	if (run_is_over(px)) {
		say_end(m, px);
		return;
	}
	m->task = json_incref(px);
	ask_list(m, json_text(px, "sandbox"), say_working);
}

void mcp_task_get(struct mcp *m)
{
	find(m, got);
}

/* ---- tasks/update --------------------------------------------------------------------------- */

static void answer_next(struct mcp *m, int status, json_t *answer);

/* What is pending, and was answered, is told to the queue: one by one. */
static void answer_first(struct mcp *m, int status, json_t *answer)
{
	json_t *responses = json_object_get(m->rpc.params, "inputResponses");
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(answer, "approvals"), i, one)
	{
		AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
		const char *id = json_text(one, "id");
		json_t *body = ask_is_of(one, json_text(m->task, "id"))
		                   ? ask_decision(json_object_get(responses, id))
		                   : NULL;

		if (!body)
			continue;
		str_addf(&target, "/v1/approvals/%s", id);
		json_object_del(responses, id);
		mcp_ask_api(m, "POST", &target, body, answer_next);
		return;
	}
	if (status >= 400)
		mcp_error(m, RPC_INTERNAL, json_text(answer, "detail"), NULL);
	else
		mcp_result(m, json_object());
}

static void answer_next(struct mcp *m, int status, json_t *answer)
{
	if (status == 401 || status == 403)
		mcp_error(m, RPC_INVALID, json_text(answer, "detail"), NULL);
	else /* it was decided meanwhile, or now */
		ask_list(m, json_text(m->task, "sandbox"), answer_first);
}

static void to_update(struct mcp *m, int status, json_t *px)
{
	if (!is_there(m, status, px))
		return;
	if (!json_is_object(json_object_get(m->rpc.params, "inputResponses"))) {
		mcp_error(m, RPC_PARAMS, "inputResponses: an object is expected", NULL);
		return;
	}
	m->task = json_incref(px);
	ask_list(m, json_text(px, "sandbox"), answer_first);
}

void mcp_task_update(struct mcp *m)
{
	find(m, to_update);
}

/* ---- tasks/cancel --------------------------------------------------------------------------- */

/* One that has ended meanwhile is none that is wrong. */
static void cancelled(struct mcp *m, int status, json_t *answer)
{
	if (status == 401 || status == 403)
		mcp_error(m, RPC_INVALID, json_text(answer, "detail"), NULL);
	else
		mcp_result(m, json_object());
}

static void to_cancel(struct mcp *m, int status, json_t *px)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };

	if (!is_there(m, status, px))
		return;
	str_addf(&target, "/v1/processes/%s", json_text(px, "id"));
	mcp_ask_api(m, "DELETE", &target, NULL, cancelled);
}

void mcp_task_cancel(struct mcp *m)
{
	find(m, to_cancel);
}
