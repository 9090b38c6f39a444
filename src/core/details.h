/*
 * details.h - what an end record says beyond numbers, as JSON: children, violations, programs.
 */
#pragma once

#include <jansson.h>

#include "wire/channel.h"

char *details_of(
    const struct channel_end *end); /* {"children":[],"violations":[],"execs":{}}; to be freed */
/* Names, arguments and paths may be any bytes: what is not text is replaced. */
json_t *details_text(const char *text);
