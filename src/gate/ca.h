/*
 * ca.h - the authority that clients inside a sandbox trust for hosts whose TLS ends at the gate.
 *
 * Its key is made from the seed that the monitor keeps, so that a later child has the same one; it
 * is never written anywhere, and nobody outside of the sandbox trusts it. Certificates for hosts
 * are made when they are needed and kept for a day; one key of the process serves all of them.
 */
#pragma once

#include <openssl/types.h>

#include "base/err.h"
#include "wire/gate.h"

struct ca *ca_new(const uint8_t seed[GATE_SEED_SIZE], const char *id, struct err *e) MUST_USE;
void ca_free(struct ca *ca); /* NULL is fine */
const char *ca_pem(const struct ca *ca);
uint32_t ca_hash(const struct ca *ca); /* of its subject, by which OpenSSL finds files */
/* The certificate and the key that this server shows. False: out of memory, or no such name. */
bool ca_show(struct ca *ca, const char *name, SSL *ssl);
