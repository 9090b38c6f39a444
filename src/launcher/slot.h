/*
 * slot.h - who owns which number.
 *
 * A slot is a number that no other living sandbox of this host (or of this user, rootless) has.
 * It names the cgroup and, in root mode, selects the range of ids. It is one byte of a lock
 * file: the kernel gives it back when the launcher and the monitor are both gone, however they
 * went. What is found under the name of a free slot is a leftover.
 *
 * A workspace that is open has a number as well, of a second row: an overlay cannot be mapped, so
 * all sandboxes that have it share its ids. Whoever has the mount holds a shared lock on the byte:
 * the keeper of the storage, every monitor. It is nobody else's until the last of them is gone.
 *
 * One more byte is the gate: whoever has or takes a slot shares it, whoever removes what all
 * sandboxes use (the skeleton, caisson/ of the cgroups) has it alone.
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

/* The folder of this host (or user): slots and skeleton. Made when absent. */
int slot_run_dir(bool is_root, struct err *e) MUST_USE;
int slot_open(int run_fd, struct err *e) MUST_USE;    /* the lock file */
int slot_share(int slots_fd, struct err *e) MUST_USE; /* the gate; waits for who has it alone */
bool slot_alone(int slots_fd);                        /* the gate: false when anybody shares it */
int slot_take(int slots_fd, struct err *e) MUST_USE;  /* the slot's number; shares the gate too */
bool slot_take_this(int slots_fd, int slot);          /* false: in use */
void slot_release(int slots_fd, int slot);

/* The number of a workspace that is to be opened: one that nobody has. Shared from then on. */
int slot_take_work(int slots_fd, struct err *e) MUST_USE;
/* One more who has it, while another does. */
int slot_share_work(int slots_fd, int work, struct err *e) MUST_USE;
bool slot_work_is_free(int slots_fd, int work); /* nobody but we ourselves has it */
uint64_t slot_work_byte(int work);              /* of the lock file */
uint32_t slot_work_id(int work);                /* host id of root inside */
bool slot_is_id(uid_t id);                      /* of any sandbox */
#define SLOT_LEAST_ID SLOT_WORK_ID_BASE         /* nobody of a sandbox has a lower one */

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
