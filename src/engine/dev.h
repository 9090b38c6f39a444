/*
 * dev.h - the device nodes of a sandbox.
 */
#pragma once

#include "base/err.h"

/* In the launcher, root mode: a detached tmpfs with the nodes that /dev has inside, so that no two
 * sandboxes meet at the inode of one. *out is -1 without CAP_MKNOD (a container's root): then the
 * nodes are the host's. */
int dev_make_nodes(int *out, struct err *e) MUST_USE;
