/*
 * escape.h - foreign text on its way to a person: a terminal, an approval, a webhook, an agent's
 * window.
 *
 * Names, labels, reasons, commands and paths come from inside a sandbox. What a terminal would act
 * on (control characters, C1, anything that turns the direction of writing) or that is no UTF-8
 * is shown as \x1b or \u{202e}.
 */
#pragma once

#include "base/str.h"

/* A control character, one that turns the direction of writing, or one that nobody can see. */
bool escape_is_hidden(uint32_t code_point);

/* In pieces, wherever they were cut. Starts from { 0 }. */
struct escape {
	bool keeps_lines; /* newline and tab pass */
	unsigned char wait[4];
	size_t n; /* bytes of a sequence that is not whole yet */
};

void escape_feed(struct escape *x, const void *bytes, size_t n, struct str *out);
void escape_end(struct escape *x, struct str *out);

/* One text, on one line. */
void escape_text(const char *text, struct str *out);
/* The same in a static buffer of some hundred bytes, for one message; longer ones are cut. */
const char *escape_brief(const char *text);
