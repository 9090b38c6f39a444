/*
 * box.h - one sandbox while it is built: what the launcher hands to the steps.
 *
 * Ids. In root mode a sandbox owns 65,536 host ids from `id_base` on: 0..65534 are mapped
 * inside one to one, the last is the monitor's and means nothing inside. In rootless mode
 * there is one id: the caller's own is the command's inside.
 */
#pragma once

#include <sys/types.h>

#include "engine/cgroup.h"
#include "engine/plan.h"

#define BOX_IDS 65535 /* mapped; the id after them is the monitor's */

struct box {
	const struct plan *plan;
	bool is_root;          /* root mode */
	uint32_t id_base;      /* root mode: host id of root inside */
	uid_t uid;             /* of the monitor, on the host */
	gid_t gid;
	dev_t host_root_dev;   /* what must not be the root inside */
	ino_t host_root_ino;
	struct cgroup cgroup;
	int init_exe_fd;       /* the caisson-init program */
	int image_tree_fd;     /* root mode: detached clones, ids mapped; else -1 */
	int mount_tree_fds[FS_ENTRIES_MAX];
};

/* In the child that becomes pid 1. Waits on `go_fd` until the maps are written, builds the
 * walls, says so on `report_fd` with a struct err of kind ERR_NONE, becomes caisson-init.
 * Never returns. On failure the report holds the failing step and its reason. */
void launch_inside(const struct box *box, int go_fd, int report_fd) __attribute__((noreturn));

/* In a child whose parent is the monitor, already in the namespaces. Sends the descriptors
 * of struct payload_gift over `report_fd`, proves the walls, executes the command.
 * Never returns; a report that comes is a failure. */
struct payload_io {
	int stdin_fd, stdout_fd, stderr_fd; /* ignored with a pty */
	int report_fd;                      /* SOCK_SEQPACKET */
};
void launch_payload(const struct box *box, struct payload_io io) __attribute__((noreturn));

enum { GIFT_LISTENER, GIFT_PTY, GIFT_COUNT }; /* order of the descriptors in the gift message */
#define GIFT_BYTE 'G'
