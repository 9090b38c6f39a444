/*
 * vault-internal.h - what the files of the vault share.
 *
 * The vault's own root (vault/den.c), a tmpfs that only it sees:
 *   t  the trees as they lie on disk     m  the same, with the ids that they have outside
 *   b  blobs                             v  volumes
 *   x  the volume of this workspace      y  the same, with the ids that they have outside
 *   w, u  the workspace: the overlay     l  its layers without the top, read-only, ids as on disk
 *   k  layers of another stack, for a moment
 * Everything is opened below a descriptor of one of these.
 */
#pragma once

#include "io/timer.h"
#include "vault/known.h"
#include "vault/manifest.h"
#include "wire/vault.h"

/* A content that is in a pack (vault/pack.h). */
struct packed {
	uint8_t hash[32];
	uint64_t pack, at, size;
};

struct packs {
	int dir_fd;
	VEC(struct packed) list; /* of this workspace; the oldest first */
	int fd;                  /* the one that is being written; -1: none */
	uint64_t end;
	size_t n_before; /* in the list, without it */
};

struct blob_name {
	uint8_t hash[32];
};

struct vault {
	int trees_fd, blobs_fd, volumes_fd; /* t, b, v */
	int volume_fd;                      /* x; -1: tops lie among the trees */
	int image_fd;                       /* whose lock says that the volume is ours */
	int work_fd;                        /* w or u; -1: no mount */
	int old_fd;                         /* the other of these, that nobody needs; or -1 */
	bool place;                         /* work_fd is u */
	int lower_fd;                       /* l; -1: not mounted yet */
	struct known_table known;           /* of what is there */
	int points_fd, lock_fd;             /* blobs/p, blobs/lock */
	struct packs packs;
	VEC(struct blob_name) unsynced; /* large ones, since the last sync */
	struct manifest index;          /* how the top looked last; .top 0: nobody looked */
	enum { CLOCK_UNKNOWN, CLOCK_COARSE, CLOCK_FINE } clock; /* of the top's times: scan.h */
	bool is_alike; /* one sees the same at its number, whose record says it otherwise */
	struct manifest target; /* of a restore that was counted; .number 0: none */
	struct vault_open open; /* what is there: V_RELAYER changes it */
	bool is_open;
	uid_t uid; /* whose blobs and folders are */
	gid_t gid;

	struct loop loop;
	struct timers timers;
	struct timer idle, unpack;
	uint64_t alone_since_ms; /* nobody is there who could ask; 0: somebody is */
	struct watch listen, launcher, client;
};

/* den.c: from the host's files to those of the vault alone. */
/* `volume_fd`: a detached mount that becomes x, or -1. */
int den_enter(struct vault *v, int volume_fd, struct err *e) MUST_USE;
int den_map_ids(const struct vault *v, int userns_fd, struct err *e) MUST_USE; /* makes m and y */

/* Does anybody but us hold the lock of those who have the mount? */
bool vault_has_sandbox(const struct vault *v);

/* Writes and makes files as the one who is this inside; den_as_self() ends it. */
int den_as(const struct vault *v, uint32_t uid, uint32_t gid, struct err *e) MUST_USE;
void den_as_self(const struct vault *v);
uint32_t den_id(const struct vault *v, uint32_t inside); /* outside */
