/*
 * webpeek.h - the body of a request that a person is asked about: hashed where it lies, in the
 * client's input behind the head, so that the bytes that are released are the bytes that were
 * shown. Pure.
 */
#pragma once

#include "wire/gate.h"
#include "wire/hash.h"
#include "wire/http.h"

#define WEBPEEK_MAX (1u << 20) /* of head and body, as they came: what is looked at */

struct webpeek {
	bool is_on;   /* the body is being looked at */
	bool is_over; /* `content` says what was seen */
	size_t at;    /* of the input: behind what was looked at */
	struct http_body body;
	struct str trailers;
	struct hash hash;
	struct gate_content content;
};

/* `n`: bytes of the head. */
void webpeek_begin(struct webpeek *p, const struct http_head *h, size_t n);
void webpeek_done(struct webpeek *p); /* fine when it never began */
/* `in` begins with the head. HTTP_BODY_MORE: more input is needed; HTTP_BODY_DONE: the whole body
 * was seen, or as much as fits; or an http_error. */
int webpeek_look(struct webpeek *p, struct span in);

/* Of a target as it was written; empty: it has none. */
struct span webpeek_query(struct span target);
/* The hash of the query, "" when there is none. */
void webpeek_hash_query(struct span target, char out[GATE_HASH_SIZE]);
/* The query as a question shows it: printable, cut with a hash of all of it when it is long. */
void webpeek_show_query(struct span target, char out[GATE_QUERY_SIZE]);
