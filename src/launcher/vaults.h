/*
 * vaults.h - the keepers of storage, caisson-vault: one for every workspace that is open, and one
 * for the store (workspace 0). What they are told is in wire/vault.h.
 *
 * They outlive the launcher: each listens on RUN/vt/WORKSPACE-NUMBER.sock, where the next launcher
 * finds it. NUMBER is that of its ids (launcher/slot.h). When one dies its mount lives on in the
 * sandboxes that have it; a second overlay over the same top would be the end of both, so the name
 * stays, and nothing is opened, until nobody holds that number any more.
 *
 * Two that are mounted in the same sandboxes have the ids of one of them (vault_open.ids_of), and
 * a number each: each knows who has its own mount.
 */
#pragma once

#include "engine/cgroup.h"
#include "io/loop.h"
#include "wire/vault.h"

struct vault;

struct vaults {
	struct loop *loop;
	bool is_root;
	const struct cgroup *cgroup; /* launcher/helper.h */
	int slots_fd;                /* launcher/slot.h; the gate is shared */
	int vt_fd;
	int trees_fd, blobs_fd, vol_fd;
	void (*changed)(struct vaults *all); /* after each event: vaults_due() may be another */
	struct vault *first;
};

/* Something that one of them is asked for. Embedded in its owner, who may free it in `done`. */
struct vault_ask {
	struct vault_ask *next;
	uint32_t tag;
	bool is_second; /* the one that it was asked of died over it */
	/* Borrowed: to be opened, or the same already; the ids are filled in here. The
	 * answer is a new socket for a client of it. NULL: the answer is a mount. */
	const struct vault_open *open;
	/* Once. `fd` is the callee's to take; -1 with `e`. */
	void (*done)(struct vault_ask *a, int fd, const struct err *e);
};

/* Finds those that live. */
int vaults_init(struct vaults *all, struct err *e) MUST_USE;
/* The launcher ends: those whose mount nobody has end as well, the others live on. Nobody who asked
 * is told. */
void vaults_done(struct vaults *all);

/* -1: nothing was asked. Else `done` will be called, or was. Where the mount of a dead one is still
 * in use it waits a moment, and then says EBUSY. */
int vaults_ask(struct vaults *all, uint64_t workspace, struct vault_ask *a, uint64_t now_ms,
               struct err *e) MUST_USE;
void vaults_cancel(struct vaults *all, const struct vault_ask *a); /* it is not told any more */
/* The number of its ids: one who wants the mount shares it before he asks. -1: not open. */
int vaults_work(const struct vaults *all, uint64_t workspace);

void vaults_tick(struct vaults *all, uint64_t now_ms);
uint64_t vaults_due(const struct vaults *all);

/* Removes the names of those that died with their launcher, below vt/ of the run folder. Returns
 * how many there were. */
int vaults_sweep(int run_fd, int slots_fd, bool dry_run,
                 void (*found)(const char *what, bool is_gone));
