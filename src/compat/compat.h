/*
 * compat.h - doors for the clients of two frameworks, on the port of the API: SWE-ReX
 * (RemoteRuntime, which SWE-agent uses) below /compat/swerex, OpenHands (RemoteWorkspace) below
 * /compat/openhands.
 *
 * They translate and keep nothing. The path names the sandbox, by id or key; without one it is the
 * token's own, found by its key, made when it is first needed and removed by `close` or by time. A
 * session is a process with a terminal and a label; what it said is in its log.
 *
 *   door.c      which requests, who asks, how they say no; the tables of routes
 *   which.c     the sandbox of a request
 *   pytext.c    bytes as texts of Python, quoting for bash
 *   whole.c     one command to its end
 *   form.c      a form whose file goes to a worker as it comes
 *
 *   seat.c      a bash with a terminal: what it is told, what is waited for
 *   rex_session.c  sessions begin and end      rex_run.c    commands in them, interrupts
 *   rex_execute.c  commands of their own       rex_file.c   files, uploads
 *
 *   hands_bash.c   commands, what they say     hands_file.c files
 *   hands_git.c    changes, a file before and after
 *
 * How to point clients here, and what was tried: docs/doors.md. docs/decisions/0046-compat.md.
 */
#pragma once

#include "api/routes.h"

extern const struct annex rex_annex, hands_annex;
