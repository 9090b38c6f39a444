/*
 * apply_job.h - one `caisson apply`: what is to be done, what it found out, and the report of it.
 *
 * Nothing of the folder is written before apply_finish(), and nothing of either side is executed.
 */
#pragma once

#include "apply/run.h"
#include "cli/apply_get.h"
#include "cli/verb.h"
#include "wire/hash.h"

enum apply_side { APPLY_BASE, APPLY_HEAD, APPLY_THEN, APPLY_SIDES };

/* Beside each entry. */
struct apply_note {
	const char *later;      /* it executes later: why */
	bool is_allowed;        /* and it may */
	struct apply_node then; /* as it was applied before, */
	bool has_then_bytes;    /* and as the folder has it */
	bool is_seen[APPLY_SIDES];
	bool is_kept[APPLY_SIDES]; /* its text is here: it is short, and all of them are */
	struct str version[APPLY_SIDES];
	struct str merged;
	char hash[TREE_HASH_TEXT]; /* of a file, as the workspace has it */
	size_t op;                 /* its step and one more; 0: none */
};

struct apply_job {
	struct apply_source source;
	struct apply_run run;
	struct apply_list list;
	struct apply_change change;
	struct apply_note *notes;
	const struct flag_list *allow; /* patterns */
	bool takes_ignored;
	struct str ignored; /* names, each with a NUL */
	uint64_t kept;      /* bytes in notes */
	mode_t umask;
	size_t n_conflicts, n_refused;
};

void apply_job_init(struct apply_job *j);
void apply_job_done(struct apply_job *j);
/* Everything that can be known before anything is written: acts, conflicts, what executes later.
 * run is open. */
int apply_study(struct apply_job *j, struct err *e) MUST_USE;
/* What may not be taken along is left out from now on. */
void apply_leave(struct apply_job *j, size_t i, const char *why);
/* Of all that would be written: names, modes, bytes. */
void apply_tree(const struct apply_job *j, char out[TREE_HASH_TEXT]);
/* n_conflicts and n_refused anew. */
void apply_count(struct apply_job *j);
/* Does it. */
int apply_finish(struct apply_job *j, struct err *e) MUST_USE;

/* ---- apply_report.c ---- */
json_t *apply_json(const struct apply_job *j);
bool apply_is_empty(const struct apply_job *j);              /* nothing is written */
void apply_text(const struct apply_job *j, struct str *out); /* what it does, name by name */
/* Files that execute later and that nothing has said yes to, by reason. */
void apply_later_text(const struct apply_job *j, struct str *out);
void apply_complaints(const struct apply_job *j, struct str *out);
