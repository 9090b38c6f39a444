/*
 * cache-internal.h - the package cache: what its files share.
 *
 *   serve.c   start, who comes, rights
 *   client.c  one stream of a child of the gate: requests, and answers from a file
 *   fetch.c   one file that comes from its server, for all who wait for it
 *   line.c    connections to servers
 *   asks.c    what an operator asks
 *   store.c   what is kept
 *
 * What is sent comes from files, also what is just being fetched: its last byte waits until it is
 * known to be what it should be. So nobody gets a whole answer that is wrong, and nobody's slowness
 * is another's.
 *
 * A client is freed by client_end(), a fetch by its own end; either may happen inside a call to the
 * other, so both hold on while they work (is_busy).
 */
#pragma once

#include "cache/store.h"
#include "gate/dial.h"
#include "gate/ends.h"
#include "gate/leg.h"
#include "io/timer.h"
#include "wire/cache.h"
#include "wire/http.h"

#define OWNER_OF(at, type, member) ((type *)(void *)((char *)(at)-offsetof(type, member)))

#define CLIENTS_MAX 4096
#define FETCHES_MAX 256
#define OWN_MAX 256
#define CACHE_TEXT_MAX 1024 /* of a field that is kept */

struct client;
struct fetch;
struct ask;

struct cache {
	struct loop loop;
	struct timers timers;
	struct lookups lookups;
	struct ends ends;
	struct store store;
	struct legs legs;
	struct meter meter; /* of nothing */
	uint64_t metered;
	struct watch gates, launcher;
	const char *proxy;
	struct rules_addr own[OWN_MAX]; /* addresses of this host */
	size_t n_own;
	struct client *clients;
	struct fetch *fetches;
	struct line *idle; /* the last that was left first */
	struct ask *asks;
	size_t n_clients, n_fetches, n_idle;
};

/* The rules by which a sandbox lives; shared by its client and what that fetches. */
struct view {
	size_t refs;
	struct rules rules;
	struct dialer dialer;
};

struct view *view_take(struct view *v);
void view_leave(struct view *v); /* NULL is fine */
/* What came from there may be shown to it: it could have asked itself. */
bool view_may_see(const struct view *v, const struct rules_addr *real);

/* One socket that is read and written. */
struct side {
	struct relay relay; /* of which it is the client */
	struct leg leg;
	struct flow flow;
};

void side_open(struct cache *c, struct side *s, int fd,
               void (*ready)(struct watch *w, uint32_t events));
void side_close(struct side *s); /* may be called twice */

/* ---- client.c ------------------------------------------------------------------------ */

/* Fields of an answer; NULL: not said. */
struct fields {
	const char *type, *etag, *modified, *control;
};

/* Takes both descriptors. */
void client_start(struct cache *c, const struct cache_hello *h, int fd, int rules_fd);
void client_end(struct client *c);
/* Something comes: so many bytes, or nobody knows. `fd` is borrowed. */
void client_begin(struct client *c, const struct fields *f, int fd, const uint64_t *size);
void client_grow(struct client *c, uint64_t ready, bool is_whole); /* so much may be sent */
void client_serve(struct client *c, struct entry *n, enum cache_word how);
void client_pass(struct client *c); /* it is not for us */
void client_cut(struct client *c);  /* it was for us, and went wrong */
const struct view *client_view(const struct client *c);
struct client **client_next(struct client *c); /* of those that wait for the same */
void clients_done(struct cache *c);

/* ---- line.c -------------------------------------------------------------------------- */

struct line {
	struct side side;
	struct cache *cache;
	struct line *next;
	void (*ready)(void *owner); /* something can be read or written; NULL: it waits */
	void *owner;
	struct timer timer;
	bool is_tls;
	uint16_t port;
	char host[GATE_NAME_SIZE];
	struct rules_addr real;
};

/* Takes the socket, which is connected. NULL: no TLS can be spoken. */
struct line *line_open(struct cache *c, const struct weburl *to, int fd,
                       const struct rules_addr *real);
/* One that waits, and that who has these rules might have dialled; NULL: none does. */
struct line *line_take(struct cache *c, const struct weburl *to, const struct view *view);
void line_leave(struct line *l); /* for the next one */
void line_close(struct line *l); /* NULL is fine */
void lines_done(struct cache *c);

/* ---- fetch.c ------------------------------------------------------------------------- */

struct wanted {
	bool is_index;
	enum pkg_kind kind;
	uint8_t id[STORE_ID_SIZE];
	struct weburl at;
	struct digest digest; /* of a file */
	const char *accept;   /* of an index; a literal */
};

/* Begins one, or joins one. False: too many, and the client waits for nothing. */
bool fetch_for(struct cache *c, const struct wanted *w, struct client *client, struct view *view,
               struct fetch **out);
void fetch_leave(struct fetch *f, struct client *client);
void fetches_done(struct cache *c);

/* ---- asks.c -------------------------------------------------------------------------- */

void ask_start(struct cache *c, int fd); /* takes it */
void asks_done(struct cache *c);
