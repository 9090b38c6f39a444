#include "tree/hunk.h"

#include <assert.h>

#include "tree/fail.h"
#include "tree/text.h"

#define LINES_MAX (4u << 20)   /* of a file; each takes 16 bytes here */
#define STEPS_MAX (200u << 20) /* lines compared to place the hunks of a file: a second or two */
#define NOWHERE SIZE_MAX

void hunks_done(struct hunks *h)
{
	for (size_t i = 0; i < h->at.len; i++)
		vec_done(&h->at.at[i].lines);
	vec_done(&h->at);
}

struct file {
	VEC(struct span) lines; /* with their line feeds */
	bool is_crlf;
	size_t bom_len;
	size_t *steps_left; /* lines that may still be compared */
};

static void file_add(struct file *f, struct span line)
{
	vec_push(&f->lines, line);
}

static struct span file_line(const struct file *f, size_t i)
{
	assert(f->lines.at && i < f->lines.len);
	return f->lines.at[i];
}

static void file_done(struct file *f)
{
	vec_done(&f->lines);
}

/* A hunk, the lines that it expects, and from which line of the file on. */
struct wanted {
	const struct hunk *hunk;
	size_t from;
	VEC(struct span) lines;
};

static void wanted_add(struct wanted *w, struct span line)
{
	vec_push(&w->lines, line);
}

static void wanted_init(struct wanted *w, const struct hunk *h, size_t from)
{
	*w = (struct wanted){ .hunk = h, .from = from };
	for (size_t i = 0; i < h->lines.len; i++) {
		if (h->lines.at[i].op != '+')
			wanted_add(w, h->lines.at[i].text);
	}
}

static void wanted_done(struct wanted *w)
{
	vec_done(&w->lines);
}

static bool may_go_on(const struct file *f)
{
	*f->steps_left -= *f->steps_left > 0;
	return *f->steps_left > 0;
}

static struct span without(struct span s, char c)
{
	if (s.len > 0 && s.at[s.len - 1] == c)
		s.len--;
	return s;
}

static bool line_is(struct span line, struct span wanted, bool by_eol)
{
	line = without(line, '\n');
	if (by_eol) {
		line = without(line, '\r');
		wanted = without(wanted, '\r');
	}
	return line.len == wanted.len &&
	       (line.len == 0 || memcmp(line.at, wanted.at, line.len) == 0);
}

/* How many of the wanted lines are at line `at` of the file. */
static size_t count_equal(const struct file *f, const struct wanted *w, size_t at, bool by_eol)
{
	size_t n = 0;

	while (n < w->lines.len && at + n < f->lines.len && may_go_on(f) &&
	       line_is(f->lines.at[at + n], w->lines.at[n], by_eol))
		n++;
	return n;
}

static bool is_at(const struct file *f, const struct wanted *w, size_t at, bool by_eol)
{
	return count_equal(f, w, at, by_eol) == w->lines.len;
}

static size_t find_from(const struct file *f, const struct wanted *w, size_t at, bool by_eol)
{
	for (; at + w->lines.len <= f->lines.len; at++) {
		if (is_at(f, w, at, by_eol))
			return at;
	}
	return NOWHERE;
}

/* The only place, or NOWHERE; -1 when there are more. */
static int find_only(const struct file *f, const struct wanted *w, bool by_eol,
                     struct hunk_result *result, size_t *found)
{
	size_t at = find_from(f, w, w->from, by_eol), n = 0;

	*found = at;
	while (at != NOWHERE && n < COUNT(result->lines)) {
		result->lines[n++] = at + 1;
		at = find_from(f, w, at + 1, by_eol);
	}
	result->n_lines = n > 1 ? n : 0;
	return n > 1 ? -1 : 0;
}

static int not_there(const struct file *f, const struct wanted *w, size_t at, struct err *e)
{
	size_t n = count_equal(f, w, at, true);
	struct span text = n < w->lines.len ? w->lines.at[n] : (struct span){ "", 0 };
	int len = (int)(text.len < 80 ? text.len : 80);

	if (*f->steps_left == 0)
		return fail(e, TREE_TOO_LARGE, "it takes too long to find its place");
	if (at + n >= f->lines.len)
		return fail(e, TREE_NO_MATCH,
		            "its lines are not there; the file ends before \"%.*s\"", len, text.at);
	return fail(e, TREE_NO_MATCH, "its lines are not there; line %zu is not \"%.*s\"",
	            at + n + 1, len, text.at);
}

static struct span trimmed(struct span s)
{
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
		s = span_after(s, 1);
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* An anchor is often written without the blanks before it; it changes nothing. */
static bool is_anchor(struct span line, struct span anchor, bool by_blanks)
{
	if (!by_blanks)
		return line_is(line, anchor, true);
	return line_is(trimmed(line_bare(line)), trimmed(line_bare(anchor)), true);
}

/* Moves w->from behind the line that the anchor names. */
static int find_anchor(const struct file *f, struct wanted *w, struct err *e)
{
	struct span anchor = w->hunk->anchor;

	for (int by_blanks = 0; anchor.at && by_blanks < 2; by_blanks++) {
		for (size_t i = w->from; i < f->lines.len && may_go_on(f); i++) {
			if (!is_anchor(f->lines.at[i], anchor, by_blanks))
				continue;
			w->from = i + 1;
			return 0;
		}
	}
	if (!anchor.at)
		return 0;
	return fail(e, TREE_NO_MATCH, "no line is \"%.*s\"",
	            (int)(anchor.len < 80 ? anchor.len : 80), anchor.at);
}

/* Without old lines: behind a given line, behind the anchor, or at the end. */
static int place_addition(const struct file *f, const struct wanted *w, size_t *out, struct err *e)
{
	const struct hunk *h = w->hunk;
	size_t at = f->lines.len;

	if (h->has_start)
		at = h->start;
	else if (h->anchor.at && !h->is_at_end)
		at = w->from;
	if (at < w->from || at > f->lines.len)
		return fail(e, TREE_NO_MATCH, "the file has no line %zu to add behind", at);
	*out = at;
	return 0;
}

/* Where the hunk says that its lines are. */
static size_t stated_line(const struct file *f, const struct wanted *w)
{
	if (w->hunk->is_at_end && f->lines.len - w->from >= w->lines.len)
		return f->lines.len - w->lines.len;
	return w->hunk->has_start && w->hunk->start > 0 ? w->hunk->start - 1 : w->from;
}

/* There, or where else they are. NOWHERE when nowhere; -1 when it is not clear. */
static int find_place(const struct file *f, const struct wanted *w, bool by_eol,
                      struct hunk_result *result, size_t *out)
{
	*out = stated_line(f, w);
	if (*out >= w->from && is_at(f, w, *out, by_eol))
		return 0;
	*out = NOWHERE;
	if (w->hunk->has_start)
		return find_only(f, w, by_eol, result, out);
	if (!w->hunk->is_at_end)
		*out = find_from(f, w, w->from, by_eol);
	return 0;
}

/* Exactly, then with other line ends. */
static int place(const struct file *f, const struct wanted *w, struct hunk_result *result,
                 size_t *out, struct err *e)
{
	for (int by_eol = 0; by_eol < 2; by_eol++) {
		if (find_place(f, w, by_eol, result, out) < 0)
			return fail(e, TREE_AMBIGUOUS_MATCH,
			            "its lines are not at line %zu but at %zu other places, first "
			            "at line %zu",
			            w->hunk->start, result->n_lines, result->lines[0]);
		if (*out != NOWHERE) {
			result->by_eol = result->by_eol || by_eol;
			return 0;
		}
	}
	return not_there(f, w, stated_line(f, w), e);
}

/* With the line end of the file, when that is clear or the patch has other ones. */
static void add_line(const struct file *f, const struct hunk_line *l, bool by_eol, struct str *out)
{
	struct span text = f->is_crlf || by_eol ? without(l->text, '\r') : l->text;
	const char *end = f->is_crlf ? "\r\n" : "\n";

	if (out->len > f->bom_len && out->data[out->len - 1] != '\n')
		str_add(out, end);
	str_addn(out, text.at, text.len);
	if (!l->has_no_end)
		str_add(out, end);
}

static void add_old(const struct file *f, size_t i, struct str *out)
{
	struct span line = file_line(f, i);

	str_addn(out, line.at, line.len);
}

/* The hunk's lines, old ones as the file has them. Returns the line of the file behind it. */
static size_t write_hunk(const struct file *f, const struct hunk *h, size_t at, bool by_eol,
                         struct str *out)
{
	for (size_t i = 0; i < h->lines.len; i++) {
		const struct hunk_line *l = &h->lines.at[i];

		if (l->op == '+')
			add_line(f, l, by_eol, out);
		else if (l->op == ' ')
			add_old(f, at, out);
		at += l->op != '+';
	}
	return at;
}

static void keep_lines(const struct file *f, size_t *from, size_t to, struct str *out)
{
	for (; *from < to; ++*from)
		add_old(f, *from, out);
}

/* *from is the first line of the file that is not yet in `out`. */
static int apply(const struct file *f, const struct hunk *h, size_t *from,
                 struct hunk_result *result, struct str *out, struct err *e)
{
	AUTO(wanted_done) struct wanted w;
	size_t at = 0;

	wanted_init(&w, h, *from);
	if (find_anchor(f, &w, e) < 0)
		return -1;
	int r = w.lines.len > 0 ? place(f, &w, result, &at, e) : place_addition(f, &w, &at, e);
	if (r < 0)
		return -1;
	keep_lines(f, from, at, out);
	*from = write_hunk(f, h, at, result->by_eol, out);
	return 0;
}

int hunks_apply(struct span text, const struct hunks *hunks, struct str *out,
                struct hunk_result *result, struct err *e)
{
	size_t steps_left = STEPS_MAX;
	AUTO(file_done)
	struct file f = { .is_crlf = line_ends_are_crlf(line_ends_count(text)),
		          .steps_left = &steps_left };
	struct span line;
	size_t from = 0;

	if (has_bom(text)) {
		f.bom_len = 3;
		str_addn(out, text.at, 3);
		text = span_after(text, 3);
	}
	while (line_take(&text, &line)) {
		if (f.lines.len == LINES_MAX)
			return fail(e, TREE_TOO_LARGE, "more than %u lines", LINES_MAX);
		file_add(&f, line);
	}
	for (size_t i = 0; i < hunks->at.len; i++) {
		const struct hunk *h = &hunks->at.at[i];

		if (apply(&f, h, &from, result, out, e) < 0)
			return err_wrap(e, "hunk %zu (line %zu of the patch)", i + 1,
			                h->patch_line);
	}
	keep_lines(&f, &from, f.lines.len, out);
	return out->overflow ? fail(e, TREE_TOO_LARGE, "the new text is too large") : 0;
}
