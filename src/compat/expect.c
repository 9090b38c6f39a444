/*
 * expect.c - patterns that end a wait. Theirs are Python's; PCRE means the same by nearly all of
 * them. How long one may look is bounded: they come from outside, and everybody waits meanwhile.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "compat/compat-internal.h"

#define EXPECTS_MAX 64
#define MATCH_LIMIT 200000
#define HEAP_LIMIT_KIB 1024

struct expects {
	size_t n;
	pcre2_code *codes[EXPECTS_MAX];
	pcre2_match_context *context;
	pcre2_match_data *data;
};

void expects_free(struct expects *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n; i++)
		pcre2_code_free(e->codes[i]);
	pcre2_match_context_free(e->context);
	pcre2_match_data_free(e->data);
	free(e);
}

static int add(struct expects *e, const json_t *pattern, struct fail *f)
{
	int code = 0;
	PCRE2_SIZE at = 0;

	if (!json_is_string(pattern))
		return fail_set(f, FAIL_INVALID, "expect: a list of texts is expected");
	e->codes[e->n] =
	    pcre2_compile((PCRE2_SPTR)json_string_value(pattern), json_string_length(pattern),
	                  PCRE2_DOTALL | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
	if (!e->codes[e->n])
		return fail_set(f, FAIL_INVALID, "expect: \"%.64s\" is no pattern",
		                json_string_value(pattern));
	e->n++;
	return 0;
}

struct expects *expects_new(const json_t *list, struct fail *f)
{
	struct expects *e = mem_alloc(sizeof *e);
	const json_t *v;
	size_t i;
	int r = 0;

	*e = (struct expects){ .context = pcre2_match_context_create(NULL),
		               .data = pcre2_match_data_create(1, NULL) };
	if (!e->context || !e->data)
		abort();
	pcre2_set_match_limit(e->context, MATCH_LIMIT);
	pcre2_set_heap_limit(e->context, HEAP_LIMIT_KIB);
	if (json_array_size(list) > EXPECTS_MAX)
		r = fail_set(f, FAIL_INVALID, "expect: at most %d", EXPECTS_MAX);
	json_array_foreach(list, i, v) if (r == 0) r = add(e, v, f);
	if (r == 0)
		return e;
	expects_free(e);
	return NULL;
}

bool expects_find(struct expects *e, struct span text, size_t from, size_t *at, size_t *end,
                  size_t *index)
{
	bool has_any = false;

	for (size_t i = 0; e && i < e->n; i++) {
		int r = pcre2_match(e->codes[i], (PCRE2_SPTR)text.at, text.len, from, 0, e->data,
		                    e->context);
		const PCRE2_SIZE *pair = pcre2_get_ovector_pointer(e->data);

		if (r < 0 || pair[1] < pair[0] || (has_any && pair[0] >= *at))
			continue;
		*at = pair[0];
		*end = pair[1];
		*index = i;
		has_any = true;
	}
	return has_any;
}
