/*
 * harden.h - what the package cache gives up before it reads the first byte.
 */
#pragma once

#include "base/err.h"

/* It reads a few files of the host, writes its own folder, opens connections, starts nothing. */
int harden_cache(int dir_fd, struct err *e) MUST_USE;
