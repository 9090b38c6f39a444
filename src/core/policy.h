/*
 * policy.h - the network rules of sandboxes in the daemon: who may ask for which, what the gate
 * gets, what it would decide, and rules that change while the sandbox lives.
 *
 * A change is told to the gate first. What it refuses did not happen; what it took is in the row,
 * so that the sandbox has it again after a restart or a replacement.
 */
#pragma once

#include <jansson.h>

#include "core/sandbox.h"
#include "spec/rules.h"

/* "preset:pip" and "set:NAME" become the hosts that the operator's config has for them. */
int policy_expand(const struct core *c, struct spec *spec, struct fail *f) MUST_USE;
/* Ranges that only the operator may open, unless the config grants them to everybody. */
int policy_admit(const struct core *c, const struct net_spec *net, bool is_operator,
                 struct fail *f) MUST_USE;

/* The rules document of wire/gate.h for these rules. */
int policy_document(const struct core *c, const struct net_spec *net, struct str *out,
                    struct err *e) MUST_USE;

/* What the rules say about a host (a name, or an address) and a port (0: 443). */
struct policy_why {
	struct verdict verdict;
	char rule[GATE_RULE_SIZE];      /* that decides; "": none */
	char narrowest[GATE_RULE_SIZE]; /* that would allow it; "": it is, or none would */
};
int policy_why(const struct sbx *s, const char *host, uint16_t port, struct policy_why *out,
               struct fail *f) MUST_USE;

/* What became of a change. */
struct policy_changed {
	uint32_t generation; /* of the rules; 0: they hold from the next start on */
	uint32_t closed;     /* open connections that they do not allow */
	bool is_looser;
};
typedef void policy_done_fn(void *arg, struct sbx *s, const struct policy_changed *r,
                            const struct fail *f); /* f NULL: it worked */
/* `net` is the value of that key of a spec. Who is not the operator may only take away. */
int policy_change(struct sbx *s, const json_t *net, bool is_operator, policy_done_fn *done,
                  void *arg, struct fail *f) MUST_USE;
/* Looser rules, asked for by who may not just have them: a person decides (approval.h), and then
 * they are changed. Only what policy_change() refused with FAIL_APPROVAL_REQUIRED. */
/* The `net` that the sandbox would have, as its spec is printed; *out is the caller's, NULL: none.
 */
int policy_next(const struct sbx *s, const json_t *net, json_t **out, struct fail *f);
int policy_ask(struct sbx *s, const json_t *net, const char *why, char id[ID_SIZE],
               struct fail *f) MUST_USE;
struct approval_row;
void policy_allowed(struct core *c, const struct approval_row *row);
/* Of one that is about to be freed: whoever waits for a change is told. */
void policy_close(struct sbx *s);
