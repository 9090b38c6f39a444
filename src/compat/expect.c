/*
 * expect.c - patterns that end a wait. Theirs are Python's; PCRE means the same by nearly all of
 * them. How long they may look is bounded: they come from outside, and everybody waits meanwhile.
 *
 * The limits of PCRE are of one place where a match may begin, and there are millions of places. So
 * PCRE calls back between any two items of a pattern, and time is measured there: that of the
 * processor, since a machine with much to do is not the pattern's fault.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <time.h>

#include "compat/compat-internal.h"

#define EXPECTS_MAX 64
#define PATTERN_MAX 4096
#define MATCH_LIMIT 200000
#define HEAP_LIMIT_KIB 1024
#define LOOK_US 100000 /* of one look, all patterns together; then they look no more */
#define CHECK_EVERY 16 /* items: between two of them no more is read than there is */
#define REST_TIMES 10  /* as long as a look took */
#define REST_US 2000   /* for one that took this long, or longer */

struct expects {
	size_t n;
	uint64_t began_us, rest_until_ms;
	unsigned int items; /* since the clock was read */
	bool is_spent;
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

static uint64_t cpu_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* always there */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int on_item(pcre2_callout_block *block, void *arg)
{
	struct expects *e = arg;

	(void)block;
	if (++e->items < CHECK_EVERY)
		return 0;
	e->items = 0;
	e->is_spent = cpu_us() - e->began_us > LOOK_US;
	return e->is_spent ? PCRE2_ERROR_CALLOUT : 0;
}

static int add(struct expects *e, const json_t *pattern, struct fail *f)
{
	int code = 0;
	PCRE2_SIZE at = 0;

	if (!json_is_string(pattern) || json_string_length(pattern) > PATTERN_MAX)
		return fail_set(f, FAIL_INVALID,
		                "expect: a list of texts, of %d bytes at most, is expected",
		                PATTERN_MAX);
	e->codes[e->n] = pcre2_compile(
	    (PCRE2_SPTR)json_string_value(pattern), json_string_length(pattern),
	    PCRE2_DOTALL | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT, &code, &at, NULL);
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
	pcre2_set_callout(e->context, on_item, e);
	if (json_array_size(list) > EXPECTS_MAX)
		r = fail_set(f, FAIL_INVALID, "expect: at most %d", EXPECTS_MAX);
	json_array_foreach(list, i, v) if (r == 0) r = add(e, v, f);
	if (r == 0)
		return e;
	expects_free(e);
	return NULL;
}

uint64_t expects_rest_ms(const struct expects *e)
{
	uint64_t now = core_mono_ms();

	return e && e->rest_until_ms > now ? e->rest_until_ms - now : 0;
}

bool expects_are_spent(const struct expects *e)
{
	return e && e->is_spent;
}

bool expects_find(struct expects *e, struct span text, size_t from, size_t *at, size_t *end,
                  size_t *index)
{
	bool has_any = false;

	if (!e || e->n == 0)
		return false;
	e->began_us = cpu_us();
	for (size_t i = 0; i < e->n && !e->is_spent; i++) {
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
	uint64_t took_us = cpu_us() - e->began_us;
	if (took_us >= REST_US)
		e->rest_until_ms = core_mono_ms() + took_us * REST_TIMES / 1000;
	return has_any;
}
