/*
 * proof.h - the launch proof: attempts that must fail, made in the finished walls.
 *
 * It runs in the command's own process, after the last wall and before its first
 * instruction, at every launch. Any surprise refuses the start.
 */
#pragma once

#include "base/err.h"
#include "engine/box.h"

/* `n_fds`: how many descriptors are open, from 0 on. */
int proof_run(const struct box *box, const struct command *c, int n_fds, struct err *e) MUST_USE;
