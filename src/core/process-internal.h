/*
 * process-internal.h - what the files of processes share.
 */
#pragma once

#include "core/process.h"

struct px *px_new(struct core *c);
void px_lose(struct px *p, enum process_state state, const char *reason); /* it is not to be had */
