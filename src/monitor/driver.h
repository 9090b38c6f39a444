/*
 * driver.h - the text that makes a shell serve one command after the other, and the words it
 * speaks. Pure.
 *
 * To the shell, over its socket: a line with the mode, the script with a dash before each line, a
 * line with a dot. From it, when the script has run: exit status, kind, working directory, exported
 * variables, each with a NUL behind it. Nothing of it ever mixes with what a command writes.
 */
#pragma once

#include "base/str.h"
#include "wire/channel.h"

/* Arguments of a shell that runs the driver: all of them, for /bin/sh. */
#define DRIVER_ARGC 6
extern const char *const driver_argv[DRIVER_ARGC];

/* Modes: where input comes from, where standard error goes; quiet ones are our own. */
struct driver_mode {
	bool has_stdin, is_merged, is_quiet;
};
void driver_script(struct str *out, struct driver_mode mode, const char *script);
/* What gives a new shell the variables and the folder of the one before. `env` has `n` of
 * NAME=VALUE, one after the other: what a new one begins with. Each is answered by a report,
 * whose status is 0 when it worked. */
void driver_restore_env(struct str *out, const char *text, const char *env, size_t n);
void driver_restore_cwd(struct str *out, const char *text);

/* A report while it comes: zeroed at first, and driver_report_done() after each. */
struct driver_report {
	struct str text;
	unsigned int nuls;
};
enum driver_word {
	DRIVER_PART,   /* more is to come */
	DRIVER_WHOLE,  /* and driver_read() has it */
	DRIVER_GARBAGE /* no driver of ours says that */
};
enum driver_word driver_hear(struct driver_report *r, const char *bytes, size_t n);
void driver_report_done(struct driver_report *r);
/* Of a whole one. `state` gets its text (wire/channel.h); what was too long or left out stays as it
 * was, and *is_whole says so. Returns the exit status. */
int driver_read(const struct driver_report *r, struct str *state, bool *is_whole);
