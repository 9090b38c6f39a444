/*
 * jsondiff.h - how two JSON values differ, one line for each entry, for a person to read.
 *
 *   + allow: "**"          an entry of a list, or a value, that is new
 *   - mode: "list"         one that is gone
 *   ~ http: [...]          the same entries in another order: all of them
 *
 * Lists are compared as sets of entries with repetition. Values are printed as JSON in ASCII with
 * sorted keys, so that nothing in a line is invisible or ends it.
 */
#pragma once

#include <jansson.h>

/* An array of lines; NULL counts as an absent value. */
json_t *json_difference(const json_t *old, const json_t *now);
