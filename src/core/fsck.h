/*
 * fsck.h - do the rows and the disk say the same? And what can be mended without a loss is.
 *
 * Three looks: the keeper reads every checkpoint and every blob again (vault/verify.c), then it
 * lists what there is (census.h), then every row is held against that list. In this order, because
 * a row is there before its folder and goes after it: what the list has and no row names is
 * nobody's. A workspace that somebody has open is looked at and not touched.
 */
#pragma once

#include <jansson.h>

#include "core/core.h"

/* {"findings":[{"kind","id","problem","mended"}...],"found":N,"mended":N,"workspaces":N,...}:
 * borrowed. */
typedef void fsck_done_fn(void *arg, json_t *report, const struct fail *f);
void fsck_run(struct core *c, bool is_mending, fsck_done_fn *done, void *arg);
void fsck_close(struct core *c);
