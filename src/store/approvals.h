/*
 * approvals.h - what waited for a person, and what became of it.
 *
 *   pending ──▷ allowed | denied   somebody decided
 *           ──▷ expired            nobody did in time: that is a no
 *           ──▷ withdrawn          nobody waits for the answer any more
 *
 * No state but the first is ever left. A decision for more than once stands until its time is over:
 * store_approval_standing() finds it when the same is asked again.
 */
#pragma once

#include "store/store.h"

#define STORE_DETAIL_MAX (64u << 10)

enum approval_state {
	APPROVAL_PENDING,
	APPROVAL_ALLOWED,
	APPROVAL_DENIED,
	APPROVAL_EXPIRED,
	APPROVAL_WITHDRAWN,
	APPROVAL_STATE_COUNT
};

enum approval_kind {
	APPROVAL_NET,     /* a connection to a host of an `ask` rule */
	APPROVAL_POLICY,  /* looser rules of a sandbox that lives */
	APPROVAL_PUSH,    /* a push outside of the allowed refs */
	APPROVAL_PUBLISH, /* of a package, a release */
	APPROVAL_APPLY,   /* of files that execute later */
	APPROVAL_SECRET,  /* the use of one */
	APPROVAL_COMMAND, /* one that a rule of the spec names */
	APPROVAL_WALL,    /* more time */
	APPROVAL_KINDS
};

enum approval_scope { FOR_ONCE, FOR_SANDBOX, FOR_WORKSPACE, APPROVAL_SCOPES };

const char *approval_state_name(enum approval_state s);
const char *approval_kind_name(enum approval_kind k);
const char *approval_scope_name(enum approval_scope s);
/* The number of values: there is none of that name. */
enum approval_state approval_state_of(const char *name);
enum approval_kind approval_kind_of(const char *name);
enum approval_scope approval_scope_of(const char *name);

struct approval_row {
	int64_t seq;
	int64_t rev; /* given by the store: order of its last change */
	const char *id, *tenant;
	const char *node; /* NULL at insert: this store's */
	enum approval_state state;
	const char *kind;                          /* its name */
	const char *sandbox, *workspace, *process; /* NULL: none */
	const char *what;             /* in canonical words: who asks the same, asks this */
	const char *why;              /* as who asks says it; NULL: he does not */
	const char *suggestion;       /* what would make the question unnecessary; NULL: nothing */
	const char *detail;           /* JSON object, by kind */
	int64_t lasting;              /* 1: it stays when nobody waits */
	int64_t created_ms, until_ms; /* a no then */
	/* Once it is decided. */
	const char *scope; /* a name; NULL: it was not decided */
	const char *actor, *note, *reason;
	int64_t decided_ms, expires_ms; /* of the decision; 0: it has no end, or is for once */
	int64_t applied_ms; /* when what it allows was done, by kinds that we do ourselves */
};

struct approval_list {
	struct approval_row *rows;
	size_t n;
	const char *next; /* cursor, or NULL at the end */
};

/* Of store_approval_changes(): oldest change first, behind `after`. */
struct approval_query {
	struct store_page page;
	int64_t after, upto;                    /* revs; upto 0: all */
	uint32_t states;                        /* 1 << state; 0: all */
	const char *sandbox, *workspace, *kind; /* NULL: any */
	bool is_unapplied_only;
};

int store_approval_insert(struct store *s, const struct approval_row *row, struct store_call call,
                          struct err *e);
/* State, scope, actor, note, reason, decided_ms and expires_ms of one that is pending; of another:
 * STORE_CONFLICT. */
int store_approval_decide(struct store *s, const struct approval_row *row, struct store_call call,
                          struct err *e);

/* What was allowed is done. */
int store_approval_applied(struct store *s, const char *id, int64_t now_ms, struct store_call call,
                           struct err *e);

/* `tenant` NULL: of any. */
int store_approval_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                       struct approval_row *out, struct err *e);
int store_approval_list(struct store *s, const struct approval_query *q, struct arena *a,
                        struct approval_list *out, struct err *e);
/* In the order of their last change; of the page only tenant and limit count. */
int store_approval_changes(struct store *s, const struct approval_query *q, struct arena *a,
                           struct approval_list *out, struct err *e);
int64_t store_approval_rev(struct store *s); /* of the last change of all; 0: none was ever */
/* Of tenant, kind, what, sandbox and workspace like that, at its decided_ms; ERR_NOT_FOUND:
 * the last decision that covers it, and the last one that was made until then. */
int store_approval_standing(struct store *s, const struct approval_row *like, struct arena *a,
                            struct approval_row *out, struct err *e);
int store_approval_last(struct store *s, const struct approval_row *like, struct arena *a,
                        struct approval_row *out, struct err *e);
