/*
 * run_collect.h - `caisson run --collect`: what a command left comes back with its result, and the
 * rest is gone. The answer is one object, so output is shown when the command has ended.
 */
#pragma once

#include "cli/driver.h"
#include "cli/flags.h"

struct run_collect {
	struct flag_list patterns; /* from the working folder; none: not asked for */
	struct flag_list allow;    /* patterns of files that may come although they execute later */
	const char *into;          /* a folder of ours, which is made; NULL: where we are */
	bool is_json;              /* the result as an object, without what is in the files */
};

/* The exit status, -1 when nothing was run. Output, and what could not be brought back, is told. */
int run_collect(const struct run_setup *setup, const struct run_collect *want,
                struct err *e) MUST_USE;
