/*
 * live-internal.h - a process on a connection of its own; live.c has the life of it, and two files
 * have a dialect each: live_frames.c (our CLI), live_ws.c (WebSocket).
 */
#pragma once

#include "api/handlers.h"
#include "api/print.h"
#include "wire/stream.h"
#include "wire/ws.h"

struct live;

#define LIVE_IN_MAX (2 * (size_t)(STREAM_HEAD + STREAM_DATA_MAX))

struct dialect {
	bool (*piece)(struct live *l, const struct scan_piece *p); /* false: no more room for now */
	void (*json)(struct live *l, enum stream_type type, const char *text);
	void (*end)(struct live *l);
	/* Works off l->in; leaves what is not whole, or has to wait (is_waiting). False: nonsense.
	 */
	bool (*take)(struct live *l);
};

extern const struct dialect dialect_frames, dialect_ws;

struct live {
	struct px_watch watch; /* first */
	struct call *call;
	struct px *p;
	const struct dialect *dialect;
	struct live_opts opts;
	struct scan scan;
	struct keep kept[LOG_STREAMS];
	struct timer hello; /* when it has to be said */
	bool is_hello_due;
	bool is_greeted;    /* nobody hears of a process that is not on record */
	bool is_full;       /* the client takes no more for now */
	bool is_waiting;    /* the process takes no more input for now */
	bool is_input_over; /* nobody will type */
	bool is_over;
	char approval[ID_SIZE]; /* that the client was told of */
	struct ws_reader ws;
	size_t ws_held; /* input at the beginning of `in` that has to wait */
	/* Of the client, not worked off yet: a frame that waits, and what a last read brought. */
	unsigned char *in; /* LIVE_IN_MAX bytes; NULL: nothing ever came */
	size_t in_len;
};

/* The answer to the key of a handshake. */
void ws_accept(struct span key, char out[32]);

/* Standard input; false: there is no room for it now. */
bool live_input(struct live *l, const void *bytes, size_t n);
void live_eof(struct live *l);
void live_resize(struct live *l, long rows, long cols);
