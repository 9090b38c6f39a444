/*
 * work.c - git and workspace: an action is a row, a row is a request.
 */
#include "mcp/mcp-internal.h"
#include "wire/utf8.h"

#define SAID_MAX (48u << 10) /* of a patch or an object, to be read */
#define FILES_MAX 1000       /* of a status: many clients show the object, and not the text */

struct action {
	const char *name, *method, *rest;
	const char *takes; /* arguments that are members of the body, as they are */
	mcp_then *then;
	bool asks; /* a person may be asked meanwhile */
};

/* ---- to read --------------------------------------------------------------------------- */

/* Whole letters of it, as many as are worth reading. */
static void add_some(struct str *o, struct span text)
{
	size_t n = text.len > SAID_MAX ? SAID_MAX : text.len;

	if (n < text.len)
		n -= utf8_open_end(text.at, n);
	str_addn(o, text.at, n);
	if (n < text.len)
		str_addf(o, "\n[%zu bytes are left out]\n", text.len - n);
}

static void said(struct mcp *m, int status, json_t *answer)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };
	char *dump;

	if (status >= 400 || !answer) {
		mcp_problem(m, status, answer);
		return;
	}
	dump = json_dumps(answer, JSON_INDENT(1));
	add_some(&text, span_of(dump));
	free(dump);
	mcp_say(m, &text, json_incref(answer));
}

static void status_came(struct mcp *m, int status, json_t *answer)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };
	json_t *files = json_object_get(answer, "files");
	size_t i, n = json_array_size(files);
	const json_t *file;

	if (status >= 400 || !answer) {
		mcp_problem(m, status, answer);
		return;
	}
	while (json_array_size(files) > FILES_MAX)
		json_array_remove(files, json_array_size(files) - 1);
	json_array_foreach(files, i, file)
	    str_addf(&text, "%s %s\n", json_text(file, "status"), json_text(file, "path"));
	if (n == 0)
		str_add(&text, "[nothing has changed]\n");
	if (n > FILES_MAX) {
		str_addf(&text, "[%zu files in all]\n", n);
		json_object_set_new(answer, "files_left_out",
		                    json_integer((json_int_t)(n - FILES_MAX)));
	}
	mcp_say(m, &text, json_incref(answer));
}

static void log_came(struct mcp *m, int status, json_t *px)
{
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };

	if (status >= 400 || !px) {
		mcp_problem(m, status, px);
		return;
	}
	json_t *object = run_say(px, &text);
	mcp_say(m, &text, object);
}

/* ---- actions --------------------------------------------------------------------------- */

static const char *take_name(const char *names, char out[32])
{
	size_t n = strcspn(names, " ");

	snprintf(out, 32, "%.*s", (int)n, names);
	return names + n + (names[n] == ' ');
}

static json_t *body_of(const struct mcp *m, const struct action *a)
{
	json_t *body = json_object();
	char name[32];

	for (const char *at = a->takes; *at;) {
		at = take_name(at, name);
		json_t *v = json_object_get(m->args, name);

		if (json_is_real(v))
			json_object_set_new(body, name, json_integer(json_whole(v)));
		else if (v)
			json_object_set(body, name, v);
	}
	return body;
}

static void go(struct mcp *m, const struct action *a)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };

	if (mcp_target(m, &target, a->rest, NULL))
		mcp_ask_api(m, a->method, &target, a->takes ? body_of(m, a) : NULL, a->then);
}

static const struct action *find(struct mcp *m, const struct action *at, size_t n)
{
	const char *name = arg_text(m, "action", "");

	for (size_t i = 0; i < n; i++)
		if (strcmp(at[i].name, name) == 0)
			return &at[i];
	mcp_fail(m, "invalid: action: \"%.32s\" is none", name);
	return NULL;
}

/* ---- git ------------------------------------------------------------------------------- */

/* The patch is text, and it is not ours to be parsed. */
static void diff_came(void *arg, int status, struct span body)
{
	struct mcp *m = arg;
	AUTO(str_done) struct str text = { .max = MCP_TEXT_MAX };

	m->inner = NULL;
	if (status != 200) {
		json_t *problem = json_loadb(body.at, body.len, 0, NULL);

		mcp_problem(m, status, problem);
		json_decref(problem);
		return;
	}
	add_some(&text, body);
	json_t *patch = json_stringn(str_text(&text), text.len);
	if (body.len == 0)
		str_add(&text, "[nothing has changed]\n");
	mcp_say(m, &text, json_pack("{so}", "patch", patch ? patch : json_null()));
}

static void git_diff(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	const json_t *paths = json_object_get(m->args, "paths");
	const char *texts[] = { arg_text(m, "base", "base"),
		                json_string_value(json_array_get(paths, 0)) };

	if (json_array_size(paths) > 1 || (json_array_size(paths) == 1 && !texts[1])) {
		mcp_fail(m, "invalid: paths: of diff one text is expected");
		return;
	}
	if (!mcp_target(m, &target,
	                texts[1] ? "/changes?format=patch&base={}&path={}"
	                         : "/changes?format=patch&base={}",
	                texts))
		return;
	m->inner = inner_call(m->api, &m->as,
	                      &(struct inner_ask){ .method = "GET", .target = str_text(&target) },
	                      diff_came, m);
	if (!m->inner)
		mcp_fail(m, "sandbox_unavailable: the daemon has no room; try again");
}

static void git_log(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	char n[24];

	snprintf(n, sizeof n, "-n%lld", (long long)arg_number(m, "limit", 20));
	if (mcp_target(m, &target, "/exec", NULL))
		mcp_ask_api(m, "POST", &target,
		            json_pack("{s[sssssss],ss,ss}", "cmd", "git", "--no-pager", "log", n,
		                      "--date=iso", "--decorate", "--stat", "timeout", "60s",
		                      "on_disconnect", "kill"),
		            log_came);
}

/* clang-format off */
static const struct action git_actions[] = {
	{ "status", "GET",  "/changes?format=json", NULL, status_came, false },
	{ "commit", "POST", "/commits", "message paths", said, false },
	{ "push",   "POST", "/push", "branch cred", said, true },
	{ "pr",     "POST", "/pulls", "title body branch base draft cred", said, true },
};
static const struct action ws_actions[] = {
	{ "info",     "GET",  "", NULL, said, false },
	{ "history",  "GET",  "/history?limit=20", NULL, said, false },
	{ "undo",     "POST", "/undo", "steps", said, false },
	{ "redo",     "POST", "/redo", "steps", said, false },
	{ "snapshot", "POST", "/snapshots", "label", said, false },
	{ "restore",  "POST", "/restore", "to", said, false },
	{ "fork",     "POST", "/fork", "n key", said, false },
};
/* clang-format on */

/* Who waits for a person waits in the middle of the request. The queue knows workspaces by id. */
static void knows_id(struct mcp *m, int status, json_t *ws)
{
	const struct action *a = find(m, git_actions, COUNT(git_actions));
	char of[ID_SIZE + 16];

	if (!a)
		return;
	if (status >= 400 || !ws) {
		mcp_problem(m, status, ws);
		return;
	}
	snprintf(of, sizeof of, "workspace=%s", json_text(ws, "id"));
	ask_watch(m, of, ask_leave);
	go(m, a);
}

void tool_git(struct mcp *m)
{
	AUTO(str_done) struct str target = { .max = MCP_TARGET_MAX };
	const char *name = arg_text(m, "action", "");

	if (strcmp(name, "diff") == 0) {
		git_diff(m);
		return;
	}
	if (strcmp(name, "log") == 0) {
		git_log(m);
		return;
	}
	const struct action *a = find(m, git_actions, COUNT(git_actions));
	if (!a)
		return;
	if (!a->asks)
		go(m, a);
	else if (mcp_target(m, &target, "", NULL))
		mcp_ask_api(m, "GET", &target, NULL, knows_id);
}

void tool_workspace(struct mcp *m)
{
	const struct action *a = find(m, ws_actions, COUNT(ws_actions));

	if (a)
		go(m, a);
}
