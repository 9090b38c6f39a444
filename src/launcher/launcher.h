/*
 * launcher.h - makes a sandbox on the host's side, and ends it.
 *
 * This is the only code that uses root's rights. Its input is a plan: numbers, descriptors,
 * and text that it carries without reading. It runs inside `caisson run` until there is a
 * daemon; then it is a program of its own and the plan comes over a socket.
 */
#pragma once

#include "engine/box.h"

struct sandbox {
	struct box box;
	int run_fd;        /* the run folder */
	int slots_fd;      /* holds the lock of the slot */
	int slot;          /* -1: none */
	pid_t monitor_pid; /* 0: none */
	int control_fd;    /* the client's end of the channel (wire/channel.h) */
};

/* The code of the monitor; passed in, because the launcher does not depend on it. */
typedef void monitor_fn(struct box *box, int control_fd);

/* Builds everything up to a running monitor. On failure nothing is left. `host` was
 * looked at to judge the spec, and is not looked at again: what was promised is what is used. */
struct launcher_host {
	bool is_root; /* launcher_mode() */
	struct cgroup cgroup;
};
int launcher_start(struct sandbox *s, const struct plan *plan, const struct launcher_host *host,
                   monitor_fn *monitor, struct err *e) MUST_USE;

/* The command has ended: takes down what can go while the monitor still works. */
void launcher_ebb(struct sandbox *s);
/* Waits for the monitor; kills and removes whatever is left of the sandbox. */
void launcher_end(struct sandbox *s);

/* Removes what dead launchers left, and tells of each whether it is gone. Returns how many were
 * found, -1 when it could not look. */
int launcher_sweep(bool dry_run, bool with_base, void (*found)(const char *what, bool is_gone));

/* Root mode or rootless. Refuses root without the rights of root: the caller's one id would be
 * mapped inside, and host root never is. */
int launcher_mode(bool *is_root, struct err *e) MUST_USE;
