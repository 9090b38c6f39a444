/*
 * secret_canary.h - `caisson secret canary NAME`: makes a value that looks like a credential, and
 * says what it is as a binding (spec/bind.h).
 */
#pragma once

#include <jansson.h>

#include "base/err.h"

struct canary_opts {
	const char *like; /* a name, or a text of that shape; NULL: after the name of the canary */
	const char *env, *at;
};
/* Adds canary, env and file to `bind`. */
int secret_canary(const char *name, const struct canary_opts *o, json_t *bind,
                  struct err *e) MUST_USE;
