/*
 * mask.h - an answer on its way to who must not see the secret that was sent for it. Bytes become
 * stars, one for one, so that nothing else about the answer changes.
 *
 * What may be the beginning of a secret is held until more has come. Where nobody can wait for that
 * (behind 101) it is let go, and still known: the rest of a secret is masked when it comes.
 */
#pragma once

#include "gate/purse.h"

struct mask {
	struct purse *purse; /* NULL: nothing to look for */
	struct str held;     /* may be the beginning of one */
	size_t passed;       /* of these have gone on */
	size_t hits;
};

void mask_begin(struct mask *m, struct purse *p); /* of the next answer; takes a reference */
void mask_done(struct mask *m);
/* What can go on is added to `out`. */
void mask_feed(struct mask *m, struct span in, struct str *out);
void mask_flush(struct mask *m, struct str *out);     /* there is no more */
void mask_text(struct mask *m, char *text, size_t n); /* whole: a head */
size_t mask_waiting(const struct mask *m);            /* bytes that have not gone on */
void mask_let_go(struct mask *m, struct str *out);    /* they do, whatever follows */
