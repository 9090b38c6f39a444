/*
 * ondemand.h - a daemon of the caller's own, started when nobody answers.
 *
 * Two clients that come at the same moment start one: a lock in the run folder decides who does
 * it. What the launcher says while it starts is kept in launcher.log there.
 */
#pragma once

#include "cli/address.h"

/* A connection to it. */
int ondemand_connect(const struct address *a, struct err *e) MUST_USE;
/* The path of a program of ours: beside this one, or in ../libexec/caisson. */
int ondemand_find(const char *name, char out[PATH_TEXT_MAX], struct err *e) MUST_USE;
