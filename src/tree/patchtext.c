#include "tree/patchtext.h"

#include "base/limits.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/patchtext-internal.h"
#include "tree/text.h"

void patch_done(struct patch *p)
{
	for (size_t i = 0; i < p->files.len; i++)
		hunks_done(&p->files.at[i].hunks);
	vec_done(&p->files);
	arena_done(&p->arena);
}

bool reader_next(struct reader *r)
{
	struct span line;

	if (r->has_held) {
		r->has_held = false;
		return true;
	}
	if (!line_take(&r->rest, &line))
		return false;
	r->full = line.at[line.len - 1] == '\n' ? (struct span){ line.at, line.len - 1 } : line;
	r->line = line_bare(line);
	r->number++;
	return true;
}

void reader_hold(struct reader *r)
{
	r->has_held = true;
}

bool starts(struct span s, const char *with, struct span *rest)
{
	size_t n = strlen(with);

	if (s.len < n || memcmp(s.at, with, n) != 0)
		return false;
	if (rest)
		*rest = span_after(s, n);
	return true;
}

struct patch_file *patch_file_new(struct patch *p, size_t line, struct err *e)
{
	if (p->files.len == TREE_PATCH_FILES_MAX) {
		(void)fail(e, TREE_TOO_LARGE, "more than %d files", TREE_PATCH_FILES_MAX);
		return NULL;
	}
	vec_push(&p->files, (struct patch_file){ .patch_line = line });
	return &p->files.at[p->files.len - 1];
}

int patch_check_name(const char *name, size_t line, struct err *e)
{
	bool is_nothing = strcmp(name, "/dev/null") == 0;
	bool is_outside = name[0] == '/' && !is_nothing;

	for (const char *at = name; *at && !is_outside;) {
		size_t n = strcspn(at, "/");

		is_outside = n == 2 && at[0] == '.' && at[1] == '.';
		at += n + strspn(at + n, "/");
	}
	return is_outside ? fail(e, TREE_INVALID,
	                         "line %zu: %.200s: names of a patch are relative, without ..; "
	                         "nothing was changed",
	                         line, name)
	                  : 0;
}

/* Every file needs a name that can be one. */
static int check(const struct patch *p, struct err *e)
{
	for (size_t i = 0; i < p->files.len; i++) {
		const struct patch_file *f = &p->files.at[i];

		if (!f->path || !*f->path || (f->new_path && !*f->new_path))
			return fail(e, TREE_INVALID, "line %zu: a file without a name",
			            f->patch_line);
		if (patch_check_name(f->path, f->patch_line, e) < 0 ||
		    (f->new_path && patch_check_name(f->new_path, f->patch_line, e) < 0))
			return -1;
		if (strlen(f->path) >= PATH_TEXT_MAX ||
		    (f->new_path && strlen(f->new_path) >= PATH_TEXT_MAX))
			return fail(e, TREE_INVALID, "line %zu: a name that is too long",
			            f->patch_line);
	}
	return p->files.len > 0 ? 0 : fail(e, TREE_INVALID, "no file in the patch");
}

int patch_parse(struct patch *p, struct span text, struct err *e)
{
	struct reader r = { .rest = text };

	if (has_nul(text))
		return fail(e, TREE_INVALID, "a patch with NUL bytes");
	while (reader_next(&r)) {
		if (span_is(r.line, "*** Begin Patch"))
			p->is_v4a = true;
		if (p->is_v4a || r.line.len > 0)
			break;
	}
	if (!p->is_v4a)
		r = (struct reader){ .rest = text };
	if ((p->is_v4a ? v4a_parse(p, &r, e) : unified_parse(p, &r, e)) < 0)
		return -1;
	return check(p, e);
}

int patch_parse_hunks(struct hunks *h, struct span text, struct err *e)
{
	struct reader r = { .rest = text };

	while (reader_next(&r)) {
		if (starts(r.line, "@@", NULL) && unified_hunk(&r, h, e) < 0)
			return -1;
	}
	return h->at.len > 0 ? 0 : fail(e, TREE_INVALID, "no hunk in the patch");
}
