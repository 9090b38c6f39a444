/*
 * hook.h - what waits for a person is told to somebody by HTTP, when the config says to whom: by a
 * program of its own (wire/hook.h), since we open no connections.
 *
 * What it has not reported the end of is kept here, and said again to the next one when this one
 * dies. When too many wait, the oldest is dropped, and the journal says so: a webhook is a
 * doorbell, and the queue is what counts.
 */
#pragma once

#include "core/core.h"
#include "store/approvals.h"

#define HOOK_WAITING_MAX 256

void hook_open(struct core *c); /* if the config has a webhook */
void hook_close(struct core *c);
void hook_tell(struct core *c, const struct approval_row *row); /* what it is now */
