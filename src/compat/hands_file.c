/*
 * hands_file.c - files as they are.
 */
#include "compat/compat-internal.h"

/* Theirs are absolute. NULL: it was answered. */
static const char *path_of(struct call *c)
{
	const char *path = call_query(c, "path");
	struct fail f = { 0 };

	if (path && path[0] == '/')
		return path;
	fail_set(&f, FAIL_INVALID, path ? "Path must be absolute" : "path is needed");
	answer_fail(c, &f);
	return NULL;
}

static void download(struct call *c, struct sbx *s)
{
	const char *path = c->r ? path_of(c) : NULL;

	if (path)
		file_show(c, s, path);
}

void hands_download(struct call *c)
{
	compat_enter(c, download);
}

static void uploaded(struct form *f)
{
	answer_json(f->call, 200,
	            json_pack("{sb,sI}", "success", 1, "file_size", (json_int_t)f->bytes));
}

static void failed(struct form *f, const struct fail *why)
{
	answer_fail(f->call, why);
}

static void upload(struct call *c, struct sbx *s)
{
	const char *path = c->state ? path_of(c) : NULL;

	if (path)
		form_go(c->state, s, path);
}

void hands_upload(struct call *c)
{
	struct form *f = form_take(c);

	if (!f)
		return;
	f->done = uploaded;
	f->failed = failed;
	compat_enter(c, upload);
}
