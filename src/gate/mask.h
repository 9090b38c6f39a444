/*
 * mask.h - an answer on its way to who must not see the secret that was sent for it. Bytes become
 * stars, one for one, so that nothing else about the answer changes.
 */
#pragma once

#include "gate/purse.h"

#define MASK_BYTES (1u << 20) /* of a body; what comes behind passes */

struct mask {
	struct purse *purse; /* NULL: nothing to look for */
	uint64_t seen;
	struct str held; /* may be the beginning of one */
	size_t hits;
};

void mask_begin(struct mask *m, struct purse *p); /* of the next answer; takes a reference */
void mask_done(struct mask *m);
/* What can go on is added to `out`. */
void mask_feed(struct mask *m, struct span in, struct str *out);
void mask_flush(struct mask *m, struct str *out);     /* there is no more */
void mask_text(struct mask *m, char *text, size_t n); /* whole: a head */
