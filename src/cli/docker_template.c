#include "cli/docker_template.h"

#include <ctype.h>

#include "base/limits.h"

#define ARGS_MAX 16
#define DEPTH_MAX 32
#define NUMBER_SIZE 32
#define TEXT_MAX (16u << 20)
#define WIDTH_MAX 4096u

struct template
{
	const char *at;
	json_t *root;
	struct str *out;
	struct err *e;
	int depth;
	bool is_trimming; /* the white space that follows */
	bool is_dead;     /* what is not shown: its fields need not be there */
};

/* What ended a list of texts and actions. */
enum stop { STOP_TEXT, STOP_END, STOP_ELSE, STOP_BAD };

struct args {
	json_t *at[ARGS_MAX]; /* references of ours */
	size_t n;
};

static int bad(struct template *t, const char *what)
{
	return err_new(t->e, ERR_INVALID, "template parsing error: template: :1: %s", what);
}

/* ---- values as Go prints them -------------------------------------------------------- */

static void print_value(const json_t *v, struct str *out);

static void print_object(const json_t *v, struct str *out)
{
	AUTO(freep) char *sorted = json_dumps(v, JSON_SORT_KEYS);
	json_t *copy = json_loads(sorted, 0, NULL), *one;
	const char *key, *space = "";

	str_add(out, "map[");
	json_object_foreach(copy, key, one)
	{
		str_addf(out, "%s%s:", space, key);
		print_value(one, out);
		space = " ";
	}
	str_add(out, "]");
	json_decref(copy);
}

static void print_value(const json_t *v, struct str *out)
{
	json_t *one;
	size_t i;

	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_STRING:
		str_addn(out, json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		str_addf(out, "%lld", (long long)json_integer_value(v));
		break;
	case JSON_REAL:
		str_addf(out, "%g", json_real_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		str_add(out, json_is_true(v) ? "true" : "false");
		break;
	case JSON_NULL:
		str_add(out, "<no value>");
		break;
	case JSON_ARRAY:
		str_add(out, "[");
		json_array_foreach(v, i, one)
		{
			str_add(out, i ? " " : "");
			print_value(one, out);
		}
		str_add(out, "]");
		break;
	case JSON_OBJECT:
		print_object(v, out);
		break;
	}
}

static bool is_true(const json_t *v)
{
	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_STRING:
		return json_string_length(v) > 0;
	case JSON_INTEGER:
		return json_integer_value(v) != 0;
	case JSON_REAL:
		return json_real_value(v) != 0;
	case JSON_TRUE:
		return true;
	case JSON_FALSE:
	case JSON_NULL:
		return false;
	case JSON_ARRAY:
		return json_array_size(v) > 0;
	case JSON_OBJECT:
		return json_object_size(v) > 0;
	}
	return false;
}

/* ---- functions ----------------------------------------------------------------------- */

static json_t *text_value(struct str *s)
{
	json_t *v = json_stringn_nocheck(str_text(s), s->len);

	str_done(s);
	return v;
}

/* What is not for others stays here. */
static json_t *without_hidden(json_t *v)
{
	json_t *copy = json_is_object(v) ? json_copy(v) : json_incref(v);

	if (json_is_object(copy))
		json_object_del(copy, TEMPLATE_LABELS);
	return copy;
}

static json_t *fn_json(const struct args *a)
{
	json_t *shown = without_hidden(a->at[0]);
	AUTO(freep) char *text = json_dumps(shown, JSON_COMPACT | JSON_ENCODE_ANY);

	json_decref(shown);
	return json_string_nocheck(text ? text : "null");
}

static json_t *fn_index(const struct args *a)
{
	json_t *v = a->at[0];

	for (size_t i = 1; v && i < a->n; i++) {
		const char *key = json_string_value(a->at[i]);

		v = key ? json_object_get(v, key)
		        : json_array_get(v, (size_t)json_integer_value(a->at[i]));
	}
	return v ? json_incref(v) : json_string("");
}

static json_t *fn_len(const struct args *a)
{
	const json_t *v = a->at[0];

	return json_integer((json_int_t)(json_is_string(v)  ? json_string_length(v)
	                                 : json_is_array(v) ? json_array_size(v)
	                                                    : json_object_size(v)));
}

static json_t *change_letters(const json_t *v, int (*change)(int))
{
	struct str s = { .max = TEXT_MAX };
	const char *text = json_string_value(v);

	for (; text && *text; text++) {
		char c = (char)((unsigned char)*text < 0x80 ? change((unsigned char)*text) : *text);

		str_addn(&s, &c, 1);
	}
	return text_value(&s);
}

static json_t *fn_upper(const struct args *a)
{
	return change_letters(a->at[0], toupper);
}

static json_t *fn_lower(const struct args *a)
{
	return change_letters(a->at[0], tolower);
}

static json_t *fn_join(const struct args *a)
{
	struct str s = { .max = TEXT_MAX };
	json_t *one;
	size_t i;

	json_array_foreach(a->at[0], i, one)
	{
		if (i)
			print_value(a->at[1], &s);
		print_value(one, &s);
	}
	return text_value(&s);
}

static json_t *fn_split(const struct args *a)
{
	const char *text = json_string_value(a->at[0]), *by = json_string_value(a->at[1]);
	json_t *list = json_array();

	while (text && by && *by) {
		const char *end = strstr(text, by);

		json_array_append_new(list, end ? json_stringn_nocheck(text, (size_t)(end - text))
		                                : json_string(text));
		text = end ? end + strlen(by) : NULL;
	}
	return list;
}

static json_t *print_all(const struct args *a, const char *between, const char *end)
{
	struct str s = { .max = TEXT_MAX };

	for (size_t i = 0; i < a->n; i++) {
		str_add(&s, i ? between : "");
		print_value(a->at[i], &s);
	}
	str_add(&s, end);
	return text_value(&s);
}

static json_t *fn_print(const struct args *a)
{
	return print_all(a, "", "");
}

static json_t *fn_println(const struct args *a)
{
	return print_all(a, " ", "\n");
}

/* One value as -WIDTH.PRECISION and a letter say, s, d, v or q: behind that letter. */
static const char *print_one(const char *f, const json_t *v, struct str *out)
{
	AUTO(str_done) struct str text = { .max = TEXT_MAX };
	AUTO(str_done) struct str cell = { .max = TEXT_MAX };
	bool is_left = *f == '-';
	char *end = NULL;
	unsigned long width = strtoul(f + is_left, &end, 10);
	unsigned long most = *end == '.' ? strtoul(end + 1, &end, 10) : WIDTH_MAX;
	int pad = (int)(width < WIDTH_MAX ? width : WIDTH_MAX);

	print_value(v, &text);
	str_add(&cell, *end == 'q' ? "\"" : "");
	str_addn(&cell, str_text(&text), text.len < most || most >= WIDTH_MAX ? text.len : most);
	str_add(&cell, *end == 'q' ? "\"" : "");
	str_addf(out, is_left ? "%-*s" : "%*s", pad, str_text(&cell));
	return end + (*end != '\0');
}

/* %s, %d, %v and %q, one value after the other. */
static json_t *fn_printf(const struct args *a)
{
	const char *f = json_string_value(a->at[0]);
	struct str s = { .max = TEXT_MAX };
	size_t next = 1;

	while (f && *f) {
		if (*f == '%' && f[1] && f[1] != '%' && next < a->n) {
			f = print_one(f + 1, a->at[next++], &s);
			continue;
		}
		f += *f == '%' && f[1];
		str_addn(&s, f++, 1);
	}
	return text_value(&s);
}

static json_t *fn_eq(const struct args *a)
{
	for (size_t i = 1; i < a->n; i++)
		if (json_equal(a->at[0], a->at[i]))
			return json_true();
	return json_false();
}

static json_t *fn_ne(const struct args *a)
{
	return json_boolean(!json_equal(a->at[0], a->at[1]));
}

static json_t *fn_not(const struct args *a)
{
	return json_boolean(!is_true(a->at[0]));
}

static json_t *fn_and(const struct args *a)
{
	size_t i = 0;

	while (i + 1 < a->n && is_true(a->at[i]))
		i++;
	return json_incref(a->at[i]);
}

static json_t *fn_or(const struct args *a)
{
	size_t i = 0;

	while (i + 1 < a->n && !is_true(a->at[i]))
		i++;
	return json_incref(a->at[i]);
}

static const struct function {
	const char *name;
	size_t least;
	json_t *(*call)(const struct args *a);
} functions[] = {
	{ "and", 1, fn_and },         { "eq", 2, fn_eq },       { "index", 1, fn_index },
	{ "join", 2, fn_join },       { "json", 1, fn_json },   { "len", 1, fn_len },
	{ "lower", 1, fn_lower },     { "ne", 2, fn_ne },       { "not", 1, fn_not },
	{ "or", 1, fn_or },           { "print", 0, fn_print }, { "printf", 1, fn_printf },
	{ "println", 0, fn_println }, { "split", 2, fn_split }, { "upper", 1, fn_upper },
};

static const struct function *find_function(const char *name)
{
	for (size_t i = 0; i < COUNT(functions); i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	return NULL;
}

/* ---- words of an action -------------------------------------------------------------- */

static void skip_space(struct template *t)
{
	while (isspace((unsigned char)*t->at))
		t->at++;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool take_name(struct template *t, char name[NAME_TEXT_MAX])
{
	size_t n = 0;

	for (; is_name(*t->at) && n + 1 < NAME_TEXT_MAX; t->at++)
		name[n++] = *t->at;
	name[n] = '\0';
	return n > 0;
}

/* At "}}" or "-}}"? */
static bool is_close(const struct template *t)
{
	return strncmp(t->at, "}}", 2) == 0 || strncmp(t->at, "-}}", 3) == 0;
}

static int take_close(struct template *t)
{
	skip_space(t);
	if (!is_close(t))
		return bad(t, *t->at ? "unexpected text in an action" : "unclosed action");
	t->is_trimming = *t->at == '-';
	t->at += t->is_trimming ? 3 : 2;
	return 0;
}

static json_t *take_text(struct template *t)
{
	char quote = *t->at++;
	struct str s = { .max = TEXT_MAX };

	for (; *t->at && *t->at != quote; t->at++) {
		char c = *t->at;

		if (c == '\\' && quote == '"' && t->at[1]) {
			c = *++t->at;
			c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
		}
		str_addn(&s, &c, 1);
	}
	if (*t->at != quote) {
		str_done(&s);
		bad(t, "unterminated quoted string");
		return NULL;
	}
	t->at++;
	return text_value(&s);
}

static json_t *take_number(struct template *t)
{
	char *end = NULL;
	long long n = strtoll(t->at, &end, 10);

	t->at = end;
	return json_integer(n);
}

/* .A.B of a value, which is given up. */
static json_t *take_fields(struct template *t, json_t *v)
{
	char name[NAME_TEXT_MAX];

	while (v && *t->at == '.') {
		t->at++;
		if (!take_name(t, name))
			return v;
		json_t *inner = json_incref(json_object_get(v, name));

		if (!inner && strcmp(name, "Label") == 0)
			inner = json_incref(json_object_get(v, TEMPLATE_LABELS));
		json_decref(v);
		v = inner ? inner : t->is_dead ? json_null() : NULL;
		if (!v)
			err_new(t->e, ERR_INVALID,
			        "template: :1: executing \"\" at <.%s>: can't evaluate field %s",
			        name, name);
	}
	return v;
}

static json_t *take_pipeline(struct template *t, json_t *dot);

static json_t *take_paren(struct template *t, json_t *dot)
{
	if (++t->depth > DEPTH_MAX) {
		bad(t, "too deep");
		return NULL;
	}
	t->at++;
	json_t *v = take_pipeline(t, dot);

	t->depth--;
	if (v && *t->at != ')') {
		json_decref(v);
		bad(t, "unclosed left paren");
		return NULL;
	}
	if (v)
		t->at++;
	return v;
}

/* One value; NULL with the reason. */
static json_t *take_operand(struct template *t, json_t *dot)
{
	char name[NAME_TEXT_MAX];

	if (*t->at == '"' || *t->at == '`')
		return take_text(t);
	if (isdigit((unsigned char)*t->at) || (*t->at == '-' && isdigit((unsigned char)t->at[1])))
		return take_number(t);
	if (*t->at == '(')
		return take_fields(t, take_paren(t, dot));
	if (*t->at == '.')
		return take_fields(t, json_incref(dot));
	if (*t->at == '$') {
		t->at++;
		return take_fields(t, json_incref(t->root));
	}
	if (take_name(t, name)) {
		if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
			return json_boolean(name[0] == 't');
		if (strcmp(name, "nil") == 0)
			return json_null();
		err_new(t->e, ERR_INVALID,
		        "template parsing error: template: :1: function \"%s\" not defined", name);
		return NULL;
	}
	bad(t, "unexpected text in an action");
	return NULL;
}

static void args_done(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		json_decref(a->at[i]);
	a->n = 0;
}

static bool is_command_over(const struct template *t)
{
	return !*t->at || *t->at == '|' || *t->at == ')' || is_close(t);
}

static int take_args(struct template *t, json_t *dot, struct args *a)
{
	for (;;) {
		skip_space(t);
		if (is_command_over(t))
			return 0;
		json_t *v = a->n < ARGS_MAX - 1 ? take_operand(t, dot) : NULL;

		if (!v)
			return t->e->kind ? -1 : bad(t, "too many arguments");
		a->at[a->n++] = v;
	}
}

/* `json .A`, `.Label "x"`, `"text"`; `piped` becomes the last argument and is given up. */
static json_t *take_command(struct template *t, json_t *dot, json_t *piped)
{
	AUTO(args_done) struct args a = { 0 };
	const char *start = t->at;
	char name[NAME_TEXT_MAX] = "";
	const struct function *f = take_name(t, name) ? find_function(name) : NULL;

	if (!f)
		t->at = start;
	int r = take_args(t, dot, &a);
	if (piped)
		a.at[a.n++] = piped;
	if (r < 0)
		return NULL;
	if (f && a.n < f->least)
		err_new(t->e, ERR_INVALID, "template: :1: wrong number of args for %s", name);
	else if (f)
		return f->call(&a);
	else if (a.n == 0)
		bad(t, "missing value for command");
	else
		return a.n == 1 ? json_incref(a.at[0]) : fn_index(&a); /* .Label "x" */
	return NULL;
}

static json_t *take_pipeline(struct template *t, json_t *dot)
{
	json_t *v = NULL;

	for (;;) {
		skip_space(t);
		v = take_command(t, dot, v);
		if (!v || *t->at != '|')
			return v;
		t->at++;
	}
}

/* ---- texts and actions --------------------------------------------------------------- */

static enum stop run(struct template *t, json_t *dot, bool is_live);

/* The rest of the block, and its {{else}}, each alive or not. */
static enum stop run_branches(struct template *t, json_t *dot, json_t *inner, bool is_live,
                              bool is_taken);

static enum stop run_if(struct template *t, json_t *dot, bool is_live, bool is_with)
{
	t->is_dead = !is_live;
	json_t *v = take_pipeline(t, dot);
	bool is_taken = is_true(v);

	if (!v || take_close(t) < 0) {
		json_decref(v);
		return STOP_BAD;
	}
	enum stop s = run_branches(t, dot, is_with && is_taken ? v : dot, is_live, is_taken);

	json_decref(v);
	return s;
}

static bool take_word(struct template *t, const char *word)
{
	size_t n = strlen(word);

	skip_space(t);
	if (strncmp(t->at, word, n) != 0 || is_name(t->at[n]))
		return false;
	t->at += n;
	return true;
}

static enum stop run_branches(struct template *t, json_t *dot, json_t *inner, bool is_live,
                              bool is_taken)
{
	enum stop s = run(t, inner, is_live && is_taken);

	if (s != STOP_ELSE)
		return s == STOP_TEXT ? bad(t, "unexpected EOF"), STOP_BAD : s;
	if (take_word(t, "if")) /* {{else if X}} shares the end */
		return run_if(t, dot, is_live && !is_taken, false);
	if (take_close(t) < 0)
		return STOP_BAD;
	s = run(t, dot, is_live && !is_taken);
	if (s == STOP_END || s == STOP_BAD)
		return s;
	bad(t, "unexpected EOF or else");
	return STOP_BAD;
}

static enum stop run_range(struct template *t, json_t *dot, bool is_live)
{
	json_t *list = take_pipeline(t, dot), *one;
	const char *key;
	enum stop s = STOP_BAD;
	size_t i;

	if (list && take_close(t) == 0) {
		const char *body = t->at;
		bool is_trimming = t->is_trimming, is_any = is_true(list);

		s = STOP_TEXT;
		json_array_foreach(list, i, one)
		{
			t->at = body;
			t->is_trimming = is_trimming;
			if (run(t, one, is_live) == STOP_BAD)
				s = STOP_BAD;
		}
		json_object_foreach(list, key, one)
		{
			t->at = body;
			t->is_trimming = is_trimming;
			if (run(t, one, is_live) == STOP_BAD)
				s = STOP_BAD;
		}
		t->at = body;
		t->is_trimming = is_trimming;
		if (s != STOP_BAD)
			s = run_branches(t, dot, dot, is_live && !is_any, false);
	}
	json_decref(list);
	return s;
}

static int skip_comment(struct template *t)
{
	const char *end = strstr(t->at, "*/");

	if (!end)
		return bad(t, "unclosed comment");
	t->at = end + 2;
	return take_close(t);
}

static int run_value(struct template *t, json_t *dot, bool is_live)
{
	json_t *v = take_pipeline(t, dot);
	int r = v ? take_close(t) : -1;

	if (r == 0 && is_live)
		print_value(v, t->out);
	json_decref(v);
	return r;
}

/* Behind "{{": STOP_TEXT to go on. */
static enum stop run_action(struct template *t, json_t *dot, bool is_live)
{
	static const char *const blocks[] = { "if", "with", "range" };
	enum stop s = STOP_TEXT;

	t->is_dead = !is_live;
	skip_space(t);
	if (strncmp(t->at, "/*", 2) == 0)
		return skip_comment(t) < 0 ? STOP_BAD : STOP_TEXT;
	if (take_word(t, "end"))
		return take_close(t) < 0 ? STOP_BAD : STOP_END;
	if (take_word(t, "else"))
		return STOP_ELSE;
	for (size_t i = 0; i < COUNT(blocks); i++) {
		if (!take_word(t, blocks[i]))
			continue;
		if (++t->depth > DEPTH_MAX)
			return bad(t, "too deep"), STOP_BAD;
		s = i == 2 ? run_range(t, dot, is_live) : run_if(t, dot, is_live, i == 1);
		t->depth--;
		return s == STOP_END ? STOP_TEXT : STOP_BAD;
	}
	return run_value(t, dot, is_live) < 0 ? STOP_BAD : STOP_TEXT;
}

static void add_text(struct template *t, const char *end, bool is_trimmed, bool is_live)
{
	const char *from = t->at;

	while (t->is_trimming && from < end && isspace((unsigned char)*from))
		from++;
	while (is_trimmed && end > from && isspace((unsigned char)end[-1]))
		end--;
	t->is_trimming = false;
	if (is_live)
		str_addn(t->out, from, (size_t)(end - from));
}

static enum stop run(struct template *t, json_t *dot, bool is_live)
{
	for (;;) {
		const char *open = strstr(t->at, "{{");
		bool is_trimmed = open && open[2] == '-' && isspace((unsigned char)open[3]);

		add_text(t, open ? open : t->at + strlen(t->at), is_trimmed, is_live);
		if (!open)
			return STOP_TEXT;
		t->at = open + (is_trimmed ? 3 : 2);
		enum stop s = run_action(t, dot, is_live);

		if (s != STOP_TEXT)
			return s;
	}
}

int template_render(const char *text, json_t *value, struct str *out, struct err *e)
{
	struct template t = { .at = text, .root = value, .out = out, .e = e };

	*e = (struct err){ 0 };
	switch (run(&t, value, true)) {
	case STOP_TEXT:
		return out->overflow ? err_new(e, ERR_LIMIT, "too much to print") : 0;
	case STOP_END:
		return bad(&t, "unexpected {{end}}");
	case STOP_ELSE:
		return bad(&t, "unexpected {{else}}");
	case STOP_BAD:
		break;
	}
	return -1;
}
