/*
 * schemas_types.c - what a value may be: the basic types, and JSON Schema of all.
 */
#include "api/schemas.h"

#include <assert.h>

#include "api/routes.h"
#include "store/processes.h"
#include "store/repos.h"
#include "store/sandboxes.h"
#include "store/workspaces.h"
#include "wire/gate.h"

/* ---- types --------------------------------------------------------------------------- */

static const char *process_word(size_t i)
{
	return i < PROCESS_STATE_COUNT ? process_state_name((enum process_state)i) : NULL;
}

static const char *repo_word(size_t i)
{
	return i < REPO_STATE_COUNT ? repo_state_name((enum repo_state)i) : NULL;
}

static const char *sandbox_word(size_t i)
{
	return i < SANDBOX_STATE_COUNT ? sandbox_state_name((enum sandbox_state)i) : NULL;
}

static const char *workspace_word(size_t i)
{
	return i < WORKSPACE_STATE_COUNT ? workspace_state_name((enum workspace_state)i) : NULL;
}

static const char *error_word(size_t i)
{
	return i + 1 < FAIL_CODES ? fail_name((enum fail_code)(i + 1)) : NULL; /* 0 is no failure */
}

static const char *scope_word(size_t i)
{
	return i + 1 < SCOPES ? scope_name((enum scope)(i + 1)) : NULL; /* 0 asks for nothing */
}

static const char *decision_word(size_t i)
{
	return i < GATE_DECISIONS ? gate_decision_name((enum gate_decision)i) : NULL;
}

/* clang-format off */
static const struct basic basics[] = {
	{ "any",      "{}", "anything", NULL },
	{ "null",     "{\"type\":\"null\"}", "null", NULL },
	{ "text",     "{\"type\":\"string\"}", "a text", NULL },
	{ "bool",     "{\"type\":\"boolean\"}", "true or false", NULL },
	{ "integer",  "{\"type\":\"integer\"}", "a whole number", NULL },
	{ "count",    "{\"type\":\"integer\",\"minimum\":0}", "a whole number from 0", NULL },
	{ "number",   "{\"type\":\"number\",\"minimum\":0}", "a number from 0", NULL },
	{ "time",     "{\"type\":\"integer\",\"minimum\":0}", "milliseconds of Unix time", NULL },
	{ "size",     "{\"type\":\"string\",\"pattern\":\"^[0-9]+[kmgt]?$\"}", "a size such as `4g`", NULL },
	{ "duration", "{\"type\":\"string\",\"pattern\":\"^[0-9]+(ms|s|m|h|d)?$\"}", "a duration such as `10m`", NULL },
	{ "hash",     "{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{64}$\"}", "SHA-256 in lower-case hex", NULL },
	{ "base64",   "{\"type\":\"string\",\"contentEncoding\":\"base64\"}", "bytes in base64", NULL },
	{ "octets",   "{\"type\":\"string\",\"format\":\"binary\"}", "bytes", NULL },
	{ "flag",     "{\"type\":\"string\"}", "it counts that it is there; no value is needed", NULL },
	{ "process_state", NULL, "the state of a process", process_word },
	{ "sandbox_state", NULL, "the state of a sandbox", sandbox_word },
	{ "repo_state",    NULL, "the state of a repository", repo_word },
	{ "workspace_state", NULL, "the state of a workspace", workspace_word },
	{ "error_code",    NULL, "a code of the list below", error_word },
	{ "scope",         NULL, "what a token may", scope_word },
	{ "decision",      NULL, "what was decided about a connection", decision_word },
};
/* clang-format on */

const struct basic *type_basic(size_t i)
{
	return i < COUNT(basics) ? &basics[i] : NULL;
}

const struct schema *schema_find(const char *name)
{
	for (size_t i = 0; i < n_schemas; i++)
		if (strcmp(schemas[i].name, name) == 0)
			return &schemas[i];
	return NULL;
}

bool schema_has_needed(const struct schema *s)
{
	bool has = s->is != NULL;

	for (size_t i = 0; i < s->n; i++)
		has |= s->members[i].flags & NEEDED;
	return has;
}

static json_t *words_json(const struct basic *b)
{
	json_t *words = json_array();

	for (size_t i = 0; b->word(i); i++)
		json_array_append_new(words, json_string(b->word(i)));
	return json_pack("{ss,so}", "type", "string", "enum", words);
}

static json_t *name_json(const char *name)
{
	for (size_t i = 0; i < COUNT(basics); i++)
		if (strcmp(basics[i].name, name) == 0)
			return basics[i].word ? words_json(&basics[i])
			                      : json_loads(basics[i].json, 0, NULL);
	assert(schema_find(name)); /* a slip in a table of ours; a test walks all of them */
	return json_pack("{s:s+}", "$ref", "#/components/schemas/", name);
}

static json_t *any_json(const char **at);

static json_t *one_json(const char **at)
{
	bool is_list = **at == '[', is_map = **at == '{';
	char name[64];

	if (is_list || is_map) {
		(*at)++;
		json_t *inner = any_json(at);
		(*at)++;
		return json_pack("{ss,so}", "type", is_list ? "array" : "object",
		                 is_list ? "items" : "additionalProperties", inner);
	}
	size_t n = strcspn(*at, "|]}");
	assert(n < sizeof name);
	snprintf(name, sizeof name, "%.*s", (int)n, *at);
	*at += n;
	return name_json(name);
}

/* Alternatives to the next closing bracket; words of ours become one enum. */
static json_t *any_json(const char **at)
{
	json_t *kinds = json_array(), *words = json_array();

	for (bool is_first = true; is_first || **at == '|'; is_first = false) {
		*at += is_first ? 0 : 1;
		if (**at == '=') {
			size_t n = strcspn(++*at, "|]}");

			json_array_append_new(words, json_stringn(*at, n));
			*at += n;
		} else {
			json_array_append_new(kinds, one_json(at));
		}
	}
	if (json_array_size(words) > 0)
		json_array_insert_new(kinds, 0,
		                      json_pack("{ss,sO}", "type", "string", "enum", words));
	json_decref(words);
	if (json_array_size(kinds) > 1)
		return json_pack("{so}", "anyOf", kinds);
	json_t *only = json_incref(json_array_get(kinds, 0));
	json_decref(kinds);
	return only;
}

json_t *type_json(const char *type)
{
	json_t *j = any_json(&type);

	assert(*type == '\0');
	return j;
}

/* ---- schemas ------------------------------------------------------------------------- */

static void add_member(json_t *to, const struct member *m)
{
	json_t *j = type_json(m->type);
	char key[64];

	if (*m->help)
		json_object_set_new(j, "description", json_string(m->help));
	json_object_set_new(to, m->key, j);
	if (!(m->flags & BYTES))
		return;
	j = type_json("base64");
	json_object_set_new(j, "description",
	                    json_string("the exact bytes, when they are not UTF-8"));
	snprintf(key, sizeof key, "%s_base64", m->key);
	json_object_set_new(to, key, j);
}

static json_t *object_json(const struct schema *s)
{
	json_t *properties = s->has_spec  ? spec_properties()
	                     : s->has_net ? net_properties()
	                                  : json_object();
	json_t *needed = json_array();
	json_t *j = json_pack("{ss}", "type", "object");

	for (size_t i = 0; i < s->n; i++) {
		const struct member *m = &s->members[i];

		add_member(properties, m);
		/* A request says it in one of two forms; an answer always has the first. */
		if (m->flags & NEEDED && !(m->flags & BYTES && s->is_request))
			json_array_append_new(needed, json_string(m->key));
	}
	json_object_set_new(j, "properties", properties);
	if (json_array_size(needed) > 0)
		json_object_set(j, "required", needed);
	if (s->is_request)
		json_object_set_new(j, "additionalProperties", json_false());
	json_decref(needed);
	return j;
}

json_t *schema_json(const struct schema *s)
{
	json_t *j = s->is ? type_json(s->is) : object_json(s);

	json_object_set_new(j, "description", json_string(s->help));
	return j;
}
