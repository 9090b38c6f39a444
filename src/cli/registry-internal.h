/*
 * registry-internal.h - between registry.c (where the settings of a client are) and registry_text.c
 * (what they say).
 */
#pragma once

#include "base/str.h"
#include "cli/registry.h"

#define REGISTRY_FILE_MAX (4u << 20)

struct hosts {
	struct arena *arena;
	struct text_list *list;
};

/* The host of a URL such as "sparse+https://user:pass@host:8443/path". One that is not reached by
 * network (file:, cdrom:) adds nothing; one without a name, or with something else in its place, is
 * an error. */
int hosts_add_url(struct hosts *h, const char *url, struct err *e) MUST_USE;
/* All of them, separated by white space or commas; words without "://" are left out. */
int hosts_add_urls(struct hosts *h, const char *text, struct err *e) MUST_USE;
bool hosts_has(const struct hosts *h, const char *host);

/* The last value of a key in an INI file, its lines joined by a newline: `sections`
 * (NULL-terminated, NULL: the part before the first) later ones win. False: it has none. `-` and
 * `_` are the same. */
bool ini_get(const char *text, const char *const *sections, const char *key, struct str *out);
/* All values of keys that end with `:registry` (npm's scopes), a line each. */
void npmrc_scopes(const char *text, struct str *out);
/* "${NAME}" by what the environment has; false when it has none. */
bool npmrc_expand(const char *text, struct str *out);
/* KEY=VALUE, one a line, as Go's file has them. */
bool env_file_get(const char *text, const char *key, struct str *out);
/* The URLs of one-line entries ("deb [signed-by=x] URL suite ...") or of deb822 ("URIs: ..."). */
void apt_lines(const char *text, struct str *out);
void apt_fields(const char *text, struct str *out);
