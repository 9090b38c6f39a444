/*
 * yaml.c - a YAML document as the same value tree that JSON gives.
 *
 * A small YAML: one document, text keys, no anchors, aliases or tags (they hide and multiply), no
 * key twice. A plain scalar is a number, true, false or null exactly when JSON would say so (and ~
 * or nothing is null); all else is text, so that no, on, 010 and 1_000 stay what they look like.
 */
#include "spec/opts.h"

#include <assert.h>
#include <ctype.h>
#include <yaml.h>

struct level {
	json_t *container; /* borrowed: its parent, or the document, owns it */
	char *key;         /* waits for its value */
	size_t key_line;
};

struct builder {
	struct yaml_doc doc;
	struct level levels[SPEC_DEPTH_MAX];
	size_t depth;
	bool began; /* the one document */
};

void yaml_doc_done(struct yaml_doc *d)
{
	json_decref(d->root);
	d->root = NULL;
	vec_done(&d->marks);
}

static void builder_done(struct builder *b)
{
	yaml_doc_done(&b->doc);
	for (size_t i = 0; i < SPEC_DEPTH_MAX; i++)
		free(b->levels[i].key);
}

static int fail(size_t line, const char *what, struct err *e)
{
	return err_new(e, ERR_INVALID, "line %zu: %s", line, what);
}

json_t *yaml_plain(const char *text, size_t len)
{
	if (len == 0 || strcmp(text, "~") == 0)
		return json_null();
	bool is_word =
	    strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strcmp(text, "null") == 0;

	json_t *v = NULL;

	if (is_word || text[0] == '-' || isdigit((unsigned char)text[0]))
		v = json_loadb(text, len, JSON_DECODE_ANY, NULL);
	return v ? v : json_stringn(text, len);
}

/* Hands `v` to the container that is open, or makes it the root. */
static void place(struct builder *b, json_t *v, size_t line)
{
	if (b->depth == 0) {
		b->doc.root = v;
		return;
	}
	struct level *top = &b->levels[b->depth - 1];
	struct yaml_mark mark = { .parent = top->container, .line = line };

	if (json_is_array(top->container)) {
		mark.index = json_array_size(top->container);
		json_array_append_new(top->container, v);
	} else {
		mark.index = json_object_size(top->container);
		mark.line = top->key_line;
		json_object_set_new(top->container, top->key, v);
		freep(&top->key);
	}
	vec_push(&b->doc.marks, mark);
}

static bool wants_key(const struct builder *b)
{
	const struct level *top = b->depth > 0 ? &b->levels[b->depth - 1] : NULL;

	return top && json_is_object(top->container) && !top->key;
}

static int on_key(struct builder *b, const char *text, size_t line, struct err *e)
{
	struct level *top = &b->levels[b->depth - 1];

	if (json_object_get(top->container, text))
		return err_new(e, ERR_INVALID, "line %zu: key \"%s\" is given twice", line,
		               quote(text).text);
	top->key = mem_strdup(text);
	top->key_line = line;
	return 0;
}

static int on_scalar(struct builder *b, const yaml_event_t *ev, size_t line, struct err *e)
{
	const char *text = (const char *)ev->data.scalar.value;
	size_t len = ev->data.scalar.length;
	bool is_plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (memchr(text, '\0', len))
		return fail(line, "text with a NUL", e);
	if (wants_key(b))
		return on_key(b, text, line, e);
	json_t *v = is_plain ? yaml_plain(text, len) : json_stringn(text, len);

	assert(v); /* NULL is for bad UTF-8, and the parser lets none through */
	place(b, v, line);
	return 0;
}

static int on_open(struct builder *b, json_t *container, size_t line, struct err *e)
{
	bool is_key = wants_key(b);

	if (is_key || b->depth == SPEC_DEPTH_MAX) {
		json_decref(container);
		return fail(line, is_key ? "a key must be text" : "nested too deep", e);
	}
	place(b, container, line);
	b->levels[b->depth++] = (struct level){ .container = container };
	return 0;
}

static int refuse_extras(const yaml_char_t *anchor, const yaml_char_t *tag, size_t line,
                         struct err *e)
{
	if (anchor)
		return fail(line, "anchors (&) are not allowed", e);
	if (tag)
		return fail(line, "tags (!) are not allowed", e);
	return 0;
}

static int on_event(struct builder *b, const yaml_event_t *ev, struct err *e)
{
	size_t line = ev->start_mark.line + 1;

	switch (ev->type) {
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	case YAML_DOCUMENT_START_EVENT:
		if (b->began)
			return fail(line, "a second document", e);
		b->began = true;
		return 0;
	case YAML_ALIAS_EVENT:
		return fail(line, "aliases (*) are not allowed; quote a text that begins with *",
		            e);
	case YAML_SCALAR_EVENT:
		if (refuse_extras(ev->data.scalar.anchor, ev->data.scalar.tag, line, e) < 0)
			return -1;
		return on_scalar(b, ev, line, e);
	case YAML_SEQUENCE_START_EVENT:
		if (refuse_extras(ev->data.sequence_start.anchor, ev->data.sequence_start.tag, line,
		                  e) < 0)
			return -1;
		return on_open(b, json_array(), line, e);
	case YAML_MAPPING_START_EVENT:
		if (refuse_extras(ev->data.mapping_start.anchor, ev->data.mapping_start.tag, line,
		                  e) < 0)
			return -1;
		return on_open(b, json_object(), line, e);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	}
	return 0;
}

/* libyaml's problems are fixed sentences; they do not quote the input. */
static int build(yaml_parser_t *parser, struct builder *b, struct err *e)
{
	yaml_event_type_t type = YAML_NO_EVENT;

	while (type != YAML_STREAM_END_EVENT) {
		yaml_event_t ev;

		if (!yaml_parser_parse(parser, &ev))
			return fail(parser->problem_mark.line + 1,
			            parser->problem ? parser->problem : "not YAML", e);
		int r = on_event(b, &ev, e);

		type = ev.type;
		yaml_event_delete(&ev);
		if (r < 0)
			return -1;
	}
	return 0;
}

int yaml_load(const char *text, size_t len, struct yaml_doc *out, struct err *e)
{
	AUTO(builder_done) struct builder b = { 0 };
	AUTO(yaml_parser_delete) yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser))
		abort(); /* only for lack of memory */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (build(&parser, &b, e) < 0)
		return -1;
	*out = b.doc;
	b.doc = (struct yaml_doc){ 0 };
	return 0;
}

size_t yaml_line(const struct yaml_doc *d, const json_t *parent, size_t index)
{
	for (size_t i = 0; i < d->marks.len; i++)
		if (d->marks.at[i].parent == parent && d->marks.at[i].index == index)
			return d->marks.at[i].line;
	return 0;
}
