/*
 * e2b-internal.h - what the files of the door share.
 */
#pragma once

#include "api/errand.h"
#include "api/handlers.h"
#include "e2b/e2b.h"

#define E2B_ENVD_VERSION "0.6.13" /* what their clients ask it for: src/e2b/entry.c, process.c */
#define E2B_ENVD_PORT 49983
#define E2B_INTERPRETER_PORT 49999
#define E2B_HOME "/home/user"
#define E2B_USER "user"
#define E2B_TEMPLATE "base"
#define E2B_INTERPRETER_TEMPLATE "code-interpreter-v1" /* of that client, when it says none */
#define E2B_ID_SIZE 32
#define E2B_TOKEN_SIZE 65

/* How a route says no; the `gives` of its row. */
#define E2B_REST "rest"     /* {"code":404,"message":…} */
#define E2B_UNARY "unary"   /* {"code":"not_found","message":…} */
#define E2B_STREAM "stream" /* 200, and an envelope that says it */

/* ---- ident.c ---- */
int ident_open(struct core *c, struct err *e) MUST_USE;
void ident_out(const char *id, char out[E2B_ID_SIZE]); /* sb_x is their ix */
bool ident_in(struct span text, char out[ID_SIZE]);    /* false: none of ours */
/* The token of a sandbox for one use of it: "envd", "traffic". */
void ident_token(const struct sbx *s, const char *use, char out[E2B_TOKEN_SIZE]);
/* Up to a NULL; the first names the use, each use has another. Together less than 2 KiB. */
void ident_sign(const char *const *fields, char out[E2B_TOKEN_SIZE]);
bool ident_takes(const struct sbx *s, const char *use, struct span token); /* in constant time */
struct sbx *ident_by_token(struct core *c, struct span token);             /* of envd; or NULL */

/* ---- door.c ---- */
const char *e2b_domain(void);
/* A sandbox that is there for their clients: it is of the tenant and not about to go. NULL: it was
 * answered. */
struct sbx *e2b_sandbox(struct call *c);
/* Their name of {id} in `out`, as ours. */
bool e2b_is_there(const struct sbx *s);
void e2b_answer(struct call *c, int status, json_t *body); /* takes the reference */
void e2b_refuse(struct call *c, int status, const char *message);
/* Of a sandbox: what it was told, never NULL; a reference. */
json_t *e2b_door(const struct sbx *s);

json_t *e2b_time(int64_t ms);                     /* look.c */
struct span e2b_label(const struct http_head *h); /* what is before the domain, or nothing */

/* ---- wake.c ---- */
bool e2b_may_wake(const struct sbx *s); /* it rests, and traffic shall wake it */
/* Comes once it runs, now or later; s NULL: it does not. Not when the client has left. */
typedef void e2b_woken_fn(struct call *c, struct sbx *s);
void e2b_wake(struct call *c, const struct sbx *s, e2b_woken_fn *then);

/* ---- host.c ---- */
/* PORT-ID.DOMAIN; false: the Host is another one. */
bool e2b_host_split(const struct http_head *h, uint16_t *port, struct span *id);

/* ---- interpreter.c ---- */
bool e2b_interpreter_is(const struct px *p);
/* Comes once somebody listens there, now or later; else with the reason. Not when the client has
 * left. */
typedef void e2b_interpreted_fn(struct call *c, struct sbx *s, const struct fail *f);
void e2b_interpret(struct call *c, struct sbx *s, e2b_interpreted_fn *then);

/* ---- make.c ---- */
json_t *e2b_print(struct sbx *s); /* what create and connect answer */
struct e2b_make {
	struct call *call;
	json_t *spec;   /* wishes, without the workspace */
	json_t *labels; /* theirs: metadata */
	json_t *door;
	const char *volume, *volume_at; /* instead of a workspace of its own; NULL: none */
	uint64_t ttl_ms;
	uint32_t life;
	char id[ID_SIZE]; /* while what its template starts is not ready */
	/* One of both; the make is freed behind it. */
	void (*done)(struct e2b_make *m, struct sbx *s, const struct fail *f);
	void *arg;
};
/* In a workspace that is there already, and is from now on the sandbox's own. */
void e2b_make_in(struct e2b_make *m, struct wsx *w);

/* ---- snapshot.c ---- */
/* The workspace of a snapshot, or NULL. */
struct wsx *snapshot_find(struct call *c, const char *name);

/* ---- template.c, context.c ---- */
bool template_drop(struct call *c, const char *name); /* false: there is none of that name */
/* Who sends an archive: the signature of its URL. */
int context_check(struct call *c, struct fail *f) MUST_USE;

/* ---- volume.c ---- */
struct wsx *volume_find(struct call *c, const char *name); /* or NULL */
/* Of a request for its content: {id} and token belong together. */
int volume_check(struct call *c, struct fail *f) MUST_USE;
struct wsx *volume_meant(struct call *c); /* of {id}; NULL: it was answered */

handler_fn e2b_volume_make, e2b_volume_list, e2b_volume_get, e2b_volume_delete;
handler_fn e2b_content_stat, e2b_content_change, e2b_content_delete, e2b_content_list;
handler_fn e2b_content_mkdir, e2b_content_read, e2b_content_write;

/* ---- secret.c ---- */
/* Headers of `network` that name a secret leave its rules, and the secret joins `creds`. */
int secrets_of(struct call *c, json_t *network, json_t *creds, struct fail *f) MUST_USE;
bool secrets_are_named(const char *text);

handler_fn e2b_secret_make, e2b_secret_list, e2b_secret_get, e2b_secret_update, e2b_secret_delete;

/* ---- netrule.c ---- */
/* Their `network` and allow_internet_access as the `net` of a spec. */
json_t *netrule_of(const json_t *network, const json_t *internet, struct fail *f);

/* ---- handlers ---- */
handler_fn e2b_create, e2b_create_old, e2b_fork;
handler_fn e2b_connect, e2b_pause, e2b_timeout, e2b_refresh, e2b_kill;
handler_fn e2b_get, e2b_list, e2b_list_old, e2b_metrics, e2b_health;
handler_fn e2b_snapshot_make, e2b_snapshot_list, e2b_template_delete, e2b_alias_get;
handler_fn e2b_network_put;
handler_fn e2b_template_make, e2b_template_build, e2b_template_status, e2b_template_list;
handler_fn e2b_tags_put, e2b_tags_drop, e2b_tags_get, e2b_context_get, e2b_context_put;

/* ---- rpc.c: the Connect protocol (wire/connect.h) ---- */
#include "wire/connect.h"
void rpc_answer(struct call *c, json_t *body); /* of a unary call; takes the reference */
/* Of either kind, also in the middle of a stream. */
void rpc_refuse(struct call *c, enum connect_code code, const char *message);
int rpc_take(struct call *c, struct fail *f) MUST_USE; /* the message of a stream: c->body */
void rpc_begin(struct call *c);
bool rpc_send(struct call *c, json_t *message); /* takes the reference; false: no room for now */
void rpc_end(struct call *c);

/* Who asks, by Authorization: Basic; NULL: nobody was named. */
struct e2b_user {
	const char *name; /* of the sandbox, or NULL: its own */
	const char *home, *shown;
	const char *from; /* where paths begin that have no slash */
};
/* Or `named`, unless that is NULL: of a file's URL, which may be signed, no header says it. */
int e2b_user(struct call *c, const char *named, struct e2b_user *out, struct fail *f) MUST_USE;
/* From their home unless it begins with a slash; in the arena. */
const char *e2b_path(struct call *c, const struct e2b_user *u, const char *path);
/* The sandbox of an envd request, which runs. NULL: it was answered. */
struct sbx *e2b_running(struct call *c);
/* The same as the first thing that a handler does: one that rests may be woken, and the handler is
 * called again then. NULL: return. */
struct sbx *e2b_enter(struct call *c);
void e2b_not_there(struct call *c, const char *id); /* 502 */

/* ---- entry.c ---- */
/* What a worker says of a file as they have it; `path` as it was asked for. */
json_t *entry_of(const json_t *stat, const char *path);

/* ---- download.c ---- */
/* The bytes of a file, or a range of them, are the answer. */
void download_start(struct call *c, struct sbx *s, const char *path);

/* ---- stream.c ---- */
/* What it says, from now on or from its beginning. Takes the reference of `p`. */
void stream_start(struct call *c, struct px *p, bool from_beginning);
#define E2B_PID_BASE (1u << 22) /* above what any process inside has: pid_max(5) */

/* ---- sign.c ---- */
/* The sandbox that a signed request for a file is about; NULL with the reason. */
struct sbx *sign_check(struct call *c, const char *operation, struct sbx *known, struct fail *f);

/* ---- process.c ---- */
/* What their agent sets, unless the sandbox or the request has it; six at most. */
void process_env(struct call *c, const struct sbx *s, const struct e2b_user *user,
                 const json_t *envs, struct pair_list *out);

handler_fn e2b_process_start, e2b_process_connect, e2b_process_list, e2b_process_input;
handler_fn e2b_process_eof, e2b_process_signal, e2b_process_update;
handler_fn e2b_entry_stat, e2b_entry_mkdir, e2b_entry_move, e2b_entry_list, e2b_entry_remove;
handler_fn e2b_watch, e2b_watch_make, e2b_watch_events, e2b_watch_remove;
handler_fn e2b_file_get, e2b_file_post;
