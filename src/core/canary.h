/*
 * canary.h - canaries (wire/canary.h): placed inside sandboxes that name one in `creds`, and heard
 * of when one is found where it has no business to be.
 *
 * A canary is no secret: its value is in the row, in the rules of the gate, and here. A file of one
 * is written when its sandbox begins, and not into a workspace, which would carry it out.
 */
#pragma once

#include "core/sandbox.h"
#include "spec/bind.h"
#include "wire/canary.h"

struct gate_record;

/* Its file can be placed there; of a secret: 0. */
int canary_admit(const struct sbx *s, const struct bind *b, struct fail *f) MUST_USE;
/* The sandbox runs: files are written; nobody waits for that. */
void canary_plant(struct sbx *s);
/* Of a connection or a question; `process` made it, or "". */
void canary_note_net(const struct sbx *s, const char *process, const struct gate_record *r);

/* All of a tenant, to look for; NULL: there is none. The caller's. */
struct canaries *canary_all(struct core *c, const char *tenant);
