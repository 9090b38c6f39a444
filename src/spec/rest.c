/*
 * rest.c - types and checks of the keys that are not net, fs, creds or limits.
 */
#include "spec/opts.h"

#include <ctype.h>

#include "spec/trip.h"

int check_user(const struct opt *o, struct arena *a, const char *text, const char **out,
               struct err *e)
{
	struct user_ref ref;

	(void)o;
	if (user_parse(text, &ref, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

bool image_name_is(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n >= NAME_TEXT_MAX || !isalnum((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("._-:/", text[i]))
			return false;
		if (text[i] == '/' && !isalnum((unsigned char)text[i + 1]))
			return false;
	}
	return strcmp(text, "host") != 0 && strncmp(text, "dir:", 4) != 0 &&
	       strncmp(text, "oci:", 4) != 0 && !secret_prefix(text);
}

/* "host", "dir:" and a path, or the name of one that was imported: the daemon knows which. */
int check_image(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e)
{
	const char *prefix = "dir:";
	const char *path = NULL;

	if (image_name_is(text)) {
		*out = arena_strdup(a, text);
		return 0;
	}
	if (strncmp(text, prefix, strlen(prefix)) != 0)
		return check_word(o, a, text, out, e);
	if (check_source(o, a, text + strlen(prefix), &path, e) < 0)
		return -1;
	size_t size = strlen(prefix) + strlen(path) + 1;
	char *image = arena_alloc(a, size);

	snprintf(image, size, "%s%s", prefix, path);
	*out = image;
	return 0;
}

/* A field that a host may be unable to enforce. */
int check_weaker(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e)
{
	const char *words[FLAGS_MAX + 1] = { NULL };
	const struct opt *row;
	size_t n = 0;

	(void)o;
	(void)a;
	for (size_t i = 0; (row = flag_row(i)) && n < FLAGS_MAX; i++)
		if (row->weaker)
			words[n++] = row->key;
	int found = word_find(words, text, e);

	if (found < 0)
		return -1;
	*out = words[found];
	return 0;
}

/* ---- env ---- */

int check_env_name(const struct opt *o, struct arena *a, const char *text, const char **out,
                   struct err *e)
{
	(void)o;
	for (const char *p = text; *p; p++)
		if (!isalpha((unsigned char)*p) && *p != '_' &&
		    (p == text || !isdigit((unsigned char)*p)))
			return err_new(
			    e, ERR_INVALID,
			    "\"%s\" is not the name of a variable ([A-Za-z_][A-Za-z0-9_]*)",
			    quote(text).text);
	if (!*text || strlen(text) >= NAME_TEXT_MAX)
		return err_new(e, ERR_INVALID, "the name of a variable has 1 to %d bytes",
		               NAME_TEXT_MAX - 1);
	*out = arena_strdup(a, text);
	return 0;
}

/* Any bytes, and never shown: people put tokens there. */
int check_env_value(const struct opt *o, struct arena *a, const char *text, const char **out,
                    struct err *e)
{
	(void)o;
	if (strlen(text) > SPEC_TEXT_MAX - NAME_TEXT_MAX)
		return err_new(e, ERR_LIMIT, "the value has %zu bytes, the most is %u",
		               strlen(text), SPEC_TEXT_MAX - NAME_TEXT_MAX);
	*out = arena_strdup(a, text);
	return 0;
}

/* "K=V", as on the command line, or an object. */
static int env_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct text_pair pair = { 0 };

	if (json_is_object(v))
		return map_set(in, o, into, v, e);
	if (!json_is_string(v))
		return wrong_type(o->type->wants, v, e);
	char *value = arena_strdup(in->arena, json_string_value(v));
	const char *name = strsep(&value, "=");

	if (check_env_name(o, in->arena, name, &pair.key, e) < 0)
		return -1;
	if (!value)
		return err_new(e, ERR_INVALID,
		               "\"%s\" has no value; write \"%s=\" for an empty one",
		               quote(pair.key).text, quote(pair.key).text);
	if (check_env_value(o, in->arena, value, &pair.value, e) < 0)
		return -1;
	return pair_add(in, o, opt_field(o, into), pair, e);
}

const struct opt_type opt_env = {
	.wants = "an object, or a list of \"NAME=VALUE\"",
	.items = true,
	.repeat = true,
	.set = env_set,
	.get = map_get,
	.clear = map_clear,
};

/* ---- profile ---- */

static int profile_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct spec *s = into;

	(void)in;
	if (!json_is_string(v))
		return wrong_type(o->type->wants, v, e);
	int profile = word_find(o->words, json_string_value(v), e);

	if (profile < 0)
		return -1;
	s->profile = (enum profile)profile;
	s->profile_named = true;
	return 0;
}

static json_t *profile_get(const struct opt *o, const void *from)
{
	const struct spec *s = from;

	return s->profile_named || s->resolved ? json_string(o->words[s->profile]) : NULL;
}

const struct opt_type opt_profile = { .wants = "text", .set = profile_set, .get = profile_get };

/* ---- switch: "on", "off" or more; JSON has true and false for the two ---- */

static int switch_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	const char **field = opt_field(o, into);

	if (!json_is_boolean(v))
		return opt_text.set(in, o, into, v, e);
	*field = json_is_true(v) ? "on" : "off";
	return 0;
}

static json_t *switch_get(const struct opt *o, const void *from)
{
	return opt_text.get(o, from);
}

const struct opt_type opt_switch = {
	.wants = "\"on\", \"off\" or \"all\"",
	.set = switch_set,
	.get = switch_get,
};

/* ---- gate: who is held, and asked for ---- */

int check_trip(const struct opt *o, struct arena *a, const char *text, const char **out,
               struct err *e)
{
	(void)o;
	if (text_plain(text, TRIP_TEXT_MAX, e) < 0 || trip_check(text, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

static json_t *gate_get(const struct opt *o, const void *from)
{
	json_t *members = members_get(o->members, opt_from(o, from));

	if (json_object_size(members) > 0)
		return members;
	json_decref(members);
	return NULL;
}

const struct opt_type opt_gate = { .wants = "an object", .set = members_set, .get = gate_get };
