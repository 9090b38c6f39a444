/*
 * template.c - their templates: asked for, built by steps (core/template.h), tagged, listed,
 * deleted.
 */
#include "core/template.h"

#include "core/details.h"
#include "e2b/e2b-internal.h"
#include "store/images.h"

#define LINES_MOST 100 /* at a time; clients ask until none comes */
#define TAGS_MOST 16
#define BASE_IMAGE "e2bdev/base"

/* ---- asked for ----------------------------------------------------------------------- */

static int check_tags(const json_t *tags, struct fail *f)
{
	size_t i;
	const json_t *v;

	if (json_array_size(tags) < 1 || json_array_size(tags) > TAGS_MOST)
		return fail_set(f, FAIL_INVALID, "tags: 1 to %d", TAGS_MOST);
	json_array_foreach(
	    tags, i,
	    v) if (!json_is_string(v) ||
	           !template_tag_is(
		       json_string_value(v),
		       json_string_length(v))) return fail_set(f, FAIL_INVALID,
	                                                       "tags: letters, digits and ._-");
	return 0;
}

/* "NAME:TAG" and tags beside it; without any there is one that all have. */
static int take_tags(json_t *body, const char *name, json_t *out, struct fail *f)
{
	const char *own = strchr(name, ':');
	json_t *list = json_object_get(body, "tags"), *v;
	size_t i;

	if (own)
		json_array_append_new(out, json_string(own + 1));
	json_array_foreach(list, i, v) json_array_append(out, v);
	if (json_array_size(out) == 0)
		json_array_append_new(out, json_string(TEMPLATE_TAG));
	return check_tags(out, f);
}

/* What is answered when it is on record. */
struct begun {
	struct call *call;
	json_t *body; /* NULL: none */
};

static void recorded(void *arg, const struct store_answer *a)
{
	struct begun *o = arg;

	if (a->code == STORE_EXISTS)
		e2b_refuse(o->call, 409, "somebody else has just named a template so: ask again");
	else if (a->code != STORE_OK)
		e2b_refuse(o->call, 500, "the build could not be stored");
	else if (o->body)
		e2b_answer(o->call, 202, json_incref(o->body));
	else
		answer_empty(o->call, 202);
	json_decref(o->body);
	call_unref(o->call);
	free(o);
}

static struct begun *begun_new(struct call *c)
{
	struct begun *o = mem_alloc(sizeof *o);

	*o = (struct begun){ .call = call_ref(c) };
	return o;
}

static void begun_refuse(struct begun *o, const struct fail *f)
{
	answer_fail(o->call, f);
	call_unref(o->call);
	free(o);
}

void e2b_template_make(struct call *c)
{
	const char *name = NULL;
	json_t *tags = json_array();
	struct template_new t = { .tenant = c->tenant, .tags = tags };
	struct fail f = { 0 };
	int r = member_text(c->body, "name", &name, &f);

	if (r == 0 && !name)
		r = member_text(c->body, "alias", &name, &f);
	name = name ? name : "";
	if (r == 0) {
		size_t n = strcspn(name, ":");

		t.name = arena_strndup(&c->arena, name, n);
		if (!template_name_is(t.name, n))
			r = fail_set(&f, FAIL_INVALID, "name: letters, digits and ._-");
	}
	struct begun *o = begun_new(c);
	if (r == 0 && take_tags(c->body, name, tags, &f) == 0 &&
	    template_begin(c->api->core, &t, (struct store_call){ .done = recorded, .arg = o },
	                   &f) == 0)
		o->body = json_pack("{ss,ss,sb,s[s],s[s],sO}", "templateID", t.template, "buildID",
		                    t.build, "public", 0, "names", t.name, "aliases", t.name,
		                    "tags", tags);
	else
		begun_refuse(o, &f);
	json_decref(tags);
}

/* ---- built --------------------------------------------------------------------------- */

/* Their base is the host's own system here, unless there is an image of that name. */
static int take_base(struct call *c, struct template_ask *ask, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row row;
	struct err e;

	if (member_text(c->body, "fromImage", &ask->image, f) < 0 ||
	    member_text(c->body, "fromTemplate", &ask->template, f) < 0)
		return -1;
	const json_t *registry = json_object_get(c->body, "fromImageRegistry");
	if (registry && !json_is_null(registry))
		return fail_set(f, FAIL_UNENFORCEABLE,
		                "fromImageRegistry: images are imported by the operator");
	if (ask->template && strcmp(ask->template, E2B_TEMPLATE) == 0)
		ask->template = NULL;
	if (!ask->image || ask->template)
		return 0;
	bool is_there =
	    store_image_get(c->api->core->store, c->tenant, ask->image, &a, &row, &e) == 0;
	const char *behind = strncmp(ask->image, BASE_IMAGE, strlen(BASE_IMAGE)) == 0
	                         ? ask->image + strlen(BASE_IMAGE)
	                         : "?";
	if (!is_there && (!*behind || *behind == ':'))
		ask->image = NULL;
	else if (!is_there)
		return fail_set(f, FAIL_NOT_FOUND,
		                "image '%.100s' is not here: caisson image import", ask->image);
	return 0;
}

void e2b_template_build(struct call *c)
{
	struct template_ask ask = { .tenant = c->tenant,
		                    .build = c->params[1],
		                    .home = E2B_HOME,
		                    .user = E2B_USER,
		                    .steps = json_object_get(c->body, "steps") };
	struct begun *o = begun_new(c);
	struct fail f = { 0 };

	if (take_base(c, &ask, &f) == 0 && member_text(c->body, "startCmd", &ask.start, &f) == 0 &&
	    member_text(c->body, "readyCmd", &ask.ready, &f) == 0 &&
	    member_bool(c->body, "force", &ask.is_forced, &f) == 0 &&
	    template_build(c->api->core, &ask, (struct store_call){ .done = recorded, .arg = o },
	                   &f) == 0)
		return; /* it is told in a moment */
	begun_refuse(o, &f);
}

/* ---- how far it is ------------------------------------------------------------------- */

static json_t *print_line(const struct line_row *row)
{
	json_t *o =
	    json_pack("{ss,ss}", "level", row->level, "message", row->text ? row->text : "");

	json_object_set_new(o, "timestamp", e2b_time(row->at_ms));
	return o;
}

static json_t *print_status(const struct build_row *row, const struct line_list *lines)
{
	json_t *entries = json_array(), *texts = json_array();
	json_t *o = json_pack("{ss,ss,ss}", "templateID", row->template, "buildID", row->id,
	                      "status", build_state_name(row->state));

	for (size_t i = 0; i < lines->n; i++) {
		json_array_append_new(entries, print_line(&lines->rows[i]));
		json_array_append_new(texts, json_string(lines->rows[i].text));
	}
	json_object_set_new(o, "logEntries", entries);
	json_object_set_new(o, "logs", texts);
	if (row->state == BUILD_ERROR)
		json_object_set_new(o, "reason",
		                    json_pack("{ss,ss,s[]}", "message",
		                              row->reason ? row->reason : "it failed", "step",
		                              row->step ? row->step : "base", "logEntries"));
	return o;
}

void e2b_template_status(struct call *c)
{
	struct store *s = c->api->core->store;
	uint64_t from = 0, limit = LINES_MOST;
	struct build_row row;
	struct line_list lines = { 0 };
	struct fail f = { 0 };
	struct err e = { 0 };

	if (query_number(c, "logsOffset", &from, &f) < 0 ||
	    query_number(c, "limit", &limit, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	const struct line_query q = { .build = c->params[1],
		                      .from = (int64_t)(from & INT64_MAX),
		                      .n = limit < LINES_MOST ? limit : LINES_MOST };

	if (store_build_get(s, c->tenant, c->params[1], &c->arena, &row, &e) < 0 ||
	    strcmp(row.template, c->params[0]) != 0) {
		e2b_refuse(c, 404, "the build was not found");
		return;
	}
	if (store_build_lines(s, &q, &c->arena, &lines, &e) < 0) {
		fail_err(&f, &e);
		answer_fail(c, &f);
		return;
	}
	e2b_answer(c, 200, print_status(&row, &lines));
}

/* ---- tags ---------------------------------------------------------------------------- */

struct tagging {
	struct call *call;
	json_t *answer; /* NULL: none */
	int status;
	size_t n_left;
	bool is_failed;
};

/* The last one answers. */
static void tagged(void *arg, const struct store_answer *a)
{
	struct tagging *t = arg;

	t->is_failed |= a->code != STORE_OK && a->code != STORE_NOT_FOUND;
	if (--t->n_left > 0)
		return;
	if (t->is_failed)
		e2b_refuse(t->call, 500, "the tags could not be stored");
	else if (t->answer)
		e2b_answer(t->call, t->status, json_incref(t->answer));
	else
		answer_empty(t->call, t->status);
	json_decref(t->answer);
	call_unref(t->call);
	free(t);
}

/* Each of the tags leads where the row says: to its build, or nowhere. Takes the answer. */
static void tag_all(struct call *c, struct tag_row row, json_t *answer)
{
	struct tagging *t = mem_alloc(sizeof *t);
	const struct store_call call = { .done = tagged, .arg = t };
	const json_t *v;
	struct err e;
	size_t i;

	*t = (struct tagging){
		.call = call_ref(c), .answer = answer, .status = row.build ? 201 : 204, .n_left = 1
	};
	json_array_foreach(json_object_get(c->body, "tags"), i, v)
	{
		row.tag = json_string_value(v);
		int r = row.build ? store_tag_put(c->api->core->store, &row, call, &e)
		                  : store_tag_drop(c->api->core->store, &row, call, &e);

		t->is_failed |= r < 0;
		t->n_left += r < 0 ? 0 : 1;
	}
	tagged(t, &(struct store_answer){ .code = STORE_OK });
}

void e2b_tags_put(struct call *c)
{
	json_t *tags = json_object_get(c->body, "tags");
	const char *target = "";
	struct build_row build;
	struct fail f = { 0 };

	if (member_text(c->body, "target", &target, &f) < 0 || check_tags(tags, &f) < 0 ||
	    template_made(c->api->core, c->tenant, target, &c->arena, &build, &f) < 0)
		answer_fail(c, &f);
	else
		tag_all(c,
		        (struct tag_row){ .template = build.template,
		                          .build = build.id,
		                          .created_ms = core_now_ms() },
		        json_pack("{ss,sO}", "buildID", build.id, "tags", tags));
}

void e2b_tags_drop(struct call *c)
{
	const char *name = "";
	struct template_row template;
	struct fail f = { 0 };

	if (member_text(c->body, "name", &name, &f) < 0 ||
	    check_tags(json_object_get(c->body, "tags"), &f) < 0 ||
	    template_find(c->api->core, c->tenant, name, &c->arena, &template, &f) < 0)
		answer_fail(c, &f);
	else
		tag_all(c, (struct tag_row){ .template = template.id }, NULL);
}

void e2b_tags_get(struct call *c)
{
	struct core *core = c->api->core;
	struct template_row template;
	struct tag_list list;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (template_find(core, c->tenant, c->params[0], &c->arena, &template, &f) < 0 ||
	    (store_tag_list(core->store, template.id, &c->arena, &list, &e) < 0 &&
	     fail_err(&f, &e) < 0)) {
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++) {
		json_t *o =
		    json_pack("{ss,ss}", "tag", list.rows[i].tag, "buildID", list.rows[i].build);

		json_object_set_new(o, "createdAt", e2b_time(list.rows[i].created_ms));
		json_array_append_new(rows, o);
	}
	e2b_answer(c, 200, rows);
}

/* ---- listed, deleted ----------------------------------------------------------------- */

static json_t *print_template(struct call *c, const struct template_row *row)
{
	struct build_list builds = { 0 };
	struct err e;
	int r = store_build_list(c->api->core->store, row->id, &c->arena, &builds, &e);
	const struct build_row *last = r == 0 && builds.n ? &builds.rows[0] : NULL;
	json_t *o = json_pack("{ss,ss?,s[s],s[s],sb,si,ss,sn}", "templateID", row->id, "buildID",
	                      last ? last->id : NULL, "names", row->name, "aliases", row->name,
	                      "public", 0, "buildCount", (int)builds.n, "buildStatus",
	                      build_state_name(last ? last->state : BUILD_WAITING), "createdBy");

	json_object_set_new(o, "createdAt", e2b_time(row->created_ms));
	json_object_set_new(o, "updatedAt", e2b_time(last ? last->created_ms : row->created_ms));
	json_object_set_new(o, "envdVersion", json_string(E2B_ENVD_VERSION));
	return o;
}

void e2b_template_list(struct call *c)
{
	struct template_list list;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (store_template_list(c->api->core->store, c->tenant, &c->arena, &list, &e) < 0) {
		fail_err(&f, &e);
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(rows, print_template(c, &list.rows[i]));
	e2b_answer(c, 200, rows);
}

static void dropped(void *arg, const struct store_answer *a)
{
	struct call *c = arg;

	if (a->code == STORE_OK)
		answer_empty(c, 204);
	else
		e2b_refuse(c, a->code == STORE_NOT_FOUND ? 404 : 500,
		           "the template was not removed");
	call_unref(c);
}

bool template_drop(struct call *c, const char *name)
{
	struct core *core = c->api->core;
	struct template_row row;
	struct fail f = { 0 };

	if (template_find(core, c->tenant, name, &c->arena, &row, &f) < 0)
		return false;
	call_ref(c);
	if (template_delete(core, c->tenant, row.id,
	                    (struct store_call){ .done = dropped, .arg = c }, &f) == 0)
		return true;
	answer_fail(c, &f);
	call_unref(c);
	return true;
}
