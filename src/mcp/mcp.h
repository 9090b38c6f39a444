/*
 * mcp.h - the Model Context Protocol at POST /mcp, on the port and the socket of the API: the
 * revisions of 2025, which begin with an initialize, and that of 2026-07-28, which does not.
 *
 *   door.c    from a message to its method; both revisions' rules about heads and bodies
 *   say.c     answers: one JSON text, or a stream of events once there is something to tell
 *   tools.c   the table of tools, and calls of them
 *   run.c     bash, process: what takes time; task.c: the same as tasks of the protocol
 *   files.c   read, write, edit, glob, grep
 *   work.c    git, workspace
 *   ask.c     the person at the client is asked: approvals; bond.c: which answer is whose
 *
 * Every tool call is requests to our own API (api/inner.h) with the caller's identity, and what
 * comes back, as it is, is the structured content. Nothing is kept: a task is a process, the
 * capabilities of a client of the older revisions are in the name of its session, and the only
 * thing that outlives a request is a call that waits for its client's answer, for a while.
 */
#pragma once

#include "api/routes.h"

extern const struct annex mcp_annex;
