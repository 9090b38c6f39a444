/*
 * checkpoint.h - the top as it is now, and what the vault remembers of it.
 */
#pragma once

#include "vault/scan.h"

/* `hint`: a checkpoint that may know the inodes. */
int checkpoint_look(struct vault *v, uint64_t hint, struct scan *s, struct manifest *out,
                    struct err *e) MUST_USE;
/* The next look begins from this; takes it. */
void checkpoint_remember(struct vault *v, struct manifest *now);
