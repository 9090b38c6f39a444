/*
 * points-internal.h - a point goes on record together with the workspace that is now at it.
 */
#pragma once

#include "store/points.h"
#include "store/store-internal.h"

/* Checks and copies it; returns how many bytes of text it has. */
int point_copy(struct store *s, struct arena *a, const struct point_row *from, struct point_row *to,
               struct err *e) MUST_USE;
int point_insert(struct db *db, const struct point_row *row, struct err *e) MUST_USE;
