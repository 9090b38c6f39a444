/*
 * tls-internal.h - TLS 1.2 and later on a non-blocking socket, server side.
 *
 * A handshake happens inside the first reads and has no state of its own here: one that stalls is
 * a connection without input.
 */
#pragma once

#include "base/err.h"

struct tls_context;
struct tls;

/* Adds one to the list, at its front. */
int tls_context_add(struct tls_context **list, const char *cert, const char *key,
                    struct err *e) MUST_USE;
void tls_contexts_free(struct tls_context *list);

struct tls *tls_new(struct tls_context *x, int fd); /* `fd` is borrowed */
void tls_free(struct tls *t);
/* > 0, 0 at the end (of reading), -EAGAIN, or another -errno: it is over. */
int tls_read(struct tls *t, void *buf, size_t size);
int tls_write(struct tls *t, const void *bytes, size_t n);
bool tls_read_wants_write(const struct tls *t); /* the last one could not go on without */
bool tls_has_input(const struct tls *t);        /* decrypted: the socket does not show it */
void tls_say_end(struct tls *t);                /* close_notify, best effort */
