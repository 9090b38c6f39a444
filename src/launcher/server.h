/*
 * server.h - the launcher as a program: parent of the daemon and of all monitors.
 *
 * It binds the socket of the API, starts the daemon (caissond) without rights, and does what the
 * daemon asks for in wire/launch.h; nothing else reaches it. It never waits for one sandbox, and
 * a daemon that dies is started again; monitors and their sandboxes live on, also without it.
 *
 * What the daemon finds at its start: descriptor 3, the channel to the launcher; descriptor 4,
 * the listening socket of the API. It ends when 3 ends.
 */
#pragma once

#include "launcher/launcher.h"

/* Of the daemon in root mode, below the ids of sandboxes; the next two are of the gate and of the
 * package cache. */
#define SERVER_ID 0x6fffff00u
#define SERVER_HOST_PATHS_MAX 64

struct server_opts {
	const char *state, *run;
	const char *host_paths[SERVER_HOST_PATHS_MAX]; /* what tokens may reach */
	size_t n_host_paths;
	uid_t service_id;
	const char *gate_ca;      /* launcher/gates.h; or NULL */
	int api_fd;               /* -1: to be made */
	const char *notify;       /* $NOTIFY_SOCKET, or NULL */
	const char *daemon;       /* path of the program */
	char *const *argv;        /* for it, NULL-terminated */
	char *const *cache_args;  /* for the package cache, NULL-terminated */
	char *const *ledger_args; /* the same for the ledger */
	char *const *hook_args;   /* and for the sender of webhooks; NULL: there is none */
	const char *hook_key;     /* the file that it signs by */
	const char *gate_key;     /* launcher/sealkey.h; or NULL */
	char *const *env;
};

/* Returns the exit status when the daemon has ended in order; -1 when it could not start. */
int server_run(const struct server_opts *o, monitor_fn *monitor, struct err *e) MUST_USE;
