/*
 * service.h - one command of ours in a throw-away sandbox: what reads or interprets files, such as
 * git, runs behind walls.
 *
 * The host's system read-only, trees and workspaces where they are asked for, a folder of the
 * caller's at SERVICE_FOLDER (opened with his rights, read-only), no network or one host and port.
 * It is on no record but for its connections, nobody finds it, no quota counts it. It ends with its
 * asker: service_cancel(), its time limit, or the death of this daemon.
 *
 * What it writes is hostile. Output comes as bytes, in order; the lines of standard error are
 * progress, and the last of them are what a failure is explained with.
 */
#pragma once

#include "core/sandbox.h"

#define SERVICE_FOLDER "/run/caisson/folder"
#define SERVICE_LINE_MAX 256 /* of progress: longer ones are cut */

struct service;

struct service_end {
	struct fail fail;      /* FAIL_NONE: it ran to its end */
	int exit_code;         /* then; 128 + n: signal n */
	const char *out;       /* when there is no out() */
	size_t out_len;        /* at most out_max: what is longer fails with too_large */
	const char *complaint; /* the last of what it wrote to standard error: text, no controls */
};

struct service_ask {
	const char *tenant;
	const char *script;      /* for sh */
	const char *const *args; /* "$1", ...; NULL-terminated, or NULL */
	const struct maker_tree *trees;
	size_t n_trees;
	const char *workspace; /* the id of one that is seen at /work, with its mirror; or NULL */
	bool is_read_only;     /* nothing of it can be changed */
	const char *folder;    /* a path of the caller's, or NULL */
	int client_fd;         /* whose rights open it; -1: the operator's list */
	const char *net;       /* "host:port", or NULL: no network */
	const char *cred;      /* the secret that goes there (secret.h), or NULL */
	const void *input;     /* for standard input; copied */
	size_t input_len;
	int input_fd; /* or this file from its beginning, input_len bytes; taken; 0: none */
	uint64_t timeout_ms;
	uint64_t out_max;

	void (*out)(void *arg, const void *bytes, size_t n); /* or NULL: kept in memory */
	void (*progress)(void *arg, const char *line);       /* or NULL */
	void (*done)(void *arg, const struct service_end *end);
	void *arg;
};

/* done() comes later, once, unless it is cancelled. NULL: it was not started. */
struct service *service_start(struct core *c, const struct service_ask *ask,
                              struct fail *f) MUST_USE;
/* It is killed, and nobody is told; its mounts may live for a moment. Fine with NULL. */
void service_cancel(struct service *s);
