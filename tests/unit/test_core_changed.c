#include "core/changed.h"

#include "test.h"

static json_int_t number_at(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return v ? json_integer_value(v) : -1;
}

#define LINE(path, status)                                                                         \
	"{\"path\":\"" path "\",\"status\":\"" status                                              \
	"\",\"type\":\"file\",\"mode\":\"0644\",\"bytes\":1}\n"

TEST(each_status_is_counted_by_its_name)
{
	static const char lines[] = LINE("a", "A") LINE("b", "A") LINE("c", "M") LINE("d", "T")
	    LINE("e", "D") LINE("f", "R") LINE("g", "mode") LINE("h", "xattr");
	json_t *o = changed_data(lines, sizeof lines - 1);
	static const struct {
		const char *key;
		int n;
	} rows[] = { { "added", 2 }, { "modified", 2 }, { "deleted", 1 }, { "renamed", 1 },
		     { "mode", 2 },  { "files", 8 },    { "unnamed", -1 } };

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT(number_at(o, rows[i].key), rows[i].n);
	CHECK_INT((long long)json_array_size(json_object_get(o, "names")), 8);
	json_decref(o);
}

/* Names are of any bytes: one that looks like the rest of a line is a name. */
TEST(no_name_is_taken_for_a_status)
{
	static const char *const lines[] = {
		LINE("x\\\",\\\"status\\\":\\\"D", "A"),
		LINE("\\\\", "A"),
		"{\"path_base64\":\"/w==\",\"status\":\"A\",\"type\":\"file\"}\n",
	};

	for (size_t i = 0; i < COUNT(lines); i++) {
		json_t *o = changed_data(lines[i], strlen(lines[i]));

		CHECK_INT(number_at(o, "added"), 1);
		CHECK_INT(number_at(o, "deleted"), -1);
		json_decref(o);
	}
}

TEST(so_many_are_named_and_the_rest_is_counted)
{
	AUTO(str_done) struct str lines = { .max = 8u << 20 };
	AUTO(str_done) struct str name = { .max = 8192 };

	for (int i = 0; i < CHANGED_NAMES_MAX + 5; i++)
		str_addf(&lines, LINE("f%d", "A"), i);
	json_t *o = changed_data(str_text(&lines), lines.len);

	CHECK_INT((long long)json_array_size(json_object_get(o, "names")), CHANGED_NAMES_MAX);
	CHECK_INT(number_at(o, "unnamed"), 5);
	json_decref(o);
	/* Long ones, each letter of which takes six bytes in a record. */
	while (name.len < 3000)
		str_add(&name, "\xc3\xa9");
	str_clear(&lines);
	for (int i = 0; i < 10; i++)
		str_addf(&lines, LINE("%s", "A"), str_text(&name));
	o = changed_data(str_text(&lines), lines.len);
	size_t n = json_array_size(json_object_get(o, "names"));

	CHECK(n >= 1 && n * 9000 <= CHANGED_NAMES_BYTES);
	CHECK_INT(number_at(o, "added"), 10);
	CHECK_INT(number_at(o, "unnamed"), 10 - (json_int_t)n);
	json_decref(o);
}

TEST(nothing_is_no_files)
{
	json_t *o = changed_data("", 0);

	CHECK_INT(number_at(o, "files"), 0);
	CHECK_INT((long long)json_array_size(json_object_get(o, "names")), 0);
	json_decref(o);
}
