/*
 * command.h - one command: what runs inside walls that stand already.
 *
 * The environment is whole: the variables of every sandbox, those of the spec, those of the
 * request. Nothing is added to it later.
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "spec/spec.h"

struct command {
	uint32_t uid, gid; /* inside */
	bool is_tty;       /* own pty */
	bool has_stdin;    /* else /dev/null */
	bool is_merged;    /* standard error goes where standard output goes */
	bool is_final;     /* the sandbox ends with it */
	bool wants_usage;  /* the end report says what was used and started */
	bool is_shell;     /* argv is the name of a shell and a script for it */
	bool is_alone;     /* what it leaves running is ended with it */
	bool is_gated;     /* not executed before the gate has served */
	uint16_t rows, cols;
	uint64_t timeout_ms;                  /* 0: none */
	uint64_t log_max, output_max, window; /* wire/channel.h */
	uint32_t argc, envc, tripc;
	uint64_t trip_ms; /* how long one of those is held */
	char *text;       /* cwd, argv, env, commands to hold (spec/trip.h), each with its NUL */
	size_t text_len;
};

/* What the caller adds to the spec. */
struct command_ask {
	char *const *argv;           /* NULL-terminated */
	const char *cwd;             /* NULL: command_cwd() */
	const struct pair_list *env; /* on top of the spec's; may be NULL */
	uint32_t uid, gid;
	bool is_tty, has_stdin, is_merged, is_final, wants_usage, is_shell, is_alone, is_gated;
	uint16_t rows, cols;
	uint64_t timeout_ms, log_max, window;
	uint64_t trip_ms; /* 0: gate.commands of the spec do not count */
};

/* `s` is resolved. */
const char *command_cwd(const struct spec *s); /* /work, else the first writable fs entry, else / */
int command_make(struct command *c, const struct spec *s, struct command_ask ask,
                 struct err *e) MUST_USE;
void command_done(struct command *c);

/* The strings after the cwd, as argv and env: room for argc + 1 and envc + 1. */
void command_strings(const struct command *c, char **argv, char **env);
const char *command_trips(const struct command *c); /* the first of tripc, one behind the other */
/* Text from outside: as many strings as it says, the last byte a NUL, a cwd and a program. */
bool command_is_whole(const struct command *c);
