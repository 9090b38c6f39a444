/*
 * init.c - caisson-init: pid 1 inside. It reaps, and nothing else.
 *
 * It holds no descriptor but /dev/null, no right, no secret; nobody outside trusts it. When it
 * is killed the kernel kills everything inside with it.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

int main(void)
{
	sigset_t child;

	/* Nobody inside may look into it, not even a process of the same user. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		sigwaitinfo(&child, NULL);
	}
}
