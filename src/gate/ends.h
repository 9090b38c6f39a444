/*
 * ends.h - TLS that ends at the gate: contexts for clients inside and for servers upstream.
 */
#pragma once

#include "gate/ca.h"
#include "io/tls.h"

struct ends {
	struct ca *ca; /* NULL: nothing has needed it yet */
	SSL_CTX *inside, *outside;
};

/* Once. */
int ends_init(struct ends *x, const uint8_t seed[GATE_SEED_SIZE], const char *id,
              struct err *e) MUST_USE;
int ends_init_outside(struct ends *x, struct err *e) MUST_USE; /* only for servers */
void ends_done(struct ends *x);

/* A client inside believes that we are `name`. NULL: no certificate for that. */
struct tls *ends_accept(struct ends *x, int fd, const char *name);
/* A server that has to prove that it is `name`, by a certificate that this host trusts. */
struct tls *ends_connect(struct ends *x, int fd, const char *name);

/* Reads the certificates that this host trusts, unless they are known and the same. */
void ends_refresh(void);
/* More certificates to trust upstream, of an operator's: read now, for all that come later. */
int ends_trust(const char *path, struct err *e) MUST_USE;
