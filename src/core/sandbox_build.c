/*
 * sandbox_build.c - from a spec to walls: its sources are opened, its workspace too, then the
 * launcher makes it.
 */
#include "core/gate.h"
#include "core/gitscript.h"
#include "core/image.h"
#include "core/maker.h"
#include "core/sandbox-internal.h"
#include "core/workspace.h"
#include "store/repos.h"

static const uint32_t mount_kinds[] = {
	[FS_EPHEMERAL] = LAUNCH_EPHEMERAL,
	[FS_RO] = LAUNCH_RO,
	[FS_OVERLAY] = LAUNCH_OVERLAY,
};

static uint32_t add_text(struct str *text, const char *s)
{
	uint32_t at = (uint32_t)text->len;

	str_addn(text, s, strlen(s) + 1);
	return at;
}

/* `mode: read` is held by the mount. */
static struct maker_tree work_of(const struct sbx *s, const char *at)
{
	return (struct maker_tree){ .tree = (uint64_t)s->workspace->row.num,
		                    .at = at,
		                    .is_read_only = s->is_work_read_only ||
		                                    strcmp(s->workspace->row.mode, "read") == 0 };
}

/* Its git folder borrows the objects of the mirror (checkout.h), which only grows. */
static bool add_mirror(const struct sbx *s, struct launch_make *m, struct str *text)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct repo_row repo;
	struct err e = { 0 };

	if (!s->workspace || !s->workspace->row.repo ||
	    store_repo_get(s->core->store, s->tenant, s->workspace->row.repo, &a, &repo, &e) < 0 ||
	    repo.tree == 0)
		return true;
	return maker_add_tree(m, text,
	                      (struct maker_tree){ .tree = (uint64_t)repo.tree,
	                                           .at = GIT_MIRROR,
	                                           .is_read_only = true });
}

static bool fill_make(const struct sbx *s, struct launch_make *m, struct str *text)
{
	const struct spec *spec = &s->spec;

	*m = (struct launch_make){ .uid = s->uid,
		                   .gid = s->gid,
		                   .image = s->change.tickets[0],
		                   .image_tree = s->image_tree };
	if (s->workspace && wsx_wants_root(s)) {
		m->root = (uint64_t)s->workspace->row.root_num;
		m->image_tree = 0;
	}
	m->flags = (s->is_one_shot ? 0 : LAUNCH_KEPT) |
	           (spec->profile == PROFILE_ROOTFUL ? LAUNCH_ROOTFUL : 0) |
	           (spec->net.mode != NET_DENY ? LAUNCH_NET : 0);
	for (enum limit_id i = 0; i < LIMIT_COUNT; i++) {
		m->limits[i] = spec->limits[i].value;
		m->named |= (uint32_t)spec->limits[i].named << i;
		m->weaker |= (uint32_t)spec_weaker(spec, limit_name(i)) << i;
	}
	m->id = add_text(text, s->id);
	for (size_t i = 0; i < spec->fs.len; i++)
		if (spec->fs.at[i].kind == FS_WORKSPACE) /* there is room: FS_ENTRIES_MAX */
			(void)maker_add_work(m, text, work_of(s, spec->fs.at[i].at));
		else
			m->mounts[m->n_mounts++] = (struct launch_mount){
				.kind = mount_kinds[spec->fs.at[i].kind],
				.ticket = s->change.tickets[1 + i],
				.at = add_text(text, spec->fs.at[i].at),
			};
	for (size_t i = 0; i < s->n_trees; i++)
		(void)maker_add_tree(m, text, s->trees[i]); /* there is room: copy_trees() */
	return add_mirror(s, m, text);
}

static void make(struct sbx *s)
{
	AUTO(str_done) struct str text = { .max = LAUNCH_TEXT_MAX };
	struct launch_make m;

	struct fail f = { 0 };

	if (!fill_make(s, &m, &text)) {
		fail_set(&f, FAIL_INVALID, "fs: more than %d entries", FS_ENTRIES_MAX);
		sbx_build_failed(s, &f);
		return;
	}
	if (s->is_one_shot)
		link_expect(&s->link);
	gate_begin(s);
	maker_make(s->core, &m, &text, sbx_made, s);
}

static void attached(void *arg, struct wsx *w, const struct fail *f)
{
	struct sbx *s = arg;

	(void)w;
	if (f)
		sbx_build_failed(s, f);
	else
		make(s);
}

/* The sources of the spec, one after the other: the image is the first. */
static const char *source_path(const struct spec *spec, size_t i)
{
	if (i == 0)
		return strncmp(spec->image, "dir:", 4) == 0 ? spec->image + 4 : NULL;
	return spec->fs.at[i - 1].src;
}

static void open_next(struct sbx *s);

/* "open: No such file" of the launcher, who knows no names, becomes "open /a/b: No such file". */
static void explain_source(struct fail *f, const struct sbx *s, size_t i, const struct err *e)
{
	const char *path = source_path(&s->spec, i), *prefix = i == 0 ? "image: " : "";
	size_t verb = strcspn(e->msg, ":");

	fail_err(f, e);
	if (e->sys && e->msg[verb] == ':')
		fail_set(f, f->code, "%s%.*s %s%s", prefix, (int)verb, e->msg, path, e->msg + verb);
	else
		fail_set(f, f->code, "%s%s%s %s", i == 0 ? "image: " : "fs: ", path,
		         strncmp(e->msg, "neither", 7) == 0 ? " is" : ":", e->msg);
}

static void opened(void *arg, const struct launch_opened *o, int fd, const struct err *e)
{
	struct sbx *s = arg;
	struct fail f = { 0 };
	size_t i = s->change.next_source;
	bool needs_dir = i == 0 || s->spec.fs.at[i - 1].kind == FS_OVERLAY;

	if (e)
		explain_source(&f, s, i, e);
	else if (needs_dir && !o->is_dir)
		fail_set(&f, FAIL_INVALID, "%s%s is not a folder",
		         i == 0 ? "image: " : "fs: overlay:", source_path(&s->spec, i));
	else if (i == 0)
		(void)sbx_user_of(s, fd, &f); /* the image may have users of its own */
	if (f.code != FAIL_NONE) {
		sbx_build_failed(s, &f);
		return;
	}
	s->change.tickets[i] = o->ticket;
	s->change.next_source++;
	open_next(s);
}

static void open_next(struct sbx *s)
{
	for (; s->change.next_source <= s->spec.fs.len; s->change.next_source++) {
		const char *path = source_path(&s->spec, s->change.next_source);

		if (path) {
			maker_path(s->core, path, s->change.client_fd, opened, s);
			return;
		}
	}
	if (s->workspace && !s->is_attached)
		wsx_attach(s->workspace, s, attached, s);
	else
		make(s);
}

void sbx_build(struct sbx *s)
{
	struct fail f = { 0 };

	memset(s->change.tickets, 0, sizeof s->change.tickets);
	s->change.next_source = 0;
	/* Another one may have the name by now: a new generation gets that. */
	if (s->generation > 1 && (image_resolve(s, &f) < 0 || sbx_user_of(s, -1, &f) < 0))
		sbx_build_failed(s, &f);
	else
		open_next(s);
}
