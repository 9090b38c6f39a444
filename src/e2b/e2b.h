/*
 * e2b.h - the door for clients of E2B: their control plane and their agent's protocol (envd), on
 * the port of the API. It translates and decides nothing; what it was told and has to say again
 * lies in the sandbox's row (sbx.door), and the tokens that it gives out are made from the id of a
 * sandbox and one key of the store.
 *
 *   door.c       which requests, who asks, how it says no; the table of routes
 *   ident.c      ids and tokens
 *   make.c       sandboxes are made and forked
 *   life.c       connect, pause, timeout, kill
 *   look.c       one, a page of them, what they use
 *   snapshot.c   snapshots: workspaces with a name
 *   netrule.c    what they call network, as ours; secret.c: their secrets, as ours
 *   volume.c     volumes: workspaces with a name; content.c: their files
 *   rpc.c        the Connect protocol: one answer, or a stream of them
 *   process.c    their Process service; stream.c: what a process says
 *   entry.c      their Filesystem service
 *   upload.c     /files
 *   watch.c      changes of a folder
 *   host.c       requests for a port of a sandbox; wake.c: of one that rests; interpreter.c: for
 *                the code interpreter, which is interpreter.py and runs inside
 *
 * What their clients send and expect: docs/e2b.md.
 */
#pragma once

#include "api/routes.h"

/* The first has the requests for ports of sandboxes. */
extern const struct annex e2b_host_annex, e2b_annex;

/* `domain`: sandboxes are PORT-ID.DOMAIN for their clients, a port may follow; or NULL. */
int e2b_open(struct api *a, const char *domain, struct err *e) MUST_USE;
