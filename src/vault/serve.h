/*
 * serve.h - the program: one launcher, one client, one order at a time.
 */
#pragma once

#include "base/err.h"

/* With the descriptors of wire/vault.h; until it is told to end, or nobody needs it any more. */
int vault_run(struct err *e) MUST_USE;
