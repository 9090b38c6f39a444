/*
 * run.h - a plan becomes true, whole or not at all.
 *
 * All that is new is first written to a folder of ours in the folder (same file system, nobody else
 * can enter it). Then the journal says which steps follow, and each is one rename(2) that moves a
 * finished file to its place and what was there into our folder. A step that fails, or meets a file
 * that somebody changed since it was compared, is the end: everything is moved back. Who is killed
 * leaves journal and folder behind, and the next one moves everything back before it begins; unless
 * all steps were done, then they stay.
 */
#pragma once

#include "apply/journal.h"

struct apply_run {
	int root_fd, journals_fd, lock_fd; /* -1: not yet; ours */
	int stage_fd;
	struct journal journal;
	struct apply_ops ops;
};

void apply_init(struct apply_run *r); /* then apply_done() is fine */
void apply_done(struct apply_run *r);

/* The folder, and where the journals of the caller are. What was interrupted in it is undone, or
 * with `is_dry` an error. */
int apply_open(struct apply_run *r, const char *folder, const char *journals, bool is_dry,
               struct err *e) MUST_USE;
/* Our folder is made. r->ops has the steps. */
int apply_begin(struct apply_run *r, struct err *e) MUST_USE;
/* A file for the content of a step, to be written and closed by the caller. */
int apply_stage_file(struct apply_run *r, const struct apply_op *op, struct err *e) MUST_USE;
int apply_stage_link(struct apply_run *r, const struct apply_op *op, const char *target,
                     struct err *e) MUST_USE;
/* Instead of apply_commit(): our folder goes, and nothing was changed. */
void apply_abandon(struct apply_run *r);
/* All steps; or none, and -1. */
int apply_commit(struct apply_run *r, struct err *e) MUST_USE;
