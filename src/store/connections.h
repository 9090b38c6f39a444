/*
 * connections.h - what became of every connection, refused lookup and terminated request of a
 * sandbox.
 *
 * A connection is told when it opens and when it closes; the second replaces the first, and the row
 * moves to the end of the order: whoever has read up to a seq misses no change. A final row never
 * changes again, so that what is told twice is stored once.
 *
 * A sandbox has STORE_CONNECTION_ROWS rows of its own. What comes after these is added up: one row
 * per kind, decision and second, and when these too are many, per hour. Every text is bounded, so
 * the number of rows bounds the bytes.
 */
#pragma once

#include "store/store.h"

#define STORE_CONNECTION_ROWS 10000 /* of one sandbox, before they are added up */
#define STORE_CONNECTION_SUMS 10000 /* then per second; after that per hour */
#define STORE_CONNECTIONS_MAX 256   /* rows of one put */

enum connection_kind {
	CONNECTION_ONE,
	CONNECTION_REQUEST, /* of a terminated one */
	CONNECTION_LOOKUP,  /* of a name, denied */
	/* many, added up; in the same order */
	CONNECTION_ONES,
	CONNECTION_REQUESTS,
	CONNECTION_LOOKUPS,
	CONNECTION_KINDS
};

const char *connection_kind_name(enum connection_kind kind); /* "connection", "connections", ... */

#define CONNECTION_OPEN "open"
#define CONNECTION_LOST "lost"

/* Words and texts of wire/gate.h, as its records have them. */
struct connection_row {
	int64_t seq; /* order of the last change; given by the store */
	const char *sandbox, *tenant;
	const char *node;   /* NULL at put: this store's */
	int64_t generation; /* of the sandbox: a new one counts anew */
	enum connection_kind kind;
	int64_t num, request; /* which connection, and which request of it (0: itself) */
	int64_t ts_ms;
	const char *process; /* that made it, or NULL */
	const char *name, *dst, *real;
	int64_t port;
	const char *proto, *sni, *alpn;
	const char *decision;
	int64_t denied; /* 0 or 1 */
	const char *rule, *reason, *approval;
	const char *secrets; /* JSON array of names; NULL is [] */
	int64_t rules;       /* generation of the rules that decided */
	int64_t bytes_up, bytes_down, ms;
	const char
	    *close; /* who ended it; CONNECTION_OPEN, CONNECTION_LOST; NULL: not a connection */
	const char *method, *path;
	int64_t status;
	const char *cache; /* what the package cache did for a request, or NULL */
	int64_t count;     /* how many the row stands for */
};

struct connection_query {
	const char *tenant, *sandbox;
	int64_t after;        /* rows that changed later than this seq */
	size_t limit;         /* 0: STORE_LIST_DEFAULT */
	const char *decision; /* exactly; NULL: any */
	const char *name;     /* exactly; NULL: any */
	bool is_denied_only, is_allowed_only;
};

struct connection_list {
	struct connection_row *rows; /* oldest change first */
	size_t n;
	bool has_more;
};

/* All of one sandbox, in order: at most STORE_CONNECTIONS_MAX. */
int store_connection_put(struct store *s, const struct connection_row *rows, size_t n,
                         struct store_call call, struct err *e);
/* Whoever had them open is dead: nobody will tell of their end. */
int store_connection_lose(struct store *s, const char *sandbox, struct store_call call,
                          struct err *e);
int store_connection_list(struct store *s, const struct connection_query *query, struct arena *a,
                          struct connection_list *out, struct err *e);
