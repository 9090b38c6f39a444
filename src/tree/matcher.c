#define PCRE2_CODE_UNIT_WIDTH 8

#include "tree/matcher.h"

#include <pcre2.h>

#include "tree/call.h"
#include "tree/fail.h"
#include "tree/limits.h"

struct matcher {
	struct call *call;
	struct span plain; /* .at NULL: a regular expression */
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	int needs;
};

void matcher_free(struct matcher **m)
{
	if (!*m)
		return;
	pcre2_match_data_free((*m)->data);
	pcre2_match_context_free((*m)->limits);
	pcre2_code_free((*m)->code);
	free(*m);
	*m = NULL;
}

/* Beyond ASCII a letter in another case may have other bytes, and the library does not say whether
 * case matters for the one that it knows: letters count only when nothing can make case not count.
 */
static int needed_byte(const pcre2_code *code, const struct matcher_how *how)
{
	static const struct {
		uint32_t type, unit;
	} known[] = {
		{ PCRE2_INFO_LASTCODETYPE, PCRE2_INFO_LASTCODEUNIT },
		{ PCRE2_INFO_FIRSTCODETYPE, PCRE2_INFO_FIRSTCODEUNIT },
	};
	bool letters = !how->ignore_case && !memmem(how->pattern.at, how->pattern.len, "(?", 2);

	for (size_t i = 0; i < COUNT(known); i++) {
		uint32_t has = 0, unit = 0;

		pcre2_pattern_info(code, known[i].type, &has);
		pcre2_pattern_info(code, known[i].unit, &unit);
		bool is_letter = (unit | 0x20) >= 'a' && (unit | 0x20) <= 'z';

		if (has == 1 && unit < 0x80 && (letters || !is_letter))
			return (int)unit;
	}
	return -1;
}

static uint32_t options(const struct matcher_how *how)
{
	uint32_t o = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_USE_OFFSET_LIMIT;

	if (how->is_literal)
		o |= PCRE2_LITERAL;
	else
		o |= PCRE2_NEVER_BACKSLASH_C | (how->multiline ? PCRE2_MULTILINE : 0);
	return how->ignore_case ? o | PCRE2_CASELESS : o;
}

struct matcher *matcher_new(const struct matcher_how *how, struct err *e)
{
	int code = 0;
	PCRE2_SIZE at = 0;
	PCRE2_UCHAR why[160] = { 0 };

	if (how->pattern.len == 0 || how->pattern.len > TREE_PATTERN_MAX) {
		(void)fail(e, TREE_INVALID, "a pattern of 1 to %u bytes", TREE_PATTERN_MAX);
		return NULL;
	}
	struct matcher *m = mem_alloc(sizeof *m);
	m->call = how->call;
	if (how->is_literal && !how->ignore_case) {
		m->plain = how->pattern;
		return m;
	}
	m->code = pcre2_compile((PCRE2_SPTR)how->pattern.at, how->pattern.len, options(how), &code,
	                        &at, NULL);
	if (!m->code) {
		pcre2_get_error_message(code, why, sizeof why);
		(void)fail(e, TREE_INVALID, "pattern, at byte %zu: %s", at, (const char *)why);
		matcher_free(&m);
		return NULL;
	}
	/* Machine code where we may have it; what there is otherwise is slower and the same. */
	(void)pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE);
	m->data = pcre2_match_data_create(1, NULL);
	m->limits = pcre2_match_context_create(NULL);
	if (!m->data || !m->limits)
		abort();
	pcre2_set_heap_limit(m->limits, TREE_MATCH_HEAP_KIB);
	m->needs = needed_byte(m->code, how);
	return m;
}

static int find_plain(const struct matcher *m, struct span text, size_t from, struct found *out)
{
	const char *p = memmem(text.at + from, text.len - from, m->plain.at, m->plain.len);

	if (!p)
		return 0;
	*out = (struct found){ (size_t)(p - text.at), m->plain.len };
	return 1;
}

/* The library counts steps anew at every place where a match could begin, and nothing can stop it
 * in between: a long text is searched by slices of such places. */
static int find_in_slice(struct matcher *m, struct span text, size_t from, size_t to)
{
	size_t steps = TREE_MATCH_STEPS / (to - from + 1);

	if (steps < TREE_MATCH_STEPS_MIN)
		steps = TREE_MATCH_STEPS_MIN;
	pcre2_set_match_limit(m->limits, (uint32_t)steps);
	pcre2_set_depth_limit(m->limits, (uint32_t)steps);
	pcre2_set_offset_limit(m->limits, to);
	return pcre2_match(m->code, (PCRE2_SPTR)text.at, text.len, from, 0, m->data, m->limits);
}

/* The end of a slice lies before a code point, not in it. */
static size_t slice_end(struct span text, size_t at)
{
	while (at < text.len && ((unsigned char)text.at[at] & 0xc0) == 0x80)
		at++;
	return at;
}

int matcher_find(struct matcher *m, struct span text, size_t from, struct found *out)
{
	size_t slice = text.len / TREE_MATCH_SLICES;
	int r = PCRE2_ERROR_NOMATCH;

	if (m->plain.at)
		return find_plain(m, text, from, out);
	if (slice < TREE_MATCH_SLICE)
		slice = TREE_MATCH_SLICE;
	while (from <= text.len && r == PCRE2_ERROR_NOMATCH) {
		size_t next =
		    text.len - from > slice ? slice_end(text, from + slice) : text.len + 1;

		r = find_in_slice(m, text, from, next - 1);
		from = next;
		if (from <= text.len && call_stopped(m->call) != STOP_NONE)
			return -1;
	}
	if (r < 0)
		return r == PCRE2_ERROR_NOMATCH ? 0 : -1;
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);

	/* \K may put the beginning behind the end. */
	*out = (struct found){ at[0], at[1] > at[0] ? at[1] - at[0] : 0 };
	return 1;
}

bool matcher_is_plain(const struct matcher *m)
{
	return m->plain.at;
}

int matcher_needs(const struct matcher *m)
{
	return m->plain.at ? -1 : m->needs;
}
