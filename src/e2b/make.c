/*
 * make.c - sandboxes are made, and forked. Each has a workspace of its own at their home folder, so
 * that what is there can be kept without what runs, copied and forked; it goes with the sandbox.
 */
#include "base/limits.h"
#include "core/details.h"
#include "core/image.h"
#include "core/template.h"
#include "core/workspace.h"
#include "e2b/e2b-internal.h"

#define TTL_DEFAULT 300
#define TTL_DEFAULT_OLD 15
#define TTL_MOST 2592000 /* thirty days */
#define FORKS_MOST 100
#define READY_MS 50000        /* their clients wait for a minute */
#define DOOR_MAX (256u << 10) /* it is read again for each request to a port */
#define LABEL_KEY_MAX 63
#define LABEL_VALUE_MAX 255

json_t *e2b_print(struct sbx *s)
{
	json_t *door = e2b_door(s);
	char id[E2B_ID_SIZE], token[E2B_TOKEN_SIZE];
	const char *template = json_string_value(json_object_get(door, "template"));

	ident_out(s->id, id);
	ident_token(s, "envd", token);
	json_t *o = json_pack("{ss,ss,ss,ss,ss}", "templateID", template ? template : E2B_TEMPLATE,
	                      "sandboxID", id, "clientID", "caisson", "envdVersion",
	                      E2B_ENVD_VERSION, "envdAccessToken", token);
	json_object_set_new(o, "domain", e2b_domain() ? json_string(e2b_domain()) : json_null());
	if (json_is_true(json_object_get(door, "private"))) {
		ident_token(s, "traffic", token);
		json_object_set_new(o, "trafficAccessToken", json_string(token));
	}
	json_decref(door);
	return o;
}

/* ---- in a workspace ------------------------------------------------------------------ */

static void make_end(struct e2b_make *m, struct sbx *s, const struct fail *f)
{
	m->done(m, s, f);
	json_decref(m->spec);
	json_decref(m->labels);
	json_decref(m->door);
	call_unref(m->call);
	free(m);
}

static void started(void *arg, const struct fail *f)
{
	struct e2b_make *m = arg;
	struct sbx *s = roster_find(&m->call->api->core->sandboxes, m->id);
	struct fail bad = { 0 };

	if (!f && !s)
		fail_set(&bad, FAIL_SANDBOX_UNAVAILABLE, "the sandbox has ended");
	else if (f)
		bad = *f;
	if (f && s)
		(void)sbx_delete(s, NULL, NULL, &(struct fail){ 0 }); /* or it goes by itself */
	make_end(m, s, f || !s ? &bad : NULL);
}

/* A workspace of its own goes with what was never made. What a template starts runs before anybody
 * hears of the sandbox. */
static void sandbox_made(void *arg, struct sbx *s, const struct fail *f)
{
	struct e2b_make *m = arg;

	if (f || !json_object_get(m->door, "workdir")) {
		make_end(m, s, f);
		return;
	}
	snprintf(m->id, sizeof m->id, "%s", s->id);
	(void)template_run(s, &(struct template_run_ask){ .context = m->door,
	                                                  .user = E2B_USER,
	                                                  .time_ms = READY_MS,
	                                                  .done = started,
	                                                  .arg = m });
}

static struct sbx *start(struct e2b_make *m, struct fail *f)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	AUTO(spec_done) struct spec spec;
	AUTO(freep) char *labels = json_dumps(m->labels, JSON_COMPACT | JSON_SORT_KEYS);
	AUTO(freep) char *door = json_dumps(m->door, JSON_COMPACT);
	struct sbx_ask ask = { .tenant = m->call->tenant,
		               .spec = &spec,
		               .labels = labels,
		               .door = door,
		               .life = m->life | (m->volume ? 0 : LIFE_OWNS_WORK),
		               .ttl_ms = m->ttl_ms,
		               .client_fd = -1 };

	spec_init(&spec);
	if (spec_of(m->call, m->spec, &spec, &text, f) < 0)
		return NULL;
	if (strlen(door) > DOOR_MAX) {
		fail_set(f, FAIL_INVALID, "network: more than %u bytes", DOOR_MAX);
		return NULL;
	}
	ask.spec_text = str_text(&text);
	return sbx_create(m->call->api->core, &ask, sandbox_made, m, f);
}

void e2b_make_in(struct e2b_make *m, struct wsx *w)
{
	struct fail f = { 0 };

	json_object_set_new(m->spec, "workspace", json_string(w->row.id));
	wsx_ref(w);
	if (start(m, &f)) {
		wsx_unref(w);
		return;
	}
	make_end(m, NULL, &f);
	wsx_discard(w);
}

/* ---- the body ------------------------------------------------------------------------ */

static int take_seconds(const json_t *body, const char *key, uint64_t otherwise, uint64_t *out_ms,
                        struct fail *f)
{
	const json_t *v = json_object_get(body, key);

	*out_ms = otherwise * 1000;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > TTL_MOST)
		return fail_set(f, FAIL_INVALID, "%s: 1 to %d seconds", key, TTL_MOST);
	*out_ms = (uint64_t)json_integer_value(v) * 1000;
	return 0;
}

static int take_texts(json_t *body, const char *key, json_t **out, struct fail *f)
{
	json_t *all = json_object_get(body, key), *v;
	const char *k;

	*out = json_object();
	if (!all || json_is_null(all))
		return 0;
	if (!json_is_object(all))
		return fail_set(f, FAIL_INVALID, "%s: an object of texts is expected", key);
	json_object_foreach(all, k, v)
	{
		if (!json_is_string(v) || !*k)
			return fail_set(f, FAIL_INVALID, "%s: \"%.63s\": a text is expected", key,
			                k);
		json_object_set(*out, k, v);
	}
	return 0;
}

/* Theirs are ours: what can be listed by them has our bounds. */
static int take_metadata(json_t *body, json_t **out, struct fail *f)
{
	const char *k;
	json_t *v;

	if (take_texts(body, "metadata", out, f) < 0)
		return -1;
	json_object_foreach(*out, k,
	                    v) if (strlen(k) > LABEL_KEY_MAX ||
	                           json_string_length(v) >
	                               LABEL_VALUE_MAX) return fail_set(f, FAIL_INVALID,
	                                                                "metadata: \"%.63s\" is "
	                                                                "too long",
	                                                                k);
	return 0;
}

static int take_life(const json_t *body, uint32_t *life, struct fail *f)
{
	const json_t *resume = json_object_get(body, "autoResume");
	bool is_pause = false, keeps_memory = true;

	if (member_bool(body, "autoPause", &is_pause, f) < 0 ||
	    member_bool(body, "autoPauseMemory", &keeps_memory, f) < 0)
		return -1;
	bool wakes = json_is_true(json_object_get(resume, "enabled"));
	if (!keeps_memory && wakes)
		return fail_set(f, FAIL_INVALID,
		                "autoResume: not with a pause that keeps no memory");
	*life = is_pause ? (keeps_memory ? LIFE_PAUSE : LIFE_STOP) : 0;
	*life |= wakes ? LIFE_WAKES : 0;
	return 0;
}

/* What is asked for and not here is refused, never left out. */
static int refuse_unknown(const json_t *body, struct fail *f)
{
	static const char *const keys[] = { "iam" }; /* mcp is done by the client */

	for (size_t i = 0; i < COUNT(keys); i++) {
		const json_t *v = json_object_get(body, keys[i]);

		if (v && !json_is_null(v) && (json_array_size(v) > 0 || json_object_size(v) > 0))
			return fail_set(f, FAIL_UNENFORCEABLE, "%s is not offered here", keys[i]);
	}
	return 0;
}

/* A sandbox has one workspace. With a volume it is that, and what is kept of it is the volume: its
 * home folder is for as long as it lives. */
static int take_volume(struct e2b_make *m, const json_t *body, struct fail *f)
{
	static const struct e2b_user root = { NULL, "/", "root", "/" };
	const json_t *mounts = json_object_get(body, "volumeMounts"), *one;
	const char *at = NULL;

	if (!mounts || json_is_null(mounts) ||
	    (json_is_array(mounts) && json_array_size(mounts) == 0))
		return 0;
	if (!json_is_array(mounts))
		return fail_set(f, FAIL_INVALID, "volumeMounts: an array is expected");
	if (json_array_size(mounts) > 1)
		return fail_set(f, FAIL_UNENFORCEABLE, "volumeMounts: one for a sandbox here");
	one = json_array_get(mounts, 0);
	if (member_text(one, "name", &m->volume, f) < 0 || member_text(one, "path", &at, f) < 0)
		return -1;
	if (!m->volume || !at || at[0] != '/' || strlen(at) >= PATH_TEXT_MAX / 2)
		return fail_set(f, FAIL_INVALID, "volumeMounts: name and an absolute path");
	m->volume_at = e2b_path(m->call, &root, at);
	if (!volume_find(m->call, m->volume))
		return fail_set(f, FAIL_NOT_FOUND, "volume '%.64s' not found", m->volume);
	if (m->life & LIFE_STOP)
		return fail_set(f, FAIL_UNENFORCEABLE,
		                "volumeMounts: not with a pause that keeps no memory: the home "
		                "folder would be lost");
	return 0;
}

static json_t *places_of(const struct e2b_make *m)
{
	json_t *fs = json_array();
	char entry[PATH_TEXT_MAX + 16];

	snprintf(entry, sizeof entry, "workspace:%s", m->volume ? m->volume_at : E2B_HOME);
	json_array_append_new(fs, json_string(entry));
	if (m->volume && strcmp(m->volume_at, E2B_HOME) != 0)
		json_array_append_new(fs, json_string("ephemeral:" E2B_HOME));
	json_array_append_new(fs, json_string("ephemeral:/root"));
	return fs;
}

static json_t *door_of(json_t *body, const char *template)
{
	json_t *network = json_object_get(body, "network");
	json_t *internet = json_object_get(body, "allow_internet_access");
	const json_t *mask = json_object_get(network, "maskRequestHost");
	json_t *door = json_pack("{ss}", "template", template);

	if (json_is_object(network))
		json_object_set(door, "network", network);
	if (json_is_boolean(internet))
		json_object_set(door, "internet", internet);
	if (json_is_string(mask))
		json_object_set_new(door, "mask", json_string(json_string_value(mask)));
	if (json_is_false(json_object_get(network, "allowPublicTraffic")))
		json_object_set_new(door, "private", json_true());
	if (json_array_size(json_object_get(body, "volumeMounts")) > 0)
		json_object_set(door, "volumeMounts", json_object_get(body, "volumeMounts"));
	return door;
}

static int take_spec(struct e2b_make *m, json_t *body, struct fail *f)
{
	json_t *env = NULL, *creds = json_array();
	json_t *network = json_deep_copy(json_object_get(body, "network"));
	json_t *net = secrets_of(m->call, network, creds, f) < 0
	                  ? NULL
	                  : netrule_of(network, json_object_get(body, "allow_internet_access"), f);

	m->spec = json_pack("{so,ss}", "fs", places_of(m), "checkpoint", "off");
	if (net)
		json_object_set_new(m->spec, "net", net);
	if (json_array_size(creds) > 0)
		json_object_set(m->spec, "creds", creds);
	json_decref(creds);
	json_decref(network);
	int r = net ? take_texts(body, "envVars", &env, f) : -1;
	if (env)
		json_object_set_new(m->spec, "env", env);
	return r;
}

static int take_body(struct e2b_make *m, const char **template, uint64_t otherwise, struct fail *f)
{
	json_t *body = m->call->body;

	*template = E2B_TEMPLATE;
	if (!json_is_object(body))
		return fail_set(f, FAIL_INVALID, "a JSON object is expected");
	if (member_text(body, "templateID", template, f) < 0 ||
	    take_seconds(body, "timeout", otherwise, &m->ttl_ms, f) < 0 ||
	    take_metadata(body, &m->labels, f) < 0 || take_life(body, &m->life, f) < 0 ||
	    refuse_unknown(body, f) < 0 || take_volume(m, body, f) < 0 || take_spec(m, body, f) < 0)
		return -1;
	m->door = door_of(body, *template);
	return 0;
}

/* ---- create -------------------------------------------------------------------------- */

static struct e2b_make *make_new(struct call *c)
{
	struct e2b_make *m = mem_alloc(sizeof *m);

	*m = (struct e2b_make){ .call = call_ref(c) };
	return m;
}

static void created(struct e2b_make *m, struct sbx *s, const struct fail *f)
{
	if (f)
		answer_fail(m->call, f);
	else
		e2b_answer(m->call, 201, e2b_print(s));
}

static void workspace_made(void *arg, struct wsx *w, const struct fail *f)
{
	if (f)
		make_end(arg, NULL, f);
	else
		e2b_make_in(arg, w);
}

static void workspace_forked(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	struct e2b_make *m = arg;
	struct fail bad = { 0 };
	struct wsx *w = f ? NULL : wsx_find(m->call->api->core, m->call->tenant, ids[0], &bad);

	(void)n;
	if (w)
		e2b_make_in(m, w);
	else
		make_end(m, NULL, f ? f : &bad);
}

/* The image that the workspace of a snapshot was used with. */
static void use_image_of(struct e2b_make *m, const struct wsx *w)
{
	json_t *spec = json_loads(w->row.spec, 0, NULL);
	json_t *image = json_object_get(spec, "image");

	if (image)
		json_object_set(m->spec, "image", image);
	json_decref(spec);
}

/* Without an image of its own its working folder is a place of its own, and empty. */
static void mount_folder(struct e2b_make *m)
{
	const char *at = json_string_value(json_object_get(m->door, "workdir"));
	char entry[PATH_TEXT_MAX + 16];

	if (!at || !template_mounts(at, E2B_HOME))
		return;
	snprintf(entry, sizeof entry, "ephemeral:%s", at);
	json_array_append_new(json_object_get(m->spec, "fs"), json_string(entry));
}

/* One that was built: its image, a fork of its files, and what it says of user, folder and start.
 */
static int begin_built(struct e2b_make *m, const struct build_row *row, struct fail *f)
{
	struct core *core = m->call->api->core;
	json_t *context = row->context ? json_loads(row->context, 0, NULL) : NULL;
	struct wsx *w = wsx_find(core, m->call->tenant, row->workspace ? row->workspace : "", f);

	json_object_update(m->door, context);
	json_decref(context);
	if (row->image)
		json_object_set_new(m->spec, "image", json_string(row->image));
	else
		mount_folder(m);
	return w ? wsx_fork(w, &(struct wsx_forks){ .n = 1 }, workspace_forked, m, f) : -1;
}

static int begin_image(struct e2b_make *m, const char *template, struct fail *f)
{
	AUTO(str_done) struct str spec = { .max = SPEC_BYTES_MAX };

	if (!image_name_is(template))
		return fail_set(f, FAIL_NOT_FOUND, "template '%.64s' not found", template);
	json_object_set_new(m->spec, "image", json_string(template));
	str_addf(&spec, "{\"image\":\"%s\"}", template); /* for its snapshots */
	const struct wsx_ask ask = { .tenant = m->call->tenant, .spec_text = str_text(&spec) };
	return wsx_create(m->call->api->core, &ask, workspace_made, m, f);
}

/* The template that clients of the code interpreter name when they are told none: as "base", unless
 * there is an image of that name. */
static bool is_for_code(struct call *c, const char *template)
{
	struct image_row row;
	struct fail ignored;

	return strcmp(template, E2B_INTERPRETER_TEMPLATE) == 0 &&
	       image_find(c->api->core, c->tenant, template, &c->arena, &row, &ignored) < 0;
}

static int begin_with_volume(struct e2b_make *m, const char *template, struct fail *f)
{
	struct core *core = m->call->api->core;
	struct wsx *w = volume_find(m->call, m->volume);
	struct build_row row;
	struct fail none = { 0 };

	if (snapshot_find(m->call, template) ||
	    template_made(core, m->call->tenant, template, &m->call->arena, &row, &none) == 0)
		return fail_set(f, FAIL_UNENFORCEABLE,
		                "volumeMounts: not with a template that has files in the home "
		                "folder: a sandbox has one place that is kept here");
	if (strcmp(template, E2B_TEMPLATE) != 0 && !is_for_code(m->call, template)) {
		if (!image_name_is(template))
			return fail_set(f, FAIL_NOT_FOUND, "template '%.64s' not found", template);
		json_object_set_new(m->spec, "image", json_string(template));
	}
	if (!w)
		return fail_set(f, FAIL_NOT_FOUND, "volume '%.64s' not found", m->volume);
	json_object_set_new(m->spec, "workspace", json_string(w->row.id));
	return start(m, f) ? 0 : -1;
}

/* "base" is the host's own system; a snapshot is a workspace; all others were built, or are images.
 */
static int begin(struct e2b_make *m, const char *template, struct fail *f)
{
	if (m->volume)
		return begin_with_volume(m, template, f);

	struct core *core = m->call->api->core;
	const struct wsx_ask ask = { .tenant = m->call->tenant };
	struct wsx *w = snapshot_find(m->call, template);
	struct build_row row;
	struct fail none = { 0 };

	if (w) {
		use_image_of(m, w);
		return wsx_fork(w, &(struct wsx_forks){ .n = 1 }, workspace_forked, m, f);
	}
	if (strcmp(template, E2B_TEMPLATE) == 0)
		return wsx_create(core, &ask, workspace_made, m, f);
	if (template_made(core, m->call->tenant, template, &m->call->arena, &row, &none) == 0)
		return begin_built(m, &row, f);
	if (is_for_code(m->call, template))
		return wsx_create(core, &ask, workspace_made, m, f);
	return begin_image(m, template, f);
}

static void create(struct call *c, uint64_t otherwise)
{
	struct e2b_make *m = make_new(c);
	const char *template;
	struct fail f = { 0 };

	m->done = created;
	if (take_body(m, &template, otherwise, &f) < 0 || begin(m, template, &f) < 0)
		make_end(m, NULL, &f);
}

void e2b_create(struct call *c)
{
	create(c, TTL_DEFAULT);
}

void e2b_create_old(struct call *c)
{
	create(c, TTL_DEFAULT_OLD);
}

/* ---- fork ---------------------------------------------------------------------------- */

/* One after the other. */
struct fork {
	struct call *call;
	json_t *answer; /* in the order in which they were made */
	json_t *spec, *labels, *door;
	uint64_t ttl_ms;
	uint32_t life;
	char (*ids)[ID_SIZE]; /* of their workspaces */
	size_t n, at;
};

static void fork_free(struct fork *o)
{
	json_decref(o->answer);
	json_decref(o->spec);
	json_decref(o->labels);
	json_decref(o->door);
	call_unref(o->call);
	free(o->ids);
	free(o);
}

static void fork_next(struct fork *o);

static void fork_one(struct e2b_make *m, struct sbx *s, const struct fail *f)
{
	struct fork *o = m->arg;
	json_t *one = json_object();

	if (f)
		json_object_set_new(one, "error",
		                    json_pack("{si,so}", "code", fail_status(f->code), "message",
		                              details_text(f->detail)));
	else
		json_object_set_new(one, "sandbox", e2b_print(s));
	json_array_append_new(o->answer, one);
	fork_next(o);
}

static void fork_next(struct fork *o)
{
	struct fail bad = { 0 };

	if (o->at == o->n) {
		e2b_answer(o->call, 201, json_incref(o->answer));
		fork_free(o);
		return;
	}
	struct wsx *w = wsx_find(o->call->api->core, o->call->tenant, o->ids[o->at++], &bad);
	struct e2b_make *m = make_new(o->call);
	m->done = fork_one;
	m->arg = o;
	m->spec = json_copy(o->spec);
	m->labels = json_incref(o->labels);
	m->door = json_incref(o->door);
	m->ttl_ms = o->ttl_ms;
	m->life = o->life;
	if (w)
		e2b_make_in(m, w);
	else
		make_end(m, NULL, &bad);
}

static void forked(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	struct fork *o = arg;

	if (f) {
		answer_fail(o->call, f);
		fork_free(o);
		return;
	}
	o->n = n;
	o->ids = mem_alloc(n * sizeof *o->ids);
	memcpy(o->ids, ids, n * sizeof *o->ids);
	fork_next(o);
}

void e2b_fork(struct call *c)
{
	struct sbx *s = e2b_sandbox(c);
	const json_t *count = json_object_get(c->body, "count");
	struct wsx_forks forks = { .n = json_is_integer(count) ? (size_t)json_integer_value(count)
		                                               : 1 };
	struct fork *o = mem_alloc(sizeof *o);
	struct fail f = { 0 };

	*o = (struct fork){ .call = call_ref(c), .answer = json_array() };
	if (!s) {
		fork_free(o);
		return;
	}
	o->spec = json_loads(s->spec_text, 0, NULL);
	o->labels = json_loads(s->labels, 0, NULL);
	o->door = e2b_door(s);
	o->life = s->life & ~(uint32_t)LIFE_OWNS_WORK;
	if (forks.n < 1 || forks.n > FORKS_MOST)
		fail_set(&f, FAIL_INVALID, "count: 1 to %d", FORKS_MOST);
	else if (!s->workspace || !(s->life & LIFE_OWNS_WORK))
		fail_set(&f, FAIL_UNENFORCEABLE, "the sandbox has no home folder that is kept");
	else if (take_seconds(c->body, "timeout", TTL_DEFAULT, &o->ttl_ms, &f) == 0 &&
	         wsx_fork(s->workspace, &forks, forked, o, &f) == 0)
		return;
	answer_fail(c, &f);
	fork_free(o);
}
