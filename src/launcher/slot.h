/*
 * slot.h - who owns which number.
 *
 * A slot is a number that no other living sandbox of this host (or of this user, rootless) has.
 * It names the cgroup and, in root mode, selects the range of ids. It is one byte of a lock
 * file: the kernel gives it back when the launcher and the monitor are both gone, however they
 * went. What is found under the name of a free slot is a leftover.
 */
#pragma once

#include "base/err.h"

/* 0x70000000 is the first id after those that systemd gives to containers; 65,536 per slot. */
#define SLOT_ID_BASE 0x70000000u
#define SLOT_ID_COUNT 0x10000u
#define SLOT_COUNT 4095

int slot_run_dir(bool is_root, struct err *e) MUST_USE; /* made when absent */
int slot_open(int run_fd, struct err *e) MUST_USE;      /* the lock file */
int slot_take(int slots_fd, struct err *e) MUST_USE;    /* the slot's number */
bool slot_take_this(int slots_fd, int slot);            /* false: in use */
bool slot_any_taken(int slots_fd);                      /* by another process */
void slot_release(int slots_fd, int slot);
