/*
 * otlp.h - records of the ledger, sent to an OpenTelemetry collector (OTLP/HTTP, JSON).
 *
 * By the CLI, not by the daemon: that one opens no connection, and needs no key of a collector. A
 * piece of the stream that has come is one request; what a collector says is for later is sent
 * again, and nothing after it before that. So everything arrives at least once, in order, and the
 * cursor, a file with a number, says how far.
 *
 * Without TLS: a collector on the same host, which has the certificates and passes on.
 */
#pragma once

#include "cli/client.h"

struct otlp {
	struct client collector;
	char path[256];
	const char *cursor;   /* or NULL */
	json_t *records;      /* of the next request */
	uint64_t next;        /* the last record in there */
	uint64_t n_sent, seq; /* acknowledged: how many, the last */
};

void otlp_init(struct otlp *o);
void otlp_done(struct otlp *o);
/* `after` (or NULL) gets what the cursor says, if there is one. */
int otlp_open(struct otlp *o, const char *url, const char *cursor, uint64_t *after,
              struct err *e) MUST_USE;
/* All that GET `path` of the daemon gives. */
int otlp_push(struct otlp *o, struct client *daemon, const char *path, struct err *e) MUST_USE;
