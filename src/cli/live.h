/*
 * live.h - the caller's terminal and a process behind the daemon: bytes, signals, window size.
 */
#pragma once

#include "cli/remote.h"

struct live {
	struct client *client;
	struct client_ask ask; /* starts the process, or attaches to it */
	bool is_tty;           /* a guest's is learnt from the daemon */
	bool has_stdin;
	bool is_guest; /* attached: SIGTERM, SIGHUP and Ctrl-] leave, and the process goes on */
	/* results */
	json_t *process;     /* the last object of it; NULL when it never was */
	bool is_left;        /* by a guest */
	bool is_pipe_closed; /* nobody reads our output any more */
	int write_errno;     /* why output could not be written, or 0 */
};

/* Until its end: 0; -1 when there was none, or we know nothing of it. */
int live_run(struct live *l, struct err *e) MUST_USE;
void live_done(struct live *l);
/* Says on stderr how it ended, where the exit status does not; returns that status. */
int live_report(const struct live *l);
void live_explain(const json_t *process);
