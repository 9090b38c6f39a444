/*
 * sign.h - a webhook shows who sent it, as Standard Webhooks has it: HMAC-SHA256 over
 * "ID.TIMESTAMP.BODY", base64, in `webhook-signature: v1,…`. Receivers find libraries for it.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/span.h"

#define SIGN_KEY_MAX 512
#define SIGN_KEY_MIN 16 /* shorter ones can be guessed */

/* What a file holds: "whsec_" and base64, or the bytes themselves; one newline at the end is not
 * part of it. Returns how many bytes of key there are. */
int sign_key(struct span text, uint8_t key[SIGN_KEY_MAX], struct err *e) MUST_USE;
/* "v1,…" */
void sign_text(struct span key, const char *id, int64_t unix_s, struct span body, struct str *out);
