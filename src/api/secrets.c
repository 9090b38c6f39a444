/*
 * secrets.c - /v1/secrets: values go in sealed and never come out; /v1/sealing, what they are
 * sealed to.
 */
#include "core/secret.h"

#include "api/handlers.h"
#include "core/details.h"
#include "spec/bind.h"
#include "wire/base64.h"

static json_t *print_secret(const struct secret_row *row)
{
	json_t *o = json_pack("{ss,so?,sI,sI,sI,sI}", "name", row->name, "bind",
	                      json_loads(row->bind, 0, NULL), "version", (json_int_t)row->version,
	                      "created_ms", (json_int_t)row->created_ms, "changed_ms",
	                      (json_int_t)row->changed_ms, "uses", (json_int_t)row->uses);

	json_object_set_new(o, "last_used_ms",
	                    row->last_used_ms ? json_integer(row->last_used_ms) : json_null());
	return o;
}

void secret_list_all(struct call *c)
{
	struct secret_list list;
	struct err e = { 0 };
	struct fail f = { 0 };

	if (store_secret_list(c->api->core->store, c->tenant, &c->arena, &list, &e) < 0) {
		fail_err(&f, &e);
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(rows, print_secret(&list.rows[i]));
	answer_json(c, 200, json_pack("{so}", "secrets", rows));
}

void secret_get(struct call *c)
{
	struct secret_row row;
	struct fail f = { 0 };

	if (secret_find(c->api->core, c->tenant, c->params[0], &c->arena, &row, &f) < 0)
		answer_fail(c, &f);
	else
		answer_json(c, 200, print_secret(&row));
}

static void note_change(struct call *c, const char *what)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct secret_row row = { 0 };
	struct fail f = { 0 };
	bool is_there =
	    secret_find(c->api->core, c->tenant, c->params[0], &a, &row, &f) == 0 && row.bind;
	json_t *data = json_pack("{so,ss}", "secret", details_text(c->params[0]), "what", what);

	if (is_there) {
		json_object_set_new(data, "version", json_integer(row.version));
		json_object_set_new(data, "bind", json_loads(row.bind, 0, NULL));
	}
	call_note(c, LEDGER_SECRET_CHANGED, NULL, data);
}

static void stored(void *call, const struct store_answer *a)
{
	struct call *c = call;
	struct fail f = { 0 };

	if (a->code == STORE_OK) {
		secret_changed(c->api->core, c->tenant, c->params[0]);
		note_change(c, "set");
		secret_get(c);
	} else {
		fail_set(&f, FAIL_BACKEND_ERROR, "the secret could not be stored");
		answer_fail(c, &f);
	}
	call_unref(c);
}

void secret_put_one(struct call *c)
{
	struct secret_ask ask = { .tenant = c->tenant, .name = c->params[0] };
	struct fail f = { 0 };
	int r = members_known(c->body, (const char *const[]){ "bind", "sealed", NULL }, &f);

	if (r == 0)
		r = member_text(c->body, "bind", &ask.bind, &f);
	if (r == 0)
		r = member_text(c->body, "sealed", &ask.sealed, &f);
	if (r == 0 && !ask.bind)
		r = fail_set(&f, FAIL_INVALID, "bind is needed");
	if (!ask.sealed)
		ask.sealed = ""; /* of a canary; else it is missed */
	call_ref(c);
	if (r == 0)
		r = secret_put(c->api->core, &ask, (struct store_call){ .done = stored, .arg = c },
		               &f);
	if (r < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}

static void dropped(void *call, const struct store_answer *a)
{
	struct call *c = call;

	secret_changed(c->api->core, c->tenant, c->params[0]);
	if (a->code == STORE_OK)
		note_change(c, "removed");
	answer_dropped(c, a);
}

void secret_delete(struct call *c)
{
	struct fail f = { 0 };

	call_ref(c);
	if (secret_remove(c->api->core, c->tenant, c->params[0],
	                  (struct store_call){ .done = dropped, .arg = c }, &f) < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
}

/* ---- the key ------------------------------------------------------------------------- */

static void got_key(void *arg, const uint8_t *key, const struct fail *f)
{
	struct call *c = arg;
	AUTO(str_done) struct str text = { .max = 256 };

	if (key)
		base64_encode(key, SEAL_KEY_BYTES, &text);
	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 200,
		            json_pack("{ss,ss,ss}", "key", str_text(&text), "tenant", c->tenant,
		                      "info", SECRET_INFO));
	call_unref(c);
}

void sealing_get(struct call *c)
{
	secret_key(c->api->core, got_key, call_ref(c));
}
