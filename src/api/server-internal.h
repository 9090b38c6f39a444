/*
 * server-internal.h - what the files of the server share.
 *
 *   server.c   its life; listening, accepting, shedding
 *   conn.c     one connection: events, phases, deadlines
 *   out.c      what waits to be sent
 *   share.c    whose bodies are in memory
 *   reply.c    answers
 *   tls.c      OpenSSL
 *
 *                ┌─────────────────────── next request ───────────────────────┐
 *                ▼                                                            │
 *   accept ─▷ HEAD ─▷ (on_head) ─▷ BODY ─▷ WORK ─▷ answered ─▷ SKIP ─▷ SEND ──┤
 *                                    └─▷ RAW (upgraded) ───────────────▷ SEND ─┴▷ LINGER ─▷ closed
 *
 * Callbacks run in BODY, WORK and RAW only, with `is_inside` set. A connection that is over is
 * marked `is_broken` and freed when control leaves it: nobody frees what a caller still holds.
 */
#pragma once

#include "api/server.h"
#include "api/tls-internal.h"
#include "io/timer.h"
#include "os/net.h"

#define READ_BYTES (64u << 10)    /* of one read of a body */
#define READS_MAX 4               /* of one event; others wait */
#define SKIP_MAX (64u << 10)      /* of a body that nobody wants: cheaper than a new connection */
#define LINGER_MAX (4u << 20)     /* of what a refused client still sends */
#define OUT_HIGH (256u << 10)     /* reply_write() says: wait */
#define OUT_LOW (64u << 10)       /* on_room() */
#define OUT_MAX ((size_t)1 << 30) /* one answer; handlers stream what is large */
#define HEAD_TEXT_MAX (64u << 10) /* of an answer */

struct ring { /* a list whose head is a member */
	struct ring *prev, *next;
};

static inline void ring_init(struct ring *r)
{
	r->prev = r->next = r;
}

static inline void ring_remove(struct ring *r)
{
	r->prev->next = r->next;
	r->next->prev = r->prev;
	ring_init(r);
}

static inline void ring_add_last(struct ring *list, struct ring *r)
{
	r->prev = list->prev;
	r->next = list;
	list->prev->next = r;
	list->prev = r;
}

enum phase {
	PHASE_HEAD,   /* idle, or a head is on its way */
	PHASE_BODY,   /* a body is on its way */
	PHASE_WORK,   /* the handler has it all */
	PHASE_RAW,    /* no longer HTTP */
	PHASE_SKIP,   /* answered; the rest of the body is on its way */
	PHASE_SEND,   /* answered; the answer is on its way */
	PHASE_LINGER, /* nothing more from us; until the client has seen that */
	PHASES
};

/* Whose fault it would be: one deadline at a time. */
enum wait { WAIT_NONE, WAIT_HEAD, WAIT_IDLE, WAIT_BODY, WAIT_SEND, WAIT_LINGER, WAITS };

struct listener {
	struct watch watch; /* first */
	struct listener *next;
	struct server *server;
	enum door door;
	struct tls_context *tls; /* NULL: no TLS */
	void *tag;
};

struct server {
	struct loop *loop;
	struct server_ops ops;
	size_t connections_max, memory_max;
	uint64_t wait_ms[WAITS];
	struct timers timers;
	struct listener *listeners;
	struct tls_context *contexts; /* of listeners, and of connections that outlive them */
	struct timer pause;           /* listening goes on when it fires */
	int reserve_fd;               /* given up for a moment when there are no more descriptors */
	struct ring idle;             /* the oldest first: HEAD and LINGER */
	struct ring busy;
	size_t n_conns;
	size_t held;          /* bytes of bodies and unsent answers */
	size_t bodies;        /* of bodies alone */
	struct share *shares; /* of those that send bodies now */
	uint64_t body_ms;     /* for a whole one */
	bool is_draining, is_single;

	/* One connection at a time uses these. */
	char *scratch;
	struct http_head head;
	struct str head_text;
	time_t date_s;
	char date[32];
};

/* One request and its answer. */
struct exchange {
	struct request r; /* first */
	struct conn *conn;
	struct http_head head;
	struct str body;
	struct share *share;    /* whose the body is; NULL: the operator's, or not known yet */
	uint64_t body_until_ms; /* monotonic, of a body that is kept whole; 0: it has no end */
	bool has_begun;         /* the head of the answer is out */
	bool is_over;           /* the handler has forgotten it */
	bool is_paused;
	bool is_held; /* its answer: more of it follows at once */
	bool wants_room;
	bool is_bodiless;            /* what is written is dropped */
	enum http_body_kind framing; /* of the answer */
	uint64_t left;               /* of its length */
	char head_bytes[];
};

struct conn {
	struct watch watch; /* first */
	struct timer timer;
	struct ring ring;
	struct server *server;
	struct tls_context *tls_context; /* NULL: no TLS */
	struct tls *tls;                 /* NULL until the first byte */
	struct exchange *x;
	struct str ahead; /* input that was read and not yet used; no memory when empty */
	struct str out;   /* unsent, from out_from on; no memory when empty */
	size_t out_from;
	struct http_body body; /* where the body of the request ends */
	size_t parsed;         /* bytes of `ahead` that were no whole head */
	size_t lingered;
	int unsent;      /* when the deadline was last looked at; -1: not since it was set */
	uint32_t events; /* that are watched */
	enum door door;
	uid_t uid;
	gid_t gid;
	int peer_fd; /* of the client that it stands for, own copy; -1: it is the client's */
	void *tag;   /* of its listener */
	enum phase phase;
	enum wait wait;
	bool is_inside;    /* callbacks may run; who is in there cleans up */
	bool is_broken;    /* over */
	bool is_reset;     /* the peer must not take what it has for the whole */
	bool is_fresh;     /* no request so far */
	bool is_kept;      /* for another request */
	bool is_withheld;  /* the body waits for our 100 */
	bool is_shut_due;  /* our side ends when all is out */
	bool is_deaf;      /* input came that is not wanted yet */
	bool is_ended;     /* the peer sends no more; there may be unread bytes */
	bool is_eof;       /* all was read */
	bool is_blocked;   /* the socket takes no more */
	bool is_unwatched; /* the peer has left, and its last bytes wait until they are wanted */
	bool is_stirred;   /* `ahead` may be used now */
	bool is_soon;      /* the timer means: go on */
	bool has_moved;    /* bytes went in or out: the deadline starts anew */
};

#define CONN_OF(p, member) ((struct conn *)(void *)((char *)(p)-offsetof(struct conn, member)))

/* ---- conn.c ---- */
void conn_new(struct listener *l, int fd); /* takes it */
/* Takes both; false: it cannot be watched. */
bool conn_adopt(struct server *s, int fd, const struct server_peer *as, int peer_fd);
void conn_free(struct conn *c); /* calls gone() */
/* What ends every entry from outside: frees it when it is over, else watches what it waits for. */
void conn_settle(struct conn *c);
void conn_soon(struct conn *c);   /* goes on in the next turn of the loop */
void conn_finish(struct conn *c); /* the exchange is over */
bool conn_body_done(const struct conn *c);
/* The body that is missing is little, and surely on its way. */
bool conn_can_skip(const struct conn *c);
void conn_phase(struct conn *c, enum phase phase);

/* ---- share.c ---- */
void share_join(struct exchange *x);           /* once its owner is known */
bool share_take(struct exchange *x, size_t n); /* false: there is no room for n bytes of body */
void share_leave(struct exchange *x);          /* before its body is freed */

/* ---- out.c ---- */
/* Sends or queues; `hold`: queues what is small, since more follows at once. */
void out_send(struct conn *c, struct iovec *iov, size_t n, bool hold);
void out_flush(struct conn *c);
void out_drop(struct conn *c);

static inline size_t out_waiting(const struct conn *c)
{
	return c->out.len - c->out_from;
}

/* ---- reply.c ---- */
struct problem {
	int status;
	const char *code, *detail; /* words of ours: they are not escaped */
};

/* To a client whose request has no handler; it is the last answer. */
void reply_problem(struct conn *c, const struct problem *p);
/* To one that gets no connection. */
void reply_refuse(struct server *s, int fd);
