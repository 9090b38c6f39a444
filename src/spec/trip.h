/*
 * trip.h - the rules of `gate.commands`: programs that are held until somebody has said yes. Pure.
 *
 *   git push            the program git, whose first argument is push; what follows is free
 *   git ** push         push anywhere among the arguments
 *   rm -rf *            * and ? inside a word, as in a shell; there has to be such an argument
 *   ./deploy-*          a program with a slash is the path as it was executed
 *
 * A tripwire and not a wall: what is compared is what a process said at the moment in which it
 * was asked, and a program can do what another one does, under another name.
 */
#pragma once

#include "base/err.h"

#define TRIPS_MAX 64
#define TRIP_TEXT_MAX 255

struct trip_command {
	const char *path;        /* as it was executed; NULL: argv[0] */
	const char *const *argv; /* NULL-terminated */
};

int trip_check(const char *pattern, struct err *e) MUST_USE;
bool trip_matches(const char *pattern, const struct trip_command *c);

/* The command as one would type it: arguments that a shell would read otherwise are quoted. */
struct str;
void trip_text(const char *const *argv, struct str *out);
