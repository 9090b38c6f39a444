/*
 * helper.h - what a program of ours prints, for those of our verbs that let it do the work.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* `argv` begins with its name and ends with NULL. Its exit status: 0, or 1, which stands for a no
 * that it has printed; everything else is -1. */
int helper_ask(const char *const *argv, struct str *out, struct err *e) MUST_USE;
