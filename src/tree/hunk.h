/*
 * hunk.h - a change that names the lines it expects, and its application. Pure.
 *
 * Lines must be there as the hunk says, all of them; only if they are nowhere, CRLF and LF count
 * as equal. A hunk that has a line number applies there, or else at the one other place behind
 * the hunk before where its lines are; one without applies at the first place.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/span.h"

struct hunk_line {
	char op;          /* ' ', '-', '+' */
	struct span text; /* without the line feed */
	bool has_no_end;  /* "\ No newline at end of file" */
};

struct hunk {
	size_t patch_line; /* where it begins in the patch, for messages */
	bool has_start;
	size_t start; /* the first old line, from 1; behind which line, when it has no old lines */
	struct span anchor; /* "@@ text": a line to be found first; .at NULL: none */
	bool is_at_end;     /* its lines are the last of the file */
	VEC(struct hunk_line) lines;
};

struct hunks {
	VEC(struct hunk) at;
};
void hunks_done(struct hunks *h);

struct hunk_result {
	bool by_eol;               /* not exact, only line ends differed */
	size_t n_lines, lines[16]; /* on ambiguous_match: where it could be */
};

/* Adds the new text to `out`. */
int hunks_apply(struct span text, const struct hunks *hunks, struct str *out,
                struct hunk_result *result, struct err *e) MUST_USE;
