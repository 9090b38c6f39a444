/*
 * schemas-approval-internal.h - a part of the tables of schemas.c: approvals.
 */
#pragma once

#include "api/schemas.h"

/* clang-format off */
static const struct member approval_members[] = {
	{ "id",         NEEDED, "text",      "ap_…" },
	{ "rev",        NEEDED, "count",     "order of its last change; after= goes on behind it" },
	{ "state",      NEEDED, "=pending|=allowed|=denied|=expired|=withdrawn", "expired: nobody answered in time, which is a no. withdrawn: nobody waits for it any more" },
	{ "kind",       NEEDED, "=net|=policy|=push|=publish|=apply|=secret|=command|=wall", "what kind of thing waits" },
	{ "tenant",     NEEDED, "text",      "whose it is" },
	{ "sandbox",    NEEDED, "text|null", "that asks" },
	{ "workspace",  NEEDED, "text|null", "in which, or of which" },
	{ "process",    NEEDED, "text|null", "the command that waits, when it is known" },
	{ "what",       NEEDED, "text",      "what is asked for, in one line; who asks the same asks this. A long one is cut, with a hash of all of it at its end" },
	{ "why",        NEEDED, "text|null", "as who asks says it" },
	{ "suggestion", NEEDED, "text|null", "what would make the question unnecessary" },
	{ "detail",     NEEDED, "{any}",     "the same for programs, by kind. `difference`, of policy: what the rules gain and lose, a line each. `cut`: `what` is not all of it; `what` in here is, and is what has to be shown. Without it the question can only be denied" },
	{ "created_ms", NEEDED, "time",      "when it was first asked" },
	{ "until_ms",   NEEDED, "time",      "when no answer is a no" },
	{ "scope",      NEEDED, "=once|=sandbox|=workspace|null", "for what it was decided" },
	{ "expires_ms", NEEDED, "time|null", "until when the decision answers who asks the same; null: it does not" },
	{ "actor",      NEEDED, "text|null", "who decided: uid:N, token:ID" },
	{ "note",       NEEDED, "text|null", "in his words" },
	{ "reason",     NEEDED, "text|null", "why it ended without a decision" },
	{ "decided_ms", NEEDED, "time|null", "when" },
	{ "applied_ms", NEEDED, "time|null", "of policy and wall: when the daemon had done it, or found that it cannot" },
};
static const struct member approval_decision[] = {
	{ "decision", NEEDED, "=allow|=deny", "" },
	{ "scope",    0, "=once|=sandbox|=workspace|null", "for these alone, or also for who asks the same later: in the same sandbox, or the same workspace; once unless given" },
	{ "for",      0, "Duration|null", "how long a decision for sandbox or workspace stands; a day unless given" },
	{ "note",     0, "text|null",     "for the record" },
	{ "seen",     0, "text|null",     "of a question that is `cut`, to allow it: the SHA-256 of `detail.what` as it was shown, in hex" },
};
static const struct member approval_list_members[] = {
	{ "approvals", NEEDED, "[Approval]", "newest first" },
	{ "next",      NEEDED, "text|null",  "the cursor of the next page; null: this was the last" },
	{ "rev",       NEEDED, "count",      "of the last change of all: after= of a stream that goes on from here" },
};
static const struct member asked_members[] = {
	{ "approval", NEEDED, "Approval", "the question; GET /v1/approvals/{id}?wait= tells the answer" },
};
/* clang-format on */
