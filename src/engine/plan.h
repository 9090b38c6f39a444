/*
 * plan.h - what the launcher is asked to build: numbers, descriptors and opaque text.
 *
 * A plan is made from a resolved spec by whoever has the caller's rights (the CLI now, the
 * daemon later): host paths are opened there, with the caller's own uid and groups, and only
 * the descriptors go on. The launcher never reads the text; it is used inside the walls.
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "spec/spec.h"

enum plan_image { IMAGE_HOST, IMAGE_DIR };

enum plan_mount_kind { PLAN_EPHEMERAL, PLAN_RO, PLAN_OVERLAY };

struct plan_mount {
	enum plan_mount_kind kind;
	int source_fd; /* O_PATH, opened by the caller; -1 for PLAN_EPHEMERAL */
	uint32_t at;   /* offset in text: absolute path inside */
	uint32_t uid,
	    gid; /* owner of the source: becomes the user inside where the kernel can map it */
	bool is_dir;
};

/* Strings one after the other, each with its NUL. */
struct plan_list {
	uint32_t first; /* offset in text */
	uint32_t count;
};

struct plan {
	uint32_t uid, gid; /* the command's ids inside */
	bool rootful;      /* profile: rootful */
	bool is_tty;       /* own pty for the command */
	bool has_stdin;    /* else /dev/null */
	bool wants_usage;  /* the end report says what was used and started */
	enum plan_image image;
	int image_fd;                 /* IMAGE_DIR: O_PATH */
	uint64_t limits[LIMIT_COUNT]; /* 0: none */
	bool named[LIMIT_COUNT];
	bool weaker[LIMIT_COUNT]; /* the caller accepts it unenforced */
	uint64_t timeout_ms;      /* of this command; 0: none */
	struct plan_mount mounts[FS_ENTRIES_MAX];
	size_t n_mounts;
	struct plan_list argv, env;
	uint32_t cwd;        /* offset in text */
	uint16_t rows, cols; /* of the pty */
	struct str text;
};

/* What the caller adds to the spec for one command. */
struct plan_command {
	char *const *argv; /* NULL-terminated */
	const char *cwd;   /* NULL: /work, else the first writable fs entry, else / */
	bool is_tty, has_stdin, wants_usage;
	uint64_t timeout_ms;
	uint16_t rows, cols;
};

/* `s` is resolved. Opens host paths with the caller's rights. */
int plan_make(struct plan *p, const struct spec *s, struct plan_command c, struct err *e) MUST_USE;
void plan_done(struct plan *p);

static inline const char *plan_text(const struct plan *p, uint32_t offset)
{
	return p->text.data + offset;
}

/* The strings of a list as argv: `out` has room for count + 1. */
void plan_strings(const struct plan *p, struct plan_list list, char **out);
