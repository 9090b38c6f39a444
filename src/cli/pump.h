/*
 * pump.h - bytes and signals between the caller's terminal and a sandbox's channel.
 */
#pragma once

#include "base/err.h"
#include "cli/driver.h"
#include "cli/keep.h"
#include "wire/channel.h"

struct pump {
	int channel_fd;
	bool is_tty; /* the command has a pty */
	bool has_stdin;
	void (*ebb)(struct run_session *session); /* the driver's, or NULL */
	struct run_session *session;
	struct keep *kept; /* two (out, err) for --json; NULL: pass the bytes on */
	/* results */
	struct channel_end end;
	bool is_pipe_closed; /* nobody reads our output any more */
	int write_errno;     /* why output could not be written, or 0 */
};

/* Until the monitor's last message. 0 with p->end set; -1 with the reason why nothing ran. */
int pump_run(struct pump *p, struct err *e) MUST_USE;
