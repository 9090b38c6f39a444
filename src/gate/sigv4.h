/*
 * sigv4.h - AWS Signature Version 4: a request that was signed with a placeholder, or with nothing,
 * is signed with the key. Pure.
 *
 * Signed are Host, Content-Type, Content-MD5 and all X-Amz-*. Of the payload what counts is
 * X-Amz-Content-Sha256:
 *
 *   a hash                               the client's word, which the server checks
 *   UNSIGNED-PAYLOAD,
 *   STREAMING-UNSIGNED-PAYLOAD-TRAILER   the same
 *   STREAMING-AWS4-HMAC-SHA256-PAYLOAD   every chunk is signed anew, once it is whole
 *   not said, S3                         UNSIGNED-PAYLOAD is said: it goes by TLS
 *   not said, elsewhere                  the body is held until it is whole
 */
#pragma once

#include "wire/hash.h"
#include "wire/http.h"

#define SIGV4_BODY_MAX (8u << 20)  /* that is held; APIs that do not say a hash take less */
#define SIGV4_CHUNK_MAX (2u << 20) /* clients make chunks of 64 KiB to 1 MiB */
#define SIGV4_ALL_MAX (64u << 20)  /* held by all requests of a sandbox */
#define SIGV4_WORD_MAX 40          /* of a region, of a service */

/* "ID:SECRET" or "ID:SECRET:TOKEN", as it is stored. */
struct sigv4_key {
	struct span id, secret, token;
};
bool sigv4_key_read(struct span value, struct sigv4_key *out);
/* "", "REGION" or "REGION/SERVICE" */
bool sigv4_bound_is(const char *text);
/* Is the field's value a signature with that id? */
bool sigv4_is_by(struct span value, const char *id);

struct sigv4_ask {
	const struct http_head *head;
	const char *name;  /* of the host */
	const char *bound; /* as sigv4_bound_is() has it; what it does not say, the client's own
	                    * signature says, or the name: SERVICE.REGION.example.org */
	struct span value; /* the key; stays where it is until sigv4_done() */
	int64_t now_ms;    /* since 1970 */
};

enum sigv4_payload { SIGV4_SAID, SIGV4_HELD, SIGV4_CHUNKS };

struct sigv4 {
	bool is_on, is_last; /* the last chunk has come */
	enum sigv4_payload payload;
	struct span value;
	char region[SIGV4_WORD_MAX + 1], service[SIGV4_WORD_MAX + 1];
	char stamp[sizeof "20060102T150405Z"];
	char said[TREE_HASH_TEXT];      /* X-Amz-Content-Sha256; "": nothing */
	char signature[TREE_HASH_TEXT]; /* of the request, then of the last chunk */
	struct str canonical;           /* without the hash of the payload */
	struct str names;               /* of the fields that are signed */
	struct str head;                /* SIGV4_HELD: waits for its signature */
	size_t signature_at;            /* in there */
	struct str body;                /* what is held */
	size_t *all;                    /* how much all hold */
};

/* False: it cannot be signed. */
bool sigv4_begin(struct sigv4 *s, const struct sigv4_ask *q, size_t *all);
void sigv4_done(struct sigv4 *s); /* fine when it never began */
bool sigv4_replaces(struct span field);
void sigv4_print(struct sigv4 *s, struct http_print *p);

enum sigv4_error { SIGV4_BAD = -1, SIGV4_LARGE = -2 };
/* A piece of the body: what can go on is added to `out`. 0 or an error. */
int sigv4_feed(struct sigv4 *s, struct span in, struct str *out);
/* There is no more. SIGV4_HELD: the head, signed, is added to `head`, the body to `out`. */
int sigv4_end(struct sigv4 *s, struct str *head, struct str *out);
