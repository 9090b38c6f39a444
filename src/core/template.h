/*
 * template.h - what sandboxes can be made from, built by steps; docs/decisions/0043-e2b.md.
 *
 * A build runs its steps in one sandbox of the tenant's, in the image that it begins with and with
 * a workspace at the home folder, as anybody's sandbox: the same walls, no network. What came of it
 * is an image (of the root that the workspace keeps, `checkpoint: all`) and a fork of the
 * workspace. From the host's system only the workspace is kept: its root is the host's.
 *
 *   begin ─▷ what is kept of these steps ─▷ sandbox ─▷ step, fork; step, fork; … ─▷ start, ready
 *         ─▷ image ─▷ fork ─▷ sandbox gone ─▷ row: ready, tags
 *
 * The rows (store/templates.h) are the truth; what is here is a build under way, which a restart of
 * the daemon ends.
 */
#pragma once

#include <jansson.h>

#include "core/sandbox.h"
#include "store/templates.h"

#define TEMPLATE_TAG "default"
#define TEMPLATE_FILES "files:"    /* images of what is to be copied: behind it, a hash of theirs */
#define TEMPLATE_IMAGE "template:" /* images that builds made: behind it, the id of the build */
#define TEMPLATE_DOOR "\"build\""  /* sbx.door of the sandboxes of builds: no door shows them */
#define TEMPLATE_ID_SIZE 40        /* of a build: as a UUID */

struct template_build;

bool template_owns(const char *image);               /* the name is one of ours */
bool template_name_is(const char *text, size_t len); /* of a template */
bool template_tag_is(const char *text, size_t len);

/* "NAME", "NAME:TAG", either with an id instead of the name. */
int template_find(struct core *c, const char *tenant, const char *name, struct arena *a,
                  struct template_row *out, struct fail *f) MUST_USE;
/* The build that this leads to; `not_found` when that is not ready. */
int template_made(struct core *c, const char *tenant, const char *name, struct arena *a,
                  struct build_row *out, struct fail *f) MUST_USE;

/* A name and its first tags, of which there is one at least; the template may be there. Both ids
 * come at once; `call` tells when the rows are there. */
struct template_new {
	const char *tenant, *name;
	const json_t *tags;
	char template[ID_SIZE], build[TEMPLATE_ID_SIZE];
};
int template_begin(struct core *c, struct template_new *t, struct store_call call,
                   struct fail *f) MUST_USE;

/* The steps of a build that waits: [{type,args[],filesHash?,force?}]. */
struct template_ask {
	const char *tenant, *build;
	const char *image;       /* to begin with; NULL: the host's system */
	const char *template;    /* or this one, as for template_made(); NULL: none */
	const char *home, *user; /* the folder of the workspace; what its own user is called */
	const json_t *steps;
	const char *start, *ready; /* commands; NULL: none */
	bool is_forced;            /* nothing that is kept counts */
};
/* `call` tells when it is on record that it is being built. */
int template_build(struct core *c, const struct template_ask *ask, struct store_call call,
                   struct fail *f) MUST_USE;

/* Its builds, images and workspaces go. `busy` while a sandbox has one of the images. */
int template_delete(struct core *c, const char *tenant, const char *id, struct store_call call,
                    struct fail *f) MUST_USE;

/* ---- template_run.c ---- */

/* The start command of a context, and its ready command until that succeeds: in a new sandbox, and
 * in the last step of a build. Told once, and not from within; not after a cancel. */
struct template_run;
typedef void template_run_fn(void *arg, const struct fail *f);
struct template_run_ask {
	const json_t *context;
	const char *user; /* what the sandbox's own is called */
	uint64_t time_ms; /* to become ready */
	template_run_fn *done;
	void *arg;
};
struct template_run *template_run(struct sbx *s, const struct template_run_ask *ask);
void template_run_cancel(struct template_run *r); /* fine with NULL */
/* Variables of a context, borrowed from it. */
struct pair_list template_env(const json_t *context, struct arena *a);
/* A folder that has to be mounted, since the root is the host's: outside `home`. */
bool template_mounts(const char *workdir, const char *home);
/* Its user as a sandbox names it; NULL: the sandbox's own. */
const char *template_user(const char *user, const char *own);

/* ---- for core.c ---- */
void templates_recover(struct core *c);
void templates_close(struct core *c);
