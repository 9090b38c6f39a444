/*
 * webhead.h - heads for the next hop: what the strict parser took apart, printed anew. Pure.
 *
 * Framing, Host, Connection and Upgrade are said here and copied from nobody.
 */
#pragma once

#include "gate/inject.h"
#include "spec/mock.h"
#include "wire/cache.h"
#include "wire/gate.h"
#include "wire/http.h"

#define WEB_HEAD_MAX (64u << 10) /* of a head that was printed anew */

/* To whom, and what the rules say of its fields (`headers`). */
struct webhead_to {
	const struct rules *rules;
	const char *name; /* NULL: an address, of which they say nothing */
	uint16_t port;
};
/* `j`: what is said of who asks, in place of what the client said; NULL: as it came. */
int webhead_request(const struct http_head *h, const struct injection *j,
                    const struct webhead_to *to, struct str *out, struct err *e) MUST_USE;

struct webhead_way {
	bool is_last;             /* the connection ends behind this answer */
	bool is_cached;           /* the package cache says it */
	enum http_body_kind body; /* as the client gets it */
};
int webhead_answer(const struct http_head *h, const struct webhead_way *way, struct str *out,
                   struct err *e) MUST_USE;

/* The end of a chunked body. `trailers` are as http_body collected them; what must not stand there
 * is left out. `to`: of a request; NULL: of an answer. */
int webhead_last_chunk(const struct str *trailers, const struct webhead_to *to, struct str *out,
                       struct err *e) MUST_USE;

/* What a mock says; its body follows. */
int webhead_mock(const struct mock_answer *a, const struct webhead_way *way, struct str *out,
                 struct err *e) MUST_USE;

int webhead_status(enum gate_reason why); /* of a refusal */
/* An answer of our own, whole; the connection ends behind it. */
void webhead_refusal(int status, const char *text, bool has_body, struct str *out);
