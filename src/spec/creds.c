/*
 * creds.c - which stored secrets the gate may use. Names only.
 *
 * People paste tokens where a name belongs. What does not look like a name is refused, what looks
 * like a token is refused too, and neither is ever repeated in a message.
 */
#include "spec/opts.h"

#include <ctype.h>

#define NOT_SHOWN "(not shown: it may be a secret)"

/* How issuers mark their tokens so that a scanner finds them. */
static const char *const prefixes[] = {
	"ghp_",  "gho_",  "ghu_",  "ghs_", "ghr_",       "github_pat_", "glpat-",
	"sk-",   "AKIA",  "ASIA",  "AIza", "ya29.",      "xoxa-",       "xoxb-",
	"xoxp-", "xoxs-", "xapp-", "eyJ",  "-----BEGIN", "Bearer ",     "Basic ",
};

/* Where a source may lead. Files and commands are only for the operator's own configuration. */
static const char *const schemes[] = { "vault", NULL };

bool secret_prefix(const char *text)
{
	for (size_t i = 0; i < COUNT(prefixes); i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* A long run without a separator, or one that mixes digits in: no one names a thing like that. */
static bool is_random(const char *text)
{
	size_t run = 0, digits = 0;

	for (; *text; text++) {
		bool is_part = isalnum((unsigned char)*text);

		run = is_part ? run + 1 : 0;
		digits = is_part ? digits + (isdigit((unsigned char)*text) != 0) : 0;
		if (run >= 32 || (run >= 20 && digits >= 2))
			return true;
	}
	return false;
}

static int refuse_secret(const char *text, struct err *e)
{
	if (secret_prefix(text) || is_random(text))
		return err_new(e, ERR_INVALID,
		               "this is a literal secret (not shown); store it, then name it: "
		               "\"github\" or {\"github\": \"vault:NAME\"}");
	return 0;
}

static int name_check(const struct opt *o, struct arena *a, const char *text, const char **out,
                      struct err *e)
{
	if (refuse_secret(text, e) < 0)
		return -1;
	if (check_name(o, a, text, out, e) < 0)
		return err_new(e, ERR_INVALID,
		               "not a name " NOT_SHOWN
		               "; write \"github\" or {\"github\": \"vault:NAME\"}");
	return 0;
}

int secret_word_check(struct arena *a, const char *text, const char **out, struct err *e)
{
	return name_check(NULL, a, text, out, e);
}

static int source_check(const struct opt *o, struct arena *a, const char *text, const char **out,
                        struct err *e)
{
	size_t len = strcspn(text, ":");
	const char *scheme = arena_strndup(a, text, len);
	const char *near = nearest(scheme, schemes);
	const char *name = NULL;
	struct err unused;

	if (!text[len] || word_find(schemes, scheme, &unused) < 0)
		return err_new(e, ERR_INVALID, "the source " NOT_SHOWN " is not vault:NAME%s%s%s",
		               near ? "; did you mean \"" : "", near ? near : "",
		               near ? ":\"?" : "");
	if (name_check(o, a, text + len + 1, &name, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

static int cred_add(struct input *in, const struct opt *o, struct spec *s, struct text_pair written,
                    struct err *e)
{
	struct text_pair pair = { .value = "" };

	if (strcmp(written.key, "none") == 0)
		return err_new(e, ERR_INVALID, "\"none\" stands alone, not in a list");
	if (name_check(o, in->arena, written.key, &pair.key, e) < 0)
		return -1;
	if (written.value && source_check(o, in->arena, written.value, &pair.value, e) < 0)
		return err_wrap(e, "%s", pair.key);
	return pair_add(in, o, &s->creds, pair, e);
}

static int creds_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct spec *s = into;
	const char *key;
	json_t *value;
	size_t i = 0;

	if (!in->listed &&
	    (json_is_null(v) || (json_is_string(v) && strcmp(json_string_value(v), "none") == 0))) {
		s->creds.len = 0;
		return 0;
	}
	if (json_is_string(v)) {
		char *source = arena_strdup(in->arena, json_string_value(v));
		char *name = strsep(&source, "=");

		return cred_add(in, o, s, (struct text_pair){ name, source }, e);
	}
	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	json_object_foreach(v, key, value)
	{
		input_at(in, v, i++);
		if (!json_is_string(value))
			return wrong_type("a source such as \"vault:gh-app\"", value, e);
		if (cred_add(in, o, s, (struct text_pair){ key, json_string_value(value) }, e) < 0)
			return -1;
	}
	return 0;
}

static json_t *creds_get(const struct opt *o, const void *from)
{
	const struct spec *s = from;
	json_t *array = json_array();

	(void)o;
	for (size_t i = 0; i < s->creds.len; i++) {
		const struct text_pair *p = &s->creds.at[i];

		json_array_append_new(array, *p->value ? json_pack("{s:s}", p->key, p->value)
		                                       : json_string(p->key));
	}
	return array;
}

static void creds_clear(const struct opt *o, void *into)
{
	struct spec *s = into;

	(void)o;
	s->creds.len = 0;
}

const struct opt_type opt_creds = {
	.wants = "a name, an object of name: source, or a list of them",
	.items = true,
	.repeat = true,
	.set = creds_set,
	.get = creds_get,
	.clear = creds_clear,
};
