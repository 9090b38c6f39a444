/*
 * print.c - a spec as canonical JSON, and as YAML for people.
 */
#include "spec/opts.h"

#include <yaml.h>

static int json_write(const char *bytes, size_t n, void *out)
{
	str_addn(out, bytes, n);
	return 0;
}

/* What is printed can be read again, so it has the same ceiling. */
static int admit_printed(const struct str *out, size_t start, struct err *e)
{
	if (out->overflow || out->len - start > SPEC_BYTES_MAX)
		return err_new(e, ERR_LIMIT, "the printed spec is too long");
	return 0;
}

int spec_print(const struct spec *s, struct str *out, struct err *e)
{
	AUTO(json_decrefp) json_t *tree = members_get(&top_table, s);
	size_t start = out->len;

	/* Ten digits hold every thousandth of a core up to the ceiling, and 0.1 stays 0.1. */
	if (json_dump_callback(tree, json_write, out, JSON_COMPACT | JSON_REAL_PRECISION(10)) < 0)
		return err_new(e, ERR_INTERNAL, "print the spec");
	return admit_printed(out, start, e);
}

/* ---- YAML ---- */

/* Limits as people write them: one row per flag, with its unit. */
json_t *limits_tree(const struct spec *s)
{
	json_t *object = json_object();

	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct opt *o = opt_by_limit((enum limit_id)i);
		char text[32];

		if (s->limits[i].value == 0)
			continue;
		o->limit.unit->print(s->limits[i].value, text);
		json_object_set_new(object, o->key, yaml_plain(text, strlen(text)));
	}
	return object;
}

static int yaml_write(void *out, unsigned char *bytes, size_t n)
{
	str_addn(out, bytes, n);
	return 1;
}

/* libyaml frees the event in both cases. */
static bool emit(yaml_emitter_t *em, yaml_event_t *ev, int initialized)
{
	return initialized && yaml_emitter_emit(em, ev);
}

/* A text that would read as a number needs quotes; several lines are a block. */
static bool emit_scalar(yaml_emitter_t *em, const char *text, bool is_text)
{
	AUTO(json_decrefp) json_t *reads_as = yaml_plain(text, strlen(text));
	bool plain = json_is_string(reads_as) == is_text;
	yaml_scalar_style_t style = strchr(text, '\n') ? YAML_LITERAL_SCALAR_STYLE
	                            : plain            ? YAML_ANY_SCALAR_STYLE
	                                               : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	yaml_event_t ev;

	return emit(em, &ev,
	            yaml_scalar_event_initialize(&ev, NULL, NULL, (const yaml_char_t *)text,
	                                         (int)strlen(text), plain, true, style));
}

static bool emit_value(yaml_emitter_t *em, json_t *v);

static bool emit_list(yaml_emitter_t *em, json_t *v)
{
	yaml_event_t ev;
	json_t *item;
	size_t i;

	if (!emit(em, &ev,
	          yaml_sequence_start_event_initialize(&ev, NULL, NULL, 1,
	                                               YAML_BLOCK_SEQUENCE_STYLE)))
		return false;
	json_array_foreach(v, i, item)
	{
		if (!emit_value(em, item))
			return false;
	}
	return emit(em, &ev, yaml_sequence_end_event_initialize(&ev));
}

static bool emit_object(yaml_emitter_t *em, json_t *v)
{
	yaml_event_t ev;
	const char *key;
	json_t *item;

	if (!emit(
		em, &ev,
		yaml_mapping_start_event_initialize(&ev, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)))
		return false;
	json_object_foreach(v, key, item)
	{
		if (!emit_scalar(em, key, true) || !emit_value(em, item))
			return false;
	}
	return emit(em, &ev, yaml_mapping_end_event_initialize(&ev));
}

/* A spec's tree has objects, lists, texts and numbers; it is as deep as the tables. */
static bool emit_value(yaml_emitter_t *em, json_t *v)
{
	AUTO(freep) char *number = NULL;

	if (json_is_object(v))
		return emit_object(em, v);
	if (json_is_array(v))
		return emit_list(em, v);
	if (json_is_string(v))
		return emit_scalar(em, json_string_value(v), true);
	number = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
	return emit_scalar(em, number, false);
}

static bool emit_document(yaml_emitter_t *em, json_t *tree)
{
	yaml_event_t ev;

	return emit(em, &ev, yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING)) &&
	       emit(em, &ev, yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1)) &&
	       emit_value(em, tree) && emit(em, &ev, yaml_document_end_event_initialize(&ev, 1)) &&
	       emit(em, &ev, yaml_stream_end_event_initialize(&ev));
}

int spec_print_yaml(const struct spec *s, struct str *out, struct err *e)
{
	AUTO(json_decrefp) json_t *tree = members_get(&top_table, s);
	AUTO(yaml_emitter_delete) yaml_emitter_t em;
	size_t start = out->len;

	json_object_set_new(tree, "limits", limits_tree(s));
	if (!yaml_emitter_initialize(&em))
		abort(); /* only for lack of memory */
	yaml_emitter_set_output(&em, yaml_write, out);
	yaml_emitter_set_unicode(&em, 1);
	yaml_emitter_set_width(&em, -1);
	if (!emit_document(&em, tree))
		return err_new(e, ERR_INTERNAL, "print the spec as YAML");
	return admit_printed(out, start, e);
}
