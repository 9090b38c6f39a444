/*
 * fail.h - how an error value of ours says a code of the API.
 *
 * The code travels as the errno that means the same (err.h, `sys`), so that what the kernel says
 * and what we say ourselves take one way up and are told apart by nobody.
 */
#pragma once

#include "base/err.h"
#include "wire/tree.h"

int fail(struct err *e, enum tree_code code, const char *fmt, ...) PRINTF(3, 4);
#define fail(...) err_minus_one(fail(__VA_ARGS__))

enum tree_code fail_code(const struct err *e);
