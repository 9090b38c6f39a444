/*
 * splice.h - text replaced by text inside a file, every other byte left alone. Pure.
 *
 * First the exact bytes are looked for; when they are nowhere, line feeds in the wanted text also
 * stand for CRLF and the other way round. What is put in gets the line ends of its surroundings,
 * so that a caller who saw a file without its carriage returns does not mix them.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/span.h"

#define SPLICE_LINES_MAX 16

struct splice_edit {
	struct span from, to;
	bool all;
};

struct splice_result {
	size_t replaced;
	bool by_eol; /* not exact, only the line ends differed */
	/* On ambiguous_match where the matches begin; on no_match lines that look like it. */
	size_t n_lines, lines[SPLICE_LINES_MAX];
};

/* Adds the new text to `out`. `result` adds up over several edits of one file. */
int splice_text(struct span text, const struct splice_edit *edit, struct str *out,
                struct splice_result *result, struct err *e) MUST_USE;

/* Puts lines in behind line `line`; 0: at the beginning, behind a byte order mark. */
int splice_lines(struct span text, size_t line, struct span lines, struct str *out,
                 struct err *e) MUST_USE;
