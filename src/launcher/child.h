/*
 * child.h - what every forked child of the launcher does first.
 */
#pragma once

#include "base/base.h"

/* Closes all descriptors but these; -1 stands for none. Sorts `keep`. 0 or -errno. */
int child_keep(int *keep, size_t n);
