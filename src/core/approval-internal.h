/*
 * approval-internal.h - between approval.c, the queue, and approval_text.c, its words.
 */
#pragma once

#include "core/approval.h"
#include "core/ledger.h"

/* Foreign text as it may stand in a line; NULL of none. */
const char *approval_plain(struct arena *a, const char *text);
const char *approval_copy(struct arena *a, const char *text); /* NULL of none */
void approval_copy_row(struct arena *a, struct approval_row *to, const struct approval_row *from);

/* For the ledger. A sandbox that is gone has no chain any more. */
struct ledger_who approval_who(const struct core *c, const struct approval_row *r);
json_t *approval_record(const struct approval_row *r);
