/*
 * pace.h - how many sandboxes may end at once.
 *
 * An end frees much in the kernel at one moment: filters, namespaces, mounts, sockets. A thousand
 * ends in one instant have stopped a kernel for good
 * (docs/decisions/0054-ends-that-do-not-come.md), and every start meanwhile waits behind them. So
 * each end takes a place here first; who finds none waits, in the order of coming. Ends that nobody
 * asks the daemon for are paced by the monitors themselves: monitor/talk.c, client_gone().
 */
#pragma once

#include "base/base.h"

#define PACE_MAX 64

struct paced {
	struct paced *next;
	enum { PACED_NOT, PACED_WAITING, PACED_ENDING } state;
};

struct pace {
	struct paced *first; /* of those that wait */
	size_t n_ending;
	void (*begin)(struct paced *p); /* the end of this one begins now */
};

/* Its end begins in here, or when others are over. Once only until pace_leave(). */
void pace_join(struct pace *p, struct paced *one);
/* It has ended, or is not to end any more; the next one begins. Fine when it did not join. */
void pace_leave(struct pace *p, struct paced *one);
