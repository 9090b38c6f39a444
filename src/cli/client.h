/*
 * client.h - one connection to the daemon: HTTP requests, one after the other, each answer read to
 * its end; or an upgrade, and then the bytes of src/wire/stream.h.
 *
 * Calls block. The connection is made by the first request and kept for the next one.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"
#include "cli/address.h"
#include "wire/http.h"

struct client {
	struct address address;
	int fd;        /* -1: not connected; { 0 } is no client, see client_init() */
	int lend_fd;   /* what keeps the paths of the last request lent (cli/lend.h); -1: none */
	struct str in; /* read, and from `in_from` on not yet used */
	size_t in_from;
	const char *doing; /* for the line of progress; NULL: "waiting for the daemon" */
	json_t *problem;   /* of the last answer, when it was one */
	bool has_answered; /* it lives: what goes wrong later is something else */
	bool is_asked;     /* the next request has been sent over fd already (cli/early.h, or by
	                    * client_send()) */
};

/* More of a body: bytes put to `buf`, 0 at its end, -1. */
typedef ssize_t client_source(void *arg, char *buf, size_t size, struct err *e);

struct client_ask {
	const char *method, *path;  /* with its query, encoded */
	const char *const *headers; /* name, value, ..., NULL; or NULL */
	const char *type;           /* of the body; NULL: JSON */
	struct span body;           /* one piece, */
	client_source *source;      /* or as much as comes from here; */
	void *arg;                  /* NULL and no bytes: no body */
	const char *protocol;       /* of client_upgrade(); NULL: that of wire/stream.h */
};

struct client_answer {
	int status;
	uint64_t length; /* of the body; UINT64_MAX: not known */
	/* private */
	struct http_body body;
	bool is_kept;
};

void client_init(struct client *c);
void client_done(struct client *c);

/* Only sends it: client_begin() with the same ask then reads the answer, which c->fd tells of. */
int client_send(struct client *c, const struct client_ask *ask, struct err *e) MUST_USE;
/* Sends the request and reads the head of the answer, whatever its status. */
int client_begin(struct client *c, const struct client_ask *ask, struct client_answer *out,
                 struct err *e) MUST_USE;
/* The next piece of its body, good until the next call: 1; 0 at the end; -1. */
int client_read(struct client *c, struct client_answer *a, struct span *piece,
                struct err *e) MUST_USE;
/* The same, but it does not wait: CLIENT_LATER when there is nothing yet. */
#define CLIENT_LATER 2
int client_read_some(struct client *c, struct client_answer *a, struct span *piece,
                     struct err *e) MUST_USE;
/* Turns an answer of 400 and above into an error: the problem's sentence. */
int client_check(struct client *c, struct client_answer *a, struct err *e) MUST_USE;

/* A whole exchange: the answer as JSON, NULL when it has no body. `out` may be NULL. What the
 * daemon calls safe to repeat is repeated for a while. */
int client_json(struct client *c, const struct client_ask *ask, json_t **out,
                struct err *e) MUST_USE;
/* The same with a JSON body, which may be NULL; the reference is taken. */
int client_call(struct client *c, const char *method, const char *path, json_t *body, json_t **out,
                struct err *e) MUST_USE;
/* The body goes to a descriptor. */
int client_fetch(struct client *c, const struct client_ask *ask, int fd, struct err *e) MUST_USE;

/* The connection is no longer HTTP: c->fd, and what has come already is in c->in. */
int client_upgrade(struct client *c, const struct client_ask *ask, struct err *e) MUST_USE;
/* Bytes that somebody else read from c->fd. */
void client_take(struct client *c, const void *bytes, size_t n);

/* The error that a problem object stands for. */
int client_problem(const json_t *problem, struct err *e);

int write_all(int fd, const void *bytes, size_t n, struct err *e) MUST_USE;
/* "/v1/sandboxes/{}/files/{}" with each {} replaced by the next of the texts, encoded. */
void client_path(struct str *out, const char *pattern, const char *const *texts);
