/*
 * walk.c - a value tree goes into the struct that a table describes, and back.
 */
#include "spec/opts.h"

void input_at(struct input *in, const json_t *parent, size_t index)
{
	in->parent = parent;
	in->index = index;
}

static size_t path_add(struct input *in, const char *before, const char *name, const char *after)
{
	size_t len = in->path_len;
	size_t room = sizeof in->path - len;
	int n = snprintf(in->path + len, room, "%s%s%s", len > 0 ? before : "", name, after);

	in->path_len += (size_t)n < room ? (size_t)n : room - 1;
	return len;
}

/* The path is a step of its own: a key is shown only after it was checked. */
static size_t input_push(struct input *in, const char *key)
{
	return path_add(in, ".", quote(key).text, "");
}

static size_t input_push_index(struct input *in, size_t index)
{
	char number[24];

	snprintf(number, sizeof number, "%zu", index);
	return path_add(in, "[", number, "]");
}

static void input_pop(struct input *in, size_t len)
{
	in->path_len = len;
	in->path[len] = '\0';
}

static const char *type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "text";
	case JSON_INTEGER:
		return "a number";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	case JSON_NULL:
		return "null";
	}
	return "?"; /* not reached: every type has its case */
}

int wrong_type(const char *wants, const json_t *v, struct err *e)
{
	return err_new(e, ERR_INVALID, "wants %s, not %s", wants, type_name(v));
}

const char *scalar_text(const json_t *v, char buf[24])
{
	if (!json_is_integer(v))
		return json_string_value(v);
	snprintf(buf, 24, "%lld", (long long)json_integer_value(v));
	return buf;
}

int list_room(const struct opt *o, size_t len, struct err *e)
{
	size_t max = o->max ? o->max : SPEC_LIST_MAX;

	if (len >= max)
		return err_new(e, ERR_LIMIT, "has more than %zu entries", max);
	return 0;
}

/* Unknown keys end everything: a misspelt wall must not be a missing one. */
static int unknown_key(const struct opt_table *t, const char *key, struct err *e)
{
	const char *words[24] = { NULL };

	for (size_t i = 0; i < t->count && i + 1 < COUNT(words); i++)
		words[i] = t->at[i].key;
	return err_new(e, ERR_INVALID, "unknown key \"%s\"%s", quote(key).text,
	               hint(key, words).text);
}

const struct opt *table_find(const struct opt_table *t, const char *key)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->at[i].key, key) == 0)
			return &t->at[i];
	return NULL;
}

int members_apply(struct input *in, const struct opt_table *t, void *into, json_t *v, struct err *e)
{
	const json_t *parent = in->parent;
	size_t index = in->index;
	const char *key;
	json_t *value;
	size_t i = 0;

	json_object_foreach(v, key, value)
	{
		const struct opt *o = table_find(t, key);

		input_at(in, v, i++);
		if (!o)
			return unknown_key(t, key, e);
		if (o->twin && json_object_get(v, o->twin))
			return err_new(e, ERR_INVALID, "%s and %s are the same: give one", o->twin,
			               o->key);
		size_t len = input_push(in, key);

		in->listed = false;
		if (opt_set(in, o, into, value, e) < 0)
			return -1;
		input_pop(in, len);
	}
	input_at(in, parent, index); /* what is still wrong is the whole */
	return 0;
}

json_t *members_get(const struct opt_table *t, const void *from)
{
	json_t *object = json_object();

	for (size_t i = 0; i < t->count; i++) {
		const struct opt *o = &t->at[i];
		json_t *v = o->type->get ? o->type->get(o, from) : NULL;

		if (v)
			json_object_set_new(object, o->key, v);
	}
	return object;
}

int opt_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	json_t *item;
	size_t i;

	if (in->document && o->type->clear)
		o->type->clear(o, into);
	if (!o->type->items || !json_is_array(v))
		return o->type->set(in, o, into, v, e);
	json_array_foreach(v, i, item)
	{
		size_t len = input_push_index(in, i);

		input_at(in, v, i);
		in->listed = true;
		if (o->type->set(in, o, into, item, e) < 0)
			return -1;
		input_pop(in, len);
	}
	return 0;
}

/* ---- text: const char * ---- */

static int text_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	const char **field = opt_field(o, into);
	char number[24];
	const char *text = scalar_text(v, number);

	if (!text)
		return wrong_type(o->type->wants, v, e);
	return o->check(o, in->arena, text, field, e);
}

static json_t *text_get(const struct opt *o, const void *from)
{
	const char *const *field = opt_from(o, from);

	return *field ? json_string(*field) : NULL;
}

const struct opt_type opt_text = { .wants = "text", .set = text_set, .get = text_get };

/* ---- true or false: bool; false is what nobody said ---- */

static int bool_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	bool *field = opt_field(o, into);

	(void)in;
	if (!json_is_boolean(v))
		return wrong_type(o->type->wants, v, e);
	*field = json_is_true(v);
	return 0;
}

static json_t *bool_get(const struct opt *o, const void *from)
{
	const bool *field = opt_from(o, from);

	return *field ? json_true() : NULL;
}

const struct opt_type opt_bool = { .wants = "true or false", .set = bool_set, .get = bool_get };

/* ---- list: struct text_list ---- */

static int list_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct text_list *list = opt_field(o, into);
	const char *text = NULL;

	if (!json_is_string(v))
		return wrong_type(in->listed ? "text" : o->type->wants, v, e);
	if (list_room(o, list->len, e) < 0 ||
	    o->check(o, in->arena, json_string_value(v), &text, e) < 0)
		return -1;
	vec_push(list, text);
	return 0;
}

static json_t *list_get(const struct opt *o, const void *from)
{
	const struct text_list *list = opt_from(o, from);

	if (list->len == 0)
		return NULL;
	json_t *array = json_array();

	for (size_t i = 0; i < list->len; i++)
		json_array_append_new(array, json_string(list->at[i]));
	return array;
}

static void list_clear(const struct opt *o, void *into)
{
	struct text_list *list = opt_field(o, into);

	list->len = 0;
}

const struct opt_type opt_list = {
	.wants = "a list of texts",
	.items = true,
	.repeat = true,
	.set = list_set,
	.get = list_get,
	.clear = list_clear,
};

/* ---- map: struct pair_list ---- */

int pair_add(struct input *in, const struct opt *o, struct pair_list *l, struct text_pair pair,
             struct err *e)
{
	for (size_t i = 0; i < l->len; i++) {
		if (strcmp(l->at[i].key, pair.key) != 0)
			continue;
		if (in->document)
			return err_new(e, ERR_INVALID, "\"%s\" is given twice",
			               quote(pair.key).text);
		l->at[i].value = pair.value;
		return 0;
	}
	if (list_room(o, l->len, e) < 0)
		return -1;
	vec_push(l, pair);
	return 0;
}

int map_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	const char *key;
	json_t *value;
	size_t i = 0;

	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	json_object_foreach(v, key, value)
	{
		struct text_pair pair = { 0 };
		char number[24];
		const char *text = scalar_text(value, number);

		input_at(in, v, i++);
		if (o->check_key(o, in->arena, key, &pair.key, e) < 0)
			return -1;
		size_t len = input_push(in, pair.key);

		if (!text)
			return wrong_type("text (write it in quotes)", value, e);
		if (o->check(o, in->arena, text, &pair.value, e) < 0)
			return -1;
		input_pop(in, len);
		if (pair_add(in, o, opt_field(o, into), pair, e) < 0)
			return -1;
	}
	return 0;
}

json_t *map_get(const struct opt *o, const void *from)
{
	const struct pair_list *pairs = opt_from(o, from);

	if (pairs->len == 0)
		return NULL;
	json_t *object = json_object();

	for (size_t i = 0; i < pairs->len; i++)
		json_object_set_new(object, pairs->at[i].key, json_string(pairs->at[i].value));
	return object;
}

void map_clear(const struct opt *o, void *into)
{
	struct pair_list *pairs = opt_field(o, into);

	pairs->len = 0;
}

const struct opt_type opt_map = {
	.wants = "an object",
	.set = map_set,
	.get = map_get,
	.clear = map_clear,
};

/* ---- members: an object with a table of its own ---- */

int members_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	return members_apply(in, o->members, opt_field(o, into), v, e);
}

static json_t *members_got(const struct opt *o, const void *from)
{
	return members_get(o->members, opt_from(o, from));
}

const struct opt_type opt_members = {
	.wants = "an object",
	.set = members_set,
	.get = members_got,
};
