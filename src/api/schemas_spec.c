/*
 * schemas_spec.c - JSON Schema of a spec, from the rows that read it (spec/opts.h).
 *
 * It says which keys there are and what kind of value each takes. What only the reader knows, that
 * a path is absolute or a host no address, is left to it: it answers with a better sentence.
 */
#include "api/schemas.h"
#include "spec/opts.h"

static json_t *either(json_t *a, json_t *b)
{
	return json_pack("{s[oo]}", "anyOf", a, b);
}

static json_t *of_type(const char *type)
{
	return json_pack("{ss}", "type", type);
}

static json_t *words_of(const struct opt *o)
{
	json_t *words = json_array();

	for (size_t i = 0; o->words[i]; i++)
		json_array_append_new(words, json_string(o->words[i]));
	return json_pack("{ss,so}", "type", "string", "enum", words);
}

/* A number within the bounds, or a text with a unit. A bare duration is in seconds, so its bounds
 * in milliseconds are not for it. */
static json_t *limit_of(const struct limit_rule *rule)
{
	bool is_cores = rule->unit == &unit_cores;
	json_t *number = of_type(is_cores ? "number" : "integer");

	if (is_cores) {
		json_object_set_new(number, "minimum", json_real((double)rule->min / 1000));
		json_object_set_new(number, "maximum", json_real((double)rule->max / 1000));
	} else if (rule->unit != &unit_duration) {
		json_object_set_new(number, "minimum", json_integer((json_int_t)rule->min));
		json_object_set_new(number, "maximum", json_integer((json_int_t)rule->max));
	}
	return either(number, of_type("string"));
}

static json_t *value_of(const struct opt *o);

static json_t *table_properties(const struct opt_table *t)
{
	json_t *properties = json_object();

	for (size_t i = 0; i < t->count; i++)
		json_object_set_new(properties, t->at[i].key, value_of(&t->at[i]));
	return properties;
}

static json_t *texts_by_name(void)
{
	return json_pack("{ss,so}", "type", "object", "additionalProperties",
	                 either(of_type("string"), of_type("integer")));
}

/* One value; a list of them comes on top. */
static json_t *item_of(const struct opt *o)
{
	const struct opt_type *t = o->type;

	if (o->limit.unit)
		return limit_of(&o->limit);
	if (o->members) {
		json_t *object = json_pack("{ss,so,sb}", "type", "object", "properties",
		                           table_properties(o->members), "additionalProperties", 0);

		return t == &opt_net || t == &opt_fs ? either(of_type("string"), object) : object;
	}
	if (t == &opt_map)
		return texts_by_name();
	if (t == &opt_env || t == &opt_creds)
		return either(of_type("string"), texts_by_name());
	if (t == &opt_bool)
		return of_type("boolean");
	if (t == &opt_switch)
		return either(words_of(o), of_type("boolean"));
	if (o->words && (!o->check || o->check == check_word))
		return words_of(o);
	return t == &opt_list ? of_type("string") : either(of_type("string"), of_type("integer"));
}

static json_t *value_of(const struct opt *o)
{
	json_t *j = item_of(o);
	AUTO(str_done) struct str help = { .max = 1024 };

	if (o->type == &opt_net)
		j = either(j, json_pack("{ss,so}", "type", "array", "items", of_type("string")));
	else if (o->type->items)
		j = either(j, json_pack("{ss,sO}", "type", "array", "items", j));
	if (o->type == &opt_creds)
		j = either(of_type("null"), j);
	str_addf(&help, "%s; written as %s", o->help, o->forms);
	json_object_set_new(j, "description", json_string(str_text(&help)));
	if (o->dflt)
		json_object_set_new(j, "default", json_string(o->dflt));
	return j;
}

json_t *spec_properties(void)
{
	return table_properties(&top_table);
}

json_t *net_properties(void)
{
	return table_properties(&net_table);
}
