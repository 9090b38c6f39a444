/*
 * expire.h - what ends by itself: sandboxes past their time, old records, and on demand the daemon.
 */
#pragma once

#include "core/core.h"

void expire_start(struct core *c);
