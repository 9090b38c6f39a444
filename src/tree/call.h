/*
 * call.h - one request while it is served: its body comes in, its answer goes out, and between
 * two units of work it learns whether anybody still wants it.
 */
#pragma once

#include <jansson.h>
#include <poll.h>

#include "base/arena.h"
#include "base/str.h"
#include "wire/tree.h"

struct conn {
	int socket_fd, root_fd;
	bool is_gone; /* the other end closed, or does not speak our language */
	unsigned char in[TREE_PACKET_MAX + 1]; /* one more, to see what is too long */
	unsigned char out[TREE_PACKET_MAX];
};

enum call_stop { STOP_NONE, STOP_TIME, STOP_CANCELLED };

struct call {
	struct conn *conn;
	uint32_t id, flags;
	struct tree_request req;
	char path[PATH_TEXT_MAX];
	char match[TREE_HASH_TEXT];
	int source_fd, sink_fd; /* what came with the request; owned; -1: none */
	struct arena arena;

	uint64_t deadline_ms; /* 0: none */
	uint64_t looked_ms;   /* at the socket, last */
	enum call_stop stop;
	uint32_t asked; /* packets of the body that came while nobody read it: TREE_WATCH */

	struct span inline_body; /* in conn->in */
	bool is_body_whole;      /* nothing more comes */

	struct tree_answer answer;
	json_t *detail; /* of an error */
	size_t out_len; /* bytes that wait in conn->out, behind the structs */
	bool is_answered;
	bool is_ending;      /* the last packet goes out even when the call was stopped */
	uint64_t sent_bytes; /* of the answer */
};

/* -1 when the call should end: cancelled, too late, or nobody is there. NULL: always 0. */
int call_check(struct call *c, struct err *e) MUST_USE;
/* The same for verbs that end with what they have; STOP_NONE: go on. */
enum call_stop call_stopped(struct call *c);
/* The time was over, and what there is shall still be sent. */
void call_forgive(struct call *c);

/* Waits until `fd` is ready, for as long as somebody wants the answer. */
int call_wait(struct call *c, int fd, short events, struct err *e) MUST_USE;
/* Waits for any of several, without a deadline; the first is filled in here: the requester. */
int call_poll(struct call *c, struct pollfd *fds, size_t n, struct err *e) MUST_USE;

/* The next piece of the body, valid until the next call. 1: a piece, 0: the end. */
int call_body(struct call *c, struct span *out, struct err *e) MUST_USE;
/* All of it. */
int call_body_all(struct call *c, struct str *out, struct err *e) MUST_USE;
/* As JSON; the caller owns it. */
json_t *call_body_json(struct call *c, struct err *e) MUST_USE;

/* Adds bytes to the answer, whose head is c->answer when the first packet leaves. */
int call_add(struct call *c, struct span bytes, struct err *e) MUST_USE;
int call_add_json(struct call *c, const json_t *value, struct err *e) MUST_USE;
/* Sends what waits; before a pause. */
int call_flush(struct call *c, struct err *e) MUST_USE;
/* The whole answer. */
int call_answer(struct call *c, const json_t *value, struct err *e) MUST_USE;
/* Ends the answer; with the error when there is one. */
void call_end(struct call *c, const struct err *failure);
void call_done(struct call *c);
