/*
 * oneshot.h - the driver that launches in this process: launcher here, monitor forked.
 */
#pragma once

#include "cli/driver.h"

extern const struct driver oneshot_driver;
