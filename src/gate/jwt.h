/*
 * jwt.h - what an app shows of itself: a JSON Web Token (RFC 7519), signed with its key by RS256.
 *
 * It is good for nine minutes. The clock of whoever reads it may be a minute behind ours.
 */
#pragma once

#include "base/err.h"
#include "wire/span.h"

#define JWT_BEFORE_S 60
#define JWT_AFTER_S 540

/* `key` is PEM, of RSA, 2048 to 8192 bits. Writes to `out`, of `size` bytes, without a NUL; returns
 * how many. Nothing of the key stays behind. */
struct jwt_claims {
	const char *issuer; /* letters, digits, dots, dashes */
	int64_t now_s;
};
int jwt_sign(struct span key, const struct jwt_claims *c, uint8_t *out, size_t size,
             struct err *e) MUST_USE;
