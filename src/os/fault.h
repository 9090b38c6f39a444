/*
 * fault.h - the n-th kernel call fails, or its caller is killed: test builds only.
 *
 * Every wrapper in os/ begins with OS_FAULT("name"). In the product it is nothing. In a
 * build with -DCAISSON_TEST (caisson-test, caisson-vault-test, caisson-launcher-test) the calls of
 * all processes of one launch share one counter, and variables of the environment say
 *   CAISSON_FAIL_AT=n[:errno]  makes the n-th call fail (EIO unless given), or with a name in
 *                              place of n every call of that name,
 *   CAISSON_KILL_AT=n          sends SIGKILL to the process that makes the n-th call,
 *   CAISSON_STOP_AT=name       stops the first process that makes a call of that name,
 *   CAISSON_START_MS=n         is the time that walls and commands have to stand (engine/spawn.h),
 *   CAISSON_FAULT_COUNT=FILE   writes the number of calls made to FILE when the CLI ends,
 *   CAISSON_TRACE=FILE         writes when each call began, in microseconds, and by which process,
 *   CAISSON_LAYER_OFF=a,b,...  leaves out walls (names: src/engine/proof.c), and "proof" the launch
 *                              proof, which would refuse to start without them,
 *   CAISSON_FILTERS_MAX=n      lowers that bound (monitor/filters.c).
 * A launcher makes many sandboxes, each with faults of its own:
 *   CAISSON_FAULTS=FILE        is read anew before each: lines like LAYER_OFF=seccomp, without the
 *                              prefix, take the place of the variables; the counter begins again.
 *                              What the launcher makes keeps them, also its later commands.
 *   CAISSON_FAULT_MAP=FILE     has the counter and the calls, to be read at any time (fault.c).
 */
#pragma once

#include "base/base.h"

#ifdef CAISSON_TEST
void fault_init(void);  /* once, in main(), before the first fork */
void fault_begin(void); /* before each launch, in a launcher that makes many */
int fault_hit(const char *name);
bool fault_layer_off(const char *layer);
long fault_number(const char *variable, long otherwise);
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
static inline void fault_begin(void)
{
}
static inline bool fault_layer_off(const char *layer)
{
	(void)layer;
	return false;
}
static inline long fault_number(const char *variable, long otherwise)
{
	(void)variable;
	return otherwise;
}
#define OS_FAULT(name) ((void)0)
#endif
