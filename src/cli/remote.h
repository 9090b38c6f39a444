/*
 * remote.h - a live process on a connection of its own (wire/stream.h): what it says comes as
 * events, what it is told goes out as frames. Nothing here blocks but remote_open().
 *
 *   remote_open ─▷ poll remote_fd() ─▷ remote_fill, remote_next until 0 ─▷ ... ─▷ END or FAIL
 */
#pragma once

#include "cli/client.h"
#include "cli/driver.h"
#include "wire/stream.h"

struct remote {
	struct client *client;
	struct str out; /* frames that wait to be sent, from `out_from` on */
	size_t out_from;
	struct str part; /* of an object that comes in several frames */
};

struct remote_event {
	enum stream_type type;
	const unsigned char *bytes; /* good until the next remote_fill() */
	size_t len;
	json_t *object; /* of STARTED, END and FAIL; the taker's to release */
};

/* The request that starts it or attaches to it; ask->headers are not used. */
int remote_open(struct remote *r, struct client *c, const struct client_ask *ask,
                struct err *e) MUST_USE;
void remote_done(struct remote *r);

static inline int remote_fd(const struct remote *r)
{
	return r->client->fd;
}

/* Reads what has come: 1, 0 when nothing has; -1 when the daemon has closed or failed. */
int remote_fill(struct remote *r, struct err *e) MUST_USE;
/* The next event: 1, 0 when none is whole yet, -1 for what is no frame. */
int remote_next(struct remote *r, struct remote_event *out, struct err *e) MUST_USE;

/* Queues a frame and sends what finds room; more room comes with POLLOUT. */
void remote_send(struct remote *r, enum stream_type type, const void *bytes, size_t n);
void remote_flush(struct remote *r);
void remote_signal(struct remote *r, int sig);
void remote_resize(struct remote *r, unsigned int rows, unsigned int cols);

/* Input waits until this is false, so that the queue stays short. */
static inline bool remote_is_waiting(const struct remote *r)
{
	return r->out_from < r->out.len;
}

/* The status of `caisson run` and `caisson exec` for a process object (API, section 6). */
int remote_exit_status(const json_t *process);

/* What POST /v1/run is asked. */
int remote_run_body(const struct run_setup *run, struct str *out, struct err *e) MUST_USE;
/* argv as a JSON list; an argument that is not UTF-8 is {"base64": ...}. */
json_t *remote_argv(char *const *argv);
