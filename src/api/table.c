/*
 * table.c - the routes. `takes` and `gives` are schemas of schemas.c; NULL: not JSON, or nothing.
 */
#include "api/handlers.h"

#define S "/v1/sandboxes/{id}"
#define P "/v1/processes/{id}"
#define W "/v1/workspaces/{id}"

/* clang-format off */
const struct route routes[] = {
	{ "GET",    "/v1/health",          health_get,      SCOPE_NONE,   BODY_NONE,   "Alive and ready?", NULL, "Health", NULL },
	{ "GET",    "/v1/openapi.json",    openapi_get,     SCOPE_READ,   BODY_NONE,   "This API, described", NULL, NULL, NULL },
	{ "GET",    "/metrics",            metrics_get,     SCOPE_READ,   BODY_NONE,   "Counters, for Prometheus: of the caller's tenant, an admin's of the whole daemon", NULL, NULL, NULL },
	{ "GET",    "/v1/backends",        backends_get,    SCOPE_READ,   BODY_NONE,   "What can be enforced here", NULL, "Backends", NULL },
	{ "GET",    "/v1/quota",           quota_get,       SCOPE_READ,   BODY_NONE,   "What the tenant has, and may have at once", NULL, "Quota", NULL },

	{ "GET",    "/v1/events",          events_get,      SCOPE_READ,   BODY_NONE,   "The ledger: what crossed the wall, oldest first; each record is chained to the one before", NULL, NULL, "after limit kind sandbox workspace process since follow" },

	{ "POST",   "/v1/tokens",          token_create,    SCOPE_ADMIN,  BODY_WHOLE,  "Make a token; its text is shown once", "TokenAsk", "TokenMade", NULL },
	{ "GET",    "/v1/tokens",          token_list,      SCOPE_ADMIN,  BODY_NONE,   "The tokens, without their texts", NULL, "TokenList", "limit cursor" },
	{ "DELETE", "/v1/tokens/{id}",     token_delete,    SCOPE_ADMIN,  BODY_NONE,   "Revoke a token", NULL, NULL, NULL },

	{ "GET",    "/v1/cache",           cache_list,      SCOPE_ADMIN,  BODY_NONE,   "What is in the package cache", NULL, "CacheList", "limit cursor" },
	{ "POST",   "/v1/cache/gc",        cache_gc,        SCOPE_ADMIN,  BODY_WHOLE,  "Remove what was not used for the longest time", "CacheGcAsk", "CacheGc", NULL },
	{ "POST",   "/v1/cache/verify",    cache_verify,    SCOPE_ADMIN,  BODY_WHOLE,  "Read all of it again; what is not what it should be is removed", "Nothing", "CacheVerified", NULL },
	{ "POST",   "/v1/gc",              store_gc,        SCOPE_ADMIN,  BODY_WHOLE,  "Make room in the store of workspaces; each decision is explained", "GcAsk", "Gc", NULL },
	{ "POST",   "/v1/fsck",            store_fsck,      SCOPE_ADMIN,  BODY_WHOLE,  "Is the store of workspaces whole? What is safe to mend is, when asked", "FsckAsk", "Fsck", NULL },

	{ "POST",   "/v1/run",             exec_run,        SCOPE_MANAGE, BODY_WHOLE,  "Make a sandbox, run one command, remove it", "RunAsk", "Process", NULL },
	{ "POST",   "/v1/sandboxes",       sandbox_create,  SCOPE_MANAGE, BODY_WHOLE,  "Make a sandbox; with a known key: get it", "SandboxAsk", "Sandbox", NULL },
	{ "GET",    "/v1/sandboxes",       sandbox_list,    SCOPE_READ,   BODY_NONE,   "The sandboxes, newest first", NULL, "SandboxList", "limit cursor label" },
	{ "GET",    S,                     sandbox_get,     SCOPE_READ,   BODY_NONE,   "One sandbox", NULL, "Sandbox", NULL },
	{ "DELETE", S,                     sandbox_delete,  SCOPE_MANAGE, BODY_NONE,   "End everything in it and remove it", NULL, NULL, NULL },
	{ "POST",   S "/stop",             sandbox_stop,    SCOPE_MANAGE, BODY_WHOLE,  "End its processes; files stay", "Nothing", "Sandbox", NULL },
	{ "POST",   S "/start",            sandbox_start,   SCOPE_MANAGE, BODY_WHOLE,  "Make a stopped one usable again", "Nothing", "Sandbox", NULL },
	{ "POST",   S "/pause",            sandbox_pause,   SCOPE_MANAGE, BODY_WHOLE,  "Freeze it", "Nothing", "Sandbox", NULL },
	{ "POST",   S "/resume",           sandbox_resume,  SCOPE_MANAGE, BODY_WHOLE,  "Thaw it", "Nothing", "Sandbox", NULL },
	{ "POST",   S "/replace",          sandbox_replace, SCOPE_MANAGE, BODY_WHOLE,  "New walls, new generation, same id", "Nothing", "Sandbox", NULL },
	{ "POST",   S "/extend",           sandbox_extend,  SCOPE_MANAGE, BODY_WHOLE,  "More time; about wall time a person is asked, unless it is the operator who asks", "ExtendAsk", "Sandbox", NULL },
	{ "GET",    S "/usage",            sandbox_usage,   SCOPE_READ,   BODY_NONE,   "What it uses now", NULL, "Usage", NULL },
	{ "POST",   S "/exec",             exec_start,      SCOPE_EXEC,   BODY_WHOLE,  "Run a command", "ExecAsk", "Process", NULL },
	{ "GET",    S "/ports",            port_list,       SCOPE_READ,   BODY_NONE,   "Who listens inside, and which ports are forwarded", NULL, "PortList", NULL },
	{ "POST",   S "/ports",            port_forward,    SCOPE_EXEC,   BODY_WHOLE,  "Forward a port: HTTP and WebSocket, on an origin of its own", "PortAsk", "PortMade", NULL },
	{ "DELETE", S "/ports/{port}",     port_delete,     SCOPE_EXEC,   BODY_NONE,   "No longer forward a port", NULL, NULL, NULL },
	{ "GET",    S "/ports/{port}/connect", port_connect, SCOPE_EXEC,  BODY_NONE,   "One connection to a port, for our CLI", NULL, NULL, NULL },

	{ "GET",    S "/connections",      connection_list, SCOPE_READ,   BODY_NONE,   "What it reached, and what was denied, oldest first", NULL, "ConnectionList", "after limit decision name follow" },
	{ "GET",    S "/why",              net_why,         SCOPE_READ,   BODY_NONE,   "Whether its rules allow a host, by which rule, and what would", NULL, "Why", "host port" },
	{ "PATCH",  S "/net",              net_change,      SCOPE_MANAGE, BODY_WHOLE,  "New rules for its network, at once; looser ones a person is asked about, unless it is the operator who asks", "NetRules", "NetChanged", "why" },

	{ "GET",    S "/shells",           shell_list,      SCOPE_READ,   BODY_NONE,   "Its named shells", NULL, "ShellList", NULL },
	{ "DELETE", S "/shells/{name}",    shell_delete,    SCOPE_EXEC,   BODY_NONE,   "End a named shell, with what runs in it, and forget it", NULL, NULL, NULL },

	{ "GET",    S "/files/{path*}",    file_get,        SCOPE_READ,   BODY_NONE,   "Read a file: bytes, a range, lines; stat, list, watch", NULL, NULL, "lines stat hash list depth max hidden watch recursive relative" },
	{ "PUT",    S "/files/{path*}",    file_put,        SCOPE_EXEC,   BODY_STREAM, "Write a file, whole and atomically", NULL, "FileWritten", "mode relative" },
	{ "PATCH",  S "/files/{path*}",    file_edit,       SCOPE_EXEC,   BODY_WHOLE,  "Edit a file: exact replacements, an insertion, a diff", NULL, "FileEdited", "relative" },
	{ "DELETE", S "/files/{path*}",    file_delete,     SCOPE_EXEC,   BODY_NONE,   "Delete a file, or with recursive a folder", NULL, "FileDeleted", "recursive relative" },
	{ "POST",   S "/files:move",       file_move,       SCOPE_EXEC,   BODY_WHOLE,  "Move", NULL, "Any", "path" },
	{ "POST",   S "/files:copy",       file_copy,       SCOPE_EXEC,   BODY_WHOLE,  "Copy", NULL, "Any", "path" },
	{ "POST",   S "/files:mkdir",      file_mkdir,      SCOPE_EXEC,   BODY_WHOLE,  "Make a folder", NULL, "Any", "path" },
	{ "POST",   S "/files:batch",      file_batch,      SCOPE_EXEC,   BODY_WHOLE,  "Several operations in order", NULL, "Any", "path atomic" },
	{ "POST",   S "/patch",            file_patch,      SCOPE_EXEC,   BODY_WHOLE,  "Apply a unified or V4A patch, whole or not at all", NULL, "Any", "path" },
	{ "POST",   S "/grep",             file_grep,       SCOPE_READ,   BODY_WHOLE,  "Search in files", NULL, "GrepFound", "path" },
	{ "POST",   S "/glob",             file_glob,       SCOPE_READ,   BODY_WHOLE,  "Find files by name", NULL, "GlobFound", "path" },
	{ "GET",    S "/archive",          archive_get,     SCOPE_READ,   BODY_NONE,   "A folder as tar", NULL, NULL, "path format" },
	{ "PUT",    S "/archive",          archive_put,     SCOPE_EXEC,   BODY_STREAM, "Unpack a tar archive", NULL, "Any", "path" },

	{ "PUT",    "/v1/repos/{id}",      repos_put,       SCOPE_MANAGE, BODY_WHOLE,  "Mirror a repository under a key of yours; get it when it is there", "RepoAsk", "Repo", "wait" },
	{ "GET",    "/v1/repos",           repos_list,      SCOPE_READ,   BODY_NONE,   "The repositories, newest first", NULL, "RepoList", "limit cursor" },
	{ "GET",    "/v1/repos/{id}",      repos_get,       SCOPE_READ,   BODY_NONE,   "One repository; with follow: how far it is, line by line", NULL, "Repo", "follow" },
	{ "POST",   "/v1/repos/{id}/refresh", repos_refresh, SCOPE_MANAGE, BODY_WHOLE, "Fetch what is new", "Nothing", "Repo", "wait" },
	{ "DELETE", "/v1/repos/{id}",      repos_delete,    SCOPE_MANAGE, BODY_NONE,   "Remove the mirror and its checkouts; refused while a workspace needs them", NULL, NULL, NULL },
	{ "PUT",    W,                     workspace_put,   SCOPE_MANAGE, BODY_WHOLE,  "Get the workspace with this key, or make it", "WorkspaceAsk", "Workspace", NULL },
	{ "GET",    "/v1/workspaces",      workspace_list,  SCOPE_READ,   BODY_NONE,   "The workspaces, newest first", NULL, "WorkspaceList", "limit cursor parent trash usage" },
	{ "GET",    W,                     workspace_get,   SCOPE_READ,   BODY_NONE,   "One workspace", NULL, "Workspace", "usage" },
	{ "PATCH",  W,                     workspace_change, SCOPE_MANAGE, BODY_WHOLE, "Pin it, another time to live, another spec", "WorkspaceChange", "Workspace", NULL },
	{ "DELETE", W,                     workspace_delete, SCOPE_MANAGE, BODY_NONE,  "To the trash; with force also when it has changes or sandboxes", NULL, NULL, "force" },
	{ "POST",   W "/restore-trash",    workspace_untrash, SCOPE_MANAGE, BODY_WHOLE, "Out of the trash", "Nothing", "Workspace", NULL },
	{ "POST",   W "/exec",             workspace_exec,  SCOPE_EXEC,   BODY_WHOLE,  "Run a command in its default sandbox, which is made if none runs", "ExecAsk", "Process", NULL },
	{ "POST",   W "/fork",             workspace_fork,  SCOPE_MANAGE, BODY_WHOLE,  "More workspaces that begin as this one is, or was", "ForkAsk", "WorkspaceList", NULL },
	{ "POST",   W "/snapshots",        workspace_snapshot, SCOPE_EXEC, BODY_WHOLE, "Keep what it is now, under a name", "SnapshotAsk", "Point", NULL },
	{ "POST",   W "/undo",             workspace_undo,  SCOPE_EXEC,   BODY_WHOLE,  "Back to what it was before the last command", "UndoAsk", "Restored", NULL },
	{ "POST",   W "/redo",             workspace_redo,  SCOPE_EXEC,   BODY_WHOLE,  "Forward again", "RedoAsk", "Restored", NULL },
	{ "POST",   W "/restore",          workspace_restore, SCOPE_EXEC, BODY_WHOLE,  "To any point of its history, or a snapshot", "RestoreAsk", "Restored", NULL },
	{ "GET",    W "/history",          workspace_history, SCOPE_READ, BODY_NONE,   "What changed it, newest first", NULL, "History", "limit cursor" },
	{ "GET",    W "/changes",          workspace_changes, SCOPE_READ, BODY_NONE,   "Which files differ between two points, to now unless given; with root: of the root that it keeps", NULL, "Changes", "base to format path plain root" },
	{ "POST",   W "/commits",          workspace_commit, SCOPE_EXEC,  BODY_WHOLE,  "Commit its files, without any hook, filter or setting of theirs", "CommitAsk", "Committed", NULL },
	{ "POST",   W "/merge",            workspace_merge, SCOPE_EXEC,   BODY_WHOLE,  "Merge what another workspace, or a commit, has", "MergeAsk", "Committed", NULL },
	{ "POST",   W "/push",             workspace_push,  SCOPE_MANAGE, BODY_WHOLE,  "Push its commits to a branch of its repository", "PushAsk", "Committed", NULL },
	{ "POST",   W "/pulls",            workspace_pull,  SCOPE_MANAGE, BODY_WHOLE,  "Open a pull or merge request for a branch that was pushed", "PullAsk", "Pull", NULL },
	{ "GET",    W "/attestation",      workspace_attest, SCOPE_READ,  BODY_NONE,   "What was promoted of it, as the ledger attests it: an in-toto statement (SLSA provenance) in a DSSE envelope", NULL, "Attestation", "record" },
	{ "GET",    W "/export",           workspace_export, SCOPE_READ,  BODY_NONE,   "Its commits as a file", NULL, NULL, "format base" },
	{ "POST",   W "/take",             workspace_take,  SCOPE_READ,   BODY_WHOLE,  "Some of its files as they were at a point, as tar, and which names git ignores", "TakeAsk", NULL, NULL },
	{ "POST",   W "/ask",              workspace_ask,   SCOPE_MANAGE, BODY_WHOLE,  "Ask a person for files that execute later, before they are taken to a folder of the caller's; withdrawn when the caller hangs up", "ApplyAsk", NULL, NULL },
	{ "POST",   W "/applied",          workspace_applied, SCOPE_MANAGE, BODY_WHOLE, "Put on record that a point of it is applied somewhere, or was", "AppliedAsk", "Applied", NULL },
	{ "POST",   W "/merge-file",       workspace_join,  SCOPE_READ,   BODY_WHOLE,  "Three versions of a file made one, by git", "JoinAsk", "Joined", NULL },

	{ "GET",    W "/files/{path*}",    file_get,        SCOPE_READ,   BODY_NONE,   "Read a file: bytes, a range, lines; stat, list, watch", NULL, NULL, "lines stat hash list depth max hidden watch recursive relative" },
	{ "PUT",    W "/files/{path*}",    file_put,        SCOPE_EXEC,   BODY_STREAM, "Write a file, whole and atomically", NULL, "FileWritten", "mode relative" },
	{ "PATCH",  W "/files/{path*}",    file_edit,       SCOPE_EXEC,   BODY_WHOLE,  "Edit a file: exact replacements, an insertion, a diff", NULL, "FileEdited", "relative" },
	{ "DELETE", W "/files/{path*}",    file_delete,     SCOPE_EXEC,   BODY_NONE,   "Delete a file, or with recursive a folder", NULL, "FileDeleted", "recursive relative" },
	{ "POST",   W "/files:move",       file_move,       SCOPE_EXEC,   BODY_WHOLE,  "Move", NULL, "Any", "path" },
	{ "POST",   W "/files:copy",       file_copy,       SCOPE_EXEC,   BODY_WHOLE,  "Copy", NULL, "Any", "path" },
	{ "POST",   W "/files:mkdir",      file_mkdir,      SCOPE_EXEC,   BODY_WHOLE,  "Make a folder", NULL, "Any", "path" },
	{ "POST",   W "/files:batch",      file_batch,      SCOPE_EXEC,   BODY_WHOLE,  "Several operations in order", NULL, "Any", "path atomic" },
	{ "POST",   W "/patch",            file_patch,      SCOPE_EXEC,   BODY_WHOLE,  "Apply a unified or V4A patch, whole or not at all", NULL, "Any", "path" },
	{ "POST",   W "/grep",             file_grep,       SCOPE_READ,   BODY_WHOLE,  "Search in files", NULL, "GrepFound", "path" },
	{ "POST",   W "/glob",             file_glob,       SCOPE_READ,   BODY_WHOLE,  "Find files by name", NULL, "GlobFound", "path" },
	{ "GET",    W "/archive",          archive_get,     SCOPE_READ,   BODY_NONE,   "A folder as tar", NULL, NULL, "path format" },
	{ "PUT",    W "/archive",          archive_put,     SCOPE_EXEC,   BODY_STREAM, "Unpack a tar archive", NULL, "Any", "path" },

	{ "PUT",    "/v1/images/{name}",   image_put,       SCOPE_MANAGE, BODY_STREAM, "Import a root file system: a tar, or an OCI layout as one", NULL, "Image", "ref replace" },
	{ "POST",   "/v1/images",          image_post,      SCOPE_MANAGE, BODY_WHOLE,  "Make an image of the root that a workspace keeps (checkpoint: all)", "ImageAsk", "Image", NULL },
	{ "GET",    "/v1/images",          image_list,      SCOPE_READ,   BODY_NONE,   "The images, by name", NULL, "ImageList", NULL },
	{ "GET",    "/v1/images/{name}",   image_get,       SCOPE_READ,   BODY_NONE,   "One image", NULL, "Image", NULL },
	{ "DELETE", "/v1/images/{name}",   image_delete,    SCOPE_MANAGE, BODY_NONE,   "Remove an image that no sandbox has, and no root of a workspace is of", NULL, NULL, NULL },

	{ "GET",    "/v1/sealing",         sealing_get,     SCOPE_READ,   BODY_NONE,   "The public key that values of secrets are sealed to", NULL, "Sealing", NULL },
	{ "PUT",    "/v1/secrets/{name}",  secret_put_one,  SCOPE_MANAGE, BODY_WHOLE,  "Store a secret, or another value for one", "SecretAsk", "Secret", NULL },
	{ "GET",    "/v1/secrets",         secret_list_all, SCOPE_READ,   BODY_NONE,   "The secrets, by name; never a value", NULL, "SecretList", NULL },
	{ "GET",    "/v1/secrets/{name}",  secret_get,      SCOPE_READ,   BODY_NONE,   "What a secret is for, and when it was used; never its value", NULL, "Secret", NULL },
	{ "DELETE", "/v1/secrets/{name}",  secret_delete,   SCOPE_MANAGE, BODY_NONE,   "Forget a secret; sandboxes that have it lose it at once", NULL, NULL, NULL },

	{ "GET",    "/v1/approvals",       approval_list,   SCOPE_READ,    BODY_NONE,  "What waits for a person, and what was decided, newest first; with wait: when there is some; with follow: those, then every change", NULL, "ApprovalList", "limit cursor state kind sandbox workspace wait follow after" },
	{ "GET",    "/v1/approvals/{id}",  approval_get,    SCOPE_READ,    BODY_NONE,  "One question; with wait: when it is decided", NULL, "Approval", "wait" },
	{ "POST",   "/v1/approvals/{id}",  approval_post,   SCOPE_APPROVE, BODY_WHOLE, "Decide it; the same again changes nothing, and nothing else does afterwards", "ApprovalDecision", "Approval", NULL },

	{ "GET",    "/v1/processes",       process_list,    SCOPE_READ,   BODY_NONE,   "The processes, newest first", NULL, "ProcessList", "limit cursor sandbox label state" },
	{ "GET",    P,                     process_get,     SCOPE_READ,   BODY_NONE,   "One process; with wait: when it has ended", NULL, "Process", "wait" },
	{ "DELETE", P,                     process_kill,    SCOPE_EXEC,   BODY_NONE,   "End it and all it started", NULL, "Process", NULL },
	{ "GET",    P "/events",           process_events,  SCOPE_READ,   BODY_NONE,   "Its output as events, SSE or NDJSON", NULL, NULL, "after follow" },
	{ "GET",    P "/log",              process_log,     SCOPE_READ,   BODY_NONE,   "Its output as bytes", NULL, NULL, "follow" },
	{ "POST",   P "/stdin",            process_stdin,   SCOPE_EXEC,   BODY_WHOLE,  "Input for it", "StdinAsk", "Process", NULL },
	{ "POST",   P "/signal",           process_signal,  SCOPE_EXEC,   BODY_WHOLE,  "Signal it, or its whole tree", "SignalAsk", "Process", NULL },
	{ "POST",   P "/resize",           process_resize,  SCOPE_EXEC,   BODY_WHOLE,  "New size of its terminal", "ResizeAsk", "Process", NULL },
	{ "GET",    P "/tty",              process_tty,     SCOPE_EXEC,   BODY_NONE,   "Its terminal, a WebSocket", NULL, NULL, "after" },
	{ "GET",    P "/attach",           process_attach,  SCOPE_EXEC,   BODY_NONE,   "The live process for our CLI (wire/stream.h)", NULL, NULL, "after" },
};
/* clang-format on */

const size_t n_routes = COUNT(routes);
