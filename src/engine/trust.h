/*
 * trust.h - whom TLS clients inside trust besides the image's own list: the sandbox's own CA, for
 * hosts whose TLS ends at the gate.
 *
 * TRUST_FOLDER gets a copy of itself as the image has it, with that CA in its bundle, by its hash,
 * and in a store for Java; bundles that an image has elsewhere are covered by the same one. All of
 * it lies in one small read-only file system of its own that nobody inside can change, replace or
 * take away.
 *
 * Pid 1 makes that file system, which takes a right that is given up with the last wall, and nobody
 * sees it until there is a CA. Most sandboxes never have one: that costs them a few microseconds.
 */
#pragma once

#include "engine/spawn.h"

#define TRUST_FOLDER "/etc/ssl/certs"
#define TRUST_BUNDLE TRUST_FOLDER "/ca-certificates.crt"
#define TRUST_CERT TRUST_FOLDER "/caisson.pem" /* that of the CA, and nothing else */

struct trust {
	const char *pem;
	uint32_t hash; /* of its subject, by which OpenSSL finds files */
	/* Adds a trust store for Java with the certificates of a PEM file. */
	bool (*make_store)(const char *pem, size_t n, struct str *out);
};

/* In the monitor, once; the walls stand. Takes a few milliseconds. On failure nothing inside has
 * changed, or clients there trust the CA that they will not meet. */
int trust_place(const struct box *box, struct spawn_init *init, const struct trust *t,
                struct err *e) MUST_USE;
