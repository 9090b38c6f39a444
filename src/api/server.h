/*
 * server.h - HTTP connections of the daemon: bytes in, requests out, answers back. No decision is
 * made here: what a request means, and who may, is the business of routes.h.
 *
 *   accept ─▷ head ─▷ on_head() ─▷ body ─▷ on_request() ─▷ answer ─▷ next request or close
 *
 * One loop thread. A connection serves one request at a time; the next one is read when the answer
 * is out. A handler answers at once, or keeps the pointer and answers later; `gone` tells it
 * when the client has left first (also while nothing is sent: a waiting client is watched). The
 * request must not be used after gone(), reply(), reply_end() or reply_abort(). Of the callbacks
 * only on_end() is called from within an answer that is given later.
 *
 * Memory per connection is bounded, and nothing but a small struct while it is idle; who is slow
 * to send a head or a body, or to take an answer, is closed by deadlines, and at the ceiling of
 * connections, or of descriptors, the oldest idle one makes room.
 *
 * A client that closed its sending side still gets its answer. Over TCP that looks like one that
 * has left; it is told apart by an interim answer (100), which only the latter refuses. In the
 * middle of a streamed answer the next write tells.
 */
#pragma once

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "io/loop.h"
#include "wire/http.h"

struct server;
struct request;

enum door { DOOR_UNIX, DOOR_TCP };

/* How the body of a request is taken; on_head() decides by the route. */
enum body_mode {
	BODY_NONE,   /* anything but an empty body is 400 */
	BODY_WHOLE,  /* up to body_max bytes in memory, then on_request() */
	BODY_STREAM, /* on_request() at once, then on_data() piece by piece, `n` 0 at the end */
};

struct request {
	struct http_head *head; /* whole; lives as long as the request */
	struct span path;       /* of the target, still encoded, without the query */
	struct span query;      /* without the `?`; may be empty */
	enum door door;
	bool is_tls;
	uid_t peer_uid; /* DOOR_UNIX: SO_PEERCRED */
	gid_t peer_gid;
	int socket_fd;      /* of the client, borrowed: the launcher reads its credentials itself */
	struct span body;   /* BODY_WHOLE; a NUL follows that is not part of it */
	struct arena arena; /* lives as long as the request */
	void *tag;          /* of the listener, server_listen_tagged() */

	/* Set by on_head(), */
	enum body_mode body_mode;
	uint64_t body_max; /* WHOLE and STREAM; UINT64_MAX: no ceiling */
	const char *owner; /* whose body it is, read once on_head() returns; NULL: by the UNIX
	                    * socket the operator's, else nobody's */
	void *route;
	/* and by the handler. All may be NULL. */
	void *state;
	void (*gone)(struct request *r); /* the client left, time is up, or the body is malformed */
	void (*on_data)(struct request *r, const void *p, size_t n); /* BODY_STREAM; n 0: the end */
	void (*on_room)(struct request *r); /* after reply_write() was false: more may follow */
};

struct server_ops {
	/* The head is there: set body_mode and route, or answer (an error) right away. */
	void (*on_head)(struct request *r);
	void (*on_request)(struct request *r);
	/* NULL, or the last call for a request: it is over, answered or not; `gone` came before. */
	void (*on_end)(struct request *r);
	void (*on_drained)(struct server *s); /* NULL, or: draining, and the last one has gone */
};

struct server_limits {
	size_t connections_max;                                      /* 0: 16384 */
	uint32_t head_ms, body_idle_ms, send_idle_ms, keep_alive_ms; /* 0: 10 s, 30 s, 30 s, 75 s */
	uint32_t body_ms;  /* for a whole body, BODY_WHOLE; 0: 120 s */
	size_t memory_max; /* of bodies; 0: 256 MiB. One owner has an eighth of it, an eighth is
	                    * left to the operator (share.c), and more is refused (503). Beyond half
	                    * of it, unsent answers counted too, answers are held back sooner */
	bool is_single;    /* one request per connection */
};

struct server *server_new(struct loop *l, const struct server_ops *ops, struct server_limits limits,
                          struct err *e) MUST_USE;
/* `fd` listens already and is taken over, also on failure. */
int server_listen_unix(struct server *s, int fd, struct err *e) MUST_USE;
/* A socket of that name, made new: what a dead daemon left there goes. For our own id, and root. */
int server_listen_path(struct server *s, const char *path, struct err *e) MUST_USE;
/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080" (IPv4, and IPv6 where there is one). cert and
 * key are PEM files, or NULL: no TLS. Returns the port: 0 in the address lets the kernel choose. */
int server_listen_tcp(struct server *s, const char *address, const char *cert, const char *key,
                      struct err *e) MUST_USE;
/* `fd` is taken over, also on failure; requests that come by it have the tag. */
int server_listen_tagged(struct server *s, int fd, void *tag, struct err *e) MUST_USE;
/* Listeners with this tag are closed, and their connections cut in the next turn of the loop; no
 * request comes from them any more. Not from within one of those. */
void server_unlisten(struct server *s, const void *tag);
/* One end of a pair of ours, for a request on behalf of another (api/inner.h): it counts as coming
 * from there. `fd` is taken over, also on failure; nothing is read before the next turn. */
struct server_peer {
	enum door door;
	uid_t uid;
	gid_t gid;
	int socket_fd; /* of the client itself, borrowed; -1: it has left */
};
int server_adopt(struct server *s, int fd, const struct server_peer *as) MUST_USE;
/* No new connection, idle ones are closed, others after their answer; true when none is left. */
bool server_drain(struct server *s);
/* Not from within a callback. Calls gone() for what is still going on. */
void server_free(struct server *s);
size_t server_connections(const struct server *s);
/* More than half of memory_max is taken: who makes large answers says `busy` instead. */
bool server_is_full(const struct server *s);

/* Does it ask, in HTTP/1.1, for this protocol (Connection: upgrade; Upgrade: ..., token, ...)? */
bool request_asks_upgrade(const struct request *r, const char *token);

/* ---- answers ----
 * Date, Connection and what frames the body are written here; a head that cannot be written (a
 * line break in a value) becomes a bare 500. HEAD, 204 and 304 have no body: what is given is
 * dropped. An answer before the body has come ends the connection, unless little is missing. */

/* A whole one. `type` may be NULL; `extra` is NULL or header lines as name, value, ..., NULL. */
void reply(struct request *r, int status, const char *type, const void *body, size_t n,
           const char *const *extra);
/* Streamed: chunked, or with a length when it is known (>= 0). One that then differs cuts the
 * connection. */
void reply_begin(struct request *r, int status, const char *type, int64_t length,
                 const char *const *extra);
/* Queues a copy. Returns false when the queue is above its mark: wait for on_room(). */
bool reply_write(struct request *r, const void *p, size_t n);
/* On: what is written waits for what follows at once; off: it goes. */
void reply_hold(struct request *r, bool is_on);
void reply_end(struct request *r);
void reply_abort(struct request *r); /* cuts the connection: the answer cannot be finished */
/* BODY_STREAM and upgraded: back-pressure to the sender. */
void reply_pause(struct request *r, bool is_paused);

/* 101: the connection is no longer HTTP. From now on on_data() gets raw bytes (n 0: the peer has
 * closed its side) and reply_write() sends raw bytes; reply_end() closes. */
void reply_upgrade(struct request *r, const char *protocol, const char *const *extra);
/* Upgraded: we send no more, and still hear; reply_end() comes when the peer has ended too. */
void reply_shut(struct request *r);
