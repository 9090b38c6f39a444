/*
 * approval.h - what waits for a person: one queue for everything that may not happen unasked.
 *
 * Who asks is told once: allowed, denied, or that nobody answered in time, which is a no. The same
 * `what` of the same sandbox (or of the same workspace, when it is no sandbox that asks) is one
 * question, however many ask it, unless each of them wants an answer of its own (`is_single`). A
 * decision for the sandbox or the workspace stands until its time is over, and answers the next who
 * asks the same at once.
 *
 * A decision is in the ledger, on disk, before it is in the store, and in the store before anybody
 * acts by it. One that was made, was too late, or came for a question that nobody asks any more
 * changes nothing.
 *
 * A daemon that dies leaves questions in the store. The next one has them again: those that last
 * wait on; others wait for who asked to ask again (a monitor does), and are withdrawn when nobody
 * does.
 */
#pragma once

#include <jansson.h>

#include "core/core.h"
#include "store/approvals.h"

#define APPROVAL_MS 300000          /* until no answer is a no, unless who asks says otherwise */
#define APPROVAL_MS_MAX 604800000   /* a week */
#define APPROVAL_STANDS_MS 86400000 /* of a decision for more than once that names no time */
#define APPROVALS_PER_SANDBOX 64    /* as many as its gate holds */
#define APPROVALS_PER_TENANT 512

/* Some kinds we act on ourselves when they are allowed (policy, wall): they last, are decided for
 * once, and are done also when the daemon died in between. Such a function is called when the
 * decision is on record, and says approval_applied() when it is done, or came to nothing. */
typedef void approval_effect_fn(struct core *c, const struct approval_row *row);
void approval_applied(struct core *c, const char *id);

struct approval_ask {
	enum approval_kind kind;
	const char *tenant;
	const char *sandbox, *workspace, *process; /* NULL: none */
	/* One canonical line that says it all: "connect to example.org:443". What cannot be shown
	 * is escaped; of a very long one the rest is hashed, and the whole is in the detail. */
	const char *what;
	const char *why;        /* in the asker's words, or NULL */
	const char *suggestion; /* what would make the question unnecessary, or NULL */
	const json_t *detail;   /* object, by kind; or NULL */
	uint64_t timeout_ms;    /* 0: APPROVAL_MS */
	bool is_lasting;        /* stays, also when nobody waits */
	bool is_single;         /* joins none but one with the same `detail` */
	bool is_cut;            /* `what` is not all of it, and nobody has the rest: never a yes */
};

/* `row` is borrowed for the time of the call. */
typedef void approval_done_fn(void *arg, const struct approval_row *row);
bool approval_is_allowed(const struct approval_row *row);
json_t *approval_json(const struct approval_row *row); /* as the API has it */

int approvals_open(struct core *c, struct err *e) MUST_USE; /* those that the store has */
void approvals_ready(struct core *c);                       /* what was allowed is done */
void approvals_close(struct core *c);                       /* tells nobody */

/* `done` is called once, not before this returns, unless it is cancelled; NULL: nobody waits, and
 * it has to be a lasting one. `id` is that of the question, or of the decision that covers it.
 * -1: it was not asked, and the answer is no: too many wait already, or it makes no sense. */
int approval_ask(struct core *c, const struct approval_ask *ask, approval_done_fn *done, void *arg,
                 char id[ID_SIZE], struct fail *f) MUST_USE;
/* Whoever waits with this `arg` (for an answer, or for a decision) does not any more. A question
 * that nobody waits for is withdrawn, unless it is a lasting one. */
void approval_cancel(struct core *c, const void *arg);
/* The sandbox is gone, and what it asks. */
void approvals_of_gone(struct core *c, const char *sandbox);
/* The rules of a sandbox have changed: what was asked about the old ones shows another difference
 * than an answer would make. */
void approvals_of_changed(struct core *c, const char *sandbox);

struct approval_answer {
	const char *id;
	const char *tenant; /* NULL: of any */
	bool is_allowed;
	enum approval_scope scope;
	uint64_t for_ms;   /* how long it stands; 0: APPROVAL_STANDS_MS. Only for more than once */
	const char *note;  /* or NULL */
	const char *seen;  /* SHA-256 of the whole text, of a question whose line is cut; or NULL */
	const char *actor; /* who decides */
};
/* f NULL: it is decided like that, now or before. Called once, not before approval_decide()
 * returns. */
typedef void approval_decided_fn(void *arg, const struct approval_row *row, const struct fail *f);
/* -1: not found; or FAIL_CONFLICT: it was decided otherwise, expired or withdrawn, and stays so. */
int approval_decide(struct core *c, const struct approval_answer *answer, approval_decided_fn *done,
                    void *arg, struct fail *f) MUST_USE;

/* One that waits, also when the store does not know yet; NULL: there is none. */
const struct approval_row *approval_find(const struct core *c, const char *id);

/* Told when something in the store is not as it was; embedded in its owner. */
struct approval_watch {
	struct approval_watch *next;
	void (*changed)(struct approval_watch *w);
};
void approval_watch_add(struct core *c, struct approval_watch *w);
void approval_watch_remove(struct core *c, struct approval_watch *w);
