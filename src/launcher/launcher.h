/*
 * launcher.h - makes a sandbox on the host's side, and ends it.
 *
 * This is the only code that uses root's rights. Its input is a plan: numbers, descriptors,
 * and text that it carries without reading. `caisson run` calls it directly; the daemon asks for
 * it over a socket (launcher/server.h).
 */
#pragma once

#include "engine/box.h"
#include "launcher/slot.h"

struct sandbox {
	struct box box;
	int run_fd, slots_fd, gate_fd;      /* only of a launcher that makes no other */
	int slot;                           /* -1: none */
	struct slot_locks locks;            /* the slot's, and of the workspaces that it has */
	pid_t monitor_pid;                  /* 0: none */
	int control_fd;                     /* the client's end of the channel (wire/channel.h) */
	const struct launcher_order *order; /* while it is built */
};

/* The code of the monitor; passed in, because the launcher does not depend on it. */
typedef void monitor_fn(struct box *box, int control_fd);

/* `host` was looked at to judge the spec, and is not looked at again: what was promised is what
 * is used. */
struct launcher_host {
	bool is_root; /* launcher_mode() */
	struct cgroup cgroup;
};

/* What is the same for every sandbox of this host; launcher/kit.h keeps it, and the gate. */
struct launcher_kit {
	int run_fd, slots_fd, init_exe_fd, skeleton_fd;
	struct proof_host host; /* what must not be found inside */
	bool
	    is_oom_plain; /* the launcher is neither favoured nor sacrificed when memory is short */
};

struct launcher_order {
	const struct plan *plan;
	const struct launcher_host *host;
	const struct launcher_kit *kit; /* NULL: to be looked for; else it is borrowed */
	/* Who owns the files of an image, inside: root mode. 0: everybody himself. */
	uid_t image_uid;
	gid_t image_gid;
	uint64_t workspace; /* that it has mounted; 0: none */
	uint64_t root;      /* another that is its root; 0: none */
	int work;       /* root mode: the number of the workspace's ids, which are its own then */
	bool is_kept;   /* lives on without a client */
	int listen_fd;  /* for its next client; -1: none */
	const char *id; /* opaque; NULL: none */
	monitor_fn *monitor;
};

/* Builds everything up to a running monitor. On failure nothing is left. */
int launcher_start(struct sandbox *s, const struct plan *plan, const struct launcher_host *host,
                   monitor_fn *monitor, struct err *e) MUST_USE;

/* For a launcher that makes many, and waits for none of them: */

/* What is left of a sandbox in its launcher once it runs. */
struct launcher_hold {
	struct slot_locks locks; /* as in struct sandbox */
	int slot;                /* -1: none */
	pid_t pid;               /* 0: none */
	int control_fd;
};

/* A slot for what is built next; nothing is left on failure. */
int launcher_take_slot(const struct launcher_kit *kit, struct launcher_hold *hold,
                       struct err *e) MUST_USE;
/* As launcher_start(), in the slot of `hold`. After a failure there may be a monitor, killed: in
 * any case `hold` is to be ended. Never waits for a sandbox. */
int launcher_build(const struct launcher_order *order, struct launcher_hold *hold,
                   struct err *e) MUST_USE;
/* The monitor was waited for, or was never a child: kills and removes what can be. True when all
 * is gone; the slot is free then. Else to be called again in a moment. */
bool launcher_end_round(const struct launcher_kit *kit, struct launcher_hold *hold,
                        const struct cgroup *host);
/* Takes a slot whose sandbox is dead, to be ended; false when it lives. */
bool launcher_take_dead(const struct launcher_kit *kit, int slot, struct launcher_hold *hold);

/* Waits for the monitor; kills and removes whatever is left of the sandbox. */
void launcher_end(struct sandbox *s);

/* Removes what dead launchers left, and tells of each whether it is gone. Returns how many were
 * found, -1 when it could not look. */
int launcher_sweep(bool dry_run, bool with_base, void (*found)(const char *what, bool is_gone));

/* Root mode or rootless. Refuses root without the rights of root: the caller's one id would be
 * mapped inside, and host root never is. */
int launcher_mode(bool *is_root, struct err *e) MUST_USE;
