/*
 * fold.h - a file name as the most generous file system finds it. Pure.
 *
 * Two names that some file system takes for the same fold to the same bytes, as far as one of the
 * two is ASCII: without regard to case (full folding), without default-ignorable characters (ext4
 * and f2fs with casefold, HFS+, APFS), by compatibility (ZFS), without the dots, spaces and stream
 * names that NTFS cuts off. Bytes that are no UTF-8 stay as they are.
 */
#pragma once

#include "wire/span.h"

#define FOLD_NAME_MAX 255 /* bytes of a name; no file system of Linux has longer ones */

struct fold_name {
	char text[2 * FOLD_NAME_MAX + 1]; /* a character of three bytes becomes four at most */
	size_t n;
};

/* `name` has at most FOLD_NAME_MAX bytes. */
void fold_name(struct span name, struct fold_name *out);
