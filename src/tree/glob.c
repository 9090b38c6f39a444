#include "tree/glob.h"

#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/text.h"

#define NONE SIZE_MAX

/* The end of the class that begins at p, behind its ']'; NONE when it has none. */
static size_t class_end(struct span pat, size_t p)
{
	size_t i = p + 1;

	if (i < pat.len && (pat.at[i] == '!' || pat.at[i] == '^'))
		i++;
	if (i < pat.len && pat.at[i] == ']')
		i++; /* a first ']' is a member */
	while (i < pat.len && pat.at[i] != ']')
		i += pat.at[i] == '\\' ? 2 : 1;
	return i < pat.len ? i + 1 : NONE;
}

/* Members of a class are bytes, so only ASCII works there. */
static bool in_class(struct span pat, size_t p, size_t end, unsigned char c)
{
	bool is_not = pat.at[p + 1] == '!' || pat.at[p + 1] == '^';
	bool found = false;

	for (size_t i = p + 1 + is_not; i + 1 < end;) {
		i += pat.at[i] == '\\' && i + 2 < end;
		unsigned char low = (unsigned char)pat.at[i++], high = low;

		if (i + 2 < end && pat.at[i] == '-') {
			i++;
			i += pat.at[i] == '\\' && i + 2 < end;
			high = (unsigned char)pat.at[i++];
		}
		found = found || (c >= low && c <= high);
	}
	return found != is_not;
}

static size_t character(struct span s, size_t i)
{
	size_t n = utf8_first(span_after(s, i));

	return n > 0 ? n : 1;
}

/* Matches one element that is no star. Returns how much of the path it takes, 0 for no match. */
static size_t one(struct span pat, size_t *p, struct span s, size_t i)
{
	if (*p >= pat.len || i >= s.len)
		return 0;
	char c = pat.at[*p];
	size_t end = c == '[' ? class_end(pat, *p) : NONE;

	if ((c == '?' || end != NONE) && s.at[i] == '/')
		return 0;
	if (end != NONE) {
		if (!in_class(pat, *p, end, (unsigned char)s.at[i]))
			return 0;
		*p = end;
		return character(s, i);
	}
	if (c == '?') {
		++*p;
		return character(s, i);
	}
	bool is_escaped = c == '\\' && *p + 1 < pat.len;
	if (pat.at[*p + is_escaped] != s.at[i])
		return 0;
	*p += 1 + (size_t)is_escaped;
	return 1;
}

/* `**` that is a whole name. */
static bool is_deep(struct span pat, size_t p)
{
	return p + 1 < pat.len && pat.at[p] == '*' && pat.at[p + 1] == '*' &&
	       (p == 0 || pat.at[p - 1] == '/') && (p + 2 == pat.len || pat.at[p + 2] == '/');
}

struct
try {
	size_t p, i; /* where to go on in the pattern and in the path */
};

/* The last star takes one character more, or else the last `**` one name more. */
static bool again(struct span s, struct try *star, struct try *deep, struct try *now)
{
	if (star->p != NONE && star->i < s.len && s.at[star->i] != '/') {
		star->i += character(s, star->i);
		*now = *star;
		return true;
	}
	const char *slash = deep->p == NONE ? NULL : memchr(s.at + deep->i, '/', s.len - deep->i);
	if (!slash)
		return false;
	deep->i = (size_t)(slash - s.at) + 1;
	star->p = NONE;
	*now = *deep;
	return true;
}

bool glob_matches(struct span pat, struct span s)
{
	struct try now = { 0, 0 }, star = { NONE, 0 }, deep = { NONE, 0 };

	for (;;) {
		if (is_deep(pat, now.p)) {
			if (now.p + 2 == pat.len)
				return now.i < s.len;
			now.p += 3;
			deep = now;
			star.p = NONE;
			continue;
		}
		if (now.p < pat.len && pat.at[now.p] == '*') {
			now.p++;
			star = now;
			continue;
		}
		if (now.p == pat.len && now.i == s.len)
			return true;
		size_t n = one(pat, &now.p, s, now.i);

		if (n > 0)
			now.i += n;
		else if (!again(s, &star, &deep, &now))
			return false;
	}
}

/* Where the brace at `open` closes; *commas counts those between. NONE when it does not. */
static size_t brace_end(struct span pat, size_t open, size_t *commas)
{
	size_t depth = 0;

	*commas = 0;
	for (size_t i = open; i < pat.len; i++) {
		char c = pat.at[i];

		if (c == '\\')
			i++;
		else if (c == '{')
			depth++;
		else if (c == ',' && depth == 1)
			++*commas;
		else if (c == '}' && --depth == 0)
			return i;
	}
	return NONE;
}

/* The first brace that is an alternative. */
static size_t brace_find(struct span pat, size_t *end)
{
	size_t commas;

	for (size_t i = 0; i < pat.len; i++) {
		if (pat.at[i] == '\\') {
			i++;
			continue;
		}
		if (pat.at[i] != '{')
			continue;
		*end = brace_end(pat, i, &commas);
		if (*end != NONE && commas > 0)
			return i;
	}
	return NONE;
}

/* The next alternative of a brace; *at moves behind it. */
static struct span alternative(struct span pat, size_t *at, size_t end)
{
	size_t start = *at, depth = 0, i = start;

	for (; i < end && (depth > 0 || pat.at[i] != ','); i++) {
		if (pat.at[i] == '\\' && i + 1 < end)
			i++;
		else if (pat.at[i] == '{')
			depth++;
		else if (pat.at[i] == '}')
			depth--;
	}
	*at = i + 1;
	return (struct span){ pat.at + start, i - start };
}

static struct span joined(struct arena *arena, const struct span parts[3])
{
	size_t n = parts[0].len + parts[1].len + parts[2].len, used = 0;
	char *text = arena_alloc(arena, n + 1);

	for (int i = 0; i < 3; i++) {
		memcpy(text + used, parts[i].at, parts[i].len);
		used += parts[i].len;
	}
	return (struct span){ text, n };
}

static void globs_push(struct globs *g, struct span pattern)
{
	vec_push(&g->at, pattern);
}

struct waiting {
	VEC(struct span) at;
};

static void waiting_done(struct waiting *w)
{
	vec_done(&w->at);
}

static void wait_for(struct waiting *w, struct span pattern)
{
	vec_push(&w->at, pattern);
}

/* One pattern for each alternative of the brace from `open` to `end`. */
static void unfold(struct waiting *w, struct span pat, size_t open, size_t end, struct arena *arena)
{
	for (size_t at = open + 1; at <= end;) {
		struct span inner = alternative(pat, &at, end);
		const struct span parts[3] = { { pat.at, open }, inner, span_after(pat, end + 1) };

		wait_for(w, joined(arena, parts));
	}
}

/* Patterns wait in a list, one brace of each is unfolded at a time. */
int globs_add(struct globs *g, struct span pattern, struct arena *arena, struct err *e)
{
	AUTO(waiting_done) struct waiting w = { 0 };
	size_t end = 0, before = g->at.len;

	if (pattern.len == 0 || pattern.len > TREE_GLOB_MAX || has_nul(pattern))
		return fail(e, TREE_INVALID, "a pattern of 1 to %d bytes", TREE_GLOB_MAX);
	wait_for(&w, pattern);
	while (w.at.len > 0) {
		if (g->at.len - before + w.at.len > TREE_BRACES_MAX)
			return fail(e, TREE_INVALID, "a pattern that stands for more than %d",
			            TREE_BRACES_MAX);
		struct span pat = w.at.at[--w.at.len];
		size_t brace = brace_find(pat, &end);

		if (brace == NONE)
			globs_push(g, pat);
		else
			unfold(&w, pat, brace, end, arena);
	}
	return 0;
}

bool globs_match(const struct globs *g, struct span path)
{
	for (size_t i = 0; i < g->at.len && path.len <= TREE_GLOB_PATH_MAX; i++) {
		if (glob_matches(g->at.at[i], path))
			return true;
	}
	return false;
}

void globs_done(struct globs *g)
{
	vec_done(&g->at);
}
