/*
 * sandbox-internal.h - between sandbox.c (its life), sandbox_build.c (its making), sandbox_verbs.c
 * (what is asked of it), sandbox_heard.c (what its monitor tells) and sandbox_end.c (its end).
 */
#pragma once

#include "core/sandbox.h"

struct sbx *sbx_new(struct core *c);
void sbx_update(struct sbx *s, uint32_t fields, struct store_call call); /* of its row */
void sbx_tell_askers(struct sbx *s, const struct channel_usage *u);      /* NULL: it has ended */
int sbx_user_of(struct sbx *s, int image_fd, struct fail *f);

/* A change: begun, then ended by what the monitor says, or by the row that tells of it. */
int sbx_change_begin(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f);
void sbx_change_end(struct sbx *s, const struct fail *f);
void sbx_change_done(struct sbx *s, enum sandbox_state state, uint32_t fields);

void sbx_build(struct sbx *s); /* host paths, workspace, walls, monitor */
void sbx_build_failed(struct sbx *s, const struct fail *f);
made_fn sbx_made;
int sbx_refuse_state(const struct sbx *s, const char *verb, struct fail *f);

void sbx_hear_no_more(struct sbx *s); /* the monitor has ended, or is taken for dead */
void sbx_end_with_work(struct sbx *s, const struct fail *f); /* frees it once its files are done */
/* The row says that it is gone. */
void sbx_gone_on_record(void *arg, const struct store_answer *a);

/* sandbox_end.c */
void sbx_end_over(struct sbx *s);
bool sbx_end_late(struct sbx *s); /* a change takes too long: true when something was done */
void sbx_kill(struct sbx *s);     /* its monitor does not answer */
const char *sbx_why_lost(const struct sbx *s);
void sbx_tell_deleters(struct sbx *s, const struct fail *f);
void sbx_drop_deleters(struct sbx *s); /* the daemon ends: nobody can be told */
void sbx_be_gone(struct sbx *s, const char *reason);
