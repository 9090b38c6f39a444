/*
 * door.c - which requests are for these doors, who asks, what goes where, and how they say no.
 */
#include "api/auth.h"
#include "compat/compat-internal.h"
#include "core/details.h"

#define SECONDS_MOST (30.0 * 86400)

/* ---- answers ------------------------------------------------------------------------- */

/* As FastAPI says it, on which both servers are built. */
static void refuse(struct call *c, const struct fail *f)
{
	answer_json(c, fail_status(f->code), json_pack("{so}", "detail", details_text(f->detail)));
}

void rex_raise(struct call *c, const char *class_path, const char *message, json_t *extra)
{
	json_t *o =
	    json_pack("{so,ss,ss,so}", "message", py_json(span_of(message)), "class_path",
	              class_path, "traceback", "", "extra_info", extra ? extra : json_object());

	answer_json(c, 511, json_pack("{so}", "swerexception", o));
}

void rex_raise_file(struct call *c, const struct fail *f, const char *path)
{
	static const struct {
		enum fail_code code;
		const char *class_path, *words;
	} table[] = {
		{ FAIL_NOT_FOUND, "builtins.FileNotFoundError",
		  "[Errno 2] No such file or directory" },
		{ FAIL_IS_DIRECTORY, "builtins.IsADirectoryError", "[Errno 21] Is a directory" },
		{ FAIL_NOT_DIRECTORY, "builtins.NotADirectoryError", "[Errno 20] Not a directory" },
		{ FAIL_PERMISSION_DENIED, "builtins.PermissionError",
		  "[Errno 13] Permission denied" },
		{ FAIL_QUOTA, "builtins.OSError", "[Errno 28] No space left on device" },
		{ FAIL_EXISTS, "builtins.FileExistsError", "[Errno 17] File exists" },
	};
	AUTO(str_done) struct str message = { .max = (size_t)4 * PATH_TEXT_MAX };

	for (size_t i = 0; i < COUNT(table); i++)
		if (table[i].code == f->code) {
			str_addf(&message, "%s: ", table[i].words);
			py_repr(&message, span_of(path));
			rex_raise(c, table[i].class_path, str_text(&message), NULL);
			return;
		}
	answer_fail(c, f);
}

int member_seconds(const json_t *o, const char *key, uint64_t *ms, struct fail *f)
{
	const json_t *v = json_object_get(o, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_number(v) || json_number_value(v) < 0 || json_number_value(v) > SECONDS_MOST)
		return fail_set(f, FAIL_INVALID, "%s: a number of seconds", key);
	*ms = (uint64_t)(json_number_value(v) * 1000);
	return 0;
}

/* ---- which requests, and who asks ---------------------------------------------------- */

static bool is_below(const struct request *r, const char *folder)
{
	size_t n = strlen(folder);

	return r->path.len >= n && memcmp(r->path.at, folder, n) == 0 &&
	       (r->path.len == n || r->path.at[n] == '/');
}

static bool rex_takes(const struct request *r)
{
	return is_below(r, "/compat/swerex");
}

static bool hands_takes(const struct request *r)
{
	return is_below(r, "/compat/openhands");
}

static int check(struct call *c, const char *header, struct fail *f)
{
	const struct span *key = http_header(c->r->head, header);

	if (c->r->door == DOOR_UNIX)
		return auth_check(c, c->route->scope, f);
	if (auth_check_place(c, f) < 0)
		return -1;
	if (c->route->scope == SCOPE_NONE)
		return 0;
	if (!key || http_header_count(c->r->head, header) != 1)
		return fail_set(f, FAIL_UNAUTHORIZED, "%s is needed", header);
	return auth_check_token(c, *key, c->route->scope, f);
}

static int rex_check(struct call *c, struct fail *f)
{
	return check(c, "X-API-Key", f);
}

static int hands_check(struct call *c, struct fail *f)
{
	return check(c, "X-Session-API-Key", f);
}

/* ---- the tables ---------------------------------------------------------------------- */

/* Twice: of a sandbox that is named, and of the token's own, which may have to be made. */
#define TWICE(base, method, name, run, scope, own, body, takes)                                    \
	{ method, base name, run, own, body, "", takes, NULL, NULL },                              \
	{                                                                                          \
		method, base "/{id}" name, run, scope, body, "", takes, NULL, NULL                 \
	}
#define REX_ROUTE(method, name, run, body, takes)                                                  \
	TWICE("/compat/swerex", method, name, run, SCOPE_EXEC, SCOPE_MANAGE, body, takes)
#define HANDS_ROUTE(method, name, run, scope, own, body, takes)                                    \
	TWICE("/compat/openhands", method, name, run, scope, own, body, takes)

/* clang-format off */
static const struct route rex_table[] = {
	TWICE("/compat/swerex", "GET", "/is_alive", rex_is_alive, SCOPE_READ, SCOPE_READ, BODY_NONE, NULL),
	REX_ROUTE("POST", "/create_session", rex_create_session, BODY_WHOLE,  "Any"),
	REX_ROUTE("POST", "/run_in_session", rex_run_in_session, BODY_WHOLE,  "Any"),
	REX_ROUTE("POST", "/close_session",  rex_close_session,  BODY_WHOLE,  "Any"),
	REX_ROUTE("POST", "/execute",        rex_execute,        BODY_WHOLE,  "Any"),
	REX_ROUTE("POST", "/read_file",      rex_read_file,      BODY_WHOLE,  "Any"),
	REX_ROUTE("POST", "/write_file",     rex_write_file,     BODY_WHOLE,  "Any"),
	REX_ROUTE("POST", "/upload",         rex_upload,         BODY_STREAM, NULL),
	REX_ROUTE("POST", "/close",          rex_close,          BODY_WHOLE,  "Any"),
	TWICE("/compat/swerex", "GET", "",          rex_root, SCOPE_READ, SCOPE_READ, BODY_NONE, NULL),
	TWICE("/compat/swerex", "GET", "/",         rex_root, SCOPE_READ, SCOPE_READ, BODY_NONE, NULL),
};

static const struct route hands_table[] = {
	HANDS_ROUTE("GET",  "/alive",       hands_health, SCOPE_NONE, SCOPE_NONE, BODY_NONE, NULL),
	HANDS_ROUTE("GET",  "/health",      hands_health, SCOPE_NONE, SCOPE_NONE, BODY_NONE, NULL),
	HANDS_ROUTE("GET",  "/ready",       hands_ready,  SCOPE_NONE, SCOPE_NONE, BODY_NONE, NULL),
	HANDS_ROUTE("GET",  "/server_info", hands_info,   SCOPE_READ, SCOPE_READ, BODY_NONE, NULL),
	HANDS_ROUTE("POST", "/api/bash/start_bash_command",   hands_start,    SCOPE_EXEC, SCOPE_MANAGE, BODY_WHOLE,  "Any"),
	HANDS_ROUTE("POST", "/api/bash/execute_bash_command", hands_execute,  SCOPE_EXEC, SCOPE_MANAGE, BODY_WHOLE,  "Any"),
	HANDS_ROUTE("GET",  "/api/bash/bash_events/search",   hands_search,   SCOPE_READ, SCOPE_READ,   BODY_NONE,   NULL),
	HANDS_ROUTE("POST", "/api/file/upload",               hands_upload,   SCOPE_EXEC, SCOPE_MANAGE, BODY_STREAM, NULL),
	HANDS_ROUTE("GET",  "/api/file/download",             hands_download, SCOPE_READ, SCOPE_MANAGE, BODY_NONE,   NULL),
	HANDS_ROUTE("GET",  "/api/git/changes",               hands_changes,  SCOPE_EXEC, SCOPE_MANAGE, BODY_NONE,   NULL),
	HANDS_ROUTE("GET",  "/api/git/diff",                  hands_diff,     SCOPE_EXEC, SCOPE_MANAGE, BODY_NONE,   NULL),
};
/* clang-format on */

const struct annex rex_annex = {
	.routes = rex_table,
	.n_routes = COUNT(rex_table),
	.takes = rex_takes,
	.check = rex_check,
	.fail = refuse,
	.once = "X-Request-ID",
};

const struct annex hands_annex = {
	.routes = hands_table,
	.n_routes = COUNT(hands_table),
	.takes = hands_takes,
	.check = hands_check,
	.fail = refuse,
	.once = "Idempotency-Key",
};
