/*
 * scan.h - what lies in a top now.
 *
 * Only what looks different from the manifest before is read: inode, size, mode, times. Two things
 * could change a file without a trace:
 *   - A store through a shared mapping into a page that is dirty already sets no time. So a file
 *     that somebody may write (a lease is refused: open for writing, or mapped so) is read again
 *     the next time; a large one is written out instead, which makes the next store set the time.
 *   - A write in the same tick of the kernel's clock. So a file that changed within the last ticks
 *     is read again the next time; for a large one we wait until the tick is over. Not where the
 *     file system gives a change that follows a look a time of its own (ext4, XFS, btrfs since
 *     Linux 6.13), which is tried out.
 * Everybody who could write is stopped by the asker meanwhile. A file worker may be stopped in the
 * middle of a write: what it has under a name of its own (wire/tree.h) is not looked at.
 */
#pragma once

#include "vault/manifest.h"
#include "vault/vault-internal.h"

struct scan {
	struct vault *v;
	const struct manifest *before; /* of the same top, or NULL: everything is read */
	bool is_keeping;               /* contents go to the blobs */
	uint64_t kept;                 /* bytes that were not there before */
};

/* `files_fd`: the folder d of the top. `out` is empty. */
int scan_top(struct scan *s, int files_fd, struct manifest *out, struct err *e) MUST_USE;
