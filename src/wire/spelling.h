/*
 * spelling.h - one character after the other of a text in which a secret may be spelled in several
 * ways. Pure.
 *
 * A value is known by forms (itself, its base64 at three places in a longer text, its hex), folded:
 * in lower case, and with the two letters by which base64 for URLs differs. A text is read for them
 * character by character, in two ways:
 *
 *   literal   every byte is itself
 *   decoded   %41, \u0041, \x41, \/ and the like, &#65; &#x41; &amp; and the like are one character
 *
 * In both, line ends and the sequences by which terminals are told colours are nothing at all, so
 * that a value that is wrapped or coloured is still one.
 */
#pragma once

#include "wire/span.h"

enum spelling_how { SPELLING_LITERAL, SPELLING_DECODED, SPELLING_HOWS };

enum {
	SPELLING_NONE = -1, /* these bytes are no character */
	SPELLING_MORE = -2, /* more bytes are needed to tell */
};

#define SPELLING_LONGEST 256 /* bytes that are one character, or none */

char spelling_fold(char c);
/* The first character of `in`, which is not empty, folded; *used: its bytes. */
int spelling_next(struct span in, enum spelling_how how, size_t *used);

enum spelled { SPELLED_NOT, SPELLED_PART, SPELLED_WHOLE };
/* Does `in` begin with that form, or is it the beginning of one? *used: the bytes of a whole one.
 */
enum spelled spelling_match(struct span form, struct span in, enum spelling_how how, size_t *used);
/* Characters become stars, byte for byte; what is none stays. */
void spelling_mask(char *text, size_t n, enum spelling_how how);
/* The byte may be no character, or the beginning of a longer one. */
bool spelling_is_special(char c);
/* Is there anything in it that the two ways read differently? */
bool spelling_is_coded(struct span in);
