#include <jansson.h>

#include "api/describe.h"
#include "api/openapi.h"
#include "api/schemas.h"
#include "test.h"

static json_t *document;

static json_t *parsed(void)
{
	json_error_t e;

	document = json_loads(openapi_text(), JSON_REJECT_DUPLICATES, &e);
	CHECK(document);
	return document;
}

static json_t *operation(const struct route *r)
{
	AUTO(str_done) struct str path = { .max = 1024 };
	char method[16] = "";

	route_path(r, &path);
	for (size_t i = 0; r->method[i]; i++)
		method[i] = (char)(r->method[i] | 0x20);
	return json_object_get(json_object_get(json_object_get(document, "paths"), str_text(&path)),
	                       method);
}

TEST(every_route_is_in_the_document)
{
	size_t n = 0;
	const char *key;
	json_t *item;

	parsed();
	for (size_t i = 0; i < n_routes; i++) {
		printf("# %s %s\n", routes[i].method, routes[i].pattern);
		CHECK(operation(&routes[i]));
	}
	json_object_foreach(json_object_get(document, "paths"), key, item) n +=
	    json_object_size(item);
	CHECK_INT(n, n_routes);
	json_decref(document);
}

TEST(the_text_is_made_once)
{
	CHECK(openapi_text() == openapi_text());
}

TEST(ids_of_operations_are_unique_and_readable)
{
	static const struct {
		const char *method, *pattern, *want;
	} rows[] = {
		{ "GET", "/v1/health", "health_get" },
		{ "GET", "/v1/openapi.json", "openapi_get" },
		{ "POST", "/v1/sandboxes", "sandboxes_create" },
		{ "GET", "/v1/sandboxes", "sandboxes_list" },
		{ "DELETE", "/v1/sandboxes/{id}", "sandbox_delete" },
		{ "POST", "/v1/sandboxes/{id}/exec", "sandbox_exec" },
		{ "PATCH", "/v1/sandboxes/{id}/files/{path*}", "sandbox_file_edit" },
		{ "POST", "/v1/sandboxes/{id}/files:move", "sandbox_files_move" },
		{ "GET", "/v1/processes/{id}", "process_get" },
		{ "POST", "/v1/run", "run" },
	};
	AUTO(str_done) struct str all = { .max = 64u << 10 };

	str_add(&all, " ");
	for (size_t i = 0; i < n_routes; i++) {
		AUTO(str_done) struct str name = { .max = 256 };
		char word[300];

		route_name(&routes[i], &name);
		snprintf(word, sizeof word, " %s ", str_text(&name));
		printf("#%s\n", word);
		CHECK(!strstr(str_text(&all), word));
		str_add(&all, word);
		for (size_t k = 0; k < COUNT(rows); k++)
			if (strcmp(rows[k].pattern, routes[i].pattern) == 0 &&
			    strcmp(rows[k].method, routes[i].method) == 0)
				CHECK_STR(str_text(&name), rows[k].want);
	}
}

TEST(what_a_route_names_is_described)
{
	for (size_t i = 0; i < n_routes; i++) {
		const struct route *r = &routes[i];
		struct answer_form forms[ANSWER_FORMS_MAX];
		char name[32];

		printf("# %s %s\n", r->method, r->pattern);
		CHECK(!r->takes || schema_find(r->takes));
		CHECK(!r->gives || schema_find(r->gives));
		CHECK(r->summary && *r->summary);
		for (size_t k = 0; name_at(r->query, k, name); k++) {
			printf("#   ?%s\n", name);
			CHECK(query_param(name));
		}
		size_t n = route_answers(r, forms);
		CHECK(n > 0 && n < ANSWER_FORMS_MAX);
		for (size_t k = 0; k < n; k++)
			for (size_t h = 0; name_at(forms[k].headers, h, name); h++)
				CHECK(answer_header_help(name));
	}
}

/* A body that is not NONE is described, and only such a one. */
TEST(every_body_is_described)
{
	for (size_t i = 0; i < n_routes; i++) {
		struct body_form body;

		printf("# %s %s\n", routes[i].method, routes[i].pattern);
		CHECK(route_body(&routes[i], &body) == (routes[i].body != BODY_NONE));
	}
}

/* "#/components/schemas/Sandbox" */
static void check_ref(const char *ref)
{
	const json_t *at = document;
	char part[128];

	CHECK(strncmp(ref, "#/", 2) == 0);
	for (ref++; *ref;) {
		size_t n = strcspn(++ref, "/");

		snprintf(part, sizeof part, "%.*s", (int)n, ref);
		at = json_object_get(at, part);
		ref += n;
	}
	printf("# %s\n", part);
	CHECK(at);
}

static int check_refs(json_t *j)
{
	int n = 0;
	const char *key;
	json_t *v;
	size_t i;

	json_object_foreach(j, key, v)
	{
		if (strcmp(key, "$ref") == 0) {
			check_ref(json_string_value(v));
			n++;
		}
		n += check_refs(v);
	}
	json_array_foreach(j, i, v) n += check_refs(v);
	return n;
}

TEST(every_reference_leads_somewhere)
{
	CHECK(check_refs(parsed()) > 50);
	json_decref(document);
}

TEST(every_schema_is_used)
{
	for (size_t i = 0; i < n_schemas; i++) {
		char ref[128];

		if (strcmp(schemas[i].name, "Any") == 0)
			continue; /* for routes that say nothing better */
		snprintf(ref, sizeof ref, "\"#/components/schemas/%s\"", schemas[i].name);
		printf("# %s\n", ref);
		CHECK(strstr(openapi_text(), ref));
	}
}

static json_t *schema(const char *name)
{
	json_t *all = json_object_get(json_object_get(document, "components"), "schemas");

	CHECK(json_object_get(all, name));
	return json_object_get(all, name);
}

TEST(a_spec_has_the_keys_of_its_tables)
{
	static const char *const keys[] = { "net",  "fs",  "creds",       "limits",
		                            "user", "env", "allow_weaker" };

	parsed();
	json_t *spec = json_object_get(schema("Spec"), "properties");
	json_t *ask = json_object_get(schema("SandboxAsk"), "properties");
	for (size_t i = 0; i < COUNT(keys); i++) {
		CHECK(json_object_get(spec, keys[i]));
		CHECK(json_object_get(ask, keys[i]));
	}
	CHECK(
	    json_object_get(json_object_get(json_object_get(spec, "limits"), "properties"), "mem"));
	CHECK(json_object_get(ask, "key") && !json_object_get(spec, "key"));
	CHECK(json_is_false(json_object_get(schema("Spec"), "additionalProperties")));
	json_decref(document);
}

TEST(types_become_schemas)
{
	static const struct {
		const char *type, *want;
	} rows[] = {
		{ "text", "{\"type\":\"string\"}" },
		{ "text|null", "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}" },
		{ "[text]", "{\"items\":{\"type\":\"string\"},\"type\":\"array\"}" },
		{ "{[bool]}", "{\"additionalProperties\":{\"items\":{\"type\":\"boolean\"},"
		              "\"type\":\"array\"},\"type\":\"object\"}" },
		{ "=a|=b", "{\"enum\":[\"a\",\"b\"],\"type\":\"string\"}" },
		{ "=a|null",
		  "{\"anyOf\":[{\"enum\":[\"a\"],\"type\":\"string\"},{\"type\":\"null\"}]}" },
		{ "[Sandbox]",
		  "{\"items\":{\"$ref\":\"#/components/schemas/Sandbox\"},\"type\":\"array\"}" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		json_t *j = type_json(rows[i].type);
		AUTO(freep) char *text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);

		CHECK_STR(text, rows[i].want);
		json_decref(j);
	}
}

/* A request says nothing that nobody reads; an answer may have more one day. */
TEST(requests_are_closed_and_answers_are_open)
{
	parsed();
	for (size_t i = 0; i < n_schemas; i++) {
		const json_t *more =
		    json_object_get(schema(schemas[i].name), "additionalProperties");

		printf("# %s\n", schemas[i].name);
		CHECK(schemas[i].is || schemas[i].is_request == json_is_false(more));
	}
	json_decref(document);
}

TEST(a_post_takes_a_key_and_every_answer_may_be_a_problem)
{
	parsed();
	for (size_t i = 0; i < n_routes; i++) {
		json_t *o = operation(&routes[i]), *p;
		bool has_key = false;
		size_t k;

		json_array_foreach(json_object_get(o, "parameters"), k, p) has_key |=
		    strcmp(json_string_value(json_object_get(p, "name")), "Idempotency-Key") == 0;
		printf("# %s %s\n", routes[i].method, routes[i].pattern);
		CHECK(has_key == (strcmp(routes[i].method, "POST") == 0));
		CHECK(json_object_get(json_object_get(o, "responses"), "default"));
	}
	json_decref(document);
}
