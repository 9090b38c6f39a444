/*
 * store.c - the store of workspaces: room in it, and whether it is whole.
 */
#include "api/handlers.h"
#include "core/census.h"
#include "core/fsck.h"
#include "core/gc.h"
#include "core/sandbox.h"

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static json_t *size_or_null(uint64_t bytes)
{
	return bytes ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *print_item(const struct evict_item *i, bool is_dry)
{
	bool has_failed = i->failed != NULL;

	return json_pack("{ss,ss,so,sI,ss,ss}", "kind", evict_kind_name(i->kind), "id", i->id,
	                 "key", text_or_null(i->key), "bytes", (json_int_t)i->bytes, "action",
	                 !i->is_going ? "keep"
	                 : has_failed ? "failed"
	                 : is_dry     ? "remove"
	                              : "removed",
	                 "why", has_failed ? i->failed : i->why);
}

static json_t *print_report(const struct gc_report *r)
{
	json_t *items = json_array();

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(items, print_item(&r->items[i], r->is_dry));
	return json_pack("{sb,sI,sI,so,so,so,so}", "dry_run", r->is_dry, "bytes",
	                 (json_int_t)r->marks.used, "freed_bytes", (json_int_t)r->freed, "max",
	                 size_or_null(r->marks.max), "high", size_or_null(r->marks.high), "low",
	                 size_or_null(r->marks.low), "decisions", items);
}

static void gc_answered(void *arg, const struct gc_report *r, const struct fail *f)
{
	struct call *c = arg;

	if (r)
		answer_json(c, 200, print_report(r));
	else
		answer_fail(c, f);
	call_unref(c);
}

void store_gc(struct call *c)
{
	static const char *const known[] = { "dry_run", NULL };
	bool is_dry = false;
	struct fail f = { 0 };

	if (c->body && (members_known(c->body, known, &f) < 0 ||
	                member_bool(c->body, "dry_run", &is_dry, &f) < 0)) {
		answer_fail(c, &f);
		return;
	}
	if (!is_dry)
		sbx_probe_all(c->api->core); /* monitors that do not answer are ended */
	gc_run(c->api->core, is_dry, gc_answered, call_ref(c));
}

static void fsck_answered(void *arg, json_t *report, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 200, json_incref(report));
	call_unref(c);
}

void store_fsck(struct call *c)
{
	static const char *const known[] = { "repair", NULL };
	bool is_mending = false;
	struct fail f = { 0 };

	if (c->body && (members_known(c->body, known, &f) < 0 ||
	                member_bool(c->body, "repair", &is_mending, &f) < 0))
		answer_fail(c, &f);
	else
		fsck_run(c->api->core, is_mending, fsck_answered, call_ref(c));
}
