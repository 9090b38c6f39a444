#include "api/openapi.h"

#include "api/describe.h"
#include "api/handlers.h"
#include "api/schemas.h"

static void set(json_t *o, const char *key, json_t *v)
{
	json_object_set_new(o, key, v);
}

/* ---- parameters ---------------------------------------------------------------------- */

static json_t *param_json(const struct param *p, const char *in)
{
	json_t *j = json_pack("{ss,ss,ss,so}", "name", p->name, "in", in, "description", p->help,
	                      "schema", type_json(p->type));

	if (strcmp(p->type, "flag") == 0)
		set(j, "allowEmptyValue", json_true());
	return j;
}

static void add_path_params(json_t *to, const char *pattern)
{
	for (const char *p = strchr(pattern, '{'); p; p = strchr(p + 1, '{')) {
		size_t n = strcspn(p + 1, "*}");
		bool is_rest = p[n + 1] == '*';
		const char *help =
		    is_rest ? "from the root of the sandbox; a slash may be escaped or not"
			    : "the id, or for a sandbox its key";
		json_t *j =
		    json_pack("{ss%,ss,sb,ss,s{ss}}", "name", p + 1, n, "in", "path", "required", 1,
		              "description", help, "schema", "type", "string");

		json_array_append_new(to, j);
	}
}

static json_t *params_json(const struct route *r)
{
	json_t *list = json_array();
	const struct param *p;
	char name[32];

	add_path_params(list, r->pattern);
	for (size_t i = 0; name_at(r->query, i, name); i++) {
		p = query_param(name);
		json_array_append_new(list, p ? param_json(p, "query")
		                              : json_pack("{ss,ss,s{ss}}", "name", name, "in",
		                                          "query", "schema", "type", "string"));
	}
	for (size_t i = 0; (p = route_header(r, i)); i++)
		json_array_append_new(list, param_json(p, "header"));
	return list;
}

/* ---- bodies and answers -------------------------------------------------------------- */

static json_t *content_json(const char *media, const char *type)
{
	return json_pack("{s{so}}", media, "schema", type_json(type));
}

static json_t *body_json(const struct body_form *b)
{
	return json_pack("{sb,so}", "required", b->is_needed, "content",
	                 content_json(b->media, b->type));
}

static json_t *headers_json(const struct route *r, const struct answer_form *a)
{
	json_t *all = json_object();
	char name[32];

	for (size_t i = 0; name_at(a->headers, i, name); i++)
		set(all, name,
		    json_pack("{ss,s{ss}}", "description", answer_header_help(name), "schema",
		              "type", "string"));
	if (strcmp(r->method, "POST") == 0 && a->media)
		set(all, "Idempotent-Replay",
		    json_pack("{ss,s{ss}}", "description", answer_header_help("Idempotent-Replay"),
		              "schema", "type", "string"));
	return all;
}

/* The forms of one status are one answer with several contents; the first of them says it. */
static void add_answer(json_t *to, const struct route *r, const struct answer_form *a)
{
	char status[8];

	snprintf(status, sizeof status, "%d", a->status);
	json_t *j = json_object_get(to, status);
	if (!j) {
		j = json_pack("{ss}", "description", a->help);
		json_t *headers = headers_json(r, a);

		if (json_object_size(headers) > 0)
			json_object_set(j, "headers", headers);
		json_decref(headers);
		set(to, status, j);
	}
	if (!a->media)
		return;
	json_t *content = content_json(a->media, a->type), *all = json_object_get(j, "content");
	if (!all)
		set(j, "content", all = json_object());
	json_object_update(all, content);
	json_decref(content);
}

static json_t *answers_json(const struct route *r)
{
	struct answer_form forms[ANSWER_FORMS_MAX];
	size_t n = route_answers(r, forms);
	json_t *all = json_object();

	for (size_t i = 0; i < n; i++)
		add_answer(all, r, &forms[i]);
	set(all, "default", json_pack("{ss}", "$ref", "#/components/responses/Problem"));
	return all;
}

/* ---- the whole ----------------------------------------------------------------------- */

/* By the unix socket nobody needs a token: the empty alternative. */
static json_t *security_json(enum scope s)
{
	return s == SCOPE_NONE ? json_array() : json_pack("[{s[s]}{}]", "bearer", scope_name(s));
}

static json_t *operation_json(const struct route *r)
{
	AUTO(str_done) struct str id = { .max = 256 };
	json_t *params = params_json(r);
	struct body_form body;

	route_name(r, &id);
	json_t *j = json_pack("{ss,ss,s[s]}", "operationId", str_text(&id), "summary", r->summary,
	                      "tags", route_group(r)->title);
	if (json_array_size(params) > 0)
		json_object_set(j, "parameters", params);
	json_decref(params);
	if (route_body(r, &body))
		set(j, "requestBody", body_json(&body));
	set(j, "responses", answers_json(r));
	set(j, "security", security_json(r->scope));
	return j;
}

static json_t *paths_json(void)
{
	json_t *paths = json_object();

	for (size_t i = 0; i < n_routes; i++) {
		AUTO(str_done) struct str path = { .max = 1024 };
		char method[64];

		route_path(&routes[i], &path);
		name_lower(routes[i].method, method);
		json_t *item = json_object_get(paths, str_text(&path));
		if (!item)
			set(paths, str_text(&path), item = json_object());
		set(item, method, operation_json(&routes[i]));
	}
	return paths;
}

static json_t *components_json(void)
{
	json_t *all = json_object();

	for (size_t i = 0; i < n_schemas; i++)
		set(all, schemas[i].name, schema_json(&schemas[i]));
	json_t *problem = json_pack("{ss,so}", "description", "it was not done; `code` says why",
	                            "content", content_json("application/problem+json", "Problem"));
	json_t *bearer =
	    json_pack("{ss,ss,ss}", "type", "http", "scheme", "bearer", "description",
	              "Needed by TCP, made by POST /v1/tokens. By the unix socket the kernel "
	              "says who calls, and no token is needed.");
	return json_pack("{so,s{so},s{so}}", "schemas", all, "responses", "Problem", problem,
	                 "securitySchemes", "bearer", bearer);
}

static json_t *tags_json(void)
{
	json_t *tags = json_array();
	const struct group *g;

	for (size_t i = 0; (g = group_at(i)); i++)
		json_array_append_new(
		    tags, json_pack("{ss,ss}", "name", g->title, "description", g->help));
	return tags;
}

json_t *openapi_document(void)
{
	json_t *info = json_pack(
	    "{ss,ss,ss,s{ss,ss}}", "title", "Caisson", "version", CAISSON_VERSION, "description",
	    "Sandboxes, processes and files. A command's failure, timeout or denial is "
	    "a result; only our own failure is an error.",
	    "license", "name", "Apache License 2.0", "identifier", "Apache-2.0");

	return json_pack("{ss,so,s[{ss}],so,so,so}", "openapi", "3.1.0", "info", info, "servers",
	                 "url", "/", "tags", tags_json(), "paths", paths_json(), "components",
	                 components_json());
}

const char *openapi_text(void)
{
	static char *text;

	if (!text) {
		json_t *document = openapi_document();

		text = json_dumps(document, JSON_COMPACT);
		json_decref(document);
	}
	return text;
}

void openapi_get(struct call *c)
{
	c->is_answered = true;
	reply(c->r, 200, "application/json", openapi_text(), strlen(openapi_text()), NULL);
}
