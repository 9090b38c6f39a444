/*
 * netdoc.h - the network rules of one sandbox, and what the operator says about those of all: names
 * that stand for several hosts, ranges that may be opened, the document that the gate decides by.
 */
#pragma once

#include "spec/config.h"

struct json_t;

/* The hosts that "preset:NAME" or "set:NAME" stands for are added to `out`: 1; 0: it is not mine,
 * and stays; -1. */
typedef int net_hosts_fn(void *arg, enum net_entry kind, const char *name, struct text_list *out,
                         struct err *e);
/* In allow, deny and ask; texts are in the arena, each host is there once. */
int net_expand(struct spec *s, net_hosts_fn *hosts, void *arg, struct err *e) MUST_USE;
/* By the config alone: what it does not have is an error. */
int net_expand_config(struct spec *s, const struct config_net *c, struct err *e) MUST_USE;

/* A range that names special-purpose addresses (special.h) is the operator's to open: asked for by
 * himself, or within what the config grants to everybody. Metadata is nobody's. And the rules files
 * of mocks are there, and are some. */
int net_admit(const struct net_spec *net, const struct config_net *c, bool is_operator,
              struct err *e) MUST_USE;

/* The rules document of wire/gate.h. What was admitted is granted. `held`: members of it
 * (core/secret.h), whose reference is taken; NULL: none. */
int net_document(const struct net_spec *net, const struct config_net *c, struct json_t *held,
                 struct str *out, struct err *e) MUST_USE;
