/*
 * run.c - what takes time: bash and process.
 *
 * A command is waited for in slices, so that its client hears of it: progress when it asked for
 * that, and a sign of life when it did not. One that takes longer than a client waits goes on and
 * is told of as running. The client that takes its call back, or hangs up, ends the command; one
 * that was told of by then is nobody's call any more, and stays.
 */
#include "mcp/mcp-internal.h"

#define SHELL "mcp"
#define FIRST "1s"      /* most have ended by then */
#define SLICE_MS 5000   /* between two signs of life */
#define WHOLE_MS 100000 /* clients begin to give up at two minutes */
#define TIMEOUT_MS 600000
#define INLINE_BYTES (30u << 10)
#define LABEL "mcp" /* and the workspace that the server is bound to */
#define LABEL_SIZE 512

bool run_is_over(const json_t *px)
{
	static const char *const going[] = { "queued", "awaiting_approval", "running" };

	for (size_t i = 0; i < COUNT(going); i++)
		if (strcmp(json_text(px, "state"), going[i]) == 0)
			return false;
	return true;
}

static void label_of(const struct mcp *m, char out[LABEL_SIZE])
{
	snprintf(out, LABEL_SIZE, m->bound ? LABEL ":%s" : LABEL, m->bound);
}

bool run_is_ours(const struct mcp *m, const json_t *px)
{
	char label[LABEL_SIZE];

	label_of(m, label);
	return !m->bound || strcmp(json_text(px, "label"), label) == 0;
}

/* ---- to read --------------------------------------------------------------------------- */

static void add_output(struct str *o, const json_t *px, const char *key)
{
	const char *text = json_text(px, key);
	size_t n = strlen(text);

	if (n == 0)
		return;
	if (strcmp(json_text(px, "encoding"), "base64") == 0)
		str_addf(o, "(%s is not UTF-8; base64)\n", key);
	str_addn(o, text, n);
	if (text[n - 1] != '\n')
		str_add(o, "\n");
}

static void add_end(struct str *o, const json_t *px)
{
	const char *state = json_text(px, "state"), *reason = json_text(px, "reason");
	json_int_t code = json_integer_value(json_object_get(px, "exit_code"));

	if (!run_is_over(px))
		str_addf(o, "[%s as %s: use the tool process to poll, signal or kill it]\n", state,
		         json_text(px, "id"));
	else if (strcmp(state, "exited") != 0)
		str_addf(o, "[%s%s%s]\n", state, *reason ? ": " : "", reason);
	else if (code != 0)
		str_addf(o, "[exit code %lld]\n", (long long)code);
}

json_t *run_say(const json_t *px, struct str *o)
{
	const json_t *bytes = json_object_get(px, "bytes");
	json_int_t dropped = json_integer_value(json_object_get(bytes, "dropped"));

	add_output(o, px, "stdout");
	add_output(o, px, "stderr");
	if (dropped > 0)
		str_addf(o, "[%lld bytes are left out; all of it: GET %s]\n", (long long)dropped,
		         json_text(px, "log"));
	add_end(o, px);
	if (o->len == 0)
		str_add(o, "[no output]\n");
	return json_deep_copy(px);
}

static void said(struct mcp *m, const json_t *px)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };
	json_t *object = run_say(px, &text);

	if (m->note && !run_is_over(px)) {
		str_addf(&text, "[%s]\n", m->note);
		json_object_set_new(object, "note", json_string(m->note));
	}
	m->process[0] = '\0'; /* from now on it is nobody's call */
	mcp_say(m, &text, object);
}

/* ---- bash ------------------------------------------------------------------------------ */

static void wait_more(struct mcp *m, uint64_t ms);

/* It goes on, and waits; the model hears what for. */
static void held(struct mcp *m)
{
	inner_cancel(m->inner);
	wait_more(m, 0);
}

static void last_line(const json_t *px, char out[128])
{
	const char *text = json_text(px, "stdout");
	size_t n = strlen(text), from;

	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	for (from = n; from > 0 && text[from - 1] != '\n' && n - from < 100;)
		from--;
	while (from < n && ((unsigned char)text[from] & 0xc0) == 0x80)
		from++; /* not in the middle of a letter */
	snprintf(out, 128, "%.*s", (int)(n - from), text + from);
	if (n == from)
		snprintf(out, 128, "%s", json_text(px, "state"));
}

static void running(struct mcp *m, const json_t *px)
{
	uint64_t now = timer_now_ms() - m->begun_ms;
	char line[128], of[ID_SIZE + 16];

	if (m->is_modern && (m->caps & CAP_TASKS)) {
		m->process[0] = '\0';
		mcp_result(m, task_made(px));
		return;
	}
	if (m->note || (now >= WHOLE_MS && m->call)) {
		said(m, px);
		return;
	}
	last_line(px, line);
	mcp_progress(m, (double)now / 1000.0, 0, line);
	snprintf(of, sizeof of, "sandbox=%s", json_text(px, "sandbox"));
	ask_watch(m, of, held);
	wait_more(m, now + SLICE_MS > WHOLE_MS && now < WHOLE_MS ? WHOLE_MS - now : SLICE_MS);
}

static void waited(struct mcp *m, int status, json_t *px)
{
	if (status >= 400 || !px)
		mcp_problem(m, status, px);
	else if (run_is_over(px))
		said(m, px);
	else
		running(m, px);
}

static void wait_more(struct mcp *m, uint64_t ms)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };

	str_addf(&target, "/v1/processes/%s?wait=%llums", m->process, (unsigned long long)ms);
	mcp_ask_api(m, "GET", &target, NULL, waited);
}

static void start(struct mcp *m);

static void started(struct mcp *m, int status, json_t *px)
{
	if (status == 409 && strcmp(json_text(px, "code"), "busy") == 0 && !m->is_alone) {
		m->is_alone = true; /* another call has the shell: this one gets its own */
		start(m);
		return;
	}
	if (status >= 400 || !px) {
		mcp_problem(m, status, px);
		return;
	}
	snprintf(m->process, sizeof m->process, "%s", json_text(px, "id"));
	if (run_is_over(px) || arg_flag(m, "run_in_background"))
		said(m, px);
	else
		running(m, px);
}

static void start(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	bool is_background = arg_flag(m, "run_in_background");
	char timeout[32], label[LABEL_SIZE];

	label_of(m, label);
	snprintf(timeout, sizeof timeout, "%lldms",
	         (long long)arg_number(m, "timeout", TIMEOUT_MS));
	json_t *body =
	    json_pack("{ss,ss,ss,s{si}}", "cmd", arg_text(m, "command", ":"), "label", label,
	              "wait", is_background ? "0s" : FIRST, "output", "inline", INLINE_BYTES);
	if (!is_background || json_object_get(m->args, "timeout"))
		json_object_set_new(body, "timeout", json_string(timeout));
	if (!is_background && !m->is_alone)
		json_object_set_new(body, "shell", json_string(SHELL));
	if (is_background) /* process may give it input */
		json_object_set_new(body, "stdin", json_true());
	else
		json_object_set_new(body, "on_disconnect", json_string("kill"));
	if (mcp_target(m, &target, "/exec", NULL))
		mcp_ask_api(m, "POST", &target, body, started);
	else
		json_decref(body);
}

static void restarted(struct mcp *m, int status, json_t *answer)
{
	if (status >= 400 && status != 404)
		mcp_problem(m, status, answer);
	else
		start(m);
}

static void restart(struct mcp *m, int status, json_t *ws)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	const char *sandbox =
	    json_string_value(json_array_get(json_object_get(ws, "sandboxes"), 0));

	if (status >= 400 || !ws) {
		mcp_problem(m, status, ws);
	} else if (!sandbox) {
		restarted(m, 204, NULL); /* none runs, so there is no shell */
	} else {
		str_addf(&target, "/v1/sandboxes/%s/shells/" SHELL, sandbox);
		mcp_ask_api(m, "DELETE", &target, NULL, restarted);
	}
}

void tool_bash(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };

	if (!arg_flag(m, "restart") && !*arg_text(m, "command", ""))
		mcp_fail(m, "invalid: command is needed");
	else if (!arg_flag(m, "restart"))
		start(m);
	else if (mcp_target(m, &target, "", NULL))
		mcp_ask_api(m, "GET", &target, NULL, restart);
}

/* ---- the client has left ---------------------------------------------------------------- */

static void ended(void *arg, int status, struct span body)
{
	(void)arg;
	(void)status; /* it may have ended by itself */
	(void)body;
}

void run_over(struct mcp *m)
{
	char target[64];

	if (!m->process[0])
		return;
	snprintf(target, sizeof target, "/v1/processes/%s", m->process);
	if (!inner_call(m->api, &m->as, &(struct inner_ask){ .method = "DELETE", .target = target },
	                ended, NULL))
		return; /* no descriptors: its timeout ends it */
}

/* ---- process ---------------------------------------------------------------------------- */

static void looked(struct mcp *m, int status, json_t *px)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };

	if (status >= 400 || !px) {
		mcp_problem(m, status, px);
		return;
	}
	json_t *object = run_say(px, &text);
	if (run_is_over(px) && strcmp(json_text(px, "state"), "exited") == 0 &&
	    json_integer_value(json_object_get(px, "exit_code")) == 0)
		str_add(&text, "[exited with 0]\n");
	mcp_say(m, &text, object);
}

static void look(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	int64_t ms = arg_number(m, "wait_ms", 0);

	str_addf(&target, "/v1/processes/%s?wait=%lldms", arg_text(m, "id", ""),
	         (long long)(ms < 0          ? 0
	                     : ms > WHOLE_MS ? WHOLE_MS
	                                     : ms));
	mcp_ask_api(m, "GET", &target, NULL, looked);
}

static void acted(struct mcp *m, int status, json_t *px)
{
	if (status >= 400)
		mcp_problem(m, status, px);
	else
		look(m);
}

bool run_is_id(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n < ID_SIZE && !id[n];
}

static const struct {
	const char *name, *method, *rest;
} actions[] = {
	{ "stdin", "POST", "/stdin" },
	{ "signal", "POST", "/signal" },
	{ "kill", "DELETE", "" },
};

static json_t *action_body(const struct mcp *m, const char *action)
{
	if (strcmp(action, "stdin") == 0)
		return json_pack("{ss,sb}", "data", arg_text(m, "chars", ""), "eof",
		                 arg_flag(m, "eof"));
	return strcmp(action, "signal") == 0
	           ? json_pack("{ss,ss}", "sig", arg_text(m, "signal", "TERM"), "scope", "tree")
	           : NULL;
}

static void act(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	const char *action = arg_text(m, "action", "poll");
	size_t i = 0;

	if (strcmp(action, "poll") == 0) {
		look(m);
		return;
	}
	while (i < COUNT(actions) && strcmp(actions[i].name, action) != 0)
		i++;
	if (i == COUNT(actions)) {
		mcp_fail(m, "invalid: action: poll, stdin, signal or kill");
		return;
	}
	str_addf(&target, "/v1/processes/%s%s", arg_text(m, "id", ""), actions[i].rest);
	mcp_ask_api(m, actions[i].method, &target, action_body(m, action), acted);
}

/* It is not this call's own (m->process): who takes the call back does not end it. */
static void found(struct mcp *m, int status, json_t *px)
{
	if (status >= 400 || !px)
		mcp_problem(m, status, px);
	else if (!run_is_ours(m, px))
		mcp_fail(m, "not_found: no such process in the workspace %s", m->bound);
	else
		act(m);
}

void tool_process(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	const char *id = arg_text(m, "id", "");

	if (!run_is_id(id)) {
		mcp_fail(m, "invalid: id: px_… is expected");
		return;
	}
	str_addf(&target, "/v1/processes/%s", id);
	mcp_ask_api(m, "GET", &target, NULL, found);
}
