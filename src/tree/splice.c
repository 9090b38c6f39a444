#include "tree/splice.h"

#include "base/vec.h"
#include "tree/fail.h"
#include "tree/text.h"

struct region {
	size_t at, len;
};

struct regions {
	VEC(struct region) list;
};

static void add_region(struct regions *r, size_t at, size_t len)
{
	vec_push(&r->list, (struct region){ at, len });
}

static void regions_done(struct regions *r)
{
	vec_done(&r->list);
}

/* A line feed that belongs to a CRLF is not found without its carriage return. */
static bool splits_pair(struct span in, size_t at, struct span what)
{
	return what.at[0] == '\n' && at > 0 && in.at[at - 1] == '\r';
}

/* All places for `all`; else those that overlap too, because they are as good, until it is clear
 * that there is no one place. */
static void find(struct span in, struct span what, bool all, struct regions *out)
{
	size_t at = 0;

	while (at + what.len <= in.len) {
		const char *p = memmem(in.at + at, in.len - at, what.at, what.len);

		if (!p || (!all && out->list.len >= SPLICE_LINES_MAX))
			break;
		at = (size_t)(p - in.at);
		bool is_match = !splits_pair(in, at, what);

		if (is_match)
			add_region(out, at, what.len);
		at += all && is_match ? what.len : 1;
	}
}

/* Without the carriage returns that stand before line feeds. */
static void normalise(struct span s, struct str *out)
{
	struct span line;

	while (line_take(&s, &line)) {
		struct span bare = line_bare(line);

		str_addn(out, bare.at, bare.len);
		if (line.at[line.len - 1] == '\n')
			str_addn(out, "\n", 1);
	}
}

/* Where offset `norm_at` of the normalised text is in the text; goes on from *at, *norm. */
static void advance(struct span text, size_t norm_at, size_t *at, size_t *norm)
{
	for (; *norm < norm_at; ++*norm) {
		bool is_pair =
		    text.at[*at] == '\r' && *at + 1 < text.len && text.at[*at + 1] == '\n';

		*at += is_pair ? 2 : 1;
	}
}

static void find_by_eol(struct span text, struct span what, bool all, struct regions *out)
{
	AUTO(str_done) struct str norm_text = { .max = SIZE_MAX };
	AUTO(str_done) struct str norm_what = { .max = SIZE_MAX };
	size_t at = 0, norm = 0;

	normalise(text, &norm_text);
	normalise(what, &norm_what);
	find((struct span){ str_text(&norm_text), norm_text.len },
	     (struct span){ str_text(&norm_what), norm_what.len }, all, out);
	for (size_t i = 0; i < out->list.len; i++) {
		struct region *r = &out->list.at[i];
		size_t end = r->at + r->len, end_at, end_norm;

		advance(text, r->at, &at, &norm);
		end_at = at;
		end_norm = norm;
		advance(text, end, &end_at, &end_norm);
		*r = (struct region){ at, end_at - at };
	}
}

static size_t line_of(struct span text, size_t at)
{
	struct line_ends ends = line_ends_count((struct span){ text.at, at });

	return ends.lf + ends.crlf + 1;
}

static struct span trimmed(struct span s)
{
	while (s.len > 0 && strchr(" \t\r\n", s.at[s.len - 1]) && s.at[s.len - 1])
		s.len--;
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
		s = span_after(s, 1);
	return s;
}

/* Lines that are the first line of the wanted text but for the blanks around it: most misses are
 * wrong indentation. */
static void find_similar(struct span text, struct span what, struct splice_result *result)
{
	struct span line, first = { "", 0 };

	while (first.len == 0 && line_take(&what, &line))
		first = trimmed(line);
	for (size_t n = 1; first.len > 0 && line_take(&text, &line); n++) {
		struct span t = trimmed(line);

		if (t.len == first.len && memcmp(t.at, first.at, t.len) == 0 &&
		    result->n_lines < SPLICE_LINES_MAX)
			result->lines[result->n_lines++] = n;
	}
}

/* Whether text that knows nothing of carriage returns goes into a file that has them throughout. */
static bool must_learn_crlf(struct span text, const struct splice_edit *edit)
{
	if (memchr(edit->from.at, '\r', edit->from.len) || !edit->to.len ||
	    memchr(edit->to.at, '\r', edit->to.len) || !memchr(edit->to.at, '\n', edit->to.len))
		return false; /* the caller knows about them, or there is nothing to decide */
	return line_ends_are_crlf(line_ends_count(text));
}

/* The line ends of the place count when it was found in spite of them. */
static void put_in(struct span text, struct region r, const struct splice_edit *edit, bool by_eol,
                   struct str *out)
{
	struct line_ends here = line_ends_count((struct span){ text.at + r.at, r.len });

	if (by_eol && here.crlf > 0)
		crlf_add(edit->to, out);
	else if (by_eol)
		normalise(edit->to, out);
	else
		str_addn(out, edit->to.at, edit->to.len);
}

static int no_match(struct span text, const struct splice_edit *edit, struct splice_result *result,
                    struct err *e)
{
	find_similar(text, edit->from, result);
	if (result->n_lines == 0)
		return fail(e, TREE_NO_MATCH, "the old text is not there");
	return fail(e, TREE_NO_MATCH,
	            "the old text is not there; line %zu is like it but for "
	            "blanks, or what follows differs",
	            result->lines[0]);
}

static int ambiguous(struct span text, const struct regions *found, struct splice_result *result,
                     struct err *e)
{
	AUTO(str_done) struct str lines = { .max = 256 };

	result->n_lines = found->list.len;
	for (size_t i = 0; i < found->list.len; i++) {
		result->lines[i] = line_of(text, found->list.at[i].at);
		str_addf(&lines, "%s%zu", i > 0 ? ", " : "", result->lines[i]);
	}
	return fail(e, TREE_AMBIGUOUS_MATCH,
	            "the old text is there %s%zu times, at lines %s: give more of it, or all",
	            found->list.len == SPLICE_LINES_MAX ? "at least " : "", found->list.len,
	            str_text(&lines));
}

int splice_text(struct span text, const struct splice_edit *edit, struct str *out,
                struct splice_result *result, struct err *e)
{
	AUTO(regions_done) struct regions found = { 0 };
	AUTO(str_done) struct str with_crlf = { .max = out->max };
	struct splice_edit change = *edit;
	bool by_eol = false;
	size_t at = 0;

	if (edit->from.len == 0)
		return fail(e, TREE_INVALID, "the old text is empty");
	find(text, edit->from, edit->all, &found);
	if (found.list.len == 0 && memchr(edit->from.at, '\n', edit->from.len)) {
		find_by_eol(text, edit->from, edit->all, &found);
		by_eol = found.list.len > 0;
	}
	if (found.list.len == 0)
		return no_match(text, edit, result, e);
	if (found.list.len > 1 && !edit->all)
		return ambiguous(text, &found, result, e);
	if (!by_eol && must_learn_crlf(text, edit)) {
		crlf_add(edit->to, &with_crlf);
		change.to = (struct span){ str_text(&with_crlf), with_crlf.len };
	}
	for (size_t i = 0; i < found.list.len; i++) {
		struct region r = found.list.at[i];

		str_addn(out, text.at + at, r.at - at);
		put_in(text, r, &change, by_eol, out);
		at = r.at + r.len;
	}
	str_addn(out, text.at + at, text.len - at);
	result->replaced += found.list.len;
	result->by_eol = result->by_eol || by_eol;
	return out->overflow ? fail(e, TREE_TOO_LARGE, "the new text is too large") : 0;
}

int splice_lines(struct span text, size_t line, struct span lines, struct str *out, struct err *e)
{
	struct span rest = text, taken;
	size_t n = 0;
	bool is_crlf = line_ends_are_crlf(line_ends_count(text)) && lines.len > 0 &&
	               !memchr(lines.at, '\r', lines.len);
	const char *end = is_crlf ? "\r\n" : "\n";

	if (has_bom(rest)) {
		str_addn(out, rest.at, 3);
		rest = span_after(rest, 3);
	}
	while (n < line && line_take(&rest, &taken)) {
		str_addn(out, taken.at, taken.len);
		n++;
	}
	if (n < line)
		return fail(e, TREE_INVALID, "line %zu of a file with %zu", line, n);
	if (n > 0 && out->data[out->len - 1] != '\n')
		str_add(out, end);
	if (is_crlf)
		crlf_add(lines, out);
	else
		str_addn(out, lines.at, lines.len);
	if (lines.len > 0 && lines.at[lines.len - 1] != '\n')
		str_add(out, end);
	str_addn(out, rest.at, rest.len);
	return out->overflow ? fail(e, TREE_TOO_LARGE, "the new text is too large") : 0;
}
