#include "tree/json.h"

#include "base/arena.h"
#include "base/str.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/text.h"
#include "wire/base64.h"

/* jansson's only failures here are out of memory and a value that is NULL because of it. */
static json_t *made(json_t *value)
{
	if (!value)
		abort();
	return value;
}

void json_put(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, made(value)) < 0)
		abort();
}

void json_add(json_t *array, json_t *value)
{
	if (json_array_append_new(array, made(value)) < 0)
		abort();
}

void json_put_text(json_t *object, const char *key, const char *text)
{
	json_put(object, key, json_string(text));
}

void json_put_number(json_t *object, const char *key, uint64_t value)
{
	json_put(object, key, json_integer((json_int_t)value));
}

void json_put_bool(json_t *object, const char *key, bool value)
{
	json_put(object, key, json_boolean(value));
}

json_t *json_bytes(struct span bytes)
{
	AUTO(str_done) struct str text = { .max = SIZE_MAX };
	json_t *whole = json_stringn(bytes.at ? bytes.at : "", bytes.len);

	if (whole)
		return whole;
	utf8_lossy(bytes, &text);
	return made(json_stringn(str_text(&text), text.len));
}

void json_put_base64(json_t *object, const char *key, struct span bytes)
{
	AUTO(str_done) struct str text = { .max = SIZE_MAX };

	base64_encode(bytes.at, bytes.len, &text);
	json_put(object, key, json_stringn(str_text(&text), text.len));
}

void json_put_bytes(json_t *object, const char *key, struct span bytes)
{
	char with_base64[64];

	json_put(object, key, json_bytes(bytes));
	if (utf8_is_valid(bytes))
		return;
	snprintf(with_base64, sizeof with_base64, "%s_base64", key);
	json_put_base64(object, with_base64, bytes);
}

json_t *json_parse(struct span text, struct err *e)
{
	json_error_t why;
	json_t *j = json_loadb(text.at ? text.at : "", text.len,
	                       JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);

	if (!j)
		(void)fail(e, TREE_INVALID, "line %d of the body: %s", why.line, why.text);
	return j;
}

static int wrong(struct err *e, const char *key, const char *wanted)
{
	return fail(e, TREE_INVALID, "%s: %s", key, wanted);
}

static int read_count(const json_t *v, const char *key, uint32_t *out, struct err *e)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < 0 || n > INT32_MAX)
		return wrong(e, key, "a whole number from 0");
	*out = (uint32_t)n;
	return 0;
}

static int read_mode(const json_t *v, const char *key, uint32_t *out, struct err *e)
{
	const char *text = json_string_value(v);
	uint32_t mode = 0;

	if (!text)
		return read_count(v, key, out, e);
	size_t n = json_string_length(v);
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '7' || n > 7)
			return wrong(e, key, "octal digits");
		mode = mode << 3 | (uint32_t)(text[i] - '0');
	}
	if (n == 0)
		return wrong(e, key, "octal digits");
	*out = mode;
	return 0;
}

static struct span text_of(const json_t *v)
{
	return (struct span){ json_string_value(v), json_string_length(v) };
}

static int read_text(const json_t *v, const char *key, struct span *out, struct err *e)
{
	if (!json_is_string(v))
		return wrong(e, key, "text");
	*out = text_of(v);
	return 0;
}

static int from_base64(const json_t *v, const char *key, struct span *out, struct arena *arena,
                       struct err *e)
{
	AUTO(str_done) struct str bytes = { .max = TREE_JSON_MAX };
	struct span text = text_of(v);

	if (!json_is_string(v) || !base64_decode(text.at, text.len, &bytes))
		return wrong(e, key, "base64 with padding");
	*out = (struct span){ arena_strndup(arena, str_text(&bytes), bytes.len), bytes.len };
	return 0;
}

static int read_path(struct span bytes, const char *key, const char **out, struct arena *arena,
                     struct err *e)
{
	if (bytes.len == 0 || has_nul(bytes))
		return wrong(e, key, "a path without NUL");
	if (bytes.len >= PATH_TEXT_MAX)
		return fail(e, TREE_INVALID, "%s: a path of %zu bytes", key, bytes.len);
	*out = arena_strndup(arena, bytes.at, bytes.len);
	return 0;
}

static int read_bytes(const json_t *v, const struct field *f, bool is_base64, void *at,
                      struct arena *arena, struct err *e)
{
	struct span bytes;
	int r =
	    is_base64 ? from_base64(v, f->key, &bytes, arena, e) : read_text(v, f->key, &bytes, e);

	if (r < 0)
		return -1;
	if (f->kind == FIELD_PATH)
		return read_path(bytes, f->key, at, arena, e);
	*(struct span *)at = bytes;
	return 0;
}

static int read_field(const json_t *v, const struct field *f, bool is_base64, void *at,
                      struct arena *arena, struct err *e)
{
	switch (f->kind) {
	case FIELD_BOOL:
		if (!json_is_boolean(v))
			return wrong(e, f->key, "true or false");
		*(bool *)at = json_is_true(v);
		return 0;
	case FIELD_COUNT:
		return read_count(v, f->key, at, e);
	case FIELD_MODE:
		return read_mode(v, f->key, at, e);
	case FIELD_TEXT:
		return read_text(v, f->key, at, e);
	case FIELD_PATH:
	case FIELD_BYTES:
		return read_bytes(v, f, is_base64, at, arena, e);
	case FIELD_ANY:
		*(const json_t **)at = v;
		return 0;
	}
	return -1;
}

/* The row of a key; *is_base64 when the key is that row's with _base64 behind. */
static const struct field *find_field(struct fields fields, const char *key, bool *is_base64)
{
	for (size_t i = 0; i < fields.n; i++) {
		const struct field *f = &fields.at[i];
		size_t n = strlen(f->key);

		if (strncmp(key, f->key, n) != 0)
			continue;
		*is_base64 = strcmp(key + n, "_base64") == 0;
		if (!key[n] || (*is_base64 && (f->kind == FIELD_PATH || f->kind == FIELD_BYTES)))
			return f;
	}
	return NULL;
}

int json_read(const json_t *from, struct fields fields, void *into, struct arena *arena,
              struct err *e)
{
	json_t *object = (json_t *)(uintptr_t)from; /* json_object_iter() wants it so */
	uint64_t seen = 0;
	const char *key;
	json_t *value;

	if (!json_is_object(from))
		return fail(e, TREE_INVALID, "an object was expected");
	json_object_foreach(object, key, value)
	{
		bool is_base64 = false;
		const struct field *f = find_field(fields, key, &is_base64);
		uint64_t bit = f ? 1ull << (f - fields.at) : 0;

		if (!f || (seen & bit))
			return fail(e, TREE_INVALID, "%s: %s", key, f ? "twice" : "no such key");
		if (read_field(value, f, is_base64, (char *)into + f->offset, arena, e) < 0)
			return -1;
		seen |= bit;
	}
	for (size_t i = 0; i < fields.n; i++) {
		if (fields.at[i].is_needed && !(seen & 1ull << i))
			return fail(e, TREE_INVALID, "%s: missing", fields.at[i].key);
	}
	return 0;
}

json_t *json_error(const struct err *e, const json_t *detail)
{
	enum tree_code code = fail_code(e);
	json_t *j = made(json_object());

	json_put_text(j, "code", tree_code_name(code));
	json_put_number(j, "status", (uint64_t)tree_code_status(code));
	json_put(j, "detail", json_bytes(span_of(e->msg)));
	if (detail && json_object_update_missing(j, (json_t *)(uintptr_t)detail) < 0)
		abort();
	return j;
}
