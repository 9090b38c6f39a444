/*
 * notes.h - what is said to the ledger, and in which words: one function for each thing that
 * happens.
 *
 * Sandboxes of our own (core/service.h) are not told of: what they did is, by whoever wanted it.
 */
#pragma once

#include "core/ledger.h"
#include "core/process.h"
#include "core/workspace.h"

struct gate_record;

void note_started(struct core *c);
void note_recovered(struct core *c);
void note_stopped(struct core *c);

void note_sandbox_created(const struct sbx *s);
void note_sandbox_state(const struct sbx *s); /* the one that it has; again: nothing */

void note_exec_started(const struct px *p);
/* A program that was started by what it started. */
void note_ran(const struct px *p, const struct channel_ran *ran);
/* Secrets were found in what it wrote, and masked. */
void note_masked(const struct px *p, const struct channel_masked *masked);
/* With hashes of what it wrote; of much output they come later, in a record of their own. */
void note_exec_ended(const struct px *p);

void note_net(const struct sbx *s, const char *process, const struct gate_record *r);
/* A secret went along with it. */
void note_use(const struct sbx *s, const char *process, const struct gate_record *r,
              ledger_done_fn *done, void *arg);
void note_policy(const struct sbx *s, const char *actor, uint64_t generation, bool is_looser);

/* Takes `data`, or NULL. */
void note_workspace(const struct wsx *w, enum ledger_kind kind, const char *process, json_t *data);
/* The same, and who wanted it. */
void note_workspace_by(const struct wsx *w, enum ledger_kind kind, const char *actor, json_t *data);
