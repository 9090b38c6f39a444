/*
 * ask.c - what waits for a person while a tool runs is put to the one at the client.
 *
 * Of the older revisions that is a request of ours in the stream of the call, and the answer comes
 * by a message of its own. Of the newer one the call itself is answered, with the question and a
 * state by which it is found again (bond.c): it waits here, the command goes on, and the client
 * makes the same call once more with the answer. A daemon that was restarted meanwhile knows of
 * none of them.
 *
 * Who may decide is not decided here: the answer is given to the queue with the identity of the
 * caller, and the queue takes it or does not. Where the client cannot ask, or may not decide, the
 * model is told what is pending, and who can.
 */
#include "mcp/mcp-internal.h"

#define WAIT "60s"
#define AGAIN_MS 2000
#define AWAY_MS 600000 /* longer than questions wait unless somebody says so */
#define AWAY_MAX 32    /* calls of one client: each keeps what it was asked with */
#define APPROVALS "/v1/approvals?state=pending&limit=64&"

static const char *const choices[] = { "allow once", "allow for this workspace", "deny" };

static void watch_on(struct mcp *m, uint64_t ms);

/* ---- the client is away ---------------------------------------------------------------- */

static bool is_away(const struct mcp *m, const struct mcp *by, const char *word)
{
	(void)word;
	return !m->call && strcmp(m->tenant, by->tenant) == 0 && strcmp(m->actor, by->actor) == 0;
}

/* Sessions are the client's own word, and do not count. */
static bool has_room(const struct mcp *m)
{
	return mcp_count(is_away, m) < AWAY_MAX;
}

static void stayed_away(struct timer *t)
{
	mcp_cancel((struct mcp *)(void *)((char *)t - offsetof(struct mcp, look)));
}

/* The call is answered, and lives on: what comes of it is told when its client comes back. */
static void answer_and_stay(struct mcp *m, json_t *result)
{
	inner_cancel(m->side);
	m->side = NULL;
	mcp_reply(m, result);
	m->look.fired = stayed_away;
	timer_set(&m->api->core->timers, &m->look, AWAY_MS);
}

/* `m` has come back for `who`. */
static void come_back(struct mcp *who, struct mcp *m)
{
	struct inner_as as = who->as;
	struct rpc rpc = who->rpc;
	bool had_none = json_object_get(rpc.root, "no arguments");

	who->call = m->call;
	who->call->state = who;
	who->as = m->as;
	who->rpc = m->rpc;
	m->call = NULL;
	m->as = as;
	m->rpc = rpc;
	who->args = json_object_get(who->rpc.params, "arguments");
	if (had_none)
		json_object_set_new(who->rpc.root, "no arguments", who->args = json_object());
	who->token = m->token;
	who->caps = m->caps;
	who->has_stream = m->has_stream;
	who->begun_ms = timer_now_ms();
	who->asked[0] = '\0';
	who->is_left = false;
	timer_stop(&who->api->core->timers, &who->look);
	mcp_free(m);
}

/* True: it has ended meanwhile, and that was told. */
static bool tell_end(struct mcp *m)
{
	json_t *result = m->kept;

	m->kept = NULL;
	if (result)
		mcp_result(m, result);
	return result;
}

/* ---- one question ---------------------------------------------------------------------- */

static void put_aside(struct mcp *m, json_t *requests)
{
	uint64_t until_ms = timer_now_ms() + AWAY_MS;
	char state[BOND_SIZE];

	if (!bond_print(m, m->asked, until_ms, state)) {
		json_decref(requests);
		return; /* then nobody is asked */
	}
	answer_and_stay(m, json_pack("{ss,so,ss}", "resultType", "input_required", "inputRequests",
	                             requests, "requestState", state));
}

void ask_client(struct mcp *m, const char *key, const char *method, json_t *params,
                void (*answered)(struct mcp *m, json_t *result))
{
	if (!bond_word(m->asked)) {
		json_decref(params);
		return; /* likewise */
	}
	m->answered = answered;
	if (m->is_modern)
		put_aside(m, json_pack("{s{ss,so}}", key, "method", method, "params", params));
	else
		mcp_send(m, rpc_request(json_string(m->asked), method, params));
}

static bool is_asked(const struct mcp *m, const struct mcp *by, const char *word)
{
	return m->asked[0] && strcmp(m->asked, word) == 0 && bond_is_client(m, by);
}

void ask_response(const struct mcp *m)
{
	const char *id = json_string_value(m->rpc.id);
	struct mcp *who = id ? mcp_find(is_asked, m, id) : NULL;

	if (!who || !who->call || who->is_modern)
		return; /* who asks nobody any more is not told */
	who->asked[0] = '\0';
	who->answered(who, m->rpc.result);
}

bool ask_again(struct mcp *m)
{
	const char *state = json_string_value(json_object_get(m->rpc.params, "requestState"));
	const json_t *responses = json_object_get(m->rpc.params, "inputResponses");
	char word[MCP_WORD_SIZE];

	if (!state || m->kit->has_own_state)
		return false;
	bool is_good = bond_read(m, state, timer_now_ms(), word);
	struct mcp *who = is_good ? mcp_find(is_asked, m, word) : NULL;
	if (!who || who->call || !json_is_object(responses)) {
		mcp_error(m, RPC_PARAMS,
		          "requestState: it is of no call that waits, or not of this one", NULL);
		return true;
	}
	json_t *response = json_object_get(responses, "approve");
	come_back(who, m);
	if (tell_end(who))
		return true;
	if (json_is_object(response)) {
		who->answered(who, response);
	} else { /* then once more */
		who->approval[0] = '\0';
		watch_on(who, 0);
	}
	return true;
}

/* ---- those who cannot be asked ----------------------------------------------------------- */

void ask_leave(struct mcp *m)
{
	AUTO(str_done) struct str text = { .max = 8192 };

	if (!has_room(m)) {
		mcp_fail(m, "busy: %d calls wait already, and this one does not: %s", AWAY_MAX,
		         m->note);
		return;
	}
	str_addf(&text, "%s; call again after it is granted", m->note);
	m->is_left = true;
	answer_and_stay(m, json_pack("{s[{ss,ss}],sb}", "content", "type", "text", "text",
	                             str_text(&text), "isError", 1));
}

static bool is_left(const struct mcp *m, const struct mcp *by, const char *word)
{
	(void)word;
	return m->is_left && !m->call && bond_is_client(m, by) && bond_is_call(m, by);
}

bool ask_rejoin(struct mcp *m)
{
	struct mcp *who = mcp_find(is_left, m, NULL);

	if (!who)
		return false;
	come_back(who, m);
	who->approval[0] = '\0'; /* told again, if it still waits */
	if (!tell_end(who))
		watch_on(who, 0);
	return true;
}

static void hold(struct mcp *m, const json_t *approval)
{
	AUTO(str_done) struct str text = { .max = 8192 };
	const char *id = json_text(approval, "id");

	str_addf(
	    &text,
	    "approval %s is pending (%s: %s), for somebody who may decide it: caisson approve %s",
	    id, json_text(approval, "kind"), json_text(approval, "what"), id);
	free(m->note);
	m->note = mem_strdup(str_text(&text));
	m->held(m);
}

/* ---- the queue of approvals ------------------------------------------------------------ */

/* Who dismisses the question leaves it to others; who declines says no. */
json_t *ask_decision(const json_t *response)
{
	const char *action = json_text(response, "action");
	const char *choice = json_text(json_object_get(response, "content"), "decision");
	bool is_yes = strcmp(action, "accept") == 0 &&
	              (strcmp(choice, choices[0]) == 0 || strcmp(choice, choices[1]) == 0);

	if (strcmp(action, "accept") != 0 && strcmp(action, "decline") != 0)
		return NULL;
	return json_pack("{ss,ss}", "decision", is_yes ? "allow" : "deny", "scope",
	                 is_yes && strcmp(choice, choices[1]) == 0 ? "workspace" : "once");
}

/* A window of somebody's program may not show a long text: what is cut is left to caisson approve.
 */
bool ask_is_whole(const json_t *approval)
{
	return !json_is_true(json_object_get(json_object_get(approval, "detail"), "cut"));
}

json_t *ask_question(const struct mcp *m, const json_t *approval)
{
	AUTO(str_done) struct str text = { .max = 8192 };
	const char *why = json_text(approval, "why");
	json_t *schema =
	    json_pack("{ss,s{s{ss,ss,s[sss],ss}},s[s]}", "type", "object", "properties", "decision",
	              "type", "string", "title", "Decision", "enum", choices[0], choices[1],
	              choices[2], "default", choices[2], "required", "decision");

	str_addf(&text, "The sandbox asks for approval (%s): %s", json_text(approval, "kind"),
	         json_text(approval, "what"));
	if (*why)
		str_addf(&text, "\nWhy: %s", why);
	json_t *params =
	    json_pack("{ss,so}", "message", str_text(&text), "requestedSchema", schema);
	if (m->is_modern)
		json_object_set_new(params, "mode", json_string("form"));
	return params;
}

/* He may not, or does not want to: the model hears who has to, and does not wait for it. */
static void leave_to_others(struct mcp *m)
{
	m->will_not = true;
	m->approval[0] = '\0';
	watch_on(m, 0);
}

static void decided(void *arg, int status, struct span body)
{
	struct mcp *m = arg;

	(void)body;
	m->side = NULL;
	if (status == 401 || status == 403)
		leave_to_others(m);
	else
		watch_on(m, AGAIN_MS);
}

static void person_answered(struct mcp *m, json_t *response)
{
	json_t *body = ask_decision(response);
	char target[64];

	if (!body) {
		leave_to_others(m);
		return;
	}
	char *text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	snprintf(target, sizeof target, "/v1/approvals/%s", m->approval);
	m->side = inner_call(
	    m->api, &m->as,
	    &(struct inner_ask){ .method = "POST", .target = target, .body = span_of(text) },
	    decided, m);
	free(text);
	if (!m->side)
		watch_on(m, AGAIN_MS);
}

/* What a process asks is its own question; what nobody knows the process of is anybody's. */
bool ask_is_of(const json_t *approval, const char *process)
{
	const char *of = json_text(approval, "process");

	return !*process || !*of || strcmp(of, process) == 0;
}

static const json_t *pick(const struct mcp *m, const json_t *list)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *id = json_text(one, "id");

		if (ask_is_of(one, m->process) && strcmp(id, m->approval) != 0 &&
		    strlen(id) < sizeof m->approval)
			return one;
	}
	return NULL;
}

static void looked(void *arg, int status, struct span body)
{
	struct mcp *m = arg;
	json_t *answer = status == 200 ? json_loadb(body.at, body.len, 0, NULL) : NULL;
	const json_t *list = json_object_get(answer, "approvals"), *one = pick(m, list);
	bool can = m->caps & CAP_ELICITATION && (m->is_modern ? has_room(m) : m->has_stream) &&
	           !m->will_not && ask_is_whole(one);

	m->side = NULL;
	if (!one) {
		watch_on(m, json_array_size(list) > 0 || status != 200 ? AGAIN_MS : 0);
	} else {
		snprintf(m->approval, sizeof m->approval, "%s", json_text(one, "id"));
		if (can)
			ask_client(m, "approve", "elicitation/create", ask_question(m, one),
			           person_answered);
		else
			hold(m, one);
	}
	json_decref(answer);
}

static void look(struct timer *t)
{
	struct mcp *m = (struct mcp *)(void *)((char *)t - offsetof(struct mcp, look));
	char target[160];

	snprintf(target, sizeof target, APPROVALS "wait=" WAIT "&%s", m->approvals_of);
	m->side = inner_call(m->api, &m->as,
	                     &(struct inner_ask){ .method = "GET", .target = target }, looked, m);
	if (!m->side)
		watch_on(m, AGAIN_MS);
}

static void watch_on(struct mcp *m, uint64_t ms)
{
	if (!m->call)
		return;
	m->look.fired = look;
	timer_set(&m->api->core->timers, &m->look, ms);
}

void ask_watch(struct mcp *m, const char *of, mcp_fn *held)
{
	if (m->approvals_of[0])
		return;
	snprintf(m->approvals_of, sizeof m->approvals_of, "%s", of);
	m->held = held;
	watch_on(m, 0);
}

void ask_list(struct mcp *m, const char *sandbox, mcp_then *then)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };

	str_addf(&target, APPROVALS "sandbox=%s", sandbox);
	mcp_ask_api(m, "GET", &target, NULL, then);
}

void ask_stop(struct mcp *m)
{
	inner_cancel(m->side);
	m->side = NULL;
	timer_stop(&m->api->core->timers, &m->look);
}
