/*
 * forward.h - what of a request reaches the application behind a forwarded port, and what of its
 * answer reaches the client. Pure: heads in, heads out.
 *
 * A browser has one jar of cookies for 127.0.0.1, whatever the port. So each forward has a tag, and
 * cookies of its application are called cpTAG_NAME outside and NAME inside; every other cookie
 * stays outside. The forward's own token is in cpTAG. Heads are printed anew from what the strict
 * parser took apart, never copied: framing, Connection and Host are said here and by nobody else.
 * Nothing of ours goes in (carry.h), and nothing that a proxy says about the client.
 */
#pragma once

#include "base/arena.h"
#include "wire/carry.h"
#include "wire/http.h"

#define FORWARD_TAG 8                        /* letters of a tag */
#define FORWARD_TOKEN "X-Caisson-Port-Token" /* the field with the token */
#define FORWARD_PROTOCOL "caisson-port"      /* Upgrade: bytes to and from a port, for our CLI */
#define FORWARD_HEAD_MAX (64u << 10)         /* of a head that was printed anew */

/* The next cookie of a Cookie field: false at the end. What is no NAME=VALUE is stepped over. */
bool cookie_next(struct span *rest, struct span *name, struct span *value);
/* Is this the cookie with the forward's own token? */
bool cookie_is_token(struct span name, const char *tag);
/* Cookies of the application as it knows them, behind what is in `out`. */
void cookie_in(struct span field, const char *tag, struct str *out);
/* A Set-Cookie of the application as the browser may have it: another name, no Domain (it would
 * be for other hosts), HttpOnly (pages of other forwards share the jar). False: it is none. */
bool cookie_out(struct span field, const char *tag, struct str *out);

struct forward_way {
	const char *tag;    /* FORWARD_TAG letters; NULL: a host of its own, cookies as they are */
	struct carry carry; /* tokens of the daemon: no field, cookie or parameter with one
	                     * goes on */
	const char *host;   /* NULL: as the client says it */
	const char *proto;  /* NULL: http */
	const char *const *drops; /* fields that are for us, ends with NULL; NULL: none */
};

/* The request as the application gets it. */
int forward_request(const struct http_head *h, const struct forward_way *way, struct str *out,
                    struct err *e) MUST_USE;

/* Name, value, ..., NULL: the fields of the answer that the client gets. */
#define FORWARD_FIELDS (2 * HTTP_FIELDS_MAX + 1)
void forward_answer(const struct http_head *h, const char *tag, struct arena *a,
                    const char *out[FORWARD_FIELDS]);

/* Is the Host one of the names of a loopback listener with this port? */
bool forward_host_is(const struct http_head *h, uint16_t port);
/* May a request that is allowed by a cookie be taken? A page of another origin must not be its
 * author: ports of one host are one site for a browser, so that SameSite does not help. */
bool forward_is_own_page(const struct http_head *h);
