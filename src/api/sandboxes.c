/*
 * sandboxes.c - /v1/sandboxes: from JSON to src/core and back.
 */
#include "api/handlers.h"
#include "api/print.h"
#include "core/policy.h"

/* ---- create -------------------------------------------------------------------------- */

/* What a request has beside the spec. */
static const char *const own_keys[] = { "key", "labels", "ttl", "idle", NULL };

static int take_labels(json_t *body, char **out, struct fail *f)
{
	json_t *labels = json_object_get(body, "labels"), *v;
	const char *k;

	if (!labels || json_is_null(labels))
		return 0;
	if (!json_is_object(labels))
		return fail_set(f, FAIL_INVALID, "labels: an object of texts is expected");
	json_object_foreach(
	    labels, k,
	    v) if (!json_is_string(v) || strlen(k) == 0 || strlen(k) > 63 ||
	           json_string_length(v) >
	               255) return fail_set(f, FAIL_INVALID,
	                                    "labels: \"%.63s\": a text of at most 255 bytes", k);
	*out = json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS);
	return 0;
}

/* The text is what the caller said; the operator's defaults and bounds are only in the spec. */
int spec_of(const struct call *c, const json_t *body, struct spec *spec, struct str *text,
            struct fail *f)
{
	const struct core *core = c->api->core;
	AUTO(freep) char *json = json_dumps(body, JSON_COMPACT);
	struct err e = { 0 };

	if (spec_json(spec, json, strlen(json), &e) < 0)
		return fail_err(f, &e);
	/* Names that stand for hosts are replaced here: what is stored is what holds. */
	if (policy_expand(core, spec, f) < 0 ||
	    policy_admit(core, &spec->net, c->is_operator || c->is_admin, f) < 0)
		return -1;
	if (spec_print(spec, text, &e) < 0)
		return fail_err(f, &e);
	spec_default(spec, core->config.defaults);
	spec_resolve(spec);
	if (spec_bound(spec, core->config.most, &e) < 0 || spec_check(spec, &e) < 0)
		return fail_err(f, &e);
	return 0;
}

static int take_ask(struct call *c, struct sbx_ask *ask, char **labels, struct fail *f)
{
	if (!json_is_object(c->body) && c->body)
		return fail_set(f, FAIL_INVALID, "a JSON object is expected");
	if (member_text(c->body, "key", &ask->key, f) < 0 ||
	    member_duration(c->body, "ttl", &ask->ttl_ms, f) < 0 ||
	    member_duration(c->body, "idle", &ask->idle_ms, f) < 0 ||
	    take_labels(c->body, labels, f) < 0)
		return -1;
	if (ask->key && !key_is(ask->key, strlen(ask->key)))
		return fail_set(f, FAIL_INVALID, "key: 1 to 128 of letters, digits and ._:@-");
	return 0;
}

static void created(void *arg, struct sbx *s, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 201, print_sandbox(s));
	call_unref(c);
}

/* The same key and the same wishes: the one that exists. */
static bool answer_existing(struct call *c, const struct sbx_ask *ask, struct fail *f)
{
	struct sbx *s = ask->key ? sbx_find(c->api->core, c->tenant, ask->key, f) : NULL;

	if (!s)
		return false;
	if (strcmp(s->spec_text, ask->spec_text) != 0) {
		fail_set(f, FAIL_EXISTS, "a sandbox with this key exists and has another spec");
		answer_fail(c, f);
	} else {
		answer_json(c, 200, print_sandbox(s));
	}
	return true;
}

void sandbox_create(struct call *c)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	AUTO(freep) char *labels = NULL;
	AUTO(spec_done) struct spec spec;
	struct fail f = { 0 };
	struct sbx_ask ask = { .tenant = c->tenant, .spec = &spec, .client_fd = -1 };

	spec_init(&spec);
	json_t *wishes = c->body ? json_copy(c->body) : json_object();
	for (size_t i = 0; own_keys[i]; i++)
		json_object_del(wishes, own_keys[i]);
	int r = take_ask(c, &ask, &labels, &f);
	if (r == 0)
		r = spec_of(c, wishes, &spec, &text, &f);
	json_decref(wishes);
	ask.spec_text = str_text(&text);
	ask.labels = labels;
	if (c->r && c->r->door == DOOR_UNIX)
		ask.client_fd = c->r->socket_fd;
	if (r == 0 && answer_existing(c, &ask, &f))
		return;
	call_ref(c);
	if (r < 0 || !sbx_create(c->api->core, &ask, created, c, &f)) {
		answer_fail(c, &f);
		call_unref(c);
	}
}

/* ---- look ---------------------------------------------------------------------------- */

void sandbox_get(struct call *c)
{
	struct core *core = c->api->core;
	struct sandbox_row row;
	struct fail f = { 0 };
	struct err e = { 0 };
	struct sbx *s = sbx_find(core, c->tenant, c->params[0], &f);

	if (s)
		answer_json(c, 200, print_sandbox(s));
	else if (id_is(c->params[0], c->param_len[0], "sb") &&
	         store_sandbox_get(core->store, c->tenant, c->params[0], &c->arena, &row, &e) == 0)
		answer_json(c, 200, print_sandbox_row(&row)); /* gone, or failed: it says so */
	else
		answer_fail(c, &f);
}

int take_page(struct call *c, struct store_page *page, struct fail *f)
{
	const char *limit = call_query(c, "limit");
	char *end = NULL;

	page->tenant = c->tenant;
	page->cursor = call_query(c, "cursor");
	if (!limit)
		return 0;
	unsigned long n = strtoul(limit, &end, 10);
	if (limit[0] < '1' || limit[0] > '9' || *end || n > STORE_LIST_MAX)
		return fail_set(f, FAIL_INVALID, "limit: 1 to %d", STORE_LIST_MAX);
	page->limit = n;
	return 0;
}

static int take_label(struct call *c, struct text_pair *pair, size_t *n, struct fail *f)
{
	const char *text = call_query(c, "label");

	if (!text)
		return 0;
	const char *at = strchr(text, '=');
	if (!at || at == text)
		return fail_set(f, FAIL_INVALID, "label: name=value is expected");
	pair->key = arena_strndup(&c->arena, text, (size_t)(at - text));
	pair->value = at + 1;
	*n = 1;
	return 0;
}

void sandbox_list(struct call *c)
{
	struct text_pair label;
	struct sandbox_query q = { .labels = &label };
	struct sandbox_list list;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (take_page(c, &q.page, &f) < 0 || take_label(c, &label, &q.n_labels, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	if (store_sandbox_list(c->api->core->store, &q, &c->arena, &list, &e) < 0) {
		fail_err(&f, &e);
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++) {
		struct sbx *s = roster_find(&c->api->core->sandboxes, list.rows[i].id);

		if (s && !s->is_spent) /* else it is gone, and the store hears of it just now */
			json_array_append_new(rows, print_sandbox(s));
	}
	json_t *o = json_pack("{so}", "sandboxes", rows);
	json_object_set_new(o, "next", list.next ? json_string(list.next) : json_null());
	answer_json(c, 200, o);
}

/* ---- change -------------------------------------------------------------------------- */

static void changed(void *arg, struct sbx *s, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 200, print_sandbox(s));
	call_unref(c);
}

static void deleted(void *arg, struct sbx *s, const struct fail *f)
{
	struct call *c = arg;

	(void)s;
	if (f)
		answer_fail(c, f);
	else
		answer_empty(c, 204);
	call_unref(c);
}

/* These take no wishes: one that is sent is a mistake, never ignored. */
static struct sbx *named_alone(struct call *c)
{
	static const char *const known[] = { NULL };
	struct fail f = { 0 };

	if (c->body && members_known(c->body, known, &f) < 0) {
		answer_fail(c, &f);
		return NULL;
	}
	return call_sandbox(c);
}

static void change(struct call *c, int (*verb)(struct sbx *, sbx_done_fn *, void *, struct fail *),
                   sbx_done_fn *done)
{
	struct sbx *s = named_alone(c);
	struct fail f = { 0 };

	if (!s)
		return;
	call_ref(c);
	if (verb(s, done, c, &f) < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}

void sandbox_stop(struct call *c)
{
	change(c, sbx_stop, changed);
}

void sandbox_start(struct call *c)
{
	change(c, sbx_start, changed);
}

void sandbox_pause(struct call *c)
{
	change(c, sbx_pause, changed);
}

void sandbox_resume(struct call *c)
{
	change(c, sbx_resume, changed);
}

void sandbox_delete(struct call *c)
{
	change(c, sbx_delete, deleted);
}

void sandbox_replace(struct call *c)
{
	struct sbx *s = named_alone(c);
	struct fail f = { 0 };

	if (!s)
		return;
	call_ref(c);
	if (sbx_replace(s, c->r && c->r->door == DOOR_UNIX ? c->r->socket_fd : -1, changed, c, &f) <
	    0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}

void sandbox_extend(struct call *c)
{
	static const char *const known[] = { "wall", "ttl", "why", NULL };
	struct sbx *s = call_sandbox(c);
	struct fail f = { 0 };
	uint64_t wall_ms = 0, ttl_ms = 0;
	const char *why = NULL;
	char id[ID_SIZE];

	if (!s)
		return;
	if (members_known(c->body, known, &f) < 0 ||
	    member_duration(c->body, "wall", &wall_ms, &f) < 0 ||
	    member_duration(c->body, "ttl", &ttl_ms, &f) < 0 ||
	    member_text(c->body, "why", &why, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	bool is_asked = wall_ms && !c->is_operator && !c->is_admin;

	if ((is_asked && sbx_ask_wall(s, wall_ms, why, id, &f) < 0) ||
	    sbx_extend(s, is_asked ? 0 : wall_ms, ttl_ms, &f) < 0)
		answer_fail(c, &f);
	else if (is_asked)
		answer_asked(c, id);
	else
		answer_json(c, 200, print_sandbox(s));
}

/* ---- usage --------------------------------------------------------------------------- */

static void used(void *arg, const struct channel_usage *u)
{
	struct call *c = arg;
	struct fail f = { 0 };

	if (!u) {
		fail_set(&f, FAIL_CONFLICT, "the sandbox has ended");
		answer_fail(c, &f);
	} else {
		answer_json(
		    c, 200,
		    json_pack("{sI,sI,sI,sI,sI,sI,sI}", "cpu_ms", (json_int_t)u->cpu_ms, "mem",
		              (json_int_t)u->mem_now, "mem_peak", (json_int_t)u->mem_peak, "pids",
		              (json_int_t)u->pids, "disk", (json_int_t)u->disk_bytes, "oom_kills",
		              (json_int_t)u->oom_kills, "pids_denied", (json_int_t)u->pids_denied));
	}
	call_unref(c);
}

void sandbox_usage(struct call *c)
{
	struct sbx *s = call_sandbox(c);
	struct fail f = { 0 };

	if (!s)
		return;
	call_ref(c);
	if (sbx_usage(s, used, c, &f) < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}
