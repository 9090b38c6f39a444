/*
 * import.h - policies of other sandboxes as specs of ours: srt (and the settings of agents that use
 * it), Codex.
 *
 * What they allow and we can say is said; what has no equivalent is named, never dropped in
 * silence. Theirs means a process of the host that is held back, ours a root of its own: where
 * theirs lists what is closed, ours begins with nothing open.
 */
#pragma once

#include "spec/spec.h"
#include "wire/span.h"

struct import {
	const char *format;     /* "srt", "codex" */
	struct text_list notes; /* one sentence each */
	struct arena arena;     /* of the notes */
};

/* 1: it is one of theirs, and `s` has what it means; 0: it is not; -1: it is, and broken. Paths
 * that are relative are taken from `cwd`, ~ from `home`. */
struct import_places {
	const char *cwd, *home;
};
int import_read(struct import *out, struct spec *s, const char *name, struct span text,
                struct import_places at, struct err *e) MUST_USE;
void import_done(struct import *x);
