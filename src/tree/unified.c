/*
 * unified.c - unified diffs, with the heads that git writes before them.
 */
#include "base/base.h"
#include "tree/fail.h"
#include "tree/patchtext-internal.h"

/* What the heads of one file have said so far. */
struct heads {
	struct span old_name, new_name; /* as written; .at NULL: not yet */
	bool has_names;                 /* from --- and +++ */
	bool is_new, is_deleted, is_renamed, is_copied;
	bool has_mode;
	uint32_t mode;
	size_t line;
	struct patch_file *file; /* NULL: none is open */
};

static int take_number(struct span *s, size_t *out)
{
	size_t n = 0, digits = 0;

	while (s->len > 0 && s->at[0] >= '0' && s->at[0] <= '9' && digits < 10) {
		n = n * 10 + (size_t)(s->at[0] - '0');
		*s = span_after(*s, 1);
		digits++;
	}
	*out = n;
	return digits > 0 ? 0 : -1;
}

/* "-12,3" or "-12" */
static int take_range(struct span *s, const char *sign, size_t *start, size_t *count)
{
	*count = 1;
	if (!starts(*s, sign, s) || take_number(s, start) < 0)
		return -1;
	return starts(*s, ",", s) ? take_number(s, count) : 0;
}

struct counts {
	size_t old_left, new_left;
	bool are_known;
};

/* "@@ -1,2 +3,4 @@ text"; a model that cannot count may write "@@" or "@@ … @@" alone. */
static int parse_head(const struct reader *r, struct hunk *h, struct counts *c, struct err *e)
{
	struct span s = r->line;
	size_t new_start;

	if (span_is(s, "@@") || span_is(s, "@@ ... @@") || span_is(s, "@@ @@"))
		return 0;
	if (!starts(s, "@@ ", &s) || take_range(&s, "-", &h->start, &c->old_left) < 0 ||
	    !starts(s, " ", &s) || take_range(&s, "+", &new_start, &c->new_left) < 0 ||
	    !starts(s, " @@", &s))
		return fail(e, TREE_INVALID, "line %zu: \"@@ -L,N +L,N @@\" was expected",
		            r->number);
	c->are_known = true;
	h->has_start = true;
	return 0;
}

static bool is_hunk_line(struct span line)
{
	return line.len == 0 || strchr(" +-", line.at[0]);
}

/* 0 when the line does not belong to the hunk. */
static int take_line(const struct reader *r, struct hunk *h, struct counts *c)
{
	char op = (char)(r->line.len > 0 ? r->line.at[0] : ' '); /* blanks at line ends get lost */

	if (!is_hunk_line(r->line))
		return 0;
	if (c->are_known) {
		if ((op != '+' && c->old_left == 0) || (op != '-' && c->new_left == 0))
			return 0;
		c->old_left -= op != '+';
		c->new_left -= op != '-';
	}
	struct span text = r->line.len > 0 ? span_after(r->full, 1) : r->full;

	vec_push(&h->lines, (struct hunk_line){ .op = op, .text = text });
	return 1;
}

static bool ends_body(const struct counts *c, const struct reader *r)
{
	if (c->are_known)
		return c->old_left == 0 && c->new_left == 0;
	return starts(r->line, "--- ", NULL) && starts(r->rest, "+++ ", NULL);
}

static int take_body(struct reader *r, struct hunk *h, struct counts *c, struct err *e)
{
	while (reader_next(r)) {
		if (starts(r->line, "\\", NULL)) {
			if (h->lines.len > 0)
				h->lines.at[h->lines.len - 1].has_no_end = true;
			continue;
		}
		if (ends_body(c, r) || take_line(r, h, c) == 0) {
			reader_hold(r);
			break;
		}
	}
	if (c->are_known && c->old_left + c->new_left > 0)
		return fail(e, TREE_INVALID,
		            "line %zu: the hunk has %zu old and %zu new lines fewer than it says",
		            h->patch_line, c->old_left, c->new_left);
	return 0;
}

/* Blank lines at the end of a hunk that does not count its lines are not part of it. */
static void drop_blank_end(struct hunk *h)
{
	while (h->lines.len > 0 && h->lines.at[h->lines.len - 1].op == ' ' &&
	       h->lines.at[h->lines.len - 1].text.len == 0)
		h->lines.len--;
}

int unified_hunk(struct reader *r, struct hunks *out, struct err *e)
{
	struct hunk h = { .patch_line = r->number };
	struct counts c = { 0 };
	int result = parse_head(r, &h, &c, e);

	if (result == 0)
		result = take_body(r, &h, &c, e);
	if (result == 0 && !c.are_known)
		drop_blank_end(&h);
	if (result == 0 && h.lines.len == 0)
		result = fail(e, TREE_INVALID, "line %zu: an empty hunk", h.patch_line);
	if (result < 0) {
		vec_done(&h.lines);
		return -1;
	}
	vec_push(&out->at, h);
	return 0;
}

static int octal(const char *at)
{
	int v = 0;

	for (int i = 0; i < 3; i++) {
		if (at[i] < '0' || at[i] > '7')
			return -1;
		v = v << 3 | (at[i] - '0');
	}
	return v <= 0xff ? v : -1;
}

/* A name as C would write it, in quotes; NULL when it is none. *rest is what follows. */
static const char *unquoted(struct arena *arena, struct span s, struct span *rest)
{
	static const char letters[] = "abtnvfr\"\\", bytes[] = "\a\b\t\n\v\f\r\"\\";
	char *out = arena_alloc(arena, s.len + 1);
	size_t n = 0, i = 1;

	for (; i < s.len && s.at[i] != '"'; i++) {
		if (s.at[i] != '\\') {
			out[n++] = s.at[i];
			continue;
		}
		if (++i >= s.len)
			return NULL;
		const char *letter = strchr(letters, s.at[i]);
		int v = i + 3 <= s.len ? octal(s.at + i) : -1;

		if (letter && s.at[i])
			out[n++] = bytes[letter - letters];
		else if (v > 0)
			out[n++] = (char)v;
		else
			return NULL;
		i += letter ? 0 : 2;
	}
	if (i >= s.len)
		return NULL;
	*rest = span_after(s, i + 1);
	return out;
}

/* The name in a head; without the time that diff puts behind a tab. */
static const char *name_of(struct arena *arena, struct span s)
{
	struct span rest;

	if (s.len > 0 && s.at[0] == '"')
		return unquoted(arena, s, &rest);
	const char *tab = s.len > 0 ? memchr(s.at, '\t', s.len) : NULL;

	return arena_strndup(arena, s.at, tab ? (size_t)(tab - s.at) : s.len);
}

/* "diff --git a/x b/x": only when both are the same name is it clear where one ends. */
static void names_of_git(struct heads *h, struct arena *arena, struct span s)
{
	if (s.len > 0 && s.at[0] == '"') {
		struct span rest = { "", 0 };

		if (!unquoted(arena, s, &rest) || rest.len < 1)
			return;
		h->old_name = (struct span){ s.at, (size_t)(rest.at - s.at) };
		h->new_name = span_after(rest, 1);
		return;
	}
	size_t half = s.len / 2;

	if (s.len < 3 || s.len % 2 == 0 || s.at[half] != ' ')
		return;
	h->old_name = (struct span){ s.at, half };
	h->new_name = span_after(s, half + 1);
}

/* The names of heads as they are written, and without a/ or b/; some are not clear, and all are
 * looked at. */
static int check_head_name(struct arena *arena, struct span s, size_t line, struct err *e)
{
	const char *name = s.at ? name_of(arena, s) : NULL;

	if (!name || patch_check_name(name, line, e) < 0)
		return name ? -1 : 0;
	bool is_prefixed = strncmp(name, "a/", 2) == 0 || strncmp(name, "b/", 2) == 0;

	return is_prefixed ? patch_check_name(name + 2, line, e) : 0;
}

static int check_git_names(const struct heads *h, struct arena *arena, struct span s, struct err *e)
{
	if (!h->old_name
	         .at) { /* where one ends is not clear: no ".." in all of it, no second "/" */
		const char *all = arena_strndup(arena, s.at, s.len), *second = strstr(all, " b/");

		return check_head_name(arena, s, h->line, e) < 0
		           ? -1
		           : patch_check_name(second ? second + strlen(" b/") : "", h->line, e);
	}
	return check_head_name(arena, h->old_name, h->line, e) < 0
	           ? -1
	           : check_head_name(arena, h->new_name, h->line, e);
}

static uint32_t mode_of(struct span s)
{
	uint32_t mode = 0;

	for (size_t i = 0; i < s.len && s.at[i] >= '0' && s.at[i] <= '7'; i++)
		mode = (mode << 3 | (uint32_t)(s.at[i] - '0')) & 07777777;
	return mode;
}

static int set_mode(struct heads *h, struct span rest, struct err *e)
{
	h->mode = mode_of(rest);
	h->has_mode = true;
	if ((h->mode & 0170000) != 0100000)
		return fail(e, TREE_INVALID,
		            "line %zu: only regular files can be patched, not mode %o", h->line,
		            h->mode);
	return 0;
}

/* A line between "diff --git" and the first hunk. */
static int take_head(struct heads *h, struct arena *arena, struct span line, struct err *e)
{
	struct span rest, name = { NULL, 0 };

	if (starts(line, "new file mode ", &rest)) {
		h->is_new = true;
		return set_mode(h, rest, e);
	}
	if (starts(line, "deleted file mode ", &rest))
		h->is_deleted = true;
	else if (starts(line, "new mode ", &rest))
		return set_mode(h, rest, e);
	else if (starts(line, "rename from ", &name) || starts(line, "copy from ", &name))
		h->old_name = name;
	else if (starts(line, "rename to ", &name) || starts(line, "copy to ", &name))
		h->new_name = name;
	else if (starts(line, "GIT binary patch", NULL) || starts(line, "Binary files ", NULL))
		return fail(e, TREE_INVALID, "line %zu: a change of a binary file", h->line);
	h->is_renamed |= name.at && starts(line, "rename ", NULL);
	h->is_copied |= name.at && starts(line, "copy ", NULL);
	return check_head_name(arena, name, h->line, e);
}

static bool is_nothing(const char *name)
{
	return strcmp(name, "/dev/null") == 0;
}

/* a/ and b/ go when both names have theirs. */
static void strip(const char **old_name, const char **new_name)
{
	bool is_old = strncmp(*old_name, "a/", 2) == 0, is_new = strncmp(*new_name, "b/", 2) == 0;

	if ((!is_old && !is_nothing(*old_name)) || (!is_new && !is_nothing(*new_name)))
		return;
	*old_name += is_old ? 2 : 0;
	*new_name += is_new ? 2 : 0;
}

/* What the heads say becomes the file. */
static int settle(struct patch *p, struct heads *h, struct err *e)
{
	struct patch_file *f = h->file;

	if (!h->old_name.at || !h->new_name.at)
		return fail(e, TREE_INVALID, "line %zu: which file?", h->line);
	const char *old_name = name_of(&p->arena, h->old_name);
	const char *new_name = name_of(&p->arena, h->new_name);

	if (!old_name || !new_name)
		return fail(e, TREE_INVALID, "line %zu: a name with wrong quotes", h->line);
	if (h->has_names || (!h->is_renamed && !h->is_copied))
		strip(&old_name, &new_name);
	bool is_new = h->is_new || is_nothing(old_name);

	f->kind = is_new                                  ? PATCH_ADD
	          : h->is_deleted || is_nothing(new_name) ? PATCH_DELETE
	                                                  : PATCH_UPDATE;
	f->path = f->kind == PATCH_ADD ? new_name : old_name;
	if (f->kind == PATCH_UPDATE && strcmp(old_name, new_name) != 0)
		f->new_path = new_name;
	f->is_copy = h->is_copied;
	f->has_mode = h->has_mode;
	f->mode = h->mode & 0777;
	return 0;
}

/* The next file, if one begins at this line. 1: it does. */
static int begin_file(struct patch *p, struct reader *r, struct heads *h, struct err *e)
{
	struct span rest;
	bool is_git = starts(r->line, "diff --git ", &rest);
	bool is_names = starts(r->line, "--- ", NULL) && starts(r->rest, "+++ ", NULL);

	if (!is_git && !is_names)
		return 0;
	/* --- and +++ after "diff --git" belong to the file that is open. */
	if (is_names && h->file && !h->has_names && h->file->hunks.at.len == 0)
		return 0;
	if (h->file && settle(p, h, e) < 0)
		return -1;
	*h = (struct heads){ .line = r->number, .file = patch_file_new(p, r->number, e) };
	if (!h->file)
		return -1;
	if (!is_git)
		return 0;
	names_of_git(h, &p->arena, rest);
	return check_git_names(h, &p->arena, rest, e) < 0 ? -1 : 1;
}

/* A line of the file that is open and that is no hunk's. */
static int take_line_of_file(struct reader *r, struct heads *h, struct arena *arena, struct err *e)
{
	if (!starts(r->line, "--- ", &h->old_name))
		return take_head(h, arena, r->line, e);
	if (!reader_next(r) || !starts(r->line, "+++ ", &h->new_name))
		return fail(e, TREE_INVALID, "line %zu: +++ was expected", r->number);
	h->has_names = true;
	return check_head_name(arena, h->old_name, r->number, e) < 0
	           ? -1
	           : check_head_name(arena, h->new_name, r->number, e);
}

int unified_parse(struct patch *p, struct reader *r, struct err *e)
{
	struct heads h = { 0 };

	while (reader_next(r)) {
		int done = begin_file(p, r, &h, e);
		bool is_hunk = starts(r->line, "@@", NULL);
		struct hunks *hunks = h.file ? &h.file->hunks : NULL;

		if (done == 0 && is_hunk && !hunks)
			return fail(e, TREE_INVALID, "line %zu: a hunk before any file", r->number);
		if (done == 0 && is_hunk)
			done = unified_hunk(r, hunks, e);
		else if (done == 0 && hunks && hunks->at.len == 0)
			done = take_line_of_file(r, &h, &p->arena, e);
		if (done < 0)
			return -1;
	}
	return h.file ? settle(p, &h, e) : 0;
}
