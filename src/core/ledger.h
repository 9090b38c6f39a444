/*
 * ledger.h - the daemon's way to the ledger (wire/ledger.h): what happened is said here.
 *
 * What was said is in a file at once (spool.h), and some milliseconds later in a socket that
 * survives us, with what else was said meanwhile; what somebody waits for, or no file has, goes at
 * once. Until the writer has acknowledged it, it is kept, and said again to the next writer when
 * this one dies, and by the next daemon when we die too; numbers keep it from being recorded twice.
 *
 * When the writer takes nothing, because the disk is full or it does not start, what waits here has
 * a bound. Half of it, and nothing new is begun: ledger_admit() refuses commands and sandboxes. All
 * of it, and what comes from sandboxes that run is counted; a record says how many, afterwards.
 */
#pragma once

#include <jansson.h>

#include "core/core.h"
#include "wire/ledger.h"

#define LEDGER_WAITING_MAX (32u << 20) /* bytes */
#define LEDGER_COMMIT_MS 10000         /* then who waits for the disk is told that it failed */

/* NULL or "": none; of the actor: that of the core, if there is one. */
struct ledger_who {
	const char *tenant, *sandbox, *workspace, *process, *actor;
};

int ledger_open(struct core *c, struct err *e) MUST_USE;
void ledger_close(struct core *c); /* what was said is in the socket, if the writer reads at all */

/* Takes `data`, an object. */
void ledger_note(struct core *c, enum ledger_kind kind, const struct ledger_who *who, json_t *data);

/* The same, and somebody waits until it is on disk: called once, not before this returns. */
typedef void ledger_done_fn(void *arg, bool is_on_disk);
void ledger_commit(struct core *c, enum ledger_kind kind, const struct ledger_who *who,
                   json_t *data, ledger_done_fn *done, void *arg);

/* May something begin that has to be recorded? */
int ledger_admit(const struct core *c, struct fail *f) MUST_USE;

/* ---- readers ---- */

/* Told when there are new records; embedded in its owner. */
struct ledger_watch {
	struct ledger_watch *next;
	void (*grew)(struct ledger_watch *w);
};
void ledger_watch_add(struct core *c, struct ledger_watch *w);
void ledger_watch_remove(struct core *c, struct ledger_watch *w);
uint64_t ledger_last(const struct core *c); /* the last record that the writer told of */

/* The file with record `seq`, or the first behind it. `fd` is the callee's; -1: it failed. `next`
 * is what the file after it begins with, 0: there is none. Called once, not before this returns,
 * unless it is cancelled. */
typedef void ledger_file_fn(void *arg, int fd, uint64_t first, uint64_t next);
void ledger_file(struct core *c, uint64_t seq, ledger_file_fn *done, void *arg);
/* What was promoted of a workspace, as an envelope that the ledger has signed (wire/attest.h): a
 * file too. `record` 0 is the last promotion. Without a descriptor `first` is 0 when there is none.
 */
void ledger_attest(struct core *c, const struct ledger_who *who, uint64_t record,
                   ledger_file_fn *done, void *arg);
void ledger_file_cancel(struct core *c, const void *arg);
