/*
 * safe.h - the key that secrets are sealed to. The master of the gate has it and reads nothing that
 * comes from a sandbox; a child, which does, has none: it shows a sealed value and what it is bound
 * to, and gets that one value. Of an app it does not get the key, but what the app shows of itself
 * (jwt.h): with that somebody could speak for it for some minutes, not for ever.
 *
 *   child                     master
 *   ASK, a socket ───────▷    opens it
 *                      ◁───── ANSWER, by that socket
 *
 * All children share the way to the master. One who asks for what it was not given has nothing to
 * show: what is sealed is known to the daemon, and passed to the sandbox that may use it.
 */
#pragma once

#include "base/err.h"
#include "spec/bind.h"
#include "wire/base64.h"
#include "wire/seal.h"

#define SAFE_AAD_MAX (BIND_TEXT_MAX + 1024)
#define SAFE_SEALED_MAX (SECRET_VALUE_MAX + SEAL_OVERHEAD)

enum safe_op { SAFE_PUBLIC, SAFE_OPEN };

struct safe_ask {
	uint32_t op;
	uint32_t aad_len, sealed_len, zero;
	char bytes[SAFE_AAD_MAX + SAFE_SEALED_MAX]; /* aad, then sealed */
};

struct safe_answer {
	int32_t n; /* of the bytes; < 0: it does not open */
	uint32_t zero;
	uint8_t bytes[SECRET_VALUE_MAX];
};

/* ---- the master ---- */

/* Reads the key from `fd`; -1: there is none, and nothing opens. */
int safe_init(int fd, struct err *e) MUST_USE;
/* One question that waits at `fd`. */
void safe_serve(int fd);

/* ---- a child ---- */

/* Both wait for the master, which waits for nobody; at most SAFE_WAIT_MS. */
#define SAFE_WAIT_MS 3000
int safe_public(int fd, uint8_t out[SEAL_KEY_BYTES], struct err *e) MUST_USE;
/* The value goes to `out`, which is locked and has room for SECRET_VALUE_MAX; how long it is. */
int safe_unseal(int fd, struct span aad, struct span sealed, uint8_t *out, struct err *e) MUST_USE;
