/*
 * jsonwalk.h - long JSON in one pass: no tree, no memory but the path to where one is.
 *
 * For documents of others that are megabytes long and of which a few texts matter. Strict about the
 * form (RFC 8259), but numbers are only skipped.
 */
#pragma once

#include "wire/span.h"

#define JSONWALK_DEPTH 32

struct jsonwalk_path {
	struct span keys[JSONWALK_DEPTH]; /* escaped as they are; in an array: at NULL */
	size_t depth;
};

struct jsonwalk_ops {
	/* A text, still escaped; the last key is its own. */
	void (*text)(void *arg, const struct jsonwalk_path *p, struct span raw);
	/* The object at this path has ended. */
	void (*closed)(void *arg, const struct jsonwalk_path *p);
};

/* 0; -1: it is not JSON, or too deep, and what was told so far means nothing. */
int jsonwalk(struct span text, const struct jsonwalk_ops *ops, void *arg) MUST_USE;

/* A text of printable ASCII; its length, or -1 when it is another one, or does not fit. */
int jsonwalk_ascii(struct span raw, char *out, size_t size);
