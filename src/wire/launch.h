/*
 * launch.h - what the daemon and the launcher say to each other.
 *
 * One message is one packet of a SOCK_SEQPACKET socket: the head, a fixed struct, and where it
 * says so bytes that the launcher carries without reading. The launcher has rights and the
 * daemon has none: what comes from the daemon is hostile until launch_check_order() has seen it.
 *
 * No descriptor of the daemon's ever becomes a mount. Everybody may open / with O_PATH, and a
 * mount whose ids are mapped shows it with its owner's rights: so the launcher mounts only what
 * it opened itself, and a folder is named by the ticket that L_OPENED brought. What lies in the
 * store is named by its number there (wire/vault.h).
 *
 * News that a daemon did not read before it died are lost. The next one finds the sandboxes that
 * live by their sockets, and has L_CLEAN for the others.
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "wire/vault.h"

#define LAUNCH_TEXT_MAX (128u << 10)  /* paths inside and an id; a packet of 200 KiB still goes */
#define LAUNCH_LIMITS 10              /* spec/spec.h: limit_id */
#define LAUNCH_SLOTS 4095             /* launcher/slot.h */
#define LAUNCH_IDS_INSIDE_MAX 65534   /* engine/box.h */
#define LAUNCH_LIMIT_MAX (1ull << 56) /* of any limit: what is made of it does not wrap */
#define LAUNCH_NAME_MAX 48
#define LAUNCH_RELEASE_MAX 64
#define LAUNCH_TICKETS 1024 /* not yet used; with one more the oldest is void */

enum launch_type {
	/* daemon; each but L_READY has one answer with the same tag */
	L_MAKE,  /* launch_make, text */
	L_OPEN,  /* launch_open, path; descriptor: the client's connection, or none */
	L_CLEAN, /* launch_slot */
	L_KILL,  /* launch_kill: its monitor does not answer */
	L_SWEEP,
	L_HOST,
	L_GATE,
	L_CACHE,
	L_VAULT, /* struct vault_open; what the launcher knows better is 0 in it */
	L_LEDGER,
	L_HOOK,
	L_READY, /* the API answers */
	/* launcher */
	L_MADE,     /* launch_made; descriptor: the channel to the monitor (wire/channel.h) */
	L_OPENED,   /* launch_opened; descriptor: O_PATH */
	L_DONE,     /* launch_done: of L_CLEAN, L_KILL and L_SWEEP */
	L_HOSTED,   /* launch_host */
	L_GATED,    /* descriptor: the socket of a new child of the gate (wire/gate.h) */
	L_VAULTED,  /* descriptor: a socket to the keeper of that workspace. It hears when that dies
	             */
	L_CACHED,   /* descriptor: a stream to the package cache (wire/cache.h) */
	L_LEDGERED, /* descriptor: a socket to the writer of the ledger (wire/ledger.h) */
	L_HOOKED,   /* descriptor: a socket to the sender of webhooks (wire/hook.h) */
	L_FAILED,   /* struct err: of any */
	L_GONE,     /* launch_gone, tag 0: all of a sandbox is dead and removed */
	L_TYPES
};

struct launch_head {
	uint32_t type, len; /* len: of what follows */
	uint32_t tag;       /* the daemon's; comes back with the answer */
	uint32_t zero;
};

enum launch_mount_kind {
	LAUNCH_EPHEMERAL,
	LAUNCH_RO,
	LAUNCH_OVERLAY,
	LAUNCH_TREE, /* a tree of the store, itself; the ids on disk are those inside */
	LAUNCH_WORK, /* a workspace that is open: L_VAULT. One at most; its ids are the sandbox's */
	LAUNCH_MOUNT_KINDS
};

#define LAUNCH_READ_ONLY                                                                           \
	1u /* LAUNCH_TREE, where a sealed one is refused without it; LAUNCH_WORK                   \
	    */

struct launch_mount {
	uint32_t kind;
	uint32_t ticket; /* of the source: LAUNCH_RO, LAUNCH_OVERLAY; else 0 */
	uint32_t at;     /* offset in the text: absolute path inside */
	uint32_t flags;
	uint64_t tree; /* LAUNCH_TREE, LAUNCH_WORK: its number; else 0 */
};

#define LAUNCH_KEPT 1u    /* lives on without a client */
#define LAUNCH_ROOTFUL 2u /* profile: rootful */
#define LAUNCH_NET 4u     /* it has a network, whose sockets its monitor keeps for the gate */
#define LAUNCH_MAKE_FLAGS (LAUNCH_KEPT | LAUNCH_ROOTFUL | LAUNCH_NET)

struct launch_make {
	uint64_t limits[LAUNCH_LIMITS]; /* 0: none */
	uint32_t named, weaker;         /* bit per limit */
	uint32_t flags;
	uint32_t uid, gid; /* the command's ids inside */
	uint32_t image;    /* ticket of a folder; 0 and no image_tree: the host's system */
	uint32_t id;       /* offset in the text: what the sandbox calls itself */
	uint32_t n_mounts;
	uint64_t image_tree; /* a sealed tree; 0: none */
	uint64_t root; /* instead of an image: a workspace that is open, with the ids of the one of
	                * LAUNCH_WORK (vault_open.ids_of), is the root itself; 0: none */
	struct launch_mount mounts[FS_ENTRIES_MAX];
	uint32_t text_len;
	uint32_t zero;
	/* then the text: strings, each with its NUL */
};

enum launch_want { LAUNCH_ANY, LAUNCH_DIR, LAUNCH_FILE, LAUNCH_WANTS };

struct launch_open {
	uint32_t want;
	uint32_t path_len; /* with its NUL */
			   /* then the path, absolute */
};

struct launch_slot {
	int32_t slot;
};

/* Both as L_MADE said: a slot alone may be another sandbox's by now. */
struct launch_kill {
	int32_t slot;
	char name[LAUNCH_NAME_MAX];
};

struct launch_made {
	int32_t slot;
	int32_t pid;                /* of the monitor */
	char name[LAUNCH_NAME_MAX]; /* of its socket, below sb/ of the run folder */
};

struct launch_opened {
	uint32_t ticket; /* good for one L_MAKE */
	uint32_t uid, gid;
	uint32_t is_dir;
};

struct launch_done {
	uint32_t count; /* sandboxes found dead; of L_KILL: monitors that were sent SIGKILL */
};

enum launch_controller {
	LAUNCH_CPU,
	LAUNCH_MEMORY,
	LAUNCH_PIDS,
	LAUNCH_FREEZER,
	LAUNCH_IO,
	LAUNCH_CONTROLLERS
};

struct launch_host {
	uint32_t is_root;
	uint32_t landlock_abi;           /* 0: none */
	uint32_t net_error;              /* LAUNCH_NET does not work here: the errno; 0: it does */
	uint32_t by[LAUNCH_CONTROLLERS]; /* version of the cgroup that does it, 1 or 2; 0: none */
	char release[LAUNCH_RELEASE_MAX];
};

struct launch_gone {
	int32_t slot;
	int32_t pid;
	int32_t status; /* of waitpid: how the monitor ended */
	char name[LAUNCH_NAME_MAX];
};

#define LAUNCH_BYTES_MAX (sizeof(struct launch_make) + LAUNCH_TEXT_MAX)

struct launch_packet {
	struct launch_head head;
	union {
		struct launch_make make;
		struct launch_open open;
		struct launch_slot slot;
		struct launch_kill kill;
		struct vault_open vault;
		struct launch_made made;
		struct launch_opened opened;
		struct launch_done done;
		struct launch_host host;
		struct launch_gone gone;
		struct err err;
		unsigned char bytes[LAUNCH_BYTES_MAX];
	};
};

/* A packet of `n` bytes that came with `n_fds` descriptors: shape, ranges, offsets. Afterwards
 * every field may be used, and every offset is the start of a string. */
int launch_check_order(const struct launch_packet *p, size_t n, size_t n_fds,
                       struct err *e) MUST_USE;
int launch_check_answer(const struct launch_packet *p, size_t n, size_t n_fds,
                        struct err *e) MUST_USE;

static inline const char *launch_text(const struct launch_packet *p)
{
	return (const char *)p->bytes + sizeof p->make;
}

static inline const char *launch_path(const struct launch_packet *p)
{
	return (const char *)p->bytes + sizeof p->open;
}
