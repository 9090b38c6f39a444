/*
 * result.h - what `caisson run --json` prints, on one line.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

/* The fields of the API's process object that make a result, and what enforced the spec: as proved
 * when it ran, else as said at the start. */
void result_print(const json_t *hello, const json_t *process, struct str *out);
/* {"error":{...}} for what never ran. */
void result_print_error(const struct err *e, struct str *out);
