/*
 * sandbox-internal.h - between sandbox.c (its life), sandbox_build.c (its making) and
 * sandbox_verbs.c (what is asked of it).
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
void sbx_be_gone(struct sbx *s, const char *reason);
