/*
 * sealer.h - a value is sealed by a program beside this one (gate/sealing.h).
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/sealing.h"

/* base64 of the sealed value is added to `out`. */
int sealer_run(const uint8_t key[SEAL_KEY_BYTES], struct span aad, struct span value,
               struct str *out, struct err *e) MUST_USE;
