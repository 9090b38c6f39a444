/*
 * shells.h - named shells of a sandbox: what the next one of that name gets back.
 *
 * The shell itself is the monitor's (monitor/shells.c). Here is what outlives a monitor: that there
 * was one, and what it said last; opaque text that only goes back to where it came from.
 */
#pragma once

#include "core/process.h"

#define SHELLS_MAX 64                 /* of one sandbox */
#define SHELL_SCRIPT_MAX (256u << 10) /* a shell reads it byte by byte */

struct shl {
	struct shl *next;
	char name[SHELL_NAME_SIZE];
	char process[ID_SIZE]; /* whose command started the shell that lives, or lived last */
	struct str text;       /* its state: wire/channel.h; empty: it has not said yet */
	char *cwd;             /* of it, to be shown; NULL: not known */
	int64_t restarts;
	int64_t
	    generation; /* of the sandbox whose monitor knows it; 0: none does, or we cannot say */
	bool lives;
};

/* What is asked of a shell that cannot be: a terminal, another user, two at once. */
int shells_check(struct sbx *s, const struct px_ask *ask, struct fail *f) MUST_USE;
/* The script that does what was asked: words are quoted, cwd and env are set first, and stay. */
int shells_script(const struct px_ask *ask, struct str *out, struct fail *f) MUST_USE;
/* There is a shell of this name from now on, and the monitor knows it. Before CH_EXEC. */
int shells_prepare(struct px *p, struct fail *f) MUST_USE;
/* What the monitor says. */
void shells_on_state(struct sbx *s, uint32_t num, const void *bytes, size_t n);
/* Where its last command left it; NULL: nobody knows. */
const char *shells_cwd(struct sbx *s, const char *name);

struct shl *shells_list(struct sbx *s);                  /* by `next` */
struct px *shells_busy(struct sbx *s, const char *name); /* its command, or NULL */
/* Ends it and forgets it. -1: there is none. */
int shells_delete(struct sbx *s, const char *name, struct store_call call, struct fail *f) MUST_USE;
void shells_done(struct sbx *s);
