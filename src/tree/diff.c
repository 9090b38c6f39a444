#include "tree/diff.h"

#include <assert.h>

#include "base/vec.h"
#include "tree/limits.h"
#include "tree/text.h"

#define CONTEXT 3
#define SIDE_LINES_MAX 20000
#define SIDE_BYTES_MAX (4u << 20)

/* The part of one text in which the two differ, with context around it. */
struct side {
	VEC(struct span) lines;
};

struct script {
	VEC(char) ops; /* ' ', '-', '+', one per line of the result */
};

static void side_add(struct side *s, struct span line)
{
	vec_push(&s->lines, line);
}

static struct span side_line(const struct side *s, size_t i)
{
	assert(s->lines.at && i < s->lines.len);
	return s->lines.at[i];
}

static void script_add(struct script *s, char op)
{
	vec_push(&s->ops, op);
}

static void side_done(struct side *s)
{
	vec_done(&s->lines);
}

static void script_done(struct script *s)
{
	vec_done(&s->ops);
}

static size_t back_to_line(struct span s, size_t at)
{
	while (at > 0 && s.at[at - 1] != '\n')
		at--;
	return at;
}

/* The beginning of the part: where they differ first, and some lines before. */
static size_t common_start(struct span a, struct span b)
{
	size_t max = a.len < b.len ? a.len : b.len, at = 0;

	while (at < max && a.at[at] == b.at[at])
		at++;
	at = back_to_line(a, at);
	for (int i = 0; i < CONTEXT && at > 0; i++)
		at = back_to_line(a, at - 1);
	return at;
}

/* How many bytes at the end the part leaves out. */
static size_t common_end(struct span a, struct span b, size_t start)
{
	size_t max = (a.len < b.len ? a.len : b.len) - start, n = 0;

	while (n < max && a.at[a.len - 1 - n] == b.at[b.len - 1 - n])
		n++;
	/* Only whole lines, and not the context. */
	for (int i = 0; i <= CONTEXT && n > 0; i++) {
		const char *end = memchr(a.at + a.len - n, '\n', n);

		n = end ? n - (size_t)(end + 1 - (a.at + a.len - n)) : 0;
	}
	return n;
}

static bool split(struct span text, struct side *out)
{
	struct span line;

	if (text.len > SIDE_BYTES_MAX)
		return false;
	while (line_take(&text, &line)) {
		if (out->lines.len >= SIDE_LINES_MAX)
			return false;
		side_add(out, line);
	}
	return true;
}

/* E. W. Myers, "An O(ND) difference algorithm and its variations", 1986: `far[k]` is how far one
 * gets on diagonal k with d edits; all of them are kept, one row per d, to find the way back. */
struct search {
	const struct span *a, *b; /* lines */
	int n, m, max;
	int *far;      /* of diagonals -max..max, the middle is 0 */
	VEC(int) rows; /* row d has 2d+1 entries and begins at d*d */
};

static bool is_same(const struct search *s, int x, int y)
{
	return s->a[x].len == s->b[y].len && memcmp(s->a[x].at, s->b[y].at, s->a[x].len) == 0;
}

static bool comes_from_above(const int *far, int k, int d)
{
	return k == -d || (k != d && far[k - 1] < far[k + 1]);
}

/* As far as one gets on diagonal k with d edits. */
static int furthest(const struct search *s, int k, int d)
{
	int x = comes_from_above(s->far, k, d) ? s->far[k + 1] : s->far[k - 1] + 1;

	while (x < s->n && x - k < s->m && is_same(s, x, x - k))
		x++;
	return x;
}

static void keep_row(struct search *s, int d)
{
	for (int k = -d; k <= d; k++)
		vec_push(&s->rows, s->far[k]);
}

/* The number of edits, or -1 when it is above the ceiling. */
static int search_forward(struct search *s)
{
	for (int d = 0; d <= s->max; d++) {
		for (int k = -d; k <= d; k += 2) {
			s->far[k] = furthest(s, k, d);
			if (s->far[k] >= s->n && s->far[k] - k >= s->m)
				return d;
		}
		keep_row(s, d);
	}
	return -1;
}

static void search_back(const struct search *s, int d, struct script *out)
{
	int x = s->n, y = s->m;

	for (; d > 0; d--) {
		const int *far = s->rows.at + (size_t)(d - 1) * (size_t)(d - 1) + (d - 1);
		int k = x - y;
		bool above = comes_from_above(far, k, d);
		int from_k = above ? k + 1 : k - 1;
		int from_x = far[from_k], from_y = from_x - from_k;

		while (x > from_x && y > from_y) {
			script_add(out, ' ');
			x--;
			y--;
		}
		script_add(out, above ? '+' : '-');
		x = from_x;
		y = from_y;
	}
	for (; x > 0; x--)
		script_add(out, ' ');
}

static void reverse(struct script *s)
{
	for (size_t i = 0, j = s->ops.len; i + 1 < j; i++) {
		char c = s->ops.at[i];

		s->ops.at[i] = s->ops.at[--j];
		s->ops.at[j] = c;
	}
}

/* Everything out, everything in: right, if not short. */
static void replace_all(const struct side *a, const struct side *b, struct script *out)
{
	for (size_t i = 0; i < a->lines.len; i++)
		script_add(out, '-');
	for (size_t i = 0; i < b->lines.len; i++)
		script_add(out, '+');
}

static void compare(const struct side *a, const struct side *b, struct script *out)
{
	struct search s = {
		.a = a->lines.at, .b = b->lines.at, .n = (int)a->lines.len, .m = (int)b->lines.len
	};

	if (s.n == 0 || s.m == 0) {
		replace_all(a, b, out);
		return;
	}
	assert(s.a && s.b);
	s.max = s.n + s.m < TREE_DIFF_EDITS_MAX ? s.n + s.m : TREE_DIFF_EDITS_MAX;
	AUTO(freep) int *far = mem_alloc((2 * (size_t)s.max + 3) * sizeof *far);
	s.far = far + s.max + 1;
	int d = search_forward(&s);
	if (d >= 0) {
		search_back(&s, d, out);
		reverse(out);
	} else {
		replace_all(a, b, out);
	}
	vec_done(&s.rows);
}

struct cursor {
	size_t op, a, b; /* the next operation, and the lines it stands at */
};

static void step(struct cursor *c, char op)
{
	c->op++;
	c->a += op != '+';
	c->b += op != '-';
}

/* From a change to the last one that is not more than twice the context away. */
static size_t hunk_end(const struct script *s, size_t op)
{
	size_t last = op, i = op;

	for (; i < s->ops.len && i - last <= (size_t)2 * CONTEXT; i++) {
		if (s->ops.at[i] != ' ')
			last = i;
	}
	return last + CONTEXT + 1 < s->ops.len ? last + CONTEXT + 1 : s->ops.len;
}

static void add_line(struct span line, char op, struct str *out)
{
	str_addn(out, &op, 1);
	str_addn(out, line.at, line.len);
	if (line.len == 0 || line.at[line.len - 1] != '\n')
		str_add(out, "\n\\ No newline at end of file\n");
}

/* The number that a hunk's head gives: an empty side names the line before. */
static size_t head_line(size_t first, size_t count)
{
	return count > 0 ? first + 1 : first;
}

/* What is printed from. */
struct view {
	struct side a, b;
	struct script script;
	size_t lines_above; /* of both texts, not looked at */
};

static void view_done(struct view *v)
{
	side_done(&v->a);
	side_done(&v->b);
	script_done(&v->script);
}

static void add_hunk(const struct view *v, struct cursor from, size_t end, struct str *out)
{
	const char *ops = v->script.ops.at;
	struct cursor to = from;

	while (to.op < end)
		step(&to, ops[to.op]);
	size_t n = to.a - from.a, m = to.b - from.b;

	str_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", head_line(from.a + v->lines_above, n), n,
	         head_line(from.b + v->lines_above, m), m);
	for (struct cursor c = from; c.op < end;) {
		char op = ops[c.op];

		add_line(op == '+' ? side_line(&v->b, c.b) : side_line(&v->a, c.a), op, out);
		step(&c, op);
	}
}

static void add_hunks(const struct view *v, struct str *out)
{
	const struct script *s = &v->script;
	struct cursor c = { 0 };

	while (!out->overflow) {
		size_t start = c.op;

		while (c.op < s->ops.len && s->ops.at[c.op] == ' ')
			step(&c, ' ');
		if (c.op == s->ops.len)
			return;
		size_t lead = c.op - start < CONTEXT ? c.op - start : CONTEXT;
		size_t stop = hunk_end(s, c.op);

		add_hunk(v, (struct cursor){ c.op - lead, c.a - lead, c.b - lead }, stop, out);
		while (c.op < stop)
			step(&c, s->ops.at[c.op]);
	}
}

bool diff_add(struct span before, struct span after, struct str *out)
{
	AUTO(view_done) struct view v = { 0 };

	if (before.len == after.len && memcmp(before.at, after.at, before.len) == 0)
		return true;
	size_t start = common_start(before, after), end = common_end(before, after, start);
	struct line_ends above = line_ends_count((struct span){ before.at, start });

	v.lines_above = above.lf + above.crlf;
	if (!split((struct span){ before.at + start, before.len - start - end }, &v.a) ||
	    !split((struct span){ after.at + start, after.len - start - end }, &v.b))
		return false;
	compare(&v.a, &v.b, &v.script);
	add_hunks(&v, out);
	return true;
}
