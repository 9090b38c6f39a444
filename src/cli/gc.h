/*
 * gc.h - `caisson gc [--dry-run] [--json]`: makes room in the store of a daemon that runs, and
 * removes what dead sandboxes left.
 */
#pragma once

#include "cli/driver.h"

int gc_main(int argc, char **argv, const struct driver *driver);
