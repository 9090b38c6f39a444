/*
 * v4a.c - the patch format that models are taught for apply_patch:
 *
 *   *** Begin Patch
 *   *** Add File: PATH          then lines with '+'
 *   *** Delete File: PATH
 *   *** Update File: PATH       then perhaps "*** Move to: PATH"
 *   @@ a line above the change
 *    context, '-' and '+' lines
 *   *** End of File
 *   *** End Patch
 */
#include "base/base.h"
#include "tree/fail.h"
#include "tree/patchtext-internal.h"

static const char *name_of(struct patch *p, struct span s)
{
	while (s.len > 0 && s.at[s.len - 1] == ' ')
		s.len--;
	return arena_strndup(&p->arena, s.at, s.len);
}

/* The open hunk of a file; a change may begin without "@@". */
static struct hunk *open_hunk(struct patch_file *f, size_t line)
{
	if (f->hunks.at.len == 0)
		vec_push(&f->hunks.at, (struct hunk){ .patch_line = line });
	return &f->hunks.at.at[f->hunks.at.len - 1];
}

static void begin_hunk(struct patch_file *f, const struct reader *r)
{
	struct hunk h = { .patch_line = r->number };
	struct span anchor;

	if (starts(r->line, "@@ ", &anchor) && anchor.len > 0)
		h.anchor = anchor;
	/* Two anchors in a row: a hunk without lines only moves on. */
	vec_push(&f->hunks.at, h);
}

static int take_line(struct patch_file *f, const struct reader *r, struct err *e)
{
	char op = (char)(r->line.len > 0 ? r->line.at[0] : ' ');

	if (f->kind == PATCH_ADD && op != '+')
		return fail(e, TREE_INVALID, "line %zu: lines of a new file begin with +",
		            r->number);
	if (f->kind == PATCH_DELETE || !strchr(" +-", op) || !op)
		return fail(e, TREE_INVALID, "line %zu: a change begins with ' ', - or +",
		            r->number);
	struct hunk_line l = { .op = op, .text = r->full };

	if (r->line.len > 0)
		l.text = span_after(r->full, 1);
	vec_push(&open_hunk(f, r->number)->lines, l);
	return 0;
}

/* A line of the section that is open. */
static int take_in_section(struct patch *p, const struct reader *r, struct err *e)
{
	struct patch_file *f = p->files.len > 0 ? &p->files.at[p->files.len - 1] : NULL;
	struct span rest;

	if (!f)
		return fail(e, TREE_INVALID,
		            "line %zu: *** Add, Update or Delete File was expected", r->number);
	if (starts(r->line, "*** Move to: ", &rest) && f->kind == PATCH_UPDATE) {
		f->new_path = name_of(p, rest);
		return 0;
	}
	if (span_is(r->line, "*** End of File") && f->kind == PATCH_UPDATE) {
		open_hunk(f, r->number)->is_at_end = true;
		return 0;
	}
	if (starts(r->line, "***", NULL))
		return fail(e, TREE_INVALID, "line %zu: unknown directive", r->number);
	if (f->kind == PATCH_UPDATE && (starts(r->line, "@@ ", NULL) || span_is(r->line, "@@"))) {
		begin_hunk(f, r);
		return 0;
	}
	return take_line(f, r, e);
}

static int check_sections(const struct patch *p, struct err *e)
{
	for (size_t i = 0; i < p->files.len; i++) {
		const struct patch_file *f = &p->files.at[i];

		if (f->kind == PATCH_UPDATE && f->hunks.at.len == 0 && !f->new_path)
			return fail(e, TREE_INVALID, "line %zu: an update without changes",
			            f->patch_line);
	}
	return 0;
}

int v4a_parse(struct patch *p, struct reader *r, struct err *e)
{
	static const struct {
		const char *text;
		enum patch_kind kind;
	} sections[] = {
		{ "*** Add File: ", PATCH_ADD },
		{ "*** Update File: ", PATCH_UPDATE },
		{ "*** Delete File: ", PATCH_DELETE },
	};

	while (reader_next(r)) {
		struct span rest = { "", 0 };
		size_t i = 0;

		if (span_is(r->line, "*** End Patch"))
			return check_sections(p, e);
		while (i < COUNT(sections) && !starts(r->line, sections[i].text, &rest))
			i++;
		if (i == COUNT(sections)) {
			if (take_in_section(p, r, e) < 0)
				return -1;
			continue;
		}
		struct patch_file *f = patch_file_new(p, r->number, e);

		if (!f)
			return -1;
		f->kind = sections[i].kind;
		f->path = name_of(p, rest);
	}
	return fail(e, TREE_INVALID, "*** End Patch is missing");
}
