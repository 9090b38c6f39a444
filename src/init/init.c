/*
 * init.c - caisson-init: pid 1 inside. It reaps, and nothing else.
 *
 * It holds no descriptor but /dev/null, no right, no secret; nobody outside trusts it. When it
 * is killed the kernel kills everything inside with it. No libc: its start costs more than all
 * that is done here, in time and in memory of every idle sandbox.
 */
#include <linux/prctl.h>
#include <linux/signal.h>
#include <linux/wait.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/rawcall.h"

/* The linker's name for where a program begins. */
void start(void) __asm__("_start");

void start(void)
{
	/* One word of signal set: SIGCHLD is below 64 everywhere. */
	const unsigned long child = 1ul << (SIGCHLD - 1);

	/* Nobody inside may look into it, not even a process of the same user. */
	raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0);
	raw_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&child, 0, sizeof child);
	for (;;) {
		while (raw_call(SYS_wait4, -1, 0, WNOHANG, 0) > 0)
			;
		raw_call(SYS_rt_sigtimedwait, (long)&child, 0, 0, sizeof child);
	}
}
