/*
 * harden.h - what the vault gives up.
 */
#pragma once

#include "vault/vault-internal.h"

/* At its start: nobody looks into it, and it may have many folders open. */
int harden_start(struct err *e) MUST_USE;
/* Once the workspace is open, before anybody else's order: capabilities but those of files and
 * mounts, and the system calls of vault/policy.h. */
int harden_open(const struct vault *v, struct err *e) MUST_USE;
