/*
 * bind.h - what a stored secret is for: where it may go, and how it is said there. Pure.
 *
 *   {"hosts": ["api.example.org", "git.example.org:8443"],   by https; 443 unless it says
 *    "inject": "bearer",       "basic:USER", "query:KEY",
 *                              "header:NAME" (with "format": "Token {}"),
 *                              "aws", "aws:REGION", "aws:REGION/SERVICE": signs with the value,
 *                              ID:SECRET or ID:SECRET:TOKEN;
 *                              "github-app:APP/INSTALLATION": the value is the app's key, what is
 *                              said is a token of an hour, which the gate gets from
 *    "api": "https://api.example.org",                       the base of the forge's API
 *    "methods": ["GET"], "paths": ["/repos/acme/app"],       all unless given
 *    "git": ["acme/app"],      only these repositories, by git's own protocol
 *    "push": ["refs/heads/agent-*"],                         and these refs; none: fetch only
 *    "push_ask": ["refs/heads/main"],                        these too, when a person has said yes
 *    "approve": "each",        a person is asked for each request; "first": for the first one of a
 *                              sandbox
 *    "only_bound": true,       a request to its hosts that no binding is for is refused
 *    "env": "API_TOKEN",       the variable inside that has the placeholder
 *    "ttl": "1h",              of the sandbox's life
 *    "workspaces": ["total"]}  only sandboxes that have one of these, by key or id
 *
 * Or what a canary is (wire/canary.h), which is no secret, and placed inside as it is:
 *
 *   {"canary": "ghp_...", "env": "GITHUB_TOKEN", "file": "/work/.netrc", "workspaces": [...]}
 *
 * The text itself is sealed to the value (wire/seal.h, as what stands beside it): whoever has the
 * sealed value cannot make it one for another host.
 */
#pragma once

#include "spec/spec.h"

#define BIND_HOSTS_MAX 16
#define BIND_TEXT_MAX (16u << 10)
#define SECRET_VALUE_MAX (4u << 10) /* a key of an app has 3 KiB */
#define SECRET_NAME_MAX 64
#define PLACEHOLDER_PREFIX "csn_ph_"
#define PLACEHOLDER_SIZE (sizeof PLACEHOLDER_PREFIX + 32) /* and 16 bytes as hex */

enum bind_how { BIND_BEARER, BIND_BASIC, BIND_HEADER, BIND_QUERY, BIND_AWS, BIND_APP, BIND_HOWS };

struct bind {
	struct arena arena;
	struct text_list hosts; /* "name" or "name:port" */
	const char *inject;     /* as written */
	enum bind_how how;
	const char *arg; /* BASIC: user; HEADER, QUERY: name; AWS: where; APP: which; else "" */
	const char *format;
	struct text_list methods, paths, git, push, push_ask, workspaces;
	const char *approve; /* NULL: nobody is asked */
	const char *env, *ttl, *api;
	const char *canary, *file; /* NULL: it is a secret */
	bool is_only_bound;
	uint64_t ttl_ms; /* 0: as long as the sandbox */
};

/* On failure *b is not touched. */
int bind_read(struct bind *b, const char *text, size_t n, struct err *e) MUST_USE;
/* Canonical: one line of JSON. */
int bind_print(const struct bind *b, struct str *out, struct err *e) MUST_USE;
void bind_done(struct bind *b);

/* Letters, digits, then . _ - too; short, and nothing that looks like a secret. */
int secret_name_check(const char *name, struct err *e) MUST_USE;

/* Beside which a value is sealed: whose it is, what it is called, what it is for. */
#define SECRET_INFO "caisson secret 1"
void secret_aad(const char *tenant, const char *name, const char *bind, struct str *out);
