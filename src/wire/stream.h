/*
 * stream.h - a live process on one connection: what the CLI speaks after `101 Switching Protocols`
 * with `Upgrade: caisson-stream`, at POST /v1/run, POST /v1/sandboxes/{id}/exec and
 * GET /v1/processes/{id}/attach.
 *
 * Both ways frames: 8 bytes (letter, three zeros, length in network order), then `length` bytes.
 * Browsers and scripts have WebSocket, SSE and NDJSON; this is for a terminal that needs both
 * output streams, signals and the end in one place, with back-pressure: a client that does not
 * read stops the command at its own pipe.
 */
#pragma once

#include "base/str.h"

#define STREAM_PROTOCOL "caisson-stream"
#define STREAM_HEAD 8
#define STREAM_DATA_MAX (64u << 10)

enum stream_type {
	/* from the daemon */
	STREAM_STARTED = 'S', /* the process object, JSON */
	STREAM_OUT = 'O',
	STREAM_NOTE = 'N', /* a line of ours for standard error */
	STREAM_ERR = 'E',
	STREAM_LOST =
	    'L', /* bytes that were not kept, as decimal text; after=… of a log with a hole */
	STREAM_END = 'X', /* the process object with its end, JSON; the last frame */
	STREAM_EXITED =
	    'Q', /* brief: it exited, decimal text, and there is no more to say; the last */
	STREAM_FAIL = 'F', /* a problem object, JSON: our own failure; the last frame */
	/* from the client */
	STREAM_IN = 'I',
	STREAM_EOF = 'Z',    /* of standard input */
	STREAM_SIGNAL = 'G', /* decimal text: for the command's process group */
	STREAM_RESIZE = 'R', /* "rows cols", decimal text */
	STREAM_KILL = 'K',   /* the whole tree */
};

struct stream_frame {
	enum stream_type type;
	const unsigned char *data;
	size_t len;
};

/* A frame at the beginning of buf: bytes used, 0 when it is not whole yet, -1 when it is none. */
int stream_parse(const void *buf, size_t len, struct stream_frame *out);
void stream_head(unsigned char out[STREAM_HEAD], enum stream_type type, size_t len);
