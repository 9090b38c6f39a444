/*
 * tripped.h - programs that a sandbox's monitor holds (spec/trip.h, monitor/trips.c): each is asked
 * for (approval.h), and the monitor hears what was decided.
 *
 * The command itself is `awaiting_approval` meanwhile; denied it is `denied`, was never executed,
 * and its reason says by which approval. Of what it starts the execve fails with EPERM, and the
 * command has a violation of kind `command`.
 *
 * A monitor says it again to the next daemon, which asks again: the question of the one before is
 * the same.
 */
#pragma once

#include "core/process.h"

#define COMMAND_HOLD_MS 300000 /* without an answer it is a no */

/* ---- for link.c ---- */
void tripped_on(struct sbx *s, uint32_t num, const void *bytes, size_t n);
void tripped_over(struct sbx *s, const void *bytes, size_t n);
/* ---- for process.c, sandbox.c ---- */
void tripped_recorded(struct px *p); /* it may have been held before it was on record */
void tripped_close(struct sbx *s);   /* its monitor hears no more */
