/*
 * template-internal.h - a build under way.
 */
#pragma once

#include "core/runner.h"
#include "core/template.h"

#define BUILD_HELD 128                   /* lines that go to the store together */
#define BUILD_COPIES "/run/caisson/copy" /* where its sandbox sees what is to be copied */

struct template_build {
	struct template_build *next;
	struct core *core;
	char id[TEMPLATE_ID_SIZE], template[ID_SIZE], tenant[TENANT_SIZE];
	char actor[ACTOR_SIZE]; /* who asked for it: all that it begins is his */
	json_t *steps;
	json_t *context;    /* {user,workdir,env,start?,ready?}: as the steps have left it */
	char *own, *home;   /* the sandbox's own user as he is called, and his folder */
	char *image;        /* below it; NULL: the host's system */
	char from[ID_SIZE]; /* the workspace that its own is a fork of, or "" */
	char (*hashes)[TREE_HASH_TEXT];
	size_t cached; /* steps of which all is there already */
	size_t at;     /* the step under way */
	size_t pair;   /* of ENV: which variable */
	char work[ID_SIZE], sandbox[ID_SIZE];
	struct runner *runner;
	struct template_run *run;
	struct timer turn;
	void (*next_do)(struct template_build *b);
	struct line_row
	    held[BUILD_HELD]; /* lines that are not in the store yet; texts are its own */
	size_t n_held;
	struct timer saying;
	int64_t n_lines;
	bool is_forced;
	char step[16]; /* in which it is: "base", "1", …, "finalize" */
	char made_name[64], kept[ID_SIZE];
	const char *made; /* NULL: no image */
	struct fail fail;
};

/* ---- template_build.c ---- */
void build_free(struct template_build *b);
void build_then(struct template_build *b, void (*next)(struct template_build *b));
struct sbx *build_sandbox(struct template_build *b); /* NULL: b->fail says why */
void build_finish(struct template_build *b);
void build_step_done(struct template_build *b, bool has_written);

/* ---- template_end.c ---- */
void build_say(struct template_build *b, const char *level, const char *text);
void build_sayf(struct template_build *b, const char *level, const char *fmt, ...) PRINTF(3, 4);
void build_say_on(struct timer *t);                              /* of b->saying */
void build_fail(struct template_build *b, const struct fail *f); /* or its end, with NULL */
void build_end(struct template_build *b);
/* One of ours, for ever; NULL, or one that is not there, is fine. */
void template_discard(struct core *c, const char *tenant, const char *workspace);

/* ---- template_step.c ---- */
/* From the folder `from` unless it begins with a slash. */
const char *build_path(struct arena *a, const char *from, const char *path);
int build_check_steps(const struct template_build *b, struct fail *f) MUST_USE;
void build_step(struct template_build *b); /* the one at b->at, or the end */
