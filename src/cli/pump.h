/*
 * pump.h - bytes and signals between the caller's terminal and a session.
 */
#pragma once

#include "base/err.h"
#include "cli/driver.h"
#include "wire/keep.h"

struct pump {
	const struct driver *driver;
	struct run_session *session;
	bool is_tty; /* the command has a pty */
	bool has_stdin;
	struct keep *kept; /* two (out, err) for --json; NULL: pass the bytes on */
	/* results */
	struct channel_end end;
	bool is_pipe_closed; /* nobody reads our output any more */
	int write_errno;     /* why output could not be written, or 0 */
};

/* Until the last event. 0 with p->end set; -1 with the reason why nothing ran. */
int pump_run(struct pump *p, struct err *e) MUST_USE;
