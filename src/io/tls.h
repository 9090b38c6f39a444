/*
 * tls.h - TLS 1.2 and later on a non-blocking socket.
 *
 * A handshake happens inside the first reads and writes and has no state of its own here: one that
 * stalls is a connection without input.
 */
#pragma once

#include <openssl/types.h>

#include "base/base.h"

struct tls;

void tls_defaults(SSL_CTX *ctx); /* what holds for every context of ours */
/* A server that speaks HTTP/1.1. A client that offers other protocols and not this one is refused,
 * or, not so strict, goes on as if it had offered none. */
void tls_speak_http1(SSL_CTX *ctx, bool is_strict);

/* `fd` is borrowed. Whether it accepts or connects is still to be said: tls_ssl(). */
struct tls *tls_open(SSL_CTX *ctx, int fd);
SSL *tls_ssl(const struct tls *t);
/* What a peer does not take any more is dropped, so that what it said before can still be read. */
void tls_be_stubborn(struct tls *t);
void tls_free(struct tls *t);
/* 1 when it is done; else as the others. A client writes nothing before. */
int tls_shake(struct tls *t);
/* > 0, 0 at the end (of reading), -EAGAIN, or another -errno: it is over. */
int tls_read(struct tls *t, void *buf, size_t size);
int tls_write(struct tls *t, const void *bytes, size_t n);
bool tls_read_wants_write(const struct tls *t); /* the last one could not go on without */
bool tls_has_input(const struct tls *t);        /* decrypted: the socket does not show it */
void tls_say_end(struct tls *t);                /* close_notify, best effort */
