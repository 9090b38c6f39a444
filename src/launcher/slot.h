/*
 * slot.h - who owns which number.
 *
 * A slot is a number that no other living sandbox of this host (or of this user, rootless) has.
 * It names the cgroup and, in root mode, selects the range of ids. It is one byte of a lock
 * file: the kernel gives it back when the launcher and the monitor are both gone, however they
 * went. What is found under the name of a free slot is a leftover.
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

/* The folder of this host (or user): slots and skeleton. Made when absent. */
int slot_run_dir(bool is_root, struct err *e) MUST_USE;
int slot_open(int run_fd, struct err *e) MUST_USE;    /* the lock file */
int slot_share(int slots_fd, struct err *e) MUST_USE; /* the gate; waits for who has it alone */
bool slot_alone(int slots_fd);                        /* the gate: false when anybody shares it */
int slot_take(int slots_fd, struct err *e) MUST_USE;  /* the slot's number; shares the gate too */
bool slot_take_this(int slots_fd, int slot);          /* false: in use */
void slot_release(int slots_fd, int slot);

/* A folder of ours in a place where others may write: it counts only if nobody but the caller
 * owns it or may write to it. Made with `mode` when absent. */
int slot_own_dir(const char *path, mode_t mode, struct err *e) MUST_USE;
