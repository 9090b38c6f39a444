/*
 * lend.h - lends the host paths that a request names to the launcher (wire/lend.h), before the
 * request is sent. The launcher opens no others with our rights, whatever the daemon says.
 */
#pragma once

#include "cli/client.h"

/* Nothing happens where the daemon wants nothing lent: by TCP, and where it is not root's. */
int lend_for(struct client *c, const struct client_ask *ask, struct err *e) MUST_USE;
