/*
 * enforced.h - rule 3 for the API: what was named and has no mechanism here is refused, and every
 * answer says what enforces each field.
 */
#pragma once

#include "core/core.h"

/* *out is a JSON object, {"net":"netns", ...}; the caller's to free. */
int enforced_judge(const struct core *c, const struct spec *s, char **out, struct fail *f) MUST_USE;
