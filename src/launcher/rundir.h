/*
 * rundir.h - the folders of one daemon, its lock, and the socket of its API.
 *
 *   STATE/            the daemon writes there; root mode: 01770, root's and the daemon's group's,
 *                     so that it can neither remove nor replace what is root's in it
 *   STATE/trees/ blobs/ vol/  0700, the launcher's: what workspaces keep (wire/vault.h)
 *   STATE/gate.key    0600, the launcher's: what secrets are sealed to (sealkey.h)
 *   STATE/cache/      0700, the package cache's
 *   STATE/ledger/     0700, the ledger's
 *   RUN/              0711, the launcher's: the daemon passes and connects
 *   RUN/launcher.lock held while a launcher lives
 *   RUN/api.sock      0600, the daemon's
 *   RUN/vt/           0700, the launcher's: the sockets of those who keep storage
 *   RUN/sb/           the sockets of monitors; the daemon may list them and not replace them
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

struct rundir_opts {
	const char *state, *run;
	bool is_root;
	uid_t service_id; /* root mode: of the daemon */
	int api_fd;       /* a listening socket that somebody made for us; -1: none */
};

struct rundir {
	bool is_open;
	int state_fd, run_fd, sb_fd, lock_fd;
	int trees_fd, blobs_fd, vol_fd, vt_fd;
	int api_fd;
	bool is_api_ours; /* made here: removed at the end */
	dev_t api_dev;    /* root mode: the file of the socket */
	ino_t api_ino;
};

/* A folder below one that belongs to somebody else: made, and handed to its owner unless it is
 * another's already. */
int rundir_own(int dir_fd, const char *name, uid_t owner, struct err *e) MUST_USE;

/* e->sys is EBUSY when another launcher has these folders. */
int rundir_open(struct rundir *d, const struct rundir_opts *o, struct err *e) MUST_USE;
/* `is_orderly`: whoever still waits at the socket may ask the next daemon; else there is a reason
 * that he has to hear, and hanging up makes him look for it. */
void rundir_done(struct rundir *d, bool is_orderly);
