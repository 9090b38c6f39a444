/*
 * program.h - which programs of the host we execute, and what they learn of our environment.
 *
 * A program is trusted when nobody but root, the caller, or the owner of the program that is
 * running could have put it there: owner and mode of the file and of every folder above it, each
 * looked at by descriptor on the way from the root, without links. Then the path that comes out can
 * be executed: only those three could make it lead elsewhere. A folder that everybody may write is
 * accepted when it is sticky, as /tmp is, and group write when the group is the owner's own (the
 * same number as the owner's, or root's).
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"

/* `out` gets the path without links. ERR_NOT_FOUND: there is none; ERR_DENIED: others could write
 * it. */
int program_check(const char *path, char out[PATH_TEXT_MAX], struct err *e) MUST_USE;
/* A folder of programs, by the same rules. */
bool program_is_safe_dir(const char *path);
/* One of ours: beside the program that is running, or in its ../libexec/caisson; checked. */
int program_find(const char *name, char out[PATH_TEXT_MAX], struct err *e) MUST_USE;

/* Wipes every variable that our daemon has no use for, in place: /proc shows the same memory. The
 * variable `but` is kept as well; NULL: none. */
void program_clean_environment(const char *but);
