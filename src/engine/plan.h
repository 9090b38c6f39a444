/*
 * plan.h - what the launcher is asked to build: numbers, descriptors and opaque text.
 *
 * A plan is made from a resolved spec. Its host paths are opened by whoever has the caller's
 * rights (the CLI itself; for the daemon a helper of the launcher), and only the descriptors go
 * on. The launcher never reads the text; it is used inside the walls. What runs in there is not
 * part of it: engine/command.h.
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "spec/spec.h"

enum plan_image {
	IMAGE_HOST,
	IMAGE_DIR,
	IMAGE_ROOT /* the root itself, which somebody else keeps: written to, it stays so */
};

enum plan_mount_kind {
	PLAN_EPHEMERAL,
	PLAN_RO,
	PLAN_OVERLAY,
	PLAN_TREE /* of our own store: itself, with the ids that it has on disk */
};

struct plan_mount {
	enum plan_mount_kind kind;
	int source_fd;   /* O_PATH, opened with the caller's rights; -1 for PLAN_EPHEMERAL */
	uint32_t source; /* offset in text: the host path of it */
	uint32_t at;     /* offset in text: absolute path inside */
	uint32_t uid,
	    gid; /* owner of the source: becomes the user inside where the kernel can map it */
	bool is_dir;
	bool is_read_only; /* PLAN_TREE; PLAN_RO always is */
	bool is_ready;     /* PLAN_TREE: source_fd is a detached mount that is mapped already */
};

struct plan {
	uint32_t uid, gid; /* of the user inside: commands run as it unless they name another */
	bool rootful;      /* profile: rootful */
	bool has_net;      /* net is not denied: what it sends goes to the gate */
	enum plan_image image;
	int image_fd; /* IMAGE_DIR: O_PATH. IMAGE_ROOT: a detached mount that is mapped already */
	uint32_t image_source;        /* offset in text */
	uint64_t limits[LIMIT_COUNT]; /* 0: none */
	bool named[LIMIT_COUNT];
	bool weaker[LIMIT_COUNT]; /* the caller accepts it unenforced */
	struct plan_mount mounts[FS_ENTRIES_MAX];
	size_t n_mounts;
	struct str text;
};

/* `s` is resolved. Opens host paths with the caller's rights. The same as the four below. */
int plan_make(struct plan *p, const struct spec *s, struct err *e) MUST_USE;
void plan_done(struct plan *p);

/* In steps, for a process that may not open host paths itself. */
int plan_draft(struct plan *p, const struct spec *s, struct err *e) MUST_USE;
/* The next host path without a descriptor, NULL when there is none; `which` is for plan_give(). */
const char *plan_missing(const struct plan *p, size_t *which);
/* Takes the descriptor over, also on failure: it may be no folder, or the kernel's. */
int plan_give(struct plan *p, size_t which, int fd, struct err *e) MUST_USE;
int plan_finish(struct plan *p, const struct spec *s, struct err *e) MUST_USE;

/* "agent", "root", "uid[:gid]", or a name in the image; image_fd -1: none to ask. */
int plan_ids_in(const char *user, const char *passwd, uint32_t *uid, uint32_t *gid,
                struct err *e) MUST_USE; /* passwd: the file of the image as text, or NULL */
int plan_ids(const char *user, int image_fd, uint32_t *uid, uint32_t *gid, struct err *e) MUST_USE;

static inline bool plan_is_read_only(const struct plan_mount *m)
{
	return m->kind == PLAN_RO || m->is_read_only;
}

/* By inodes of its own: read-only, and no mount that somebody else has made. */
static inline bool plan_is_shown(const struct plan_mount *m)
{
	return plan_is_read_only(m) && !m->is_ready;
}

static inline const char *plan_text(const struct plan *p, uint32_t offset)
{
	return p->text.data + offset;
}
