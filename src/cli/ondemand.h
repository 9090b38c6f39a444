/*
 * ondemand.h - a daemon of the caller's own, started when nobody answers.
 *
 * Two clients that come at the same moment start one: a lock in the run folder decides who does
 * it. What the launcher says while it starts is kept in launcher.log there.
 */
#pragma once

#include "cli/settings.h"

/* A connection to it. */
int ondemand_connect(const struct address *a, struct err *e) MUST_USE;

/* For `caisson serve`: one with these settings, in the background; a connection to it. */
int ondemand_serve(struct settings *x, struct address *out, struct err *e) MUST_USE;
/* Ends the one that a command has started there, if that is who has the folder: whoever says
 * `serve` means to have another. What it keeps is found again by that. */
int ondemand_dismiss(const char *run_dir, struct err *e) MUST_USE;

#define ONDEMAND_SAID_MAX 400
/* The last words of a launcher or daemon that gave up; false: none did. */
bool ondemand_said(const struct address *a, char out[ONDEMAND_SAID_MAX]);
