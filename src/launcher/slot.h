/*
 * slot.h - who owns which number.
 *
 * A slot is a number that no other living sandbox of this host (or of this user, rootless) has.
 * It names the cgroup and, in root mode, selects the range of ids. What is found under the name of
 * a free slot is a leftover.
 *
 * A workspace that is open has a number as well, of a second row: an overlay cannot be mapped, so
 * all sandboxes that have it share its ids. The keeper of its storage has the number, and so has
 * every sandbox with the mount.
 *
 * RUN/slots/ has an empty file for each number: N of a slot, wN of a workspace. A number is taken
 * while somebody holds a lock on its file, and the kernel gives it back when launcher and monitor
 * (keeper) are both gone, however they went. To take a number is to make the file if there is none,
 * to lock it exclusively, which fails while anybody holds it, and to turn that into a shared lock.
 * A launcher with the exclusive lock may remove the file; so a file counts only if it still has a
 * name once it is locked.
 *
 * Launcher and monitor hold a number by descriptions of their own. The monitor's is open for
 * reading: a monitor that fell can lock no other number, cannot keep anybody from a lock on its
 * own but by living, cannot write to the file, and cannot give up what its launcher holds.
 *
 * RUN/slots/gate is for launchers: shared by those who have sandboxes or take numbers, locked
 * exclusively by the one that removes what all sandboxes use (the skeleton, caisson/ of the
 * cgroups). A monitor outlives its launcher without the gate, so to be alone is to have the gate
 * and to find no number taken.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* 0x70000000 is the first id after those that systemd gives to containers; 65,536 per slot. */
#define SLOT_ID_BASE 0x70000000u
#define SLOT_ID_COUNT 0x10000u
#define SLOT_COUNT 4095
#define SLOT_WORK_ID_BASE                                                                          \
	0x60000000u /* of workspaces; the last range of this row has our own ids */
#define SLOT_WORK_COUNT 4095

/* A number that is held: by the launcher, and by the monitor or keeper that gets given_fd (-1
 * then). */
struct slot_lock {
	int own_fd, given_fd;
	char name[8]; /* of the file */
};
/* Held by one sandbox: its slot, and the workspaces that are mounted in it. Zero is empty. */
#define SLOT_LOCKS_MAX 3
struct slot_locks {
	struct slot_lock at[SLOT_LOCKS_MAX];
	size_t n;
};
void slot_locks_give(struct slot_locks *l); /* the monitor has its descriptions: closes ours */
void slot_locks_done(struct slot_locks *l); /* closes all */
/* The same, and removes the files of numbers that nobody else has. */
void slot_locks_end(int slots_fd, struct slot_locks *l);

/* The folder of this host (or user): slots and skeleton. Made when absent. */
int slot_run_dir(bool is_root, struct err *e) MUST_USE;
/* RUN/slots; made when absent. Refuses while sandboxes of a version live that had a file there. */
int slot_open(int run_fd, struct err *e) MUST_USE;
/* A description that shares the gate until it is closed; waits for who has it alone. Needed from
 * before a number is taken until somebody else holds it, or it is given back. */
int slot_share(int slots_fd, struct err *e) MUST_USE;
/* Gives up the share, and takes the gate exclusively unless anybody shares it or has a number. */
bool slot_alone(int slots_fd, int gate_fd);
void slot_remove_free(int slots_fd); /* the files of numbers that nobody has */

int slot_take(int slots_fd, struct slot_locks *l, struct err *e) MUST_USE; /* the slot's number */
/* To end what was left in it: exclusively, and for no monitor. False: in use. */
bool slot_take_this(int slots_fd, int slot, struct slot_locks *l);

/* The number of a workspace that is to be opened: one that nobody has. */
int slot_take_work(int slots_fd, struct slot_locks *l, struct err *e) MUST_USE;
/* Another holder, while there is one. */
int slot_share_work(int slots_fd, int work, struct slot_locks *l, struct err *e) MUST_USE;
bool slot_work_is_free(int slots_fd, int work);
bool slot_work_clear(int slots_fd, int work); /* is free, and now without a file */
uint32_t slot_work_id(int work);              /* host id of root inside */
bool slot_is_id(uid_t id);                    /* of any sandbox */
#define SLOT_LEAST_ID SLOT_WORK_ID_BASE       /* nobody of a sandbox has a lower one */

/* When a daemon dies, all sandboxes that die with it notice at once. How long the one of this slot
 * waits: never more than SLOT_ENDS_AT_ONCE have the same time (core/pace.h has the reason). */
#define SLOT_ENDS_AT_ONCE 64
uint32_t slot_end_wait_ms(int slot);

/* Which process the monitor of a slot is: for a launcher that comes later and is not its parent.
 * The number of a process alone may be another's by then, so its time of birth is noted as well. */
int slot_note_monitor(int run_fd, int slot, pid_t pid, const char *name); /* 0 or -errno */
/* A pidfd of it, if it lives and has that name; -ESRCH: no such. */
int slot_find_monitor(int run_fd, int slot, const char *name);

/* A folder of ours in a place where others may write: it counts only if nobody but the caller
 * owns it or may write to it. Made with `mode` when absent. */
int slot_own_dir(const char *path, mode_t mode, struct err *e) MUST_USE;
