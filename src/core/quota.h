/*
 * quota.h - what one tenant has, and may have. Counted from the sandboxes in memory, which are all
 * that are not gone: there is one thread, so a hundred creates at once cannot pass together.
 */
#pragma once

#include "core/sandbox.h"

struct quota quota_needs(const struct spec *s); /* of a resolved one */
void quota_used(struct core *c, const char *tenant, struct quota *out);
/* Is there room for so much more? Else `quota`, with what, how much and the bound. */
int quota_admit(struct core *c, const char *tenant, const struct quota *more,
                struct fail *f) MUST_USE;
/* The same for one that is there and will live again. */
int quota_readmit(struct sbx *s, struct fail *f) MUST_USE;
