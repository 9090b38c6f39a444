/*
 * caps.h - capability sets of the calling process. Value or -errno.
 */
#pragma once

#include <linux/capability.h>

#include "base/base.h"

#define CAP_BIT(cap) (1ull << (cap))

int os_caps_get(uint64_t *effective, uint64_t *permitted, uint64_t *inheritable);
int os_caps_set(uint64_t effective, uint64_t permitted, uint64_t inheritable);
/* Drops from the bounding set everything that is not in `keep`. Needs CAP_SETPCAP. */
int os_caps_bound(uint64_t keep);
int os_caps_ambient(uint64_t raise); /* the ambient set becomes exactly this */
bool os_caps_bounded(unsigned int cap);
