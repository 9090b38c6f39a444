/*
 * inject.h - which secret goes with a request, and whether the request may go at all: where one is
 * bound, no other credential is carried. Pure.
 */
#pragma once

#include "gate/gitreq.h"
#include "gate/purse.h"
#include "gate/sigv4.h"
#include "wire/http.h"

struct inject_ask {
	const struct rules *rules;
	const struct http_head *head;
	const char *name, *method;
	const char *path; /* of http_target_normal(), or NULL */
	uint16_t port;
	bool is_tls;
	int64_t now_ms;
};

#define INJECT_NONE SIZE_MAX

/* The field says who asks. */
bool inject_is_carrier(const struct rules *r, struct span field);

/* GATE_CREDENTIAL: it has another, or its host wants no request without one. Else *which is the
 * index in rules.creds, or INJECT_NONE: then it goes as it is. */
enum gate_reason inject_choose(const struct inject_ask *q, size_t *which);

/* What it is to git, for one of the binding's repositories. */
enum git_verb inject_git(const struct inject_ask *q, const struct bind *b);

/* What is said in its place. */
struct injection {
	const struct rules *rules;
	const struct cred_rule *rule;
	const struct purse_entry *entry;
	struct span said;   /* of the entry */
	struct sigv4 *sign; /* BIND_AWS */
};
/* The field is one that says who asks, or by which an answer could not be searched for the secret:
 * left out. */
bool inject_replaces(const struct injection *j, struct span field);
const char *inject_field(const struct injection *j); /* the name of ours; NULL: it is a query */
/* The target with the query's key, once. Wipe it. */
void inject_target(const struct injection *j, struct span target, struct str *out);
