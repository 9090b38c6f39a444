/*
 * enforce.h - what enforces each field of a spec on this host; the only judge of rule 3: what
 * the caller named is enforced or refused, never dropped.
 */
#pragma once

#include "engine/cgroup.h"
#include "engine/proof.h"
#include "spec/spec.h"

struct enforce_host {
	bool is_root;
	const struct cgroup *cgroup;
	uint32_t walls;   /* that were proved, or will have to be: engine/proof.h */
	bool has_secrets; /* somebody keeps them */
	int net_error;    /* a sandbox cannot have a network here: the errno; 0: it can */
};

struct enforce_row {
	const char *field, *by; /* by NULL: nothing */
	const char *reason;     /* why not, when nothing does */
	bool is_named;
};

#define ENFORCE_ROWS_MAX 24

/* Fills rows for what the spec asks for; returns how many. */
size_t enforce_rows(const struct spec *s, const struct enforce_host *h,
                    struct enforce_row rows[ENFORCE_ROWS_MAX]);

/* Refuses what was named and has no mechanism, and what this program does not have at all. */
int enforce_check(const struct spec *s, const struct enforce_host *h, struct err *e) MUST_USE;

/* The first limit that it refuses for want of a cgroup; NULL: none. */
const char *enforce_lacking(const struct spec *s, const struct enforce_host *h);

/* Why limits by cgroup are missing here, in a few words. */
const char *enforce_reason(const struct enforce_host *h);
