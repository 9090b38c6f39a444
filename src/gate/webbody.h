/*
 * webbody.h - bodies on their way from one side of a connection to the other, as they come.
 */
#pragma once

#include "gate/gitreq.h"
#include "gate/leg.h"
#include "gate/mask.h"
#include "gate/sigv4.h"
#include "wire/http.h"

void webbody_begin(struct http_body *b, const struct http_head *h, struct str *trailers);
struct webhead_to;
struct webbody_way {
	bool is_raw;          /* chunks are not printed anew */
	struct mask *mask;    /* NULL: nothing is looked for */
	struct gitpush *push; /* NULL: it is none */
	struct sigv4 *sign;   /* NULL: nothing is signed */
	struct conn *canary;  /* whose bytes are looked at, or NULL */
	struct canary_scan *scan;
	const struct webhead_to *to; /* of a request: to whom */
};

/* A push to where none may go. */
#define WEBBODY_PUSH (HTTP_E_LAST - 1)
/* More than can be held to be signed. */
#define WEBBODY_LARGE (HTTP_E_LAST - 2)
/* A canary is in it. */
#define WEBBODY_CANARY (HTTP_E_LAST - 3)

/* Input becomes output until one of them is used up. MORE, DONE, an http_error or one of these. */
int webbody_move(struct http_body *b, struct leg *from, struct leg *to, struct webbody_way way);
/* A push that was held: its head and what came of it. */
void webbody_go_on(const struct http_body *b, struct gitpush *push, struct str *out);
/* What is behind the last byte. 0, -1 or one of these. */
int webbody_end(const struct http_body *b, struct str *trailers, struct webbody_way way,
                struct leg *to);
/* Bytes are bytes; with their end. True when something has moved. */
bool webbody_pass(struct leg *from, struct leg *to);
/* The same; a secret is masked, also in several pieces. What may be the beginning of one waits in
 * the mask until the caller lets it go (mask_let_go), or more comes. */
bool webbody_pass_masked(struct leg *from, struct leg *to, struct mask *m);
