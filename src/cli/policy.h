/*
 * policy.h - `caisson policy show`, `check` and `set`, and how a verb reads spec flags.
 */
#pragma once

#include "spec/spec.h"

/*
 * argv[0] is "policy". Returns the exit status: 0; 1 for an invalid file given to check; 125 for
 * bad usage and everything else. Unless 0, *e has the sentence for stderr.
 */
int policy_main(int argc, char **argv, struct err *e) MUST_USE;

/*
 * Takes argv[*i] if it is a spec flag or --spec, with its value ("--mem 4g", "--mem=4g", "-e K=V").
 * 1: taken, *i is at the last word of it. 0: not a spec flag. -1: it is, and it is wrong.
 */
int policy_flag(struct spec *s, int argc, char **argv, int *i, struct err *e) MUST_USE;

/* `policy set`: argv begins behind the word. The daemon's answer is printed. */
int policy_set(int argc, char **argv, struct err *e) MUST_USE;

/* All that is in it; more than out->max is an error. */
int policy_read(int fd, const char *path, struct str *out, struct err *e) MUST_USE;

/* A spec file, YAML or JSON. What net.mock names is read from beside it (cli/mocks.h). A
 * missing, unreadable or empty one is an error, never the defaults. */
int policy_load(struct spec *s, const char *path, struct err *e) MUST_USE;
