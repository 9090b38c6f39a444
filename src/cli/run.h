/*
 * run.h - `caisson run`: one command in a sandbox of its own.
 */
#pragma once

#include "cli/driver.h"

/* argv[0] is "run". Returns the exit status (wire/channel.h); our own failures are 125, with a
 * sentence on stderr. */
int run_main(int argc, char **argv, const struct driver *driver);
