/*
 * repos.h - the rows of repositories: mirrors that were cloned once.
 *
 *   cloning ──▷ ready ◁──▷ refreshing
 *     ▲ └─▷ failed            │
 *     └───────┘     all ──▷ gone
 *
 * A row that is cloning or refreshing is a lock: whoever moved it there is the only one who writes
 * to its tree. A tenant has one row for a URL and a credential, and one for a key.
 */
#pragma once

#include "store/store.h"

#define STORE_URL_MAX 2048
#define STORE_REF_MAX 256
#define STORE_COMMIT_MAX 64

enum repo_state {
	REPO_CLONING,
	REPO_READY,
	REPO_REFRESHING,
	REPO_FAILED,
	REPO_GONE,
	REPO_STATE_COUNT
};
const char *repo_state_name(enum repo_state state);
bool repo_state_may(enum repo_state from, enum repo_state to);

struct repo_row {
	int64_t seq;
	const char *id, *tenant, *key;
	const char *node;    /* NULL at insert: this store's */
	const char *url;     /* canonical: https://..., or the path of a folder */
	const char *cred;    /* the name of a credential; NULL: none */
	const char *refs;    /* JSON: the patterns of what is mirrored */
	const char *refresh; /* "always", "manual" or a number of ms */
	enum repo_state state;
	const char *state_reason; /* why it failed; of one that is ready: the last refresh */
	int64_t tree;             /* its number in the store of trees; 0: none yet */
	const char *head;         /* the branch that HEAD named, or NULL */
	int64_t generation;       /* grows with each fetch that worked */
	int64_t created_ms, fetched_ms, ended_ms;
};

enum repo_fields {
	REPO_SET_STATE = 1 << 0, /* and its reason */
	REPO_SET_FETCHED =
	    1 << 1, /* head, generation, fetched_ms; names resolved before are void */
	REPO_SET_ENDED = 1 << 2,
	REPO_SET_TREE = 1 << 3,
	REPO_SET_WISHES = 1 << 4, /* refs, refresh */
};

struct repo_list {
	struct repo_row *rows;
	size_t n;
	const char *next;
};

int store_repo_insert(struct store *s, const struct repo_row *row, struct store_call call,
                      struct err *e); /* in state cloning */
/* STORE_CONFLICT when the state it has does not lead there. */
int store_repo_update(struct store *s, const struct repo_row *row, uint32_t fields,
                      struct store_call call, struct err *e);
int store_repo_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                   struct repo_row *out, struct err *e);
int store_repo_by_key(struct store *s, const char *tenant, const char *key, struct arena *a,
                      struct repo_row *out, struct err *e); /* not gone */
/* By tenant, URL and credential. */
int store_repo_by_url(struct store *s, const struct repo_row *like, struct arena *a,
                      struct repo_row *out, struct err *e); /* not gone */
int store_repo_list(struct store *s, const struct store_page *page, struct arena *a,
                    struct repo_list *out, struct err *e); /* not gone */
/* At start: the daemon that worked on them is dead. */
int store_repo_unlock(struct store *s, const char *reason, struct store_call call, struct err *e);

/* What a name meant in a generation of a mirror. */
struct ref_row {
	const char *repo, *name, *sha;
	const char *branch; /* it is a branch of that name; NULL: it is none */
	int64_t generation;
};
int store_ref_put(struct store *s, const struct ref_row *row, struct store_call call,
                  struct err *e);
int store_ref_get(struct store *s, const char *repo, const char *name, struct arena *a,
                  struct ref_row *out, struct err *e);
