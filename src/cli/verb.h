/*
 * verb.h - one command of `caisson` as a row: what it is called, what it takes, what it does.
 *
 * main() has the table of all. Dispatch, help, man page and completion walk it, so a new verb is
 * one new row.
 */
#pragma once

#include "cli/client.h"
#include "cli/flags.h"

#define EXIT_REFUSED 1 /* the daemon says no: not found, no match, a conflict */
#define EXIT_OURS 125  /* bad usage, or our own failure */

/* What every verb with --json has first in its struct. */
struct verb_opts {
	bool is_json;
};
#define FLAG_JSON                                                                                  \
	{                                                                                          \
		.name = "json", .type = FLAG_SWITCH,                                               \
		.offset = offsetof(struct verb_opts, is_json), .help = "print the API's object"    \
	}

struct verb_call {
	const struct verb *verb;
	void *opts;         /* the verb's own struct, filled in */
	struct words words; /* that are no options */
	struct client client;
};

struct verb {
	const char *name;
	const char *usage; /* "SANDBOX [-it] -- CMD [ARG]..." */
	const char *does;  /* one line, no full stop */
	const char *more;  /* sentences for help and man page, or NULL */
	const struct flag *flags;
	size_t n_flags;
	/* What the words are, for the completion: sandbox, workspace, place (either), process,
	 * file, verb, remote (SB:PATH); one for each, the last one repeats. Or a list of plain
	 * words in [ ]. */
	const char *words;
	bool takes_spec;   /* spec flags too, and --spec */
	bool takes_config; /* flags of the config's table too */

	/* Either all of it, */
	int (*main)(int argc, char **argv);
	/* or what verb_main() makes of it. run() returns the exit status, or -1. */
	size_t opts_size; /* of its struct, which begins with a struct verb_opts */
	size_t words_min, words_max;
	size_t words_before; /* flags.h */
	int refused;         /* status for what the daemon refuses; 0: EXIT_REFUSED */
	void (*init)(void *opts);
	void (*done)(void *opts);
	int (*other)(void *opts, int argc, char **argv, int *i, struct err *e);
	int (*run)(struct verb_call *c, struct err *e);
};

struct verb_table {
	const struct verb *const *at;
	size_t n;
};

const struct verb *verb_find(const struct verb_table *t, const char *name);
/* Says so, with the nearest one; returns the exit status. */
int verb_unknown(const struct verb_table *t, const char *name);
/* Parses, runs, says what went wrong; returns the exit status. */
int verb_main(const struct verb *v, int argc, char **argv);
/* "usage: caisson ps ..." and the rest of its help (cli/help.h). */
void verb_help(const struct verb *v, struct str *out);

/* ---- for verbs ---- */
/* Text to standard output, all of it: a full disk is an error. */
int print_text(const struct str *text, struct err *e) MUST_USE;
/* One line of ASCII, so that it is harmless on a terminal. The reference is taken. */
int print_json(json_t *value, struct err *e) MUST_USE;
const char *text_of(const json_t *o, const char *key); /* "" when there is none */
int64_t number_of(const json_t *o, const char *key);   /* 0 when there is none */
/* GET of a list, page by page: all its rows, under their name. */
int fetch_list(struct client *c, const char *path, const char *name, json_t **out,
               struct err *e) MUST_USE;
/* GET of NDJSON, line by line as it comes; what `line` refuses ends it. */
#define LINE_BYTES_MAX (4u << 20)
int fetch_raw_lines(struct client *c, const char *path,
                    int (*line)(void *arg, struct span line, struct err *e), void *arg,
                    struct err *e) MUST_USE;
int fetch_lines(struct client *c, const char *path,
                int (*line)(void *arg, const json_t *value, struct err *e), void *arg,
                struct err *e) MUST_USE;
/* The same of a POST; the reference is taken. */
int post_lines(struct client *c, const char *path, json_t *body,
               int (*line)(void *arg, const json_t *value, struct err *e), void *arg,
               struct err *e) MUST_USE;
/* One request with the id in its path, and its answer printed: with --json, or when it is all
 * there is to say. */
/* Where the first of them is in the API, "sandboxes" or "workspaces": an id tells, a key may be of
 * either, and is a sandbox's first. NULL: it could not be asked. */
const char *place_of(struct client *c, const char *name, struct err *e) MUST_USE;
/* A path as a command inside would mean it; of a workspace what lies in its folder. */
const char *place_path(const char *place, const char *path);
int sandbox_call(struct verb_call *c, const char *method, const char *pattern, json_t *body,
                 json_t **out, struct err *e) MUST_USE;
