/*
 * reserve.h - inodes of the store's file system that sandboxes cannot take: empty files, which are
 * removed when the operator needs them (core/reserve.h).
 */
#pragma once

#include "vault/vault-internal.h"

#define RESERVE_FOLDER "r" /* in that of the blobs */

/* Less is free than should be (wire/room.h). */
bool reserve_lacks_inodes(const struct vault *v);
