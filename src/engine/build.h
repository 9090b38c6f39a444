/*
 * build.h - the state shared by the steps that run inside, before the root is changed.
 */
#pragma once

#include "base/err.h"
#include "engine/box.h"

struct build {
	const struct box *box;
	struct inside_io io;
	int skeleton_fd; /* engine/skeleton.h, by inodes of this sandbox's own */
	int layer_fd; /* the skeleton itself, which all sandboxes share: a lower layer, no mount */
	int empty_fd; /* a folder of the scratch that stays empty: the second lower layer */
	int nodes_fd; /* device nodes, to be cloned one by one: engine/dev.h */
	int scratch_fd; /* the one bounded tmpfs: every writable place lies in it */
	int root_fd;    /* the root to be */
	uid_t uid;      /* of files that belong to nobody in particular, inside */
	gid_t gid;
	unsigned int n_dirs; /* names for folders of the scratch */
	uint32_t proved;     /* walls: engine/proof.h */
};

/* nesting.c: kinds of namespaces that nobody inside may make. */
#define NESTING_KINDS 8
extern const char *const nesting_kinds[NESTING_KINDS];
int nesting_bound_watches(struct build *b, struct err *e) MUST_USE;
int nesting_forbid(struct build *b,
                   struct err *e) MUST_USE; /* all but those of the first process */
int nesting_forbid_others(struct build *b, struct err *e) MUST_USE;

/* root.c: the scratch, the root file system, the switch to it. */
int root_scratch(struct build *b, struct err *e) MUST_USE;
int root_skeleton(struct build *b, struct err *e) MUST_USE;
int root_system(struct build *b, struct err *e) MUST_USE;
/* A tree that can be a lower layer or a mount: a mapped clone of the launcher's, or the folder that
 * plan_fd is, as seen here. */
int root_source(struct build *b, int tree_fd, int plan_fd, struct err *e) MUST_USE;
int root_image(struct build *b, struct err *e) MUST_USE;
int root_folders(struct build *b, struct err *e) MUST_USE;
int root_resolver(struct build *b, struct err *e) MUST_USE; /* whom names are asked of */
int root_mounts(struct build *b, struct err *e) MUST_USE;
int root_door(struct build *b, struct err *e) MUST_USE;  /* self.sock of a kept sandbox */
int root_trust(struct build *b, struct err *e) MUST_USE; /* room for a CA: engine/trust.h */
int root_pivot(struct build *b, struct err *e) MUST_USE;
int root_leave(struct build *b, struct err *e) MUST_USE; /* the host's, now below ours */

/* show.c: what is shown read-only, by inodes of its own. */
int show_host_dir(struct build *b, int host_fd, const char *name, int target_fd,
                  struct err *e) MUST_USE;
int show_mount(struct build *b, size_t i, int target_fd, struct err *e) MUST_USE;

/* procfs.c, dev.c: the two kernel file systems, and what stands for /sys. */
int procfs_make(struct build *b, struct err *e) MUST_USE;
int procfs_masks_hold(struct err *e) MUST_USE; /* in the new root */
int sysfs_make(struct build *b, struct err *e) MUST_USE;
int dev_take_nodes(struct build *b, struct err *e) MUST_USE;
int dev_make(struct build *b, struct err *e) MUST_USE;

#define PLACE_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define PLACE_READ_ONLY (PLACE_SAFE | MOUNT_ATTR_RDONLY)

/* place.c: names inside the root to be. None of them follows a link out of it. */

/* Opens a folder that the walls need, made if absent. A link or file there refuses the image. */
int place_dir(struct build *b, const char *path, mode_t mode, struct err *e) MUST_USE;
/* The mount point of an fs entry, with its parents; links are resolved inside the root. */
int place_target(struct build *b, const char *path, bool is_dir, struct err *e) MUST_USE;
/* A new empty folder of the scratch that can be mounted or be an overlay's upper. */
int place_scratch(struct build *b, mode_t mode, uid_t uid, gid_t gid, struct err *e) MUST_USE;
/* Mounts a new empty folder of the scratch on target_fd. */
int place_fresh(struct build *b, int target_fd, mode_t mode, uid_t uid, gid_t gid,
                struct err *e) MUST_USE;
/* Attributes for a mount of the host's; 0 or -errno. */
int place_restrict(int tree_fd, uint64_t attrs, bool recursive);
/* Mounts a clone of `path` (seen on the host's side) on target_fd, with these attributes. */
int place_clone(int source_dirfd, const char *path, int target_fd, uint64_t attrs,
                struct err *e) MUST_USE;
/* Shows a folder read-only on target_fd by inodes of its own: watches, locks, leases, sockets and
 * FIFOs of the folder itself stay out of reach (docs/decisions/0056-own-inodes.md). Where overlay
 * cannot take the folder (mounts of the host below it, FAT) it is a clone, and *is_own false.
 * Returns the mount. */
struct place_shown {
	bool is_own;       /* set */
	bool keeps_inodes; /* numbers of files are those of the folder: git compares them */
};
int place_show(struct build *b, int lower_fd, int target_fd, struct place_shown *how,
               struct err *e) MUST_USE;
/* Mounts the overlay of lower_fd and a new upper in the scratch on target_fd; returns it. */
struct place_owner {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};
int place_overlay(struct build *b, int lower_fd, int target_fd, struct place_owner owner,
                  struct err *e) MUST_USE;
/* The same with an upper that holds something already. */
int place_layers(struct build *b, int lower_fd, int upper_fd, int target_fd,
                 struct err *e) MUST_USE;
