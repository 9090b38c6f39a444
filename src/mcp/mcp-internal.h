/*
 * mcp-internal.h - what the files of the door share.
 */
#pragma once

#include "api/inner.h"
#include "io/timer.h"
#include "mcp/mcp.h"
#include "wire/jsonrpc.h"

#define MCP_NOW "2026-07-28"
#define MCP_THEN "2025-11-25"
#define MCP_OLD "2025-06-18"
#define MCP_META "io.modelcontextprotocol/"
#define MCP_TASKS MCP_META "tasks"
#define MCP_WORD_SIZE 64
#define BOND_SIZE 192
#define MCP_TEXT_MAX (1u << 20) /* of what a tool says to be read */
#define MCP_TARGET_MAX HTTP_TARGET_MAX

/* What a client can. */
enum mcp_cap {
	CAP_ELICITATION = 1 << 0,
	CAP_SAMPLING = 1 << 1,
	CAP_ROOTS = 1 << 2,
	CAP_TASKS = 1 << 3,
};

struct mcp;
typedef void mcp_fn(struct mcp *m);
/* The answer of an inner call as JSON, borrowed; NULL: it is none. */
typedef void mcp_then(struct mcp *m, int status, json_t *answer);

/* One request on its way. */
struct mcp {
	struct mcp *next;  /* of all that are under way */
	struct call *call; /* NULL: it waits for its client to come back */
	struct api *api;
	const struct mcp_kit *kit;
	struct inner_as as;
	char tenant[TENANT_SIZE], actor[ACTOR_SIZE];
	struct rpc rpc;
	const struct tool *tool;
	json_t *args;  /* of the tool, never NULL; borrowed */
	json_t *token; /* of progress, or NULL; borrowed */
	char *bound;   /* the workspace that it is about, whatever it says; NULL: it says */
	char *session; /* NULL: none */
	unsigned int caps;
	bool is_modern, is_stdio;
	bool has_stream; /* of events; its client takes one */
	bool is_streaming;
	/* What it waits for. */
	struct inner *inner;
	mcp_then *then;
	struct timer timer;
	mcp_fn *late;
	uint64_t begun_ms;
	char process[ID_SIZE];
	bool is_alone; /* the shell was busy */
	unsigned int round;
	/* Who is asked (ask.c). */
	char asked[MCP_WORD_SIZE];                       /* "": nobody */
	void (*answered)(struct mcp *m, json_t *result); /* NULL: not accepted; borrowed */
	json_t *kept;                                    /* the result, while its client is away */
	struct inner *side;
	struct timer look;
	char approval[ID_SIZE], approvals_of[ID_SIZE + 16];
	mcp_fn *held;
	char *note;    /* what is pending, for who cannot be asked; NULL: nothing */
	bool will_not; /* decide: he dismissed it, or his token does not have the scope */
	bool is_left;  /* it was told to call again */
	json_t *task;  /* of tasks/get, a process; or NULL */
};

/* ---- door.c ---- */
enum mcp_era { ERA_THEN = 1 << 0, ERA_NOW = 1 << 1 };
struct mcp_method {
	const char *name;
	mcp_fn *run;
	unsigned int eras;
	const char *named; /* the member that is also a header */
};
/* What a server has, besides what every one has. */
struct mcp_kit {
	const struct mcp_method *methods;
	size_t n_methods;
	void (*add_capabilities)(const struct mcp *m, json_t *capabilities);
	bool has_own_state; /* requestState is not ours to look at */
};
/* Another kit, for requests with ?conformance. Only a program of the tests has one: it is linked
 * with tests/mcp/fixtures.c, which calls this before main(). */
void mcp_plug(const struct mcp_kit *other);

typedef bool mcp_is(const struct mcp *m, const struct mcp *by, const char *word);
struct mcp *mcp_find(mcp_is *is, const struct mcp *by, const char *word); /* or NULL */
size_t mcp_count(mcp_is *is, const struct mcp *by);
void mcp_free(struct mcp *m);
/* Its client has left, or takes it back. */
void mcp_cancel(struct mcp *m);

/* ---- say.c ---- */
void mcp_result(struct mcp *m, json_t *result); /* taken; the mcp is gone */
void mcp_error(struct mcp *m, int code, const char *text, json_t *data); /* likewise */
void mcp_reply(struct mcp *m, json_t *result); /* taken; the mcp has no call any more */
void mcp_quit(struct mcp *m); /* it was taken back: it ends, and nothing is said; gone */
void mcp_send(struct mcp *m, json_t *message); /* before the result; taken */
void mcp_progress(struct mcp *m, double progress, double total, const char *text);
/* Of a tool: something to read, and the object, taken, which may be NULL. The mcp is gone. */
void mcp_say(struct mcp *m, const struct str *text, json_t *object);
void mcp_fail(struct mcp *m, const char *fmt, ...) PRINTF(2, 3); /* the tool failed */
void mcp_problem(struct mcp *m, int status, const json_t *answer);
/* After so long; one at a time. */
void mcp_later(struct mcp *m, uint64_t ms, mcp_fn *late);

/* One request to the API; the body is taken and may be NULL. */
void mcp_ask_api(struct mcp *m, const char *method, const struct str *target, json_t *body,
                 mcp_then *then);
void mcp_ask_with(struct mcp *m, const struct inner_ask *ask, mcp_then *then);
/* "/v1/workspaces/ID" of the call and `rest`, each {} of it the next text, encoded. False: it was
 * answered that there is none. */
bool mcp_target(struct mcp *m, struct str *out, const char *rest, const char *const *texts);

/* Members of the arguments; a default when absent. */
const char *arg_text(const struct mcp *m, const char *key, const char *otherwise);
int64_t arg_number(const struct mcp *m, const char *key, int64_t otherwise);
bool arg_flag(const struct mcp *m, const char *key);
const char *json_text(const json_t *o, const char *key); /* "" when there is none */
/* 2 and 2.0; what is larger than INT32_MAX is that. */
int64_t json_whole(const json_t *v);

/* ---- tools.c ---- */
enum tool_hint {
	HINT_READS = 1 << 0,
	HINT_BREAKS = 1 << 1,
	HINT_SAME = 1 << 2, /* twice is once */
	HINT_WORLD = 1 << 3,
};
struct tool {
	const char *name, *title, *help;
	const char *input; /* members of its schema, as JSON */
	const char *needs; /* names with spaces between */
	const char *gives; /* a schema of ours, or NULL: any object */
	unsigned int hints;
	mcp_fn *run;
};
extern const struct tool tools[];
extern const size_t n_tools;
mcp_fn mcp_tools_list, mcp_tools_call;

/* ---- run.c, files.c, work.c ---- */
mcp_fn tool_bash, tool_process, tool_read, tool_write, tool_edit, tool_glob, tool_grep, tool_git,
    tool_workspace;
void run_over(struct mcp *m);                     /* its client has left: so does the command */
json_t *run_say(const json_t *px, struct str *o); /* to read; the object, a reference */
bool run_is_over(const json_t *px);
/* Of a server that is bound to a workspace, only what was begun by one is there. */
bool run_is_ours(const struct mcp *m, const json_t *px);
bool run_is_id(const char *id);

/* ---- task.c ---- */
mcp_fn mcp_task_get, mcp_task_update, mcp_task_cancel;
json_t *task_made(const json_t *px); /* the result of a call that has become one */

/* ---- ask.c ---- */
/* Who says nothing is asked whether he allows what waits, of this sandbox or workspace, until the
 * call is over. `of`: "sandbox=sb_x". `held`: he cannot be asked, and m->note says what waits. */
void ask_watch(struct mcp *m, const char *of, mcp_fn *held);
void ask_stop(struct mcp *m);
/* The model is told m->note; the call waits for the same call to be made again. */
void ask_leave(struct mcp *m);
bool ask_rejoin(struct mcp *m); /* takes m when true: it was such a one */
/* One question in the way of the revision; `params` is taken. `key` names it for MRTR. */
void ask_client(struct mcp *m, const char *key, const char *method, json_t *params,
                void (*answered)(struct mcp *m, json_t *result));
void ask_response(const struct mcp *m); /* of the client, by a message of its own */
bool ask_again(struct mcp *m);          /* a call again with an answer; takes m when true */

void ask_list(struct mcp *m, const char *sandbox, mcp_then *then); /* what is pending */
bool ask_is_of(const json_t *approval, const char *process);
bool ask_is_whole(const json_t *approval); /* else it is not offered to who cannot see all of it */
json_t *ask_question(const struct mcp *m, const json_t *approval); /* params of an elicitation */
json_t *ask_decision(const json_t *response); /* for the queue; NULL: it is left to others */

/* ---- bond.c ---- */
bool bond_word(char out[MCP_WORD_SIZE]) MUST_USE;
bool bond_is_client(const struct mcp *a, const struct mcp *b);
bool bond_is_call(const struct mcp *a, const struct mcp *b);
bool bond_print(const struct mcp *m, const char *word, uint64_t until_ms,
                char out[BOND_SIZE]) MUST_USE;
/* False: it is not ours, of another client or another call, or too old. */
bool bond_read(const struct mcp *m, const char *text, uint64_t now_ms,
               char word[MCP_WORD_SIZE]) MUST_USE;
