/*
 * base64.h - bytes as text (RFC 4648, with padding).
 */
#pragma once

#include "base/str.h"

void base64_encode(const void *bytes, size_t n, struct str *out);

/* False unless `text` is exactly what base64_encode makes: no other letters, padding in place, no
 * stray bits. Adds all or nothing; what does not fit sets out->overflow. */
bool base64_decode(const char *text, size_t n, struct str *out) MUST_USE;
