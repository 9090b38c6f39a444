/*
 * journal.h - what is being done to a folder, so that the next one can undo it.
 *
 * It lies in a folder of the caller's own, never in the one that is changed: what is in that one
 * may have been written by anybody, and a journal says which files to move where. It names our
 * folder in there (APPLY_STAGE and a random word), and by that name a folder finds its journal.
 *
 *   caisson-apply 1 STATE STAGE\n
 *   KIND NUMBER BEFORE AFTER INO_NEW INO_OLD NEEDED PATH\n     each step; PATH as base64
 */
#pragma once

#include "apply/plan.h"
#include "base/err.h"

#define JOURNAL_STAGE_SIZE 40

enum journal_state {
	JOURNAL_STAGING, /* nothing was changed yet: our folder is filled */
	JOURNAL_READY,   /* steps may have been done: they are undone */
	JOURNAL_DONE,    /* all of them are done: only our folder has to go */
	JOURNAL_STATES
};

struct journal {
	enum journal_state state;
	char stage[JOURNAL_STAGE_SIZE];
};

/* The folder of journals, made when it is missing: nobody else may write to it. */
int journal_folder(const char *path, struct err *e) MUST_USE;
/* One at a time: until the descriptor is closed. */
int journal_lock(int folder_fd, struct err *e) MUST_USE;
/* On disk when it returns. `ops` may be NULL. */
int journal_write(int folder_fd, const struct journal *j, const struct apply_ops *ops,
                  struct err *e) MUST_USE;
int journal_remove(int folder_fd, const struct journal *j, struct err *e) MUST_USE;
/* That of a folder with this stage: 1, 0 none, -1. */
int journal_read(int folder_fd, const char *stage, struct journal *out, struct apply_ops *ops,
                 struct err *e) MUST_USE;
/* `text` ends with a NUL. */
int journal_parse(char *text, struct journal *out, struct apply_ops *ops, struct err *e) MUST_USE;
