/*
 * birth.h - what the log of a process says of its birth, where its row may come late.
 *
 * A run that dies with its daemon is over when its end is in its log
 * (docs/decisions/0022-a-short-run.md). Until the store has heard of it, the log alone knows who it
 * was.
 */
#pragma once

#include "core/process.h"

int birth_write(const struct px *p); /* 0 or -errno */
/* After a daemon that did not end well: rows for the logs that have none. */
void birth_recover(struct core *c);
