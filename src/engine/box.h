/*
 * box.h - one sandbox while it is built: what the launcher hands to the steps.
 *
 * Ids. In root mode a sandbox owns 65,536 host ids from `id_base` on: 0..65534 are mapped
 * inside one to one, the last is the monitor's and means nothing inside. In rootless mode
 * there is one id: the caller's own is the command's inside.
 */
#pragma once

#include <sched.h>
#include <sys/types.h>

#include "engine/cgroup.h"
#include "engine/command.h"
#include "engine/plan.h"
#include "engine/proof.h"

#define BOX_IDS 65535 /* mapped; the id after them is the monitor's */

struct box;

/* CLONE_NEW* of pid 1. The cgroup namespace is made by the first process of the group, and that of
 * the network by the one command of a sandbox: it takes as long as a third of the walls. */
int box_namespaces(const struct box *box);

/* launch.c: RLIMIT_NPROC of a command; 0: none. */
uint64_t box_processes(const struct box *box);

/* root.c: nobody inside could write the root, and no mount needs a name that is not in the
 * skeleton: then it does without an overlay, which costs a tenth of a launch. */
bool root_is_plain(const struct plan *p, int skeleton_fd);

struct box {
	const struct plan *plan;
	bool is_root;     /* root mode */
	bool is_kept;     /* lives without a client, serves many commands; else one, the final */
	int listen_fd;    /* is_kept: a listening SOCK_SEQPACKET socket for its clients; else -1 */
	const char *id;   /* what self.sock calls it; opaque; NULL: none */
	uint32_t id_base; /* root mode: host id of root inside */
	uint32_t end_wait_ms; /* not kept: how long it waits when its client is gone */
	uid_t uid;            /* of the monitor, on the host */
	gid_t gid;
	bool is_oom_plain;      /* the launcher's oom_score_adj is 0 already */
	struct proof_host host; /* what must not be found inside */
	struct cgroup cgroup;
	unsigned int
	    promised;         /* controllers of this host that the limits rely on: a bit for each */
	cpu_set_t cpus;       /* that the caller may use; see os/proc.h */
	int init_exe_fd;      /* the caisson-init program */
	int skeleton_fd;      /* engine/skeleton.h */
	bool is_plain;        /* the root is the skeleton itself, read-only */
	int skeleton_tree_fd; /* root mode: a detached clone of it; else -1 */
	int image_tree_fd;    /* root mode: detached clones, ids mapped; else -1 */
	int nodes_tree_fd;    /* root mode: device nodes, detached; else -1 */
	int mount_tree_fds[FS_ENTRIES_MAX];
};

/* In the child that becomes pid 1. Waits on `go_fd` until the maps are written, builds the
 * walls, waits on `entered_fd` until the first process has entered (the change of the root takes
 * a command along) and takes the network from it, says that the walls stand with a byte on
 * `walls_fd` and a struct err of kind ERR_NONE on `report_fd`, becomes caisson-init. Never returns.
 * On failure the report has the failing step. GIFT_SCRATCH comes before it, GIFT_NET and GIFT_TRUST
 * of a sandbox with a network, and GIFT_DOOR and GIFT_RULES of a kept one. */
/* Where pid 1 and the first command are: a page that they share with the monitor. An index of
 * their steps. */
struct launch_progress {
	volatile int inside, payload;
};
const char *launch_inside_name(int step);
const char *launch_payload_name(int step);

struct inside_io {
	int go_fd, entered_fd, walls_fd, report_fd;
	struct launch_progress *progress;
};
void launch_inside(const struct box *box, struct inside_io io) __attribute__((noreturn));

/* In a child whose parent is the monitor, in the pid namespace and no other. Sends the descriptors
 * below over `report_fd`, each with its letter; proves the walls; executes the command. Never
 * returns; a struct err that comes is a failure. */
struct payload_io {
	int stdin_fd, stdout_fd, stderr_fd; /* ignored with a pty */
	int extra_fd, program_fd; /* a worker of ours: its socket, its program; a shell: its
	                           * socket, which becomes SHELL_FD; else -1 */
	int rules_fd;             /* of Landlock; -1: to be made */
	int report_fd;            /* SOCK_SEQPACKET */
	struct launch_progress *progress;
	int init_pidfd;           /* whose namespaces are entered */
	int cgroup_ns_fd;         /* -1: to be made */
	uint32_t known;           /* walls that the command before has proved */
	bool is_in_userns;        /* a helper has entered it */
	bool is_nursed;           /* born by a nursery, which has entered all but the cgroup's, and
	                           * has loaded the filter */
	bool is_to_move;          /* v2: it could not be born in its cgroup */
	int entered_fd, walls_fd; /* -1: the walls stand already */
	struct cgroup_leaf leaf;
};
void launch_payload(const struct box *box, const struct command *c, struct payload_io io)
    __attribute__((noreturn));

/* In a child of the monitor: makes the cgroup namespace of a kept sandbox, sends it over
 * `report_fd` and ends; does there what else the first command would do for all. */
void launch_keeper(const struct box *box, struct payload_io io) __attribute__((noreturn));

#define SHELL_FD 9 /* of one digit: others are not known to every shell */

#define GIFT_CGROUP 'C'  /* the cgroup namespace */
#define GIFT_DOOR 'D'    /* the listening socket of /run/caisson/self.sock */
#define GIFT_LIVE 'V'    /* an overlay of a folder that the host may change: os_fs_forget_names() */
#define GIFT_NET 'G'     /* the sockets of the gate: engine/netns.h */
#define GIFT_RULES 'R'   /* Landlock's, for all commands */
#define GIFT_SCRATCH 'S' /* the tmpfs that everything writable lies in */
#define GIFT_TRUST 'T'   /* of a network: a file system that is not mounted yet: engine/trust.h */
#define GIFT_LISTENER 'L' /* the exec notification */
#define GIFT_PTY 'P'      /* the master of the command's terminal */
#define GIFT_NONE 'N'     /* a test build without notification */
#define GIFT_BARE 'B'     /* a test build without any filter */
