/*
 * gate.h - the gate of a sandbox that has a network: who starts its child, what that decides by,
 * and what comes back (wire/gate.h). The monitor keeps everything; here is who gets it going.
 *
 *   launcher ── a socket ─▷ us ── GATE, RULES ─▷ monitor ── START ─▷ child
 *
 * A child that dies is replaced: the monitor says GATELESS, and we ask for another one. A sandbox
 * is made when a child has taken its rules. Later nothing is open while there is none: connections
 * wait.
 */
#pragma once

#include "core/sandbox.h"
#include "store/approvals.h"
#include "wire/gate.h"

/* With the order to make its walls: the document is written, the launcher is asked. */
void gate_begin(struct sbx *s);
int gate_possible(const struct sbx *s,
                  struct fail *f) MUST_USE; /* did that work, as far as we know? */
void gate_linked(struct sbx *s);            /* the monitor can be told now */
void gate_found(struct sbx *s);             /* after a restart of ours: it was linked to others */
bool gate_is_up(const struct sbx *s);       /* its rules hold; or it has no network */
void gate_close(struct sbx *s);             /* its monitor says no more */

/* spec.net has changed: `done` hears whether those rules hold now, or why the old ones stay; NULL:
 * nobody will ever say. */
typedef void gate_ruled_fn(void *arg, const struct gate_ruled *r);
int gate_send_rules(struct sbx *s, gate_ruled_fn *done, void *arg, struct fail *f) MUST_USE;
/* Something in its document is not as it was: another one. What it makes of it is in the journal.
 */
void gate_renew(struct sbx *s);
void gate_took(struct sbx *s, uint64_t at); /* records up to this one are stored */
int gate_answer(struct sbx *s, uint64_t ask, bool is_allowed); /* 0 or -errno */

/* The canonical words of a question (approval.h), and what would make it unnecessary. */
enum approval_kind gate_words(const struct gate_ask *a, struct str *what, struct str *hint);
bool gate_words_are_cut(const struct gate_ask *a); /* the gate sent less than all of the request */
/* What was last asked about a host, or what stands for it; -1: nothing. */
struct approval_row;
int gate_asked(struct sbx *s, const char *name, uint16_t port, struct arena *a,
               struct approval_row *out) MUST_USE;
/* By which a connection that somebody was asked about was decided; "": not that we know. */
void gate_approval_of(struct sbx *s, const struct gate_record *r, char id[ID_SIZE]);
void gate_asks_close(struct sbx *s); /* whatever it holds, nobody waits for here */

/* ---- for link.c ---- */
void gate_on_less(struct sbx *s);
void gate_on_ruled(struct sbx *s, const void *bytes, size_t n);
void gate_on_net(struct sbx *s, uint32_t num, const void *bytes, size_t n);
void gate_on_ask(struct sbx *s, const void *bytes, size_t n);
void gate_on_unask(struct sbx *s, const void *bytes, size_t n);
