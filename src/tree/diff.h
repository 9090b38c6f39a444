/*
 * diff.h - what changed between two texts, as a unified diff with three lines of context. Pure.
 */
#pragma once

#include "base/str.h"
#include "wire/span.h"

/* Adds the hunks. False, with nothing added, when the changed part has too many lines to compare;
 * out->overflow when it is longer than wanted. Equal texts add nothing. */
bool diff_add(struct span before, struct span after, struct str *out);
