/*
 * gate-internal.h - the child of one sandbox: what its files share.
 *
 *   child.c      start, the monitor's words, rules anew
 *   resolver.c   DNS
 *   conn.c       a connection: who is meant, may it, its first bytes, and what follows from them
 *   web.c        one that speaks HTTP; web_ask.c its requests
 *   web_hold.c   requests that a person is asked about
 *   inject.c     the secrets that go with them
 *   play.c       hosts that are played here
 *   cached.c     who asks the package cache, and what
 *   mint.c       tokens that it gets by itself
 *   asks.c       connections that wait for a person
 *   records.c    what is told about all that
 *
 * A connection (struct conn) is freed by conn_deny() and conn_end(); after these, and after what
 * may call them, it must not be touched. A watch that is removed gets no more events, so nothing
 * has to be deferred.
 */
#pragma once

#include "gate/budget.h"
#include "gate/dial.h"
#include "gate/ends.h"
#include "gate/leg.h"
#include "gate/names.h"
#include "gate/purse.h"
#include "gate/relay.h"
#include "io/timer.h"
#include "os/capture.h"
#include "spec/mock.h"
#include "spec/rules.h"
#include "wire/cache.h"

#define OWNER_OF(at, type, member) ((type *)(void *)((char *)(at)-offsetof(type, member)))

#define OWN_MAX 256
#define ENDED_MAX 4096 /* connections whose TLS ends here: on both sides one takes 70 KiB */

struct conn;
struct web;
struct ask;
struct mint;
struct gate;

/* Names that were asked for in vain, until they are told. */
#define LOOKUPS_MAX 64
struct lookup_note {
	char name[GATE_NAME_SIZE];
	uint32_t count; /* that were not told yet; 0 and a name: told */
	enum gate_reason reason;
};

struct resolver {
	struct watch udp[2]; /* IPv4, IPv6 */
	struct bucket questions, names;
	struct timer window;
	struct lookup_note notes[LOOKUPS_MAX];
	size_t n_notes;
	uint32_t n_more; /* there was no room to note */
	struct dns_conn *conns;
	size_t n_conns;
};

/* What the monitor has no room for yet. */
struct unsaid {
	struct unsaid *next;
	struct gate_packet packet;
};

struct records {
	uint64_t credit;
	struct unsaid *unsaid, **unsaid_end;
	struct unsaid *owed, **owed_end; /* for which there is no credit yet */
	struct timer window;
	struct gate_record denied[2]; /* alike: by budget, by spool; count 0: none */
};

struct asks {
	struct ask *first;
	size_t n, n_conns;
	uint64_t n_requests; /* that were ever asked for */
	VEC(char *) used;    /* secrets that were allowed once, and are not asked for again */
};

struct gate {
	struct loop loop;
	struct timers timers;
	struct watch monitor;
	struct watch tcp[2]; /* IPv4, IPv6 */
	struct timer accept_again;
	char id[GATE_ID_SIZE];
	struct rules rules;
	VEC(struct mock) mocks; /* one for each of rules.mock */
	uint64_t play_count;    /* how often they were read: others then, at other places */
	uint32_t generation;
	struct gate_packet
	    ruled; /* said when `settle` fires: what was cut has arrived, or never will */
	struct timer settle;
	uint64_t last_cut_ms;           /* when the last connection to a server was closed here */
	int rules_fd;                   /* the document; -1: none yet */
	int safe_fd;                    /* the way to who opens secrets */
	struct purse *purse;            /* those of the rules */
	int cache_fd;                   /* the way to the package cache; -1: there is none */
	struct rules_addr own[OWN_MAX]; /* addresses of this host */
	struct watch own_events;        /* tells when one comes or goes */
	size_t n_own;
	struct names names;
	struct resolver resolver;
	struct lookups lookups;
	struct dialer dialer;
	struct ends ends;
	uint8_t seed[GATE_SEED_SIZE];
	struct asks asks;
	struct records records;
	struct bucket connections;
	struct meter meters[2]; /* bytes: up, down */
	struct pace paces[2];
	struct pipes pipes;
	struct conn *conns;
	size_t n_conns, n_conns_max, n_ended;
	struct legs legs;
	struct mint *mints; /* tokens that are asked for */
	size_t n_signing;   /* bytes that are held to be signed */
	bool is_up;
	bool is_spool_full; /* nobody takes records: all are denied */
	bool is_narrower;   /* the rules that came last may deny what those before them allowed */
	bool has_marks;     /* the monitor was told of some secrets */
};

enum conn_state {
	CONN_HELD,  /* a person is asked */
	CONN_SNIFF, /* for its first bytes */
	CONN_DIAL,
	CONN_RELAY,
	CONN_WEB, /* HTTP is read: web.c */
};

enum conn_by { BY_NOBODY, BY_CLIENT, BY_SERVER, BY_GATE }; /* close_by of a record */

struct conn {
	struct relay relay; /* both sockets, and how much has passed */
	struct gate *gate;
	struct conn *next, **link; /* of gate->conns */
	struct conn *ask_next;     /* CONN_HELD: of ask->conns */
	struct ask *ask;
	struct dial *dial;
	struct web *web;
	struct timer timer;
	const char *name; /* of the table; NULL: an address was used */
	struct rules_addr to, real;
	char *rule, *sni, *alpn; /* NULL: "" */
	char *canary;            /* the name of one that it carried */
	struct canary_scan scan; /* CONN_RELAY: of what the client says */
	uint64_t seq, since_ms;
	int64_t unix_ms;
	uint32_t generation;
	uint16_t src_port;
	uint8_t state;      /* enum conn_state */
	uint8_t proto;      /* enum gate_proto */
	bool is_answered;   /* a person has allowed it */
	bool is_opened;     /* GATE_OPENED was said */
	bool is_patient;    /* the timer is its last */
	bool is_terminated; /* its TLS ends here */
};

/* ---- child.c ------------------------------------------------------------------------- */

void gate_say(struct gate *g, const struct gate_packet *p); /* waits in a queue for room */
int64_t gate_unix_ms(void);
void gate_say_marks(struct gate *g); /* of all secrets that there are now */
/* `out` is locked, with room for SECRET_VALUE_MAX; how long it is, or -1. */
int gate_open_secret(const struct gate *g, const struct cred_rule *c, uint8_t *out,
                     struct err *e) MUST_USE;

/* ---- conn.c -------------------------------------------------------------------------- */

/* Takes the sockets of `fds`, which listen. */
int conns_listen(struct gate *g, const int fds[2]); /* 0 or -errno */
void conns_credit(struct gate *g); /* records are taken again: who waits may come */
void conns_done(struct gate *g);
/* What the rules say of a connection that has sent nothing yet. */
void conn_judge(struct conn *c);
/* By a reset. It has been decided by rule, or it never came so far. */
void conn_deny(struct conn *c, enum gate_decision d, enum gate_reason why);
void conn_end(struct conn *c, enum gate_reason why, enum conn_by by);
void conn_close(struct conn *c, enum gate_decision d, enum gate_reason why, enum conn_by by);
struct question conn_question(const struct conn *c, enum rules_stage stage);
struct verdict conn_decide(struct conn *c, const struct question *q); /* and notes the rule */
/* True when a canary is in what comes next; it is noted. */
bool conn_sings(struct conn *c, struct canary_scan *s, struct span bytes);
void conn_dial(struct conn *c);
/* After new rules: false when they have closed it. */
bool conn_rejudge(struct conn *c);

/* ---- cached.c ------------------------------------------------------------------------ */

struct http_head;
/* Is this one for the package cache? */
bool cached_is(const struct conn *c, const struct http_head *h);
/* What it did for this answer; CACHE_PASS: nothing. */
enum cache_word cached_word(const struct http_head *h);
/* A stream to it, for this connection; or -errno. */
int cached_open(const struct conn *c, bool is_tls);

/* ---- mint.c -------------------------------------------------------------------------- */

enum mint_word { MINT_READY, MINT_WAITS, MINT_FAILED };
/* Is there a token of rules.creds[which]? When it waits, web_look_again() comes later. */
enum mint_word mint_ask(struct gate *g, size_t which);
void mints_done(struct gate *g); /* nobody is told */

/* ---- resolver.c ---------------------------------------------------------------------- */

int resolver_start(struct gate *g, const int fds[2]); /* takes them; 0 or -errno */
void resolver_accept(struct gate *g, int fd);         /* DNS over TCP: takes it */
void resolver_done(struct gate *g);

/* ---- asks.c -------------------------------------------------------------------------- */

void asks_hold(struct conn *c, const struct verdict *v); /* may deny it */
/* A request of one; web_asked() follows. The number of the question; 0: too many are held. */
uint64_t asks_hold_request(struct conn *c, const struct gate_ask *about);
void asks_leave(struct conn *c); /* fine when it is not held */
void asks_answer(struct gate *g, const struct gate_answer *a);
bool asks_was_used(const struct gate *g, const char *secret); /* approve: first */
void asks_note_used(struct gate *g, const char *secret);
void asks_done(struct gate *g);

/* ---- records.c ----------------------------------------------------------------------- */

bool records_has_room(const struct gate *g); /* else nothing begins that is recorded */
void records_credit(struct gate *g, uint32_t n);
void record_opened(struct conn *c);
void record_closed(struct conn *c, enum gate_decision d, enum gate_reason why, enum conn_by by);
struct request_note {
	uint64_t number;
	const char *method, *path;
	int status; /* 0: none came */
	enum cache_word cache;
	const char *secret;
	uint64_t ask;     /* of the question that it waited for; 0: none */
	bool is_approved; /* by a person */
	const struct gate_content *content;
	enum gate_reason reason;
};
void record_request(struct conn *c, const struct request_note *n);
/* Its secret goes out next: told before, so that it is on record whatever happens then. */
void record_use(struct conn *c, const struct request_note *n);
/* A token was asked for. */
struct minted {
	uint64_t seq;
	const char *secret, *name, *path;
	uint16_t port;
	int status; /* GATE_REQUEST */
	enum gate_kind kind;
	enum gate_reason reason;
};
void record_minted(struct gate *g, const struct minted *m);
void record_lookup(struct gate *g, const struct lookup_note *n);
void records_start(struct gate *g);
void records_done(struct gate *g);
