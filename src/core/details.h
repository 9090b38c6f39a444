/*
 * details.h - what an end record says beyond numbers, as JSON: children, violations, programs.
 */
#pragma once

#include <jansson.h>

#include "wire/channel.h"
#include "wire/keep.h"

char *details_of(
    const struct channel_end *end); /* {"children":[],"violations":[],"execs":{}}; to be freed */
/* Names, arguments and paths may be any bytes: what is not text is replaced. */
json_t *details_text(const char *text);
/* stdout, stderr and encoding of what was kept of both; how many bytes are not in there. Text when
 * both are UTF-8, else both in base64: one `encoding` speaks for both. */
uint64_t details_streams(json_t *o, const struct keep *kept);
