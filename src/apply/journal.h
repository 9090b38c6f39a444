/*
 * journal.h - what is being done to a folder, so that the next one can undo it.
 *
 * It lies in a folder of the caller's own, never in the one that is changed: what is in that one
 * may have been written by anybody, and a journal says which files to move where. It is named after
 * our folder in there (APPLY_STAGE and a random word), and by that name it finds the folder.
 *
 *   caisson-apply 1 STATE STAGE FOLDER\n                        FOLDER as base64
 *   KIND NUMBER BEFORE AFTER INO_NEW INO_OLD NEEDED PATH\n     each step; PATH as base64
 */
#pragma once

#include "apply/plan.h"
#include "base/err.h"

#define JOURNAL_STAGE_SIZE 40
#define JOURNAL_FOLDER_SIZE 4096

enum journal_state {
	JOURNAL_STAGING, /* nothing was changed yet: our folder is filled */
	JOURNAL_READY,   /* steps may have been done: they are undone */
	JOURNAL_DONE,    /* all of them are done: only our folder has to go */
	JOURNAL_STATES
};

struct journal {
	enum journal_state state;
	char stage[JOURNAL_STAGE_SIZE];
	char folder[JOURNAL_FOLDER_SIZE]; /* where that is, or was */
};

/* The folder of journals, made when it is missing: nobody else may write to it. */
int journal_folder(const char *path, struct err *e) MUST_USE;
/* One at a time: until the descriptor is closed. */
int journal_lock(int folder_fd, struct err *e) MUST_USE;
/* On disk when it returns. `ops` may be NULL. */
int journal_write(int folder_fd, const struct journal *j, const struct apply_ops *ops,
                  struct err *e) MUST_USE;
int journal_remove(int folder_fd, const struct journal *j, struct err *e) MUST_USE;
int journal_read(int folder_fd, const char *stage, struct journal *out, struct apply_ops *ops,
                 struct err *e) MUST_USE;
/* What was applied last, so that the next one knows what the folder has: one line of text for a
 * key, which is any text. 1, 0 none, -1. */
int journal_last(int folder_fd, const char *key, char *out, size_t size, struct err *e) MUST_USE;
int journal_remember(int folder_fd, const char *key, const char *line, struct err *e) MUST_USE;
/* `text` ends with a NUL. */
int journal_parse(char *text, struct journal *out, struct apply_ops *ops, struct err *e) MUST_USE;
