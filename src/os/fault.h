/*
 * fault.h - the n-th kernel call fails, or its caller is killed: test builds only.
 *
 * Every wrapper in os/ begins with OS_FAULT("name"). In the product it is nothing. In a
 * build with -DCAISSON_TEST the calls of all processes of one launch share one counter, and
 *   CAISSON_FAIL_AT=n[:errno]  makes the n-th call fail (EIO unless given),
 *   CAISSON_KILL_AT=n          sends SIGKILL to the process that makes the n-th call,
 *   CAISSON_FAULT_COUNT=FILE   writes the number of calls made to FILE when the CLI ends,
 *   CAISSON_TRACE=FILE         writes when each call began, in microseconds, and by which process,
 *   CAISSON_LAYER_OFF=name     leaves out one wall (tests/probe: the ablation arm).
 */
#pragma once

#include "base/base.h"

#ifdef CAISSON_TEST
void fault_init(void); /* once, in main(), before the first fork */
int fault_hit(const char *name);
bool fault_layer_off(const char *layer);
#define OS_FAULT(name)                                                                             \
	do {                                                                                       \
		int fault_ = fault_hit(name);                                                      \
		if (fault_ < 0)                                                                    \
			return fault_;                                                             \
	} while (0)
#else
static inline void fault_init(void)
{
}
static inline bool fault_layer_off(const char *layer)
{
	(void)layer;
	return false;
}
#define OS_FAULT(name) ((void)0)
#endif
