/*
 * compat-internal.h - what the files of these doors share.
 */
#pragma once

#include "api/errand.h"
#include "api/handlers.h"
#include "compat/compat.h"
#include "core/output.h"

/* ---- pytext.c ---- */
enum py_errors { PY_STRICT, PY_IGNORE, PY_REPLACE, PY_BACKSLASH };
/* The bytes as UTF-8; false: PY_STRICT, and they are none from *at on. */
bool py_utf8(struct span bytes, enum py_errors how, struct str *out, size_t *at);
/* Every byte above 127 by `how` (ASCII), or as the character of that number (Latin-1). */
bool py_ascii(struct span bytes, enum py_errors how, struct str *out, size_t *at);
void py_latin1(struct span bytes, struct str *out);
void py_plain(struct str *s);                       /* no escape sequences; CR LF is LF */
void py_newlines(struct str *s);                    /* CR LF and CR are LF */
void py_repr(struct str *out, struct span text);    /* as Python shows it */
void py_eval(struct str *out, const char *command); /* one line that makes bash run it */
json_t *py_json(struct span bytes);                 /* what is not UTF-8 as \xNN */
struct span py_strip(struct span s);                /* no blanks at either end */

/* ---- which.c ---- */
typedef void compat_fn(struct call *c, struct sbx *s);
/* Comes with the sandbox of the request, which runs, now or later; not when it was answered. */
void compat_enter(struct call *c, compat_fn *then);
/* The one that there is, whatever its state, or NULL. */
struct sbx *compat_find(struct call *c, struct fail *f);
bool compat_is_own(const struct call *c); /* of the token: the path names none */
/* Absolute, from the folder where its commands begin; in the arena. */
const char *compat_path(struct call *c, const struct sbx *s, const char *path);

/* ---- door.c ---- */
/* HTTP 511: an exception of theirs, or of Python. */
void rex_raise(struct call *c, const char *class_path, const char *message, json_t *extra);
#define REX(name) "swerex.exceptions." name
/* What a file worker says as an exception of Python. */
void rex_raise_file(struct call *c, const struct fail *f, const char *path);
/* A number of seconds; null and absent leave *ms as it is. */
int member_seconds(const json_t *o, const char *key, uint64_t *ms, struct fail *f) MUST_USE;

/* ---- whole.c ---- */
struct whole_end {
	const struct px *p;
	struct span out, err; /* head and tail of what it said */
	int exit_code;        /* -N: by signal N */
	bool is_timeout;      /* its time was over */
	bool is_cut;          /* not all of `out` is there */
	bool is_never_run;    /* no such program, or no such folder: `why` */
	const char *why;
};
typedef void whole_fn(struct call *c, const struct whole_end *end); /* NULL: its record failed */
/* Answers when it has no start. What is in `input` is all that it reads. */
void whole_run(struct call *c, struct sbx *s, const struct px_ask *ask, struct span input,
               whole_fn *done);

/* ---- form.c ---- */
struct form {
	struct job job; /* first */
	struct call *call;
	struct multipart *parts;
	struct str raw;
	size_t raw_at;
	char sandbox[ID_SIZE];
	const char *path;             /* of the file, in the arena */
	json_t *fields;               /* texts, by name */
	struct str field;             /* the one that comes */
	char name[64];                /* its name */
	uint64_t bytes;               /* of the file */
	void (*done)(struct form *f); /* all is there; the form is freed behind it */
	void (*failed)(struct form *f, const struct fail *why); /* instead */
	void (*forsaken)(struct form *f); /* NULL, or: the file is there, and done() never came */
	bool is_raw_over, is_file, is_writing, is_closing, is_close_due, is_waiting, is_pumping;
	bool has_file, is_over, is_done;
};
/* Of a BODY_STREAM; to be called by the handler at once. It takes what comes when form_go() was
 * called: the file goes to `path` in that sandbox. NULL: it is no form, and that was answered. */
struct form *form_take(struct call *c);
void form_go(struct form *f, struct sbx *s, const char *path);

/* ---- seat.c: a bash with a terminal ---- */
struct seat;
enum seat_found {
	SEAT_PROMPT, /* with the exit code */
	SEAT_EXPECT, /* one of those that were expected */
	SEAT_TOKEN,
	SEAT_TIMEOUT, /* none of them in time */
	SEAT_ENDED,   /* the shell is no more, and neither is the turn */
};
struct seat_match {
	enum seat_found found;
	struct span before; /* what was said before it, until the next call */
	int exit_code;      /* SEAT_PROMPT */
	size_t index;       /* SEAT_EXPECT */
};
typedef void seat_fn(void *arg, const struct seat_match *m);
struct seat_wish {
	struct expects *expects; /* NULL: the prompt alone */
	const char *token;       /* instead of the prompt; NULL: the prompt */
	bool is_pause;           /* nothing: time shall pass */
	bool has_limit;
	uint64_t ms;
};
/* Turns are taken: begin() comes when all that asked before have ended theirs. By then what was
 * said up to now has been read, and what is left of it since the last prompt waits. */
struct seat_turn {
	struct seat_turn *next;
	struct call
	    *call; /* whose client, if it has left, has no more time when somebody else comes */
	void (*begin)(struct seat_turn *t, struct seat *x);
	void (*lost)(struct seat_turn *t); /* instead: there is no such shell any more */
};
/* The session of that name, or NULL. */
struct px *seat_process(struct sbx *s, const char *name);
/* Takes the reference of p. False: too many wait already. */
bool seat_take(struct px *p, struct seat_turn *t) MUST_USE;
void seat_leave(struct seat *x); /* the turn is over */
/* Ctrl-C, out of turn, where somebody else's command runs. */
void seat_disturb(const struct px *p);
void seat_say(struct seat *x, const void *bytes, size_t n);
void seat_sync(struct seat *x); /* a line that says SEAT_TOKEN_SYNC */
void seat_await(struct seat *x, struct seat_wish wish, seat_fn *then, void *arg);
/* What was said before the last match is said again, in front of what comes. */
void seat_unread(struct seat *x, struct span text);
#define SEAT_LABEL "swerex:"
#define SEAT_TOKEN_READY "\036R\036" /* said before bash begins: nothing is echoed any more */
#define SEAT_TOKEN_SYNC "\036S\036"
#define SEAT_PS1 "SHELLPS1PREFIX" /* what their clients know the prompt as */
extern const char seat_command[]; /* for sh: becomes that bash */
extern const char seat_init[];    /* a line, without its end: prompts are ours */

/* Patterns of Python, as far as PCRE has the same; NULL: one is none. */
struct expects *expects_new(const json_t *list, struct fail *f);
void expects_free(struct expects *e);
/* The first match at or behind `from`. */
bool expects_find(struct expects *e, struct span text, size_t from, size_t *at, size_t *end,
                  size_t *index);
uint64_t expects_rest_ms(const struct expects *e); /* they looked for long: not again before */
bool expects_are_spent(const struct expects *e);   /* for too long: they find nothing any more */

/* ---- handlers ---- */
handler_fn rex_root, rex_is_alive, rex_create_session, rex_run_in_session, rex_close_session;
handler_fn rex_execute, rex_read_file, rex_write_file, rex_upload, rex_close;
handler_fn hands_health, hands_ready, hands_info, hands_start, hands_execute, hands_search;
handler_fn hands_upload, hands_download, hands_changes, hands_diff;
