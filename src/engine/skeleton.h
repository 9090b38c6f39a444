/*
 * skeleton.h - the fixed part of a root file system, made once and shared by all sandboxes.
 *
 * The names that every program counts on (/etc/passwd, /dev/null, /bin ...), the allow-listed
 * part of the host's /etc, and places to mount on. It lies in the run folder under a name that
 * depends on the entries it was made from, is never changed after it has that name, and may
 * vanish at any time: the next launch makes it anew.
 */
#pragma once

#include "base/err.h"

/* The skeleton for the host as it is now, as an O_PATH descriptor; made when it is not there. */
int skeleton_open(int run_fd, struct err *e) MUST_USE;
/* Its folders once more, empty, in fd: for whoever cannot write those of the skeleton itself. */
int skeleton_make_dirs(int fd, struct err *e) MUST_USE;
/* Removes all of them. Only when no sandbox lives. */
void skeleton_remove_all(int run_fd);

/* Folders of the host that are shown as they are: links were copied, folders want a mount. */
extern const char *const skeleton_system_dirs[];
extern const size_t skeleton_n_system_dirs;
