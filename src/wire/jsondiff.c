#include "wire/jsondiff.h"

#include "base/str.h"
#include "base/vec.h"

#define PLACE_MAX 256
#define LINE_MAX_BYTES (8u << 20) /* twice a spec */

struct diff {
	json_t *lines;
	char place[PLACE_MAX]; /* "http", "budget.up"; "" of the whole */
};

static void diff_add(struct diff *d, char sign, const json_t *value)
{
	AUTO(str_done) struct str line = { .max = LINE_MAX_BYTES };
	char *text =
	    json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT | JSON_SORT_KEYS);

	str_addf(&line, "%c %s%s%s", sign, d->place, d->place[0] ? ": " : "", text ? text : "?");
	free(text);
	json_array_append_new(d->lines, json_string(str_text(&line)));
}

static size_t diff_count(const json_t *list, const json_t *value, size_t until)
{
	size_t n = 0;

	for (size_t i = 0; i < until; i++)
		n += json_equal(json_array_get(list, i), value);
	return n;
}

/* Adds a line for each entry of `of` that `other` does not have as often. */
static size_t diff_rest(struct diff *d, char sign, const json_t *of, const json_t *other)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(of); i++) {
		const json_t *one = json_array_get(of, i);

		if (diff_count(of, one, i + 1) <= diff_count(other, one, json_array_size(other)))
			continue;
		diff_add(d, sign, one);
		n++;
	}
	return n;
}

static void diff_lists(struct diff *d, const json_t *old, const json_t *now)
{
	size_t n = diff_rest(d, '-', old, now) + diff_rest(d, '+', now, old);

	if (n == 0)
		diff_add(d, '~', now);
}

static void diff_values(struct diff *d, const json_t *old, const json_t *now);

/* The members of both; a value that is no object counts as one without members. */
static void diff_members(struct diff *d, const json_t *old, const json_t *now)
{
	AUTO(json_decrefp) json_t *all = json_object();
	size_t len = strlen(d->place);
	const char *key;
	json_t *value;

	json_object_update_missing(all, (json_t *)(uintptr_t)old);
	json_object_update_missing(all, (json_t *)(uintptr_t)now);
	json_object_foreach(all, key, value)
	{
		snprintf(d->place + len, sizeof d->place - len, "%s%s", len ? "." : "", key);
		diff_values(d, json_object_get(old, key), json_object_get(now, key));
		d->place[len] = '\0';
	}
}

/* NULL unless `value` is of this type. */
static const json_t *diff_as(const json_t *value, json_type type)
{
	return value && json_typeof(value) == type ? value : NULL;
}

/* One that has neither members nor entries. */
static void diff_plain(struct diff *d, char sign, const json_t *value)
{
	if (value && !diff_as(value, JSON_OBJECT) && !diff_as(value, JSON_ARRAY))
		diff_add(d, sign, value);
}

static void diff_values(struct diff *d, const json_t *old, const json_t *now)
{
	const json_t *old_members = diff_as(old, JSON_OBJECT), *old_list = diff_as(old, JSON_ARRAY);
	const json_t *members = diff_as(now, JSON_OBJECT), *list = diff_as(now, JSON_ARRAY);
	bool has_members = old_members || members, has_entries = old_list || list;

	if (json_equal(old, now))
		return;
	diff_plain(d, '-', old);
	diff_plain(d, '+', now);
	if (has_members && has_entries) { /* of different kinds: each is shown as it is */
		diff_add(d, '-', old);
		diff_add(d, '+', now);
	} else if (has_members) {
		diff_members(d, old_members, members);
	} else if (has_entries) {
		diff_lists(d, old_list, list);
	}
}

json_t *json_difference(const json_t *old, const json_t *now)
{
	struct diff d = { .lines = json_array() };

	diff_values(&d, old, now);
	return d.lines;
}
