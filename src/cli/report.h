/*
 * report.h - one page about a task: what `caisson report` says of a workspace. Pure.
 *
 * The ledger's records come first: they are what can be verified. The text of the change is
 * from the store, as far as it still knows. Foreign texts go through page.h.
 */
#pragma once

#include <jansson.h>

#include "cli/page.h"
#include "wire/span.h"

#define REPORT_ROWS_MAX 500 /* of one table; the rest is counted */
#define REPORT_DIFF_MAX (512u << 10)

/* What is known of the ledger that the records are from. */
struct report_proof {
	uint64_t n, first, last; /* records of this task */
	uint64_t n_broken;       /* whose hash, or whose link to the one before, does not hold */
	bool is_read;            /* the files were verified, all of them: */
	bool is_sound;
	uint64_t n_findings, n_signatures, n_unsigned;
	const char *key; /* its name, or NULL */
};

struct report_in {
	const char *name;        /* as the caller calls it */
	const json_t *workspace; /* the API's object; NULL: it is gone */
	const char *repo;        /* its URL; NULL: not known */
	const json_t *records;   /* array, oldest first */
	const json_t *counts;    /* status -> files that differ now from the beginning */
	struct span patch;       /* as text */
	bool is_of_commits;      /* and of what was committed, nothing else */
	bool is_patch_cut;
	struct report_proof proof;
	int64_t now_ms;
};

void report_print(const struct report_in *in, enum page_format format, struct str *out);

/* A record of this kind says that somebody took the result. */
bool report_is_promotion(const char *kind);

/* ---- between the files of it ---- */
struct report {
	const struct report_in *in;
	struct page page;
	json_t *argv;            /* process -> its command as one text */
	json_t *ends;            /* process -> the data of its end */
	json_t *hosts, *stopped; /* what was reached, what was refused: by a key of their own */
	json_t *told;            /* refused requests: their connections need no row */
	json_t *secrets;         /* name -> uses */
	bool has_promotion;
	uint64_t n_commands, n_denied, n_limits, n_approvals;
};

const char *report_text(const json_t *o, const char *key);
int64_t report_number(const json_t *o, const char *key);
void report_time(int64_t ms, char out[32]);   /* of the day */
void report_moment(int64_t ms, char out[32]); /* with the day */
const char *report_command(const struct report *r, const char *process);

/* report_net.c */
void report_take_net(struct report *r, const json_t *record);
void report_take_limits(struct report *r, const json_t *record);
void report_hosts(struct report *r);
void report_stopped(struct report *r);
void report_secrets(struct report *r);
