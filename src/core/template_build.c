/*
 * template_build.c - a build, from what it begins with to what comes of it; template_step.c has the
 * steps, template_end.c what it says and its end.
 */
#include "base/limits.h"
#include "core/image.h"
#include "core/policy.h"
#include "core/template-internal.h"
#include "core/workspace.h"
#include "wire/hash.h"

#define SANDBOX_MS (4ull * 3600 * 1000)
#define KEPT_MS (7ull * 86400 * 1000) /* how long what steps left is kept for the next build */
#define READY_MS (5ull * 60 * 1000)
#define BUSY_MS 200
#define COPIES_MAX (FS_ENTRIES_MAX - 4)

void build_free(struct template_build *b)
{
	struct template_build **at = &b->core->builds;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	timer_stop(&b->core->timers, &b->turn);
	timer_stop(&b->core->timers, &b->saying);
	while (b->n_held > 0)
		free((char *)b->held[--b->n_held].text);
	runner_cancel(b->runner);
	template_run_cancel(b->run);
	json_decref(b->steps);
	json_decref(b->context);
	free(b->hashes);
	free(b->image);
	free(b->own);
	free(b->home);
	free(b);
}

void templates_close(struct core *c)
{
	while (c->builds)
		build_free(c->builds);
}

/* ---- its turns ------------------------------------------------------------------------ */

void build_then(struct template_build *b, void (*next)(struct template_build *b))
{
	b->next_do = next;
	timer_set(&b->core->timers, &b->turn, 0);
}

static void turned(struct timer *t)
{
	struct template_build *b =
	    (struct template_build *)(void *)((char *)t - offsetof(struct template_build, turn));

	struct core *c = b->core;

	if (c->is_closing)
		return;
	c->actor = b->actor[0] ? b->actor : NULL;
	b->next_do(b);
	c->actor = NULL;
}

struct sbx *build_sandbox(struct template_build *b)
{
	struct sbx *s = roster_find(&b->core->sandboxes, b->sandbox);
	struct fail none;

	if (s && sbx_check_running(s, &none) == 0)
		return s;
	fail_set(&b->fail, FAIL_SANDBOX_UNAVAILABLE, "the sandbox of the build has ended");
	return NULL;
}

/* ---- what comes of it ---------------------------------------------------------------- */

/* On record before it is of use: whoever dies in between leaves something that can be found. */
static void record_made(struct template_build *b, const char *workspace)
{
	const struct build_row row = { .id = b->id,
		                       .tenant = b->tenant,
		                       .template = b->template,
		                       .tags = "[]",
		                       .image = b->made,
		                       .workspace = workspace };
	struct err e;

	(void)store_build_update(b->core->store, &row, BUILD_SET_MADE, (struct store_call){ 0 },
	                         &e); /* or its end says it */
}

static void labelled(void *arg, struct wsx *w, const struct fail *f)
{
	(void)w;
	build_fail(arg, f);
}

/* Forks of a fork know by it which image they are used with. It stays until its template goes,
 * though it may be a fork of what is kept for some days. */
static void label(struct template_build *b)
{
	char spec[128];
	struct wsx_life life = { .has_ttl = true, .spec_text = b->made ? spec : NULL };
	struct fail f = { 0 };
	struct wsx *w = wsx_find(b->core, b->tenant, b->kept, &f);

	snprintf(spec, sizeof spec, "{\"image\":\"%s\"}", b->made ? b->made : "");
	if (!w || wsx_change(w, &life, labelled, b, &f) < 0)
		build_fail(b, &f);
}

static void kept(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	struct template_build *b = arg;

	(void)n;
	if (f) {
		build_fail(b, f);
		return;
	}
	snprintf(b->kept, sizeof b->kept, "%s", ids[0]);
	record_made(b, b->kept);
	build_then(b, label);
}

static void keep_files(struct template_build *b)
{
	struct fail f = { 0 };
	struct wsx *w = wsx_find(b->core, b->tenant, b->work, &f);

	/* For ever only when it is on record. */
	const struct wsx_forks bare = { .n = 1, .is_bare = true, .ttl_ms = KEPT_MS };

	if (!w || wsx_fork(w, &bare, kept, b, &f) < 0)
		build_fail(b, &f);
}

static void taken(void *arg, const struct image_row *row, const struct fail *f)
{
	struct template_build *b = arg;

	if (f) {
		build_fail(b, f);
		return;
	}
	snprintf(b->made_name, sizeof b->made_name, "%s", row->name);
	b->made = b->made_name;
	build_then(b, keep_files);
}

static void take_image(struct template_build *b)
{
	char name[NAME_TEXT_MAX];
	struct fail f = { 0 };
	struct wsx *w = wsx_find(b->core, b->tenant, b->work, &f);

	snprintf(name, sizeof name, TEMPLATE_IMAGE "%s", b->id);
	if (w && image_snapshot(w, &(struct image_ask){ .tenant = b->tenant, .name = name }, NULL,
	                        taken, b, &f) == 0)
		return;
	if (f.code != FAIL_BUSY || !f.is_retry_safe) {
		build_fail(b, &f);
		return;
	}
	b->next_do = take_image;
	timer_set(&b->core->timers, &b->turn, BUSY_MS);
}

static void keep(struct template_build *b)
{
	if (b->image)
		take_image(b);
	else
		keep_files(b);
}

static void started(void *arg, const struct fail *f)
{
	struct template_build *b = arg;

	b->run = NULL;
	if (f)
		build_fail(b, f);
	else
		build_then(b, keep);
}

/* What steps have left fits into a row, or nothing is kept of it. */
static int check_context(struct template_build *b)
{
	AUTO(freep) char *text = json_dumps(b->context, JSON_COMPACT);

	if (strlen(text) <= STORE_BUILD_MAX)
		return 0;
	return fail_set(&b->fail, FAIL_TOO_LARGE, "variables and commands are more than %u bytes",
	                STORE_BUILD_MAX);
}

void build_finish(struct template_build *b)
{
	struct sbx *s = build_sandbox(b);
	const char *start = json_string_value(json_object_get(b->context, "start"));
	const char *ready = json_string_value(json_object_get(b->context, "ready"));

	snprintf(b->step, sizeof b->step, "finalize");
	if (!s || check_context(b) < 0) {
		build_end(b);
	} else if (start || ready) {
		build_sayf(b, "info", "[finalize] START %s", start ? start : "");
		b->run = template_run(s, &(struct template_run_ask){ .context = b->context,
		                                                     .user = b->own,
		                                                     .time_ms = READY_MS,
		                                                     .done = started,
		                                                     .arg = b });
	} else {
		keep(b);
	}
}

/* ---- what is kept of a step ---------------------------------------------------------- */

static void step_kept(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	struct template_build *b = arg;
	AUTO(arena_done) struct arena a = { 0 };
	struct step_row before;
	struct err e = { 0 };

	(void)n;
	if (f) {
		build_fail(b, f);
		return;
	}
	const struct step_row row = { .tenant = b->tenant,
		                      .hash = b->hashes[b->at],
		                      .workspace = ids[0],
		                      .created_ms = core_now_ms() };
	if (store_step_get(b->core->store, b->tenant, row.hash, &a, &before, &e) == 0)
		template_discard(b->core, b->tenant, before.workspace);
	(void)store_step_put(b->core->store, &row, (struct store_call){ 0 }, &e);
	b->at++;
	build_then(b, build_step);
}

void build_step_done(struct template_build *b, bool has_written)
{
	struct fail f = { 0 };
	struct wsx *w = wsx_find(b->core, b->tenant, b->work, &f);

	if (!has_written || !b->image) { /* of the host's root nothing is kept */
		b->at++;
		build_then(b, build_step);
	} else if (!w || wsx_fork(w, &(struct wsx_forks){ .n = 1, .ttl_ms = KEPT_MS }, step_kept, b,
	                          &f) < 0) {
		build_fail(b, &f);
	}
}

/* ---- its sandbox --------------------------------------------------------------------- */

static void sandbox_made(void *arg, struct sbx *s, const struct fail *f)
{
	struct template_build *b = arg;

	(void)s;
	if (f)
		build_fail(b, f);
	else
		build_then(b, build_step);
}

/* What is to be copied, each where its step finds it. */
static int find_copies(struct template_build *b, struct arena *a, struct maker_tree *out, size_t *n)
{
	for (size_t i = b->cached; i < json_array_size(b->steps); i++) {
		const json_t *step = json_array_get(b->steps, i);
		const char *hash = json_string_value(json_object_get(step, "filesHash"));
		char name[NAME_TEXT_MAX], at[64];
		struct image_row row;
		struct err e;

		if (strcmp(json_string_value(json_object_get(step, "type")), "COPY") != 0)
			continue;
		snprintf(name, sizeof name, TEMPLATE_FILES "%s", hash ? hash : "");
		snprintf(b->step, sizeof b->step, "%zu", i + 1);
		if (*n == COPIES_MAX)
			return fail_set(&b->fail, FAIL_INVALID, "COPY: at most %d of them",
			                COPIES_MAX);
		if (!hash || store_image_get(b->core->store, b->tenant, name, a, &row, &e) < 0)
			return fail_set(&b->fail, FAIL_NOT_FOUND,
			                "COPY: its files have not been uploaded");
		snprintf(at, sizeof at, BUILD_COPIES "/%zu", i);
		out[(*n)++] = (struct maker_tree){ .tree = (uint64_t)row.tree,
			                           .at = arena_strdup(a, at),
			                           .is_read_only = true };
	}
	return 0;
}

/* Of the host's system nothing can be written to: working folders are places of their own. */
static void mount_folders(const struct template_build *b, json_t *fs)
{
	AUTO(arena_done) struct arena a = { 0 };
	const char *at = json_string_value(json_object_get(b->context, "workdir"));
	size_t i;
	const json_t *step;

	json_array_foreach(b->steps, i, step)
	{
		const char *to =
		    json_string_value(json_array_get(json_object_get(step, "args"), 0));

		if (strcmp(json_string_value(json_object_get(step, "type")), "WORKDIR") != 0)
			continue;
		at = build_path(&a, at, to);
		bool is_known = !template_mounts(at, b->home);
		char entry[PATH_TEXT_MAX + 16];

		for (size_t k = 0; !is_known && k < json_array_size(fs); k++) {
			const char *known = strchr(json_string_value(json_array_get(fs, k)), ':');

			is_known = known && !template_mounts(at, known + 1);
		}
		snprintf(entry, sizeof entry, "ephemeral:%s", at);
		if (!is_known)
			json_array_append_new(fs, json_string(entry));
	}
}

/* What the operator's config lets builds reach; presets stand for hosts. */
static json_t *network_of(const struct core *c)
{
	json_t *allow = json_array();

	for (size_t i = 0; i < c->config.net->builds.len; i++)
		json_array_append_new(allow, json_string(c->config.net->builds.at[i]));
	return json_pack("{so}", "allow", allow);
}

static int spec_of(const struct template_build *b, struct spec *spec, struct str *text,
                   struct fail *f)
{
	const struct core *c = b->core;
	json_t *j =
	    json_pack("{s[s++,s],ss,ss}", "fs", "workspace:", b->home, "", "ephemeral:/root",
	              "checkpoint", b->image ? "all" : "off", "workspace", b->work);
	struct err e = { 0 };

	if (b->image)
		json_object_set_new(j, "image", json_string(b->image));
	else
		mount_folders(b, json_object_get(j, "fs"));
	if (c->host.is_root) /* steps install packages, and give files to others */
		json_object_set_new(j, "profile", json_string("rootful"));
	if (c->config.net->builds.len > 0)
		json_object_set_new(j, "net", network_of(c));
	AUTO(freep) char *json = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	if (spec_json(spec, json, strlen(json), &e) < 0)
		return fail_err(f, &e);
	if (policy_expand(c, spec, f) < 0)
		return -1;
	if (spec_print(spec, text, &e) < 0)
		return fail_err(f, &e);
	spec_default(spec, c->config.defaults);
	spec_resolve(spec);
	if (spec_bound(spec, c->config.most, &e) < 0 || spec_check(spec, &e) < 0)
		return fail_err(f, &e);
	return 0;
}

/* Working folders of the host's system are places too. */
static int check_places(const struct spec *spec, size_t n_copies, struct fail *f)
{
	if (n_copies + spec->fs.len < FS_ENTRIES_MAX)
		return 0;
	return fail_set(f, FAIL_INVALID, "COPY and WORKDIR: a sandbox has at most %d places",
	                FS_ENTRIES_MAX - 1);
}

static void make_sandbox(struct template_build *b)
{
	AUTO(arena_done) struct arena a = { 0 };
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	AUTO(spec_done) struct spec spec;
	struct maker_tree trees[COPIES_MAX];
	AUTO(freep) char *labels = NULL;
	json_t *l = json_pack("{ss}", "build", b->id);
	struct sbx_ask ask = { .tenant = b->tenant,
		               .spec = &spec,
		               .life = LIFE_OWNS_WORK,
		               .door = TEMPLATE_DOOR,
		               .ttl_ms = SANDBOX_MS,
		               .client_fd = -1,
		               .trees = trees };

	labels = json_dumps(l, JSON_COMPACT);
	json_decref(l);
	spec_init(&spec);
	if (find_copies(b, &a, trees, &ask.n_trees) == 0 &&
	    spec_of(b, &spec, &text, &b->fail) == 0 &&
	    check_places(&spec, ask.n_trees, &b->fail) == 0) {
		ask.spec_text = str_text(&text);
		ask.labels = labels;
		const struct sbx *s = sbx_create(b->core, &ask, sandbox_made, b, &b->fail);
		if (s) {
			snprintf(b->sandbox, sizeof b->sandbox, "%s", s->id);
			return;
		}
	}
	template_discard(b->core, b->tenant, b->work);
	build_end(b);
}

static void work_is(struct template_build *b, const char *id, const struct fail *f)
{
	if (f) {
		build_fail(b, f);
		return;
	}
	snprintf(b->work, sizeof b->work, "%s", id);
	record_made(b, b->work); /* until a sandbox has it, which takes it along */
	build_then(b, make_sandbox);
}

static void work_made(void *arg, struct wsx *w, const struct fail *f)
{
	work_is(arg, f ? NULL : w->row.id, f);
}

static void work_forked(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	(void)n;
	work_is(arg, f ? NULL : ids[0], f);
}

/* The last step behind which all is kept, + 1; its workspace in b->from. */
static size_t find_kept(struct template_build *b)
{
	AUTO(arena_done) struct arena a = { 0 };
	size_t found = 0;
	struct fail f;
	struct err e;

	for (size_t i = 0; i < json_array_size(b->steps) && b->image && !b->is_forced; i++) {
		struct step_row row;

		if (json_is_true(json_object_get(json_array_get(b->steps, i), "force")))
			break;
		if (store_step_get(b->core->store, b->tenant, b->hashes[i], &a, &row, &e) < 0 ||
		    !wsx_find(b->core, b->tenant, row.workspace, &f))
			continue; /* or it is over: a step further down may still be there */
		snprintf(b->from, sizeof b->from, "%s", row.workspace);
		found = i + 1;
	}
	return found;
}

static void begin(struct template_build *b)
{
	struct fail f = { 0 };
	/* Whoever dies before it is on record leaves nothing that stays for ever. */
	const struct wsx_ask ask = { .tenant = b->tenant, .ttl_ms = KEPT_MS };
	const struct wsx_forks one = { .n = 1, .ttl_ms = KEPT_MS };
	int r;

	b->cached = find_kept(b);
	if (!b->image)
		build_sayf(b, "warn",
		           "The base is the host's own system: of what steps write, %s is kept and "
		           "nothing else",
		           b->home);
	if (b->from[0]) {
		struct wsx *w = wsx_find(b->core, b->tenant, b->from, &f);

		r = w ? wsx_fork(w, &one, work_forked, b, &f) : -1;
	} else {
		r = wsx_create(b->core, &ask, work_made, b, &f);
	}
	if (r < 0)
		build_fail(b, &f);
}

/* ---- what is asked ------------------------------------------------------------------- */

/* Each stands for all that was done until then. */
static void hash_steps(struct template_build *b, const char *base)
{
	size_t n = json_array_size(b->steps);

	b->hashes = mem_alloc((n + 1) * sizeof *b->hashes);
	for (size_t i = 0; i < n; i++) {
		json_t *step = json_copy(json_array_get(b->steps, i));
		struct hash h;

		json_object_del(step, "force");
		AUTO(freep) char *text = json_dumps(step, JSON_COMPACT | JSON_SORT_KEYS);
		json_decref(step);
		hash_init(&h);
		hash_add(&h, span_of(i ? b->hashes[i - 1] : base));
		hash_add(&h, span_of(text));
		hash_text(&h, b->hashes[i]);
	}
}

/* What it begins with: an image by its tree, since a name may come to mean another. */
static int take_base(struct template_build *b, const struct template_ask *ask, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row image = { 0 };
	struct build_row from;
	char base[128];

	b->context = json_pack("{ss,ss,s{}}", "user", ask->user, "workdir", ask->home, "env");
	if (ask->template && template_made(b->core, b->tenant, ask->template, &a, &from, f) < 0)
		return -1;
	if (ask->template) {
		json_t *context = from.context ? json_loads(from.context, 0, NULL) : NULL;

		json_object_update(b->context, context);
		json_decref(context);
		snprintf(b->from, sizeof b->from, "%s", from.workspace);
	}
	const char *name = ask->template ? from.image : ask->image;
	if (name && image_find(b->core, b->tenant, name, &a, &image, f) < 0)
		return -1;
	b->image = name ? mem_strdup(name) : NULL;
	if (ask->start)
		json_object_set_new(b->context, "start", json_string(ask->start));
	if (ask->ready)
		json_object_set_new(b->context, "ready", json_string(ask->ready));
	snprintf(base, sizeof base, "%lld %s", (long long)image.tree, b->from);
	hash_steps(b, base);
	return 0;
}

static int check_row(struct template_build *b, const struct template_ask *ask, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct build_row row;
	struct err e = { 0 };

	if (store_build_get(b->core->store, ask->tenant, ask->build, &a, &row, &e) < 0)
		return e.kind == ERR_NOT_FOUND ? fail_set(f, FAIL_NOT_FOUND, "no such build")
		                               : fail_err(f, &e);
	for (const struct template_build *o = b->next; o; o = o->next)
		if (strcmp(o->id, ask->build) == 0)
			return fail_set(f, FAIL_CONFLICT, "it is being built");
	if (row.state != BUILD_WAITING)
		return fail_set(f, FAIL_CONFLICT, "it has been built already");
	snprintf(b->id, sizeof b->id, "%s", row.id);
	snprintf(b->template, sizeof b->template, "%s", row.template);
	return 0;
}

int template_build(struct core *c, const struct template_ask *ask, struct store_call call,
                   struct fail *f)
{
	struct template_build *b = mem_alloc(sizeof *b);
	struct err e = { 0 };

	*b = (struct template_build){ .core = c,
		                      .next = c->builds,
		                      .own = mem_strdup(ask->user),
		                      .home = mem_strdup(ask->home),
		                      .steps = json_deep_copy(ask->steps),
		                      .is_forced = ask->is_forced,
		                      .turn.fired = turned,
		                      .saying.fired = build_say_on };
	snprintf(b->tenant, sizeof b->tenant, "%s", ask->tenant);
	snprintf(b->actor, sizeof b->actor, "%s", c->actor ? c->actor : "");
	snprintf(b->step, sizeof b->step, "base");
	c->builds = b;
	if (check_row(b, ask, f) < 0 || build_check_steps(b, f) < 0 || take_base(b, ask, f) < 0) {
		build_free(b);
		return -1;
	}
	const struct build_row row = { .id = b->id,
		                       .tenant = b->tenant,
		                       .template = b->template,
		                       .tags = "[]",
		                       .state = BUILD_BUILDING };
	if (store_build_update(c->store, &row, BUILD_SET_STATE, call, &e) < 0) {
		build_free(b);
		return fail_err(f, &e);
	}
	build_then(b, begin);
	return 0;
}
