/*
 * id.h - names that nobody can guess, and that are safe in a URL, a path and a log line.
 */
#pragma once

#include "base/base.h"

#define ID_SIZE 32

/* "sb_" and 26 characters of base 32: 128 bits. */
void id_make(char out[ID_SIZE], const char *prefix);
/* A prefix of ours and what id_make() makes; anything else never reaches a table. */
bool id_is(const char *text, size_t len, const char *prefix);
/* A caller's own name for something: 1..128 of [A-Za-z0-9._:@-], not beginning with a dot or dash,
 * and not looking like an id. */
bool key_is(const char *text, size_t len);
