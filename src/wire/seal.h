/*
 * seal.h - bytes that only the holder of one key can read: HPKE of RFC 9180, base mode,
 * DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305, one message for each encapsulation.
 *
 * Whoever has the public key can seal; nothing says who did. What stands beside the message in
 * clear (`aad`) cannot be exchanged for something else.
 *
 *   sealed   the ephemeral public key, 32 bytes; the ciphertext; its tag, 16 bytes
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/span.h"

#define SEAL_KEY_BYTES 32
#define SEAL_TAG_BYTES 16
#define SEAL_OVERHEAD (SEAL_KEY_BYTES + SEAL_TAG_BYTES)

/* What both sides know. */
struct seal_frame {
	struct span info; /* what the seal is for; at most SEAL_INFO_MAX */
	struct span aad;
};
#define SEAL_INFO_MAX 64

int seal_public(const uint8_t key[SEAL_KEY_BYTES], uint8_t out[SEAL_KEY_BYTES],
                struct err *e) MUST_USE;
int seal_close(const uint8_t to[SEAL_KEY_BYTES], const struct seal_frame *frame, struct span plain,
               struct str *out, struct err *e) MUST_USE;
/* `plain` has room for sealed.len - SEAL_OVERHEAD bytes; returns how many they are. */
int seal_open(const uint8_t key[SEAL_KEY_BYTES], const struct seal_frame *frame, struct span sealed,
              uint8_t *plain, struct err *e) MUST_USE;
