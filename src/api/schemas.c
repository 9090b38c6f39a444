#include "api/schemas.h"

#include "api/schemas-approval-internal.h"
#include "api/schemas-secret-internal.h"
#include "api/schemas-workspace-internal.h"

/* ---- the objects --------------------------------------------------------------------- */

/* clang-format off */
static const struct member problem[] = {
	{ "type",       0,      "text",       "about:blank" },
	{ "code",       NEEDED, "error_code", "what to decide by; the list is closed" },
	{ "status",     NEEDED, "integer",    "of HTTP" },
	{ "title",      0,      "text",       "the status in words" },
	{ "detail",     NEEDED, "text",       "one sentence for a person" },
	{ "retry_safe", 0,      "bool",       "with a status from 500 on: nothing was done, ask again" },
	{ "state",      0,      "text",       "of an approval that was decided, or is over: what it is" },
	{ "made",       0,      "[text]",     "of an Idempotency-Key whose request a restart interrupted: ids of what it may have made; one that is not found was not" },
	{ "lines",      0,      "[count]",    "of an edit or a patch: where it matches, or nearly does" },
};

static const struct member health[] = {
	{ "status",    NEEDED, "=ready|=starting", "in one word" },
	{ "live",      NEEDED, "bool",  "the daemon answers" },
	{ "ready",     NEEDED, "bool",  "it has found its sandboxes again and takes work" },
	{ "sandboxes", 0,      "count", "of the caller's tenant, the operator's: of all; for who has a token" },
	{ "version",   0,      "text",  "of the daemon; for who has a token" },
};

static const struct member backends[] = {
	{ "backends", NEEDED, "[Backend]", "what a spec may name as its backend" },
};
static const struct member backend[] = {
	{ "name",           NEEDED, "text",               "as in a spec" },
	{ "default",        NEEDED, "bool",               "used unless a spec names another" },
	{ "mode",           NEEDED, "=root|=rootless",    "with which rights it builds walls" },
	{ "kernel",         NEEDED, "text",               "release of the host's kernel" },
	{ "landlock_abi",   NEEDED, "integer",            "0: Landlock is not there" },
	{ "cgroup_version", NEEDED, "{count|null}",       "by which version each limit is enforced; null: not" },
	{ "pause",          NEEDED, "bool",               "sandboxes can be frozen" },
};

static const struct member quota_of[] = {
	{ "most", NEEDED, "QuotaSums", "the operator's bounds; null: none" },
	{ "used", NEEDED, "QuotaSums", "by the sandboxes of the tenant" },
};
static const struct member quota_sums[] = {
	{ "sandboxes", NEEDED, "count|null",  "that are not gone" },
	{ "processes", NEEDED, "count|null",  "that run" },
	{ "cpu",       NEEDED, "number|null", "cores of those that live, by their limits" },
	{ "mem",       NEEDED, "count|null",  "bytes of those that live, by their limits" },
	{ "pids",      NEEDED, "count|null",  "of those that live, by their limits" },
	{ "disk",      NEEDED, "count|null",  "bytes of those that are not gone, by their limits" },
	{ "workspaces", NEEDED, "count|null", "that are not in the trash" },
};

static const struct member token_ask[] = {
	{ "name",   0, "text|null",            "to know it by; at most 128 bytes" },
	{ "scope",  0, "scope|[scope]|null",   "what it may: exec includes read, manage includes exec, approve includes read, admin all; exec unless given. admin is the operator's: of the tenant local only" },
	{ "ttl",    0, "Duration|null",        "life of the token; for ever unless given" },
	{ "tenant", 0, "text|null",            "whose sandboxes it sees: letters, digits and ._@-; the caller's own unless given" },
	{ "form",   0, "text|null",            "e2b: in the form of E2B's keys, for their SDKs" },
};
static const struct member token_made[] = {
	{ "id",         NEEDED, "text",      "names it, proves nothing" },
	{ "token",      NEEDED, "text",      "the secret; it is not stored and not shown again" },
	{ "tenant",     NEEDED, "text",      "whose sandboxes it sees" },
	{ "name",       NEEDED, "text",      "as given" },
	{ "scope",      NEEDED, "text",      "scopes, with spaces between" },
	{ "expires_ms", NEEDED, "time|null", "null: never" },
};
static const struct member token[] = {
	{ "id",           NEEDED, "text",      "names it, proves nothing" },
	{ "tenant",       NEEDED, "text",      "whose sandboxes it sees" },
	{ "name",         NEEDED, "text",      "as given" },
	{ "scope",        NEEDED, "text",      "scopes, with spaces between" },
	{ "created_ms",   NEEDED, "time",      "when it was made" },
	{ "expires_ms",   NEEDED, "time|null", "null: never" },
	{ "revoked_ms",   NEEDED, "time|null", "null: it is not" },
	{ "last_used_ms", NEEDED, "time|null", "null: never" },
};
static const struct member token_list_of[] = {
	{ "tokens", NEEDED, "[Token]",   "newest first" },
	{ "next",   NEEDED, "text|null", "the cursor of the next page; null: this was the last" },
};

static const struct member sandbox_ask[] = {
	{ "key",    0, "text|null",     "a name of yours: the same key gives the same sandbox" },
	{ "labels", 0, "{text}|null",   "to find it by in a list" },
	{ "ttl",    0, "Duration|null", "it is deleted this long after it was made" },
	{ "idle",   0, "Duration|null", "it is deleted after this long without use" },
};
static const struct member sandbox[] = {
	{ "id",         NEEDED, "text",          "sb_…" },
	{ "key",        NEEDED, "text|null",     "as given" },
	{ "generation", NEEDED, "count",         "one more with each replace" },
	{ "state",      NEEDED, "sandbox_state", "stopped, gone and unreachable are three different things" },
	{ "reason",     NEEDED, "text|null",     "why it is in that state" },
	{ "backend",    NEEDED, "text|null",     "who made the walls" },
	{ "labels",     NEEDED, "{text}|null",   "as given" },
	{ "spec",       NEEDED, "Spec|null",     "as asked, in canonical form" },
	{ "enforced",   NEEDED, "{text}|null",   "by what each wall and limit holds; none: it does not" },
	{ "created_ms", NEEDED, "time|null",     "when it was asked for" },
	{ "started_ms", NEEDED, "time|null",     "when its walls stood" },
	{ "ended_ms",   NEEDED, "time|null",     "when it was gone" },
	{ "expires_ms", NEEDED, "time|null",     "when it will be deleted; null: not by time" },
	{ "workspace",  NEEDED, "text|null",     "that it works on, ws_…" },
	{ "processes",  0,      "count",         "that live in it now" },
	{ "ports",      0,      "[PortForwarded]", "that are forwarded" },
};
static const struct member port_listener[] = {
	{ "port",    NEEDED, "integer", "inside" },
	{ "address", NEEDED, "text",    "that it is bound to, IPv4 or IPv6" },
};
static const struct member port_forwarded[] = {
	{ "port",       NEEDED, "integer",   "inside" },
	{ "local_port", NEEDED, "integer",   "on the loopback address of the daemon's host" },
	{ "url",        NEEDED, "text",      "its origin; every request needs the token" },
	{ "created_ms", NEEDED, "time",      "when it was made" },
	{ "expires_ms", NEEDED, "time|null", "null: with the sandbox" },
};
static const struct member port_list_of[] = {
	{ "listeners", NEEDED, "[PortListener]",  "who waits for TCP connections inside, at most 256" },
	{ "forwarded", NEEDED, "[PortForwarded]", "which ports have a local one" },
};
static const struct member port_ask[] = {
	{ "port",       NEEDED, "integer",        "inside, 1 to 65535" },
	{ "local_port", 0,      "integer|null",   "1024 to 65535; a free one unless given" },
	{ "ttl",        0,      "Duration|null",  "for this long; with the sandbox unless given" },
	{ "wait",       0,      "Duration|null",  "for somebody to listen, at most ten minutes; not at all unless given" },
};
static const struct member port_made[] = {
	{ "port",       NEEDED, "integer",   "inside" },
	{ "local_port", NEEDED, "integer",   "on the loopback address of the daemon's host" },
	{ "url",        NEEDED, "text",      "its origin" },
	{ "headers",    NEEDED, "{text}",    "that every request needs; the token is not stored and not shown again" },
	{ "open_url",   NEEDED, "text",      "for a browser: keeps the token as a cookie and goes to /" },
	{ "ready",      NEEDED, "bool",      "somebody listens inside" },
	{ "created_ms", NEEDED, "time",      "when it was made" },
	{ "expires_ms", NEEDED, "time|null", "null: with the sandbox" },
};
static const struct member sandbox_list_of[] = {
	{ "sandboxes", NEEDED, "[Sandbox]", "newest first" },
	{ "next",      NEEDED, "text|null", "the cursor of the next page; null: this was the last" },
};
static const struct member sandbox_usage_of[] = {
	{ "cpu_ms",      NEEDED, "count", "processor time so far" },
	{ "mem",         NEEDED, "count", "bytes of memory now" },
	{ "mem_peak",    NEEDED, "count", "bytes of memory at the most" },
	{ "pids",        NEEDED, "count", "processes and threads now" },
	{ "disk",        NEEDED, "count", "bytes of scratch space" },
	{ "oom_kills",   NEEDED, "count", "processes killed for memory" },
	{ "pids_denied", NEEDED, "count", "processes that could not be started" },
};
static const struct member extend_ask[] = {
	{ "wall", 0, "Duration|null", "the new limit of its life, from the first command on" },
	{ "ttl",  0, "Duration|null", "it is deleted this long from now" },
	{ "why",  0, "text|null",     "for the person who is asked about wall time" },
};

#define COMMAND                                                                                    \
	{ "cmd",     NEEDED, "text|[text]",    "a text goes to a shell (bash if there is one), a list is run as it is" }, \
	{ "cwd",     0,      "text|null",      "an absolute path inside" },                             \
	{ "env",     0,      "{text}|null",    "on top of the sandbox's variables" },                   \
	{ "stdin",   0,      "text|bool|null", "all of its input; true: it comes later by …/stdin; else /dev/null" }, \
	{ "user",    0,      "text|null",      "inside; the spec's unless given" },                     \
	{ "timeout", 0,      "Duration|null",  "then it and all it started is killed, state timeout" }, \
	{ "tty",     0,      "bool|null",      "give it a terminal" },                                  \
	{ "rows",    0,      "integer|null",   "of the terminal; 24 unless given" },                    \
	{ "cols",    0,      "integer|null",   "of the terminal; 80 unless given" },                    \
	{ "output",  0,      "OutputAsk|null", "how much of its output is kept, and where" },           \
	{ "label",   0,      "text|null",      "to find it by in a list" }

static const struct member output_ask[] = {
	{ "inline",  0, "Size|null",       "of each stream in the answer; at most 4m" },
	{ "keep",    0, "=head+tail|null", "what remains of a longer stream" },
	{ "merge",   0, "bool|null",       "stderr into stdout" },
	{ "max_log", 0, "Size|null",       "of the log on disk: 4k to 1g, 64m unless given" },
};
static const struct member exec_ask_of[] = {
	COMMAND,
	{ "wait",          0, "Duration|null",     "how long this call blocks; to the end unless given" },
	{ "on_disconnect", 0, "=keep|=kill|null",  "what becomes of it when this call's client leaves" },
	{ "shell",         0, "text|null",         "run it in the shell of this name, which lives on with its folder, variables and functions; 1 to 64 of A-Z a-z 0-9 . _ -. cwd and env are then set in it, and stay. Not with tty" },
	{ "background",    0, "=keep|=kill|null",  "what becomes of processes that it leaves running; kill: they are ended before its end is told" },
	{ "at_end",        0, "=keep|=stop|=delete|null", "what becomes of the sandbox when it has ended; stop, delete: scope manage" },
};
static const struct member run_ask[] = {
	COMMAND,
	{ "spec",   0, "Spec",      "of the sandbox; all defaults unless given" },
	{ "files",  0, "{text|Coded}|null", "what it begins with: paths from the working folder, and what is in them" },
	{ "collect", 0, "[text]|null", "what is brought back before it is removed: patterns from the working folder, ** is any depth" },
	{ "allow_exec", 0, "[text]|null", "with collect: patterns of files that come although they would execute on the host later (hooks, build files, settings of tools, executables); * matches / too" },
	{ "inline", 0, "bool|null", "over a live connection: output comes with the end" },
	{ "brief", 0, "bool|null", "over a live connection: no greeting that says nothing, and of a plain end the code only" },
};

static const struct member process[] = {
	{ "id",          NEEDED, "text",          "px_…" },
	{ "sandbox",     NEEDED, "text",          "where it runs" },
	{ "state",       NEEDED, "process_state", "lost: nobody knows how it ended, and nothing is made up" },
	{ "exit_code",   NEEDED, "count|null",    "its own, when it exited" },
	{ "signal",      NEEDED, "count|null",    "that ended it" },
	{ "reason",      NEEDED, "text|null",     "why it ended so" },
	{ "cmd",         NEEDED, "[text]|null",   "what was run" },
	{ "cwd",         NEEDED, "text|null",     "where; of one that has ended in a shell: where it left the shell" },
	{ "label",       NEEDED, "text|null",     "as given" },
	{ "created_ms",  NEEDED, "time|null",     "when it was asked for" },
	{ "started_ms",  NEEDED, "time|null",     "when it ran" },
	{ "ended_ms",    NEEDED, "time|null",     "when it was over" },
	{ "ms",          NEEDED, "integer",       "how long it took, or has taken so far" },
	{ "usage",       NEEDED, "ProcessUsage",  "what it used, all children included" },
	{ "bytes",       NEEDED, "OutputBytes",   "how much it wrote" },
	{ "log",         NEEDED, "text",          "where its whole output is" },
	{ "stdout",      0,      "text",          "head and tail of it; base64 when `encoding` says so" },
	{ "stderr",      0,      "text",          "the same" },
	{ "encoding",    0,      "=utf-8|=base64", "of stdout and stderr" },
	{ "seq",         0,      "count",         "where the output in this answer ends: events?after= goes on there" },
	{ "tty",         0,      "bool",          "it lives and has a terminal" },
	{ "waiting_for_input", 0, "bool",         "it lives and reads from its terminal or stdin" },
	{ "children",    0,      "[Child]",       "what it left running" },
	{ "shell",       0,      "ShellUsed",     "of one in a named shell" },
	{ "violations",  0,      "[Violation]",   "walls and limits it ran into" },
	{ "execs",       0,      "Execs",         "programs that were started in it" },
	{ "collected",   0,      "[Collected]",   "of a run with files or collect: what was brought back" },
	{ "missing",     0,      "[text]",        "of the same: patterns that nothing matches, and files that cannot be read" },
	{ "workspace",  0,      "WorkspaceLeft", "of one in a sandbox with a workspace, when it has ended" },
};
static const struct member process_usage[] = {
	{ "cpu_ms",   NEEDED, "integer", "processor time" },
	{ "mem_peak", NEEDED, "integer", "bytes of memory at the most" },
	{ "io",       NEEDED, "integer", "bytes from and to block devices" },
};
static const struct member output_bytes[] = {
	{ "stdout",  NEEDED, "integer", "bytes written" },
	{ "stderr",  NEEDED, "integer", "bytes written" },
	{ "dropped", NEEDED, "integer", "of them, not in this answer" },
};
static const struct member child[] = {
	{ "pid",  NEEDED, "integer", "inside" },
	{ "name", NEEDED, "text",    "of the program" },
};
static const struct member violation[] = {
	{ "kind",   NEEDED, "text",    "limit, net, fs, command" },
	{ "target", NEEDED, "text",    "what was wanted: a limit's key, a host, a path, a command" },
	{ "rule",   0,      "text",    "that refused it" },
	{ "reason", 0,      "text",    "of a connection or a command: why" },
	{ "approval", 0,    "text",    "of a command: by which it was denied" },
	{ "certain", 0,     "bool",    "of a connection: it was this process, not another that ran at the time" },
	{ "count",  0,      "integer", "how often, or how much" },
};
static const struct member connection[] = {
	{ "seq",        NEEDED, "count",         "order of its last change; after= goes on behind it" },
	{ "kind",       NEEDED, "=connection|=request|=lookup|=connections|=requests|=lookups", "request: of a connection whose TLS ends at the gate. lookup: a name that was refused. The plural: many, added up" },
	{ "sandbox",    NEEDED, "text",          "whose it is" },
	{ "connection", NEEDED, "count|null",    "its number; the same when it opens and when it is closed" },
	{ "request",    NEEDED, "count|null",    "which one of the connection" },
	{ "ts_ms",      NEEDED, "integer",       "when it came, Unix time" },
	{ "process",    NEEDED, "text|null",     "that probably made it" },
	{ "name",       NEEDED, "text|null",     "the host; null: an address was used" },
	{ "dst",        NEEDED, "text|null",     "the address inside" },
	{ "real",       NEEDED, "text|null",     "the address that was dialled" },
	{ "port",       NEEDED, "count|null",    "that was wanted" },
	{ "proto",      NEEDED, "text|null",     "tls, http, ssh, tcp, dns, unknown" },
	{ "sni",        NEEDED, "text|null",     "the name that TLS asked for" },
	{ "alpn",       NEEDED, "text|null",     "the protocol that TLS offered first" },
	{ "decision",   NEEDED, "decision",      "ask_: by a person, or because nobody answered" },
	{ "rule",       NEEDED, "text|null",     "that decided" },
	{ "reason",     NEEDED, "text|null",     "of a denial, or of the end" },
	{ "approval",   NEEDED, "text|null",     "by which it was allowed" },
	{ "secrets",    NEEDED, "[text]",        "that were used" },
	{ "rules",      NEEDED, "count",         "generation of the rules that decided" },
	{ "bytes_up",   NEEDED, "count",         "from inside" },
	{ "bytes_down", NEEDED, "count",         "to inside" },
	{ "ms",         NEEDED, "count",         "how long it took" },
	{ "close",      NEEDED, "=open|=client|=server|=gate|=lost|null", "who ended it; lost: nobody saw the end" },
	{ "method",     0,      "text|null",     "of a request" },
	{ "path",       0,      "text|null",     "of a request" },
	{ "status",     0,      "count|null",    "of its answer" },
	{ "cache",      0,      "=hit|=revalidated|=miss|=pass|=absent|null", "what the package cache did for a request; null: it was not asked" },
	{ "count",      NEEDED, "count",         "how many this stands for" },
};
static const struct member connection_list_of[] = {
	{ "connections", NEEDED, "[Connection]", "oldest change first" },
	{ "next",        NEEDED, "count|null",   "after= of the next page; null: this was the last" },
};
static const struct member record_link[] = {
	{ "seq",  NEEDED, "count", "from 1 on, for each sandbox" },
	{ "prev", NEEDED, "text",  "`hash` of its record before; zeros in its first" },
};
static const struct member record[] = {
	{ "seq",       NEEDED, "count",      "from 1 on, without a hole" },
	{ "ts",        NEEDED, "integer",    "when it was recorded, Unix time in ms" },
	{ "kind",      NEEDED, "text",       "what happened: `exec.started`, `net.connection`, `git.pushed`, …" },
	{ "tenant",    0,      "text",       "whose it is" },
	{ "sandbox",   0,      "text",       "in which it happened" },
	{ "link",      0,      "RecordLink", "its place among those of the sandbox" },
	{ "workspace", 0,      "text",       "whose tree it is about" },
	{ "process",   0,      "text",       "the command" },
	{ "actor",     0,      "text",       "who decided" },
	{ "src",       0,      "text",       "who said it, and the how manieth word of his it is" },
	{ "data",      NEEDED, "Any",        "the rest, by kind" },
	{ "prev",      NEEDED, "text",       "`hash` of the record before; zeros in the first" },
	{ "hash",      NEEDED, "text",       "SHA-256, in hex, of all bytes of the line before `,\"hash\":`" },
};
static const struct member cache_entry[] = {
	{ "kind",    NEEDED, "=pip|=npm|=cargo", "whose registry" },
	{ "type",    NEEDED, "=file|=index",     "a package, or a page that says which there are" },
	{ "url",     NEEDED, "text",             "where it came from" },
	{ "sha256",  NEEDED, "text",             "its digest; of an index with what it says about files" },
	{ "bytes",   NEEDED, "count",            "how long it is" },
	{ "hits",    NEEDED, "count",            "how often it was served" },
	{ "used_ms", NEEDED, "time",             "when last" },
};
static const struct member cache_list_of[] = {
	{ "entries", NEEDED, "[CacheEntry]", "the most recently used first" },
	{ "count",   NEEDED, "count",        "how many there are in all" },
	{ "bytes",   NEEDED, "count",        "how much they take" },
	{ "max",     NEEDED, "count",        "how much they may" },
	{ "next",    NEEDED, "text|null",    "the cursor of the next page; null: this was the last" },
};
static const struct member cache_gc_ask[] = {
	{ "max",        0, "Size|null",     "the least recently used go until no more than that is left" },
	{ "older_than", 0, "Duration|null", "what was not used for so long goes" },
};
static const struct member cache_gc_of[] = {
	{ "removed",     NEEDED, "count", "entries that are gone" },
	{ "freed_bytes", NEEDED, "count", "what they took" },
	{ "bytes",       NEEDED, "count", "what the others take" },
	{ "count",       NEEDED, "count", "how many they are" },
};
static const struct member cache_verified[] = {
	{ "checked", NEEDED, "count",        "entries that were read again" },
	{ "bad",     NEEDED, "[CacheEntry]", "that were not what they should be, and are gone; the first thousand" },
};
static const struct member why_of[] = {
	{ "host",        NEEDED, "text",                 "as asked" },
	{ "port",        NEEDED, "count",                "as asked" },
	{ "decision",    NEEDED, "=allow|=deny|=ask",    "what the rules say" },
	{ "rule",        NEEDED, "text|null",            "that decides; null: none does" },
	{ "reason",      NEEDED, "text|null",            "of a denial" },
	{ "approval",    NEEDED, "Approval|null",        "of a host that a person is asked about: the question that waits, what stands, or what was last decided" },
	{ "would_allow", NEEDED, "text|null",            "the narrowest rule to add; null: it is allowed, or a rule is in the way" },
};
static const struct member net_changed[] = {
	{ "generation", NEEDED, "count|null", "of the rules that hold now; null: from the next start on" },
	{ "closed",     NEEDED, "count",      "open connections that they do not allow" },
	{ "loosened",   NEEDED, "bool",       "they allow something that the old ones did not" },
	{ "net",        NEEDED, "{any}",      "the rules, as they are stored" },
};
static const struct member collected[] = {
	{ "path",    NEEDED | BYTES, "text",   "from the working folder, or absolute" },
	{ "mode",    NEEDED, "text",   "four octal digits" },
	{ "bytes",   NEEDED, "count",  "its size" },
	{ "base64",  0,      "base64", "what is in it" },
	{ "skipped", 0,      "bool",   "it is too large (8 MiB are brought back in all), or executes_later says why it stays" },
	{ "executes_later", 0, "text", "why it would execute on the host; unless allow_exec names it, it is skipped, or, if it is only executable, comes without that" },
};
static const struct member coded[] = {
	{ "base64", NEEDED, "base64", "bytes" },
};
static const struct member execs[] = {
	{ "count", NEEDED, "integer", "in all" },
	{ "first", NEEDED, "[text]",  "command lines of the first few" },
};
static const struct member shell_used[] = {
	{ "name",      NEEDED, "text", "of the shell" },
	{ "restarted", 0,      "bool", "it was started for this command, because the one before had ended; it has its folder and exported variables, and nothing else of it" },
	{ "reason",    0,      "text", "when restarted: why the one before ended, and what could not be given back" },
};
static const struct member shell_of[] = {
	{ "name",     NEEDED, "text",                "as given" },
	{ "state",    NEEDED, "=busy|=idle|=ended",  "ended: the next command starts it anew" },
	{ "process",  NEEDED, "text|null",           "that it runs now" },
	{ "cwd",      NEEDED, "text|null",           "where its last command left it" },
	{ "restarts", NEEDED, "count",               "how often it was started anew" },
};
static const struct member shell_list_of[] = {
	{ "shells", NEEDED, "[Shell]", "those that have been used and not deleted" },
};
static const struct member process_list_of[] = {
	{ "processes", NEEDED, "[Process]", "newest first; without output" },
	{ "next",      NEEDED, "text|null", "the cursor of the next page; null: this was the last" },
};
static const struct member stdin_ask[] = {
	{ "data",   0, "text",          "input as text" },
	{ "base64", 0, "base64",        "input as bytes" },
	{ "eof",    0, "bool|null",     "and this was all of it" },
	{ "wait",   0, "Duration|null", "answer when it has ended, or after this long; at once unless given" },
};
static const struct member signal_ask[] = {
	{ "sig",   NEEDED, "text|integer",         "TERM, SIGTERM or 15" },
	{ "scope", 0,      "=process|=tree|null",  "tree: with all it started; process unless given" },
};
static const struct member resize_ask[] = {
	{ "rows", NEEDED, "count", "1 to 4096" },
	{ "cols", NEEDED, "count", "1 to 4096" },
};
static const struct member output_event[] = {
	{ "seq",     NEEDED, "count",            "after= goes on behind it" },
	{ "type",    NEEDED, "=output",          "" },
	{ "stream",  NEEDED, "=stdout|=stderr",  "where it was written" },
	{ "ms",      NEEDED, "integer",          "since the start" },
	{ "data",    0,      "text",             "whole code points" },
	{ "base64",  0,      "base64",           "in place of data: bytes that are not UTF-8" },
	{ "skipped", 0,      "count",            "bytes before it that are no longer in the log" },
};
static const struct member end_event[] = {
	{ "seq",     NEEDED, "count",   "where the output ends" },
	{ "type",    NEEDED, "=end",    "" },
	{ "process", NEEDED, "Process", "without output" },
};

static const struct member file_stat[] = {
	{ "path",     NEEDED | BYTES, "text", "from the root" },
	{ "type",     NEEDED, "=file|=directory|=symlink|=fifo|=socket|=device|=unknown", "of the entry itself: links are not followed" },
	{ "bytes",    NEEDED, "count",   "its size" },
	{ "mode",     NEEDED, "text",    "four octal digits" },
	{ "mtime_ms", NEEDED, "integer", "last change of its bytes, Unix time" },
	{ "uid",      NEEDED, "count",   "inside" },
	{ "gid",      NEEDED, "count",   "inside" },
	{ "target",   BYTES,  "text",    "of a symlink" },
	{ "hash",     0,      "hash",    "when it was asked for" },
};
static const struct member file_list[] = {
	{ "entries",    NEEDED, "[FileStat]", "paths from the folder that was asked for" },
	{ "truncated",  NEEDED, "bool",       "there are more" },
	{ "unreadable", NEEDED, "count",      "folders that could not be looked into" },
};
static const struct member file_lines[] = {
	{ "path",        NEEDED | BYTES, "text", "as asked" },
	{ "text",        0,      "text",           "the lines, as they are" },
	{ "base64",      0,      "base64",         "in place of text: they are not UTF-8" },
	{ "encoding",    NEEDED, "=utf-8|=base64", "which of both" },
	{ "hash",        NEEDED, "hash",           "of the whole file: for If-Match" },
	{ "first",       NEEDED, "count",          "number of the first line here; lines count from 1" },
	{ "lines",       NEEDED, "count",          "how many are here" },
	{ "total_lines", NEEDED, "count",          "how many the file has" },
	{ "next",        NEEDED, "count|null",     "where to go on; null: this was the end" },
	{ "bytes",       NEEDED, "count",          "of the whole file" },
	{ "eol",         NEEDED, "=lf|=crlf|=mixed|=none", "how its lines end" },
	{ "bom",         NEEDED, "bool",           "it begins with a byte order mark, not shown in text" },
	{ "cut",         NEEDED, "[count]",        "lines that were too long to be shown whole" },
};
static const struct member file_written[] = {
	{ "path",    NEEDED | BYTES, "text", "as asked" },
	{ "hash",    NEEDED, "hash",  "of what is there now" },
	{ "bytes",   NEEDED, "count", "of what is there now" },
	{ "created", NEEDED, "bool",  "there was none before" },
};
static const struct member edit_one[] = {
	{ "old", NEEDED | BYTES, "text", "what is there, exactly; line ends may differ" },
	{ "new", NEEDED | BYTES, "text", "what shall be there" },
	{ "all", 0,              "bool", "every place; else it must be one only" },
};
static const struct member edit_insert[] = {
	{ "line", NEEDED,         "count", "behind this line; 0: at the top" },
	{ "text", NEEDED | BYTES, "text",  "whole lines" },
};
static const struct member file_edit_of[] = {
	{ "edits",   0,     "[Edit]", "one after the other" },
	{ "insert",  0,     "Insertion", "in place of edits" },
	{ "unified", BYTES, "text", "in place of both: hunks of a unified diff" },
};
static const struct member file_edited[] = {
	{ "path",     NEEDED | BYTES, "text", "as asked" },
	{ "hash",     NEEDED, "hash",        "of what is there now" },
	{ "bytes",    NEEDED, "count",       "of what is there now" },
	{ "replaced", NEEDED, "count",       "places" },
	{ "match",    NEEDED, "=exact|=eol", "eol: line ends were taken as equal to be found" },
	{ "diff",     BYTES,  "text",        "what has changed; a long one is left out" },
};
static const struct member file_deleted[] = {
	{ "path",    NEEDED | BYTES, "text", "as asked" },
	{ "deleted", NEEDED, "count", "files and folders" },
};
static const struct member transfer_ask[] = {
	{ "from",      NEEDED | BYTES, "text", "from the root, or from ?path=" },
	{ "to",        NEEDED | BYTES, "text", "the new name itself, not a folder to put it in" },
	{ "overwrite", 0,              "bool", "what is there may go" },
};
static const struct member transferred[] = {
	{ "from",    NEEDED | BYTES, "text", "as asked" },
	{ "to",      NEEDED | BYTES, "text", "as asked" },
	{ "files",   0, "count", "of a copy: how many" },
	{ "bytes",   0, "count", "of a copy: how much" },
	{ "skipped", 0, "count", "of a copy: sockets, devices and the like" },
};
static const struct member folder_ask[] = {
	{ "path", NEEDED | BYTES, "text", "parents are made too" },
	{ "mode", 0,              "text|integer", "octal digits, or a number" },
};
static const struct member folder_made[] = {
	{ "path",    NEEDED | BYTES, "text", "as asked" },
	{ "created", NEEDED, "bool", "there was none before" },
};
static const struct member batch_op[] = {
	{ "op",        NEEDED, "=read|=write|=edit|=delete|=stat", "what to do" },
	{ "path",      NEEDED | BYTES, "text", "from the root, or from ?path=" },
	{ "if_match",  0,     "hash",      "write, edit, delete: only when it has this hash" },
	{ "first",     0,     "count",     "read: the first line" },
	{ "count",     0,     "count",     "read: how many lines" },
	{ "line_max",  0,     "count",     "read: bytes shown of one line" },
	{ "text",      BYTES, "text",      "write: all of it" },
	{ "mode",      0,     "text|integer", "write: octal digits, or a number" },
	{ "only_new",  0,     "bool",      "write: not when it exists" },
	{ "edits",     0,     "[Edit]",    "edit" },
	{ "insert",    0,     "Insertion", "edit" },
	{ "unified",   BYTES, "text",      "edit" },
	{ "recursive", 0,     "bool",      "delete: whole folders" },
	{ "hash",      0,     "bool",      "stat: with its hash" },
};
static const struct member batch_result[] = {
	{ "ok",    0, "FileLines|FileWritten|FileEdited|FileDeleted|FileStat", "what the operation alone would have answered" },
	{ "error", 0, "Problem", "in its place" },
};
static const struct member patched[] = {
	{ "format", NEEDED, "=unified|=v4a", "what was understood" },
	{ "files",  NEEDED, "[PatchedFile]", "in the order of the patch" },
};
static const struct member patched_file[] = {
	{ "path",   NEEDED | BYTES, "text", "its name now" },
	{ "status", NEEDED, "=modified|=added|=deleted|=renamed|=copied", "what became of it" },
	{ "from",   BYTES,  "text",         "its name before, when it has another now" },
	{ "hunks",  NEEDED, "count",        "applied" },
	{ "hash",   0,      "hash",         "of what is there now" },
	{ "bytes",  0,      "count",        "of what is there now" },
	{ "match",  0,      "=exact|=eol",  "eol: line ends were taken as equal to be found" },
};
static const struct member grep_ask[] = {
	{ "pattern",     NEEDED | BYTES, "text", "a regular expression (PCRE2)" },
	{ "literal",     0,     "bool",          "the pattern is the text itself" },
	{ "ignore_case", 0,     "bool",          "" },
	{ "multiline",   0,     "bool",          "a match may go over line ends" },
	{ "ignored",     0,     "bool",          "also what .gitignore leaves out" },
	{ "path",        BYTES, "text",          "a folder or a file; the root, or ?path=, unless given" },
	{ "glob",        0,     "text|[text]",   "only files of these names; !PATTERN leaves out" },
	{ "context",     0,     "count",         "lines before and after; at most 20" },
	{ "max",         0,     "count",         "matches; 200 unless given" },
};
static const struct member grep_found[] = {
	{ "matches",       NEEDED, "[Match]",   "in the order of paths" },
	{ "truncated",     NEEDED, "bool",      "there may be more" },
	{ "why",           NEEDED, "text|null", "what ended the search early" },
	{ "scanned",       NEEDED, "count",     "files looked into" },
	{ "scanned_bytes", NEEDED, "count",     "of them" },
	{ "skipped",       NEEDED, "{count}",   "how many were not, by reason" },
};
static const struct member grep_match[] = {
	{ "path",   NEEDED | BYTES, "text", "from the folder that was searched" },
	{ "line",   NEEDED, "count",  "from 1" },
	{ "col",    NEEDED, "count",  "byte in the line, from 1" },
	{ "text",   NEEDED, "text",   "the line; what is not UTF-8 is replaced" },
	{ "cut",    0,      "bool",   "the line is longer" },
	{ "before", 0,      "[text]", "with context" },
	{ "after",  0,      "[text]", "with context" },
};
static const struct member glob_ask[] = {
	{ "pattern", NEEDED | BYTES, "text", "* is a part of a name, ** any depth, {a,b} either" },
	{ "path",    BYTES, "text",          "where to begin; the root, or ?path=, unless given" },
	{ "max",     0,     "count",         "10000 unless given" },
	{ "sort",    0,     "=path|=mtime",  "mtime: newest first" },
	{ "ignored", 0,     "bool",          "also what .gitignore leaves out" },
};
static const struct member glob_found[] = {
	{ "paths",     NEEDED, "[text|Path]", "an object when the name is not UTF-8" },
	{ "truncated", NEEDED, "bool",        "there are more" },
};
static const struct member path_of[] = {
	{ "path", NEEDED | BYTES, "text", "with U+FFFD for what cannot be shown" },
};
static const struct member unpacked[] = {
	{ "path",  NEEDED | BYTES, "text", "the folder" },
	{ "files", NEEDED, "count", "made" },
	{ "bytes", NEEDED, "count", "in them" },
};
static const struct member watch_event[] = {
	{ "event", NEEDED, "text", "create, modify, delete, move_from, move_to; overflow: look again" },
	{ "path",  BYTES,  "text", "from the folder that is watched" },
	{ "dir",   0,      "bool", "it is a folder" },
	{ "why",   0,      "text", "of an overflow" },
};


#define MEMBERS(table) .members = (table), .n = COUNT(table)
#define ASK .is_request = true

const struct schema schemas[] = {
	{ "Problem", "Why a request failed (RFC 9457). A command's own failure is no problem but a result.", MEMBERS(problem) },
	{ "Size", "Bytes, or a number with k, m, g or t behind it: powers of 1024.", .is = "count|size" },
	{ "Duration", "Seconds, or a number with ms, s, m, h or d behind it.", .is = "count|duration" },
	{ "Any", "Anything.", .is = "any" },
	{ "Nothing", "Nothing is said with it.", ASK },
	{ "Health", "Whether the daemon lives and is ready.", MEMBERS(health) },
	{ "Backends", "What can be enforced here.", MEMBERS(backends) },
	{ "Backend", "One maker of walls.", MEMBERS(backend) },
	{ "Quota", "What the tenant has, and may have.", MEMBERS(quota_of) },
	{ "QuotaSums", "Sums over the sandboxes of one tenant.", MEMBERS(quota_sums) },
	{ "TokenAsk", "A token to be made.", MEMBERS(token_ask), ASK },
	{ "TokenMade", "A token with its text.", MEMBERS(token_made) },
	{ "Token", "A token without its text.", MEMBERS(token) },
	{ "TokenList", "A page of tokens.", MEMBERS(token_list_of) },
	{ "Spec", "What a sandbox is. An unknown key is an error.", ASK, .has_spec = true },
	{ "SandboxAsk", "A spec, and what the daemon shall know besides.", MEMBERS(sandbox_ask), ASK, .has_spec = true },
	{ "Sandbox", "A sandbox.", MEMBERS(sandbox) },
	{ "SandboxList", "A page of sandboxes.", MEMBERS(sandbox_list_of) },
	{ "Usage", "What a sandbox uses.", MEMBERS(sandbox_usage_of) },
	{ "Image", "A root file system that was imported.", MEMBERS(image_members) },
	{ "ImageSettings", "How the commands of an image are meant to begin.", MEMBERS(image_settings) },
	{ "ImageAsk", "An image of what a sandbox left in its root.", MEMBERS(image_ask), ASK },
	{ "Approval", "A question for a person, and what became of it.", MEMBERS(approval_members) },
	{ "ApprovalDecision", "A decision.", MEMBERS(approval_decision), ASK },
	{ "ApprovalList", "A page of approvals.", MEMBERS(approval_list_members) },
	{ "Asked", "A person is asked.", MEMBERS(asked_members) },
	{ "Sealing", "How a value is sealed.", MEMBERS(sealing_members) },
	{ "SecretAsk", "A secret.", MEMBERS(secret_ask_members), ASK },
	{ "Secret", "What is known of a secret.", MEMBERS(secret_members) },
	{ "SecretList", "All secrets of the tenant.", MEMBERS(secret_list_members) },
	{ "ImageList", "All images of the tenant.", MEMBERS(image_list_members) },
	{ "RepoAsk", "What is mirrored.", MEMBERS(repo_ask_of), ASK },
	{ "Repo", "A mirror of a repository.", MEMBERS(repo_of) },
	{ "RepoList", "A page of repositories.", MEMBERS(repo_list_of) },
	{ "WorkspaceAsk", "A workspace.", MEMBERS(workspace_ask), ASK },
	{ "WorkspaceChange", "What to change.", MEMBERS(workspace_change_of), ASK },
	{ "Workspace", "A durable tree.", MEMBERS(workspace) },
	{ "WorkspaceUsage", "What it has on disk.", MEMBERS(workspace_usage) },
	{ "WorkspaceList", "A page of workspaces.", MEMBERS(workspace_list_of) },
	{ "GcAsk", "Make room.", MEMBERS(gc_ask), ASK },
	{ "Gc", "What was decided.", MEMBERS(gc_of) },
	{ "GcDecision", "One decision.", MEMBERS(gc_decision) },
	{ "FsckAsk", "Look at everything.", MEMBERS(fsck_ask), ASK },
	{ "Fsck", "What was found.", MEMBERS(fsck_of) },
	{ "FsckFinding", "One finding.", MEMBERS(fsck_finding) },
	{ "WorkspaceLeft", "What a command left in its workspace.", MEMBERS(workspace_left) },
	{ "ForkAsk", "Which forks.", MEMBERS(fork_ask), ASK },
	{ "SnapshotAsk", "A snapshot.", MEMBERS(snapshot_ask), ASK },
	{ "UndoAsk", "How far back.", MEMBERS(undo_ask), ASK },
	{ "RedoAsk", "How far forward.", MEMBERS(redo_ask), ASK },
	{ "RestoreAsk", "Where to.", MEMBERS(restore_ask), ASK },
	{ "Restored", "What became of it.", MEMBERS(restored_of) },
	{ "Point", "A state that was kept.", MEMBERS(point) },
	{ "History", "A page of points.", MEMBERS(history_of) },
	{ "CommitAsk", "A commit.", MEMBERS(commit_ask), ASK },
	{ "CommitAuthor", "Who commits.", MEMBERS(commit_author), ASK },
	{ "MergeAsk", "What is merged.", MEMBERS(merge_ask), ASK },
	{ "PushAsk", "Where to.", MEMBERS(push_ask), ASK },
	{ "PullAsk", "A pull or merge request.", MEMBERS(pull_ask), ASK },
	{ "Pull", "A pull or merge request at its forge.", MEMBERS(pull_of) },
	{ "TakeAsk", "Which files.", MEMBERS(take_ask), ASK },
	{ "ApplyAsk", "What is about to be taken to a folder of the caller's.", MEMBERS(apply_ask), ASK },
	{ "ApplyFile", "One file that executes later.", MEMBERS(apply_file), ASK },
	{ "JoinAsk", "The file before two have changed it, and after.", MEMBERS(join_ask), ASK },
	{ "AppliedAsk", "What is applied where.", MEMBERS(applied_ask), ASK },
	{ "Applied", "What is on record.", MEMBERS(applied_of) },
	{ "AppliedChange", "One file of it.", MEMBERS(applied_change), ASK },
	{ "Joined", "What became of it.", MEMBERS(joined_of) },
	{ "Committed", "What became of it.", MEMBERS(committed_of) },
	{ "Conflict", "A file that both have changed.", MEMBERS(conflict_of) },
	{ "Attestation", "An envelope (DSSE v1).", MEMBERS(attestation_of) },
	{ "Signature", "Of an envelope.", MEMBERS(signature_of) },
	{ "Changes", "What differs.", MEMBERS(changes_of) },
	{ "Change", "One file that differs.", MEMBERS(change_of) },
	{ "PortList", "Ports of a sandbox.", MEMBERS(port_list_of) },
	{ "PortListener", "Where somebody waits for connections.", MEMBERS(port_listener) },
	{ "PortForwarded", "A forwarded port.", MEMBERS(port_forwarded) },
	{ "PortAsk", "Which port to forward.", MEMBERS(port_ask) },
	{ "PortMade", "A forwarded port, with its token.", MEMBERS(port_made) },
	{ "Connection", "One connection, refused lookup or request.", MEMBERS(connection) },
	{ "Record", "A record of the ledger.", MEMBERS(record) },
	{ "RecordLink", "The chain of one sandbox.", MEMBERS(record_link) },
	{ "ConnectionList", "A page of connections.", MEMBERS(connection_list_of) },
	{ "CacheEntry", "One thing in the package cache.", MEMBERS(cache_entry) },
	{ "CacheList", "A page of the package cache.", MEMBERS(cache_list_of) },
	{ "CacheGcAsk", "How much of the package cache may stay.", MEMBERS(cache_gc_ask), ASK },
	{ "CacheGc", "What was removed.", MEMBERS(cache_gc_of) },
	{ "CacheVerified", "What was found.", MEMBERS(cache_verified) },
	{ "Why", "What the rules say about a host.", MEMBERS(why_of) },
	{ "NetRules", "The `net` of a spec, whole.", ASK, .has_net = true },
	{ "NetChanged", "What became of new rules.", MEMBERS(net_changed) },
	{ "ExtendAsk", "More time.", MEMBERS(extend_ask), ASK },
	{ "OutputAsk", "What becomes of output.", MEMBERS(output_ask), ASK },
	{ "ExecAsk", "A command.", MEMBERS(exec_ask_of), ASK },
	{ "RunAsk", "A command with a sandbox of its own.", MEMBERS(run_ask), ASK },
	{ "Process", "Everything that is executed has one of these, for good.", MEMBERS(process) },
	{ "ProcessUsage", "What a process used.", MEMBERS(process_usage) },
	{ "OutputBytes", "How much a process wrote.", MEMBERS(output_bytes) },
	{ "Child", "A process that was left running.", MEMBERS(child) },
	{ "Violation", "Something was refused.", MEMBERS(violation) },
	{ "Execs", "Programs that were started.", MEMBERS(execs) },
	{ "Collected", "A file that a run left.", MEMBERS(collected) },
	{ "Coded", "What is no text.", MEMBERS(coded), ASK },
	{ "ProcessList", "A page of processes.", MEMBERS(process_list_of) },
	{ "ShellUsed", "The named shell that a command ran in.", MEMBERS(shell_used) },
	{ "Shell", "A named shell: one process that serves one command after the other.", MEMBERS(shell_of) },
	{ "ShellList", "The named shells of a sandbox.", MEMBERS(shell_list_of) },
	{ "StdinAsk", "Input: `data` or `base64`, or only `eof`.", MEMBERS(stdin_ask), ASK },
	{ "SignalAsk", "A signal.", MEMBERS(signal_ask), ASK },
	{ "ResizeAsk", "The size of a terminal.", MEMBERS(resize_ask), ASK },
	{ "Event", "What happened to a process.", .is = "OutputEvent|EndEvent" },
	{ "OutputEvent", "It wrote.", MEMBERS(output_event) },
	{ "EndEvent", "It ended; the last event.", MEMBERS(end_event) },
	{ "FileStat", "One entry of a folder.", MEMBERS(file_stat) },
	{ "FileList", "Entries of a folder.", MEMBERS(file_list) },
	{ "FileLines", "Lines of a file.", MEMBERS(file_lines) },
	{ "FileWritten", "A file that was written.", MEMBERS(file_written) },
	{ "Edit", "One replacement.", MEMBERS(edit_one), ASK },
	{ "Insertion", "New lines.", MEMBERS(edit_insert), ASK },
	{ "FileEdit", "Exactly one of the three.", MEMBERS(file_edit_of), ASK },
	{ "FileEdited", "A file that was edited.", MEMBERS(file_edited) },
	{ "FileDeleted", "What is gone.", MEMBERS(file_deleted) },
	{ "TransferAsk", "What to move or copy.", MEMBERS(transfer_ask), ASK },
	{ "Transferred", "What was moved or copied.", MEMBERS(transferred) },
	{ "FolderAsk", "A folder to be made.", MEMBERS(folder_ask), ASK },
	{ "FolderMade", "A folder that is there now.", MEMBERS(folder_made) },
	{ "BatchOp", "One operation; what it takes depends on `op`.", MEMBERS(batch_op), ASK },
	{ "BatchAsk", "Operations, in order.", .is = "[BatchOp]" },
	{ "BatchResult", "What came of one operation: `ok` or `error`.", MEMBERS(batch_result) },
	{ "BatchResults", "One result for each operation, in the same order.", .is = "[BatchResult]" },
	{ "Patched", "What a patch did.", MEMBERS(patched) },
	{ "PatchedFile", "What a patch did to one file.", MEMBERS(patched_file) },
	{ "GrepAsk", "What to search for, and where.", MEMBERS(grep_ask), ASK },
	{ "GrepFound", "What a search found.", MEMBERS(grep_found) },
	{ "Match", "One place.", MEMBERS(grep_match) },
	{ "GlobAsk", "Which names to look for.", MEMBERS(glob_ask), ASK },
	{ "GlobFound", "Names that were found.", MEMBERS(glob_found) },
	{ "Path", "A name that is not UTF-8.", MEMBERS(path_of) },
	{ "Unpacked", "What was unpacked.", MEMBERS(unpacked) },
	{ "WatchEvent", "A change below a folder.", MEMBERS(watch_event) },
};
const size_t n_schemas = COUNT(schemas);
/* clang-format on */
