/*
 * templates.h - the rows of templates: what sandboxes can be made from, as somebody built it.
 *
 *   template  a name of a tenant's; its builds have tags
 *   build     waiting ─▷ building ─▷ ready │ error; ready: an image (or the host's) and a workspace
 *   line      of what a build said, by number
 *   step      what a workspace looked like behind a row of steps: the next build begins there
 */
#pragma once

#include "store/store.h"

#define STORE_BUILD_MAX (256u << 10) /* steps, or what they come to, as JSON */
#define STORE_LINES_MAX 10000        /* of one build: what comes after is not kept */

struct template_row {
	int64_t seq;
	const char *id, *tenant;
	const char *node; /* NULL at insert: this store's */
	const char *name; /* one for each tenant */
	int64_t created_ms;
};

enum build_state { BUILD_WAITING, BUILD_BUILDING, BUILD_READY, BUILD_ERROR, BUILD_STATE_COUNT };
const char *build_state_name(enum build_state state);

struct build_row {
	int64_t seq;
	const char *id, *tenant, *template;
	const char *node; /* NULL at insert: this store's */
	enum build_state state;
	const char *reason;  /* of an error; or NULL */
	const char *step;    /* in which it was; or NULL */
	const char *tags;    /* JSON: what it is called when it is ready */
	const char *context; /* JSON: user, workdir, env, start and ready command */
	const char *image;   /* of what it made; NULL: the host's system */
	const char *workspace;
	int64_t created_ms, ended_ms;
};

enum build_fields {
	BUILD_SET_STATE = 1 << 0, /* and reason, step */
	BUILD_SET_MADE = 1 << 1,  /* image, workspace, context */
	BUILD_SET_ENDED = 1 << 2,
};

struct tag_row {
	const char *template, *tag, *build;
	int64_t created_ms;
};

struct line_row {
	const char *build;
	int64_t num, at_ms;
	const char *level, *text;
};

struct step_row {
	const char *tenant, *hash, *workspace;
	int64_t created_ms;
};

struct template_list {
	struct template_row *rows;
	size_t n;
};
struct build_list {
	struct build_row *rows;
	size_t n;
};
struct tag_list {
	struct tag_row *rows;
	size_t n;
};
struct line_list {
	struct line_row *rows;
	size_t n;
};

int store_template_insert(struct store *s, const struct template_row *row, struct store_call call,
                          struct err *e);
/* With its builds, their lines and its tags. STORE_NOT_FOUND. */
int store_template_drop(struct store *s, const char *tenant, const char *id, struct store_call call,
                        struct err *e);
int store_build_insert(struct store *s, const struct build_row *row, struct store_call call,
                       struct err *e);
/* STORE_NOT_FOUND when it was dropped meanwhile. With a state that is ready its tags lead to it. */
int store_build_update(struct store *s, const struct build_row *row, uint32_t fields,
                       struct store_call call, struct err *e);
int store_build_drop(struct store *s, const char *id, struct store_call call, struct err *e);
int store_build_say(struct store *s, const struct line_row *rows, size_t n, struct store_call call,
                    struct err *e);
/* At start: the daemon that worked on them is dead. Steps whose workspaces are gone go too. */
int store_build_unlock(struct store *s, const char *reason, struct store_call call, struct err *e);
int store_tag_put(struct store *s, const struct tag_row *row, struct store_call call,
                  struct err *e); /* moves it */
int store_tag_drop(struct store *s, const struct tag_row *row, struct store_call call,
                   struct err *e); /* by template and tag */
int store_step_put(struct store *s, const struct step_row *row, struct store_call call,
                   struct err *e);

int store_template_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                       struct template_row *out, struct err *e);
int store_template_by_name(struct store *s, const char *tenant, const char *name, struct arena *a,
                           struct template_row *out, struct err *e);
int store_template_list(struct store *s, const char *tenant, struct arena *a,
                        struct template_list *out, struct err *e);
int store_build_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                    struct build_row *out, struct err *e);
/* One that is ready. */
int store_build_by_tag(struct store *s, const char *template, const char *tag, struct arena *a,
                       struct build_row *out, struct err *e);
int store_build_unfinished(struct store *s, struct arena *a, struct build_list *out, struct err *e);
int store_build_list(struct store *s, const char *template, struct arena *a, struct build_list *out,
                     struct err *e); /* the newest first */
/* Of a template: ready or failed, not the newest, and no tag leads there. */
int store_build_loose(struct store *s, const char *template, struct arena *a,
                      struct build_list *out, struct err *e);
/* At most `n` lines from number `from` on. */
struct line_query {
	const char *build;
	int64_t from;
	size_t n;
};
int store_build_lines(struct store *s, const struct line_query *q, struct arena *a,
                      struct line_list *out, struct err *e);
int store_tag_list(struct store *s, const char *template, struct arena *a, struct tag_list *out,
                   struct err *e);
int store_step_get(struct store *s, const char *tenant, const char *hash, struct arena *a,
                   struct step_row *out, struct err *e);
