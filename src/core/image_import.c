/*
 * image_import.c - from the first byte that a client sends to a name.
 */
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/files.h"
#include "core/image.h"
#include "core/quota.h"
#include "core/trees.h"
#include "core/workspace.h"
#include "io/journal.h"
#include "os/file.h"

#define ANSWER_MAX (256u << 10)
#define TIME_MS (2u * 3600 * 1000)

struct image_import {
	struct job job; /* first */
	struct image_import *next;
	struct core *core;
	struct image_owner owner;
	char tenant[TENANT_SIZE], *name, *ref;
	bool is_oci, is_replace;
	bool is_cancelled, is_taking; /* taking: the worker has the job */
	uint64_t bytes_max, keep_free;
	uint64_t tree;         /* 0: none yet */
	char sandbox[ID_SIZE]; /* "": none; by its id, since it may end by itself */
	struct str answer;
	struct arena arena;
	struct image_row row;
	struct fail fail;
	struct timer turn; /* what must not happen within a call of others */
};

static void import_free(struct image_import *im)
{
	struct image_import **at = &im->core->imports;

	while (*at != im)
		at = &(*at)->next;
	*at = im->next;
	timer_stop(&im->core->timers, &im->turn);
	str_done(&im->answer);
	arena_done(&im->arena);
	free(im->name);
	free(im->ref);
	free(im);
}

bool image_is_coming(const struct core *c, uint64_t tree)
{
	for (const struct image_import *im = c->imports; im; im = im->next)
		if (im->tree == tree)
			return true;
	return image_is_taken(c, tree);
}

void images_close(struct core *c)
{
	while (c->imports)
		import_free(c->imports);
}

/* ---- the end ------------------------------------------------------------------------- */

static void end(struct image_import *im)
{
	struct core *c = im->core;
	bool is_failed = im->fail.code != FAIL_NONE;

	if (is_failed && im->tree)
		tree_remove(c, im->tree);
	journal(JOURNAL_INFO, is_failed ? "an image was not imported" : "an image was imported",
	        "image", im->name, "tenant", im->tenant, "reason",
	        is_failed ? im->fail.detail : NULL, NULL);
	if (!im->is_cancelled)
		im->owner.done(im->owner.arg, is_failed ? NULL : &im->row,
		               is_failed ? &im->fail : NULL);
	import_free(im);
	images_sweep(c); /* what had the name before */
}

static void named(void *arg, const struct store_answer *a)
{
	struct image_import *im = arg;

	if (a->code == STORE_EXISTS)
		fail_set(&im->fail, FAIL_EXISTS, "there is an image %s; replace it?", im->name);
	else if (a->code != STORE_OK)
		fail_set(&im->fail, FAIL_BACKEND_ERROR, "the image could not be stored");
	end(im);
}

static void sealed(void *arg, uint64_t num, const struct fail *f)
{
	struct image_import *im = arg;
	struct err e = { 0 };

	im->row.tree = (int64_t)num;
	im->row.created_ms = core_now_ms();
	if (f)
		im->fail = *f;
	if (im->is_cancelled && !f)
		fail_set(&im->fail, FAIL_EXPIRED, "cancelled");
	if (im->fail.code == FAIL_NONE &&
	    store_image_put(im->core->store, &im->row, im->is_replace,
	                    (struct store_call){ .done = named, .arg = im, .is_durable = true },
	                    &e) == 0)
		return;
	if (im->fail.code == FAIL_NONE)
		fail_unsent(&im->fail, &e);
	end(im);
}

/* ---- what the worker says ------------------------------------------------------------ */

static int64_t number_of(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

static const char *text_of(struct image_import *im, const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? arena_strdup(&im->arena, text) : NULL;
}

static bool is_hex(const char *text)
{
	return text && strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* An object, and of the right kinds: whoever reads it need not ask again. */
static bool are_settings(const char *text)
{
	static const char *const lists[] = { "entrypoint", "cmd" }, *const texts[] = { "cwd",
		                                                                       "user" };
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *env = json_object_get(o, "env");
	bool is_good = json_is_object(o) && (!env || json_is_object(env));

	for (size_t i = 0; i < COUNT(lists); i++) {
		const json_t *list = json_object_get(o, lists[i]),
			     *word = json_object_get(o, texts[i]);

		is_good &= (!list || json_is_array(list)) && (!word || json_is_string(word));
	}
	json_decref(o);
	return is_good;
}

/* The worker read hostile bytes: what it says of itself is looked at. */
static void read_answer(struct image_import *im)
{
	json_error_t why;
	json_t *j = json_loadb(str_text(&im->answer), im->answer.len, JSON_REJECT_DUPLICATES, &why);

	im->row = (struct image_row){ .tenant = im->tenant,
		                      .name = im->name,
		                      .source = im->is_oci ? "oci" : "tar",
		                      .digest = text_of(im, j, "digest"),
		                      .bytes = number_of(j, "bytes"),
		                      .files = number_of(j, "files"),
		                      .layers = number_of(j, "layers"),
		                      .dropped = number_of(j, "dropped"),
		                      .settings = text_of(im, j, "settings"),
		                      .passwd = text_of(im, j, "passwd") };
	if (im->answer.overflow || !is_hex(im->row.digest) || im->row.bytes < 0 ||
	    im->row.files < 0 || im->row.layers < 0 || im->row.dropped < 0 ||
	    (im->row.settings && !are_settings(im->row.settings)))
		fail_set(&im->fail, FAIL_BACKEND_ERROR, "the worker does not say what it did");
	json_decref(j);
}

static void read_failure(struct image_import *im, enum tree_code code)
{
	json_error_t why;
	json_t *j = json_loadb(str_text(&im->answer), im->answer.len, 0, &why);
	const char *detail = json_string_value(json_object_get(j, "detail"));

	fail_set(&im->fail, tree_code_fail(code), "%.400s", detail ? detail : "it failed");
	json_decref(j);
}

static void job_answer(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct image_import *im = (struct image_import *)j;

	(void)is_last;
	str_addn(&im->answer, p->data.at, p->data.len);
}

static void job_data(struct job *j, struct span bytes)
{
	struct image_import *im = (struct image_import *)j;

	str_addn(&im->answer, bytes.at, bytes.len);
}

static void gone(void *arg, struct sbx *s, const struct fail *f)
{
	struct image_import *im = arg;

	(void)s;
	(void)f; /* it cannot be told to end: it is dead, or the next start finds it */
	if (im->fail.code == FAIL_NONE)
		tree_seal(im->core, im->tree, sealed, im);
	else
		end(im);
}

/* Nobody else has the tree then. One that ends already has failed us. */
static void dismiss(struct image_import *im)
{
	struct sbx *s = roster_find(&im->core->sandboxes, im->sandbox);
	struct fail f = { 0 };

	if (s && sbx_delete(s, gone, im, &f) == 0)
		return;
	if (im->fail.code == FAIL_NONE)
		fail_set(&im->fail, FAIL_SANDBOX_UNAVAILABLE, "the sandbox of the worker died");
	end(im);
}

static void dismiss_soon(struct timer *t)
{
	dismiss((struct image_import *)(void *)((char *)t - offsetof(struct image_import, turn)));
}

static void job_over(struct job *j, const struct tree_answer *a)
{
	struct image_import *im = (struct image_import *)j;

	im->is_taking = false;
	if (!a)
		fail_set(&im->fail, FAIL_BACKEND_ERROR, "the worker that unpacked it died");
	else if (a->code != TREE_OK)
		read_failure(im, (enum tree_code)a->code);
	else
		read_answer(im);
	im->turn.fired = dismiss_soon; /* the worker's socket is in use still */
	timer_set(&im->core->timers, &im->turn, 0);
}

static void job_room(struct job *j)
{
	struct image_import *im = (struct image_import *)j;

	if (!im->is_cancelled)
		im->owner.room(im->owner.arg);
}

/* ---- the body ------------------------------------------------------------------------ */

bool image_import_body(struct image_import *im, const void *bytes, size_t n, bool is_last)
{
	return im->is_taking && files_body(&im->job, bytes, n, is_last);
}

void image_import_cancel(struct image_import *im)
{
	im->is_cancelled = true;
	if (!im->is_taking)
		return; /* whoever comes next sees it */
	im->is_taking = false;
	files_cancel(&im->job);
	fail_set(&im->fail, FAIL_EXPIRED, "cancelled");
	im->turn.fired = dismiss_soon;
	timer_set(&im->core->timers, &im->turn, 0);
}

/* ---- the beginning ------------------------------------------------------------------- */

static void walls_stand(void *arg, struct sbx *s, const struct fail *f)
{
	struct image_import *im = arg;

	if (f) {
		im->fail = *f;
		end(im);
		return;
	}
	im->job = (struct job){ .answer = job_answer,
		                .data = job_data,
		                .over = job_over,
		                .room = job_room,
		                .ask = { .flags = (im->is_oci ? TREE_OCI : 0) |
		                                  (im->core->host.is_root ? TREE_OWNERS : 0),
		                         .request = { .verb = TREE_IMAGE,
		                                      .time_ms = TIME_MS,
		                                      .count = im->bytes_max,
		                                      .from = im->keep_free },
		                         .path = span_of(im->ref ? im->ref : ""),
		                         .has_more = true } };
	if (im->is_cancelled)
		fail_set(&im->fail, FAIL_EXPIRED, "cancelled");
	if (im->fail.code != FAIL_NONE || files_start(s, &im->job, &im->fail) < 0) {
		im->turn.fired = dismiss_soon;
		timer_set(&im->core->timers, &im->turn, 0);
		return;
	}
	im->is_taking = true;
	im->owner.room(im->owner.arg);
}

/* Root inside, since files of an image have owners; nobody outside. Without root there is one
 * id, and all files are its. */
static void fill_spec(struct spec *spec, bool is_root)
{
	spec_init(spec);
	spec->user = "root";
	spec_resolve(spec);
	spec->profile = is_root ? PROFILE_ROOTFUL : PROFILE_DEFAULT;
	spec->fs.len = 0; /* in the place of the usual one is the tree */
}

static void tree_made(void *arg, uint64_t num, const struct fail *f)
{
	struct image_import *im = arg;
	AUTO(spec_done) struct spec spec;
	const struct maker_tree tree = { .tree = num, .at = WORKSPACE_FOLDER };

	if (f)
		im->fail = *f;
	else
		im->tree = num;
	if (!f && im->is_cancelled)
		fail_set(&im->fail, FAIL_EXPIRED, "cancelled");
	if (im->fail.code != FAIL_NONE) {
		end(im);
		return;
	}
	fill_spec(&spec, im->core->host.is_root);
	const struct sbx_ask ask = { .tenant = im->tenant,
		                     .spec = &spec,
		                     .client_fd = -1,
		                     .is_service = true,
		                     .trees = &tree,
		                     .n_trees = 1 };
	const struct sbx *s = sbx_create(im->core, &ask, walls_stand, im, &im->fail);

	if (s)
		snprintf(im->sandbox, sizeof im->sandbox, "%s", s->id);
	else
		end(im);
}

/* What there is room for: on the disk, but for its reserve, and in the tenant's quota. */
static int find_room(struct image_import *im, struct fail *f)
{
	struct core *c = im->core;
	uint64_t left, all, most = c->config.quota.of[QUOTA_DISK];
	struct quota used = { 0 };
	int r = os_room(c->logs_fd, &left, &all);

	if (r < 0)
		return fail_set(f, FAIL_BACKEND_ERROR, "the disk cannot be looked at");
	im->keep_free = all / 20 < IMAGE_RESERVE_MAX ? all / 20 : IMAGE_RESERVE_MAX;
	if (left <= im->keep_free)
		return fail_set(f, FAIL_QUOTA, "the disk is full but for its reserve");
	im->bytes_max = left - im->keep_free;
	if (im->bytes_max > IMAGE_BYTES_MAX)
		im->bytes_max = IMAGE_BYTES_MAX;
	if (most == 0)
		return 0;
	quota_used(c, im->tenant, &used);
	if (used.of[QUOTA_DISK] >= most)
		return fail_set(f, FAIL_QUOTA, "disk: nothing is left of the quota");
	if (im->bytes_max > most - used.of[QUOTA_DISK])
		im->bytes_max = most - used.of[QUOTA_DISK];
	return 0;
}

int image_check(struct core *c, const struct image_ask *ask, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row row;
	struct err e = { 0 };
	size_t n = 0;

	if (!image_name_is(ask->name))
		return fail_set(
		    f, FAIL_INVALID,
		    "\"%.64s\" is not a name for an image (letters, digits, then . _ - : / "
		    "too; not host, dir: or oci:)",
		    ask->name);
	if (!ask->is_replace &&
	    store_image_get(c->store, ask->tenant, ask->name, &a, &row, &e) == 0)
		return fail_set(f, FAIL_EXISTS, "there is an image %s; replace it?", ask->name);
	for (const struct image_import *im = c->imports; im; im = im->next)
		n++;
	if (n < IMAGE_IMPORTS_MAX)
		return 0;
	fail_set(f, FAIL_BUSY, "%zu images are being imported already", n);
	f->is_retry_safe = true;
	return -1;
}

struct image_import *image_import(struct core *c, const struct image_ask *ask,
                                  struct image_owner owner, struct fail *f)
{
	if (image_check(c, ask, f) < 0)
		return NULL;
	struct image_import *im = mem_alloc(sizeof *im);

	*im = (struct image_import){ .core = c,
		                     .next = c->imports,
		                     .owner = owner,
		                     .is_oci = ask->is_oci,
		                     .is_replace = ask->is_replace,
		                     .name = mem_strdup(ask->name),
		                     .ref = ask->ref ? mem_strdup(ask->ref) : NULL,
		                     .answer = { .max = ANSWER_MAX } };
	snprintf(im->tenant, sizeof im->tenant, "%s", ask->tenant);
	c->imports = im;
	if (find_room(im, f) < 0) {
		import_free(im);
		return NULL;
	}
	const struct tree_new tree = { .tenant = im->tenant, .kind = "image", .owner = im->name };

	tree_make(c, &tree, tree_made, im);
	return im;
}
