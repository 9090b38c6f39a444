/*
 * images.c - /v1/images: root file systems by name. The body of a PUT is an archive, which goes to
 * the worker that unpacks it piece by piece as it comes.
 */
#include "core/image.h"

#include "api/handlers.h"
#include "core/details.h"
#include "core/workspace.h"
#include "wire/oci.h"
#include "wire/tree.h"

#define LAYOUT "application/vnd.oci.image.layout.v1+tar"

static json_t *print_image(const struct image_row *row)
{
	bool is_snapshot = strcmp(row->source, IMAGE_SNAPSHOT) == 0;

	json_t *settings = row->settings ? json_loads(row->settings, 0, NULL) : NULL;

	return json_pack("{ss,ss,ss?,ss?,sI,sI,sI,sI,sI,so?}", "name", row->name, "source",
	                 row->source, "digest", is_snapshot ? NULL : row->digest, "point",
	                 is_snapshot ? row->digest : NULL, "bytes", (json_int_t)row->bytes, "files",
	                 (json_int_t)row->files, "layers", (json_int_t)row->layers, "dropped",
	                 (json_int_t)row->dropped, "created_ms", (json_int_t)row->created_ms,
	                 "settings", settings);
}

static void note_added(struct call *c, const struct image_row *row)
{
	json_t *data = print_image(row);

	json_object_del(data, "created_ms");
	json_object_del(data, "settings");
	call_note(c, LEDGER_IMAGE_ADDED, NULL, data);
}

void image_list(struct call *c)
{
	struct image_list list;
	struct err e = { 0 };
	struct fail f = { 0 };

	if (store_image_list(c->api->core->store, c->tenant, &c->arena, &list, &e) < 0) {
		fail_err(&f, &e);
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(rows, print_image(&list.rows[i]));
	answer_json(c, 200, json_pack("{so}", "images", rows));
}

void image_get(struct call *c)
{
	struct image_row row;
	struct fail f = { 0 };

	if (image_find(c->api->core, c->tenant, c->params[0], &c->arena, &row, &f) < 0)
		answer_fail(c, &f);
	else
		answer_json(c, 200, print_image(&row));
}

static void dropped(void *call, const struct store_answer *a)
{
	struct call *c = call;
	struct core *core = c->api->core;

	if (a->code == STORE_OK)
		call_note(c, LEDGER_IMAGE_REMOVED, NULL,
		          json_pack("{so}", "name", details_text(c->params[0])));
	answer_dropped(c, a);
	images_sweep(core);
}

void image_delete(struct call *c)
{
	struct fail f = { 0 };

	call_ref(c);
	if (image_remove(c->api->core, c->tenant, c->params[0],
	                 (struct store_call){ .done = dropped, .arg = c }, &f) < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}

/* ---- of a workspace ------------------------------------------------------------------ */

static void taken(void *arg, const struct image_row *row, const struct fail *f)
{
	struct call *c = arg;

	if (f) {
		answer_fail(c, f);
	} else {
		note_added(c, row);
		answer_json(c, 201, print_image(row));
	}
	call_unref(c);
}

void image_post(struct call *c)
{
	static const char *const known[] = { "name", "workspace", "point", "replace", NULL };
	struct image_ask ask = { .tenant = c->tenant };
	const char *workspace = NULL, *point = NULL;
	struct wsx *w = NULL;
	struct fail f = { 0 };

	if (members_known(c->body, known, &f) == 0 &&
	    member_text(c->body, "name", &ask.name, &f) == 0 &&
	    member_text(c->body, "workspace", &workspace, &f) == 0 &&
	    member_text(c->body, "point", &point, &f) == 0 &&
	    member_bool(c->body, "replace", &ask.is_replace, &f) == 0) {
		if (!ask.name || !workspace)
			fail_set(&f, FAIL_INVALID, "name and workspace are needed");
		else
			w = wsx_find(c->api->core, c->tenant, workspace, &f);
	}
	call_ref(c);
	if (!w || image_snapshot(w, &ask, point, taken, c, &f) < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}

/* ---- import -------------------------------------------------------------------------- */

struct upload {
	struct call *call;
	struct image_import *import;
	struct str waiting; /* bytes that found no room */
	bool is_last_due;   /* the end of the body has still to be told */
};

static void upload_free(struct upload *u)
{
	call_unref(u->call);
	str_done(&u->waiting);
	free(u);
}

static void done(void *arg, const struct image_row *row, const struct fail *f)
{
	struct upload *u = arg;

	u->call->state = NULL;
	if (f) {
		answer_fail(u->call, f);
	} else {
		note_added(u->call, row);
		answer_json(u->call, 201, print_image(row));
	}
	upload_free(u);
}

static void left(struct call *c)
{
	struct upload *u = c->state;

	if (!u)
		return;
	c->state = NULL;
	image_import_cancel(u->import);
	upload_free(u);
}

/* As much as there is room for. */
static void push(struct upload *u)
{
	size_t at = 0;

	while (at < u->waiting.len) {
		size_t left_bytes = u->waiting.len - at;
		size_t piece = left_bytes < TREE_PIECE_MAX ? left_bytes : TREE_PIECE_MAX;

		if (!image_import_body(u->import, u->waiting.data + at, piece, false))
			break;
		at += piece;
	}
	if (at > 0) {
		memmove(u->waiting.data, u->waiting.data + at, u->waiting.len - at);
		u->waiting.len -= at;
	}
	if (u->waiting.len == 0 && u->is_last_due)
		u->is_last_due = !image_import_body(u->import, NULL, 0, true);
	if (u->call->r && !u->is_last_due)
		reply_pause(u->call->r, u->waiting.len > 0);
}

static void room(void *arg)
{
	push(arg);
}

static void on_data(struct request *r, const void *bytes, size_t n)
{
	struct call *c = r->route;
	struct upload *u = c->state;

	if (!u)
		return;
	str_addn(&u->waiting, bytes, n); /* at most what a few reads bring: then it is paused */
	u->is_last_due |= n == 0;
	push(u);
}

static int take_kind(struct call *c, struct image_ask *ask, struct fail *f)
{
	const char *type = call_header(c, "Content-Type");

	ask->is_oci = type && strcmp(type, LAYOUT) == 0;
	if (!ask->is_oci && (!type || strcmp(type, "application/x-tar") != 0))
		return fail_set(f, FAIL_INVALID,
		                "Content-Type: application/x-tar for a root file system, " LAYOUT
		                " for an OCI layout; either may be packed by gzip or zstd");
	if (ask->ref && (!ask->is_oci || !*ask->ref || strlen(ask->ref) > OCI_REF_MAX))
		return fail_set(f, FAIL_INVALID,
		                "ref: the name of an image in an OCI layout, of "
		                "1 to %d bytes",
		                OCI_REF_MAX);
	return 0;
}

void image_put(struct call *c)
{
	struct image_ask ask = { .tenant = c->tenant,
		                 .name = c->params[0],
		                 .ref = call_query(c, "ref"),
		                 .is_replace = call_query(c, "replace") != NULL };
	struct fail f = { 0 };

	if (take_kind(c, &ask, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	struct upload *u = mem_alloc(sizeof *u);
	*u = (struct upload){ .call = call_ref(c), .waiting = { .max = 4u << 20 } };
	u->import = image_import(c->api->core, &ask,
	                         (struct image_owner){ .room = room, .done = done, .arg = u }, &f);
	if (!u->import) {
		answer_fail(c, &f);
		upload_free(u);
		return;
	}
	c->state = u;
	c->over = left;
	c->r->on_data = on_data;
}
