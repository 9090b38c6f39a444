#include "cli/flags.h"

#include <strings.h>

#include "base/vec.h"
#include "spec/config.h"
#include "spec/opts.h"

#define OWN_MAX 64 /* of one verb that are looked through for the nearest */

static int set_switch(void *field, char **values, struct err *e)
{
	(void)values;
	(void)e;
	*(bool *)field = true;
	return 0;
}

/* --name=false */
static int set_switch_as(void *field, const char *value, struct err *e)
{
	static const struct {
		const char *word;
		bool is_on;
	} words[] = { { "true", true }, { "false", false }, { "1", true },
		      { "0", false },   { "t", true },      { "f", false } };

	for (size_t i = 0; i < COUNT(words); i++) {
		if (strcasecmp(words[i].word, value) != 0)
			continue;
		*(bool *)field = words[i].is_on;
		return 0;
	}
	return err_new(e, ERR_INVALID, "\"%.64s\" is neither true nor false", value);
}

static int set_text(void *field, char **values, struct err *e)
{
	(void)e;
	*(const char **)field = values[0];
	return 0;
}

static int set_two(void *field, char **values, struct err *e)
{
	const char **two = field;

	(void)e;
	two[0] = values[0];
	two[1] = values[1];
	return 0;
}

static int set_list(void *field, char **values, struct err *e)
{
	struct flag_list *list = field;

	(void)e;
	vec_push(list, values[0]);
	return 0;
}

static int set_number(void *field, char **values, struct err *e)
{
	struct flag_number *n = field;
	char *end = NULL;

	errno = 0;
	unsigned long long value = strtoull(values[0], &end, 10);
	if (values[0][0] < '0' || values[0][0] > '9' || *end || errno)
		return err_new(e, ERR_INVALID, "\"%.64s\" is not a number", values[0]);
	*n = (struct flag_number){ true, value };
	return 0;
}

static int set_duration(void *field, char **values, struct err *e)
{
	struct flag_number *n = field;

	n->is_set = true;
	return duration_parse(values[0], &n->value, e);
}

static const struct {
	int n_values;
	int (*set)(void *field, char **values, struct err *e);
} types[] = {
	[FLAG_SWITCH] = { 0, set_switch }, [FLAG_TEXT] = { 1, set_text },
	[FLAG_TWO] = { 2, set_two },       [FLAG_LIST] = { 1, set_list },
	[FLAG_NUMBER] = { 1, set_number }, [FLAG_DURATION] = { 1, set_duration },
};
_Static_assert(COUNT(types) == FLAG_TYPES, "a type cannot be set");

struct parse {
	const struct flag_table *table;
	int argc, i;
	char **argv;
	void *into;
};

static int set(struct parse *p, const struct flag *f, char **values, struct err *e)
{
	if (types[f->type].set((char *)p->into + f->offset, values, e) < 0)
		return f->name ? err_wrap(e, "--%s", f->name) : err_wrap(e, "-%c", f->letter);
	return 0;
}

/* With the words that follow as values. */
static int set_following(struct parse *p, const struct flag *f, const char *as, struct err *e)
{
	int n = types[f->type].n_values;

	if (p->i + n >= p->argc)
		return err_new(e, ERR_INVALID, "%s needs %s", as,
		               n == 1 ? "a value" : "two values");
	if (set(p, f, p->argv + p->i + 1, e) < 0)
		return -1;
	p->i += n;
	return 1;
}

static const struct flag *find_name(const struct flag_table *t, const char *name, size_t len)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->at[i].name && strlen(t->at[i].name) == len &&
		    memcmp(t->at[i].name, name, len) == 0)
			return &t->at[i];
	return NULL;
}

static const struct flag *find_letter(const struct flag_table *t, char letter)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->at[i].letter == letter)
			return &t->at[i];
	return NULL;
}

/* --name, --name VALUE, --name=VALUE */
static int take_long(struct parse *p, char *word, struct err *e)
{
	size_t len = strcspn(word + 2, "=");
	const struct flag *f = find_name(p->table, word + 2, len);

	if (!f)
		return 0;
	if (word[2 + len] == '\0')
		return set_following(p, f, word, e);
	char *value = word + 3 + len;

	if (types[f->type].n_values > 1)
		return err_new(e, ERR_INVALID, "--%s takes two words", f->name);
	if (f->type == FLAG_SWITCH && set_switch_as((char *)p->into + f->offset, value, e) < 0)
		return err_wrap(e, "--%s", f->name);
	if (f->type == FLAG_SWITCH)
		return 1;
	return set(p, f, &value, e) < 0 ? -1 : 1;
}

/* -i, -it, -w DIR, -itw DIR, -wDIR, -w=DIR */
static int take_letters(struct parse *p, char *word, struct err *e)
{
	for (const char *c = word + 1; *c; c++) {
		const struct flag *f = find_letter(p->table, *c);

		if (!f || (c[1] && types[f->type].n_values > 1))
			return 0;
		if (types[f->type].n_values > 0)
			break; /* the rest is its value */
	}
	for (char *c = word + 1; *c; c++) {
		const struct flag *f = find_letter(p->table, *c);

		if (types[f->type].n_values == 1 && c[1]) {
			char *value = c + 1 + (c[1] == '=');

			return set(p, f, &value, e) < 0 ? -1 : 1;
		}
		if (set_following(p, f, word, e) < 0)
			return -1;
	}
	return 1;
}

/* Of the verb's own rows, and of the two tables that it may take options of. */
static const char *nearest_name(const struct flag_table *t, const char *name)
{
	const char *own[OWN_MAX + 1], *best[4];
	size_t n = 0, n_best = 0;

	for (size_t i = 0; i < t->n && n < OWN_MAX; i++)
		if (t->at[i].name)
			own[n++] = t->at[i].name;
	own[n] = NULL;
	const char *of[] = { nearest(name, own), t->takes_spec ? spec_nearest_flag(name) : NULL,
		             t->takes_config ? config_nearest_flag(name) : NULL };
	for (size_t i = 0; i < COUNT(of); i++)
		if (of[i])
			best[n_best++] = of[i];
	best[n_best] = NULL;
	return nearest(name, best);
}

static int unknown(const struct parse *p, const char *word, struct err *e)
{
	char name[64];

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	const char *near = name[1] == '-' && name[2] ? nearest_name(p->table, name + 2) : NULL;
	if (near)
		return err_new(e, ERR_INVALID, "unknown option %s; did you mean --%s?", name, near);
	return err_new(e, ERR_INVALID, "unknown option %.64s; `caisson help %s` lists them", word,
	               p->argv[0]);
}

static int take_option(struct parse *p, struct err *e)
{
	char *word = p->argv[p->i];
	int r = word[1] == '-' ? take_long(p, word, e) : take_letters(p, word, e);

	if (r == 0 && p->table->other)
		r = p->table->other(p->into, p->argc, p->argv, &p->i, e);
	if (r == 0)
		r = unknown(p, word, e);
	return r;
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

static bool is_help(const struct flag_table *t, const char *word)
{
	return strcmp(word, "--help") == 0 || (strcmp(word, "-h") == 0 && !find_letter(t, 'h'));
}

int flags_parse(const struct flag_table *t, int argc, char **argv, void *into, struct words *out,
                struct err *e)
{
	struct parse p = { .table = t, .argc = argc, .argv = argv, .into = into, .i = 1 };
	bool are_options_over = false;
	size_t n = 0;

	for (; p.i < argc; p.i++) {
		char *word = argv[p.i];

		if (!are_options_over && strcmp(word, "--") == 0) {
			are_options_over = true;
			continue;
		}
		if (are_options_over || !is_option(word)) {
			argv[1 + n++] = word; /* behind what was read */
			are_options_over |=
			    t->is_strict || (t->words_before && n > t->words_before);
			continue;
		}
		if (is_help(t, word))
			return 1;
		if (take_option(&p, e) < 0)
			return -1;
	}
	argv[1 + n] = NULL;
	*out = (struct words){ argv + 1, n };
	return 0;
}

void flags_done(const struct flag_table *t, void *into)
{
	for (size_t i = 0; i < t->n; i++) {
		struct flag_list *list = (void *)((char *)into + t->at[i].offset);

		if (t->at[i].type == FLAG_LIST)
			freep(&list->at);
	}
}
