/*
 * routes.h - the table of the API: which request is which function, who may, and what it says of
 * itself. docs/api.md and GET /v1/openapi.json are printed from it.
 *
 * A handler translates: it takes the request apart, calls src/core, and prints what comes back. It
 * decides nothing and keeps nothing.
 */
#pragma once

#include <jansson.h>

#include "api/server.h"
#include "core/core.h"
#include "core/ledger.h"

#define ROUTE_PARAMS_MAX 2
#define BODY_JSON_MAX (5u << 20) /* a spec, a command with its environment, a batch of edits */

/* What a token must be allowed. Whoever comes by the unix socket may all of it, as himself. */
enum scope { SCOPE_NONE, SCOPE_READ, SCOPE_EXEC, SCOPE_MANAGE, SCOPE_APPROVE, SCOPE_ADMIN, SCOPES };
const char *scope_name(enum scope s);

struct annex;

struct api {
	struct core *core;
	struct server *server;
	const char *tcp_host; /* names that a Host header may have, besides addresses; NULL: none */
	const struct annex *const *annexes; /* ends with NULL; NULL: none */
	struct config_ports ports;          /* of the host that tokens may name */
};

/* One request on its way through a handler. The request ends when its client leaves; a call lives
 * on while somebody works for it: who answers later takes a reference, and gives it back. */
struct call {
	struct api *api;
	struct request *r; /* NULL: the client has left */
	unsigned int refs;
	bool is_answered, is_kill_on_disconnect;
	struct arena arena;
	void (*gone)(struct call *c); /* set by a handler: the client left before the answer */
	void (*over)(struct call *c); /* set by a handler: the request has ended, answered or not */
	void *state;                  /* the handler's */
	const struct route *route;
	const struct annex *annex; /* whose route it is; NULL: the API's own */
	char tenant[TENANT_SIZE];
	bool is_operator;                     /* by the unix socket */
	bool is_admin, may_exec;              /* by a token of that scope */
	char actor[ACTOR_SIZE];               /* for records: "uid:1000", "token:tk_…" */
	const char *params[ROUTE_PARAMS_MAX]; /* of {id}, {path}; decoded */
	size_t param_len[ROUTE_PARAMS_MAX];
	json_t *body; /* BODY_WHOLE and JSON */
	/* Idempotency-Key: the answer is kept under it. */
	const char *idem_key;
	bool is_kept; /* it is */
	json_t *made; /* ids of what it has begun to make, with a key; or NULL */
	/* Records that have to be on disk before the answer, and the answer. */
	struct {
		unsigned int n;
		bool has_failed, is_answered;
		int status;
		json_t *body; /* NULL: none */
	} recording;
};

typedef void handler_fn(struct call *c);

struct route {
	const char *method, *pattern; /* "/v1/sandboxes/{id}/exec"; {path*} takes the rest */
	handler_fn *run;
	enum scope scope;
	enum body_mode body;
	const char *summary;
	const char *takes, *gives; /* names of schemas (schemas.c), or NULL */
	const char *query;         /* "limit cursor label" */
};

extern const struct route routes[];
extern const size_t n_routes;

/* Another protocol on the same port: which requests are its own, who may, how it says no. */
struct annex {
	const struct route *routes;
	size_t n_routes;
	const struct route *all;                /* NULL, or: the one for every path and method */
	bool (*takes)(const struct request *r); /* by the head alone */
	int (*check)(struct call *c, struct fail *f); /* may answer by itself, and return -1 */
	void (*fail)(struct call *c, const struct fail *f); /* NULL: as the API does */
	const char *once; /* its name of Idempotency-Key; NULL: it has none */
};

extern const struct server_ops api_ops; /* the server's `data` is not needed: one api a process */
void api_init(struct api *a);

/* ---- for handlers ---- */
struct call *call_ref(struct call *c);
void call_unref(struct call *c);
void answer_json(struct call *c, int status, json_t *body); /* takes the reference */
void answer_fail(struct call *c, const struct fail *f);
/* With a member more than every problem has; takes the reference. */
/* Between these core->actor is the caller, and what is made is noted under the call's key: around a
 * handler, and what it begins later. False: it is between them already, and does not leave. */
bool call_enter(struct call *c);
void call_leave(struct call *c);
void answer_fail_with(struct call *c, const struct fail *f, const char *key, json_t *value);
void answer_empty(struct call *c, int status);
void answer_body(struct call *c, int status, bool is_problem, const char *text);
/* Of its Idempotency-Key, if it has one: nothing was begun, and it is free again; or who asks again
 * is told that there is no answer for him. */
void call_forget(struct call *c);
void call_keep_nothing(struct call *c);
/* It happened, and he did it. Where such a record has to be on disk first, the answer that is given
 * from now on waits for that. `who` may be NULL: the caller's tenant, and nothing else. */
void call_note(struct call *c, enum ledger_kind kind, const struct ledger_who *who,
               json_t *data); /* taken */
/* For a store_call: 204 when its row is gone. Gives the reference of the call back. */
void answer_dropped(void *call, const struct store_answer *a);
/* The {id} of the path; NULL: it was answered that there is none. */
struct sbx *call_sandbox(struct call *c);

/* A query parameter, decoded into the arena; NULL when absent, "" when it has no value. */
const char *call_query(struct call *c, const char *name);
const char *call_header(struct call *c, const char *name); /* copied into the arena, or NULL */

/* Members of an object; a wrong type or an absurd value fails with the key's name. Absent and null
 * leave *out as it is. */
int member_text(const json_t *o, const char *key, const char **out, struct fail *f);
int member_bool(const json_t *o, const char *key, bool *out, struct fail *f);
int member_size(const json_t *o, const char *key, uint64_t *out, struct fail *f);        /* "4g" */
int member_duration(const json_t *o, const char *key, uint64_t *out_ms, struct fail *f); /* "10s" */
/* Every key is one of `known` (NULL-terminated): a typo is an error, never ignored. */
int members_known(const json_t *o, const char *const *known, struct fail *f);
