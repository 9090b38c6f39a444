/*
 * tarname.h - which names and links of a foreign archive we take. Pure.
 */
#pragma once

#include "base/base.h"
#include "base/limits.h"

/* Writes the name without `.` and double slashes. False for what is absolute, has `..`, is too
 * long or names nothing but the top; *is_top says the last. */
bool tarname_clean(const char *name, char out[PATH_TEXT_MAX], bool *is_top);

/* Whether a symbolic link at `path` (clean) with this text leads to a place inside the archive's
 * own tree: `..` only in front and not more often than `path` is deep. One behind a name could be
 * taken from another link's target and so lead out. */
bool tarname_link_stays(const char *path, const char *target);
