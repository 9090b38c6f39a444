/*
 * pump.h - bytes and signals between the caller's terminal and a session.
 */
#pragma once

#include "cli/driver.h"

struct pump {
	const struct driver *driver;
	struct run_session *session;
	bool is_tty; /* the command has a pty; a guest learns it */
	bool has_stdin;
	bool is_guest; /* attached: SIGTERM, SIGHUP and Ctrl-] leave, and the process goes on */
	bool is_proxy; /* SIGTERM and SIGHUP are the process's business, as other signals are */
	bool is_quiet; /* what it writes is nobody's business */
	/* results */
	json_t *hello;       /* the object of RUN_STARTED, or NULL */
	json_t *process;     /* the last object of it, or NULL */
	bool is_left;        /* by a guest */
	bool is_pipe_closed; /* nobody reads our output any more */
	int write_errno;     /* why output could not be written, or 0 */
};

/* Until the last event: 0; -1 with the reason why nothing ran. */
int pump_run(struct pump *p, struct err *e);
void pump_done(struct pump *p);
/* Says on stderr how it ended, where the exit status does not; returns that status. */
int pump_report(const struct pump *p);
void pump_explain(const json_t *process);
