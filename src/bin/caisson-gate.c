/*
 * caisson-gate - the network of all sandboxes that have one; descriptor 3 is the launcher.
 *
 * It has no rights but to open sockets, and gives up what else a process has before it reads
 * anything (gate/harden.h). Every sandbox has a child of its own, which holds nothing of another.
 */
#include "gate/master.h"
#include "io/journal.h"

#define LAUNCHER_FD 3

int main(void)
{
	struct err e = { 0 };

	clearenv(); /* libraries listen to it */
	journal_open("caisson-gate", JOURNAL_INFO);
	if (master_run(LAUNCHER_FD, &e) < 0) {
		journal(JOURNAL_ERROR, "the gate ended", "reason", e.msg, NULL);
		return 125;
	}
	return 0;
}
