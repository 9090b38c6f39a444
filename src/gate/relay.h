/*
 * relay.h - bytes between two sockets, unread and without a copy: socket, pipe, socket; but for
 * those that somebody wants to see first.
 *
 * A pipe is needed only while something lies in it, so a connection has one only while its other
 * side does not take what came; all others share a few. An end of one side is passed on when all
 * before it has been; the relay is over when both have ended, or one is broken. Nothing is read
 * from a side before the other has taken all, which is all the back-pressure there is.
 */
#pragma once

#include "gate/pace.h"
#include "io/loop.h"
#include "wire/span.h"

#define RELAY_PIPE_BYTES (256u << 10)
#define PIPES_KEPT 8

/* Empty pipes for all relays of a loop. */
struct pipes {
	int kept[PIPES_KEPT][2];
	size_t n;
};

void pipes_done(struct pipes *p);

/* How much may pass, over all relays; `used` may be in shared memory. */
struct meter {
	uint64_t *used;
	uint64_t max;
	struct pace *pace; /* NULL: as fast as it goes */
};

struct flow {
	int pipe[2];   /* 0, 0: none */
	uint32_t held; /* bytes in it */
	bool is_eof;   /* nothing more comes from its source */
	bool is_shut;  /* and its sink knows */
	bool is_paced; /* its source is not read before its turn has come */
	struct pace_wait wait;
	uint64_t bytes;
};

struct relay_end {
	struct watch watch; /* fd -1: not there yet */
	uint32_t events;
	bool is_watched;
};

enum relay_over {
	RELAY_CLIENT, /* closed first, or broke */
	RELAY_SERVER,
	RELAY_BUDGET,
	RELAY_REFUSED,
};

struct relay {
	struct relay_end client, server;
	struct flow up, down;
	struct loop *loop;
	struct pipes *pipes;
	struct meter *meters; /* [0] up, [1] down; NULL: none */
	/* Once. It closes the sockets after relay_stop(); is_broken: by a reset. */
	void (*over)(struct relay *r, enum relay_over why, bool is_broken);
	/* The client can be read, and `up` is not open yet. */
	void (*knock)(struct relay *r);
	/* NULL, or sees all that the client says, before it goes on; true: it does not. */
	bool (*refuses)(struct relay *r, struct span bytes);
	bool is_up_held;      /* what the client sends is not relayed yet */
	bool is_server_first; /* the server was the first to end */
};

/* Both sockets are there, `over` too. Everything may be over when it returns. */
void relay_start(struct relay *r);
void relay_open_up(struct relay *r); /* is_up_held no longer */
/* Watches nothing any more, frees pipes. The sockets stay open. May be called twice. */
void relay_stop(struct relay *r);

/* One end by itself, before the relay begins. */
void relay_end_watch(struct relay *r, struct relay_end *e, uint32_t events);
void relay_end_unwatch(struct relay *r, struct relay_end *e);
