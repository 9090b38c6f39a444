/*
 * door.c - POST /mcp: which revision a message is of, whether it keeps that revision's rules, and
 * which method it is for.
 */
#include <openssl/rand.h>

#include "api/auth.h"
#include "base/hex.h"
#include "mcp/mcp-internal.h"
#include "wire/base64.h"
#include "wire/utf8.h"

#define INSTRUCTIONS                                                                               \
	"A sandbox with a durable workspace at /work. Commands and files of these tools are in "   \
	"the sandbox, never on the host. Every command can be undone (workspace, action undo)."

static const struct mcp_kit kit, *plugged;
static struct mcp *under_way;

/* ---- lives --------------------------------------------------------------------------- */

struct mcp *mcp_find(mcp_is *is, const struct mcp *by, const char *word)
{
	struct mcp *m = under_way;

	while (m && (m == by || !is(m, by, word)))
		m = m->next;
	return m;
}

size_t mcp_count(mcp_is *is, const struct mcp *by)
{
	size_t n = 0;

	for (const struct mcp *m = under_way; m; m = m->next)
		n += m != by && is(m, by, NULL);
	return n;
}

static struct mcp *mcp_new(struct call *c)
{
	struct mcp *m = mem_alloc(sizeof *m);
	const char *accept = call_header(c, "Accept");

	*m = (struct mcp){ .next = under_way, .call = c, .api = c->api, .as = inner_as(c) };
	under_way = m;
	snprintf(m->tenant, sizeof m->tenant, "%s", c->tenant);
	snprintf(m->actor, sizeof m->actor, "%s", c->actor);
	m->has_stream = accept && strstr(accept, "text/event-stream");
	m->is_stdio = call_query(c, "stdio");
	m->kit = call_query(c, "conformance") ? plugged : &kit;
	const char *bound = call_query(c, "workspace"), *session = call_header(c, "Mcp-Session-Id");
	m->bound = bound && *bound ? mem_strdup(bound) : NULL;
	m->session = session ? mem_strdup(session) : NULL;
	m->begun_ms = timer_now_ms();
	return m;
}

void mcp_free(struct mcp *m)
{
	struct mcp **at = &under_way;

	while (*at && *at != m)
		at = &(*at)->next;
	if (*at)
		*at = m->next;
	inner_cancel(m->inner);
	ask_stop(m);
	timer_stop(&m->api->core->timers, &m->timer);
	inner_as_done(&m->as);
	rpc_done(&m->rpc);
	json_decref(m->kept);
	json_decref(m->task);
	free(m->note);
	free(m->bound);
	free(m->session);
	free(m);
}

void mcp_cancel(struct mcp *m)
{
	m->as.peer.socket_fd = -1; /* it is closed */
	run_over(m);
	mcp_free(m);
}

/* Also when it was answered: then there is none any more. */
static void over(struct call *c)
{
	struct mcp *m = c->state;

	c->state = NULL;
	if (m)
		mcp_cancel(m);
}

/* ---- sessions of the older revision ---------------------------------------------------- */

static const struct {
	const char *name;
	char letter;
	enum mcp_cap cap;
} known_caps[] = {
	{ "elicitation", 'e', CAP_ELICITATION },
	{ "sampling", 's', CAP_SAMPLING },
	{ "roots", 'r', CAP_ROOTS },
};

static unsigned int caps_of(const json_t *o)
{
	unsigned int caps = 0;

	for (size_t i = 0; i < COUNT(known_caps); i++)
		if (json_is_object(json_object_get(o, known_caps[i].name)))
			caps |= known_caps[i].cap;
	const json_t *form = json_object_get(o, "elicitation");
	if (json_object_size(form) > 0 && !json_object_get(form, "form"))
		caps &= ~(unsigned int)CAP_ELICITATION; /* only by pages, and we have none */
	if (json_object_get(json_object_get(o, "extensions"), MCP_TASKS))
		caps |= CAP_TASKS;
	return caps;
}

/* "es.RANDOM": what the client said of itself comes back with every request. */
static char *session_new(unsigned int caps)
{
	AUTO(str_done) struct str s = { .max = 128 };
	unsigned char random[16];
	char text[2 * sizeof random + 1];

	for (size_t i = 0; i < COUNT(known_caps); i++)
		if (caps & known_caps[i].cap)
			str_addn(&s, &known_caps[i].letter, 1);
	str_add(&s, ".");
	if (RAND_bytes(random, sizeof random) != 1)
		return NULL;
	hex_print(random, sizeof random, text);
	str_add(&s, text);
	return mem_strdup(str_text(&s));
}

static unsigned int session_caps(const char *session)
{
	size_t n = session ? strcspn(session, ".") : 0;
	unsigned int caps = 0;

	for (size_t i = 0; i < COUNT(known_caps); i++)
		if (n > 0 && memchr(session, known_caps[i].letter, n))
			caps |= known_caps[i].cap;
	return caps;
}

/* ---- methods --------------------------------------------------------------------------- */

static json_t *versions(void)
{
	return json_pack("[sss]", MCP_NOW, MCP_THEN, MCP_OLD);
}

static void refuse_version(struct mcp *m, const char *asked)
{
	mcp_error(m, RPC_VERSION, "this revision of the protocol is not spoken here",
	          json_pack("{so,ss}", "supported", versions(), "requested", asked));
}

static json_t *server_info(void)
{
	return json_pack("{ss,ss,ss}", "name", "caisson", "title", "Caisson", "version",
	                 CAISSON_VERSION);
}

static json_t *capabilities(const struct mcp *m)
{
	json_t *o = json_pack("{s{}}", "tools");

	m->kit->add_capabilities(m, o);
	return o;
}

static void discover(struct mcp *m)
{
	mcp_result(m, json_pack("{so,so,ss,si,ss,s{so}}", "supportedVersions", versions(),
	                        "capabilities", capabilities(m), "instructions", INSTRUCTIONS,
	                        "ttlMs", 3600000, "cacheScope", "public", "_meta",
	                        MCP_META "serverInfo", server_info()));
}

static void initialize(struct mcp *m)
{
	const char *asked = json_text(m->rpc.params, "protocolVersion");
	bool is_older = strcmp(asked, MCP_OLD) == 0;

	free(m->session);
	m->session = session_new(caps_of(json_object_get(m->rpc.params, "capabilities")));
	json_t *result = json_pack("{ss,so,so,ss}", "protocolVersion", is_older ? asked : MCP_THEN,
	                           "capabilities", capabilities(m), "serverInfo", server_info(),
	                           "instructions", INSTRUCTIONS);
	if (m->is_stdio && m->session) /* there are no headers */
		json_object_set_new(result, "_meta", json_pack("{ss}", MCP_SESSION, m->session));
	mcp_result(m, result);
}

static void nothing(struct mcp *m)
{
	mcp_result(m, json_object());
}

#define BOTH (ERA_THEN | ERA_NOW)

static const struct mcp_method common[] = {
	{ "initialize", initialize, ERA_THEN, NULL },
	{ "ping", nothing, ERA_THEN, NULL },
	{ "server/discover", discover, ERA_NOW, NULL },
};

/* clang-format off */
static const struct mcp_method methods[] = {
	{ "tools/list",   mcp_tools_list,  BOTH,    NULL },
	{ "tools/call",   mcp_tools_call,  BOTH,    "name" },
	{ "tasks/get",    mcp_task_get,    ERA_NOW, "taskId" },
	{ "tasks/update", mcp_task_update, ERA_NOW, "taskId" },
	{ "tasks/cancel", mcp_task_cancel, ERA_NOW, "taskId" },
};
/* clang-format on */

static void add_tasks(const struct mcp *m, json_t *capabilities)
{
	if (m->is_modern)
		json_object_set_new(capabilities, "extensions", json_pack("{s{}}", MCP_TASKS));
}

static const struct mcp_kit kit = { methods, COUNT(methods), add_tasks, false };

void mcp_plug(const struct mcp_kit *other)
{
	plugged = other;
}

static const struct mcp_method *find(const struct mcp_method *at, size_t n, const struct mcp *m)
{
	unsigned int era = m->is_modern ? ERA_NOW : ERA_THEN;

	for (size_t i = 0; i < n; i++)
		if (at[i].eras & era && strcmp(at[i].name, m->rpc.method) == 0)
			return &at[i];
	return NULL;
}

/* ---- the rules of the revision of 2026 -------------------------------------------------- */

static const json_t *meta_of(const struct mcp *m, const char *name)
{
	char key[128];

	snprintf(key, sizeof key, MCP_META "%s", name);
	return json_object_get(json_object_get(m->rpc.params, "_meta"), key);
}

/* "=?base64?…?=" is for values that a header cannot have. */
static bool is_header(struct mcp *m, const char *name, const char *want)
{
	const char *got = call_header(m->call, name);
	size_t n = got ? strlen(got) : 0;
	AUTO(str_done) struct str bytes = { .max = HTTP_HEAD_MAX };

	if (n > 11 && strncmp(got, "=?base64?", 9) == 0 && strcmp(got + n - 2, "?=") == 0) {
		if (!base64_decode(got + 9, n - 11, &bytes))
			return false;
		got = str_text(&bytes);
	}
	return got && strcmp(got, want) == 0;
}

static bool refuse_header(struct mcp *m, const char *text)
{
	mcp_error(m, RPC_HEADER, text, NULL);
	return false;
}

static bool check_headers(struct mcp *m, const char *version, const char *named)
{
	const json_t *name = named ? json_object_get(m->rpc.params, named) : NULL;

	if (m->is_stdio)
		return true;
	if (!is_header(m, "MCP-Protocol-Version", version))
		return refuse_header(m, "MCP-Protocol-Version is not that of the message");
	if (!is_header(m, "Mcp-Method", m->rpc.method))
		return refuse_header(m, "Mcp-Method is not that of the message");
	if (json_is_string(name) && !is_header(m, "Mcp-Name", json_string_value(name)))
		return refuse_header(m, "Mcp-Name is not that of the message");
	return true;
}

/* False: it was answered. */
static bool check_modern(struct mcp *m, const char *named)
{
	const json_t *version = meta_of(m, "protocolVersion");
	const json_t *caps = meta_of(m, "clientCapabilities");

	if (!json_is_string(version) || !json_is_object(caps)) {
		mcp_error(m, RPC_PARAMS,
		          "_meta: " MCP_META "protocolVersion and clientCapabilities are needed",
		          NULL);
		return false;
	}
	if (!check_headers(m, json_string_value(version), named))
		return false;
	if (strcmp(json_string_value(version), MCP_NOW) != 0) {
		refuse_version(m, json_string_value(version));
		return false;
	}
	m->caps = caps_of(caps);
	return true;
}

/* Of the older ones; false: it was answered. Who says nothing is taken for one of them. */
static bool check_older(struct mcp *m)
{
	const char *header = call_header(m->call, "MCP-Protocol-Version");

	m->caps = session_caps(m->session);
	if (!header || strcmp(header, MCP_THEN) == 0 || strcmp(header, MCP_OLD) == 0)
		return true;
	refuse_version(m, header);
	return false;
}

static bool is_modern(struct mcp *m)
{
	const char *header = call_header(m->call, "MCP-Protocol-Version");

	return meta_of(m, "protocolVersion") || (header && strcmp(header, MCP_NOW) == 0) ||
	       strcmp(m->rpc.method, "server/discover") == 0;
}

/* ---- messages --------------------------------------------------------------------------- */

/* It comes back with every progress, so it is as short as an id. */
static bool is_token(const json_t *t)
{
	return json_is_number(t) || (json_is_string(t) && json_string_length(t) <= RPC_ID_MAX);
}

static void on_request(struct mcp *m)
{
	m->is_modern = is_modern(m);
	const struct mcp_method *method = find(common, COUNT(common), m);

	if (!method)
		method = find(m->kit->methods, m->kit->n_methods, m);
	if (!(m->is_modern ? check_modern(m, method ? method->named : NULL) : check_older(m)))
		return;
	m->token = json_object_get(json_object_get(m->rpc.params, "_meta"), "progressToken");
	if (json_is_null(m->token))
		m->token = NULL;
	if (m->token && !is_token(m->token))
		mcp_error(m, RPC_PARAMS, "progressToken: a short text or a number is expected",
		          NULL);
	else if (!method)
		mcp_error(m, RPC_NO_METHOD, "no such method", NULL);
	else if (!(m->is_modern && ask_again(m)))
		method->run(m);
}

/* Ids are the client's own: only with its session is it known whose. */
static bool is_meant(const struct mcp *m, const struct mcp *by, const char *word)
{
	(void)word;
	return m->call && by->session && bond_is_client(m, by) && m->rpc.id &&
	       json_equal(m->rpc.id, json_object_get(by->rpc.params, "requestId"));
}

static void on_cancelled(const struct mcp *by)
{
	struct mcp *m = mcp_find(is_meant, by, NULL);

	if (!m)
		return; /* it has been answered meanwhile */
	run_over(m);
	mcp_quit(m);
}

static void on_other(struct mcp *m)
{
	struct call *c = m->call;

	if (m->rpc.kind == RPC_RESPONSE)
		ask_response(m);
	else if (strcmp(m->rpc.method, "notifications/cancelled") == 0)
		on_cancelled(m);
	c->state = NULL;
	mcp_free(m);
	answer_empty(c, 202);
}

/* What a target has may be any bytes, and what we say is JSON. */
static bool is_text(const char *text)
{
	return !text || utf8_is(text, strlen(text));
}

static void post(struct call *c)
{
	struct mcp *m = mcp_new(c);
	struct rpc_fault f;

	c->state = m;
	c->over = over;
	if (rpc_parse(c->r->body.at, c->r->body.len, &m->rpc, &f) < 0)
		mcp_error(m, f.code, f.text, NULL);
	else if (!m->kit)
		mcp_error(m, RPC_INVALID, "conformance: this daemon has no fixtures", NULL);
	else if (!is_text(m->bound))
		mcp_error(m, RPC_INVALID, "workspace: it is not UTF-8", NULL);
	else if (m->rpc.kind == RPC_REQUEST)
		on_request(m);
	else
		on_other(m);
}

/* ---- the door ---------------------------------------------------------------------------- */

static bool takes(const struct request *r)
{
	return span_is(r->path, "/mcp");
}

static int check(struct call *c, struct fail *f)
{
	return auth_check(c, c->route->scope, f);
}

/* Tools need the scopes of what they do. */
static const struct route table[] = {
	{ "POST", "/mcp", post, SCOPE_READ, BODY_WHOLE, "", NULL, NULL,
	  "workspace stdio conformance" },
};

/* No `once`: an answer may be a stream, and such are not kept. */
const struct annex mcp_annex = {
	.routes = table,
	.n_routes = COUNT(table),
	.takes = takes,
	.check = check,
};
