/*
 * changed.h - which files a point of a workspace changed, for the ledger.
 *
 * The keeper compares the point with the one before it, which nobody waits for: both stay as they
 * are. How many were added, changed, deleted, renamed, or have other rights is counted; of so many
 * as a record has room for, the names are told.
 */
#pragma once

#include <jansson.h>

#include "core/workspace.h"

#define CHANGED_FILES_MAX 5000    /* of a point with more only their number is told */
#define CHANGED_NAMES_MAX 100     /* told by name, */
#define CHANGED_NAMES_BYTES 16384 /* as long as they have room */

/* Within an operation: it has just been made. `process`: by which command; or NULL. */
void changed_note(struct wsx *w, const struct point_row *point, const char *process);

/* The daemon ends: what the keeper has not told by now nobody is told. */
void changed_close(struct wsx *w);

/* What V_CHANGES wrote, as data of a record. */
json_t *changed_data(const char *lines, size_t n);
