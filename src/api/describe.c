#include "api/describe.h"

#include "api/handlers.h"
#include "api/schemas.h"

#define JSON "application/json"
#define OCTETS "application/octet-stream"
#define NDJSON "application/x-ndjson"

/* ---- parameters ---------------------------------------------------------------------- */

/* clang-format off */
static const struct param query[] = {
	{ "after",     "count",         "only what comes behind this seq" },
	{ "atomic",    "flag",          "all operations or none" },
	{ "base",      "text",          "the point to compare with: cp_…, sn_…, px_…, `base` or `head`; `base` unless given" },
	{ "cursor",    "text",          "`next` of the page before" },
	{ "decision",  "decision",      "only these; `allow` and `deny` with those that a person decided" },
	{ "depth",     "count",         "levels to list; 1 unless given, at most 64" },
	{ "follow",    "flag",          "go on until it has ended" },
	{ "force",     "flag",          "although it has changes or sandboxes, which are ended" },
	{ "format",    "=tar|=json|=stat|=patch|=bundle", "of the archive `tar`; of changes `json`, `stat` without the files, or `patch` (`base` may be a commit, too); of an export `patch` or `bundle`" },
	{ "hash",      "flag",          "with the hash of the file" },
	{ "hidden",    "flag",          "also names that begin with a dot" },
	{ "host",      "text",          "a name, or an address" },
	{ "kind",      "text",          "only these: names of kinds with commas between them; `exec` is all that begin so" },
	{ "label",     "text",          "of sandboxes NAME=VALUE, of processes the label" },
	{ "limit",     "count",         "entries of a page" },
	{ "lines",     "text",          "FIRST-LAST, from 1: these lines, as JSON" },
	{ "list",      "flag",          "the entries of the folder" },
	{ "max",       "count",         "entries to list" },
	{ "mode",      "text",          "octal digits such as 0644" },
	{ "name",      "text",          "only those of this host" },
	{ "parent",    "text",          "only forks of this one" },
	{ "path",      "text",          "the folder that names are taken from; without a slash in front from the working folder, which it is unless given" },
	{ "plain",     "flag",          "nothing was renamed: it is gone, and something came" },
	{ "root",      "flag",          "of the root that the workspace keeps, not of its files" },
	{ "port",      "count",         "1 to 65535; 443 unless given" },
	{ "process",   "text",          "only those of this one" },
	{ "record",    "count",         "the promotion, by its number in the ledger; the last unless given" },
	{ "recursive", "flag",          "with all that is below" },
	{ "ref",       "text",          "the name of an image in an OCI layout that has several" },
	{ "relative",  "flag",          "the path is taken from the working folder, unless a slash is in front of it" },
	{ "replace",   "flag",          "an image of that name gives way, when the new one is whole" },
	{ "sandbox",   "text",          "only those of this one" },
	{ "since",     "count",         "only what is not older, Unix time in ms" },
	{ "stat",      "flag",          "what it is, not what is in it" },
	{ "state",     "process_state|=pending|=allowed|=denied|=expired|=withdrawn", "only those in this state, of processes or approvals" },
	{ "to",        "text",          "the other point; as it is now unless given. With `patch` also a commit" },
	{ "trash",     "flag",          "those in the trash" },
	{ "usage",     "flag",          "with what it has on disk" },
	{ "wait",      "duration",      "answer when it has ended, or after this long" },
	{ "watch",     "flag",          "changes as they happen" },
	{ "why",       "text",          "for the person who is asked" },
	{ "workspace", "text",          "only those of this one" },
};

static const struct param once = {
	"Idempotency-Key", "text", "1 to 255 bytes of your own: the same request under the same key is done once, and "
	"answered the same for 24 hours"
};

static const struct {
	handler_fn *run;
	struct param param;
} headers[] = {
	{ file_get,       { "Range", "text", "`bytes=FIRST-LAST`: these bytes" } },
	{ file_put,       { "If-Match", "text", "only when the file has this hash; else stale" } },
	{ file_put,       { "If-None-Match", "=*", "only when there is no such file; else exists" } },
	{ file_edit,      { "If-Match", "text", "only when the file has this hash; else stale" } },
	{ file_delete,    { "If-Match", "text", "only when the file has this hash; else stale" } },
	{ process_log,    { "Range", "text", "`bytes=FIRST-LAST` or `bytes=-LAST_N`, when it has ended" } },
	{ connection_list, { "Last-Event-ID", "count", "as `after`, of a client that connects again" } },
	{ approval_list, { "Last-Event-ID", "count", "as `after`, of a client that connects again" } },
	{ events_get, { "Last-Event-ID", "count", "as `after`, of a client that connects again" } },
	{ process_events, { "Last-Event-ID", "count", "as `after`, of a client that connects again" } },
};

static const struct {
	const char *name, *help;
} answer_headers[] = {
	{ "ETag",              "the hash of the file, in quotes" },
	{ "Content-Range",     "which bytes of how many" },
	{ "Idempotent-Replay", "true: the answer of an earlier request under the same key" },
};

/* ---- bodies and answers -------------------------------------------------------------- */

static const struct {
	handler_fn *run;
	struct body_form form;
} bodies[] = {
	{ file_put,    { OCTETS, "octets", true } },
	{ file_edit,   { JSON, "FileEdit", true } },
	{ file_move,   { JSON, "TransferAsk", true } },
	{ file_copy,   { JSON, "TransferAsk", true } },
	{ file_mkdir,  { JSON, "FolderAsk", true } },
	{ file_batch,  { JSON, "BatchAsk", true } },
	{ file_patch,  { "text/plain", "text", true } },
	{ file_grep,   { JSON, "GrepAsk", true } },
	{ file_glob,   { JSON, "GlobAsk", true } },
	{ archive_put, { "application/x-tar", "octets", true } },
	{ image_put,   { "application/x-tar", "octets", true } },
};

static const struct answer_form answers[] = {
	{ health_get,     200, JSON, "Health", "it is ready", NULL },
	{ health_get,     503, JSON, "Health", "it is starting", NULL },
	{ openapi_get,    200, JSON, "{any}", "an OpenAPI 3.1 document", NULL },
	{ metrics_get,    200, "text/plain", "text", "counters and gauges", NULL },
	{ token_create,   201, JSON, "TokenMade", "it was made", NULL },
	{ token_delete,   204, NULL, NULL, "it is no longer valid", NULL },
	{ sandbox_create, 201, JSON, "Sandbox", "it was made", NULL },
	{ sandbox_create, 200, JSON, "Sandbox", "one with this key and this spec exists", NULL },
	{ sandbox_delete, 204, NULL, NULL, "it is gone", NULL },
	{ image_put,      201, JSON, "Image", "it was imported", NULL },
	{ image_delete,   204, NULL, NULL, "its name is free; its files go", NULL },
	{ secret_put_one, 200, JSON, "Secret", "it is stored", NULL },
	{ secret_delete,  204, NULL, NULL, "it is gone", NULL },
	{ repos_put,      201, JSON, "Repo", "it was mirrored", NULL },
	{ repos_put,      200, JSON, "Repo", "it was there", NULL },
	{ repos_put,      202, JSON, "Repo", "it is still being mirrored, and `wait` is over", NULL },
	{ repos_get,      200, JSON, "Repo", "how it is; with `follow` lines, the last when nothing is under way", NULL },
	{ repos_get,      200, NDJSON, "Repo", "", "" },
	{ repos_refresh,  200, JSON, "Repo", "it is as new as its origin was", NULL },
	{ repos_refresh,  202, JSON, "Repo", "it is still under way, and `wait` is over", NULL },
	{ repos_delete,   204, NULL, NULL, "it is gone", NULL },
	{ workspace_put,  201, JSON, "Workspace", "it was made", NULL },
	{ workspace_put,  200, JSON, "Workspace", "one with this key exists", NULL },
	{ workspace_changes, 200, JSON, "Changes", "the files; with `patch` a patch that git applies", NULL },
	{ workspace_changes, 200, "text/x-patch", "text", "", "" },
	{ workspace_commit, 200, JSON, "Committed", "it was committed", NULL },
	{ workspace_merge, 200, JSON, "Committed", "it was merged; or these names conflict, and nothing was changed", NULL },
	{ workspace_push, 200, JSON, "Committed", "it is there", NULL },
	{ workspace_pull, 201, JSON, "Pull", "it is open", NULL },
	{ workspace_pull, 200, JSON, "Pull", "there was one for that branch", NULL },
	{ workspace_export, 200, "application/x-git-bundle", "octets", "a bundle, or with `patch` a mailbox of patches, of the commits since its base", NULL },
	{ workspace_export, 200, "text/x-patch", "text", "", "" },
	{ workspace_take, 200, "application/x-tar", "octets", "each file as `./NAME`; before them `ignored`: names with a NUL behind each", NULL },
	{ workspace_ask,  200, NDJSON, "Approval", "lines: the question, then what came of it; one when that was decided before", NULL },
	{ workspace_applied, 200, JSON, "Applied", "it is on disk", NULL },
	{ workspace_join, 200, JSON, "Joined", "what both sides have made of it; or how often they meet", NULL },
	{ workspace_delete, 204, NULL, NULL, "it is in the trash", NULL },
	{ workspace_fork, 201, JSON, "WorkspaceList", "they were made", NULL },
	{ workspace_snapshot, 201, JSON, "Point", "it was kept, and is on disk", NULL },
	{ shell_delete,   204, NULL, NULL, "it is forgotten", NULL },
	{ connection_list, 200, JSON, "ConnectionList", "a page; with `follow` lines or, when they are accepted, Server-Sent Events, and new ones as they come", NULL },
	{ connection_list, 200, NDJSON, "Connection", "", "" },
	{ connection_list, 200, "text/event-stream", "Connection", "", "" },
	{ approval_list,  200, JSON, "ApprovalList", "a page; with `follow` lines or, when they are accepted, Server-Sent Events: what is there, then every change", NULL },
	{ approval_list,  200, NDJSON, "Approval", "", "" },
	{ approval_list,  200, "text/event-stream", "Approval", "", "" },
	{ net_change,     200, JSON, "NetChanged", "they hold", NULL },
	{ net_change,     202, JSON, "Asked", "a person is asked; when it is allowed, they are changed", NULL },
	{ sandbox_extend, 200, JSON, "Sandbox", "it has more time", NULL },
	{ sandbox_extend, 202, JSON, "Asked", "a person is asked; when it is allowed, it gets more time", NULL },
	{ file_get,       200, OCTETS, "octets", "the bytes; with `watch` events, one a line; else as JSON what `lines`, `stat` or `list` asked for", "ETag" },
	{ file_get,       200, JSON, "FileLines|FileStat|FileList", "", "" },
	{ file_get,       200, NDJSON, "WatchEvent", "", "" },
	{ file_get,       206, OCTETS, "octets", "a range of the bytes", "ETag Content-Range" },
	{ file_put,       200, JSON, "FileWritten", "it was written", "ETag" },
	{ file_edit,      200, JSON, "FileEdited", "it was edited", "ETag" },
	{ file_move,      200, JSON, "Transferred", "it was moved", NULL },
	{ file_copy,      200, JSON, "Transferred", "it was copied", NULL },
	{ file_mkdir,     200, JSON, "FolderMade", "it is there", NULL },
	{ file_batch,     200, JSON, "BatchResults", "each by itself; with `atomic` all went well", NULL },
	{ file_patch,     200, JSON, "Patched", "all of it was applied", NULL },
	{ archive_get,    200, "application/x-tar", "octets", "the archive", NULL },
	{ archive_put,    200, JSON, "Unpacked", "all of it was unpacked", NULL },
	{ events_get,     200, NDJSON, "Record", "records, one a line, byte for byte as they are in the ledger; or, when they are accepted, Server-Sent Events", NULL },
	{ events_get,     200, "text/event-stream", "Record", "", "" },
	{ process_events, 200, NDJSON, "Event", "events, as NDJSON or, when it is accepted, as Server-Sent Events", NULL },
	{ process_events, 200, "text/event-stream", "Event", "", "" },
	{ process_log,    200, OCTETS, "octets", "both streams, in the order they were written", NULL },
	{ process_log,    206, OCTETS, "octets", "a range of it", "Content-Range" },
	{ port_forward,   201, JSON, "PortMade", "it is forwarded; a token that it had before is void", NULL },
	{ port_delete,    204, NULL, NULL, "it is no longer forwarded, and its connections are cut", NULL },
	{ port_connect,   101, NULL, NULL, "the bytes of one TCP connection", NULL },
	{ process_tty,    101, NULL, NULL, "a WebSocket: binary frames are the terminal's bytes", NULL },
	{ process_attach, 101, NULL, NULL, "a connection of our own protocol", NULL },
};

/* ---- groups -------------------------------------------------------------------------- */

enum { APPROVALS, FILES, IMAGES, REPOS, SANDBOXES, SECRETS, WORKSPACES, PROCESSES, TOKENS, OPERATING };

static const struct group groups[] = {
	[SANDBOXES] = { "Sandboxes", "A sandbox outlives its commands, its clients and the daemon." },
	[WORKSPACES] = { "Workspaces", "A durable tree: it survives sandboxes, restarts and crashes. What each command and each write changed is a point that one can "
	                "go back to. Points are named `cp_…`, snapshots `sn_…`; `px_…` is what a command left, `base` the beginning, `head` the last." },
	[PROCESSES] = { "Processes", "Everything that was executed, with its output, running or not." },
	[FILES]     = { "Files", "All of it is done inside the walls. A path in a URL is bytes, from the sandbox's root (of a workspace: from its own), or with `relative` from its working "
	                "folder, where commands start: /work. Names in a body without a slash in front are taken from `path`." },
	[IMAGES]    = { "Images", "Root file systems by name, for `image` of a spec. What is sent is unpacked inside walls, all of it or nothing: `Content-Type: application/x-tar` for a root file "
	                "system, `application/vnd.oci.image.layout.v1+tar` for a tar of an OCI layout; either may be packed by gzip or zstd." },
	[REPOS]     = { "Repositories", "A mirror is cloned once and never edited. `{id}` is the id, the key or, escaped, the URL." },
	[SECRETS]   = { "Secrets", "Credentials that a sandbox uses and never has: `creds` of its spec names them, the gate says them, inside is a placeholder. A value is sealed by who stores it "
	                "(HPKE of RFC 9180, base mode, X25519, HKDF-SHA256, ChaCha20-Poly1305; `info` is `caisson secret 1`, `aad` is tenant, NUL, name, NUL, `bind`), so that only the gate can read it." },
	[APPROVALS] = { "Approvals", "What may not happen unasked waits here for a person (docs/approvals.md). Deciding needs the scope `approve`, which `manage` does not include: "
	                "whoever works with sandboxes cannot answer for himself. No answer in time is a no." },
	[TOKENS]    = { "Tokens", "Who may come by TCP." },
	[OPERATING] = { "Operating it", "For those who run the daemon." },
};

/* The first that fits. */
static const struct {
	const char *prefix;
	int group;
} places[] = {
	{ "/v1/sandboxes/{id}/files", FILES },
	{ "/v1/sandboxes/{id}/patch", FILES },
	{ "/v1/sandboxes/{id}/grep", FILES },
	{ "/v1/sandboxes/{id}/glob", FILES },
	{ "/v1/sandboxes/{id}/archive", FILES },
	{ "/v1/workspaces/{id}/files", FILES },
	{ "/v1/workspaces/{id}/patch", FILES },
	{ "/v1/workspaces/{id}/grep", FILES },
	{ "/v1/workspaces/{id}/glob", FILES },
	{ "/v1/workspaces/{id}/archive", FILES },
	{ "/v1/workspaces", WORKSPACES },
	{ "/v1/images", IMAGES },
	{ "/v1/sandboxes/{id}/shells", PROCESSES },
	{ "/v1/sandboxes", SANDBOXES },
	{ "/v1/run", SANDBOXES },
	{ "/v1/processes", PROCESSES },
	{ "/v1/repos", REPOS },
	{ "/v1/approvals", APPROVALS },
	{ "/v1/secrets", SECRETS },
	{ "/v1/sealing", SECRETS },
	{ "/v1/tokens", TOKENS },
	{ "", OPERATING },
};
/* clang-format on */

const struct group *group_at(size_t i)
{
	static const int order[] = { SANDBOXES, WORKSPACES, PROCESSES, FILES,
		                     REPOS,     IMAGES,     TOKENS,    OPERATING };

	return i < COUNT(order) ? &groups[order[i]] : NULL;
}

const struct group *route_group(const struct route *r)
{
	size_t i = 0;

	while (strncmp(r->pattern, places[i].prefix, strlen(places[i].prefix)) != 0)
		i++;
	return &groups[places[i].group];
}

/* ---- one route ----------------------------------------------------------------------- */

bool name_at(const char *list, size_t i, char out[32])
{
	const char *at = list ? list : "";

	for (; *at && i > 0; i--) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	snprintf(out, 32, "%.*s", (int)strcspn(at, " "), at);
	return *at != '\0';
}

void name_lower(const char *name, char out[64])
{
	snprintf(out, 64, "%s", name);
	for (; *out; out++)
		if (*out >= 'A' && *out <= 'Z')
			*out = (char)(*out - 'A' + 'a');
}

const struct param *query_param(const char *name)
{
	for (size_t i = 0; i < COUNT(query); i++)
		if (strcmp(query[i].name, name) == 0)
			return &query[i];
	return NULL;
}

const struct param *route_header(const struct route *r, size_t i)
{
	bool has_once = strcmp(r->method, "POST") == 0 && r->body != BODY_STREAM;

	if (has_once && i == 0)
		return &once;
	i -= has_once;
	for (size_t k = 0; k < COUNT(headers); k++)
		if (headers[k].run == r->run && i-- == 0)
			return &headers[k].param;
	return NULL;
}

const char *answer_header_help(const char *name)
{
	for (size_t i = 0; i < COUNT(answer_headers); i++)
		if (strcmp(answer_headers[i].name, name) == 0)
			return answer_headers[i].help;
	return NULL;
}

bool route_body(const struct route *r, struct body_form *out)
{
	for (size_t i = 0; i < COUNT(bodies); i++) {
		if (bodies[i].run == r->run) {
			*out = bodies[i].form;
			return true;
		}
	}
	if (!r->takes)
		return false;
	const struct schema *s = schema_find(r->takes);
	*out = (struct body_form){ JSON, r->takes, s && schema_has_needed(s) };
	return true;
}

size_t route_answers(const struct route *r, struct answer_form out[ANSWER_FORMS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < COUNT(answers) && n < ANSWER_FORMS_MAX; i++)
		if (answers[i].run == r->run)
			out[n++] = answers[i];
	if (n == 0)
		out[n++] = (struct answer_form){ r->run, 200, JSON, r->gives ? r->gives : "Any",
			                         "done", NULL };
	return n;
}

void route_path(const struct route *r, struct str *out)
{
	for (const char *p = r->pattern; *p; p++)
		if (*p != '*')
			str_addn(out, p, 1);
}

/* ---- names --------------------------------------------------------------------------- */

/* "sandboxes" is "sandbox" when one of them is meant. */
static size_t singular(const char *word, size_t n)
{
	bool has_es = n > 3 && (memcmp(word + n - 3, "xes", 3) == 0 ||
	                        (n > 4 && memcmp(word + n - 4, "sses", 4) == 0));

	return has_es ? n - 2 : word[n - 1] == 's' ? n - 1 : n;
}

static bool is_also(const struct route *r, const char *method)
{
	for (size_t i = 0; i < n_routes; i++)
		if (strcmp(routes[i].pattern, r->pattern) == 0 &&
		    strcmp(routes[i].method, method) == 0)
			return true;
	return false;
}

static const char *verb_of(const struct route *r)
{
	static const struct {
		const char *method, *verb;
	} verbs[] = {
		{ "GET", "_get" },
		{ "PUT", "_put" },
		{ "PATCH", "_edit" },
		{ "DELETE", "_delete" },
	};
	size_t n = r->gives ? strlen(r->gives) : 0;

	if (n > 4 && strcmp(r->gives + n - 4, "List") == 0)
		return "_list";
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (strcmp(verbs[i].method, r->method) == 0)
			return verbs[i].verb;
	return is_also(r, "GET") ? "_create" : ""; /* else the path ends with a verb */
}

void route_name(const struct route *r, struct str *out)
{
	const char *at = r->pattern;

	if (strncmp(at, "/v1", 3) == 0)
		at += 3;
	while (*at) {
		size_t n = strcspn(++at, "/:."); /* behind the separator */
		bool is_one = strncmp(at + n, "/{", 2) == 0;

		if (at[0] != '{' && strncmp(at, "json", 4) != 0)
			str_addf(out, "%s%.*s", out->len > 0 ? "_" : "",
			         (int)(is_one ? singular(at, n) : n), at);
		at += n;
	}
	str_add(out, verb_of(r));
}
