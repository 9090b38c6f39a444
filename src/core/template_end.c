/*
 * template_end.c - what a build says, its end, and what is found of one after a restart.
 */
#include <stdarg.h>

#include "core/details.h"
#include "core/image.h"
#include "core/template-internal.h"
#include "core/workspace.h"
#include "io/journal.h"

#define SAY_MS 50
#define AGAIN_MS 500
#define FILES_MS (86400ll * 1000) /* how long what was uploaded is kept */

/* ---- what it says -------------------------------------------------------------------- */

/* Many lines at a time: a command that says much must not take all room in the store's queue.
 * False: there is none. */
static bool say_held(struct template_build *b)
{
	struct err e;

	timer_stop(&b->core->timers, &b->saying);
	if (b->n_held == 0)
		return true;
	if (store_build_say(b->core->store, b->held, b->n_held, (struct store_call){ 0 }, &e) < 0) {
		timer_set(&b->core->timers, &b->saying, SAY_MS);
		return false;
	}
	while (b->n_held > 0)
		free((char *)b->held[--b->n_held].text);
	return true;
}

void build_say_on(struct timer *t)
{
	struct template_build *b =
	    (struct template_build *)(void *)((char *)t - offsetof(struct template_build, saying));

	(void)say_held(b);
}

void build_say(struct template_build *b, const char *level, const char *text)
{
	if (b->n_lines == STORE_LINES_MAX || (b->n_held == COUNT(b->held) && !say_held(b)))
		return;
	json_t *plain = details_text(text); /* what commands say may be any bytes */

	b->held[b->n_held++] = (struct line_row){ .build = b->id,
		                                  .num = b->n_lines++,
		                                  .at_ms = core_now_ms(),
		                                  .level = level,
		                                  .text = mem_strdup(json_string_value(plain)) };
	json_decref(plain);
	if (b->saying.at_ms == 0)
		timer_set(&b->core->timers, &b->saying, SAY_MS);
}

void build_sayf(struct template_build *b, const char *level, const char *fmt, ...)
{
	char text[RUNNER_LINE_MAX + 128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	build_say(b, level, text);
}

/* ---- what nobody needs any more ------------------------------------------------------ */

void template_discard(struct core *c, const char *tenant, const char *workspace)
{
	struct fail f;
	struct wsx *w = workspace ? wsx_find(c, tenant, workspace, &f) : NULL;

	if (!w)
		return;
	wsx_ref(w);
	wsx_discard(w);
}

/* Tags that moved leave builds behind that nobody can name. */
static void drop_loose(struct template_build *b)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct build_list loose;
	struct err e;

	if (store_build_loose(b->core->store, b->template, &a, &loose, &e) < 0)
		return;
	for (size_t i = 0; i < loose.n; i++) {
		const struct build_row *row = &loose.rows[i];
		const struct workspace_by_image others = { b->tenant, row->image, row->workspace };
		struct fail f = { 0 };

		if (row->image && store_workspace_has_image(b->core->store, &others))
			continue; /* a snapshot needs it: as below */
		if (row->image && image_retire(b->core, b->tenant, row->image, &f) < 0 &&
		    f.code != FAIL_NOT_FOUND)
			continue; /* a sandbox has it: the next build looks again */
		template_discard(b->core, b->tenant, row->workspace);
		(void)store_build_drop(b->core->store, row->id, (struct store_call){ 0 }, &e);
	}
}

static void drop_files(struct template_build *b)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_list list;
	struct err e;
	struct fail f;

	if (store_image_list(b->core->store, b->tenant, &a, &list, &e) < 0)
		return;
	for (size_t i = 0; i < list.n; i++)
		if (strncmp(list.rows[i].name, TEMPLATE_FILES, strlen(TEMPLATE_FILES)) == 0 &&
		    list.rows[i].created_ms < core_now_ms() - FILES_MS)
			(void)!image_retire(b->core, b->tenant, list.rows[i].name, &f);
}

/* It failed, or its template is gone: what it has made leads nowhere. */
static void drop_made(struct template_build *b)
{
	struct fail f;

	if (b->made)
		(void)!image_retire(b->core, b->tenant, b->made, &f);
	if (b->kept[0])
		template_discard(b->core, b->tenant, b->kept);
	b->made = NULL;
	b->kept[0] = '\0';
}

/* ---- its end ------------------------------------------------------------------------- */

static void record(struct template_build *b);

static void settled(void *arg, const struct store_answer *a)
{
	struct template_build *b = arg;

	if (a->code != STORE_OK && a->code != STORE_NOT_FOUND) {
		journal(JOURNAL_ERROR, a->err->msg, "build", b->id, NULL);
		b->next_do = record;
		timer_set(&b->core->timers, &b->turn, AGAIN_MS);
		return;
	}
	if (a->code == STORE_NOT_FOUND)
		drop_made(b);
	drop_loose(b);
	drop_files(b);
	build_free(b);
}

/* Behind all that it said. */
static void record(struct template_build *b)
{
	bool is_failed = b->fail.code != FAIL_NONE;
	AUTO(freep) char *context = is_failed ? NULL : json_dumps(b->context, JSON_COMPACT);
	const struct build_row row = { .id = b->id,
		                       .tenant = b->tenant,
		                       .template = b->template,
		                       .tags = "[]",
		                       .state = is_failed ? BUILD_ERROR : BUILD_READY,
		                       .reason = is_failed ? b->fail.detail : NULL,
		                       .step = is_failed ? b->step : NULL,
		                       .context = context,
		                       .image = b->made,
		                       .workspace = b->kept[0] ? b->kept : NULL,
		                       .ended_ms = core_now_ms() };
	struct err e = { 0 };

	if (say_held(b) &&
	    store_build_update(b->core->store, &row,
	                       BUILD_SET_STATE | BUILD_SET_ENDED | BUILD_SET_MADE,
	                       (struct store_call){ .done = settled, .arg = b }, &e) == 0)
		return;
	b->next_do = record; /* the store has no room just now */
	timer_set(&b->core->timers, &b->turn, AGAIN_MS);
}

static void record_end(struct template_build *b)
{
	bool is_failed = b->fail.code != FAIL_NONE;

	build_sayf(b, is_failed ? "error" : "info", "%s",
	           is_failed ? b->fail.detail : "Build finished");
	journal(JOURNAL_INFO, is_failed ? "a template was not built" : "a template was built",
	        "build", b->id, "tenant", b->tenant, "reason", is_failed ? b->fail.detail : NULL,
	        NULL);
	if (is_failed)
		drop_made(b);
	record(b);
}

static void sandbox_gone(void *arg, struct sbx *s, const struct fail *f)
{
	(void)s;
	(void)f;
	record_end(arg);
}

/* Its workspace goes with the sandbox; one that cannot be told just now goes at a later look. */
void build_end(struct template_build *b)
{
	struct sbx *s = roster_find(&b->core->sandboxes, b->sandbox);
	struct fail none = { 0 };

	if (s && sbx_delete(s, sandbox_gone, b, &none) == 0)
		return;
	if (s)
		sbx_end_after(s, AT_END_DELETE);
	record_end(b);
}

void build_fail(struct template_build *b, const struct fail *f)
{
	if (f)
		b->fail = *f;
	build_then(b, build_end);
}

/* ---- after a restart ------------------------------------------------------------------ */

struct holder {
	const char *workspace;
	bool is_found;
};

static void look_for_holder(void *entry, void *arg)
{
	const struct sbx *s = entry;
	struct holder *h = arg;

	h->is_found |= s->workspace && strcmp(s->workspace->row.id, h->workspace) == 0;
}

/* Whatever it had made; its workspace only if no sandbox takes it along. */
static void end_unfinished(struct core *c, const struct build_row *row)
{
	struct holder h = { .workspace = row->workspace ? row->workspace : "" };
	char image[NAME_TEXT_MAX];
	struct fail f;

	snprintf(image, sizeof image, TEMPLATE_IMAGE "%s", row->id);
	(void)!image_retire(c, row->tenant, image, &f);
	roster_each(&c->sandboxes, look_for_holder, &h);
	if (!h.is_found)
		template_discard(c, row->tenant, row->workspace);
}

static void end_sandbox(void *entry, void *arg)
{
	struct sbx *s = entry;

	(void)arg;
	if (s->door && strcmp(s->door, TEMPLATE_DOOR) == 0)
		sbx_end_after(s, AT_END_DELETE);
}

void templates_recover(struct core *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct build_list list = { 0 };
	struct err e = { 0 };

	roster_each(&c->sandboxes, end_sandbox, NULL);
	if (store_build_unfinished(c->store, &a, &list, &e) < 0 ||
	    store_build_unlock(c->store, "the daemon was restarted: build it again",
	                       (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, NULL);
	for (size_t i = 0; i < list.n; i++)
		end_unfinished(c, &list.rows[i]);
}
