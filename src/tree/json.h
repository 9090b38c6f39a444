/*
 * json.h - requests read strictly, answers written so that every byte can be had back.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "wire/span.h"

static inline void json_drop(json_t **j)
{
	json_decref(*j);
	*j = NULL;
}

/* What a key holds and where it goes; a key that is not in the table is refused. */
enum field_kind {
	FIELD_BOOL,  /* bool */
	FIELD_COUNT, /* uint32_t: 0 to INT32_MAX */
	FIELD_MODE,  /* uint32_t: a number, or text like "0644" */
	FIELD_TEXT,  /* struct span, in the JSON value; may hold NUL */
	FIELD_PATH,  /* const char *: KEY, or KEY_base64; bytes without NUL */
	FIELD_BYTES, /* struct span: KEY, or KEY_base64 */
	FIELD_ANY,   /* json_t *, borrowed */
};

struct field {
	const char *key;
	size_t offset; /* in `into` */
	enum field_kind kind;
	bool is_needed;
};

/* Texts made from base64, kept until the request is done. */
struct arena;

struct fields {
	const struct field *at;
	size_t n;
};
int json_read(const json_t *from, struct fields fields, void *into, struct arena *arena,
              struct err *e) MUST_USE;

/* An object or an array; no key twice. */
json_t *json_parse(struct span text, struct err *e) MUST_USE;

void json_put(json_t *object, const char *key, json_t *value); /* takes the value */
void json_put_text(json_t *object, const char *key, const char *text);
void json_put_number(json_t *object, const char *key, uint64_t value);
void json_put_bool(json_t *object, const char *key, bool value);
/* KEY when it is UTF-8; else KEY with U+FFFD, and KEY_base64. */
void json_put_bytes(json_t *object, const char *key, struct span bytes);
void json_put_base64(json_t *object, const char *key, struct span bytes);
void json_add(json_t *array, json_t *value); /* takes the value */
json_t *json_bytes(struct span bytes);       /* with U+FFFD when it must */

/* The error as the API shows it; `detail` is added to it and may be NULL. */
json_t *json_error(const struct err *e, const json_t *detail);
