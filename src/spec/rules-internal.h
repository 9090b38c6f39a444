/*
 * rules-internal.h - what the files of the rules share: who covers whom.
 */
#pragma once

#include "spec/opts.h"
#include "spec/rules.h"

/* The name on that port; port 0 of a rule is every port. */
bool host_covers(const struct host_rule *h, const char *name, uint16_t port);
/* Every name and port of `inner`. */
bool host_contains(const struct host_rule *outer, const struct host_rule *inner);
/* Some name and port of both. */
bool host_meets(const struct host_rule *a, const struct host_rule *b);
/* A rule of the list that covers it; one that names the port comes first. NULL: none. */
const struct host_rule *hosts_find(const struct host_rules *l, const char *name, uint16_t port);

struct host_rule host_compile(struct arena *a, const char *text); /* that check_host() took */
/* As http_target_normal() would write it. */
const char *path_compile(struct arena *a, const char *path);

/* rules_creds.c: an entry of the document; then of all, what is asked of it later. */
extern const struct opt_type opt_doc_creds;
void creds_done(struct cred_list *l);

/* Of a text that check_cidr() has taken, and that lives as long. */
struct range_rule range_compile(const char *text);
bool range_covers(const struct range_rule *r, const struct rules_addr *a);
bool range_contains(const struct range_rule *outer, const struct range_rule *inner);
const struct range_rule *ranges_find(const struct range_rules *l, const struct rules_addr *a);

/* The rule of http that restricts this name; NULL: none does. */
const struct host_rule *http_find(const struct rules *r, const char *name, uint16_t port);

/* How a client's own word for the host compares to the name that it looked up. */
enum gate_reason said_check(const struct question *q);

struct verdict verdict_deny(enum gate_reason why);
void verdict_by(struct verdict *v, const char *list, const char *text); /* "allow", "a.test:443" */
