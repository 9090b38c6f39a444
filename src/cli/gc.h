/*
 * gc.h - `caisson gc [--dry-run] [--json]`: removes what dead sandboxes left.
 */
#pragma once

#include "cli/driver.h"

int gc_main(int argc, char **argv, const struct driver *driver);
