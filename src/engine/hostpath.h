/*
 * hostpath.h - which folders and files of the host may be shown inside.
 *
 * Judged on the opened descriptor, never on the text of a path: by walking up from it. What is
 * found on the way is compared by device and inode.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

#define HOSTPATH_RULES_MAX 128

struct hostpath_rule {
	dev_t dev;
	ino_t ino;
	bool is_above; /* it contains a forbidden folder: only itself is refused */
};

struct hostpath_rules {
	struct hostpath_rule at[HOSTPATH_RULES_MAX];
	size_t n;
};

/* Forbids the folder and all below. With `above` also what contains it: a clone of that would
 * show it, and a socket in it can be connected to even through a read-only mount. */
int hostpath_forbid(struct hostpath_rules *rules, int dir_fd, bool above, struct err *e) MUST_USE;

/* `fd` is an O_PATH descriptor. Fails closed: also when it cannot be walked up from there. */
int hostpath_check(const struct hostpath_rules *rules, int fd, struct err *e) MUST_USE;

/* It lies in /proc, /sys or another file system of the kernel's, wherever that is mounted; also
 * when that cannot be told. */
bool hostpath_is_kernels(int fd);

/* The folder that a file lies in, opened with O_PATH, and the file's name there. */
int hostpath_folder(int fd, struct err *e) MUST_USE;
int hostpath_name(int fd, char *out, size_t size, struct err *e) MUST_USE;
/* Root of a user namespace that maps these two ids, and no other rights, may look up names in it.
 */
bool hostpath_is_open_to(int dir_fd, uid_t uid, gid_t gid);
