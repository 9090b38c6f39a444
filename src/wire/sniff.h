/*
 * sniff.h - which protocol the first bytes of a client are.
 *
 * In doubt TLS or HTTP: these two name a host, and their strict parsers then say no to what is not
 * quite theirs (an SSLv2 hello, a record that is no handshake, a blank line or a lower-case method
 * before the request, HTTP/2 without TLS). As "other" it would pass without its name being looked
 * at.
 */
#pragma once

#include "base/base.h"

#define SNIFF_MAX 128 /* with so many bytes the answer is never SNIFF_MORE */

enum sniff { SNIFF_MORE, SNIFF_TLS, SNIFF_HTTP, SNIFF_SSH, SNIFF_OTHER };

enum sniff sniff(const uint8_t *p, size_t n);
