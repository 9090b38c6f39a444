/*
 * opener.h - opens a path of the host for somebody, with his rights and no others.
 *
 * Whose: the kernel says it of the connection that he made to our API. A child becomes exactly
 * him and opens; a file system that does not answer stops that child, not the launcher. Who has
 * a token only and no connection reaches what lies below the operator's list, and a link does
 * not lead out of it.
 */
#pragma once

#include "engine/hostpath.h"
#include "os/unix.h"
#include "wire/launch.h"

#define OPENER_MS_MAX 5000

struct opener {
	bool is_root;
	struct hostpath_rules rules;
	dev_t api_dev; /* root mode: of the socket at which clients connect */
	ino_t api_ino;
	size_t n_tops; /* the operator's list */
	const char *const *top_paths;
	int *top_fds; /* O_PATH */
};

struct opener_caller {
	bool is_operator; /* no connection */
	struct os_peer peer;
};

struct opener_answer {
	struct err e; /* ERR_NONE: it came with a descriptor */
	uint32_t uid, gid, is_dir;
};

/* Who is at the other end of this connection; -1 for fd: the operator. Hostile: the daemon may
 * pass any socket that it has, and some of them say "root" of their other end. */
int opener_ask(const struct opener *o, int client_fd, struct opener_caller *out,
               struct err *e) MUST_USE;

bool opener_in_groups(const struct os_peer *p, gid_t gid);

/* Opens; whoever calls has the caller's rights already. */
int opener_open(const struct opener *o, const struct opener_caller *c, const char *path,
                struct opener_answer *out, struct err *e) MUST_USE;

/* Starts the child. Returns the socket on which its one answer comes, EOF if it died. */
int opener_start(const struct opener *o, const struct opener_caller *c, const char *path,
                 pid_t *pid, struct err *e) MUST_USE;
