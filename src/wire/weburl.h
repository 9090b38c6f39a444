/*
 * weburl.h - where something lies on the web, in the one spelling that two who mean the same use.
 *
 * http and https, a name (no address), a path with one meaning (wire/target.h). No user, no query,
 * no fragment: what has one of these is not an address of something that stays what it is.
 */
#pragma once

#include "base/str.h"
#include "wire/gate.h"
#include "wire/span.h"

#define WEBURL_PATH_SIZE 2048
#define WEBURL_TEXT_MAX (sizeof "https://:65535" + GATE_NAME_SIZE + 3ul * WEBURL_PATH_SIZE)

struct weburl {
	bool is_tls;
	uint16_t port; /* never 0 */
	char host[GATE_NAME_SIZE];
	char path[WEBURL_PATH_SIZE];
};

/* What `ref` means on the page at `base`; -1: nothing that this can say. A fragment is ignored. */
int weburl_resolve(const struct weburl *base, struct span ref, struct weburl *out) MUST_USE;
/* A whole one. */
int weburl_read(struct span text, struct weburl *out) MUST_USE;
void weburl_print(const struct weburl *u, struct str *out);
/* The same, and whoever escapes more or less than another in a path still says the same. */
void weburl_key(const struct weburl *u, struct str *out);
