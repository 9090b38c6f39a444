/*
 * leg.h - one side of a connection that is read: plain bytes or TLS, what came and was not used
 * yet, what is to be sent. No more memory than there are bytes.
 */
#pragma once

#include "base/str.h"
#include "gate/relay.h"
#include "io/tls.h"
#include "wire/span.h"

#define LEG_FULL (64u << 10)  /* unsent: the other side is not read then; also one read */
#define LEG_LITTLE (4u << 10) /* the same, when all together hold too much */
#define LEGS_MUCH (64u << 20)

/* What all legs of a loop hold. */
struct legs {
	size_t held;
};

struct leg {
	struct relay_end *end; /* its socket */
	struct tls *tls;       /* NULL: plain */
	struct flow *flow;     /* counts what was read */
	struct meter *meter;
	struct legs *legs;
	size_t held; /* of legs->held */
	struct str in, out;
	size_t in_from, out_from;
	bool is_shaken;   /* TLS: the handshake is done */
	bool is_readable; /* a read may bring something */
	bool is_blocked;  /* a write would not */
	bool is_eof, is_broken, is_shut;
	bool is_deaf; /* takes no more; what it has said can still be read */
	bool is_over_budget;
	bool is_paced; /* not read before its turn has come: `wait`, whose `wake` the owner sets */
	struct pace_wait wait;
	bool has_secret; /* in `out`: wiped with it */
	bool is_private; /* what comes may have a secret in it: wiped too */
};

static inline struct span leg_input(const struct leg *l)
{
	return (struct span){ str_text(&l->in) + l->in_from, l->in.len - l->in_from };
}

/* The same, to be changed in place. */
static inline char *leg_bytes(struct leg *l)
{
	return l->in.data ? l->in.data + l->in_from : NULL;
}

static inline size_t leg_unsent(const struct leg *l)
{
	return l->out.len - l->out_from;
}

static inline size_t leg_most(const struct leg *l)
{
	return l->legs->held > LEGS_MUCH ? LEG_LITTLE : LEG_FULL;
}

static inline bool leg_is_full(const struct leg *l)
{
	return leg_unsent(l) >= leg_most(l);
}

void leg_done(struct leg *l);                   /* nothing can be read or said any more */
void leg_heard(struct leg *l, uint32_t events); /* of the loop */
/* What the loop is asked for next; also counts what it holds. */
void leg_watch(struct relay *r, struct leg *l, bool may_read);
void leg_turn(struct leg *l); /* to be called by `wake` */
/* Reads once; true when something has come, also an end. */
bool leg_fill(struct leg *l);
void leg_take(struct leg *l, size_t n); /* of the input */
struct str *leg_out(struct leg *l);     /* to add to */
/* What is added next is a secret: wiped once it was sent. Its memory is not moved before. */
void leg_keep_secret(struct leg *l);
/* True when something was sent. */
bool leg_flush(struct leg *l);
void leg_shut(struct leg *l); /* after all was sent: no more comes */
