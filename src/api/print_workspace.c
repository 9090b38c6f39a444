/*
 * print_workspace.c - workspaces and their points as JSON.
 */
#include "api/print.h"
#include "core/details.h"
#include "core/workspace.h"
#include "wire/base64.h"

static void set(json_t *o, const char *key, json_t *v)
{
	json_object_set_new(o, key, v);
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? details_text(text) : json_null();
}

static json_t *time_or_null(int64_t ms)
{
	return ms > 0 ? json_integer(ms) : json_null();
}

static json_t *parsed(const char *text)
{
	json_t *j = text ? json_loads(text, 0, NULL) : NULL;

	return j ? j : json_null();
}

/* ---- workspaces ---------------------------------------------------------------------- */

json_t *print_workspace_row(const struct workspace_row *row)
{
	json_t *o = json_object();

	set(o, "id", json_string(row->id));
	set(o, "key", text_or_null(row->key));
	set(o, "state", json_string(workspace_state_name(row->state)));
	set(o, "reason", text_or_null(row->state_reason));
	set(o, "mode", json_string(row->mode));
	set(o, "repo", text_or_null(row->repo));
	set(o, "base", text_or_null(row->base));
	set(o, "base_commit", text_or_null(row->base_commit));
	set(o, "branch", text_or_null(row->branch));
	set(o, "parent", text_or_null(row->parent));
	set(o, "rev", json_integer(row->rev));
	set(o, "dirty", json_boolean(row->head != row->origin));
	set(o, "pin", json_boolean(row->pin != 0));
	set(o, "ttl_ms", time_or_null(row->ttl_ms));
	set(o, "spec", parsed(row->spec));
	set(o, "disk", row->disk_bytes > 0 ? json_integer(row->disk_bytes) : json_null());
	set(o, "created_ms", json_integer(row->created_ms));
	set(o, "used_ms", json_integer(row->used_ms));
	set(o, "ended_ms", time_or_null(row->ended_ms));
	set(o, "expires_ms", time_or_null(row->expires_ms));
	return o;
}

json_t *print_workspace(const struct wsx *w)
{
	json_t *o = print_workspace_row(&w->row), *names = json_array();

	for (const struct sbx *s = w->attached; s; s = s->next_attached)
		if (!s->is_service)
			json_array_append_new(names, json_string(s->id));
	set(o, "sandboxes", names);
	return o;
}

/* ---- points -------------------------------------------------------------------------- */

json_t *print_point_name(const struct wsx *w, int64_t num)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct point_row row;
	struct err e = { 0 };

	if (num == 0)
		return json_string("base");
	if (store_point_by_num(w->core->store, num, &a, &row, &e) < 0)
		return json_null();
	return json_string(row.id);
}

/* What was executed, so far as a record tells. */
static void add_process(json_t *o, const struct wsx *w, const char *id)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct process_row row;
	struct err e = { 0 };

	set(o, "process", text_or_null(id));
	if (!id || store_process_get(w->core->store, w->row.tenant, id, &a, &row, &e) < 0)
		return;
	set(o, "cmd", parsed(row.argv));
	set(o, "process_state", json_string(process_state_name(row.state)));
	set(o, "exit_code", row.exit_code < 0 ? json_null() : json_integer(row.exit_code));
}

json_t *print_point(const struct wsx *w, const struct point_row *row)
{
	json_t *o = json_object();

	set(o, "id", json_string(row->id));
	set(o, "workspace", json_string(row->workspace));
	set(o, "kind", json_string(point_kind_name(row->kind)));
	set(o, "label", text_or_null(row->label));
	set(o, "before", print_point_name(w, row->before));
	set(o, "files", json_integer(row->files));
	set(o, "bytes", json_integer(row->bytes));
	set(o, "durable", json_boolean(wsx_is_durable(w, row)));
	set(o, "created_ms", json_integer(row->created_ms));
	add_process(o, w, row->process);
	return o;
}

static bool is_in(const struct point_list *chain, int64_t num)
{
	for (size_t i = 0; i < chain->n; i++)
		if (chain->rows[i].num == num)
			return true;
	return false;
}

/* A fork begins with what its parent did. */
json_t *print_history(const struct wsx *w, const struct point_list *own,
                      const struct point_list *chain)
{
	json_t *rows = json_array(), *o = json_object();

	for (size_t i = 0; i < own->n; i++) {
		json_t *point = print_point(w, &own->rows[i]);

		set(point, "current", json_boolean(is_in(chain, own->rows[i].num)));
		json_array_append_new(rows, point);
	}
	set(o, "points", rows);
	set(o, "head", print_point_name(w, w->row.head));
	set(o, "origin", print_point_name(w, w->row.origin));
	set(o, "redo", json_integer((json_int_t)wsx_steps_ahead(w)));
	set(o, "undo", json_integer((json_int_t)chain->n));
	set(o, "next", own->next ? json_string(own->next) : json_null());
	return o;
}

/* ---- changes ------------------------------------------------------------------------- */

/* A name that is not UTF-8 is shown too, as far as it can be. */
static void show_name(json_t *line, const char *key, const char *key_base64)
{
	const json_t *coded = json_object_get(line, key_base64);
	AUTO(str_done) struct str bytes = { .max = (size_t)PATH_TEXT_MAX * 2 };

	if (coded && base64_decode(json_string_value(coded), json_string_length(coded), &bytes))
		set(line, key, details_text(str_text(&bytes)));
}

/* Lines of the keeper: it is ours, but the names in there are anybody's. */
json_t *print_changes(const char *text, size_t len, bool is_stat)
{
	json_t *files = json_array(), *counts = json_object();
	const char *end = text + len;

	for (const char *at = text, *nl; at < end; at = nl + 1) {
		nl = memchr(at, '\n', (size_t)(end - at));
		if (!nl)
			break;
		json_t *line = json_loadb(at, (size_t)(nl - at), 0, NULL);
		const char *status = json_string_value(json_object_get(line, "status"));

		if (status)
			set(counts, status,
			    json_integer(json_integer_value(json_object_get(counts, status)) + 1));
		if (line && !is_stat) {
			show_name(line, "path", "path_base64");
			show_name(line, "from", "from_base64");
			json_array_append(files, line);
		}
		json_decref(line);
	}
	json_t *o = json_pack("{so}", "counts", counts);
	if (is_stat)
		json_decref(files);
	else
		set(o, "files", files);
	return o;
}
