/*
 * base64.h - bytes as text (RFC 4648, with padding).
 */
#pragma once

#include "base/str.h"

void base64_encode(const void *bytes, size_t n, struct str *out);
