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

/* The linker's name for where a program begins. */
void start(void) __asm__("_start");

#if defined(__x86_64__)
static long call(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
	                 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static long call(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}
#else
#error "no system call convention for this processor"
#endif

void start(void)
{
	/* One word of signal set: SIGCHLD is below 64 everywhere. */
	const unsigned long child = 1ul << (SIGCHLD - 1);

	/* Nobody inside may look into it, not even a process of the same user. */
	call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0);
	call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&child, 0, sizeof child);
	for (;;) {
		while (call(SYS_wait4, -1, 0, WNOHANG, 0) > 0)
			;
		call(SYS_rt_sigtimedwait, (long)&child, 0, 0, sizeof child);
	}
}
