/*
 * pkgmeta.h - what package registries say about their packages: which file has which digest. Pure.
 *
 *   pip    PEP 503: a page of links with #sha256=..., PEP 691: the same as JSON, PEP 658: the
 *          metadata of a file beside it
 *   npm    a packument: versions.VERSION.dist, tarball and integrity
 *   cargo  a file of the sparse index: one object per line with its cksum; config.json says where
 *          the files lie
 *
 * Digests weaker than SHA-256 are none. Links that weburl.h cannot say are left out.
 */
#pragma once

#include "wire/weburl.h"

enum digest_kind { DIGEST_SHA256, DIGEST_SHA384, DIGEST_SHA512, DIGESTS };

#define DIGEST_SIZE_MAX 64
#define DIGEST_TEXT_SIZE (sizeof "sha512-" + 2ul * DIGEST_SIZE_MAX)

struct digest {
	enum digest_kind kind;
	uint8_t at[DIGEST_SIZE_MAX];
};

size_t digest_size(enum digest_kind k);
const char *digest_name(enum digest_kind k); /* "sha256" */
/* "sha256-" and hexadecimal digits. */
void digest_print(const struct digest *d, char out[DIGEST_TEXT_SIZE]);
bool digest_read(const char *text, struct digest *out);
bool digest_is_same(const struct digest *a, const struct digest *b);

enum pkg_kind { PKG_NONE, PKG_PIP, PKG_NPM, PKG_CARGO, PKG_KINDS };

const char *pkg_name(enum pkg_kind k);              /* "pip" */
enum pkg_kind pkg_find(const char *name, size_t n); /* PKG_NONE: there is no such kind */

/* The path of a request in the spelling that is kept; -1: it has several meanings, or a query. npm
 * writes the slash in the name of a package as %2f. */
int pkg_target(enum pkg_kind k, struct span target, char out[WEBURL_PATH_SIZE]) MUST_USE;

/* What is asked for: by its path alone, and what the client would like to get. */
bool pkg_is_index(enum pkg_kind k, const char *path);
/* The spelling of the client's Accept that is asked for, and kept: few, whatever it said. */
const char *pkg_accept(enum pkg_kind k, struct span accept);
/* An index is served as one of these. */
bool pkg_is_index_type(enum pkg_kind k, struct span type);

typedef void pkg_claim_fn(void *arg, const struct weburl *url, const struct digest *d);

struct pkg_page {
	enum pkg_kind kind;
	struct span text, type; /* Content-Type */
	const struct weburl *at;
	const char *dl; /* PKG_CARGO: of its config.json; NULL: not known */
};
/* 0; -1: malformed, and what was claimed means nothing. */
int pkg_read(const struct pkg_page *page, pkg_claim_fn *claim, void *arg) MUST_USE;

/* Where the config.json of this cargo index lies. -1: that is no file of an index. */
int pkg_cargo_config(const struct weburl *at, struct weburl *out) MUST_USE;
/* Its `dl`; -1: none. */
int pkg_cargo_dl(struct span config, char out[WEBURL_PATH_SIZE]) MUST_USE;
