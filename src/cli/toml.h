/*
 * toml.h - TOML as a value tree, to read the configuration of other programs: cargo, Codex.
 *
 * Tables, arrays, inline tables, dotted keys, all four kinds of strings. A number is a number, a
 * date is its text. What is defined twice is an error, as in the standard.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"

/* *out is an object, to be released. The error names the line. */
int toml_load(const char *text, size_t len, json_t **out, struct err *e) MUST_USE;
