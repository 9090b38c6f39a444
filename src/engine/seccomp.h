/*
 * seccomp.h - the compiled filters (tools/gen-filters.c) and their loading.
 */
#pragma once

#include "base/err.h"

/* Loads the command's filter; returns the descriptor on which every execve is announced. In a
 * test build without notification -1 with e->kind left at ERR_NONE. */
int seccomp_payload(struct err *e) MUST_USE;
int seccomp_init(struct err *e) MUST_USE; /* the filter of pid 1 */
