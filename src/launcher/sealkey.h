/*
 * sealkey.h - the key by which secrets are sealed to the gate (wire/seal.h): where it is kept.
 *
 * The launcher hands it over and looks at no byte of it. It is 64 digits of base 16, in
 *   STATE/gate.key   0600, the launcher's own, made when there is none; the daemon's id cannot read
 *                    or replace it
 *   env:NAME         a variable of the launcher, which nobody after it gets: sealkey_take()
 *   keyring:NAME     a key of type "user" in a keyring of the launcher
 */
#pragma once

#include "base/err.h"

/* Before anybody is started: a variable that is the source is taken out of the environment. */
int sealkey_take(const char *source, struct err *e) MUST_USE;
/* A descriptor to read it from, at its beginning. `source` NULL: the file. */
int sealkey_open(int state_fd, const char *source, struct err *e) MUST_USE;
