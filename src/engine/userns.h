/*
 * userns.h - who one is inside, and who that is outside.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "engine/box.h"

/* Writes the maps of `pid`, a child that has just been cloned with CLONE_NEWUSER. */
int userns_map(const struct box *box, pid_t pid, struct err *e) MUST_USE;

struct userns_range {
	uint32_t inside, outside, count;
};

/* A descriptor of a user namespace with this one mapping, for mounts whose ids are mapped.
 * Needs root. */
int userns_make(struct userns_range uids, struct userns_range gids, struct err *e) MUST_USE;

/* A detached clone of the mount at `fd` whose ids are mapped by a namespace of userns_make(). Where
 * the file system cannot map them e->sys is EINVAL. Needs root. */
int userns_map_exactly(int fd, int ns_fd, struct err *e) MUST_USE;
/* The same with a namespace of its own; where the file system cannot map, a plain clone. */
int userns_map_tree(int fd, struct userns_range uids, struct userns_range gids,
                    struct err *e) MUST_USE;
