/*
 * policy.h - the network rules of sandboxes: who may ask for which, the document that the gate
 * gets, and what it would decide.
 */
#pragma once

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
