/*
 * approval-internal.h - between approval.c, the queue, and approval_text.c, its words.
 */
#pragma once

#include "core/approval.h"
#include "core/ledger.h"

/* Foreign text as it may stand in a line; of a long one the beginning, and a hash. NULL of none. */
const char *approval_plain(struct arena *a, const char *text);
/* The line that is approved. When it is cut, `detail` says so, and has the whole if that can be
 * kept. */
const char *approval_what(struct arena *a, const struct approval_ask *ask, json_t *detail);
/* -1: the line is cut, and who says yes does not prove by `seen` (a SHA-256, or NULL) that the
 * whole was shown. */
int approval_was_seen(const struct approval_row *row, const char *seen, struct fail *f);
const char *approval_copy(struct arena *a, const char *text); /* NULL of none */
void approval_copy_row(struct arena *a, struct approval_row *to, const struct approval_row *from);

/* For the ledger. A sandbox that is gone has no chain any more. */
struct ledger_who approval_who(const struct core *c, const struct approval_row *r);
json_t *approval_record(const struct approval_row *r);
