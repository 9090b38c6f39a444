/*
 * door.c - which requests are for this door, who asks, what goes where, and how it says no.
 *
 * A request for the control plane has a key of ours in X-API-KEY. One for a sandbox names it in the
 * Host, in E2b-Sandbox-Id, or by its token alone (clients of 2.8 to 2.12); its token is made from
 * its id (ident.c).
 */
#include <strings.h>

#include "api/auth.h"
#include "base/limits.h"
#include "core/details.h"
#include "core/image.h"
#include "core/template.h"
#include "e2b/e2b-internal.h"
#include "wire/base64.h"

static const char *the_domain; /* a process has one API */

const char *e2b_domain(void)
{
	return the_domain;
}

/* ---- which requests ------------------------------------------------------------------ */

static bool begins(struct span path, const char *with)
{
	size_t n = strlen(with);

	return path.len >= n && memcmp(path.at, with, n) == 0 &&
	       (path.len == n || path.at[n] == '/' || with[n - 1] == '/' || with[n - 1] == '.');
}

/* NAME of the Host NAME.DOMAIN, empty when it is another one. */
struct span e2b_label(const struct http_head *h)
{
	struct span host = h->host;
	size_t n = the_domain ? strcspn(the_domain, ":") : 0;

	if (n == 0 || host.len <= n + 1 || host.at[host.len - n - 1] != '.' ||
	    !span_same_nocase((struct span){ host.at + host.len - n, n },
	                      (struct span){ the_domain, n }))
		return (struct span){ "", 0 };
	return (struct span){ host.at, host.len - n - 1 };
}

static bool takes(const struct request *r)
{
	static const char *const paths[] = { "/sandboxes", "/v2/sandboxes", "/snapshots",
		                             "/templates", "/v2/templates", "/v3/templates",
		                             "/process.",  "/filesystem.",  "/files",
		                             "/health",    "/volumes",      "/volumecontent",
		                             "/secrets" };

	if (r->door != DOOR_TCP)
		return false;
	if (e2b_label(r->head).len > 0)
		return true;
	for (size_t i = 0; i < COUNT(paths); i++)
		if (begins(r->path, paths[i]))
			return true;
	return false;
}

/* ---- answers ------------------------------------------------------------------------- */

void e2b_answer(struct call *c, int status, json_t *body)
{
	AUTO(freep) char *text = json_dumps(body, JSON_COMPACT);

	json_decref(body);
	c->is_answered = true;
	if (c->r)
		reply(c->r, status, "application/json", text, strlen(text), NULL);
}

void e2b_refuse(struct call *c, int status, const char *message)
{
	json_t *o = json_pack("{si}", "code", status);

	json_object_set_new(o, "message", details_text(message));
	e2b_answer(c, status, o);
}

static bool is_rpc(const struct call *c)
{
	return c->route && (strcmp(c->route->gives, E2B_UNARY) == 0 ||
	                    strcmp(c->route->gives, E2B_STREAM) == 0);
}

static void refuse(struct call *c, const struct fail *f)
{
	if (is_rpc(c))
		rpc_refuse(c, connect_of(f->code), f->detail);
	else
		e2b_refuse(c, fail_status(f->code), f->detail);
}

/* As their proxy says it; clients take it for a sandbox that is no more. */
void e2b_not_there(struct call *c, const char *id)
{
	json_t *o = json_pack("{so,ss,si}", "sandboxId", details_text(id), "message",
	                      "The sandbox was not found", "code", 502);

	e2b_answer(c, 502, o);
}

/* ---- who asks ------------------------------------------------------------------------ */

static const struct span *only(const struct http_head *h, const char *name)
{
	return http_header_count(h, name) == 1 ? http_header(h, name) : NULL;
}

static int check_key(struct call *c, struct fail *f)
{
	const struct span *key = only(c->r->head, "X-API-KEY");

	if (!key)
		return fail_set(f, FAIL_UNAUTHORIZED, "X-API-KEY is needed");
	return auth_check_token(c, *key, c->route->scope, f);
}

/* The sandbox of a request to its agent, by id or by token; or NULL. */
static struct sbx *meant(struct call *c, const char **shown)
{
	const struct span *name = only(c->r->head, "E2b-Sandbox-Id");
	const struct span *token = only(c->r->head, "X-Access-Token");
	struct sbx *s = NULL;
	char id[ID_SIZE];
	struct span by_host;
	uint16_t port;

	if (e2b_host_split(c->r->head, &port, &by_host))
		name = &by_host;

	*shown = name ? arena_strndup(&c->arena, name->at, name->len) : "";
	if (name && ident_in(*name, id))
		s = roster_find(&c->api->core->sandboxes, id);
	else if (!name && token)
		s = ident_by_token(c->api->core, *token);
	return s && e2b_is_there(s) ? s : NULL;
}

static bool has_token(const struct call *c, const struct sbx *s)
{
	const struct span *token = only(c->r->head, "X-Access-Token");

	return token && ident_takes(s, "envd", *token);
}

static void use(struct call *c, const struct sbx *s)
{
	c->params[0] = arena_strdup(&c->arena, s->id);
	c->param_len[0] = strlen(s->id);
	snprintf(c->tenant, sizeof c->tenant, "%s", s->tenant);
}

/* One for a sandbox's agent. Files may be signed for instead, and whether it is there may be asked
 * by anybody who knows its name. */
static int check_agent(struct call *c, struct fail *f)
{
	const char *shown;
	struct sbx *s = meant(c, &shown);
	bool is_file = c->route->run == e2b_file_get || c->route->run == e2b_file_post;

	if (is_file && call_query(c, "signature")) {
		s = sign_check(c, c->route->run == e2b_file_get ? "read" : "write", s, f);
		if (!s)
			return -1;
	} else if (!s) {
		e2b_not_there(c, shown);
		return -1;
	} else if (c->route->run != e2b_health && !has_token(c, s)) {
		return fail_set(f, FAIL_UNAUTHORIZED, "X-Access-Token is not this sandbox's");
	}
	use(c, s);
	return 0;
}

#define CONTENT "/volumecontent/{id}"

static int check(struct call *c, struct fail *f)
{
	/* A host of the domain is ours; pages of other hosts have no key and no token. */
	if (e2b_label(c->r->head).len == 0 && auth_check_place(c, f) < 0)
		return -1;
	if (c->route->run == e2b_context_put)
		return context_check(c, f);
	if (strncmp(c->route->pattern, CONTENT, strlen(CONTENT)) == 0)
		return volume_check(c, f);
	return c->route->scope == SCOPE_NONE ? check_agent(c, f) : check_key(c, f);
}

struct sbx *e2b_running(struct call *c)
{
	struct sbx *s = roster_find(&c->api->core->sandboxes, c->params[0]);
	char id[E2B_ID_SIZE];

	if (s && s->state == SANDBOX_RUNNING)
		return s;
	ident_out(c->params[0], id);
	e2b_not_there(c, id);
	return NULL;
}

static void entered(struct call *c, struct sbx *s)
{
	reply_pause(c->r, false);
	if (s)
		c->route->run(c);
	else
		(void)e2b_running(c); /* says so */
}

struct sbx *e2b_enter(struct call *c)
{
	const struct sbx *s = roster_find(&c->api->core->sandboxes, c->params[0]);

	if (!s || s->state == SANDBOX_RUNNING || !e2b_may_wake(s))
		return e2b_running(c);
	reply_pause(c->r, true); /* a body waits too */
	e2b_wake(c, s, entered);
	return NULL;
}

void e2b_health(struct call *c)
{
	if (e2b_running(c))
		answer_empty(c, 204);
}

/* ---- users --------------------------------------------------------------------------- */

/* "Basic base64(NAME:)" */
static const char *basic_name(struct call *c)
{
	static const char basic[] = "Basic ";
	const struct span *h = only(c->r->head, "Authorization");
	AUTO(str_done) struct str text = { .max = 256 };

	if (!h || h->len <= strlen(basic) || memcmp(h->at, basic, strlen(basic)) != 0 ||
	    !base64_decode(h->at + strlen(basic), h->len - strlen(basic), &text))
		return NULL;
	return arena_strndup(&c->arena, str_text(&text), strcspn(str_text(&text), ":"));
}

int e2b_user(struct call *c, const char *named, struct e2b_user *out, struct fail *f)
{
	static const struct e2b_user users[] = { { NULL, E2B_HOME, E2B_USER, E2B_HOME },
		                                 { "root", "/root", "root", "/root" } };
	const struct sbx *s = roster_find(&c->api->core->sandboxes, c->params[0]);
	const char *name = named ? named : basic_name(c);
	json_t *door = s ? e2b_door(s) : NULL;
	const char *user = json_string_value(json_object_get(door, "user"));
	const char *workdir = json_string_value(json_object_get(door, "workdir"));
	uint32_t uid, gid;
	struct err e;

	/* A template may say who is meant when nobody is named, and where he is. */
	if (!name || !*name)
		name = user ? arena_strdup(&c->arena, user) : E2B_USER;
	*out = (struct e2b_user){ name, E2B_HOME, name, E2B_HOME };
	size_t i = 0;
	while (i < COUNT(users) && strcmp(name, users[i].shown) != 0)
		i++;
	if (i < COUNT(users))
		*out = users[i];
	if (workdir)
		out->from = arena_strdup(&c->arena, workdir);
	json_decref(door);
	/* Another one that the image knows. */
	if (i < COUNT(users) || (s && s->image_tree && image_ids(s, name, &uid, &gid, &e) == 0))
		return 0;
	return fail_set(f, FAIL_UNAUTHORIZED, "invalid username: '%.64s'", name);
}

/* Names one by one; "." and ".." as they are written. */
static void add_names(struct str *out, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");
		struct span name = { path, n };

		if (span_is(name, "..")) {
			while (out->len > 0 && out->data[--out->len] != '/')
				continue;
			if (out->data)
				out->data[out->len] = '\0';
		} else if (n > 0 && !span_is(name, ".")) {
			str_add(out, "/");
			str_addn(out, path, n);
		}
		path += path[n] ? n + 1 : n;
	}
}

const char *e2b_path(struct call *c, const struct e2b_user *u, const char *path)
{
	AUTO(str_done) struct str text = { .max = (size_t)2 * PATH_TEXT_MAX };

	if (path[0] == '~' && (path[1] == '/' || !path[1])) {
		add_names(&text, u->home);
		path++;
	} else if (path[0] != '/') {
		add_names(&text, u->from);
	}
	add_names(&text, path);
	if (text.overflow) /* not a part of it: nobody takes it so long */
		return arena_strdup(&c->arena, path);
	return arena_strdup(&c->arena, text.len > 0 ? str_text(&text) : "/");
}

/* ---- a sandbox ----------------------------------------------------------------------- */

bool e2b_is_there(const struct sbx *s)
{
	return sbx_is_there(s) && !(s->door && strcmp(s->door, TEMPLATE_DOOR) == 0);
}

struct sbx *e2b_sandbox(struct call *c)
{
	char id[ID_SIZE];
	struct span name = { c->params[0], c->param_len[0] };
	struct fail f;
	struct sbx *s = ident_in(name, id) ? sbx_find(c->api->core, c->tenant, id, &f) : NULL;

	if (s && e2b_is_there(s))
		return s;
	e2b_refuse(c, 404, "the sandbox was not found");
	return NULL;
}

json_t *e2b_door(const struct sbx *s)
{
	json_t *o = s->door ? json_loads(s->door, 0, NULL) : NULL;

	return o ? o : json_object();
}

int e2b_open(struct api *a, const char *domain, struct err *e)
{
	the_domain = domain && *domain ? domain : NULL;
	return ident_open(a->core, e);
}

/* ---- the table ----------------------------------------------------------------------- */

#define S "/sandboxes/{id}"
#define S2 "/v2/sandboxes/{id}"
#define P "/process.Process/"
#define F "/filesystem.Filesystem/"

/* clang-format off */
static const struct route table[] = {
	{ "POST",   "/v2/sandboxes",    e2b_create,        SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   "/sandboxes",       e2b_create_old,    SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "GET",    "/v2/sandboxes",    e2b_list,          SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "GET",    "/sandboxes",       e2b_list_old,      SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "GET",    S,                  e2b_get,           SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "DELETE", S,                  e2b_kill,          SCOPE_MANAGE, BODY_WHOLE, "", NULL,  E2B_REST, NULL },
	{ "POST",   S "/timeout",       e2b_timeout,       SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   S "/refreshes",     e2b_refresh,       SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   S "/connect",       e2b_connect,       SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   S2 "/connect",      e2b_connect,       SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   S "/resume",        e2b_connect,       SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   S "/pause",         e2b_pause,         SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "GET",    S "/metrics",       e2b_metrics,       SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "POST",   S "/snapshots",     e2b_snapshot_make, SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   S "/fork",          e2b_fork,          SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "PUT",    S "/network",       e2b_network_put,   SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "GET",    "/snapshots",       e2b_snapshot_list, SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "POST",   "/v3/templates",    e2b_template_make, SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   "/v2/templates",    e2b_template_make, SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "POST",   "/v2/templates/{id}/builds/{build}", e2b_template_build, SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "GET",    "/templates",       e2b_template_list, SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "POST",   "/templates/tags",  e2b_tags_put,      SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "DELETE", "/templates/tags",  e2b_tags_drop,     SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "GET",    "/templates/{id}/tags", e2b_tags_get,  SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "GET",    "/templates/{id}/builds/{build}/status", e2b_template_status, SCOPE_READ, BODY_NONE, "", NULL, E2B_REST, NULL },
	{ "GET",    "/templates/{id}/files/{hash}", e2b_context_get, SCOPE_MANAGE, BODY_NONE, "", NULL, E2B_REST, NULL },
	{ "PUT",    "/templates/{id}/files/{hash}", e2b_context_put, SCOPE_NONE, BODY_STREAM, "", NULL, E2B_REST, NULL },
	{ "DELETE", "/templates/{id}",  e2b_template_delete, SCOPE_MANAGE, BODY_WHOLE, "", NULL, E2B_REST, NULL },
	{ "GET",    "/templates/aliases/{id}", e2b_alias_get, SCOPE_READ, BODY_NONE, "", NULL,  E2B_REST, NULL },

	{ "POST",   "/volumes",         e2b_volume_make,   SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "GET",    "/volumes",         e2b_volume_list,   SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "GET",    "/volumes/{id}",    e2b_volume_get,    SCOPE_EXEC,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "DELETE", "/volumes/{id}",    e2b_volume_delete, SCOPE_MANAGE, BODY_WHOLE, "", NULL,  E2B_REST, NULL },
	{ "POST",   "/secrets",         e2b_secret_make,   SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "GET",    "/secrets",         e2b_secret_list,   SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "GET",    "/secrets/{id}",    e2b_secret_get,    SCOPE_READ,   BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "POST",   "/secrets/{id}",    e2b_secret_update, SCOPE_MANAGE, BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "DELETE", "/secrets/{id}",    e2b_secret_delete, SCOPE_MANAGE, BODY_WHOLE, "", NULL,  E2B_REST, NULL },
	{ "GET",    CONTENT "/path",    e2b_content_stat,   SCOPE_NONE,  BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "PATCH",  CONTENT "/path",    e2b_content_change, SCOPE_NONE,  BODY_WHOLE, "", "Any", E2B_REST, NULL },
	{ "DELETE", CONTENT "/path",    e2b_content_delete, SCOPE_NONE,  BODY_WHOLE, "", NULL,  E2B_REST, NULL },
	{ "GET",    CONTENT "/dir",     e2b_content_list,   SCOPE_NONE,  BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "POST",   CONTENT "/dir",     e2b_content_mkdir,  SCOPE_NONE,  BODY_WHOLE, "", NULL,  E2B_REST, NULL },
	{ "GET",    CONTENT "/file",    e2b_content_read,   SCOPE_NONE,  BODY_NONE,  "", NULL,  E2B_REST, NULL },
	{ "PUT",    CONTENT "/file",    e2b_content_write,  SCOPE_NONE,  BODY_STREAM, "", NULL, E2B_REST, NULL },

	{ "GET",    "/health",          e2b_health,          SCOPE_NONE, BODY_NONE,   "", NULL,  E2B_REST,   NULL },
	{ "GET",    "/files",           e2b_file_get,        SCOPE_NONE, BODY_NONE,   "", NULL,  E2B_REST,   NULL },
	{ "POST",   "/files",           e2b_file_post,       SCOPE_NONE, BODY_STREAM, "", NULL,  E2B_REST,   NULL },
	{ "POST",   P "Start",          e2b_process_start,   SCOPE_NONE, BODY_WHOLE,  "", NULL,  E2B_STREAM, NULL },
	{ "POST",   P "Connect",        e2b_process_connect, SCOPE_NONE, BODY_WHOLE,  "", NULL,  E2B_STREAM, NULL },
	{ "POST",   P "List",           e2b_process_list,    SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   P "SendInput",      e2b_process_input,   SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   P "CloseStdin",     e2b_process_eof,     SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   P "SendSignal",     e2b_process_signal,  SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   P "Update",         e2b_process_update,  SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   F "Stat",           e2b_entry_stat,      SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   F "MakeDir",        e2b_entry_mkdir,     SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   F "Move",           e2b_entry_move,      SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   F "ListDir",        e2b_entry_list,      SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   F "Remove",         e2b_entry_remove,    SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   F "WatchDir",       e2b_watch,           SCOPE_NONE, BODY_WHOLE,  "", NULL,  E2B_STREAM, NULL },
	{ "POST",   F "CreateWatcher",  e2b_watch_make,      SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   F "GetWatcherEvents", e2b_watch_events,  SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
	{ "POST",   F "RemoveWatcher",  e2b_watch_remove,    SCOPE_NONE, BODY_WHOLE,  "", "Any", E2B_UNARY,  NULL },
};
/* clang-format on */

const struct annex e2b_annex = {
	.routes = table,
	.n_routes = COUNT(table),
	.takes = takes,
	.check = check,
	.fail = refuse,
};
