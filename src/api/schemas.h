/*
 * schemas.h - the objects that the API takes and gives, as tables.
 *
 * openapi.c makes JSON Schema of them, api-reference a page. What a value may be is a short text:
 *
 *   text, count, ...   a basic type, see type_basic()
 *   Sandbox            another schema
 *   [T]  {T}           a list; an object with any keys
 *   =word              this text and no other
 *   T|U|null           one of several
 *
 * The keys of a spec stand in the option tables of src/spec and are read from there.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"

enum member_flag {
	NEEDED = 1 << 0, /* always there in an answer; a request without it is refused */
	BYTES = 1 << 1,  /* also as KEY_base64: the exact bytes when they are not UTF-8 */
};

struct member {
	const char *key;
	unsigned int flags;
	const char *type, *help;
};

struct schema {
	const char *name, *help;
	const struct member *members;
	size_t n;
	const char *is;  /* a type, in place of members */
	bool is_request; /* nothing besides the members is accepted */
	bool has_spec;   /* the keys of a spec too */
	bool has_net;    /* the keys of its net */
};

extern const struct schema schemas[];
extern const size_t n_schemas;

const struct schema *schema_find(const char *name); /* NULL: none */
bool schema_has_needed(const struct schema *s);

/* The names of basic types and what a reader is told of them; NULL at the end. */
struct basic {
	const char *name, *json, *help;
	const char *(*word)(size_t i); /* the valid words; NULL at the end */
};
const struct basic *type_basic(size_t i);

json_t *schema_json(const struct schema *s);
json_t *type_json(const char *type); /* the type is ours, so it is well-formed */

/* schemas_spec.c */
json_t *spec_properties(void);
json_t *net_properties(void);

/* schemas_image.c: for the table in schemas.c, which has to know how many */
extern const struct member image_members[10], image_settings[5], image_ask[4],
    image_list_members[1];
