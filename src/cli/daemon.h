/*
 * daemon.h - the driver that asks the daemon: a command with a sandbox of its own (POST /v1/run),
 * or any other request that becomes a live process (wire/stream.h).
 */
#pragma once

#include "cli/pump.h"
#include "cli/remote.h"

extern const struct driver daemon_driver;
/* pump_run() with a process that the request starts or attaches to; driver and session are filled
 * in. */
int daemon_pump(struct client *c, const struct client_ask *ask, struct pump *p,
                struct err *e) MUST_USE;
